<?php
// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
// server.php TTL_S BYTES: a service with sessions. Each line of its input is the number of
// requests of one second. LEAK_KB_S and so on as in server.py.
[$ttl, $size] = [(int)$argv[1], (int)$argv[2]];
[$rate, $after] = [(float)getenv('LEAK_KB_S') * 1024, (float)getenv('LEAK_AFTER_S')];
$start = microtime(true);
$sessions = $log = [];
$number = $leaked = 0;
while (($line = fgets(STDIN)) !== false) {
	$now = microtime(true);
	for ($i = (int)$line; $i > 0; $i--)
		$sessions[++$number] = [$now + $ttl, str_repeat('x', random_int(intdiv($size, 4), intdiv($size * 7, 4)))];
	foreach ($sessions as $key => $session) {
		if ($session[0] > $now)
			break;
		unset($sessions[$key]);
	}
	for (; $rate > 0 && $leaked < ($now - $start - $after) * $rate; $leaked += 1070)
		$log[] = str_repeat('y', 1000) . $leaked;
}
