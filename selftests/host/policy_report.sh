#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# policy_report.sh [DIR]: what policies keep of the traces in DIR, or of generated
# ones; table on standard output, charts in out/policy.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
OUT=${OUT:-$ROOT/out}
DIR=${1:-}

generate()
{
	local kind users
	DIR=$OUT/policy/traces
	mkdir -p "$DIR"
	while read -r kind users; do
		"$OUT/bin/kvtier" gen --kind "$kind" --sessions "$users" --requests 6000 \
			--out "$DIR/$kind.csv" >/dev/null
	done <<-END
	chat 300
	agent 24
	mix 120
	END
}

[ -n "$DIR" ] || generate
shopt -s nullglob
TRACES=("$DIR"/*.csv "$DIR"/*.csv.zst "$DIR"/*.jsonl "$DIR"/*.jsonl.zst)
if [ ${#TRACES[@]} -eq 0 ]; then
	echo "policy_report.sh: no traces in $DIR" >&2
	exit 2
fi
exec python3 "$ROOT/selftests/host/policy_report.py" "$OUT/host/kvtier-sim" "$OUT/policy" \
	"${TRACES[@]}"
