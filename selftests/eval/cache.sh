# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Where recordings are kept, and what they depend on beside their own
# definition. Sourced from the top of the tree.

eval_cache=${MEMWATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/memwatch}/eval
eval_tools=$(cd selftests/eval && cat record.c leak.c drop-free.c load.py programs/* | sha256sum)

# The name of a recording made from WORDS.
eval_key() { printf '%s\n' "$eval_tools" "$@" | sha256sum | cut -c1-16; }
