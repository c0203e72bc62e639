#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The module decides as the simulator does: suite-same.sh [TRACE]...
#
# On the stock kernel, with a module that has hooks for tests: program same's own trace, the
# generator's, and where TRACES names a folder the beginnings of those in it, or of the files
# given, some of them only but at full length. Then what program isolate has to set the clock for.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

{
	"$KVT_ROOT/scripts/build-modules.sh" stock
	"$KVT_ROOT/scripts/build-modules.sh" hooked
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest
} >&2
PAYLOAD=$(mktemp -d)
ALL=
[ "${KVT_LENGTH:-full}" != long ] || ALL=yes
trap 'rm -rf "$PAYLOAD"' EXIT
cp "$KVT_OUT/hooked/kvtier.ko" "$PAYLOAD/"
mkdir "$PAYLOAD/traces"
if [ $# -gt 0 ]; then
	cp "$@" "$PAYLOAD/traces/"
	ALL=yes
elif [ -n "${TRACES:-}" ]; then
	find "$TRACES" -maxdepth 1 \( -name '*.csv' -o -name '*.csv.zst' -o -name '*.jsonl' \
		-o -name '*.jsonl.zst' \) -exec cp {} "$PAYLOAD/traces/" \;
else
	echo "skip same.traces # no TRACES=DIR given (real traces are not part of the tree)"
fi
"$KVT_ROOT/selftests/vm/run.sh" --cxl 0 --nvme 0 --mem 4096 --timeout 7200 \
	--env KVT_LENGTH="${KVT_LENGTH:-full}" --env KVT_KERNEL=stock --env KVT_TEST_TIMEOUT_S=3600 \
	--env KVT_SAME_REQUESTS="${KVT_SAME_REQUESTS:-}" --env KVT_SAME_ALL="$ALL" \
	--payload "$PAYLOAD" -- bash /kvt/guest/same.sh
