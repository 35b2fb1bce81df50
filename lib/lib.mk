# SPDX-License-Identifier: GPL-2.0-or-later
#
# libmemwatch: the shared and the static library, its tests and fuzz targets.
# Included by the Makefile of the root after bpf/bpf.mk.

LIBDIR	?= $(PREFIX)/lib

LIB_SRC	:= $(wildcard lib/src/*/*.c)
LIB_OBJ	:= $(LIB_SRC:lib/src/%.c=$(BUILD)/lib/%.o)
# The number grows when a program that was built with an earlier library cannot use this one.
LIB_SONAME := libmemwatch.so.1
LIB_SO	:= $(BUILD)/lib/$(LIB_SONAME)
# libbpf, libdw and libnl are loaded when they are needed; see lib/src/base/library.h.
LIB_LIBS := -lzstd -lz -lm -ldl -liberty -lpthread

# Its headers are in a folder of their own. The goals that are left out install what is missing,
# or need no library.
LIBNL_CFLAGS := $(shell pkg-config --cflags libnl-genl-3.0 2>/dev/null)
ifeq ($(LIBNL_CFLAGS),)
ifneq ($(filter-out deps demo check check-matrix check-debug eval help clean,$(or $(MAKECMDGOALS),all)),)
$(warning packages are missing: pkg-config does not find libnl-genl-3.0; "make deps" installs them)
endif
endif

LIB_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-DMEMWATCH_VERSION_STRING='"$(VERSION)"' -Ilib/include -Ilib/src \
	-Ikmod/uapi -I. -I$(BUILD)/bpf $(LIBNL_CFLAGS) -MMD -MP

LIB_SANITIZE := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
LIB_UBSAN := -g -O1 -fsanitize=undefined -fno-sanitize-recover=all

LIB_TESTS := $(patsubst lib/tests/%.c,$(BUILD)/lib/tests/%,$(wildcard lib/tests/test-*.c))
LIB_FUZZ_SRC := $(wildcard lib/fuzz/fuzz-*.c)
LIB_FUZZ  := $(LIB_FUZZ_SRC:lib/fuzz/%.c=$(BUILD)/lib/fuzz/%)

.PHONY: lib lib-tests check-lib install-lib bench-programs

lib: $(LIB_SO) $(BUILD)/lib/libmemwatch.a

# lib_variant DIR FLAGS COMPILER: rules for the objects and the static library of one
# variant. All symbols of a static library are visible, because the version script
# hides them only in the shared one; the tests use internal functions.
define lib_variant
$(1)/%.o: lib/src/%.c VERSION Makefile | $$(BPF_SKELS)
	$$(call msg,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$(or $(3),$$(CC)) $$(LIB_CFLAGS) $(2) -c -o $$@ $$<

$(1)/libmemwatch.a: $$(LIB_SRC:lib/src/%.c=$(1)/%.o)
	$$(call msg,AR,$$@)
	$$(Q)rm -f $$@
	$$(Q)$$(AR) qcs $$@ $$^
endef

# The plain variant is what is installed, and what programs in the lab's guests link.
$(eval $(call lib_variant,$(BUILD)/lib,$$(HARDEN_CFLAGS) $$(CPPFLAGS) $$(CFLAGS) -fPIC))
$(eval $(call lib_variant,$(BUILD)/lib/asan,$$(LIB_SANITIZE)))
$(eval $(call lib_variant,$(BUILD)/lib/ubsan,$$(LIB_UBSAN)))

$(LIB_SO): $(LIB_OBJ) lib/libmemwatch.map Makefile
	$(call msg,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(LIB_SONAME) \
		-Wl,--version-script,lib/libmemwatch.map -Wl,-z,defs \
		-o $@ $(LIB_OBJ) $(LIB_LIBS)
	$(Q)ln -sf $(LIB_SONAME) $(BUILD)/lib/libmemwatch.so

$(BUILD)/lib/tests/%: lib/tests/%.c $(BUILD)/lib/asan/libmemwatch.a
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) -Wno-unused-result -Iselftests $(LIB_SANITIZE) -o $@ $(wildcard $(filter lib/tests/%.c,$^)) \
		$(BUILD)/lib/asan/libmemwatch.a $(LIB_LIBS)

# These programs run each file of the corpus once; "make fuzz" searches for new inputs.
$(BUILD)/lib/fuzz/%: lib/fuzz/%.c $(BUILD)/lib/asan/libmemwatch.a
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) -DMW_FUZZ_MAIN $(LIB_SANITIZE) -o $@ $< \
		$(BUILD)/lib/asan/libmemwatch.a $(LIB_LIBS)

# The benchmarks of the library link the plain variant.
bench-programs: $(addprefix $(BUILD)/lib/bench/,merge-bench recorder collector growth-bench growth-cost \
	stale-bench touch-bench)

$(BUILD)/lib/bench/%: selftests/bench/%.c $(BUILD)/lib/libmemwatch.a
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) -Iselftests $(CFLAGS) -o $@ $< $(BUILD)/lib/libmemwatch.a -lbpf $(LIB_LIBS)

$(BUILD)/lib/bench/%: selftests/bench/%.cc $(BUILD)/lib/libmemwatch.a
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 -Wall -Wextra $(filter-out -std=%,$(LIB_CFLAGS)) -Iselftests $(CFLAGS) -o $@ $< \
		$(BUILD)/lib/libmemwatch.a $(LIB_LIBS)

lib-tests: $(LIB_TESTS) $(LIB_FUZZ)

##@ Test

check-lib: lib-tests ## Run the unit tests and the fuzz corpus of the library under sanitizers.
	@lib/tests/run

# Written when it is installed: only then the prefix is known.
PC_FILE	 = $(DESTDIR)$(LIBDIR)/pkgconfig/libmemwatch.pc
PC_LINES = 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$${prefix}/include' '' \
	   'Name: libmemwatch' 'Description: Monitoring of memory traffic and cache by process' \
	   'Version: $(VERSION)' 'Libs: -L$${libdir} -lmemwatch' \
	   'Requires.private: libzstd zlib' 'Libs.private: -liberty -lm -ldl -lpthread' \
	   'Cflags: -I$${includedir}'

# Programs find a new library when ldconfig has seen it.
install-lib: lib
	$(call install,755,$(LIB_SO),$(LIBDIR)/$(LIB_SONAME))
	$(Q)ln -sf $(LIB_SONAME) $(DESTDIR)$(LIBDIR)/libmemwatch.so
	$(call install,644,$(BUILD)/lib/libmemwatch.a,$(LIBDIR)/libmemwatch.a)
	$(call msg,INSTALL,$(PC_FILE))
	$(Q)printf '%s\n' $(PC_LINES) | install -D -m 644 /dev/stdin $(PC_FILE)
	$(foreach h,$(wildcard lib/include/memwatch/*.h),\
		$(call install,644,$(h),$(PREFIX)/include/memwatch/$(notdir $(h))))
	$(call install,644,kmod/uapi/linux/memwatch.h,$(PREFIX)/include/linux/memwatch.h)
	$(if $(DESTDIR),,$(Q)ldconfig 2>/dev/null || true)
