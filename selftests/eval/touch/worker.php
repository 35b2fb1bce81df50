<?php
// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
// worker.php KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S: worker.c in PHP; kinds leak, cache, load, wave.
ini_set('memory_limit', '-1');
[$kind, $rate, $cap, $size, $percent, $after] = array_slice($argv, 1);
$rate *= 1024;
$cap *= 1024;
$blocks = [];
$next = $first = $cursor = 0;
$held = $owed = $sum = 0;
$start = $before = microtime(true);

function gain($due, $bound)
{
	global $blocks, $next, $first, $held, $owed, $size, $percent;
	while ($owed < $due) {
		$n = (int)($size * (0.5 + mt_rand() / mt_getrandmax()));
		$blocks[$next++] = ['born' => microtime(true), 'again' => mt_rand(0, 99) < $percent,
			'data' => str_repeat('x', $n)];
		$owed += $n + 420;
		$held += $n + 420;
		while ($bound && $held > $bound) {
			$held -= strlen($blocks[$first]['data']) + 420;
			unset($blocks[$first++]);
		}
	}
}

while (true) {
	$now = microtime(true);
	$due = max(0, $now - $start - $after) * $rate;
	if ($kind === 'wave') {
		$owed = 0;
		gain($rate * ($now - $before) * (1 - cos(($now - $start) * 6.2832 / ($cap / 1024))) / 2, 0);
		while ($first < $next && $now - $blocks[$first]['born'] > 300)
			unset($blocks[$first++]);
	} elseif ($kind === 'load') {
		gain(min($due, $cap), 0);
	} else {
		gain($due, $kind === 'cache' ? $cap : 0);
	}
	if ($kind !== 'leak' && $next > $first)
		for ($i = ($next - $first) * ($now - $before) / 90 + 1; $i > 0; $i--) {
			$block = $blocks[$first + $cursor++ % ($next - $first)];
			if ($block['again'])
				$sum += ord($block['data'][0]) + ord($block['data'][strlen($block['data']) - 1]);
		}
	$before = $now;
	sleep(1);
}
