#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Loads every *kunit*.ko of ours and translates the KTAP they write to the
# kernel log: a case becomes "ok kunit.SUITE.CASE" or "not ok ...".
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh

FAILED=0
FOUND=0

# Cases are indented by one level below their suite; parameters of a case by
# two, and summed up in the case's own line.
translate()
{
	awk '
	function name(s) { sub(/^ *(not )?ok [0-9]+ (- )?/, "", s); sub(/ #.*/, "", s); return s }
	/^    # Subtest: / { suite = $3; planned = -1; seen = 0; next }
	/^    1\.\.[0-9]+/ { sub(/^    1\.\./, ""); planned = $1 + 0; next }
	/^    (not )?ok [0-9]+ / {
		seen++
		if ($0 ~ /# SKIP/) {
			reason = $0; sub(/.*# SKIP */, "", reason)
			print "skip kunit." suite "." name($0) " # " reason
		} else if ($1 == "not") {
			print "not ok kunit." suite "." name($0)
		} else {
			print "ok kunit." suite "." name($0)
		}
		next
	}
	/^(not )?ok [0-9]+ / && suite != "" {
		if (seen != planned)
			print "not ok kunit." suite ".complete"
		suite = ""
		next
	}
	{ print "# " $0 }
	END { if (suite != "") print "not ok kunit." suite ".complete" }'
}

for module in /lib/modules/*/extra/*kunit*.ko; do
	[ -e "$module" ] || continue
	FOUND=1
	name=$(basename "$module" .ko)
	dmesg_mark
	if ! modprobe "$name"; then
		echo "not ok kunit.$name.load"
		FAILED=1
		continue
	fi
	if ! dmesg_check "$name"; then
		echo "not ok kunit.$name.log"
		FAILED=1
	fi
	results=$(printf '%s\n' "${KVT_STRETCH[@]}" | cut -d';' -f2- |
		sed -n '/KTAP version/,$p' | translate)
	printf '%s\n' "$results"
	if grep -q '^not ok ' <<<"$results" || ! grep -q '^ok ' <<<"$results"; then
		FAILED=1
	fi
	rmmod "$name" || FAILED=1
done
if [ $FOUND = 0 ]; then
	echo "# no KUnit module was built"
	echo "not ok kunit"
	FAILED=1
fi
exit $FAILED
