#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Persistent memory on two machines in a row: pmem.sh first|second.  The first
# makes two namespaces in a region of the rig's persistent CXL device and a pool
# on them, and ends without ending anything; the second finds the region's
# namespaces by the labels on the device, and the pool by what is in them.
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh
# shellcheck source=selftests/vm/guest/cxl.sh
. /kvt/guest/cxl.sh

BYTES=$((256 << 20))
UUID=6f1a5c62-2d0e-4a51-8f4e-0d5f8f1b7a11
ND=/sys/bus/nd/devices
FAILED=0

# make_namespace REGION NUMBER MODE : half of the region, with its struct pages in
# memory (ram) or on the device (pmem).
make_namespace()
{
	local region=$1 number=$2 mode=$3 ns dax
	ns=$(cat "$ND/$region/namespace_seed") && dax=$(cat "$ND/$region/dax_seed") || return 1
	echo "00000000-0000-0000-0001-00000000000$number" >"$ND/$ns/uuid" &&
		echo dax >"$ND/$ns/holder_class" &&
		echo $((BYTES / 2)) >"$ND/$ns/size" &&
		echo "$mode" >"$ND/$dax/mode" &&
		echo $((2 << 20)) >"$ND/$dax/align" &&
		echo "00000000-0000-0000-0002-00000000000$number" >"$ND/$dax/uuid" &&
		echo "$ns" >"$ND/$dax/namespace" &&
		echo "$dax" >/sys/bus/nd/drivers/dax_pmem/bind || return 1
	udevadm settle
}

daxes()
{
	local dev
	for dev in /sys/bus/dax/devices/dax*; do
		[ ! -e "$dev" ] || echo "${dev##*/}"
	done
}

prepare()
{
	local module i
	for module in cxl_pmem nd_pmem dax_pmem device_dax kvtier; do
		modprobe "$module" || return 1
	done
	cxl_wait_endpoints 1 && cxl_create_pmem_region 100 "$BYTES" "$UUID" >/dev/null || return 1
	if [ "$1" = first ]; then
		make_namespace region0 0 pmem && make_namespace region0 1 ram || return 1
	fi
	# Namespaces are probed in the background, and nodes come last.
	for ((i = 0; i < 600; i++)); do
		{ read -r KVT_PMEM0 && read -r KVT_PMEM1; } < <(daxes) &&
			[ -c "/dev/$KVT_PMEM0" ] && [ -c "/dev/$KVT_PMEM1" ] && break
		sleep 0.1
	done
	export KVT_PMEM0 KVT_PMEM1
	[ -c "/dev/$KVT_PMEM0" ] && [ -c "/dev/$KVT_PMEM1" ]
}

# One namespace has a page map with its struct pages on the device, the other not.
# shellcheck disable=SC2317 # called by name
both_kinds()
{
	local where
	where=$(grep -ho 'struct pages [a-z ]*' /run/kmsg.log | sort -u)
	[ "$where" = $'struct pages in memory\nstruct pages on the device' ] || {
		echo "$where"
		return 1
	}
}

dmesg_mark
if ! prepare "$1"; then
	ls -l "$ND" /sys/bus/dax/devices /sys/bus/nd/drivers/*/
	echo "not ok pmem.prepare-$1"
	exit 1
fi
cd /kvt/kselftest || exit 1
if [ "$1" = first ]; then
	run_ktap pmem ./pmem -t before || FAILED=1
else
	for test in after damaged repaired poisoned; do
		run_ktap pmem ./pmem -t "$test" || FAILED=1
	done
	run_test pmem.page-maps both_kinds || FAILED=1
	run_test pmem.tools bash -eu /kvt/guest/pmem_tools.sh || FAILED=1
	run_ktap pmem ./pmem -t removed || FAILED=1
fi
exit $FAILED
