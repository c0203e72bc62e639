#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# CXL regions and dax devices over a stand-in for sysfs: cli_cxl.sh TOP OUT
# shellcheck disable=SC2030,SC2031 # each test has a subshell and variables of its own
# shellcheck disable=SC2317 # functions are called by the names in the last lines
# shellcheck source=userspace/tests/cli_lib.sh
. "$1/userspace/tests/cli_lib.sh"
# shellcheck source=userspace/tests/fake_sysfs.sh
. "$tests/fake_sysfs.sh"

logged()
{
	sed 's/.*\/\([^/]*\/[^/]*=\)/\1/' "$work/log"
}

autoprobe_is_on()
{
	[ "$(cat "$KVTIER_SYSFS/bus/dax/drivers_autoprobe")" = 1 ] ||
		fail 'autoprobe was not restored'
}

nothing_left()
{
	local file
	for file in "$KVTIER_SYSFS"/bus/cxl/devices/region* \
		"$KVTIER_SYSFS"/bus/dax/devices/dax*; do
		[ ! -e "$file" ] || fail "$file is left"
	done
	for file in "$KVTIER_SYSFS"/bus/cxl/devices/decoder[1-9]*/dpa_size; do
		[ $(($(cat "$file"))) -eq 0 ] || fail "$file is not given back"
	done
	autoprobe_is_on
}

test_cxl_create()
{
	fake_sysfs "$KVTIER_SYSFS" 2
	want 0 -j cxl create
	json '[(r["region"], r["dax"], r["driver"]) for r in j] ==
		[("region0", "dax0.0", "kvtier"), ("region1", "dax1.0", "kvtier")]'
	json '[r["serials"] for r in j] == [[11], [12]]'
	json '[r["size_bytes"] for r in j] == [512 << 20] * 2'
	autoprobe_is_on
	logged | head -13 >"$work/sequence"
	cat >"$work/expected" <<-'END'
	dax/drivers_autoprobe=0
	decoder0.0/create_ram_region=region0
	decoder2.0/mode=ram
	decoder2.0/dpa_size=0x20000000
	region0/interleave_granularity=256
	region0/interleave_ways=1
	region0/size=0x20000000
	region0/target0=decoder2.0
	region0/commit=1
	cxl_region/bind=region0
	kvtier/new_id=dax0.0
	decoder0.0/create_ram_region=region1
	decoder3.0/mode=ram
	END
	same "$work/expected" "$work/sequence"
	[ "$(logged | tail -n 1)" = dax/drivers_autoprobe=1 ] ||
		fail 'restoring autoprobe is not the last thing'
	want 0 cxl list
	says 'region1'
	want 1 -j cxl create
	json '"kvtier cxl list" in j["error"]["hint"]'
	want 0 -j cxl destroy all
	json 'j["destroyed"] == ["region0", "region1"]'
	nothing_left
}

test_cxl_choose()
{
	fake_sysfs "$KVTIER_SYSFS" 3
	want 0 -j cxl create --memdev serial=13 --size 256M
	json 'j[0]["serials"] == [13] and j[0]["size_bytes"] == 256 << 20'
	want 0 -j cxl create --memdev mem0 --memdev mem1 --interleave
	json 'len(j) == 1 and j[0]["memdevs"] == ["mem0", "mem1"]'
	json 'j[0]["size_bytes"] == 1 << 30'
	want 0 -j cxl list
	json '[m["free_bytes"] >> 20 for m in j["memdevs"]] == [0, 0, 256]'
	want 1 cxl create --memdev mem9
	complains "memdev 'mem9'"
	want 1 cxl create --memdev mem0
	complains 'in use'
	want 0 -j cxl destroy region0
	want 1 cxl create --memdev mem2 --size 1G
	complains 'mem2 has'
	want 1 cxl create --memdev mem2 --size 1M
	complains '256M'
	want 1 cxl create --memdev mem2 --decoder decoder7.0
	complains 'decoder7.0'
	complains 'no such decoder'
	want 1 cxl create --memdev mem2 --decoder decoder2.0
	complains 'only a root decoder with cap_ram'
	want 1 cxl create --memdev mem2 --decoder decoder0.0/create_ram_region
	complains 'no such decoder'
	want 0 cxl destroy region1
	nothing_left
	want 1 cxl destroy region1
	complains 'kvtier cxl list'
}

