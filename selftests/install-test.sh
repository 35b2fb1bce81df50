#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# What "make install" and its parts install, and that "make uninstall" removes it, in temporary
# folders, and that programs that only read recordings need no libbpf, no elfutils and no libnl.
# Speaks TAP.
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

plan 21
for prefix in /opt/first /opt/second; do
	make -s BUILD="$BUILD" DESTDIR="$work/root" PREFIX=$prefix install-lib > "$work/log" 2>&1 ||
		sed 's/^/# /' "$work/log"
	is "libmemwatch.pc has the prefix $prefix of its installation" \
		"$(value $prefix prefix)" $prefix
	is "libmemwatch.pc has the libraries of $prefix" "$(value $prefix libdir)" $prefix/lib
done

# A program that only reads recordings: the example of libmemwatch(3). The libraries that it does
# not need are damaged files.
lib=$work/root/opt/first/lib
mkdir "$work/broken"
touch "$work/broken/libbpf.so.1" "$work/broken/libdw.so.1" "$work/broken/libelf.so.1" \
	"$work/broken/libnl-genl-3.so.200"
# The command reads heap profiles as another user.
chmod 755 "$work" "$work/broken"
broken=$work/broken:$lib
flags=$(PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root \
	pkg-config --cflags --libs libmemwatch)
sed -n '/^\.Sh EXAMPLES/,$p' docs/man/libmemwatch.3 | sed -n '/^\.Bd -literal/,/^\.Ed/p' |
	sed -e '/^\.[BE]d/d' -e 's/\\e/\\/g' > "$work/reader.c"
# compile_with NAME: a program with the flags of pkg-config
compile_with() {
	# shellcheck disable=SC2086 # CC and the flags are several words
	${CC:-cc} -o "$work/$1" "$work/$1.c" $flags > "$work/log" 2>&1 || { sed 's/^/# /' "$work/log"; false; }
}
compile_with reader
ok $? "the example of libmemwatch(3) is built with the flags of pkg-config"
is "neither the library nor a program that uses it is linked with libbpf, elfutils or libnl" \
	"$(readelf -d "$lib/libmemwatch.so.1" "$work/reader" | grep -E 'NEEDED.*lib(bpf|elf|dw|nl-.*)\.')" ""
is "the library says in its ELF notes what it loads" \
	"$(readelf -p .note.dlopen "$lib/libmemwatch.so.1" | grep -oE 'lib(bpf|dw|nl-genl-3)\.so\.[0-9]+' | sort | xargs)" \
	"libbpf.so.1 libdw.so.1 libnl-genl-3.so.200"
"$BUILD/cli/asan/generate" machine "$work/machine.mwr"
LD_LIBRARY_PATH=$broken "$work/reader" "$work/machine.mwr" > "$work/rows" 2> "$work/log" &&
	[ -s "$work/rows" ] || { sed 's/^/# /' "$work/log"; false; }
ok $? "a recording is read where libbpf and elfutils cannot be loaded"
cat > "$work/watch.c" <<'END'
#include <stdio.h>
#include <memwatch/memwatch.h>

int main(void)
{
	struct memwatch_watch *watch;
	struct memwatch_ctx *ctx;

	if (!memwatch_ctx_new(NULL, &ctx) && memwatch_watch_open(ctx, NULL, &watch))
		puts(memwatch_ctx_error(ctx));
	return 0;
}
END
compile_with watch
matches "without libbpf, watching for growth says what is missing and what to install" \
	"$(LD_LIBRARY_PATH=$broken "$work/watch")" "needs libbpf[.]so[.]1, which cannot be loaded.*install .*libbpf1"
sed 's/watch_open(ctx, NULL, &watch)/notices_open(ctx, \&notices)/; s/memwatch_watch \*watch/memwatch_notices *notices/' \
	"$work/watch.c" > "$work/notices.c"
compile_with notices
matches "without libnl, reading notices says what is missing and what to install" \
	"$(LD_LIBRARY_PATH=$broken "$work/notices")" \
	"needs libnl-genl-3[.]so[.]200, which cannot be loaded.*install .*libnl-genl-3-200"
