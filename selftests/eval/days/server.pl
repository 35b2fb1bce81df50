# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
# server.pl TTL_S BYTES: a service with sessions. Each line of its input is the number of requests
# of one second. LEAK_KB_S and so on as in server.py: references that form a circle.
use strict;
use warnings;
use Time::HiRes qw(time);

my ($ttl, $size) = @ARGV;
my ($rate, $after) = (($ENV{LEAK_KB_S} // 0) * 1024, $ENV{LEAK_AFTER_S} // 0);
my ($by_load, $mean) = (($ENV{LEAK_BY} // '') eq 'load', $ENV{LOAD_MEAN} // 1);
my ($start, $due, $leaked, $before) = (time, 0, 0, $after);
my @sessions;
while (my $requests = <STDIN>) {
	my $now = time;
	push @sessions, [$now + $ttl, 'x' x ($size / 4 + rand($size * 1.5))] for 1 .. $requests;
	shift @sessions while @sessions && $sessions[0][0] < $now;
	next unless $rate && $now - $start > $after;
	$due += $by_load ? $rate * $requests / $mean : $rate * ($now - $start - $before);
	$before = $now - $start;
	for (; $leaked < $due; $leaked += 1300) {
		my $parent = { text => 'y' x 700 };
		$parent->{child} = { parent => $parent };
	}
}
