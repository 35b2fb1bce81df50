#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests what the lab takes from its cache, and the rights of what it builds. Boots nothing and
# needs no network. Speaks TAP.
set -u

LAB=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/../tap.sh
. "$LAB/../tap.sh"
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
export MEMWATCH_CACHE="$base/cache"
root_only="only root can change to another user"

# lab COMMANDS: runs commands with the lab's functions; messages are in $base/messages
lab() {
	(
		# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC1091
		. "$LAB/lib.sh"
		eval "$1"
	) 2> "$base/messages"
}

# Makes an entry of a program, a link and a file; counts how often.
maker='make_thing() {
	echo made >> "$base/made"
	mkdir "$1/bin" && printf "#!/bin/sh\nexit 0\n" > "$1/bin/prog" && chmod 755 "$1/bin/prog" &&
	ln -s prog "$1/bin/link" && echo data > "$1/data"
}'
take() { lab "$maker; cache_entry thing one 0123 make_thing"; }
made() { wc -l < "$base/made"; }
entry=$base/cache/thing/one-0123
sums=$base/cache/thing/.one-0123.sums
seen=$base/cache/thing/.one-0123.seen

# changed WHAT: the entry, which a test has just changed, must be made again
changed() {
	c_before=$(made)
	take > /dev/null
	is "an entry is made again after $1" "$(made)" $((c_before + 1))
	matches "the lab says that an entry is made again after $1" "$(cat "$base/messages")" \
		'thing/one-0123 is not what was stored'
}

plan
take > "$base/path"
is "the first use makes an entry" "$(cat "$base/path"),$(made)" "$entry,1"
take > "$base/path"
take > "$base/path"
is "later uses take it from the cache" "$(cat "$base/path"),$(made)" "$entry,1"

touch -r "$entry/bin/prog" "$base/time"
printf '#!/bin/sh\nexit 1\n' > "$entry/bin/prog"
touch -r "$base/time" "$entry/bin/prog"
changed "a file got another content of the same size and time"
touch "$entry/bin/sh"
changed "a file was added"
rm "$entry/data"
changed "a file was removed"
chmod 4755 "$entry/bin/prog"
changed "a mode was changed"
ln -sfn /bin/sh "$entry/bin/link"
changed "a link got another target"

# As if the disk had changed the data: the state of the file is what it was.
echo dat4 > "$entry/data"
lab "entry_state '$entry'" > "$seen"
before=$(made)
take > /dev/null
is "within a week the content of a file in the same state is not read" "$(made)" "$before"
touch -d '8 days ago' "$seen"
changed "its content changed on the disk, a week later"

rm -f "$sums" "$seen"
before=$(made)
take > /dev/null
is "an entry of an older lab is kept" "$(made)" "$before"
check "an entry of an older lab gets checksums" test -s "$sums"
echo more >> "$entry/data"
changed "it got its checksums late"

chmod g+w "$base/cache/thing"
take > "$base/path"
is "a cache that others may write to is refused" "$?,$(cat "$base/path")" "1,"
matches "the refusal says which folder, and what to do" "$(cat "$base/messages")" \
	"$base/cache/thing belongs to another user or others may write.*chmod"
chmod g-w "$base/cache/thing"
if [ "$(id -u)" -eq 0 ]; then
	chown 65533 "$entry"
	take > "$base/path"
	is "an entry of another user is refused" "$?,$(cat "$base/path")" "1,"
	chown 0 "$entry"
else
	skip "an entry of another user is refused" "$root_only"
fi

# --- The builder -----------------------------------------------------------

mkdir -m 700 "$base/build"
# shellcheck disable=SC2016 # for the builder's shell to expand
builder='make_work; build_in "$base/build" sh -c "$1"'
build() { lab "set -- '$1'; $builder"; }
if [ "$(id -u)" -eq 0 ]; then
	is "a build has its own user and group" "$(build 'echo $(id -u) $(id -G)')" "65533 65533"
	is "a build has no capability and can get none" \
		"$(build 'grep -cE "^(Cap[A-Z][a-z]+:.0+|NoNewPrivs:.1)$" /proc/self/status')" 6
	is "a build has no network" "$(build 'tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "')" lo
	is "a build sees no other process" "$(build 'ls -d /proc/[0-9]* | wc -l | xargs test 6 -gt && echo few')" \
		few
	build "cat /etc/shadow" > /dev/null
	check "a build cannot read what only root can" test $? -ne 0
	build "touch $LAB/../../built /built $MEMWATCH_CACHE/built" > /dev/null
	check "a build cannot write to the tree, the cache or the system" \
		test ! -e "$LAB/../../built" -a ! -e /built -a ! -e "$MEMWATCH_CACHE/built"
else
	for what in "has its own user and group" "has no capability and can get none" \
		"has no network" "sees no other process" "cannot read what only root can" \
		"cannot write to the tree, the cache or the system"; do
		skip "a build $what" "$root_only"
	done
fi
build 'echo result > result; ln -s /etc/passwd stolen' > /dev/null
lab "take_file '$base/build/result' '$base/taken'"
is "what a build made is taken" "$(cat "$base/taken")" result
lab "take_file '$base/build/stolen' '$base/taken'"
is "a link that a build made is not followed" "$?,$(cat "$base/taken")" "1,result"
tap_end
