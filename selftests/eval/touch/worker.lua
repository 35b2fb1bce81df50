-- SPDX-License-Identifier: GPL-2.0-or-later
-- Copyright (C) 2026 The memwatch authors
-- worker.lua KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S: worker.c in Lua; kinds leak, cache and load.
-- A line of its input is a second.
local kind, rate, cap, size, percent, after = table.unpack(arg)
rate, cap, size = rate * 1024, cap * 1024, tonumber(size)
percent, after = tonumber(percent), tonumber(after)
local blocks, first, last, held, owed, cursor, sum, seconds = {}, 1, 0, 0, 0, 0, 0, 0

local function gain(due, bound)
	while owed < due do
		local n = math.floor(size * (0.5 + math.random()))
		last = last + 1
		blocks[last] = { again = math.random() * 100 < percent,
			data = string.rep("x", n - 8) .. string.format("%08d", last) }
		owed, held = owed + n + 150, held + n + 150
		while bound and held > bound do
			held = held - #blocks[first].data - 150
			blocks[first] = nil
			first = first + 1
		end
	end
end

for _ in io.lines() do
	seconds = seconds + 1
	local due = math.max(0, seconds - after) * rate
	if kind == "load" then
		gain(math.min(due, cap), nil)
	else
		gain(due, kind == "cache" and cap or nil)
	end
	if kind ~= "leak" and last >= first then
		for _ = 1, (last - first + 1) / 90 + 1 do
			local block = blocks[first + cursor % (last - first + 1)]
			cursor = cursor + 1
			if block.again then
				sum = sum + block.data:byte(1) + block.data:byte(-1)
			end
		end
	end
end
