#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What runs on the build machine itself: the core under sanitizers, and the
# tests of library and tool.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

status=0
target=check
[ "${KVT_LENGTH:-full}" = full ] || target=$KVT_LENGTH

core()
{
	make -s --no-print-directory "-j$(nproc)" -C "$KVT_ROOT/selftests/host" "$target"
}

library_and_tool()
{
	local part ret=0
	for part in lib userspace; do
		make -s --no-print-directory "-j$(nproc)" -C "$KVT_ROOT/$part" check || ret=1
	done
	return $ret
}

# Somebody waits for a quick one, so both halves run at a time; they have no file in common. The
# others have all the time beside machines that keep both processors busy.
if [ "$target" = quick ]; then
	said=$(mktemp)
	trap 'rm -f "$said"' EXIT
	library_and_tool >"$said" 2>&1 &
	core || status=1
	wait $! || status=1
	cat "$said"
else
	core || status=1
	library_and_tool || status=1
fi
exit $status
