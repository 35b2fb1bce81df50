# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Programs for the evidence of the heap profiler, see docs/heap-evaluation.md. Included by the
# Makefile of the root.

HEAP_EVIDENCE_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -D_GNU_SOURCE -I. -Iselftests \
	-fno-builtin -MMD -MP

.PHONY: heap-evidence-programs

heap-evidence-programs: $(addprefix $(SELFTESTS_BIN)/,leak-site.so fork-server agree-work python-embed jit-work)

$(SELFTESTS_BIN)/%: selftests/heap/%.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_EVIDENCE_CFLAGS) -o $@ $<

$(SELFTESTS_BIN)/%: selftests/heap/%.cc
	$(call msg,CXXLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -I. -MMD -MP -o $@ $<

$(SELFTESTS_BIN)/%.so: selftests/heap/%.c
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(HEAP_EVIDENCE_CFLAGS) -fPIC -shared -o $@ $< -lm
