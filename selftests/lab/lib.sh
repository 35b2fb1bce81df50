# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# Functions for the lab's scripts: messages, the cache, the matrix, builds by a user
# without rights, and apt with a configuration of its own, separate from the host's.
# Sourced with LAB set to the lab's directory; sets TOP, BUILD_DIR, CACHE and WORK (a
# folder that is removed on exit).

# Part of every cache key. Raise it when entries are made in a different way.
LAB_VERSION=1

# shellcheck disable=SC2034 # for those who source this
TOP=$(cd "$LAB/../.." && pwd)
# shellcheck disable=SC2034 # for those who source this
BUILD_DIR=$(cd "$TOP" && realpath -m "${BUILD:-build}")
CACHE=${MEMWATCH_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/memwatch}
# Builds the sources of others when root runs the lab. The number belongs to nobody else:
# user and group nobody may own files and processes of other services.
BUILDER=65533
# Others may read what the lab makes, so that the builder can, and nobody may write to it.
umask 022
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

say() { echo "lab: $*" >&2; }
die() { echo "lab: $*" >&2; exit 1; }

# Folders are mounted, and lists of them split, where a blank or a colon ends a name.
case $TOP$BUILD_DIR$CACHE in
*[[:space:]:]*) die "the lab needs a tree and a cache (MEMWATCH_CACHE) without blanks and" \
	"colons in their names; they are $TOP, $BUILD_DIR and $CACHE" ;;
