# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# What the collections have in common; their Makefiles include it in place of the kernel's lib.mk,
# which it includes. The variables of lib.mk name what lib.mk builds and installs. What the
# Makefile of the root builds is named by its path below build/: ROOT_TESTS are tests, and
# ROOT_FILES are files that tests need.

ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/../..)
BUILD ?= $(ROOT)/build
KSRC ?= $(shell $(ROOT)/selftests/kselftest/sources)
ifeq ($(KSRC),)
$(error kselftest's own files are missing, see above)
endif

override OUTPUT := $(BUILD)/kselftest/$(notdir $(CURDIR))
TEST_CUSTOM_PROGS += $(addprefix $(BUILD)/,$(ROOT_TESTS))
TEST_FILES += $(wildcard $(KO)) $(addprefix $(BUILD)/,$(ROOT_FILES))

.DEFAULT_GOAL := all
.PHONY: root
root:
	@mkdir -p $(OUTPUT)
	@$(MAKE) --no-print-directory -s -C $(ROOT) BUILD=$(patsubst $(ROOT)/%,%,$(BUILD)) \
		$(addprefix $(patsubst $(ROOT)/%,%,$(BUILD))/,$(ROOT_TESTS) $(ROOT_FILES))

all: root
include $(KSRC)/tools/testing/selftests/lib.mk
