#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests what scripts/install-deps says and asks before it changes this machine, with programs
# in place of dpkg-query, id and apt-get that install nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=selftests/tap.sh
. selftests/tap.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat > "$work/bin/dpkg-query" <<'END'
#!/bin/sh
for package; do :; done
case " $MISSING " in *" $package "*) ;; *) echo installed ;; esac
END
cat > "$work/bin/id" <<'END'
#!/bin/sh
echo "$USER_ID"
END
cat > "$work/bin/apt-get" <<'END'
#!/bin/sh
# What the user had seen at this moment.
cp "$SEEN" "$SEEN.before" 2>/dev/null
echo "$*" >> "$CALLS"
END
chmod +x "$work"/bin/*
export PATH="$work/bin:$PATH" CALLS="$work/calls" SEEN="$work/seen"

# deps USER-ID MISSING: without a terminal
deps() {
	: > "$CALLS"
	rm -f "$SEEN.before"
	USER_ID=$1 MISSING=$2 scripts/install-deps > "$SEEN" 2>&1 < /dev/null
}

# ask ANSWER: as root on a terminal, with two missing packages
ask() {
	: > "$CALLS"
	echo "$1" | USER_ID=0 MISSING="clang bc" script -qec scripts/install-deps /dev/null \
		> "$SEEN" 2>&1
}

plan
deps 0 ""
is "without missing packages nothing is printed" "$(cat "$SEEN")" ""
is "without missing packages nothing is installed" "$(cat "$CALLS")" ""

deps 0 "clang bc"
is "without a terminal, missing packages are installed" "$(tail -n 1 "$CALLS")" \
	"-q -y --no-install-recommends install clang bc"
matches "the missing packages are listed before apt-get runs" "$(cat "$SEEN.before")" '^  clang bc'

deps 1000 "clang bc"
is "a user who is not root is refused" "$?" 1
is "a user who is not root installs nothing" "$(cat "$CALLS")" ""
matches "a user who is not root is told the command" "$(cat "$SEEN")" '^  apt-get install clang bc'

ask n
is "who answers no on a terminal gets a failure" "$?" 1
is "who answers no on a terminal installs nothing" "$(cat "$CALLS")" ""
matches "the packages are listed before the question" "$(tr -d '\r' < "$SEEN")" '^  clang bc'
ask y
matches "who answers yes on a terminal installs the packages" "$(cat "$CALLS")" 'install clang bc'
tap_end
