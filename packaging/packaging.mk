# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installs what is not a program of this tree: the DKMS source and the files for
# the system. Included by the Makefile of the root.

UDEVDIR	?= /usr/lib/udev/rules.d
SYSUSERSDIR ?= /usr/lib/sysusers.d
DKMSDIR	?= /usr/src/memwatch-$(VERSION)

# The sources of the module only: no tests, nothing of user space, nothing that a build of the
# module has made. A release tarball has no git to ask.
dkms-files = Kbuild dkms.conf VERSION $(shell find kmod -type f \( -name '*.[ch]' -o -name Kbuild \) \
	! -name '*.mod.c' ! -path kmod/compat/config.h ! -path 'kmod/compat/probe/*.h' \
	! -path 'kmod/tests/*')

.PHONY: install-dkms install-system

##@ Install

install-dkms: ## Copy the module's source to where dkms finds it (DKMSDIR).
	$(call msg,INSTALL,$(DESTDIR)$(DKMSDIR))
	$(Q)for f in $(dkms-files); do \
		install -D -m 0644 $$f $(DESTDIR)$(DKMSDIR)/$$f || exit 1; \
	done
	@echo "Next: dkms add memwatch/$(VERSION) && dkms install memwatch/$(VERSION)"

# The rule names the group, so what makes the group comes with it.
install-system: ## Install what makes the group memwatch, and the udev rule for the device.
	$(call install,0644,packaging/sysusers.d/memwatch.conf,$(SYSUSERSDIR)/memwatch.conf)
	$(call install,0644,packaging/udev/60-memwatch.rules,$(UDEVDIR)/60-memwatch.rules)
	@echo "Next: systemd-sysusers; memwatch(4) says how the group may read /proc/memwatch"
