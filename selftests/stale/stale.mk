# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Programs that test the detection of stale objects against something that we did not write, and
# the tool for valgrind that records programs. Included by the Makefile of the root.

.PHONY: stale-programs stale-tool eval-stale

STALE_CASES := $(patsubst selftests/stale/%.c,$(SELFTESTS_BIN)/stale/%,\
	$(wildcard selftests/stale/case-*.c))

stale-programs: $(addprefix $(SELFTESTS_BIN)/stale/,fences leak-work) $(STALE_CASES)

$(SELFTESTS_BIN)/stale/%: selftests/stale/%.c $(BUILD)/lib/libmemwatch.a
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) -Iselftests $(CFLAGS) -o $@ $< $(BUILD)/lib/libmemwatch.a $(LIB_LIBS)

# A program that is traced needs nothing of ours. The addresses that valgrind sees in it are those of
# the file.
$(SELFTESTS_BIN)/stale/leak-work $(STALE_CASES): $(SELFTESTS_BIN)/stale/%: selftests/stale/%.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -fno-builtin -no-pie -pthread -o $@ $<

# The tool is linked as valgrind links its own. The option VALGRIND_LIB of the environment names
# the folder, which also has what valgrind needs beside a tool.
VALGRIND_LIBS := $(dir $(firstword $(wildcard /usr/lib/*/valgrind/libcoregrind-amd64-linux.a)))
VALGRIND_TOOL := $(SELFTESTS_BIN)/stale/valgrind
VALGRIND_CFLAGS := -std=gnu99 -O2 -g -Wall -Wextra -fno-stack-protector -fno-strict-aliasing \
	-fno-builtin -fno-pie -DVGA_amd64=1 -DVGO_linux=1 -DVGP_amd64_linux=1 \
	-DVGPV_amd64_linux_vanilla=1 -isystem /usr/include/valgrind

# Where valgrind's libraries are installed, the case studies use the tool, too.
ifneq ($(VALGRIND_LIBS),)
stale-programs: stale-tool
endif

stale-tool: $(addprefix $(VALGRIND_TOOL)/,mwtrace-amd64-linux vgpreload_mwtrace-amd64-linux.so \
	vgpreload_core-amd64-linux.so default.supp)

$(VALGRIND_TOOL)/mwtrace-amd64-linux: selftests/stale/trace-tool.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(VALGRIND_CFLAGS) -c -o $@.o $<
	$(Q)$(CC) -no-pie -static -nodefaultlibs -nostartfiles -u _start \
		-Wl,-Ttext-segment=0x58000000 -Wl,--build-id=none -o $@ $@.o \
		$(addprefix $(VALGRIND_LIBS),libcoregrind-amd64-linux.a libvex-amd64-linux.a \
		libgcc-sup-amd64-linux.a) -lgcc

$(VALGRIND_TOOL)/vgpreload_mwtrace-amd64-linux.so:
	$(call msg,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -nodefaultlibs -fpic -Wl,-z,interpose -Wl,-z,initfirst -o $@ \
		-Wl,--whole-archive $(VALGRIND_LIBS)libreplacemalloc_toolpreload-amd64-linux.a \
		-Wl,--no-whole-archive

$(VALGRIND_TOOL)/vgpreload_core-amd64-linux.so $(VALGRIND_TOOL)/default.supp:
	$(Q)mkdir -p $(@D)
	$(Q)cp /usr/libexec/valgrind/$(@F) $@

eval-stale: stale-tool all ## Plant leaks in traces of real programs and count what "stale" finds.
	@selftests/stale/evaluate --plot docs/stale-evaluation.svg
