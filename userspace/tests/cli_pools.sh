#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Pools that are on block devices: which there are, assembly, claims: cli_pools.sh TOP OUT
# Devices are files with nothing but superblocks; the kernel is the stand-in.
# shellcheck disable=SC2030,SC2031 # each test has a subshell and variables of its own
# shellcheck disable=SC2317 # functions are called by the names in the last lines
# shellcheck source=userspace/tests/cli_lib.sh
. "$1/userspace/tests/cli_lib.sh"
# shellcheck source=userspace/tests/fake_sysfs.sh
. "$tests/fake_sysfs.sh"

# device NAME POOL MEMBER GENERATION TIER [MEMBER:GENERATION]...
device()
{
	local name=$1
	export KVTIER_DEV=$work/dev
	mkdir -p "$KVTIER_DEV" "$KVTIER_SYSFS/class/block/$name"
	echo 4096 >"$KVTIER_SYSFS/class/block/$name/size"
	shift
	"$tests/damage.py" "$KVTIER_DEV/${name//!//}" member "$@"
}

# other NAME: a device that is nobody's.
other()
{
	mkdir -p "$KVTIER_SYSFS/class/block/$1"
	echo 4096 >"$KVTIER_SYSFS/class/block/$1/size"
	truncate -s 2M "$KVTIER_DEV/$1"
}

uuid()
{
	python3 -c 'import sys, uuid
print(uuid.UUID(bytes=bytes([int(sys.argv[1])] * 16)))' "$1"
}

two_members()
{
	device sda 7 1 10 log0 1:10 2:20
	device sdb 7 2 20 log1 1:10 2:20
	other sdc
}

# Reading it would last for as long as it is so.
test_suspended()
{
	two_members
	mkdir "$KVTIER_SYSFS/class/block/sdb/dm"
	echo 0 >"$KVTIER_SYSFS/class/block/sdb/dm/suspended"
	want 0 -j pool members
	json 'j["pools"][0]["complete"]'
	echo 1 >"$KVTIER_SYSFS/class/block/sdb/dm/suspended"
	want 0 -j pool members
	json "j['pools'][0]['missing'] == ['$(uuid 2)'] and len(j['pools'][0]['members']) == 1"
	json '"suspended" in j["unusable"][0]["problem"] and j["unusable"][0]["device"].endswith("sdb")'
	# It is not given up for that, unless somebody says so.
	want 1 -j pool assemble
	json 'j["error"]["name"] == "ENOMEDIUM" and "cannot be used" in j["error"]["hint"]'
	want 1 -j pool assemble --degraded
	json 'j["error"]["name"] == "EAGAIN" and "sdb" in j["error"]["message"]'
	want 0 -j pool list
	json 'j == []'
	want 0 pool assemble --degraded "$KVTIER_DEV/sda"
}

test_members()
{
	two_members
	device cciss 9 5 3 other 5:3
	want 0 -j pool members
	json '[len(p["members"]) for p in j["pools"]] == [1, 2] and not j["unusable"]'
	json "j['pools'][1]['pool_uuid'] == '$(uuid 7)' and j['pools'][1]['complete']"
	json '[m["name"] for m in j["pools"][1]["members"]] == ["log0", "log1"]'
	json 'j["pools"][1]["members"][0]["generation"] == 10'
	want 0 pool members
	says "pool $(uuid 7): complete"
	says "$KVTIER_DEV/sda"
	! grep -q sdc "$work/stdout" || fail 'shows a stranger'
	want 0 -j pool members "$KVTIER_DEV/sda" "$KVTIER_DEV/sdc" "$KVTIER_DEV/none"
	json "j['pools'][0]['missing'] == ['$(uuid 2)'] and not j['pools'][0]['complete']"
	json '[u["problem"] for u in j["unusable"]] ==
		["is not a member of a kvtier pool", "No such file or directory"]'
	json '"in_use" not in j["unusable"][0] and not j["pools"][0]["members"][0]["in_use"]'
	want 0 pool members "$KVTIER_DEV/sda"
	says "missing: member $(uuid 2)"
	rm -r "$KVTIER_SYSFS/class/block"
	want 0 pool members
	complains 'no device is a member'
}

