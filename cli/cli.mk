# SPDX-License-Identifier: GPL-2.0-or-later
#
# memwatchctl: one binary, its completion files, its tests.

BUILD	?= build
PREFIX	?= /usr/local
CC	?= gcc

CLI_SRC	:= cli/main.c $(wildcard $(addprefix cli/,common/*.c output/*.c growth/*.c summary/*.c cmds/*.c cmds/*/*.c))
CLI_OBJ	:= $(CLI_SRC:cli/%.c=$(BUILD)/cli/%.o)
CLI_BIN	:= $(BUILD)/cli/memwatchctl

CLI_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-DMW_VERSION='"$(shell cat VERSION)"' -Icli -Ilib/include -Ikmod/uapi -MMD -MP
CLI_LIBS := -lsmartcols -lncursesw -ltinfo -lz -lm

CLI_COMPLETION := $(addprefix $(BUILD)/completion/,memwatchctl.bash _memwatchctl memwatchctl.fish)

.PHONY: cli cli-tests check-cli install-cli

cli: $(CLI_BIN) $(CLI_COMPLETION)

$(BUILD)/cli/%.o: cli/%.c
	@mkdir -p $(@D)
	$(CC) $(CLI_CFLAGS) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# The library is found beside the binary: in build/ and below PREFIX alike.
$(CLI_BIN): $(CLI_OBJ) | lib
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(CLI_OBJ) -L$(BUILD)/lib -lmemwatch $(CLI_LIBS) \
		-Wl,-rpath,'$$ORIGIN/../lib' -Wl,--as-needed

$(BUILD)/completion/memwatchctl.bash: $(CLI_BIN)
	@mkdir -p $(@D)
	$(CLI_BIN) completion bash >$@

$(BUILD)/completion/_memwatchctl: $(CLI_BIN)
	@mkdir -p $(@D)
	$(CLI_BIN) completion zsh >$@

$(BUILD)/completion/memwatchctl.fish: $(CLI_BIN)
	@mkdir -p $(@D)
	$(CLI_BIN) completion fish >$@

# Under the sanitizers, library included: what the tests run.
CLI_ASAN := $(CLI_SRC:cli/%.c=$(BUILD)/cli/asan/%.o)

$(BUILD)/cli/asan/%.o: cli/%.c
	@mkdir -p $(@D)
	$(CC) $(CLI_CFLAGS) $(LIB_SANITIZE) -c -o $@ $<

$(BUILD)/cli/asan/memwatchctl: $(CLI_ASAN) $(BUILD)/lib/asan/libmemwatch.a
	$(CC) $(LIB_SANITIZE) -o $@ $^ $(LIB_LIBS) $(CLI_LIBS)

$(BUILD)/cli/asan/generate: cli/tests/generate.c $(BUILD)/lib/asan/libmemwatch.a
	@mkdir -p $(@D)
	$(CC) $(CLI_CFLAGS) $(LIB_SANITIZE) -o $@ $^ $(LIB_LIBS)

cli-tests: $(BUILD)/cli/asan/memwatchctl $(BUILD)/cli/asan/generate

check-cli: cli-tests ## Tests of memwatchctl on recordings and fake roots
	@BUILD=$(BUILD) cli/tests/run

install-cli: cli
	install -d $(DESTDIR)$(PREFIX)/sbin
	install -m 755 $(CLI_BIN) $(DESTDIR)$(PREFIX)/sbin/memwatchctl
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 644 $(BUILD)/completion/memwatchctl.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/memwatchctl
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 644 $(BUILD)/completion/_memwatchctl \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_memwatchctl
	install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 $(BUILD)/completion/memwatchctl.fish \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/memwatchctl.fish
	for page in docs/man/*.[1-8]; do \
		install -d $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} && \
		install -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/ || exit 1; \
	done

-include $(CLI_OBJ:.o=.d) $(CLI_ASAN:.o=.d)
