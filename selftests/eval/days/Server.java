// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

/**
 * Server KIND FIRST SECOND: sessions that live for FIRST seconds, or a cache of FIRST entries, of
 * SECOND bytes each. Each line of its input is the number of requests of one second. LEAK_KB_S and
 * so on as in server.py.
 */
public class Server {
	static double setting(String name) {
		String value = System.getenv(name);
		return value == null ? 0 : Double.parseDouble(value);
	}

	public static void main(String[] args) throws Exception {
		boolean cache = args[0].equals("lru"), byLoad = "load".equals(System.getenv("LEAK_BY"));
		int first = Integer.parseInt(args[1]), second = Integer.parseInt(args[2]);
		double rate = setting("LEAK_KB_S") * 1024, after = setting("LEAK_AFTER_S");
		double mean = setting("LOAD_MEAN"), due = 0, before = after;
		long start = System.nanoTime(), leaked = 0, number = 0;
		Random random = new Random(1);
		ArrayList<byte[]> list = new ArrayList<>();
		LinkedHashMap<Long, Object[]> kept = new LinkedHashMap<>(16, 0.75f, cache);
		BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
		for (String line; (line = input.readLine()) != null;) {
			int requests = Integer.parseInt(line.trim());
			double now = (System.nanoTime() - start) / 1e9;
			for (int i = 0; i < requests; i++) {
				number++;
				long key = cache ? (long)Math.pow(1 - random.nextDouble(), -1.6) : number;
				if (cache && kept.get(key) != null)
					continue;
				kept.put(key, new Object[] { now + first, new byte[second / 2 + random.nextInt(second)] });
				if (cache && kept.size() > first)
					kept.remove(kept.keySet().iterator().next());
				new StringBuilder().append(number).append(now).toString();
			}
			while (!cache && !kept.isEmpty()) {
				Map.Entry<Long, Object[]> oldest = kept.entrySet().iterator().next();
				if ((Double)oldest.getValue()[0] > now)
					break;
				kept.remove(oldest.getKey());
			}
			if (rate > 0 && now > after) {
				due += byLoad ? rate * requests / mean : rate * (now - before);
				before = now;
				for (; leaked < due; leaked += 1040)
					list.add(new byte[1016]);
			}
		}
	}
}
