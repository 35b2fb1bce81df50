# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installs what is not a program of this tree: the DKMS source and the files for
# the system. Included by the Makefile of the root.

UDEVDIR	?= /usr/lib/udev/rules.d
SYSUSERSDIR ?= /usr/lib/sysusers.d
UNITDIR	?= /usr/lib/systemd/system
DKMSDIR	?= /usr/src/memwatch-$(VERSION)

# The sources of the module only: no tests, nothing of user space, nothing that a build of the
# module has made. A release tarball has no git to ask.
dkms-files = Kbuild dkms.conf VERSION $(shell find kmod -type f \( -name '*.[ch]' -o -name Kbuild \) \
	! -name '*.mod.c' ! -path kmod/compat/config.h ! -path 'kmod/compat/probe/*.h' \
	! -path 'kmod/tests/*')

.PHONY: install-dkms install-system

##@ Install

# Each compile probe that is there is compiled, also one of an older version.
install-dkms: ## Copy the module's source to where dkms finds it (DKMSDIR).
	$(call msg,INSTALL,$(DESTDIR)$(DKMSDIR))
	$(Q)rm -rf $(DESTDIR)$(DKMSDIR)/kmod
	$(Q)for f in $(dkms-files); do \
		install -D -m 0644 $$f $(DESTDIR)$(DKMSDIR)/$$f || exit 1; \
	done
	@echo "Next: dkms add memwatch/$(VERSION) && dkms install memwatch/$(VERSION)"

EVENTS_UNIT := $(BUILD)/packaging/memwatch-events.service

# Always made again, since PREFIX may be another one than the last time.
.PHONY: $(EVENTS_UNIT)
$(EVENTS_UNIT): packaging/systemd/memwatch-events.service.in
	$(Q)mkdir -p $(@D)
	$(Q)sed 's|@BINDIR@|$(PREFIX)/bin|' $< >$@

# The rule and the unit name the group, so what makes the group comes with them.
install-system: $(EVENTS_UNIT) ## Install the group memwatch, the udev rule, and the unit for events.
	$(call install,0644,packaging/sysusers.d/memwatch.conf,$(SYSUSERSDIR)/memwatch.conf)
	$(call install,0644,packaging/udev/60-memwatch.rules,$(UDEVDIR)/60-memwatch.rules)
	$(call install,0644,$(EVENTS_UNIT),$(UNITDIR)/memwatch-events.service)
	@echo "Next: systemd-sysusers && udevadm control --reload"
	@echo "memwatch(4) says how the group may read /proc/memwatch"