esac
case $CACHE in /*) ;; *) die "MEMWATCH_CACHE must be an absolute path: $CACHE" ;; esac
# Where modprobe and depmod are is not searched for the commands of every user.
PATH=$PATH:/usr/sbin:/sbin

need_root() {
	[ "$(id -u)" -eq 0 ] ||
		die "$1: only root can do this (packages are installed in a separate folder)"
}

need_tool() {
	for tool; do
		command -v "$tool" >/dev/null 2>&1 ||
			die "$tool is not installed; run scripts/install-deps"
	done
}

WORK=
lab_cleanup() { [ -z "$WORK" ] || rm -rf "$WORK"; }

make_work() {
	[ -n "$WORK" ] && return
	WORK=$(mktemp -d)
	trap lab_cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# matrix_row NAME: sets m_suite, m_flavour, m_gcc, m_uses, m_lacks
matrix_row() {
	row=$(awk -v n="$1" '$1 == n { print; exit }' "$LAB/matrix")
	[ -n "$row" ] || die "there is no kernel $1; the kernels are: $(matrix_names)"
	# shellcheck disable=SC2034 # for those who source this
	read -r _ m_suite m_flavour m_gcc m_uses m_lacks <<-EOF
		$row
	EOF
}

# matrix_names [USE]: the kernels with that word in their column "uses", or all
matrix_names() {
	awk -v use="${1:-}" '!/^#/ && NF && (use == "" || index("," $5 ",", "," use ",")) {
		printf "%s%s", s, $1; s = " "
	}' "$LAB/matrix"
}

hash_stdin() { sha256sum | cut -c1-16; }

# Prints the Debian archive that this machine itself installs from.
mirror() {
	[ -z "${MEMWATCH_MIRROR:-}" ] || { echo "$MEMWATCH_MIRROR"; return; }
	# shellcheck disable=SC2016 # for apt to expand
	env -u APT_CONFIG apt-get indextargets \
		--format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
	awk '{ u = $NF; sub("/+$", "", u) }
	     $1 == "Debian" && $2 == "Debian" { best = u; exit }
	     u ~ "/debian$" { maybe = u }
	     END { print best ? best : maybe }' | grep . ||
		die "apt's configuration names no Debian archive; set MEMWATCH_MIRROR to its address"
}

# write_apt_conf ARCHITECTURE: prints the configuration for the folder $apt
write_apt_conf() {
	cat <<-EOF
		APT::Architecture "$1";
		APT::Architectures { "$1"; };
		APT::Sandbox::User "root";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "$apt/sources.d";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "$apt/sources.d";
		Dir::State "$apt/state";
		Dir::State::status "/dev/null";
		Dir::Cache "$apt/cache";
	EOF
}

# use_apt SUITE [TYPE [ARCHITECTURE]]: after this call apt-get and apt-cache use only that suite: its
# packages, of this or another architecture, or with TYPE deb-src its sources
use_apt() {
	apt=$CACHE/apt/$1${2:+-$2}${3:+-$3}
	mkdir -p "$apt/sources.d" "$apt/state/lists/partial" \
		"$apt/cache/archives/partial"
	site=$(mirror)
	[ -r "$KEYRING" ] || die "$KEYRING does not exist; run scripts/install-deps"
	(
		flock 9
		# Another one may be reading the files.
		echo "${2:-deb} [arch=${3:-amd64} signed-by=$KEYRING] $site $1 main" > "$apt/new" &&
			mv "$apt/new" "$apt/sources.list" &&
			write_apt_conf "${3:-amd64}" > "$apt/new" &&
			mv "$apt/new" "$apt/apt.conf" || exit 1
		# The package lists are read again after an hour.
		if [ -z "$(find "$apt/updated" -mmin -60 2>/dev/null)" ]; then
			APT_CONFIG="$apt/apt.conf" apt-get -qq update && touch "$apt/updated"
		fi
	) 9> "$apt/lock" || die "apt cannot read the package lists of suite $1 from $site"
	export APT_CONFIG="$apt/apt.conf"
}

# check_cache: stops if another user could have written into the cache. Wherever the folder
# is, other users cannot make one that belongs to us. The recordings in eval/ are only read.
check_cache() {
	[ -e "$CACHE" ] || mkdir -p -m 700 "$CACHE" || exit 1
	cc_bad=$(find "$CACHE/" -maxdepth 2 -path "$CACHE/eval" -prune -o \
		\( ! -uid "$(id -u)" -o ! -type l -perm /022 \) -print -quit)
	[ -z "$cc_bad" ] || die "the cache is not used, because ${cc_bad%/} belongs to another user" \
		"or others may write into it; correct that with chown and chmod, or set MEMWATCH_CACHE"
}

# entry_find FOLDER TYPES ACTION...: finds the files of an entry that can be used later.
# Builds see empty folders in place of those that are left out.
entry_find() (
	cd "$1" || exit 1
	types=$2
	shift 2
	find . \( -path ./tmp -o -path ./var/tmp -o -path ./run -o -path ./proc \) -prune -o \
		-type "$types" "$@"
)

# Prints the mode, and the checksum or the target, of each file of an entry.
entry_sums() {
	entry_find "$1" f,l -printf '%y %m %p -> %l\n' | LC_ALL=C sort &&
	entry_find "$1" f -print0 | LC_ALL=C sort -z | (cd "$1" && xargs -0r sha256sum)
}

# Prints a word that changes when a file of an entry is written, replaced or added, even if it
# then gets its old size and time again.
entry_state() {
	entry_find "$1" f,l -printf '%p %i %s %C@ %m %U\n' | LC_ALL=C sort | sha256sum
}

# entry_record FOLDER SUMS: writes the checksums of an entry to a file
entry_record() {
	entry_sums "$1" > "$2.$$" && mv "$2.$$" "$2"
}

# entry_valid FOLDER: whether the entry has the files that it was made with. Their content is
# read when a file has changed its state, and once a week; an entry of an older lab without
# checksums gets them now. An entry that is not valid is removed.
entry_valid() {
	ev_sums=${1%/*}/.${1##*/}.sums
	ev_seen=${1%/*}/.${1##*/}.seen
	ev_state=$(entry_state "$1")
	if [ ! -f "$ev_sums" ]; then
		say "recording the checksums of ${1#"$CACHE/"} (once)"
		entry_record "$1" "$ev_sums" || return 1
	elif [ "$ev_state" != "$(cat "$ev_seen" 2>/dev/null)" ] ||
	     [ -z "$(find "$ev_seen" -mtime -7)" ]; then
		make_work
		entry_sums "$1" > "$WORK/sums"
		cmp -s "$WORK/sums" "$ev_sums" || {
			say "${1#"$CACHE/"} is not what was stored, and is made again; the difference:"
			diff "$ev_sums" "$WORK/sums" | grep '^[<>]' | head -n 4 >&2
			mv "$1" "${1%/*}/.invalid.$$" && rm -rf "${1%/*}/.invalid.$$" "$ev_sums" "$ev_seen"
			return 1
		}
	fi
	[ "$ev_state" = "$(cat "$ev_seen" 2>/dev/null)" ] && [ -n "$(find "$ev_seen" -mtime -7)" ] ||
		{ echo "$ev_state" > "$ev_seen.$$" && mv "$ev_seen.$$" "$ev_seen"; }
}

# cache_entry KIND NAME KEY MAKER [ARGS]: prints the folder of a cache entry. If it does
# not exist yet, or is not valid, "MAKER DIR ARGS" fills an empty folder, which gets its name
# only when it is complete. "set -e" has no effect in a maker, so it must check each step
# itself. KIND/NAME is a link to the newest entry.
cache_entry() {
	ce_dir=$CACHE/$1/$2-$3
	ce_link=$CACHE/$1/$2
	ce_kind=$1
	ce_name=$2
	ce_base=$2-$3
	shift 3
	check_cache
	mkdir -p "$CACHE/$ce_kind"
	if [ ! -d "$ce_dir" ] || ! entry_valid "$ce_dir"; then
		(
			flock 8
			[ -d "$ce_dir" ] && exit 0
			ce_tmp=$(mktemp -d "$CACHE/$ce_kind/.$ce_name.XXXXXX")
			trap 'rm -rf "$ce_tmp" "$ce_tmp.log"' EXIT
			trap 'exit 130' HUP INT TERM
			chmod 755 "$ce_tmp"
			maker=$1
			shift
			"$maker" "$ce_tmp" "$@" >&2 || exit 1
			entry_record "$ce_tmp" "$CACHE/$ce_kind/.$ce_base.sums" || exit 1
			mv "$ce_tmp" "$ce_dir"
		) 8> "$CACHE/$ce_kind/.$ce_name.lock" ||
			die "the cache entry $ce_kind/$ce_name could not be made; see above"
	fi
	if [ "$(readlink "$ce_link" 2>/dev/null)" != "$ce_base" ]; then
		ln -sfn "$ce_base" "$ce_link"
	fi
	echo "$ce_dir"
}

