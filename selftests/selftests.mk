# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Tests of the module: included by the Makefile, and usable alone from the top
# of the tree with make -f selftests/selftests.mk.

BUILD ?= build
SELFTESTS_BIN := $(BUILD)/selftests
SELFTESTS_CC ?= $(CC)
# Static: the virtual machine has no C library.
SELFTESTS_CFLAGS := -O2 -g -Wall -Wextra -Werror -static -Ikmod/uapi -Iselftests

.PHONY: identity-programs stress-programs bench-programs
.PHONY: check-model check-identity check-identity-full check-mutants check-uapi check-stress

stress-programs: identity-programs $(addprefix $(SELFTESTS_BIN)/,ioctl-fuzz proc-fuzz)

identity-programs: $(addprefix $(SELFTESTS_BIN)/,storm tiny tracecap mwctl mwproc rmid-test rdt-test memload)

bench-programs: $(addprefix $(SELFTESTS_BIN)/,crowd yield)

$(SELFTESTS_BIN)/tiny: selftests/kmod/tiny.c
	@mkdir -p $(@D)
	$(SELFTESTS_CC) -Os -Wall -Wextra -Werror -static -nostdlib -fno-stack-protector \
		-fno-asynchronous-unwind-tables -Wl,--build-id=none,-z,noseparate-code -o $@ $<

$(SELFTESTS_BIN)/%: selftests/kmod/%.c selftests/tap.h kmod/uapi/linux/memwatch.h
	@mkdir -p $(@D)
	$(SELFTESTS_CC) $(SELFTESTS_CFLAGS) -o $@ $<

$(SELFTESTS_BIN)/%: selftests/rdt/%.c
	@mkdir -p $(@D)
	$(SELFTESTS_CC) $(SELFTESTS_CFLAGS) -pthread -o $@ $<

$(SELFTESTS_BIN)/%: selftests/stress/%.c selftests/tap.h kmod/uapi/linux/memwatch.h
	@mkdir -p $(@D)
	$(SELFTESTS_CC) $(SELFTESTS_CFLAGS) -o $@ $<

$(SELFTESTS_BIN)/%: selftests/bench/%.c
	@mkdir -p $(@D)
	$(SELFTESTS_CC) $(SELFTESTS_CFLAGS) -pthread -o $@ $<

# The module's own pool, compiled for user space.
$(SELFTESTS_BIN)/rmid-test: selftests/kmod/rmid-test.c kmod/rmid.c kmod/rmid.h selftests/tap.h
	@mkdir -p $(@D)
	$(SELFTESTS_CC) -g -O1 -Wall -Wextra -Werror -fsanitize=address,undefined \
		-fno-sanitize-recover=all -o $@ selftests/kmod/rmid-test.c kmod/rmid.c

# Its arithmetic of RDT counters and its plan of readings, likewise.
$(SELFTESTS_BIN)/rdt-test: selftests/kmod/rdt-test.c kmod/rdt-count.c kmod/rdt-count.h \
		kmod/rdt-plan.c kmod/rdt-plan.h selftests/tap.h
	@mkdir -p $(@D)
	$(SELFTESTS_CC) -g -O1 -Wall -Wextra -Werror -Ikmod/uapi -fsanitize=address,undefined \
		-fno-sanitize-recover=all -o $@ selftests/kmod/rdt-test.c kmod/rdt-count.c kmod/rdt-plan.c

# Is the oracle itself able to fail?
check-model:
	selftests/kmod/model-check-test.py

check-identity: identity-programs
	selftests/kmod/check-identity

check-identity-full: identity-programs
	selftests/kmod/check-identity --full

# Are the oracle and the lab able to fail on the real module?
check-mutants: identity-programs
	selftests/kmod/check-mutants

check-uapi:
	selftests/uapi/check-uapi

check-stress: stress-programs
	selftests/stress/check-stress
