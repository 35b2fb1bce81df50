// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A C++ program that uses every form of operator new and delete. It prints the bytes that live at
 * its end; what it frees must not be in a profile. With "reallocarray": fails if that function does
 * not keep what is in the object.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

static const int count = 2000;
/* A multiple of the alignment: libstdc++ rounds sizes up. */
static const std::size_t size = 1024;
static const std::align_val_t align{ 64 };

/* The compiler must not remove pairs of new and delete. */
static void *volatile kept;

template <typename New, typename Delete> static unsigned long run(New allocate, Delete release)
{
	void *objects[count];

	for (int i = 0; i < count; i++)
		kept = objects[i] = allocate();
	for (int i = 0; i < count; i += 2)
		release(objects[i]);
	return count / 2 * size;
}

__attribute__((noinline)) static unsigned long forms_plain()
{
	unsigned long live = 0;

	live += run([] { return operator new(size); }, [](void *p) { operator delete(p); });
	live += run([] { return operator new[](size); }, [](void *p) { operator delete[](p); });
	live += run([] { return operator new(size, std::nothrow); },
		    [](void *p) { operator delete(p, std::nothrow); });
	live += run([] { return operator new[](size, std::nothrow); },
		    [](void *p) { operator delete[](p, std::nothrow); });
	live += run([] { return operator new(size); }, [](void *p) { operator delete(p, size); });
	live += run([] { return operator new[](size); },
		    [](void *p) { operator delete[](p, size); });
	return live;
}

__attribute__((noinline)) static unsigned long forms_aligned()
{
	unsigned long live = 0;

	live += run([] { return operator new(size, align); },
		    [](void *p) { operator delete(p, align); });
	live += run([] { return operator new[](size, align); },
		    [](void *p) { operator delete[](p, align); });
	live += run([] { return operator new(size, align, std::nothrow); },
		    [](void *p) { operator delete(p, align, std::nothrow); });
	live += run([] { return operator new[](size, align, std::nothrow); },
		    [](void *p) { operator delete[](p, align, std::nothrow); });
	live += run([] { return operator new(size, align); },
		    [](void *p) { operator delete(p, size, align); });
	live += run([] { return operator new[](size, align); },
		    [](void *p) { operator delete[](p, size, align); });
	return live;
}

/* An exception of the next operator new passes through the profiler. */
static bool throws()
{
	volatile std::size_t huge = std::size_t(1) << 60;

	try {
		kept = operator new(huge);
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

static bool reallocates()
{
	static const char mark[] = "what is in the object";
	void *object = std::malloc(sizeof(mark));

	std::memcpy(object, mark, sizeof(mark));
	kept = object = reallocarray(object, 2, size);
	return object && !std::memcmp(object, mark, sizeof(mark));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !std::strcmp(argv[1], "reallocarray"))
		return !reallocates();

	unsigned long live = forms_plain() + forms_aligned();
	/* An allocator written in C cannot throw, and ends the program. */
	bool thrown = argc > 1 || throws();

	std::printf("%lu %d\n", live, thrown);
	std::fflush(stdout);
	std::_Exit(0);
}
