// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
// memory.js KIND RATE_KB AFTER_S: ways of a Node.js program to hold memory.
'use strict';
const [kind, rate, after] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const kept = new Map();
const start = Date.now();
let done = 0;

if (kind === 'http') {
	require('http').createServer((request, response) => {
		const body = JSON.stringify(Object.assign({}, request.headers)).repeat(10);
		response.end(body);
	}).listen('socket');
} else {
	setInterval(() => {
		const due = ((Date.now() - start) / 1000 - after) * rate * 1024;
		for (; done + 1024 <= due; done += 1024) {
			kept.set(done, Buffer.alloc(900, 1));
			if (kind === 'lru' && kept.size > 20000)
				kept.delete(kept.keys().next().value);
		}
	}, 50);
}