# A window over host bridges has them in turn, whatever their devices are called.
test_cxl_bridges()
{
	fake_sysfs "$KVTIER_SYSFS" 4 2
	want 0 -j cxl create --interleave
	json 'j[0]["memdevs"] == ["mem0", "mem2", "mem1", "mem3"]'
	want 0 cxl destroy all
	want 0 -j cxl create --interleave --memdev mem3 --memdev mem1
	json 'j[0]["memdevs"] == ["mem1", "mem3"] and j[0]["size_bytes"] == 1 << 30'
	want 0 cxl destroy all
	want 1 -j cxl create --interleave --memdev mem0 --memdev mem1
	json '"spread evenly" in j["error"]["hint"] and j["error"]["name"] == "ENXIO"'
	want 1 -j cxl create
	json '"--interleave" in j["error"]["hint"] and j["error"]["name"] == "EINVAL"'
	want 1 -j cxl create --interleave --memdev mem0 --memdev mem1 --memdev mem2
	json '"a region of 3 devices" in j["error"]["message"]'
	nothing_left
	# Two switches below the only bridge.
	rm -rf "$KVTIER_SYSFS"
	fake_sysfs "$KVTIER_SYSFS" 4
	local port=$KVTIER_SYSFS/devices/platform/ACPI0017:00/root0/port1 i
	for i in 0 1 2 3; do
		mkdir -p "$port/port$((60 + i / 2))"
		cp -P "$port/uport" "$port/port$((60 + i / 2))/"
		mv "$port/endpoint$((i + 2))" "$port/port$((60 + i / 2))/"
		ln -sfn "$port/port$((60 + i / 2))/endpoint$((i + 2))" "$KVTIER_SYSFS/bus/cxl/devices/"
		ln -sfn "$port/port$((60 + i / 2))/endpoint$((i + 2))/decoder$((i + 2)).0" \
			"$KVTIER_SYSFS/bus/cxl/devices/"
	done
	want 0 -j cxl create --interleave
	json 'j[0]["memdevs"] == ["mem0", "mem2", "mem1", "mem3"]'
	want 0 cxl destroy all
	want 2 cxl create --memdev mem0 --memdev serial=11
	complains 'mem0 is named twice'
	nothing_left
}

# Whichever write fails, everything is as before.
test_cxl_create_fails()
{
	local step
	for step in decoder0.0/create_ram_region decoder3.0/mode \
		decoder3.0/dpa_size region1/interleave_granularity \
		region1/interleave_ways region1/size region1/target0 \
		region1/commit; do
		rm -rf "$KVTIER_SYSFS"
		fake_sysfs "$KVTIER_SYSFS" 2
		# The first region is there by then, and must go too.
		[ "$step" != decoder0.0/create_ram_region ] ||
			echo region1 >"$KVTIER_SYSFS/bus/cxl/devices/decoder0.0/create_ram_region"
		echo "bus/cxl/devices/$step 5" >"$work/fail"
		want 1 -j cxl create
		json 'j["error"]["name"] == "EIO"'
		[ ! -e "$work/fail" ] || fail "$step: not injected"
		nothing_left
	done
	for step in bus/cxl/drivers/cxl_region/bind \
		bus/dax/drivers/kvtier/new_id bus/dax/drivers_autoprobe; do
		rm -rf "$KVTIER_SYSFS"
		fake_sysfs "$KVTIER_SYSFS" 2
		echo "$step 5" >"$work/fail"
		want 1 cxl create
		complains 'Input/output error'
		[ ! -e "$work/fail" ] || fail "$step: not injected"
		nothing_left
	done
}

# What the kernel does not give back is not said to be gone; what is done is said.
test_cxl_destroy_fails()
{
	local step
	for step in decoder0.0/delete_region decoder2.0/dpa_size; do
		rm -rf "$KVTIER_SYSFS"
		fake_sysfs "$KVTIER_SYSFS" 2
		want 0 cxl create
		echo "bus/cxl/devices/$step 16" >"$work/fail"
		want 1 -j cxl destroy region1 region0
		json 'j["error"]["name"] == "EBUSY"'
		[ ! -e "$work/fail" ] || fail "$step: not injected"
		[ "$step" = decoder0.0/delete_region ] || complains 'destroyed: region1'
	done
}

