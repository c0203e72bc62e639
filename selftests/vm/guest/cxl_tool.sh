#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Regions as an operator makes them, with the tool, on four devices of 512 MiB: serials 1
# and 3 below the first host bridge, 2 and 4 below the second.  Windows: decoder0.0 and
# decoder0.1 are of one bridge each, decoder0.2 is interleaved over both.  What the tool
# says is compared with sysfs, and blocks are compared with what was put.
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh
# shellcheck source=selftests/vm/guest/cxl.sh
. /kvt/guest/cxl.sh

OUT=/run/said
HALF=$((256 << 20))
WHOLE=$((512 << 20))
FAILED=0
TAKEN=0		# of each device, by regions that are there already
AS=()		# what runs the tool as another user
REGION=
DAX=
VALUE=

fail()
{
	echo "$*"
	[ ! -s "$OUT" ] || cat "$OUT"
	exit 1
}

run()
{
	kvtier -j "$@" >"$OUT" 2>&1 || fail "failed: kvtier $*"
}

# refused STATUS PATTERN COMMAND... : with that in what it says, and nothing has changed.
refused()
{
	local status=0 wanted=$1 pattern=$2 before
	shift 2
	before=$(state)
	"${AS[@]}" kvtier "$@" >"$OUT" 2>&1 || status=$?
	[ "$status" -eq "$wanted" ] || fail "status $status, not $wanted: kvtier $*"
	grep -q -- "$pattern" "$OUT" || fail "does not say '$pattern': kvtier $*"
	[ "$(state)" = "$before" ] ||
		fail "changed by kvtier $*:" "$(diff <(echo "$before") <(state))"
}

# What there is of regions and dax devices, and who has what of each device. Without a process
# for each file: that takes long here.
state()
{
	local file value
	for file in /sys/bus/dax/drivers_autoprobe "$CXL_BUS"/endpoint*/decoder*/dpa_size; do
		read -r value <"$file"
		echo "$file $value"
	done
	for file in "$CXL_BUS"/region* /sys/bus/dax/devices/dax*; do
		[ ! -e "$file" ] || echo "$file $(readlink "$file/driver")"
	done
}

