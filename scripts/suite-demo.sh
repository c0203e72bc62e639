#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The demo, start to end, with its own workload and, where TRACES names a
# folder, with real traces.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

status=0
run_demo()
{
	local name=$1
	shift
	if env "$@" "$KVT_ROOT/selftests/vm/demo.sh"; then
		echo "ok demo.$name"
	else
		echo "not ok demo.$name"
		status=1
	fi
}

run_demo generated TRACES=
if [ -n "${TRACES:-}" ]; then
	run_demo traces TRACES="$TRACES"
else
	echo "skip demo.traces # no TRACES=DIR given (real traces are not part of the tree)"
fi
exit $status