printf '%s\n' 'heap_v2/524288' '  t*: 1: 100 [0: 0]' '@ 0x401000' '  t*: 1: 100 [0: 0]' '' \
	MAPPED_LIBRARIES: "00400000-00500000 r-xp 00000000 fe:00 1 $work/reader" > "$work/profile"
LD_LIBRARY_PATH=$broken "$BUILD/cli/memwatchctl" heap report "$work/profile" > "$work/rows" 2> "$work/log"
is "without elfutils, a heap profile is shown with addresses" "$?" 0
matches "without elfutils, the report says what is missing" "$(cat "$work/log")" "libdw[.]so[.]1.*install .*libdw1"

make -s BUILD="$BUILD" DESTDIR="$work/root" PREFIX=/opt/first install-system > "$work/log" 2>&1 ||
	sed 's/^/# /' "$work/log"
is "the unit for events runs the command where it is installed" \
	"$(sed -n 's/^ExecStart=//p' "$work/root/usr/lib/systemd/system/memwatch-events.service")" \
	"/opt/first/bin/memwatchctl events"
if command -v systemd-analyze > /dev/null; then
	sed 's|^ExecStart=.*|ExecStart=/bin/true|' \
		"$work/root/usr/lib/systemd/system/memwatch-events.service" > "$work/memwatch-events.service"
	is "systemd finds nothing wrong in the unit for events" \
		"$(systemd-analyze verify --man=no "$work/memwatch-events.service" 2>&1 | grep memwatch-events)" ""
else
	skip "systemd finds nothing wrong in the unit for events" "systemd-analyze is not installed"
fi

# Where other packages have files, too.
mkdir -p "$work/all/usr/local/bin"
touch "$work/all/usr/local/bin/other"
make -s BUILD="$BUILD" DESTDIR="$work/all" install install-system > "$work/log" 2>&1 ||
	sed 's/^/# /' "$work/log"
installed=$(find "$work/all" -name '*memwatch*' ! -type d | wc -l)
[ "$installed" -gt 30 ]
ok $? "make install installs command, libraries, headers, manual pages and module: $installed files"
is "memwatchctl finds the profiler that was installed with it" \
	"$(cd "$work/all" && ls usr/local/bin/memwatchctl usr/local/bin/../lib/memwatch/libmemwatch-heap.so | wc -l)" 2
# dkms reads dkms.conf of the source when it removes what it has built.
mkdir -p "$work/all/var/lib/dkms/memwatch/$(cat VERSION)"
matches "make uninstall refuses while dkms has the module, and says what to do" \
	"$(make -s BUILD="$BUILD" DESTDIR="$work/all" uninstall 2>&1)" "dkms remove memwatch/$(cat VERSION) --all"
[ -e "$work/all/usr/src/memwatch-$(cat VERSION)/dkms.conf" ]
ok $? "an uninstallation that is refused leaves the source of the module"
rm -r "$work/all/var"
make -s BUILD="$BUILD" DESTDIR="$work/all" uninstall > "$work/log" 2>&1 || sed 's/^/# /' "$work/log"
is "make uninstall removes all of it, and nothing else" "$(cd "$work/all" && find . ! -type d)" \
	./usr/local/bin/other
is "make uninstall leaves no folder of its own" "$(find "$work/all" -type d -name '*memwatch*')" ""

# Outside of a git checkout, as in a release tarball, the same files are installed.
GIT_DIR=$work/none make -s install-dkms DKMSDIR="$work/dkms" > "$work/log" 2>&1 ||
	sed 's/^/# /' "$work/log"
is "without git, make install-dkms installs all sources of the module" \
	"$(cd "$work/dkms" && find . -type f | sort | cksum)" \
	"$({ git ls-files kmod | grep -v '^kmod/tests/'; echo Kbuild; echo dkms.conf; echo VERSION; } |
		sed 's|^|./|' | sort | cksum)"
tap_end