test_odd_devices()
{
	two_members
	# On a device that another is made of is what is on that.
	mkdir -p "$KVTIER_SYSFS/class/block/sda/holders/dm-0" "$work/dev/cciss"
	device dm-0 7 1 10 log0 1:10 2:20
	want 0 -j pool members
	json "[m['device'] for m in j['pools'][0]['members']] ==
		['$KVTIER_DEV/dm-0', '$KVTIER_DEV/sdb'] and j['pools'][0]['complete']"
	device 'cciss!c0' 8 3 4 slash 3:4
	want 0 -j pool members
	json "j['pools'][0]['members'][0]['device'] == '$KVTIER_DEV/cciss/c0'"
	echo 0 >"$KVTIER_SYSFS/class/block/cciss!c0/size"
	# Damaged: known to be ours, and no more.
	"$tests/damage.py" "$KVTIER_DEV/sdb" flip 100
	"$tests/damage.py" "$KVTIER_DEV/sdb" flip 524388
	want 0 -j pool members
	json 'j["pools"][0]["members"][0]["name"] == "log0" and not j["pools"][0]["complete"]'
	json '"superblocks are both damaged" in j["unusable"][0]["problem"]'
}

# As the driver sees it: see userspace/kvtier/scan.h.
test_old()
{
	local past=18446744073709551615
	two_members
	# The pool was changed without sdb.
	device sda 7 1 11 log0 1:11
	want 0 -j pool members
	json 'j["pools"][0]["complete"] and not j["pools"][0]["missing"]'
	json '["problem" in m for m in j["pools"][0]["members"]] == [False, True]'
	json '"stale" in j["pools"][0]["members"][1]["problem"]'
	want 0 -j pool assemble
	json 'j[0]["nr_found"] == 1'
	want 0 pool destroy 0
	want 1 -j pool assemble "$KVTIER_DEV/sda" "$KVTIER_DEV/sdb"
	json 'j["error"]["name"] == "ESTALE" and "sdb" in j["error"]["message"]'
	# An old copy of sdb.
	device sda 7 1 11 log0 1:11 2:21
	want 0 -j pool members
	json '"stale" in j["pools"][0]["members"][1]["problem"]'
	json "j['pools'][0]['missing'] == ['$(uuid 2)'] and not j['pools'][0]['complete']"
	want 1 -j pool assemble
	json "j['error']['name'] == 'ENOMEDIUM' and '$(uuid 2)' in j['error']['message']"
	# However often that was repaired, and sda is as good as before.
	device sdb 7 2 2021 log1 1:10 2:20
	want 0 -j pool members
	json '["problem" in m for m in j["pools"][0]["members"]] == [False, True]'
	json '"stale" in j["pools"][0]["members"][1]["problem"]'
	# One that is no old copy is none by that.
	device sdb 7 2 2021 log1 1:10 2:21
	want 0 -j pool members
	json '["problem" in m for m in j["pools"][0]["members"]] == [False, False]'
	json 'j["pools"][0]["complete"]'
	device sdb 7 2 20 log1 1:10 2:20
	# sdb was told of a third one, sda was not any more: it counts.
	device sda 7 1 10 log0 1:10 2:20
	device sdb 7 2 21 log1 1:10 2:21 3:1
	want 0 -j pool members
	json "j['pools'][0]['missing'] == ['$(uuid 3)']"
	# The other way round: it has left.
	device sda 7 1 10 log0 1:10 2:20 3:1
	device sdb 7 2 21 log1 1:10 2:21
	want 0 -j pool members
	json "j['pools'][0]['missing'] == []"
	# It has left without knowing, before the other one came: that one says so.
	device sda 7 1 11 log0 1:11 "2:$past"
	device sdb 7 2 20 log1 2:20
	want 0 -j pool members
	json 'j["pools"][0]["complete"] and not j["pools"][0]["missing"]'
	json '["problem" in m for m in j["pools"][0]["members"]] == [False, True]'
	want 0 -j pool assemble
	json 'j[0]["nr_found"] == 1'
	want 0 pool destroy 0
	rm "$KVTIER_DEV/sdb"
	want 0 -j pool members
	json 'j["pools"][0]["complete"] and not j["pools"][0]["missing"]'
}

