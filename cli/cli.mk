# SPDX-License-Identifier: GPL-2.0-or-later
#
# memwatchctl: one program, its completion files and its tests. Included by the
# Makefile of the root after lib/lib.mk.

MANDIR	?= $(PREFIX)/share/man

CLI_SRC	:= cli/main.c $(filter-out cli/tests/% cli/fuzz/%,$(wildcard cli/*/*.c cli/*/*/*.c))
CLI_OBJ	:= $(CLI_SRC:cli/%.c=$(BUILD)/cli/%.o)
CLI_BIN	:= $(BUILD)/cli/memwatchctl

CLI_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-DMW_VERSION='"$(VERSION)"' -Icli -Ilib/include -Ikmod/uapi -MMD -MP
CLI_LIBS := -lsmartcols -lncursesw -ltinfo -lz -lm

CLI_COMPLETION := $(addprefix $(BUILD)/completion/,memwatchctl.bash _memwatchctl memwatchctl.fish)

.PHONY: cli cli-tests check-cli install-cli

cli: $(CLI_BIN) $(CLI_COMPLETION)

$(BUILD)/cli/%.o: cli/%.c VERSION Makefile
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CLI_CFLAGS) -fPIE $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# $(call cli_link,SEARCH) links the program; SEARCH says where it looks for libmemwatch.
cli_link = $(CC) -pie $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $(CLI_OBJ) \
	-L$(BUILD)/lib -lmemwatch $(CLI_LIBS) $(1) -Wl,--as-needed

# In build/ the program finds the library in ../lib.
$(CLI_BIN): $(CLI_OBJ) Makefile | $(LIB_SO)
	$(call msg,LD,$@)
	$(Q)$(call cli_link,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../lib')

# What is installed does not look next to itself, because whoever can write there could then
# give root a library. It looks in LIBDIR, and that is named only if the system does not search
# it anyway. There is one for each LIBDIR.
CLI_INSTALL := $(BUILD)/cli/install$(LIBDIR)/memwatchctl
comma := ,

$(CLI_INSTALL): $(CLI_OBJ) Makefile | $(LIB_SO)
	$(call msg,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(call cli_link,$(if $(filter /usr/lib% /lib%,$(LIBDIR)),,-Wl$(comma)-rpath$(comma)$(LIBDIR)))

$(BUILD)/completion/memwatchctl.bash: dialect = bash
$(BUILD)/completion/_memwatchctl: dialect = zsh
$(BUILD)/completion/memwatchctl.fish: dialect = fish

$(CLI_COMPLETION): $(CLI_BIN)
	$(call msg,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLI_BIN) completion $(dialect) >$@

# The tests run a program and a library that were compiled with the sanitizers.
CLI_ASAN := $(CLI_SRC:cli/%.c=$(BUILD)/cli/asan/%.o)

$(BUILD)/cli/asan/%.o: cli/%.c VERSION
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CLI_CFLAGS) $(LIB_SANITIZE) -c -o $@ $<

$(BUILD)/cli/asan/memwatchctl: $(CLI_ASAN) $(BUILD)/lib/asan/libmemwatch.a
	$(call msg,LD,$@)
	$(Q)$(CC) $(LIB_SANITIZE) -o $@ $^ $(LIB_LIBS) $(CLI_LIBS)

$(BUILD)/cli/asan/generate: cli/tests/generate.c $(BUILD)/lib/asan/libmemwatch.a
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CLI_CFLAGS) -Iselftests $(LIB_SANITIZE) -o $@ $^ $(LIB_LIBS)

$(BUILD)/cli/asan/hooks: cli/tests/hooks.c $(addprefix $(BUILD)/cli/asan/,growth/hooks.o \
		common/message.o text/escape.o) $(BUILD)/lib/asan/libmemwatch.a
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CLI_CFLAGS) $(LIB_SANITIZE) -o $@ $^ $(LIB_LIBS)

$(BUILD)/cli/asan/opener: cli/tests/opener.c $(BUILD)/cli/asan/cmds/heap/opener.o \
		$(BUILD)/lib/asan/libmemwatch.a
	$(call msg,CCLD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CLI_CFLAGS) -Iselftests $(LIB_SANITIZE) -o $@ $^ $(LIB_LIBS)

cli-tests: $(addprefix $(BUILD)/cli/asan/,memwatchctl generate hooks opener)

##@ Test

check-cli: cli-tests ## Run the tests of memwatchctl on recordings and fake roots.
	@BUILD=$(BUILD) cli/tests/run

# A memwatchctl of earlier versions, in sbin, would be found first by root.
install-cli: cli $(CLI_INSTALL)
	$(Q)rm -f $(DESTDIR)$(PREFIX)/sbin/memwatchctl
	$(call install,755,$(CLI_INSTALL),$(PREFIX)/bin/memwatchctl)
	$(call install,644,$(BUILD)/completion/memwatchctl.bash,\
		$(PREFIX)/share/bash-completion/completions/memwatchctl)
	$(call install,644,$(BUILD)/completion/_memwatchctl,\
		$(PREFIX)/share/zsh/site-functions/_memwatchctl)
	$(call install,644,$(BUILD)/completion/memwatchctl.fish,\
		$(PREFIX)/share/fish/vendor_completions.d/memwatchctl.fish)
	$(foreach page,$(wildcard docs/man/*.[1-8]),\
		$(call install,644,$(page),$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page))))
