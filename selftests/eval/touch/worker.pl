# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
# worker.pl KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S: worker.c in Perl; kinds leak, cache, load, wave.
use strict;
use warnings;
use Time::HiRes qw(time sleep);

my ($kind, $rate, $cap, $size, $percent, $after) = @ARGV;
$rate *= 1024;
$cap *= 1024;
srand($$);
my ($start, $held, $owed, $cursor, $sum) = (time, 0, 0, 0, 0);
my ($before, @blocks) = ($start);

sub gain {
	my ($due, $bound) = @_;
	while ($owed < $due) {
		my $n = int($size * (0.5 + rand));
		push @blocks, { born => time, again => rand(100) < $percent, data => "x" x $n };
		$owed += $n + 450;
		$held += $n + 450;
		while ($bound && $held > $bound) {
			$held -= 450 + length shift(@blocks)->{data};
		}
	}
}

while (1) {
	my $now = time;
	my $due = $now - $start > $after ? ($now - $start - $after) * $rate : 0;
	if ($kind eq 'wave') {
		$owed = 0;
		gain($rate * ($now - $before) * (1 - cos(($now - $start) * 6.2832 / ($cap / 1024))) / 2, 0);
		shift @blocks while @blocks && $now - $blocks[0]{born} > 300;
	} elsif ($kind eq 'load') {
		gain($due < $cap ? $due : $cap, 0);
	} else {
		gain($due, $kind eq 'cache' ? $cap : 0);
	}
	if ($kind ne 'leak' && @blocks) {
		for (1 .. @blocks * ($now - $before) / 90 + 1) {
			my $block = $blocks[$cursor++ % @blocks];
			$sum += ord(substr($block->{data}, -1)) + ord($block->{data}) if $block->{again};
		}
	}
	$before = $now;
	sleep 1;
}