test_copy()
{
	two_members
	device sdd 7 2 20 log1 1:10 2:20
	want 0 -j pool members
	json 'sum("a copy" in m.get("problem", "") for m in j["pools"][0]["members"]) == 2'
	want 1 -j pool assemble
	json 'j["error"]["name"] == "ENOTUNIQ"'
	want 0 -j pool assemble "$KVTIER_DEV/sda" "$KVTIER_DEV/sdd"
	json 'j[0]["nr_found"] == 2'
}

test_assemble()
{
	two_members
	want 0 -j pool assemble --id 3 --tier dram:size=64M
	json "j[0]['pool'] == 3 and j[0]['pool_uuid'] == '$(uuid 7)' and j[0]['nr_found'] == 2"
	want 0 -j pool show 3
	json '[t["name"] for t in j["tiers"]] == ["dram0"]'
	want 0 pool destroy 3
	want 0 pool assemble "$KVTIER_DEV/sda" --scan
	says "$(uuid 7)"
	want 0 pool destroy 0
	want 1 -j pool assemble "$KVTIER_DEV/sda"
	json "j['error']['name'] == 'ENOMEDIUM' and '$(uuid 2)' in j['error']['message']"
	json '"--degraded" in j["error"]["hint"]'
	want 0 -j pool assemble "$KVTIER_DEV/sda" --degraded
	json 'j[0]["nr_found"] == 1'
	want 0 pool destroy 0
	want 1 -j pool assemble "$KVTIER_DEV/sdc"
	json 'j["error"]["name"] == "EMEDIUMTYPE"'
	want 1 -j pool assemble --uuid "$(uuid 8)"
	json 'j["error"]["name"] == "ENOENT"'
	rm -r "$KVTIER_SYSFS/class/block"
	want 1 pool assemble
	complains 'there is no pool to assemble'
}

