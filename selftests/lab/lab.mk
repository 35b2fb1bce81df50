# SPDX-License-Identifier: GPL-2.0-or-later
# Virtual machines: kernels of the matrix, and the lab's own tests.

LAB := selftests/lab

.PHONY: lab-kernels lab-debug lab-selftest lab-rdt-selftest lab-gc

lab-kernels: ## List the kernels of selftests/lab/matrix and which are in the cache
	@$(LAB)/kernel list

lab-fetch-%: ## Fetch one kernel with its headers and compilers, e.g. lab-fetch-6.12 (root)
	@$(LAB)/kernel fetch $*

lab-build-%: ## Build the module for one kernel into build/lab/NAME/
	@$(LAB)/kernel build $*

lab-clang-%: ## The same with clang, into build/lab/NAME-clang/
	@$(LAB)/kernel build --clang $*

lab-shell-%: ## A console in a guest of one kernel, module in /lab
	@$(LAB)/run --kernel $* --shell

lab-debug: ## Build the debug kernel into the cache (once; 15 minutes)
	@$(LAB)/kernel debug

lab-selftest: ## Guests broken on purpose must be judged failures
	@$(LAB)/selftest.sh

lab-rdt-selftest: ## Do stock kernels, perf and pqos read what the simulated machine did?
	@$(LAB)/rdt-selftest

lab-gc: ## Remove replaced kernels and tools from the cache
	@$(LAB)/kernel gc
