# SPDX-License-Identifier: GPL-2.0-or-later
#
# What leaves this tree: the DKMS source and the system integration files.

UDEVDIR	?= /usr/lib/udev/rules.d
DKMSDIR	?= /usr/src/memwatch-$(VERSION)

# The module's sources and nothing else: tests and user space stay at home.
dkms-files = Kbuild dkms.conf VERSION $(shell git ls-files kmod | grep -v '^kmod/tests/')

.PHONY: install-dkms uninstall-dkms install-system

install-dkms: ## Copy the module's source to where dkms finds it (DKMSDIR)
	@for f in $(dkms-files); do \
		install -D -m 0644 $$f $(DESTDIR)$(DKMSDIR)/$$f || exit 1; \
	done
	@echo "installed $(DESTDIR)$(DKMSDIR): now dkms install memwatch/$(VERSION)"

install-system: ## Install the udev rule that gives the group memwatch the device
	install -D -m 0644 packaging/udev/60-memwatch.rules $(DESTDIR)$(UDEVDIR)/60-memwatch.rules
