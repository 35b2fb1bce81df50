# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the relay. Included by the Makefile of the root after bpf/bpf.mk.

BUILD ?= build
BPF_TEST_CFLAGS ?= -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
BPF_TEST_FLAGS   = -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Ikmod/uapi -I$(BUILD)/bpf
BPF_MATH_DEPS    = bpf/relay.h selftests/tap.h kmod/uapi/linux/memwatch.h
# Both skeletons, also for a test of one: the library's live backend includes both.
BPF_TEST_DEPS    = $(BPF_MATH_DEPS) $(BPF_SKELS)

$(BUILD)/selftests/bpf:
	mkdir -p $@

$(BUILD)/selftests/bpf/test_relay_math: selftests/bpf/test_relay_math.c $(BPF_MATH_DEPS) \
		| $(BUILD)/selftests/bpf
	$(CC) $(BPF_TEST_FLAGS) $(BPF_TEST_CFLAGS) $< -o $@

$(BUILD)/selftests/bpf/test_relay_native: selftests/bpf/test_relay_native.c \
		selftests/bpf/rig.h $(BPF_TEST_DEPS) \
		| $(BUILD)/selftests/bpf
	$(CC) $(BPF_TEST_FLAGS) $(BPF_TEST_CFLAGS) $< -o $@ -lbpf

# The library's sources, so that they are under the sanitizers too.
BPF_TEST_LIB = $(wildcard lib/src/base/*.c lib/src/merge/*.c) $(addprefix lib/src/loader/,relay.c rings.c log.c)

$(BUILD)/selftests/bpf/test_relay_rings: selftests/bpf/test_relay_rings.c $(BPF_TEST_LIB) \
		$(wildcard lib/src/*/*.h) $(BPF_TEST_DEPS) \
		| $(BUILD)/selftests/bpf
	$(CC) $(BPF_TEST_FLAGS) -Ilib/include -Ilib/src -I. $(BPF_TEST_CFLAGS) $< $(BPF_TEST_LIB) -o $@ -lbpf

# Without sanitizers: for the lab's guests, where an instruction costs more.
$(BUILD)/selftests/bpf/plain:
	mkdir -p $@

$(BUILD)/selftests/bpf/plain/test_relay_%: selftests/bpf/test_relay_%.c \
		selftests/bpf/rig.h $(BPF_TEST_DEPS) \
		| $(BUILD)/selftests/bpf/plain
	$(CC) $(BPF_TEST_FLAGS) -g -O2 $< -o $@ -lbpf

$(BUILD)/selftests/bpf/plain/test_live: selftests/bpf/test_live.c \
		$(filter-out lib/src/stream/live-none.c,$(wildcard lib/src/*/*.c)) $(wildcard lib/src/*/*.h) \
		$(BPF_TEST_DEPS) | $(BUILD)/selftests/bpf/plain
	$(CC) $(BPF_TEST_FLAGS) -Ilib/include -Ilib/src -I. -g -O2 $(filter %.c,$^) -o $@ -lbpf -lzstd -lz -lm

# The library's sources: under UBSan, and without it for the lab. Not under ASan: the
# children's memory is what is measured.
GROWTH_TEST_DEPS = $(filter-out lib/src/stream/live-none.c,$(wildcard lib/src/*/*.c)) \
	$(wildcard lib/src/*/*.h lib/include/memwatch/*.h bpf/growth*.h) \
	selftests/bpf/growth-rig.h $(BPF_TEST_DEPS)

$(BUILD)/selftests/bpf/test_growth: selftests/bpf/test_growth.c $(GROWTH_TEST_DEPS) \
		| $(BUILD)/selftests/bpf
	$(CC) $(BPF_TEST_FLAGS) -Ilib/include -Ilib/src -I. -g -O1 -fsanitize=undefined \
		-fno-sanitize-recover=undefined $(filter %.c,$^) -o $@ -lbpf -lzstd -lz -lm -lpthread

$(addprefix $(BUILD)/selftests/bpf/plain/,test_growth test_growth_machine): \
		$(BUILD)/selftests/bpf/plain/%: selftests/bpf/%.c $(GROWTH_TEST_DEPS) \
		| $(BUILD)/selftests/bpf/plain
	$(CC) $(BPF_TEST_FLAGS) -Ilib/include -Ilib/src -I. -g -O2 $(filter %.c,$^) -o $@ \
		-lbpf -lzstd -lz -lm -lpthread

.PHONY: bpf-tests
bpf-tests: $(addprefix $(BUILD)/selftests/bpf/,test_relay_math test_relay_native \
	test_relay_rings plain/test_relay_native plain/test_relay_module plain/test_live \
	test_growth plain/test_growth plain/test_growth_machine)

# Needs nothing.
check-bpf-math: $(BUILD)/selftests/bpf/test_relay_math
	$<

# Needs root and BPF, not the module.
check-bpf-native: $(addprefix $(BUILD)/selftests/bpf/,test_relay_native test_relay_rings test_growth)
	$(BUILD)/selftests/bpf/test_relay_native
	$(BUILD)/selftests/bpf/test_relay_rings
	$(BUILD)/selftests/bpf/test_growth

# Needs the lab. One kernel of its matrix.
KERNEL ?= 6.1
BPF_LAB_TESTS = test_relay_native test_relay_module test_live

check-bpf-lab: $(BPF_LAB_TESTS:%=$(BUILD)/selftests/bpf/plain/%)
	set -e; for test in $(BPF_LAB_TESTS); do \
		selftests/lab/run --kernel $(KERNEL) --files $(BUILD)/selftests/bpf/plain/$$test \
			-- ./$$test; \
	done

.PHONY: check-bpf-math check-bpf-native check-bpf-lab
