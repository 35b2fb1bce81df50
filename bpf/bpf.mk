# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the BPF objects and their skeletons into $(BUILD)/bpf. Included by the
# Makefile of the root; all paths are relative to it.

BPFTOOL ?= $(or $(shell command -v bpftool 2>/dev/null),/usr/sbin/bpftool)

# v2 is understood by every kernel of the matrix and does not make the
# verifier of 5.10 follow 32-bit halves of registers.
BPF_CFLAGS ?= -g -O2 -Wall -Wextra -Werror
BPF_FLAGS   = -target bpf -mcpu=v2 -std=gnu11 -Ibpf/include -Ikmod/uapi -Ibpf
BPF_SKELS   = $(BUILD)/bpf/relay.skel.h $(BUILD)/bpf/scheduler.skel.h \
	      $(BUILD)/bpf/growth.skel.h $(BUILD)/bpf/groups.skel.h \
	      $(BUILD)/bpf/touch.skel.h $(BUILD)/bpf/where.skel.h

bpf: $(BPF_SKELS)

$(BUILD)/bpf/%.tmp.o: bpf/%.bpf.c
	$(call msg,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_FLAGS) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@

# bpftool drops the debug information that is not BTF.
$(BUILD)/bpf/%.bpf.o: $(BUILD)/bpf/%.tmp.o
	$(call msg,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $<

# bpftool writes into a temporary file, so that no partial header is left when it fails.
$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp
	$(Q)mv $@.tmp $@

.PHONY: bpf
.PRECIOUS: $(BUILD)/bpf/%.tmp.o $(BUILD)/bpf/%.bpf.o