# Two regions of one device: it gives back what it has given last, first.
test_cxl_destroy_order()
{
	local how decoder=$KVTIER_SYSFS/devices/platform/ACPI0017:00/root0/port1/endpoint2/decoder2.1
	for how in all 'region0 region1'; do
		rm -rf "$KVTIER_SYSFS"
		fake_sysfs "$KVTIER_SYSFS" 1
		cp -r "${decoder%1}0" "$decoder"
		ln -s "$decoder" "$KVTIER_SYSFS/bus/cxl/devices/"
		want 0 cxl create --memdev mem0 --size 256M
		want 0 cxl create --memdev mem0 --size 256M
		want 1 -j cxl destroy region0
		json 'j["error"]["name"] == "EBUSY" and "region1" in j["error"]["message"]'
		want 0 -j cxl list
		json 'len(j["regions"]) == 2 and j["regions"][0]["dax"]'
		# shellcheck disable=SC2086 # words
		want 0 -j cxl destroy $how
		json 'j["destroyed"] == ["region1", "region0"]'
		nothing_left
	done
}

test_cxl_driver_refuses()
{
	fake_sysfs "$KVTIER_SYSFS" 1
	touch "$work/refuse"
	want 1 cxl create
	complains 'did not take dax0.0'
	complains 'Device or resource busy'
	complains 'dmesg'
	nothing_left
	rm -r "$KVTIER_SYSFS/bus/dax/drivers/kvtier"
	want 1 -j cxl create
	json '"modprobe kvtier" in j["error"]["hint"]'
	nothing_left
}

# The device is in sysfs a moment before the bus finds it.
test_cxl_device_late()
{
	fake_sysfs "$KVTIER_SYSFS" 1
	touch "$work/late"
	want 0 cxl create
	[ "$(logged | grep -c 'kvtier/bind=dax0.0')" -eq 3 ] || fail 'not late twice'
	want 0 cxl list
	says kvtier
}

test_cxl_signal()
{
	fake_sysfs "$KVTIER_SYSFS" 1
	echo bus/cxl/drivers/cxl_region/bind >"$work/kill"
	kv cxl create
	[ "$(cat "$work/status")" -eq 143 ] || fail 'not ended by SIGTERM'
	[ ! -e "$work/kill" ] || fail 'the signal was not sent'
	autoprobe_is_on
	want 0 cxl list
	says kvtier
}

# Switched off by the administrator, it stays off.
test_cxl_autoprobe_off()
{
	fake_sysfs "$KVTIER_SYSFS" 1
	echo 0 >"$KVTIER_SYSFS/bus/dax/drivers_autoprobe"
	want 0 cxl create
	[ "$(cat "$KVTIER_SYSFS/bus/dax/drivers_autoprobe")" = 0 ] ||
		fail 'autoprobe was switched on'
}

test_cxl_bind()
{
	local dax=$KVTIER_SYSFS/bus/dax driver
	fake_sysfs "$KVTIER_SYSFS" 1
	want 0 cxl create
	driver=$dax/devices/dax0.0/driver
	want 0 -j cxl unbind dax0.0
	json 'j["unbound"] == ["dax0.0"]'
	[ ! -e "$driver" ] || fail 'still bound'
	logged | grep -q 'kvtier/remove_id=dax0.0' || fail 'no remove_id'
	ln -s "$dax/drivers/device_dax" "$driver"
	want 1 cxl unbind dax0.0
	complains 'driver device_dax has dax0.0'
	want 0 -j cxl bind /dev/dax0.0
	json 'j["bound"] == ["dax0.0"]'
	[ "$(basename "$(readlink "$driver")")" = kvtier ] || fail 'not bound'
	want 1 cxl bind dax7.0
	ln -sfn "$dax/drivers/kmem" "$driver"
	want 1 cxl bind dax0.0
	complains 'until the next reboot'
	want 1 cxl destroy region0
	complains 'kmem'
	autoprobe_is_on
}

