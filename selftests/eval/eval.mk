# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Programs for the evaluation of the leak detectors, see docs/evaluation.md.
# Included by the Makefile of the root.

EVAL_BIN := $(BUILD)/selftests/eval
EVAL_CFLAGS := -O2 -g -Wall -Wextra -Werror -Iselftests -MMD -MP

.PHONY: eval-programs

eval-programs: $(addprefix $(EVAL_BIN)/,record leak group published touch-worker drop-free.so Memory.class)

# The allocator of the system, or one that is preloaded.
$(EVAL_BIN)/touch-worker: selftests/eval/touch/worker.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EVAL_CFLAGS) -o $@ $< -lm

$(EVAL_BIN)/%: selftests/eval/%.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EVAL_CFLAGS) -static -pthread -o $@ $<

$(EVAL_BIN)/drop-free.so: selftests/eval/drop-free.c
	$(call msg,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EVAL_CFLAGS) -shared -fPIC -o $@ $< -ldl

# Without a Java compiler the file is empty, and the evaluation leaves its runs out.
$(EVAL_BIN)/Memory.class: selftests/eval/programs/Memory.java
	$(call msg,JAVAC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)if command -v javac >/dev/null; then javac -d $(@D) $<; fi