# build_in FOLDER COMMAND...: runs a command of somebody else's sources. It starts in the
# folder, which it may write to. If root runs the lab, the command runs as BUILDER, without
# network, and sees the folder as /tmp; otherwise it runs as the developer.
build_in() {
	bi_dir=$1
	shift
	if [ "$(id -u)" -ne 0 ]; then
		(cd "$bi_dir" && "$@")
		return
	fi
	chown -R "$BUILDER:$BUILDER" "$bi_dir" || return 1
	# shellcheck disable=SC2016 # for the inner shell to expand
	unshare --mount --propagation private --net --ipc --pid --fork --kill-child --mount-proc \
		sh -eu -c '
		mount --bind "$1" /tmp
		cd /tmp
		builder=$2
		shift 2
		# This shell stays: when it ends, also by Ctrl-C, so does all that it started.
		trap "exit 130" INT TERM HUP
		rc=0
		env -i HOME=/tmp LC_ALL=C.UTF-8 PATH=/usr/bin:/bin \
			setpriv --reuid="$builder" --regid="$builder" --clear-groups \
			--inh-caps=-all --bounding-set=-all --no-new-privs "$@" || rc=$?
		exit $rc
	' build_in "$bi_dir" "$BUILDER" "$@"
}

# take_file FROM TO: copies what a build has made. A link could name any file of root's.
take_file() {
	[ -f "$1" ] && [ ! -L "$1" ] || { say "the build has not made ${1##*/}"; return 1; }
	cp --no-dereference --no-preserve=ownership "$1" "$2"
}

# chroot_entry SUITE PACKAGE...: prints a folder with a Debian system and these packages,
# for in_chroot
chroot_entry() {
	ch_suite=$1
	shift
	ch_key=$(echo "$LAB_VERSION $ch_suite $*" | hash_stdin)
	cache_entry chroot "$ch_suite" "$ch_key" make_chroot "$ch_suite" "$@"
}

make_chroot() {
	mc_dir=$1
	mc_suite=$2
	shift 2
	need_root "installing the build tools of Debian $mc_suite"
	need_tool debootstrap
	say "installing the build tools of Debian $mc_suite (some minutes, once)"
	mc_log=$mc_dir.log
	(
		unset APT_CONFIG
		site=$(mirror)
		eval "$(apt-config shell proxy Acquire::http::Proxy)"
		# shellcheck disable=SC2154 # set by the line above
		[ -z "${proxy:-}" ] || export http_proxy="$proxy"
		export DEBIAN_FRONTEND=noninteractive
		debootstrap --variant=minbase --keyring="$KEYRING" \
			"$mc_suite" "$mc_dir" "$site" || exit 1
		echo force-unsafe-io > "$mc_dir/etc/dpkg/dpkg.cfg.d/lab"
		cp -L /etc/resolv.conf /etc/hosts "$mc_dir/etc/" || exit 1
		in_chroot "$mc_dir" apt-get -qq -y --no-install-recommends \
			install "$@" || exit 1
		rm -rf "$mc_dir"/var/cache/apt/archives/*.deb \
			"$mc_dir"/var/lib/apt/lists/*
	) > "$mc_log" 2>&1 < /dev/null || {
		tail -n 20 "$mc_log" >&2
		rm -f "$mc_log"
		return 1
	}
	rm -f "$mc_log"
}

# in_chroot [-u] [-b FROM:TO]... DIR COMMAND...: runs the command in a mount namespace of its
# own, so that nothing stays mounted however the command ends. With -u it runs as BUILDER,
# without network, and its /tmp is empty.
in_chroot() {
	need_root "entering the folder with the build tools"
	ic_alone=
	if [ "$1" = -u ]; then
		ic_alone="--net --ipc --pid --fork --kill-child"
		shift
	fi
	# shellcheck disable=SC2016,SC2086 # for the inner shell to expand; a list of options
	unshare --mount --propagation private $ic_alone sh -eu -c '
		builder=$1
		shift
		binds=
		while [ "$1" = -b ]; do binds="$binds $2"; shift 2; done
		root=$1
		shift
		mount -t proc proc "$root/proc"
		for b in $binds; do
			mkdir -p "$root${b#*:}"
			mount --bind "${b%%:*}" "$root${b#*:}"
		done
		set -- env -i HOME=/ LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
		[ -n "$builder" ] || exec chroot "$root" "$@"
		mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
		mount --bind "$root/tmp" "$root/var/tmp"
		trap "exit 130" INT TERM HUP
		rc=0
		chroot "$root" setpriv --reuid="$builder" --regid="$builder" --clear-groups \
			--inh-caps=-all --bounding-set=-all --no-new-privs "$@" || rc=$?
		exit $rc
	' in_chroot "${ic_alone:+$BUILDER}" "$@"
}
