# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# What the evaluation of the leak detectors needs: see docs/evaluation.md.

BUILD ?= build
EVAL_BIN := $(BUILD)/selftests/eval
EVAL_CFLAGS := -O2 -g -Wall -Wextra -Werror

.PHONY: eval-programs

eval-programs: $(addprefix $(EVAL_BIN)/,record leak published drop-free.so Memory.class)

$(EVAL_BIN)/%: selftests/eval/%.c
	@mkdir -p $(@D)
	$(CC) $(EVAL_CFLAGS) -static -pthread -o $@ $<

$(EVAL_BIN)/drop-free.so: selftests/eval/drop-free.c
	@mkdir -p $(@D)
	$(CC) $(EVAL_CFLAGS) -shared -fPIC -o $@ $< -ldl

# Without a compiler for Java, its runs are left out.
$(EVAL_BIN)/Memory.class: selftests/eval/programs/Memory.java
	@mkdir -p $(@D)
	if command -v javac >/dev/null; then javac -d $(@D) $<; fi
