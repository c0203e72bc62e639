#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The modules compile, without a warning, for the newest kernel Debian offers.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

if ! headers=$("$KVT_ROOT/selftests/vm/kernel.sh" newest-headers); then
	echo "skip newest.build # no newer kernel headers could be fetched"
	exit 0
fi
log="$KVT_OUT/check/newest-build.log"
mkdir -p "${log%/*}"
echo "# $(basename "$headers")"
if "$KVT_ROOT/scripts/build-modules.sh" newest >"$log" 2>&1 &&
	! grep -E "build-newest.*(warning|error):|^WARNING: modpost" "$log"; then
	echo "ok newest.build"
else
	sed 's/^/# /' "$log"
	echo "not ok newest.build"
	exit 1
fi
