# SPDX-License-Identifier: GPL-2.0-or-later
#
# Virtual machines: kernels of the matrix, and the lab's own tests. Included by
# the Makefile of the root.

LAB := selftests/lab

.PHONY: lab-kernels lab-debug lab-selftest lab-rdt-selftest lab-gc

##@ Virtual machines (NAME is a kernel of selftests/lab/matrix)

lab-kernels: ## List the kernels of the matrix and their releases in the cache.
	@$(LAB)/kernel list

lab-fetch-%: ## Fetch one kernel with its headers and compilers: lab-fetch-NAME (root).
	@$(LAB)/kernel fetch $*

lab-build-%: ## Build the module for one kernel into build/lab/NAME/: lab-build-NAME.
	@$(LAB)/kernel build $*

lab-clang-%: ## Build it with clang into build/lab/NAME-clang/.
	@$(LAB)/kernel build --clang $*

lab-shell-%: ## Open a console in a guest with one kernel; the module is in /lab.
	@$(LAB)/run --kernel $* --shell

lab-debug: ## Build the debug kernel into the cache (once; 15 minutes).
	@$(LAB)/kernel debug

lab-selftest: ## Check that guests broken on purpose are judged failures.
	@$(LAB)/selftest.sh

lab-rdt-selftest: ## Check that kernels, perf and pqos read what the simulated machine did.
	@$(LAB)/rdt-selftest

lab-gc: ## Remove replaced kernels and tools from the cache.
	@$(LAB)/kernel gc
