# SPDX-License-Identifier: GPL-2.0-or-later
#
# libmemwatch: shared and static library, its tests and fuzz targets. Included
# by the Makefile of the root after bpf/bpf.mk; all paths are relative to it.

BUILD	?= build
PREFIX	?= /usr/local
LIBDIR	?= $(PREFIX)/lib
CC	?= gcc
CLANG	?= clang

# With the relay, unless there is nothing to build it with.
LIB_SRC	:= $(filter-out lib/src/stream/live-none.c,$(wildcard lib/src/*/*.c))
LIB_OBJ	:= $(LIB_SRC:lib/src/%.c=$(BUILD)/lib/%.o)
LIB_SO	:= $(BUILD)/lib/libmemwatch.so.0
LIB_LIBS := -lbpf -lzstd -lz -lm

LIB_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-DMEMWATCH_VERSION_STRING='"$(shell cat VERSION)"' -Ilib/include -Ilib/src \
	-Ikmod/uapi -I. -I$(BUILD)/bpf -MMD -MP

LIB_TESTS := $(patsubst lib/tests/%.c,$(BUILD)/lib/tests/%,$(wildcard lib/tests/test-*.c))
LIB_FUZZ  := $(patsubst lib/fuzz/%.c,$(BUILD)/lib/fuzz/%,$(wildcard lib/fuzz/fuzz-*.c))
LIB_SANITIZE := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all

.PHONY: lib lib-tests check-lib fuzz-lib install-lib

lib: $(LIB_SO) $(BUILD)/lib/libmemwatch.a $(BUILD)/lib/libmemwatch.pc

# Hidden by the map, not by the compiler: the static library is for our tests.
$(BUILD)/lib/%.o: lib/src/%.c $(BPF_SKELS)
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(CPPFLAGS) $(CFLAGS) -fPIC -c -o $@ $<

$(LIB_SO): $(LIB_OBJ) lib/libmemwatch.map
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libmemwatch.so.0 \
		-Wl,--version-script,lib/libmemwatch.map -Wl,-z,defs -o $@ $(LIB_OBJ) $(LIB_LIBS)
	ln -sf libmemwatch.so.0 $(BUILD)/lib/libmemwatch.so

$(BUILD)/lib/libmemwatch.a: $(LIB_OBJ)
	rm -f $@
	$(AR) qcs $@ $(LIB_OBJ)

$(BUILD)/lib/libmemwatch.pc: VERSION
	@mkdir -p $(@D)
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$${prefix}/include' '' \
		'Name: libmemwatch' 'Description: Who moves memory, millisecond by millisecond' \
		"Version: $$(cat VERSION)" 'Libs: -L$${libdir} -lmemwatch' \
		'Requires.private: libbpf libzstd zlib' 'Cflags: -I$${includedir}' >$@

# The whole library under the sanitizers, once for all tests.
$(BUILD)/lib/asan/%.o: lib/src/%.c $(BPF_SKELS)
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(LIB_SANITIZE) -c -o $@ $<

$(BUILD)/lib/asan/libmemwatch.a: $(LIB_SRC:lib/src/%.c=$(BUILD)/lib/asan/%.o)
	rm -f $@
	$(AR) qcs $@ $^

$(BUILD)/lib/tests/%: lib/tests/%.c $(BUILD)/lib/asan/libmemwatch.a
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -Iselftests $(LIB_SANITIZE) -o $@ $< $(BUILD)/lib/asan/libmemwatch.a $(LIB_LIBS)

# The corpus as a plain test; "make fuzz-lib" looks for more.
$(BUILD)/lib/fuzz/%: lib/fuzz/%.c lib/fuzz/fuzz.h $(BUILD)/lib/asan/libmemwatch.a
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -DMW_FUZZ_MAIN $(LIB_SANITIZE) -o $@ $< $(BUILD)/lib/asan/libmemwatch.a \
		$(LIB_LIBS)

$(BUILD)/lib/fuzzer/%: lib/fuzz/%.c lib/fuzz/fuzz.h $(LIB_SRC) $(BPF_SKELS)
	@mkdir -p $(@D)
	$(CLANG) $(filter-out -MMD -MP,$(LIB_CFLAGS)) -g -O1 -fsanitize=fuzzer,address,undefined \
		-o $@ $< $(LIB_SRC) $(LIB_LIBS)

# Part of "lib": "make bench" builds "all" and then only measures.
LIB_BENCHES := $(addprefix $(BUILD)/lib/bench/,merge-bench recorder growth-bench growth-cost)
bench-programs: $(LIB_BENCHES)

$(BUILD)/lib/bench/%: selftests/bench/%.c $(BUILD)/lib/libmemwatch.a
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(CFLAGS) -o $@ $< $(BUILD)/lib/libmemwatch.a $(LIB_LIBS)

lib-tests: $(LIB_TESTS) $(LIB_FUZZ)

check-lib: lib-tests ## Unit tests of the library under ASan and UBSan, and the fuzz corpus
	@lib/tests/run

FUZZ_SECONDS ?= 60

fuzz-lib: $(patsubst lib/fuzz/%.c,$(BUILD)/lib/fuzzer/%,$(wildcard lib/fuzz/fuzz-*.c)) ## Fuzz every parser for FUZZ_SECONDS (60)
	@for f in $^; do \
		name=$${f##*/fuzz-}; \
		mkdir -p $(BUILD)/lib/corpus/$$name; \
		$$f -max_total_time=$(FUZZ_SECONDS) $(BUILD)/lib/corpus/$$name lib/fuzz/corpus/$$name || exit 1; \
	done

install-lib: lib
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include/memwatch \
		$(DESTDIR)$(PREFIX)/include/linux
	install -m 755 $(LIB_SO) $(DESTDIR)$(LIBDIR)/libmemwatch.so.0
	ln -sf libmemwatch.so.0 $(DESTDIR)$(LIBDIR)/libmemwatch.so
	install -m 644 $(BUILD)/lib/libmemwatch.a $(DESTDIR)$(LIBDIR)/
	install -m 644 $(BUILD)/lib/libmemwatch.pc $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 lib/include/memwatch/*.h $(DESTDIR)$(PREFIX)/include/memwatch/
	install -m 644 kmod/uapi/linux/memwatch.h $(DESTDIR)$(PREFIX)/include/linux/

-include $(LIB_OBJ:.o=.d) $(LIB_SRC:lib/src/%.c=$(BUILD)/lib/asan/%.d) $(wildcard $(BUILD)/lib/tests/*.d)
