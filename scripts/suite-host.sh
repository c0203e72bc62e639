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
make -s --no-print-directory "-j$(nproc)" -C "$KVT_ROOT/selftests/host" "$target" || status=1
for part in lib userspace; do
	make -s --no-print-directory "-j$(nproc)" -C "$KVT_ROOT/$part" check || status=1
done
exit $status
