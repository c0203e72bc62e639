#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints where the emulator's plugin is, see yield.c, or nothing if this emulator takes it not: what
# it is for is time alone. Made and tried once for an emulator, kept in the cache.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

# make_plugin FILE : a file that is empty if it is of no use.
make_plugin()
{
	local file=$1 new=$1.new
	[ ! -e "$file" ] || return 0
	gcc -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared -o "$new" "$HERE/yield.c"
	if ! echo quit | timeout 60 qemu-system-x86_64 -nodefaults -display none -M none -accel tcg \
		-monitor stdio -plugin "$new" >"$file.log" 2>&1; then
		log "the emulator takes no plugin, machines will wait for locks at the processor's expense:" \
			"$(tail -n 1 "$file.log")"
		: >"$new"
	fi
	mv "$new" "$file"
}

key=$({ cat "$HERE/yield.c" "$0"; qemu-system-x86_64 --version; } | sha256sum | cut -c1-16)
with_lock plugin make_plugin "$KVT_CACHE/yield-$key.so"
[ ! -s "$KVT_CACHE/yield-$key.so" ] || echo "$KVT_CACHE/yield-$key.so"
