#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The tool's commands for CXL memory on emulated devices: suite-cxl.sh [stock|debug].
# Two host bridges with two devices each, so that a region can be over one of them, over
# both, and over all.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

kernel=${1:-stock}
{
	"$KVT_ROOT/scripts/build-modules.sh" "$kernel"
	make -s --no-print-directory -C "$KVT_ROOT" tools
} >&2
exec "$KVT_ROOT/selftests/vm/run.sh" --kernel "$kernel" --timeout 900 --nvme 0 \
	--cxl 4 --cxl-size 512 --cxl-bridges 2 \
	--env KVT_KERNEL="$kernel" -- bash /kvt/guest/cxl_tool.sh
