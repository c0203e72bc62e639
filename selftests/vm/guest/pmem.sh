#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Persistent memory on two machines in a row: pmem.sh first|second.  The first
# makes two namespaces in a region of the rig's persistent CXL device and a pool
# on them, and ends without ending anything; the second finds the region's
# namespaces by the labels on the device, and the pool by what is in them. Both
# have the tool make the region.
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh
# shellcheck source=selftests/vm/guest/cxl.sh
. /kvt/guest/cxl.sh
# shellcheck source=selftests/vm/guest/udev.sh
. /kvt/guest/udev.sh

UUID=6f1a5c62-2d0e-4a51-8f4e-0d5f8f1b7a11
ND=/sys/bus/nd/devices
FAILED=0

prepare()
{
	local module daxes said=/run/create maps=() status=0
	for module in cxl_pmem nd_pmem dax_pmem device_dax kvtier; do
		modprobe "$module" || return 1
	done
	cxl_wait_endpoints 1 || return 1
	# The second machine asks for another map, and gets what is there.
	[ "$1" != first ] || maps=(--map dev --map mem)
	kvtier -j cxl create --type pmem --memdev serial=100 --uuid "$UUID" "${maps[@]}" \
		>"$said" || status=1
	cat "$said"
	[ "$status" -eq 0 ] || return 1
	daxes=$(grep -o '"dax[0-9.]*"' "$said" | tr -d '"' | sort -u)
	{ read -r KVT_PMEM0 && read -r KVT_PMEM1; } <<<"$daxes" || return 1
	udevadm settle
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

# wants DAX : does udev have the assembly of its pool started.
wants()
{
	udev_wants "/sys/bus/dax/devices/$1"
}

# shellcheck disable=SC2317 # called by name
pool_of_members()
{
	kvtier -j pool members | grep -o '"pool_uuid": *"[^"]*"' | head -n 1 | cut -d '"' -f 4
}

# A member starts the assembly of its pool as soon as it can be looked at, and that is said of
# it from then on, whatever drivers it has: only what is new is started.
# shellcheck disable=SC2317 # called by name
udev_starts()
{
	local status=1
	# With another driver it could not be looked at.
	kvtier cxl unbind "$KVT_PMEM0" "$KVT_PMEM1" || true
	udev_rule_on "$(pool_of_members)"
	kvtier cxl bind "$KVT_PMEM0" "$KVT_PMEM1" && ! wants "$KVT_PMEM0" &&
		kvtier cxl unbind "$KVT_PMEM0" "$KVT_PMEM1" && wants "$KVT_PMEM0" &&
		wants "$KVT_PMEM1" && grep -qx "KVTIER_POOL=$(pool_of_members)" "$UDEV_PROPS" &&
		kvtier cxl bind "$KVT_PMEM1" && wants "$KVT_PMEM1" &&
		udevadm trigger --action=change "/sys/bus/dax/devices/$KVT_PMEM1" &&
		wants "$KVT_PMEM1" && kvtier cxl unbind "$KVT_PMEM1" && wants "$KVT_PMEM1" &&
		status=0
	[ "$status" -eq 0 ] || cat "$UDEV_PROPS"
	udev_rule_off
	return "$status"
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
	run_test pmem.udev udev_starts || FAILED=1
	run_ktap pmem ./pmem -t removed || FAILED=1
	run_ktap pmem ./pmem -t pulled || FAILED=1
fi
exit $FAILED
