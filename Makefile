# SPDX-License-Identifier: GPL-2.0-or-later
#
# The Makefile for people; the kernel's build reads Kbuild and never sees this
# file. Each folder brings its rules in a fragment (*.mk) that is included below;
# paths in the fragments are relative to this folder. "make help" prints the
# sentences after "##".

BUILD	?= build
PREFIX	?= /usr/local
DESTDIR	?=
VERSION	:= $(shell cat VERSION)

CLANG	?= clang
CFLAGS	?= -O2 -g

# Hardening of what is installed. These options come before CPPFLAGS, CFLAGS and LDFLAGS,
# so that the options of a distribution win; each is used only if the compiler accepts it.
accepts = $(shell $(CC) -Werror $(1) -include features.h -x c -c -o /dev/null /dev/null \
	2>/dev/null && echo '$(1)')
HARDEN_CFLAGS := $(foreach option,-fstack-protector-strong -fstack-clash-protection \
	-fcf-protection,$(call accepts,$(option)))
# The checks of the C library need an optimizing compiler. Some distributions and compilers
# define the macro themselves, and the sanitizers have checks of their own.
OPTIMIZED := $(filter-out -O0,$(lastword $(filter -O%,$(CPPFLAGS) $(CFLAGS))))
OWN_CHECKS := $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS))
OWN_CHECKS += $(findstring -fsanitize,$(CPPFLAGS) $(CFLAGS))
ifneq ($(OPTIMIZED),)
ifeq ($(strip $(OWN_CHECKS)),)
fortify = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(1)
HARDEN_CFLAGS += $(or $(filter-out -O2,$(call accepts,-O2 $(call fortify,3))),$(call fortify,2))
endif
endif
HARDEN_LDFLAGS := -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

# The build prints one short line for each file. "make V=1" prints the commands,
# "make -s" prints nothing. A recipe calls $(call msg,WHAT,FILE) first and begins
# its commands with $(Q).
V ?= 0
export V
ifeq ($(V),1)
Q :=
msg :=
else
Q := @
ifeq ($(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),)
msg = @printf '  %-8s%s\n' '$(1)' '$(2)'
endif
MAKEFLAGS += --no-print-directory
endif

# $(call install,MODE,FILE,TARGET) copies one file below DESTDIR.
define install
$(call msg,INSTALL,$(DESTDIR)$(strip $(3)))
$(Q)install -D -m $(1) $(2) $(DESTDIR)$(strip $(3))

endef

include bpf/bpf.mk
include lib/lib.mk
include cli/cli.mk
include lib/fuzz/fuzz.mk
include heap/heap.mk
include selftests/selftests.mk
include selftests/bpf/bpf-tests.mk
include selftests/eval/eval.mk
include selftests/heap/heap-evidence.mk
include selftests/stale/stale.mk
include selftests/lab/lab.mk
include packaging/packaging.mk

# The compilers write down from which files each target was made. A source that has
# been moved since is still named there, so it gets an empty rule.
DEPENDENCIES := $(shell find $(addprefix $(BUILD)/,bpf lib cli fuzz heap selftests) -name '*.d' 2>/dev/null)
-include $(DEPENDENCIES)
MOVED := $(shell cat /dev/null $(DEPENDENCIES) | grep -oE '[^ ]+\.c\b' | sort -u | \
	while read -r f; do [ -e "$$f" ] || echo "$$f"; done)
$(MOVED): ;

.PHONY: all tests help demo check check-host check-vm check-matrix check-debug bench eval lint \
	abi-update install uninstall clean deps

##@ Start here

help: ## Print this list.
	@awk -F ':.*## ' ' \
		FNR == 1 { group = "Other targets" } \
		/^##@ / { \
			group = substr($$0, 5); \
			if (!(group in text)) order[++groups] = group; \
			text[group] = text[group] } \
		/^[a-zA-Z0-9_%-]+:.*## / { \
			text[group] = text[group] sprintf("  %-20s %s\n", $$1, $$2) } \
		END { for (i = 1; i <= groups; i++) \
			printf "%s%s\n%s", (i > 1 ? "\n" : ""), order[i], text[order[i]] }' \
		$(filter %Makefile %.mk,$(MAKEFILE_LIST))
	@printf '\nV=1 prints the commands of the build; BUILD=DIR builds into DIR instead of build/.\n'

demo: ## Record this machine; then a workload in a VM with RDT, and print who moved memory.
	@scripts/install-deps build
	@$(MAKE) -q all 2>/dev/null || $(MAKE) all
	@selftests/demo/native || true
	@scripts/install-deps
	@selftests/demo/run

check: ## Run every test that needs no hardware: on this machine, then in VMs.
	@echo "make check may install missing Debian packages, and fetches kernels into its cache."
	@scripts/install-deps
	@selftests/run-all check

deps: ## Install the packages that a fresh Debian 12 machine lacks (root).
	@scripts/install-deps

##@ Build

all: lib cli heap ## Build the libraries and memwatchctl into build/.

tests: lib-tests cli-tests bpf-tests heap-tests ## Build every test program.
tests: identity-programs stress-programs bench-programs eval-programs heap-evidence-programs stale-programs

clean: ## Remove build/; the cache of kernels is elsewhere and stays.
	$(call msg,CLEAN,$(BUILD))
	$(Q)rm -rf $(BUILD)

##@ Test

check-host: ## Run only the tests that run on this machine.
	@selftests/run-all host

check-vm: ## Run only the tests of "make check" that run in virtual machines.
	@selftests/run-all vm

check-matrix: deps ## Run the tests on every kernel of selftests/lab/matrix (hours).
	@selftests/run-all matrix

check-debug: deps ## Run the stress tests on a kernel with lockdep, KASAN and kmemleak.
	@selftests/run-all debug

lint: ## Check format, sizes, names, documents and the order of the layers.
	@scripts/lint

abi-update: lib ## Accept the present interface of the library; see scripts/check-library-abi.
	@scripts/check-library-abi --update

##@ Measure

bench: deps ## Measure every budget; the result is also in build/bench.json.
	@selftests/bench/run

eval: deps ## Score the leak detectors on the labelled corpus (root; 10 minutes the first time).
	@scripts/install-deps eval
	@selftests/eval/run

##@ Install

install: all ## Install library, headers, memwatchctl, manual pages, completion and DKMS source.
	@$(MAKE) install-lib install-cli install-heap install-dkms

# What is installed is only known to the rules that install it, so they install it once more, into
# a folder whose contents say what to remove.
uninstall: ## Remove what install and install-system have installed with the same variables.
	@if [ -d "$(DESTDIR)/var/lib/dkms/memwatch/$(VERSION)" ]; then \
		echo "dkms needs the source to remove the module. First:"; \
		echo "  rmmod memwatch; dkms remove memwatch/$(VERSION) --all"; \
		exit 1; \
	fi >&2
	@list=$$(mktemp -d) && trap 'rm -rf "$$list"' EXIT && \
	$(MAKE) -s install install-system DESTDIR="$$list" >/dev/null && \
	(cd "$$list" && find . ! -type d) | while read -r file; do rm -f "$(DESTDIR)/$$file"; done && \
	(cd "$$list" && find . -depth -type d -path '*memwatch*') | \
		while read -r dir; do rmdir "$(DESTDIR)/$$dir" 2>/dev/null || true; done
