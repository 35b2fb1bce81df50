# SPDX-License-Identifier: GPL-2.0-or-later
#
# libmemwatch-heap.so, the heap profiler that is preloaded into programs, and its tests.
# Included by the Makefile of the root. It needs nothing but the C library.

HEAP_SO	 := $(BUILD)/heap/libmemwatch-heap.so
HEAP_SRC := $(wildcard heap/*.c)
HEAP_OBJ := $(HEAP_SRC:%.c=$(BUILD)/%.o)

# Optimisation is part of the design: entry points must end in jumps, and begin without the marks
# of control-flow protection, which would be a seventh of their instructions. The compiler must
# not know what malloc() does, or it makes calloc() out of malloc() and memset().
HEAP_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-I. -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc \
	-fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free -fno-semantic-interposition \
	-fno-stack-protector -fcf-protection=none -fasynchronous-unwind-tables -MMD -MP

.PHONY: heap heap-tests heap-tests-c install-heap

heap: $(HEAP_SO)

$(BUILD)/heap/%.o: heap/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HARDEN_CFLAGS) $(CPPFLAGS) $(HEAP_CFLAGS) -c -o $@ $<

# Everything is bound when the library is loaded: lazy binding inside malloc() takes locks.
$(HEAP_SO): $(HEAP_OBJ) heap/libmemwatch-heap.map
	$(call msg,LD,$@)
	$(Q)$(CC) $(HARDEN_LDFLAGS) $(LDFLAGS) -shared -Wl,-soname,libmemwatch-heap.so \
		-Wl,--version-script,heap/libmemwatch-heap.map -Wl,-z,defs -Wl,-z,now \
		-Wl,-Bsymbolic-functions -o $@ $(HEAP_OBJ)

# Where memwatchctl looks for it, whatever LIBDIR is.
install-heap: heap
	$(call install,755,$(HEAP_SO),$(PREFIX)/lib/memwatch/libmemwatch-heap.so)
	$(call install,644,heap/heap-self.h,$(PREFIX)/include/memwatch/heap-self.h)

# The tests are programs that run other programs under the profiler.
HEAP_TESTS_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -D_GNU_SOURCE -I. -MMD -MP
HEAP_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard heap/tests/test-*.c))

# A C++ program with operators of its own, in itself and in a library, and with its own malloc().
HEAP_WORKS_CXX := work-cxx-operators work-cxx-library work-cxx-pool

# Libraries of C++ for a program in C. libstdc++ may not be installed as a static library.
HEAP_PLUGINS_CXX := plugin-shared.so plugin-renamed.so plugin-wait.so \
	plugin-wait-privileges.so \
	$(if $(filter /%,$(shell $(CXX) -print-file-name=libstdc++.a 2>/dev/null)),plugin-static.so plugin-hidden.so)

# Rust may not be installed. Its compiler cannot share the jobs of make.
heap-tests: heap-tests-c \
	$(addprefix $(BUILD)/heap/tests/,work-cxx $(HEAP_WORKS_CXX) plugin-cxx.so $(HEAP_PLUGINS_CXX)) \
	$(if $(shell command -v rustc),$(BUILD)/heap/tests/work-rust)

# Without what needs a C++ compiler: heap/tests/run-aarch64 builds it with another compiler.
heap-tests-c: $(HEAP_SO) $(HEAP_TESTS) $(addprefix $(BUILD)/heap/tests/,work work-apart plugin.so \
	plugin-bare.so plugin-exit.so plugin-own.so control-fixed oracle.so slow-disk.so \
	old-kernel.so heap-dump crowd)

# One of them is linked with the parts that it tests.
$(BUILD)/heap/tests/test-parts: HEAP_TEST_OBJ := \
	$(addprefix $(BUILD)/heap/,filter.o index.o interval.o lock.o)
$(BUILD)/heap/tests/test-parts: $(addprefix $(BUILD)/heap/,filter.o index.o interval.o lock.o)

$(HEAP_TESTS) $(addprefix $(BUILD)/heap/tests/,heap-dump crowd): $(BUILD)/%: %.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_TESTS_CFLAGS) -o $@ $< $(HEAP_TEST_OBJ) -lm -lpthread

# The same program, linked to a fixed address, where linkers treat functions differently.
$(BUILD)/heap/tests/control-fixed: heap/tests/test-control.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_TESTS_CFLAGS) -fno-pic -no-pie -o $@ $< -lm

# In one of them, segments with gaps between them are mapped apart.
$(BUILD)/heap/tests/work-apart: HEAP_WORK_LDFLAGS := -no-pie \
	-Wl,-z,max-page-size=0x200000,-z,separate-code

# The allocations must happen: the compiler must not remove pairs of them.
$(addprefix $(BUILD)/heap/tests/,work work-apart): heap/tests/work.c \
		heap/tests/work-contract.c heap/tests/work-fork.c heap/tests/work-mmap.c \
		heap/tests/work-plugins.c heap/tests/work-sandbox.c heap/tests/work-sites.c \
		heap/tests/work-stress.c heap/tests/work-touch.c heap/tests/work.h \
		heap/tests/sandbox.h
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(HEAP_TESTS_CFLAGS)) -fno-builtin -fomit-frame-pointer \
		$(HEAP_WORK_LDFLAGS) -o $@ $(filter %.c,$^) -lpthread

$(BUILD)/heap/tests/work-cxx: heap/tests/work-cxx.cc
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -I. -MMD -MP -o $@ $<

HEAP_CXX := $(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -fno-builtin

$(BUILD)/heap/tests/work-cxx-operators: heap/tests/operators.cc
$(BUILD)/heap/tests/work-cxx-library: $(BUILD)/heap/tests/operators.so
$(BUILD)/heap/tests/work-cxx-pool: heap/tests/pool.cc

$(addprefix $(BUILD)/heap/tests/,$(HEAP_WORKS_CXX)): heap/tests/work-cxx.cc
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(HEAP_CXX) -Wl,-rpath,'$$ORIGIN' -o $@ $^

$(BUILD)/heap/tests/operators.so: heap/tests/operators.cc
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(HEAP_CXX) -fPIC -shared -Wl,-soname,operators.so -o $@ $<

$(BUILD)/heap/tests/plugin-cxx.so: heap/tests/plugin-cxx.cc $(BUILD)/heap/tests/operators.so
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(HEAP_CXX) -fPIC -shared -Wl,-rpath,'$$ORIGIN' -o $@ $^

$(BUILD)/heap/tests/plugin-static.so: HEAP_PLUGIN_FLAGS := -static-libstdc++ -static-libgcc
$(BUILD)/heap/tests/plugin-hidden.so: HEAP_PLUGIN_FLAGS := -static-libstdc++ -static-libgcc \
	-Wl,--exclude-libs,ALL

$(addprefix $(BUILD)/heap/tests/plugin-,shared.so static.so hidden.so): heap/tests/plugin-check.cc
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(HEAP_CXX) -fPIC -shared $(HEAP_PLUGIN_FLAGS) -o $@ $<

# A copy of libstdc++ that has another name.
$(BUILD)/heap/tests/libstdcxx.so.6:
	$(Q)mkdir -p $(@D)
	$(Q)sed 's/libstdc++\.so\.6/libstdcxx.so.6/g' \
		"$$(realpath "$$($(CXX) -print-file-name=libstdc++.so.6)")" >$@

$(BUILD)/heap/tests/plugin-renamed.so: heap/tests/plugin-check.cc $(BUILD)/heap/tests/libstdcxx.so.6
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(HEAP_CXX) -fPIC -shared -nostdlib -Wl,-rpath,'$$ORIGIN' -o $@ $^ -lgcc_s -lc

$(BUILD)/heap/tests/plugin-wait-privileges.so: HEAP_PLUGIN_FLAGS := -DWAIT_PRIVILEGES

$(addprefix $(BUILD)/heap/tests/plugin-,wait.so wait-privileges.so): heap/tests/plugin-wait.cc
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(HEAP_CXX) -fPIC -shared $(HEAP_PLUGIN_FLAGS) -o $@ $< -lpthread

$(BUILD)/heap/tests/work-rust: heap/tests/work-rust.rs
	$(call msg,RUSTC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)env -u MAKEFLAGS -u MFLAGS rustc -O -o $@ $<

$(BUILD)/heap/tests/%.so: heap/tests/%.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_TESTS_CFLAGS) -fPIC -shared -fno-builtin -o $@ $<

# A program of known answer for "heap report --rss", which judges the profiler from outside.
heap-tests: $(BUILD)/selftests/rss-answers

$(BUILD)/selftests/rss-answers: selftests/cli/rss-answers.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_TESTS_CFLAGS) -fno-builtin -o $@ $< -lpthread

# The benchmarks compare the library with the least that a preloaded library can do.
bench-programs: $(addprefix $(BUILD)/selftests/,forwarder.so heap-pairs heap-figures \
	heap-watched free-filter)

$(BUILD)/selftests/forwarder.so: selftests/bench/forwarder.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_TESTS_CFLAGS) -fPIC -shared -o $@ $<

$(addprefix $(BUILD)/selftests/,heap-pairs heap-figures heap-watched): $(BUILD)/selftests/%: \
		selftests/bench/%.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_TESTS_CFLAGS) -fno-builtin -o $@ $< -lpthread

$(BUILD)/selftests/free-filter: selftests/bench/free-filter.c $(addprefix $(BUILD)/heap/,filter.o interval.o)
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_TESTS_CFLAGS) -o $@ $< $(addprefix $(BUILD)/heap/,filter.o interval.o)
