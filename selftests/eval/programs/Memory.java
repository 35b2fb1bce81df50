// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
import java.util.ArrayDeque;

/** Memory KIND RATE_KB AFTER_S: a list that only grows, or a queue with a bound. */
public class Memory {
	public static void main(String[] args) throws Exception {
		boolean bounded = args[0].equals("queue");
		double rate = Double.parseDouble(args[1]) * 1024, after = Double.parseDouble(args[2]);
		long start = System.nanoTime(), done = 0;
		ArrayDeque<byte[]> kept = new ArrayDeque<>();
		for (;;) {
			double due = ((System.nanoTime() - start) / 1e9 - after) * rate;
			for (; done + 1040 <= due; done += 1040) {
				kept.add(new byte[1024]);
				if (bounded && kept.size() > 20000)
					kept.remove();
			}
			for (int i = 0; i < 200; i++)
				new StringBuilder().append(done).append(i).toString();
			Thread.sleep(50);
		}
	}
}
