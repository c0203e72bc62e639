#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# policy_report.sh [DIR]: what policies keep of the traces in DIR, or of generated
# ones; table on standard output, charts in out/policy. The exit status is 1 when the
# default policy does not keep what is promised of it.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
OUT=${OUT:-$ROOT/out}
DIR=${1:-}

shopt -s nullglob
KIND=()
if [ -z "$DIR" ]; then
	KIND=(--generated)
	TRACES=(gen:chat:300:6000 gen:agent:24:6000 gen:mix:120:6000)
else
	TRACES=("$DIR"/*.csv "$DIR"/*.csv.zst "$DIR"/*.jsonl "$DIR"/*.jsonl.zst)
fi
if [ ${#TRACES[@]} -eq 0 ]; then
	echo "policy_report.sh: no traces in $DIR" >&2
	exit 2
fi
exec python3 "$ROOT/selftests/host/policy_report.py" "${KIND[@]}" "$OUT/host/kvtier-sim" "$OUT/policy" \
	"${TRACES[@]}"
