#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the lab: guests that are broken on purpose must each get the verdict failure
# for the right reason, and a good one the verdict success. Argument: a kernel of the
# matrix. Speaks TAP.
set -eu

LAB=$(cd "$(dirname "$0")" && pwd)
kernel=${1:-$("$LAB/kernel" names default)}
# shellcheck source=SCRIPTDIR/../tap.sh
. "$LAB/../tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/module"

cat > "$work/module/Kbuild" <<'EOF'
obj-m := labtest.o
$(info built by $(shell id -u) with capabilities $(shell sed -n 's/^CapBnd:.//p' /proc/self/status))
EOF
cat > "$work/module/labtest.c" <<'EOF'
// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *mode = "";
module_param(mode, charp, 0444);

static void *lost;
static struct kmem_cache *cache;
static DEFINE_SPINLOCK(a);
static DEFINE_SPINLOCK(b);

static int __init labtest_init(void)
{
	if (!strcmp(mode, "warn"))
		WARN(1, "on purpose\n");
	if (!strcmp(mode, "bug"))
		pr_err("BUG: on purpose, in words only\n");
	if (!strcmp(mode, "oops"))
		*(volatile int *)NULL = 1;
	if (!strcmp(mode, "panic"))
		panic("on purpose");
	if (!strcmp(mode, "leak"))
		lost = kmalloc(1000, GFP_KERNEL);
	lost = NULL;
	if (!strcmp(mode, "cache")) {
		cache = kmem_cache_create("labtest", 96, 0, 0, NULL);
		if (cache)
			lost = kmem_cache_alloc(cache, GFP_KERNEL);
	}
	if (!strcmp(mode, "atomic")) {
		preempt_disable();
		might_sleep();
		preempt_enable();
	}
	if (!strcmp(mode, "deadlock")) {
		spin_lock(&a);
		spin_lock(&b);
		spin_unlock(&b);
		spin_unlock(&a);
		spin_lock(&b);
		spin_lock(&a);
		spin_unlock(&a);
		spin_unlock(&b);
	}
	if (!strcmp(mode, "freed")) {
		char *p = kmalloc(100, GFP_KERNEL);

		kfree(p);
		return READ_ONCE(p[50]) == 42;
	}
	return 0;
}

static void __exit labtest_exit(void)
{
	kmem_cache_destroy(cache);
}

module_init(labtest_init);
module_exit(labtest_exit);
MODULE_DESCRIPTION("memwatch lab self-test");
MODULE_LICENSE("GPL");
EOF

# The script of the guest. "good" is a run without any defect.
cat > "$work/guest" <<'EOF'
#!/bin/sh
echo "TAP version 13"
echo "1..2"
case $1 in
good)
	# What the tests of this tree rely on.
	set -e
	for at in /proc /sys /dev /dev/shm /tmp /run /sys/kernel/debug \
	    /sys/kernel/tracing /sys/fs/bpf /sys/fs/cgroup /out; do
		grep -q " $at " /proc/mounts || { echo "not ok 1 $at"; exit 1; }
	done
	ping -c 1 -W 1 127.0.0.1 >&2
	su nobody -c 'id -u' | grep -qx 65534
	grep -q '^memwatch:' /etc/group
	head -c 20000000 /dev/zero > /out/big
	insmod labtest.ko
	rmmod labtest
	echo "ok 1 good"
	echo "ok 2 - allowed # SKIP as agreed"
	exit ;;
hang) sleep 100000 ;;
truncated) echo "ok 1 first"; exit 0 ;;
exit) echo "ok 1 a"; echo "ok 2 b"; exit 3 ;;
signal) echo "ok 1 a"; echo "ok 2 b"; kill -SEGV $$ ;;
skip) echo "ok 1 a"; echo "ok 2 - b # SKIP no reason agreed"; exit 0 ;;
notok) echo "ok 1 a"; echo "not ok 2 b"; exit 0 ;;
poweroff) echo "ok 1 a"; echo "ok 2 b"; reboot -f ;;
warn|bug|oops|panic|leak|cache|atomic|deadlock|freed) insmod labtest.ko mode="$1"; rmmod labtest ;;
esac
echo "ok 1 a"
echo "ok 2 b"
EOF
chmod +x "$work/guest"

"$LAB/kernel" build --src "$work/module" --out "$work/ko" "$kernel"

# try KIND VERDICT [OPTION...]: VERDICT is a pattern for the whole verdict
try() {
	mode=$1
	want=$2
	shift 2
	"$LAB/run" --kernel "$kernel" --no-build --quiet --out "$work/out" \
		--files "$work/guest" --files "$work/ko/labtest.ko" "$@" \
		-- ./guest "$mode" > "$work/log" 2>&1 && status=0 || status=$?
	verdict=$(cat "$work/out/verdict")
	good=1
	# shellcheck disable=SC2254 # a pattern is meant
	case $verdict in
	$want)	case $status-$want in
		0-success) good=0 ;;
		0-*|*-success) ;;
		*) good=0 ;;
		esac ;;
	esac
	ok $good "a guest of kind $mode gets the right verdict: $verdict"
	[ $good -eq 0 ] || sed 's/^/# /' "$work/log"
}

# built: other people's makefiles must not run as root, who runs this lab
built() {
	matches "makefiles of a kernel run without rights" "$(cat "$work/ko/build.log")" \
		'^built by 65533 with capabilities 0*$'
}

if [ "$kernel" = debug ]; then
	# This kernel boots slowly, so only the defects that stock kernels do not detect.
	plan 6
	built
	try good success --expect-skip allowed
	try leak 'failure:*kernel log:*memory leak*'
	try atomic 'failure:*sleeping function called*'
	try deadlock 'failure:*possible circular locking*'
	try freed 'failure:*KASAN*'
	tap_end
	exit
fi
plan 15
built
try good success --expect-skip allowed
try hang 'failure:*did not end within*' --timeout 60
try panic 'failure:*kernel log:*Kernel panic*'
try oops 'failure:*kernel log:*'
try warn 'failure:*kernel log:*WARNING*'
try bug 'failure:*kernel log:*BUG:*'
try cache 'failure:*kernel log:*BUG labtest *Objects remaining*'
try truncated 'failure: TAP:*results: 1 of 2'
try exit 'failure: the guest did not report success'
try signal 'failure: the guest did not report success'
try poweroff 'failure: the guest did not report success'
try notok 'failure: TAP:*not ok 2 b'
try skip 'failure: TAP:*unexpected skip: b (no reason agreed)'
# A QEMU that ends at once and prints nothing.
try good 'failure:*QEMU ended with status*' --qemu-arg -no-such-option
tap_end
