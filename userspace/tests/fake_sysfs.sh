# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes the tree that mock_sysfs.c works on, for sourcing.

# fake_sysfs ROOT NR_MEMDEVS [NR_BRIDGES]: a host with one CXL window, interleaved over its host
# bridges (1, numbers 12, 13, ...), devices of 512 MiB each (serial 11, 12, ...; the first of them
# below the first bridge), and the dax bus with the drivers kmem and kvtier.
fake_sysfs()
{
	local root=$1 nr=$2 bridges=${3:-1} i b pci endpoint mem targets=''
	local platform=$root/devices/platform/ACPI0017:00/root0
	local window=$platform/decoder0.0
	mkdir -p "$root"/bus/cxl/{devices,drivers/cxl_region} \
		"$root"/bus/dax/{devices,drivers/{kmem,kvtier,device_dax}} \
		"$root/class/kvtier" "$window"
	touch "$root/bus/cxl/drivers/cxl_region/bind" \
		"$root"/bus/dax/drivers/kvtier/{bind,new_id,remove_id,unbind} \
		"$root"/bus/dax/drivers/device_dax/{bind,unbind} "$window/delete_region"
	touch "$root"/bus/dax/{uevent,drivers_probe}
	echo 1 >"$root/bus/dax/drivers_autoprobe"
	echo region0 >"$window/create_ram_region"
	echo region0 >"$window/create_pmem_region"
	echo 1 >"$window/cap_ram"
	echo 1 >"$window/cap_pmem"
	echo "$bridges" >"$window/interleave_ways"
	echo 4096 >"$window/interleave_granularity"
	for ((b = 0; b < bridges; b++)); do
		pci=$root/devices/$(printf 'pci0000:%02x' $((12 + b)))
		mkdir -p "$pci" "$platform/port$((b * 50 + 1))"
		ln -s "$pci" "$platform/dport$((12 + b))"
		ln -s "$pci" "$platform/port$((b * 50 + 1))/uport"
		ln -s "$platform/port$((b * 50 + 1))" "$root/bus/cxl/devices/"
		targets+=,$((12 + b))
	done
	echo "${targets#,}" >"$window/target_list"
	ln -s "$platform" "$root/bus/cxl/devices/"
	echo 0x100000000 >"$window/size"
	ln -s "$window" "$root/bus/cxl/devices/decoder0.0"
	for ((i = 0; i < nr; i++)); do
		b=$((i * bridges / nr))
		mem=$root/devices/$(printf 'pci0000:%02x' $((12 + b)))/mem$i
		endpoint=$platform/port$((b * 50 + 1))/endpoint$((i + 2))
		mkdir -p "$mem"/{ram,pmem} "$endpoint/decoder$((i + 2)).0"
		printf '%#x\n' $((i + 11)) >"$mem/serial"
		echo 0x20000000 >"$mem/ram/size"
		echo 0x0 >"$mem/pmem/size"
		echo 0 >"$mem/numa_node"
		echo none >"$endpoint/decoder$((i + 2)).0/mode"
		echo 0x0 >"$endpoint/decoder$((i + 2)).0/dpa_size"
		ln -s "$mem" "$endpoint/uport"
		ln -s "$mem" "$root/bus/cxl/devices/mem$i"
		ln -s "$endpoint" "$root/bus/cxl/devices/endpoint$((i + 2))"
		ln -s "$endpoint/decoder$((i + 2)).0" \
			"$root/bus/cxl/devices/decoder$((i + 2)).0"
	done
}