test_cxl_in_use()
{
	local tier=$KVTIER_SYSFS/class/kvtier/kvtier0/tiers/cxl0
	fake_sysfs "$KVTIER_SYSFS" 1
	want 0 cxl create
	mkdir -p "$tier"
	echo dax0.0 >"$tier/device"
	want 1 -j cxl destroy region0
	json 'j["error"]["name"] == "EBUSY" and "kvtier0/cxl0" in j["error"]["message"]'
	want 1 -j cxl unbind dax0.0
	json 'j["error"]["name"] == "EBUSY"'
	want 0 -j cxl list
	json 'j["regions"][0]["used_by"] == "kvtier0/cxl0"'
	rm -r "$tier"
	want 0 cxl destroy region0
	nothing_left
}

# Namespaces are the stand-in's: libndctl knows one sysfs only.
test_cxl_pmem()
{
	local uuid=6f1a5c62-2d0e-4a51-8f4e-0d5f8f1b7a11 region
	fake_sysfs "$KVTIER_SYSFS" 2
	region=$KVTIER_SYSFS/bus/cxl/devices/region0
	want 1 cxl create --type pmem
	complains 'no free CXL persistent memory'
	echo 0x10000000 >"$KVTIER_SYSFS/bus/cxl/devices/mem1/pmem/size"
	want 0 -j cxl create --type pmem --uuid "$uuid" --map dev --map mem
	json 'j[0]["region"] == "region0" and j[0]["memdevs"] == ["mem1"]'
	json "j[0]['uuid'] == '$uuid' and j[0]['daxes'] == ['dax0.0', 'dax1.0']"
	[ "$(cat "$region/uuid")" = "$uuid" ] || fail 'no uuid'
	[ "$(cat "$KVTIER_SYSFS/bus/cxl/devices/decoder3.0/mode")" = pmem ] || fail 'no pmem'
	logged | grep '^namespace=' | diff - <(printf 'namespace=%s\n' dev mem) || fail 'maps'
	! logged | grep -q autoprobe || fail 'device_dax was to have them'
	want 0 -j cxl list
	json '[d["free_pmem_bytes"] for d in j["memdevs"]] == [0, 0]'
	json '[d["free_bytes"] for d in j["memdevs"]] == [512 << 20] * 2'
	want 1 cxl create --type pmem --memdev mem1
	complains 'persistent memory of mem1 is in use'
	want 1 cxl destroy region0
	# Two regions have two uuids, if none is said.
	rm -rf "$KVTIER_SYSFS"
	fake_sysfs "$KVTIER_SYSFS" 2
	echo 0x10000000 >"$KVTIER_SYSFS/bus/cxl/devices/mem0/pmem/size"
	echo 0x10000000 >"$KVTIER_SYSFS/bus/cxl/devices/mem1/pmem/size"
	want 2 cxl create --type pmem --uuid "$uuid"
	want 0 -j cxl create --type pmem
	json 'len({r["uuid"] for r in j}) == 2'
	# One that cannot be used is taken down again.
	rm -rf "$KVTIER_SYSFS"
	fake_sysfs "$KVTIER_SYSFS" 1
	echo 0x10000000 >"$KVTIER_SYSFS/bus/cxl/devices/mem0/pmem/size"
	touch "$work/no_namespace"
	want 1 -j cxl create --type pmem
	json 'j["error"]["name"] == "ENOSPC"'
	[ ! -e "$work/no_namespace" ] || fail 'not injected'
	nothing_left
}

test_cxl_none()
{
	want 0 cxl list
	complains 'no CXL memory'
	want 1 cxl create
	complains 'no free CXL RAM'
	want 0 -j cxl list
	json 'j == {"memdevs": [], "regions": [], "persistent": []}'
}

for name in cxl-create cxl-choose cxl-bridges cxl-create-fails cxl-destroy-fails cxl-destroy-order \
	cxl-driver-refuses cxl-device-late cxl-signal cxl-autoprobe-off cxl-bind cxl-in-use \
	cxl-pmem cxl-none; do
	run_test "$name"
done
exit "$failed"
