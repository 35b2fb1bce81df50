# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Test programs of the module. Included by the Makefile of the root.

SELFTESTS_BIN := $(BUILD)/selftests
SELFTESTS_CC ?= $(CC)
# Static, because the virtual machines have no C library.
SELFTESTS_CFLAGS := -O2 -g -Wall -Wextra -Werror -static -pthread -Ikmod/uapi -Iselftests -MMD -MP
SELFTESTS_SANITIZE := -g -O1 -Wall -Wextra -Werror -Ikmod/uapi -Iselftests \
	-fsanitize=address,undefined -fno-sanitize-recover=all

.PHONY: identity-programs stress-programs bench-programs
.PHONY: check-model check-identity check-identity-full check-mutants check-uapi check-stress

identity-programs: $(addprefix $(SELFTESTS_BIN)/,storm tiny tracecap mwctl mwproc attack herd \
	shares nlnotices datagrams memload cost-test backlog-test rmid-test rdt-test rdt-plan-test \
	rdt-assign-test rdt-load)

stress-programs: identity-programs $(addprefix $(SELFTESTS_BIN)/,ioctl-fuzz proc-fuzz)

bench-programs: $(addprefix $(SELFTESTS_BIN)/,crowd fork-storm yield)

define selftest_program
$(call msg,CCLD,$@)
$(Q)mkdir -p $(@D)
$(Q)$(SELFTESTS_CC) $(SELFTESTS_CFLAGS) -o $@ $<
endef

$(SELFTESTS_BIN)/%: selftests/kmod/%.c
	$(selftest_program)

$(SELFTESTS_BIN)/%: selftests/rdt/%.c
	$(selftest_program)

$(SELFTESTS_BIN)/%: selftests/stress/%.c
	$(selftest_program)

$(SELFTESTS_BIN)/%: selftests/bench/%.c
	$(selftest_program)

# A program of several files has a folder of its name, with main.c; objects are linked.
$(SELFTESTS_BIN)/%.o: selftests/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(SELFTESTS_CC) $(SELFTESTS_CFLAGS) -c -o $@ $<

define folder_program
$(SELFTESTS_BIN)/$(notdir $(1)): \
		$(patsubst selftests/%.c,$(SELFTESTS_BIN)/%.o,$(wildcard $(1)/*.c))
	$$(call msg,LD,$$@)
	$$(Q)$$(SELFTESTS_CC) $$(SELFTESTS_CFLAGS) -o $$@ $$(filter %.o,$$^)
endef

SELFTESTS_MAINS := $(wildcard $(patsubst %,selftests/%/*/main.c,kmod rdt stress bench))
$(foreach main,$(SELFTESTS_MAINS),$(eval $(call folder_program,$(patsubst %/main.c,%,$(main)))))

# As small as a program can be: the storm executes it thousands of times.
$(SELFTESTS_BIN)/tiny: selftests/kmod/tiny.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(SELFTESTS_CC) -Os -Wall -Wextra -Werror -static -nostdlib -fno-stack-protector \
		-fno-asynchronous-unwind-tables -Wl,--build-id=none,-z,noseparate-code -o $@ $<

# Sources of the module that are compiled for user space, with a test each.
$(SELFTESTS_BIN)/cost-test: $(addprefix kmod/,cost.c cost.h) \
	selftests/kmod/cost-test.c selftests/tap.h
$(SELFTESTS_BIN)/backlog-test: $(addprefix kmod/,backlog.c backlog.h) \
	selftests/kmod/backlog-test.c selftests/tap.h selftests/prng.h kmod/uapi/linux/memwatch.h
$(SELFTESTS_BIN)/rmid-test: $(addprefix kmod/,rmid.c rmid.h) \
	selftests/kmod/rmid-test.c selftests/tap.h selftests/prng.h
$(SELFTESTS_BIN)/rdt-test: $(addprefix kmod/,rdt-count.c rdt-count.h) \
	selftests/kmod/rdt-test.c selftests/tap.h selftests/prng.h kmod/uapi/linux/memwatch.h
$(SELFTESTS_BIN)/rdt-plan-test: $(addprefix kmod/,rdt-plan.c rdt-plan.h) \
	selftests/kmod/rdt-plan-test.c selftests/tap.h selftests/prng.h
$(SELFTESTS_BIN)/rdt-load: $(addprefix kmod/,rdt-plan.c rdt-plan.h) \
	selftests/kmod/rdt-load.c selftests/tap.h selftests/prng.h

$(SELFTESTS_BIN)/rdt-assign-test: $(addprefix kmod/,rdt-assign.c rdt-assign.h rdt-count.c \
	rdt-count.h rdt-plan.h) selftests/kmod/rdt-assign-test.c selftests/tap.h selftests/prng.h \
	kmod/uapi/linux/memwatch.h

$(addprefix $(SELFTESTS_BIN)/,cost-test backlog-test rmid-test rdt-test rdt-plan-test rdt-assign-test):
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(SELFTESTS_CC) $(SELFTESTS_SANITIZE) -o $@ $(filter %.c,$^)

# It includes the source of the module, to see which cache lines that changes.
$(SELFTESTS_BIN)/rdt-load:
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(SELFTESTS_CC) $(SELFTESTS_CFLAGS) -o $@ selftests/kmod/rdt-load.c

##@ Test

check-uapi: ## Check that the UAPI header compiles in every language, with one layout.
	@selftests/uapi/check-uapi

check-model: ## Check that the model of RMID identities finds planted faults.
	@selftests/kmod/model-check-test.py

check-identity: identity-programs ## Compare RMID identities in a VM with the model.
	@selftests/kmod/check-identity

check-identity-full: identity-programs ## Compare them for more than 100 000 process lifetimes.
	@selftests/kmod/check-identity --full

check-mutants: identity-programs ## Check that the model finds modules broken on purpose.
	@selftests/kmod/check-mutants

check-stress: stress-programs ## Fuzz, unload and torture the module in a VM.
	@selftests/stress/check-stress