# json KEY : the first value of that name in what was said, into VALUE; of a list what is in it,
# with commas.
json()
{
	local text
	text=$(<"$OUT")
	VALUE=
	[[ $text =~ \"$1\":(\[[^]]*\]|\"[^\"]*\"|[^],}\"]*) ]] || return 0
	VALUE=$(tr -d '[]"' <<<"${BASH_REMATCH[1]}")
}

says()
{
	json "$1"
	[ "$VALUE" = "$2" ] || fail "$1 is said to be '$VALUE', not '$2'"
}

is()
{
	local got
	read -r got <"$CXL_BUS/$REGION/$1"
	[ "$got" = "$2" ] || fail "$1 of $REGION is '$got', not '$2'"
}

# target_serial N : of the region's Nth device, as sysfs has it.
target_serial()
{
	local decoder serial
	read -r decoder <"$CXL_BUS/$REGION/target$1"
	decoder=$(readlink -f "$CXL_BUS/$decoder")
	read -r serial <"${decoder%/*}/uport/serial"
	printf '%d' "$serial"
}

# create DECODER BYTES SERIAL,... ARG... : BYTES of each device, these in this order.
create()
{
	local root=$1 bytes=$2 serials=$3 nr i found=''
	shift 3
	run cxl create "$@"
	json region
	REGION=$VALUE
	json dax
	DAX=$VALUE
	[ -e "$CXL_BUS/$root/$REGION" ] || fail "no $REGION below $root"
	nr=$(tr ',' '\n' <<<"$serials" | wc -l)
	is interleave_ways "$nr"
	is size "$(printf '0x%x' $((bytes * nr)))"
	is commit 1
	for ((i = 0; i < nr; i++)); do
		found+=",$(target_serial "$i")"
	done
	[ "${found#,}" = "$serials" ] || fail "over devices ${found#,}, not $serials"
	says serials "$serials"
	says size_bytes $((bytes * nr))
	says decoder "$root"
	[ "$(cat "/sys/bus/dax/devices/$DAX/size")" -eq $((bytes * nr)) ] ||
		fail "$DAX has not the region's size"
	# And not with kmem, which is there and would take it.
	[ "$(basename "$(readlink "/sys/bus/dax/devices/$DAX/driver")")" = kvtier ] ||
		fail "$DAX is not kvtier's"
	listed "$serials" $((bytes * nr)) $((WHOLE - TAKEN - bytes))
}

# listed SERIALS BYTES FREE : the list has the region as it was made, and what is free of each device.
listed()
{
	local serial mem free
	run cxl list
	for serial in ${1//,/ }; do
		mem=$(grep -oE "\{[^{}]*\"serial\":$serial,[^{}]*\}" "$OUT" | head -n 1)
		free=$(grep -oE '"free_bytes":[0-9]*' <<<"$mem")
		[ "${free#*:}" -eq "$3" ] || fail "not $3 bytes of serial $serial are free: $mem"
	done
	grep -oE "\{[^{}]*\"region\":\"$REGION\"[^{}]*\}" "$OUT" >"$OUT.region" ||
		fail "no $REGION in the list"
	mv "$OUT.region" "$OUT"
	says dax "$DAX"
	says driver kvtier
	says size_bytes "$2"
	says serials "$1"
}

# A pool on the region; what is read back is what was put. Devices take turns every few hundred
# bytes, so each has a part of each block.
use()
{
	local ns=(--ns tool --block-bytes 256K) i
	modprobe kvtier
	run pool create --tier "dax:dev=$DAX,size=8M,name=cxl"
	for i in 1 2 3; do
		head -c 262144 /dev/urandom >"/run/put$i"
		run put "${ns[@]}" --key-text "$i" "/run/put$i"
	done
	for i in 1 2 3; do
		run get "${ns[@]}" --key-text "$i" --output /run/got
		cmp "/run/put$i" /run/got || fail "block $i is not what was put"
	done
	kvtier cxl list | grep -q "^$REGION .*kvtier0/cxl" || fail "the list has not who uses it"
	refused 1 'is tier kvtier0/cxl' cxl destroy "$REGION"
	run pool destroy 0
	rm -f /run/put* /run/got
}

# Everything is given back.
nothing_left()
{
	[ "$(state)" = "$AT_FIRST" ] || fail "left: $(diff <(echo "$AT_FIRST") <(state))"
	run cxl list
	[ "$(grep -oE "\"free_bytes\":$WHOLE" "$OUT" | wc -l)" -eq 4 ] || fail "not all is free"
}

one_region()
{
	create "$1" "$2" "$3" "${@:4}"
	use
	run cxl destroy "$REGION"
	says destroyed "$REGION"
	nothing_left
}

# Half of a device, in the window of the second bridge: the first one's is tried before.
part() { one_region decoder0.1 "$HALF" 2 --memdev serial=2 --size 256M; }

# Sizes are of each device, and rounded down to pieces.
below_a_bridge()
{
	one_region decoder0.0 "$HALF" 3,1 --interleave --memdev serial=3 --memdev serial=1 --size 511M
}

# Named in the order that the window cannot have.
over_bridges()
{
	one_region decoder0.2 "$WHOLE" 1,2 --interleave --memdev serial=2 --memdev serial=1 \
		--decoder decoder0.2
}

over_all() { one_region decoder0.2 "$WHOLE" 1,2,3,4 --interleave; }

# First the second bridge's are named: of each bridge the order stays as it is.
over_all_named()
{
	create decoder0.2 "$WHOLE" 3,4,1,2 --interleave --memdev serial=4 --memdev serial=2 \
		--memdev serial=3 --memdev serial=1
	run cxl destroy "$REGION"
	nothing_left
}

# Two of one device are taken down in one order only, which the tool finds.
two_of_a_device()
{
	local first
	create decoder0.0 "$HALF" 1 --memdev serial=1 --size 256M
	first=$REGION
	TAKEN=$HALF
	create decoder0.0 "$HALF" 1 --memdev serial=1 --size 256M
	refused 1 "$REGION lies on memory" cxl destroy "$first"
	refused 1 'is in use' cxl create --interleave --memdev serial=1 --memdev serial=3
	run cxl destroy all
	says destroyed "$REGION,$first"
	nothing_left
}

# Ports are given memory from low addresses up, and the kernel has the last word on that.
window_order()
{
	create decoder0.2 "$HALF" 1,2 --interleave --memdev serial=1 --memdev serial=2 --size 256M
	refused 1 'in lower windows are made before' cxl create --memdev serial=3
	run cxl destroy "$REGION"
	nothing_left
}

# Every device's memory as a region of its own, each in its bridge's window.
all_alone()
{
	local root
	run cxl create
	[ "$(grep -o '"driver":"kvtier"' "$OUT" | wc -l)" -eq 4 ] || fail "not four regions"
	for root in decoder0.0 decoder0.1; do
		[ "$(grep -o "\"decoder\":\"$root\"" "$OUT" | wc -l)" -eq 2 ] ||
			fail "not two regions in $root"
	done
	json region
	REGION=$VALUE
	is interleave_ways 1
	refused 1 'no free CXL RAM' cxl create --interleave
	run cxl destroy all
	nothing_left
}

refusals()
{
	local pair=(--interleave --memdev serial=1 --memdev)
	refused 1 "memdev 'serial=9'" cxl create "${pair[@]}" serial=9
	refused 1 "memdev 'mem4'" cxl create "${pair[@]}" mem4
	refused 1 'a region of 3 devices in any' cxl create "${pair[@]}" serial=2 --memdev serial=3
	refused 1 'a region of 1 devices in decoder0.2' cxl create --memdev serial=1 --decoder decoder0.2
	refused 1 'spread evenly' cxl create "${pair[@]}" serial=3 --decoder decoder0.2
	refused 1 'spread evenly' cxl create "${pair[@]}" serial=2 --decoder decoder0.0
	refused 1 'not below' cxl create --memdev serial=1 --decoder decoder0.1
	refused 1 'decoder0.7' cxl create --memdev serial=1 --decoder decoder0.7
	refused 2 'is named twice' cxl create "${pair[@]}" serial=1
	refused 1 'bytes free, not' cxl create "${pair[@]}" serial=2 --size 1G
	refused 1 'pieces of 256M' cxl create "${pair[@]}" serial=2 --size 255M
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	refused 1 'run it as root' cxl create
	AS=()
	nothing_left
}

# fail() ends the test, not all of them.
alone()
{
	("$@")
}

dmesg_mark
cxl_wait_endpoints 4 || exit 1
modprobe kmem || exit 1
if [ ! -d /sys/bus/dax/drivers/kmem ]; then
	echo "there is no kmem driver that would take new regions"
	exit 1
fi
modprobe kvtier || exit 1
# An endpoint is there before its decoders are.
AT_FIRST=
for _ in {1..300}; do
	[ "$(find "$CXL_BUS"/endpoint*/ -name 'decoder*.0' | wc -l)" -ne 4 ] ||
		[ "$(state)" != "$AT_FIRST" ] || break
	AT_FIRST=$(state)
	sleep 0.2
done
for test in part below_a_bridge over_bridges over_all over_all_named two_of_a_device window_order all_alone refusals; do
	run_test "cxl.${test//_/-}" alone "$test" || FAILED=1
	# What a test leaves when it fails is not the next one's.
	[ "$(state)" = "$AT_FIRST" ] || { kvtier pool destroy 0; kvtier cxl destroy all; } >/dev/null 2>&1
done
exit $FAILED
