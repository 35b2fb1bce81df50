# SPDX-License-Identifier: GPL-2.0-or-later
#
# For people. The kernel's build reads Kbuild and never sees this file.
# Every folder brings its rules in a fragment; this file names the stages.

BUILD	?= build
PREFIX	?= /usr/local
DESTDIR	?=
VERSION	:= $(shell cat VERSION)

CC	?= gcc
CLANG	?= clang
CFLAGS	?= -O2 -g

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

include bpf/bpf.mk
include lib/lib.mk
include cli/cli.mk
include selftests/selftests.mk
include selftests/bpf/bpf-tests.mk
include selftests/eval/eval.mk
include selftests/lab/lab.mk
include packaging/packaging.mk

.PHONY: all tests help demo check check-host check-vm check-matrix check-debug bench eval lint install clean deps

all: lib cli ## Build the library and memwatchctl into build/

tests: lib-tests cli-tests identity-programs stress-programs bpf-tests bench-programs eval-programs ## Build every test program

help: ## List all targets
	@awk -F ':.*## ' '/^[a-zA-Z0-9_%-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' \
		$(MAKEFILE_LIST)

deps: ## Install what a fresh Debian 12 machine lacks (needs root)
	@scripts/install-deps

demo: deps ## Boot a stock kernel in a VM, load the module, run a workload, show who did what
	@$(MAKE) --no-print-directory all
	@selftests/demo/run

check: deps ## Run every test that needs no hardware: host, then two kernels in VMs
	@selftests/run-all check

check-host: ## Only the tests that run on this machine
	@selftests/run-all host

check-vm: ## Only the tests in virtual machines, on the two kernels of "make check"
	@selftests/run-all vm

check-matrix: deps ## Boot every kernel of selftests/lab/matrix
	@selftests/run-all matrix

check-debug: deps ## Stress on a kernel with lockdep, KASAN and kmemleak (builds it once: 15 minutes)
	@selftests/run-all debug

bench: deps ## Measure every budget: "NAME value unit budget ok|over", also in build/bench.json
	@selftests/bench/run

eval: deps ## Run the leak detectors, and three published ones, over the labelled corpus (root; 10 minutes the first time)
	@scripts/install-deps eval
	@selftests/eval/run

lint: ## The gates that keep the house clean
	@scripts/lint

install: all ## Install library, headers, memwatchctl, man pages, completion, DKMS source
	@$(MAKE) --no-print-directory install-lib install-cli install-dkms

clean: ## Remove build/ (the cache of kernels is elsewhere and stays)
	rm -rf $(BUILD)
