#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# What "make install-lib" and "make install-dkms" install, in temporary folders. Speaks TAP.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=SCRIPTDIR/tap.sh
. selftests/tap.sh

BUILD=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# value PREFIX NAME: a variable of the installed libmemwatch.pc
value() {
	sed -n "s/^$2=//p" "$work/root$1/lib/pkgconfig/libmemwatch.pc"
}

plan 5
for prefix in /opt/first /opt/second; do
	make -s BUILD="$BUILD" DESTDIR="$work/root" PREFIX=$prefix install-lib > "$work/log" 2>&1 ||
		sed 's/^/# /' "$work/log"
	is "libmemwatch.pc has the prefix $prefix of its installation" \
		"$(value $prefix prefix)" $prefix
	is "libmemwatch.pc has the libraries of $prefix" "$(value $prefix libdir)" $prefix/lib
done

# Outside of a git checkout, as in a release tarball, the same files are installed.
GIT_DIR=$work/none make -s install-dkms DKMSDIR="$work/dkms" > "$work/log" 2>&1 ||
	sed 's/^/# /' "$work/log"
is "without git, make install-dkms installs all sources of the module" \
	"$(cd "$work/dkms" && find . -type f | sort | cksum)" \
	"$({ git ls-files kmod | grep -v '^kmod/tests/'; echo Kbuild; echo dkms.conf; echo VERSION; } |
		sed 's|^|./|' | sort | cksum)"
tap_end
