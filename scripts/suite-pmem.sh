#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Persistent memory across a restart: suite-pmem.sh [stock|debug].  One machine
# leaves a pool on a persistent CXL device and is switched off under load; the
# next one has only the device.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

kernel=${1:-stock}
timeout=500
[ "$kernel" = stock ] || timeout=1500
{
	"$KVT_ROOT/scripts/build-modules.sh" "$kernel"
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest
} >&2
TMP=$(mktemp -d "${TMPDIR:-/tmp}/kvtier-pmem.XXXXXX")
trap 'rm -rf "$TMP"' EXIT
status=0
for machine in first second; do
	"$KVT_ROOT/selftests/vm/run.sh" --kernel "$kernel" --timeout "$timeout" --cxl 0 --nvme 0 \
		--pmem "$TMP" --env KVT_KERNEL="$kernel" -- bash /kvt/guest/pmem.sh "$machine" ||
		status=1
	[ "$status" -eq 0 ] || break
done
exit $status
