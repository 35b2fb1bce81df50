// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
// server.js KIND FIRST SECOND: a service of Node.js over HTTP, with sessions that live for FIRST
// seconds or a cache of FIRST entries, of SECOND bytes each. LEAK_KB_S and so on as in server.py.
'use strict';
const http = require('http');
const [kind, first, second] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const rate = Number(process.env.LEAK_KB_S || 0) * 1024;
const after = Number(process.env.LEAK_AFTER_S || 0);
const byLoad = process.env.LEAK_BY === 'load', mean = Number(process.env.LOAD_MEAN || 1);
const start = Date.now();
const kept = new Map();
const listeners = [];
let number = 0, due = 0, leaked = 0, before = after;

function entry(size) {
	const list = [];
	for (let i = 0; i < size / 300; i++)
		list.push({ at: i, text: 'x'.repeat(100) + number + i, price: Math.random() });
	return list;
}

function leak() {
	const now = (Date.now() - start) / 1000;
	if (!rate || now < after)
		return;
	due += byLoad ? rate / mean : rate * (now - before);
	before = now;
	for (; leaked < due; leaked += 1200) {
		const data = Array.from({ length: 130 }, () => Math.random());
		listeners.push(() => data.length);
	}
}

http.createServer((request, response) => {
	const now = Date.now();
	number++;
	if (kind === 'sessions') {
		kept.set(number, { until: now + first * 1000, list: entry(second * (0.5 + Math.random())) });
		for (const [key, value] of kept) {
			if (value.until > now)
				break;
			kept.delete(key);
		}
	} else {
		const key = Math.floor(Math.pow(1 - Math.random(), -1.6));
		const found = kept.get(key) || { list: entry(second) };
		kept.delete(key);
		kept.set(key, found);
		if (kept.size > first)
			kept.delete(kept.keys().next().value);
	}
	leak();
	response.end(JSON.stringify(Object.assign({}, request.headers)));
}).listen('socket');
