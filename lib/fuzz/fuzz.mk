# SPDX-License-Identifier: GPL-2.0-or-later
#
# The fuzzers: each lib/fuzz/fuzz-NAME.c and cli/fuzz/fuzz-NAME.c becomes
# $(BUILD)/fuzz/NAME, with libFuzzer. Included by the Makefile of the root after cli/cli.mk.

FUZZ_SRC := $(wildcard lib/fuzz/fuzz-*.c cli/fuzz/fuzz-*.c)
FUZZERS	 := $(patsubst fuzz-%.c,$(BUILD)/fuzz/%,$(notdir $(FUZZ_SRC)))

FUZZ_CHECKS := address,undefined
FUZZ_FLAGS := -g -O1 -fsanitize=fuzzer-no-link,$(FUZZ_CHECKS) -fno-sanitize-recover=all
# main() is libFuzzer's. In cli/main.c it is only one more function.
FUZZ_MAIN := -Dmain=mw_main

.PHONY: fuzz fuzzers

# libFuzzer instruments the library and the command too.
$(eval $(call lib_variant,$(BUILD)/fuzz/lib,$$(FUZZ_FLAGS),$$(CLANG)))

FUZZ_CLI := $(CLI_SRC:cli/%.c=$(BUILD)/fuzz/cli/%.o)

$(BUILD)/fuzz/cli/%.o: cli/%.c VERSION Makefile
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CLI_CFLAGS) $(FUZZ_FLAGS) $(FUZZ_MAIN) -c -o $@ $<

define fuzzer
$(call msg,FUZZ,$@)
$(Q)mkdir -p $(@D)
$(Q)$(CLANG) -g -O1 -fsanitize=fuzzer,$(FUZZ_CHECKS) -fno-sanitize-recover=all \
	-MF $@.d -MT $@ $(1) -o $@ $< $(filter %.o,$^) $(BUILD)/fuzz/lib/libmemwatch.a $(LIB_LIBS)
endef

$(BUILD)/fuzz/%: lib/fuzz/fuzz-%.c $(BUILD)/fuzz/lib/libmemwatch.a
	$(call fuzzer,$(LIB_CFLAGS))

$(BUILD)/fuzz/%: cli/fuzz/fuzz-%.c $(FUZZ_CLI) $(BUILD)/fuzz/lib/libmemwatch.a
	$(call fuzzer,$(CLI_CFLAGS) -Ilib/fuzz) $(CLI_LIBS)

fuzzers: $(FUZZERS)

##@ Test

fuzz: ## Search for inputs that break a parser or the command (FUZZ_TIME=, FUZZ_TARGETS=).
	@lib/fuzz/run
