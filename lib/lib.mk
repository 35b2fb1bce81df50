# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds libmemwatch into $(BUILD)/lib: shared, static, and once more with
# sanitizers for its tests. Included by the Makefile of the root; all paths are
# relative to it.

BUILD      ?= build
PREFIX     ?= /usr/local
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DESTDIR    ?=
VERSION    ?= $(shell cat VERSION)
CC         ?= gcc
CLANG      ?= clang
AR         ?= ar
CFLAGS     ?= -O2 -g
INSTALL    ?= install
PKG_CONFIG ?= pkg-config

LIB_OUT      = $(BUILD)/lib
LIB_SONAME   = libmemwatch.so.0
LIB_WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
LIB_CPPFLAGS = -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DMEMWATCH_VERSION_STRING='"$(VERSION)"' \
	       -Ikmod/uapi -Ilib/include -Ilib/src -Ibpf -I. -I$(BUILD)/bpf
LIB_CFLAGS   = -std=gnu11 $(LIB_WARNINGS) $(LIB_CPPFLAGS)
LIB_LIBS    ?= $(shell $(PKG_CONFIG) --libs libbpf libzstd 2>/dev/null || echo -lbpf -lzstd)
LIB_SANITIZE = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	       -fno-sanitize-recover=undefined

# Without the relay there is no live measurement, and everything else works.
LIB_LIVE    ?= $(if $(wildcard lib/src/live.c),yes,no)
LIB_SOURCES := $(filter-out lib/src/live%.c,$(wildcard lib/src/*.c)) \
	       $(if $(filter yes,$(LIB_LIVE)),$(filter-out lib/src/live-none.c,$(wildcard lib/src/live*.c)),lib/src/live-none.c)
LIB_HEADERS := $(wildcard lib/include/memwatch/*.h)

LIB_PIC     := $(LIB_SOURCES:lib/src/%.c=$(LIB_OUT)/pic/%.o)
LIB_PLAIN   := $(LIB_SOURCES:lib/src/%.c=$(LIB_OUT)/obj/%.o)
LIB_SAN     := $(LIB_SOURCES:lib/src/%.c=$(LIB_OUT)/san/%.o)
LIB_SHARED  = $(LIB_OUT)/$(LIB_SONAME)
LIB_STATIC  = $(LIB_OUT)/libmemwatch.a

LIB_TESTS   := $(patsubst lib/tests/%.c,$(LIB_OUT)/tests/%,$(wildcard lib/tests/test-*.c))
LIB_FUZZ    := $(patsubst lib/fuzz/%.c,%,$(wildcard lib/fuzz/fuzz-*.c))
LIB_CORPUS  := $(LIB_FUZZ:%=$(LIB_OUT)/fuzz/%)
LIB_FUZZERS := $(LIB_FUZZ:%=$(LIB_OUT)/fuzz/%-libfuzzer)

.PHONY: lib tests-lib check-lib fuzz-lib bench-lib install-lib

lib: $(LIB_SHARED) $(LIB_OUT)/libmemwatch.so $(LIB_STATIC) $(LIB_OUT)/libmemwatch.pc

# Only live.c looks into the skeleton, but which file does is its own business.
ifeq ($(LIB_LIVE),yes)
$(LIB_PIC) $(LIB_PLAIN) $(LIB_SAN): | $(BUILD)/bpf/relay.skel.h
endif

$(LIB_OUT)/pic/%.o: lib/src/%.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@

$(LIB_OUT)/obj/%.o: lib/src/%.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(LIB_OUT)/san/%.o: lib/src/%.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(LIB_SANITIZE) -MMD -MP -c $< -o $@

$(LIB_SHARED): $(LIB_PIC) lib/libmemwatch.map
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(LIB_SONAME) -Wl,-z,defs \
		-Wl,--version-script=lib/libmemwatch.map -o $@ $(LIB_PIC) $(LIB_LIBS)

$(LIB_OUT)/libmemwatch.so: $(LIB_SHARED)
	ln -sf $(LIB_SONAME) $@

$(LIB_STATIC): $(LIB_PLAIN)
	rm -f $@
	$(AR) rcs $@ $(LIB_PLAIN)

$(LIB_OUT)/libmemwatch.pc: lib/libmemwatch.pc.in VERSION
	@mkdir -p $(@D)
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

# ---------------------------------------------------------------- tests

tests-lib: $(LIB_TESTS) $(LIB_CORPUS) ## Build the library's tests

$(LIB_OUT)/tests/%: lib/tests/%.c lib/tests/tap.h lib/tests/feed.h $(LIB_SAN)
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(LIB_SANITIZE) -Ilib/tests -o $@ $< $(LIB_SAN) $(LIB_LIBS)

# The fuzz target with a main that runs files: the corpus as a test.
$(LIB_OUT)/fuzz/%: lib/fuzz/%.c lib/fuzz/standalone.c $(LIB_SAN)
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(LIB_SANITIZE) -o $@ $< lib/fuzz/standalone.c $(LIB_SAN) $(LIB_LIBS)

check-lib: tests-lib lib ## Run the library's tests (TAP)
	@lib/tests/run $(LIB_OUT)

# ------------------------------------------------------------------ fuzz

FUZZ_SECONDS ?= 60

$(LIB_OUT)/fuzz/%-libfuzzer: lib/fuzz/%.c $(LIB_SOURCES) $(wildcard lib/src/*.h)
	@mkdir -p $(@D)
	$(CLANG) $(LIB_CFLAGS) -O1 -g -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $< $(LIB_SOURCES) $(LIB_LIBS)

fuzz-lib: $(LIB_FUZZERS) ## Fuzz the library, FUZZ_SECONDS for each target
	@for f in $(LIB_FUZZ); do \
		mkdir -p $(LIB_OUT)/fuzz/found/$$f && \
		$(LIB_OUT)/fuzz/$$f-libfuzzer -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-artifact_prefix=$(LIB_OUT)/fuzz/found/$$f- \
			$(LIB_OUT)/fuzz/found/$$f lib/fuzz/corpus/$$f || exit 1; \
	done

# ----------------------------------------------------------------- bench

LIB_BENCHES = $(LIB_OUT)/bench/merge-bench $(LIB_OUT)/bench/recorder-bench

bench-lib: $(LIB_BENCHES) ## Measure the library's budgets
	@for b in $(LIB_BENCHES); do $$b || exit 1; done

$(LIB_OUT)/bench/%: selftests/bench/%.c $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(CFLAGS) -o $@ $< $(LIB_STATIC) $(LIB_LIBS)

# --------------------------------------------------------------- install

install-lib: lib
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/memwatch \
		$(DESTDIR)$(INCLUDEDIR)/linux
	$(INSTALL) -m 755 $(LIB_SHARED) $(DESTDIR)$(LIBDIR)/libmemwatch.so.$(VERSION)
	ln -sf libmemwatch.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(LIB_SONAME)
	ln -sf $(LIB_SONAME) $(DESTDIR)$(LIBDIR)/libmemwatch.so
	$(INSTALL) -m 644 $(LIB_STATIC) $(DESTDIR)$(LIBDIR)/libmemwatch.a
	$(INSTALL) -m 644 $(LIB_OUT)/libmemwatch.pc $(DESTDIR)$(LIBDIR)/pkgconfig/libmemwatch.pc
	$(INSTALL) -m 644 $(LIB_HEADERS) $(DESTDIR)$(INCLUDEDIR)/memwatch/
	$(INSTALL) -m 644 kmod/uapi/linux/memwatch.h $(DESTDIR)$(INCLUDEDIR)/linux/memwatch.h

-include $(LIB_PIC:.o=.d) $(LIB_PLAIN:.o=.d) $(LIB_SAN:.o=.d)