# It says so when it comes up, and for as long as it is up.
test_degraded()
{
	local dir=$KVTIER_SYSFS/class/kvtier/kvtier0
	two_members
	mkdir -p "$dir"
	echo 0 >"$dir/degraded"
	want 0 pool assemble --degraded
	! grep -q . "$work/stderr" || fail 'a pool that is whole is called degraded'
	want 0 -j pool list
	json 'j[0]["degraded"] == 0'
	want 0 pool destroy 0
	export KVTIER_MOCK_MISSING=1
	want 0 -j pool assemble "$KVTIER_DEV/sda" --degraded
	json "j[0]['nr_members'] == 2 and j[0]['nr_found'] == 1"
	json "j[0]['missing'] == ['$(uuid 2)']"
	want 0 pool destroy 0
	want 0 pool assemble "$KVTIER_DEV/sda" --degraded
	complains "pool 0 is degraded: 1 of 2 members; missing $(uuid 2)"
	complains 'new, empty members (kvtier tier attach)'
	echo 1 >"$dir/degraded"
	want 0 pool list
	says DEGRADED
	[ "$(awk '$1 == "POOL" { for (i = 1; i <= NF; i++) at[$i] = i }
		$1 == 0 { print $at["DEGRADED"] }' "$work/stdout")" = 1 ] ||
		fail "$(cat "$work/stdout")"
	want 0 pool show 0
	grep -qx 'Degraded, members given up: *1' "$work/stdout" || fail "$(cat "$work/stdout")"
	want 0 -j pool show 0
	json 'j["degraded"] == 1'
	want 0 -j pool list
	json 'j[0]["degraded"] == 1'
	# A member that only the kernel misses.
	want 0 pool assemble --degraded
	complains 'pool 1 is degraded: 2 of 3 members; missing ones are not known by name'
	# They are given up, though the pool does not stay.
	export KVTIER_MOCK_FAIL_OP=36 KVTIER_MOCK_FAIL_ERRNO=12
	want 1 pool assemble --degraded --tier dram:size=64M
	complains 'pool 2 is degraded: 2 of 3 members'
}

# Another tool looks at one of the members just then.
test_looked_at()
{
	device looked-at 7 1 10 log0 1:10
	want 0 -j pool assemble
	json 'j[0]["nr_found"] == 1 and j[0]["nr_members"] == 1'
}

# Memory that cannot be had: nothing is left half done.
test_assemble_undoes()
{
	two_members
	export KVTIER_MOCK_FAIL_OP=36 KVTIER_MOCK_FAIL_ERRNO=12
	want 1 -j pool assemble --tier dram:size=64M
	json 'j["error"]["name"] == "ENOMEM"'
	want 0 -j pool list
	json 'j == []'
	export KVTIER_MOCK_FAIL_OP=35 KVTIER_MOCK_FAIL_ERRNO=17
	want 1 -j pool assemble
	json 'j["error"]["name"] == "EEXIST" and "is up already" in j["error"]["hint"]'
	unset KVTIER_MOCK_FAIL_OP
	# What the kernel says of one device; the stand-in goes by its name.
	device stale0 8 3 4 log0 3:4
	want 1 -j pool assemble --uuid "$(uuid 8)"
	json 'j["error"]["name"] == "ESTALE" and "stale0" in j["error"]["message"]'
}

# errnos NAME...: each with its number
errnos()
{
	python3 -c 'import errno, sys
for name in sys.argv[1:]:
    print(name, getattr(errno, name))' "$@"
}

# What the interface says that may be the matter with a device.
documented()
{
	sed -n '/^ \* Assembling alone/,/^ \* Where/s/^ \*   \(E[A-Z]*\) .*/\1/p' \
		"$top/uapi/linux/kvtier.h" | grep -v '^ENOMEDIUM$'
	echo EROFS EBUSY
}

# What the kernel says of a device: what it means, and what to do.
test_errors_of_devices()
{
	local name nr
	[ "$(documented | wc -w)" -gt 8 ] || fail "the interface documents: $(documented)"
	# shellcheck disable=SC2046 # words
	errnos $(documented) EEXIST EINVAL EOPNOTSUPP ENOENT ENODEV ENXIO ENOTBLK >"$work/errnos"
	while read -r name nr; do
		device "fails-$nr" "$nr" 1 3 log0 1:3
		want 1 -j pool assemble --uuid "$(uuid "$nr")"
		json "j['error']['name'] == '$name' and len(j['error'].get('hint', '')) > 10"
		json "'/fails-$nr ' in j['error']['message']"
		json "'cannot be used' not in j['error']['message']"
		rm -r "$KVTIER_SYSFS/class/block/fails-$nr"
	done <"$work/errnos"
	# One that nobody has thought of.
	device fails-5000 9 1 3 log0 1:3
	want 1 pool assemble --uuid "$(uuid 9)"
	complains 'fails-5000 cannot be used: Unknown error 5000'
}

# What it says of the pool.
test_errors_of_pools()
{
	local name
	two_members
	export KVTIER_MOCK_FAIL_OP=35 KVTIER_MOCK_FAIL_ERRNO
	errnos EEXIST EIO EUCLEAN EINTR ENOSPC ENOMEM EPERM ENOTTY EOPNOTSUPP E2BIG >"$work/errnos"
	while read -r name KVTIER_MOCK_FAIL_ERRNO; do
		want 1 -j pool assemble
		json "j['error']['name'] == '$name' and len(j['error'].get('hint', '')) > 10"
		json "'$(uuid 7)' in j['error']['message']"
	done <"$work/errnos"
	unset KVTIER_MOCK_FAIL_OP
	export KVTIER_MOCK_MISSING=2
	want 1 -j pool assemble
	json "j['error']['name'] == 'ENOMEDIUM' and '--degraded' in j['error']['hint']"
	json "j['error']['message'].startswith('pool $(uuid 7) lacks 2 of its members: ')"
}

# A member of a later version is not what one would want to give up.
test_newer()
{
	two_members
	"$tests/damage.py" "$KVTIER_DEV/sdb" super 0 version 99
	"$tests/damage.py" "$KVTIER_DEV/sdb" super 1 version 99
	want 1 -j pool assemble "$KVTIER_DEV/sdb"
	json 'j["error"]["name"] == "EPROTONOSUPPORT" and "later version" in j["error"]["message"]'
	json '"use the version of kvtier that wrote it" in j["error"]["hint"]'
	want 1 pool assemble
	complains "pool $(uuid 7) lacks 1 of its members: $(uuid 2)"
	complains 'cannot be used as they are, maybe these: kvtier pool members'
	want 0 pool members
	says "$KVTIER_DEV/sdb is a member of a later version"
	rm -r "$KVTIER_SYSFS/class/block/sdb"
	want 1 pool assemble
	complains 'to see what there is: kvtier pool members'
	want 1 pool assemble "$KVTIER_DEV/none"
	complains "$KVTIER_DEV/none is not there: No such file or directory"
	want 1 pool assemble "$KVTIER_DEV"
	complains "$KVTIER_DEV is too small"
}

# until_so COMMAND...: it comes true, sooner or later.
until_so()
{
	local i
	for ((i = 0; i < 1500; i++)); do
		! "$@" 2>/dev/null || return 0
		sleep 0.02
	done
	fail "never so: $*"
}

# under_way LINE...: what sysfs says of assemblies from now on.
under_way()
{
	printf '%s\n' "$@" >"$KVTIER_SYSFS/class/kvtier/assembling"
}

# held NAME COMMAND...: begins it; the kernel does not get on with it as long as $work/NAME
# is there.
held()
{
	KVTIER_MOCK_HOLD=$work/$1 "${@:2}" &
	pids+=($!)
}

# The kernel is at it while sysfs says what we want. Nobody but a terminal is told.
test_progress()
{
	local pids=() tty=$work/tty pid
	two_members
	mkdir -p "$KVTIER_SYSFS/class/kvtier"
	under_way '5 1 9'
	held hold1 "$tool" pool assemble >"$work/plain" 2>&1
	held hold2 "$tests/on_tty.py" "$work/json" "$tool" -j pool assemble >"$work/stdout"
	held hold3 "$tests/on_tty.py" "$tty" "$tool" pool assemble >"$work/tty.out"
	until_so test -e "$work/hold1" -a -e "$work/hold2" -a -e "$work/hold3"
	under_way '5 2 9' '3 0 0'
	until_so grep -q 'assembling pool 3: looking at its members' "$tty"
	under_way '5 4 9' '3 29 300' '4 1 5'
	until_so grep -q 'pool 3: 29 of 300 segments read, 9%' "$tty"
	under_way '3 299 300'
	until_so grep -q '299 of 300 segments read, 99%' "$tty"
	under_way '3 300 300'
	until_so grep -q 'put together' "$tty"
	# A number that another has left is one like any other.
	under_way '5 7 10'
	until_so grep -q 'pool 5: 7 of 10 segments read, 70%' "$tty"
	! grep -qE 'pool (4:|5: [0-4] )' "$tty" || fail 'shows that of another'
	rm "$work"/hold[123]
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "$(cat "$work/plain" "$tty")"
	done
	[ "$(tail -c 4 "$tty")" = $'\r\e[K' ] || fail 'the line is not erased'
	! grep -q assembling "$work/plain" || fail 'shown in a file'
	! grep -q . "$work/json" || fail 'shown beside JSON'
	json 'j[0]["nr_found"] == 2'
	grep -q "$(uuid 7)" "$work/tty.out" || fail 'no result'
}

# By its number, where that was asked for.
test_progress_by_number()
{
	local pids=() tty=$work/tty
	two_members
	mkdir -p "$KVTIER_SYSFS/class/kvtier"
	held hold "$tests/on_tty.py" "$tty" "$tool" pool assemble --id 3 >"$work/stdout"
	until_so test -e "$work/hold"
	under_way '2 1 9' '3 5 10'
	until_so grep -q 'pool 3: 5 of 10 segments read, 50%' "$tty"
	# What it says is what it said, if nothing can be made of it.
	under_way 'nonsense' '3 9 10'
	rm "$work/hold"
	wait "${pids[0]}" || fail "$(cat "$tty")"
	! grep -q 'pool 2' "$tty" || fail 'shows that of another'
	# Without the file there is nothing to be shown.
	rm "$KVTIER_SYSFS/class/kvtier/assembling"
	held hold "$tests/on_tty.py" "$work/tty2" "$tool" pool assemble --id 1 >"$work/stdout"
	until_so test -e "$work/hold"
	rm "$work/hold"
	wait "${pids[1]}" || fail "$(cat "$work/tty2")"
	! grep -q . "$work/tty2" || fail 'shows something'
}

# The stand-in starts and stops it; what sysfs would say is said here.
test_scrub()
{
	local dir=$KVTIER_SYSFS/class/kvtier/kvtier0
	want 0 -j pool create --tier dram:size=64M
	mkdir -p "$dir"
	echo running >"$dir/scrub_state"
	echo 4096 >"$dir/scrub_bytes"
	echo 2 >"$dir/scrub_checksum_errors"
	want 0 -j pool scrub --rate 100M
	json 'j["scrub_state"] == "running" and j["scrub_bytes"] == 4096'
	want 0 pool scrub --status
	says 'Lost, did not verify'
	echo 'done' >"$dir/scrub_state"
	want 0 -j pool scrub --stop
	json 'j["scrub_checksum_errors"] == 2'
	want 0 -j pool scrub 0 --wait --rate 0
	echo failed >"$dir/scrub_state"
	want 1 -j pool scrub 0 --wait
	json 'j["error"]["name"] == "EIO"'
	want 1 -j pool scrub 7 --status
	json 'j["error"]["name"] == "ENOENT"'
	export KVTIER_MOCK_FAIL_OP=40 KVTIER_MOCK_FAIL_ERRNO=16
	want 1 -j pool scrub
	json 'j["error"]["name"] == "EBUSY" and "--stop" in j["error"]["hint"]'
}

test_many_pools()
{
	two_members
	device sde 9 5 3 other 5:3
	device sdf 10 6 3 half 6:3 7:3
	want 2 pool assemble --id 1
	complains 'there are 3 pools'
	want 1 pool assemble
	complains "pool $(uuid 10) lacks 1 of its members"
	want 0 pool destroy 0
	want 0 pool destroy 1
	# One value of JSON, whatever has become of which pool.
	want 1 -j pool assemble
	json "[p.get('pool_uuid') for p in j] == ['$(uuid 7)', '$(uuid 9)', None]"
	json 'j[2]["error"]["name"] == "ENOMEDIUM"'
	want 0 pool destroy 0
	want 0 pool destroy 1
	want 1 -j pool assemble --uuid "$(uuid 10 | tr a-f A-F)"
	json 'j["error"]["name"] == "ENOMEDIUM"'
	rm -r "$KVTIER_SYSFS/class/block/sdf"
	want 0 -j pool assemble
	json 'sorted(p["pool"] for p in j) == [0, 1]'
	want 1 -j pool assemble "$KVTIER_DEV/sda" "$KVTIER_DEV/sde"
	json 'j["error"]["name"] == "EXDEV"'
	want 0 -j pool assemble --uuid "$(uuid 9)"
	json 'len(j) == 1'
}

test_export()
{
	two_members
	want 0 pool members --export "$KVTIER_DEV/sda"
	says "ID_FS_TYPE=kvtier_member"
	says "ID_FS_UUID=$(uuid 7)"
	says "ID_FS_UUID_SUB=$(uuid 1)"
	want 1 pool members --export "$KVTIER_DEV/sdc"
	[ ! -s "$work/stdout" ] || fail 'says something of a stranger'
	want 2 -j pool members --export "$KVTIER_DEV/sda"
	json '"no JSON" in j["error"]["message"]'
}

# Files stand in for the devices, so that all can be read.
persistent()
{
	local region=$KVTIER_SYSFS/devices/ndbus0/region0
	export KVTIER_DEV=$work/dev
	mkdir -p "$region/$1/$1" "$KVTIER_DEV"
	echo nd_pmem >"$region/devtype"
	echo 252:1 >"$region/$1/$1/dev"
	ln -s "$region/$1/$1" "$KVTIER_SYSFS/bus/dax/devices/$1"
	ln -sfn "$KVTIER_SYSFS/bus/dax/drivers/device_dax" "$region/$1/$1/driver"
	"$tests/damage.py" "$KVTIER_DEV/$1" member "${@:2}"
}

dax_driver()
{
	basename "$(readlink "$KVTIER_SYSFS/bus/dax/devices/$1/driver")"
}

test_persistent()
{
	fake_sysfs "$KVTIER_SYSFS" 1
	device sda 7 1 10 log0 1:10 2:20
	persistent dax0.1 7 2 20 log1 1:10 2:20
	want 0 -j pool members
	json '[m["name"] for m in j["pools"][0]["members"]] == ["log0", "log1"]'
	json "j['pools'][0]['members'][1]['device'] == '$KVTIER_DEV/dax0.1'"
	want 0 -j cxl list
	json '[(d["dax"], d["driver"]) for d in j["persistent"]] == [("dax0.1", "device_dax")]'
	[ "$(dax_driver dax0.1)" = device_dax ] || fail 'looking has changed something'
	want 2 pool assemble --tier dax:dev=dax0.1
	complains 'members are found'
	want 1 pool create --tier dram:size=1M --tier dax:dev=dax0.1
	complains 'is a member of kvtier pool'
	want 0 -j pool assemble --tier dram:size=1M
	json 'j[0]["nr_found"] == 2'
	[ "$(dax_driver dax0.1)" = kvtier ] || fail 'not bound'
	want 0 pool destroy 0
	# One that our driver has and no pool is handed back first, and bound again.
	want 0 -j pool assemble dax0.1 --scan
	json 'j[0]["nr_found"] == 2'
	grep -q "device_dax/bind=dax0.1" "$work/log" || fail 'not handed back'
	want 0 pool destroy 0
	# It ranks behind memory, whatever it is called.
	want 0 -j pool create --tier dax:dev=dax0.1 --tier dram:size=1M --force
	json '[(t["type"], t["rank"]) for t in j["tiers"]] == [("dram", 0), ("pmem", 128)]'
}

moves_of()
{
	sed -n "s,.*bus/dax/drivers/\(.*=$1\)$,\1,p" "$work/log"
}

# What could not be used goes back to where it was.
test_persistent_back()
{
	local driver=$KVTIER_SYSFS/bus/dax/devices/dax0.1/driver
	fake_sysfs "$KVTIER_SYSFS" 1
	persistent dax0.1 7 1 10 log0 1:10
	want 0 pool create
	export KVTIER_MOCK_FAIL_OP=36 KVTIER_MOCK_FAIL_ERRNO=28
	want 1 tier attach 0 dax:dev=dax0.1 --force
	complains 'No space left'
	[ "$(dax_driver dax0.1)" = device_dax ] || fail 'not given back by attach'
	# One that was with our driver before stays there.
	ln -sfn "$KVTIER_SYSFS/bus/dax/drivers/kvtier" "$driver"
	want 1 tier attach 0 dax:dev=dax0.1 --force
	[ "$(dax_driver dax0.1)" = kvtier ] || fail 'taken away'
	export KVTIER_MOCK_FAIL_OP=35 KVTIER_MOCK_FAIL_ERRNO=117
	want 1 pool assemble dax0.1
	complains 'Structure needs cleaning'
	[ "$(dax_driver dax0.1)" = device_dax ] || fail 'not given back by assemble'
	moves_of dax0.1 | grep -q '^kvtier/new_id=' || fail 'never bound'
	# Without a driver: looked at, and left as it was.
	rm "$driver"
	want 1 pool assemble dax0.1
	[ ! -e "$driver" ] || fail "now with $(dax_driver dax0.1)"
	unset KVTIER_MOCK_FAIL_OP KVTIER_MOCK_FAIL_ERRNO
	want 0 pool assemble dax0.1
	[ "$(dax_driver dax0.1)" = kvtier ] || fail 'not bound'
	# And where our driver does not take it.
	want 0 pool destroy 1
	ln -sfn "$KVTIER_SYSFS/bus/dax/drivers/device_dax" "$driver"
	touch "$work/refuse"
	want 1 pool assemble dax0.1
	complains 'did not take dax0.1'
	[ "$(dax_driver dax0.1)" = device_dax ] || fail 'nobody has it'
}

# waits_for PID: it is blocked by somebody's lock on a file.
waits_for()
{
	local i
	for ((i = 0; i < 500; i++)); do
		! grep -q -- "-> FLOCK .* $1 " /proc/locks || return 0
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# While an assembly is under way nobody else moves devices: the kernel would let him.
test_persistent_lock()
{
	local lock bus drivers verb pid
	fake_sysfs "$KVTIER_SYSFS" 1
	persistent dax0.1 7 1 10 log0 1:10
	# Anybody can lock a directory, and nobody waits for him.
	exec {bus}<"$KVTIER_SYSFS/bus/dax" {drivers}<"$KVTIER_SYSFS/bus/dax/drivers"
	flock "$bus"
	flock "$drivers"
	timeout 20 "$tool" cxl create {bus}<&- {drivers}<&- >"$work/stdout" 2>"$work/stderr" ||
		fail 'waits for a lock of a directory'
	exec {lock}<"$KVTIER_SYSFS/bus/dax/drivers_probe"
	flock "$lock"
	rm "$work/log"
	for verb in bind unbind; do
		want 1 -j cxl "$verb" dax0.1
		json 'j["error"]["name"] == "EBUSY" and "being assembled" in j["error"]["message"]'
	done
	# Volatile ones are not concerned.
	want 0 cxl unbind dax0.0
	[ -z "$(moves_of dax0.1)" ] || fail 'moved all the same'
	"$tool" pool assemble dax0.1 >"$work/stdout" 2>"$work/stderr" {lock}<&- &
	pid=$!
	waits_for "$pid" || fail 'does not wait'
	[ -z "$(moves_of dax0.1)" ] || fail 'moved before its turn'
	exec {lock}<&-
	wait "$pid" || fail "$(cat "$work/stderr")"
	[ "$(dax_driver dax0.1)" = kvtier ] || fail 'not bound'
	want 0 -j pool destroy 0
	# A new one waits just so.
	exec {lock}<"$KVTIER_SYSFS/bus/dax/drivers_probe"
	flock "$lock"
	"$tool" pool create --tier dram:size=1M --tier dax:dev=dax0.1 --force \
		>"$work/stdout" 2>"$work/stderr" {lock}<&- &
	pid=$!
	waits_for "$pid" || fail 'attach does not wait'
	exec {lock}<&-
	wait "$pid" || fail "$(cat "$work/stderr")"
}

# What is persistent is nobody's to take down with "all".
test_persistent_region()
{
	fake_sysfs "$KVTIER_SYSFS" 1
	mkdir -p "$KVTIER_SYSFS/bus/cxl/devices/region7"
	echo pmem >"$KVTIER_SYSFS/bus/cxl/devices/region7/mode"
	want 0 -j cxl destroy all
	json 'j["destroyed"] == []'
}

test_claim()
{
	want 0 pool create
	want 0 -j ns claim 0 1 --uid 1001
	json 'j == {"claimed": 1, "pool": 0, "uid": 1001, "gid": 1001}'
	want 0 -j ns claim kvtier0 1 --uid 1001 --gid 5
	json 'j["gid"] == 5'
	want 1 -j ns claim 0 2 --uid 1001
	json 'j["error"]["name"] == "ENOENT" and "ns list" in j["error"]["hint"]'
	export KVTIER_MOCK_FAIL_OP=39 KVTIER_MOCK_FAIL_ERRNO=114
	want 1 -j ns claim 0 1 --uid 1001
	json 'j["error"]["name"] == "EALREADY" and "has an owner" in j["error"]["hint"]'
}

for name in members suspended odd-devices old copy assemble degraded looked-at assemble-undoes errors-of-devices errors-of-pools newer progress \
	progress-by-number many-pools scrub export claim \
	persistent persistent-back persistent-lock persistent-region; do
	run_test "$name"
done
exit "$failed"
