-- SPDX-License-Identifier: GPL-2.0-or-later
-- Copyright (C) 2026 The memwatch authors
--
-- access-work.lua SECONDS: a cache of documents. Those that are in use change slowly, so the last
-- accesses of documents are spread over the run. Some are forgotten as soon as they are made.
local seconds = tonumber(arg[1])
-- A full collection would touch everything.
collectgarbage("generational", 20, 1000)
math.randomseed(1)

local function document(id)
	local numbers, words = {}, {}
	for i = 1, math.random(2, 120) do
		numbers[i] = id * i
	end
	for i = 1, math.random(1, 12) do
		words["key" .. i] = string.rep(string.format("%d-%d ", id, i), math.random(1, 60))
	end
	return { id = id, numbers = numbers, words = words, text = string.rep("text " .. id,
		math.random(1, 400)) }
end

local cache, forgotten, sum = {}, {}, 0
for id = 1, 6000 do
	cache[id] = document(id)
end

-- One of the ways of a program to use a document.
local function use(id)
	local found, way = cache[id], math.random(8)
	if way == 1 then
		for _, n in ipairs(found.numbers) do sum = sum + n end
	elseif way == 2 then
		found.numbers[math.random(#found.numbers)] = sum
	elseif way == 3 then
		for _, text in pairs(found.words) do sum = sum + #text end
	elseif way == 4 then
		sum = sum + (found.text:find("never", 1, true) or 1)
	elseif way == 5 then
		found.words["key" .. math.random(12)] = found.text:sub(1, 100) .. sum
	elseif way == 6 then
		table.sort(found.numbers)
	elseif way == 7 then
		cache[id] = document(id)
	else
		sum = sum + (found.text < "text 5" and 1 or 2)
	end
end

local begin, round = os.time(), 0
while os.time() - begin < seconds do
	round = round + 1
	local first = round // 6
	for _ = 1, 20 do
		use((first + math.random(0, 300)) % #cache + 1)
	end
	if round % 50 == 0 and #forgotten < 3000 then
		forgotten[#forgotten + 1] = document(round)
	end
end
print(round, #forgotten)
-- Without freeing everything.
os.exit(0, false)
