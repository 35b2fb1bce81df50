# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the BPF programs and of the library's code that loads them. Included
# by the Makefile of the root after lib/lib.mk.

BPF_TEST_BIN := $(BUILD)/selftests/bpf
BPF_TEST_FLAGS := $(LIB_CFLAGS) -Werror -Iselftests
# Programs for the lab's guests are built without sanitizers, because the
# emulator makes each instruction expensive.
BPF_PLAIN_FLAGS := -g -O2

# $(call bpf_test,FLAGS) compiles a test from its prerequisites, and links the library
# variant among them, if there is one.
bpf_test = $(CC) $(BPF_TEST_FLAGS) $(1) -o $@ $(wildcard $(filter %.c,$^)) $(filter %.a,$^) \
	-lbpf $(LIB_LIBS) -lpthread

.PHONY: bpf-tests check-bpf-math check-bpf-native check-bpf-lab

bpf-tests: $(addprefix $(BPF_TEST_BIN)/,test_relay_math test_relay_native test_relay_rings \
	test_growth test_growth_hostile test_growth_cgroups plain/test_relay_native plain/test_relay_module plain/test_live \
	plain/test_scheduler test_touch plain/test_touch test_stacks plain/test_stacks \
	plain/test_growth plain/test_growth_hostile plain/test_growth_cgroups \
	plain/test_growth_machine)

$(BPF_TEST_BIN)/test_relay_rings: $(BUILD)/lib/asan/libmemwatch.a

# Not under ASan: the test measures the memory of its children.
BPF_GROWTH_TESTS := $(addprefix $(BPF_TEST_BIN)/,test_growth test_growth_hostile \
	test_growth_cgroups test_touch test_stacks)
$(BPF_GROWTH_TESTS): $(BUILD)/lib/ubsan/libmemwatch.a
$(BPF_GROWTH_TESTS): BPF_SANITIZE := $(LIB_UBSAN)

$(addprefix $(BPF_TEST_BIN)/plain/,test_live test_scheduler test_growth test_growth_hostile \
	test_growth_cgroups test_growth_machine test_touch test_stacks): \
	$(BUILD)/lib/libmemwatch.a

$(BPF_TEST_BIN)/%: BPF_SANITIZE ?= $(LIB_SANITIZE)

$(BPF_TEST_BIN)/plain/%: selftests/bpf/%.c | $(BPF_SKELS)
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(call bpf_test,$(BPF_PLAIN_FLAGS))

$(BPF_TEST_BIN)/%: selftests/bpf/%.c | $(BPF_SKELS)
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(call bpf_test,$(BPF_SANITIZE))

##@ Test

check-bpf-math: $(BPF_TEST_BIN)/test_relay_math ## Test the arithmetic of the relay.
	@$<

# A kernel with BPF is enough; the module is not needed.
BPF_NATIVE_TESTS := $(addprefix $(BPF_TEST_BIN)/,test_relay_native test_relay_rings test_growth \
	test_growth_hostile test_growth_cgroups test_touch test_stacks)

check-bpf-native: $(BPF_NATIVE_TESTS) ## Test the BPF programs on this machine's kernel (root).
	@set -e; for test in $^; do $$test; done

KERNEL ?= $(shell selftests/lab/kernel names default)
BPF_LAB_TESTS := test_relay_native test_relay_module test_scheduler test_live

BPF_LAB_PROGRAMS := $(BPF_LAB_TESTS:%=$(BPF_TEST_BIN)/plain/%)

check-bpf-lab: $(BPF_LAB_PROGRAMS) ## Test the relay in a VM with one kernel (KERNEL=NAME).
	@set -e; for test in $^; do \
		selftests/lab/run --kernel $(KERNEL) --files $$test -- ./$${test##*/}; \
	done
