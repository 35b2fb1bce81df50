# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The folder of the recordings, and the key of a recording: a hash of its definition and of
# the tools that made it. Sourced from the top of the tree.

eval_cache=${MEMWATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/memwatch}/eval
eval_tools=$(cd selftests/eval && cat record.c leak.c drop-free.c load.py programs/* | sha256sum)

# The key of the recording that is defined by WORDS.
eval_key() { printf '%s\n' "$eval_tools" "$@" | sha256sum | cut -c1-16; }
