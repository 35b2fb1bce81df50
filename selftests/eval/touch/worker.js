// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
// worker.js KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S: worker.c in JavaScript; kinds leak, buffers (a
// leak of them), cache, wave and garbage.
'use strict';
const [kind, ...words] = process.argv.slice(2);
let [rate, cap, size, percent, after] = words.map(Number);
rate *= 1024;
cap *= 1024;
const blocks = new Map();
const start = Date.now() / 1000;
let next = 0, held = 0, owed = 0, sum = 0, before = start;
let walk = blocks.values();

function make(now) {
	const n = Math.round(size * (0.5 + Math.random()));
	const data = kind === 'buffers' ? Buffer.alloc(n, 1) : Array.from({ length: n >> 4 }, (_, i) => next + i + 0.5);
	return { born: now, again: Math.random() * 100 < percent, data, cost: n / 2 + 150 };
}

function gain(now, due, bound) {
	while (owed < due) {
		const block = make(now);
		if (kind === 'buffers')
			block.cost = block.data.length + 300;
		owed += block.cost;
		if (kind === 'garbage')
			continue;
		blocks.set(next++, block);
		held += block.cost;
		while (bound && held > bound) {
			const [key, oldest] = blocks.entries().next().value;
			held -= oldest.cost;
			blocks.delete(key);
		}
	}
}

function read(seconds) {
	for (let i = blocks.size * seconds / 90 + 1; i > 0; i--) {
		const step = walk.next();
		if (step.done) {
			walk = blocks.values();
			return;
		}
		if (step.value.again)
			sum += step.value.data[0] + step.value.data[step.value.data.length - 1];
	}
}

setInterval(() => {
	const now = Date.now() / 1000, due = Math.max(0, now - start - after) * rate;
	if (kind === 'wave') {
		owed = 0;
		gain(now, rate * (now - before) * (1 - Math.cos((now - start) * 6.2832 / (cap / 1024))) / 2, 0);
		for (const [key, block] of blocks) {
			if (now - block.born < 300)
				break;
			blocks.delete(key);
		}
	} else {
		gain(now, due, kind === 'cache' ? cap : 0);
	}
	if (kind === 'cache' || kind === 'wave')
		read(now - before);
	before = now;
}, 1000);
