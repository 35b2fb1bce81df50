# SPDX-License-Identifier: GPL-2.0-or-later
#
# libmemwatch-heap.so, the heap profiler that is preloaded into programs, and its tests.
# Included by the Makefile of the root. It needs nothing but the C library.

HEAP_SO	 := $(BUILD)/heap/libmemwatch-heap.so
HEAP_SRC := $(wildcard heap/*.c)
HEAP_OBJ := $(HEAP_SRC:%.c=$(BUILD)/%.o)

# Optimisation is part of the design: entry points must end in jumps. The compiler must not
# know what malloc() does, or it makes calloc() out of malloc() and memset().
HEAP_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-I. -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc \
	-fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free -fno-semantic-interposition \
	-fno-stack-protector -fasynchronous-unwind-tables -MMD -MP

.PHONY: heap heap-tests install-heap

heap: $(HEAP_SO)

$(BUILD)/heap/%.o: heap/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(HEAP_CFLAGS) -c -o $@ $<

# Everything is bound when the library is loaded: lazy binding inside malloc() takes locks.
$(HEAP_SO): $(HEAP_OBJ) heap/libmemwatch-heap.map
	$(call msg,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libmemwatch-heap.so \
		-Wl,--version-script,heap/libmemwatch-heap.map -Wl,-z,defs -Wl,-z,now \
		-Wl,-Bsymbolic-functions -o $@ $(HEAP_OBJ)
