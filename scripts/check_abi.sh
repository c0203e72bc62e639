#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Every sysfs file of the driver has an entry in Documentation/ABI and every entry
# a file; who may write it is the same in both: check_abi.sh [TREE]
#
# What there is, is read off the attribute tables and the module parameters.
# Prints each difference and exits 1 when there is one.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
CLASS=/sys/class/kvtier/kvtier'<N>'
PARAMETERS=/sys/module/kvtier/parameters
SYSFS=driver/kvt_sysfs.c
ABI=(Documentation/ABI/testing/*)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# attributes PREFIX FOLDER : files whose attributes are named PREFIX in a table.
attributes()
{
	grep -o "&$1_attr_[a-z0-9_]*\.attr" "$SYSFS" | sort -u |
		sed "s,&$1_attr_\(.*\)\.attr,$2/\1,"
}

# Files with a store function, by hand or by macro; parameters by their mode, but tests' own.
writable()
{
	sed -n -E "s,^static ssize_t ([a-z0-9_]+)_store\(.*,$CLASS/\1,p
		s,^static int ns_([a-z0-9_]+)_store\(.*,$CLASS/namespaces/<id>/\1,p
		s,^KVT_(WATERMARK|SETTING)\(([a-z0-9_]+)[)\,].*;,$CLASS/\2,p
		s,^KVT_NS_LIMIT\(([a-z0-9_]+)\, .*,$CLASS/namespaces/<id>/\1,p" "$SYSFS" |
		grep -v -e '/kvt_watermark$' -e '/kvt_setting$' -e '/kvt_ns_sysfs$' || true
	sed -n -E "s,^module_param_(named|cb)\(([a-z0-9_]+)\,.*0[246]*[26][046]*\);,$PARAMETERS/\2,p" \
		driver/*.c | grep -v /test_
}

in_driver()
{
	attributes class "${CLASS%/*}"
	attributes dev "$CLASS"
	attributes tier "$CLASS/tiers/<name>"
	attributes ns "$CLASS/namespaces/<id>"
	sed -n -E "s,^module_param(_named|_cb)?\(([a-z0-9_]+)\,.*,$PARAMETERS/\2,p" driver/*.c |
		grep -v /test_
}

# Entries that lack a part are not entries.
documented()
{
	awk -v mode="$1" '
	/^What:/ { what = $2; parts = 1; next }
	/^(Date|KernelVersion|Contact):/ && NF > 1 { parts++ }
	/^Description:/ { parts++; getline
		if (parts == 5 && $1 ~ "^\\((RO|RW)" && $1 ~ "^\\(" mode)
			print what }' "${ABI[@]}"
}

compare()
{
	sort -u >"$WORK/code" < <("$2")
	sort -u >"$WORK/abi" < <(documented "$3")
	if [ ! -s "$WORK/code" ]; then
		echo "$1: nothing found in the driver"
		return 1
	fi
	diff -U0 --label driver --label Documentation/ABI "$WORK/code" "$WORK/abi" || {
		echo "$1: driver and Documentation/ABI differ"
		return 1
	}
}

status=0
compare files in_driver '' || status=1
compare 'writable files' writable RW || status=1
if documented '' | sort | uniq -d | grep .; then
	echo "documented twice"
	status=1
fi
exit "$status"
