# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# CXL regions by sysfs (sourced), for tests that must not depend on the kvtier
# tool.  Numbers of mem, endpoint and decoder objects change from boot to boot:
# devices are found by their serial number.

CXL_BUS=/sys/bus/cxl/devices

# cxl_endpoint_decoder SERIAL : name of the first free decoder of that device.
cxl_endpoint_decoder()
{
	local mem endpoint decoder
	for mem in "$CXL_BUS"/mem*; do
		[ "$(cat "$mem/serial")" = "$(printf '0x%x' "$1")" ] || continue
		for endpoint in "$CXL_BUS"/endpoint*; do
			[ "$(readlink -f "$endpoint/uport")" = "$(readlink -f "$mem")" ] || continue
			for decoder in "$endpoint"/decoder*; do
				if [ "$(cat "$decoder/size")" = 0x0 ]; then
					basename "$decoder"
					return 0
				fi
			done
		done
	done
	echo "no CXL device with serial $1 and a free decoder" >&2
	return 1
}

# cxl_wait_endpoints N : port enumeration runs behind the devices' probe.
cxl_wait_endpoints()
{
	local i n
	for ((i = 0; i < 600; i++)); do
		n=$(find "$CXL_BUS" -name 'endpoint*' | wc -l)
		[ "$n" -lt "$1" ] || return 0
		sleep 0.1
	done
	echo "only $n of $1 CXL endpoints appeared" >&2
	return 1
}

# cxl_create_region SERIAL SIZE_BYTES [noautoprobe] : prints the region's name.
# "noautoprobe" keeps the kmem driver from taking the new dax device.
cxl_create_region()
{
	local root="$CXL_BUS/decoder0.0" decoder region path status=0
	decoder=$(cxl_endpoint_decoder "$1") || return 1
	region=$(cat "$root/create_ram_region")
	path="$CXL_BUS/$region"
	echo "$region" >"$root/create_ram_region" || return 1
	echo ram >"$CXL_BUS/$decoder/mode" &&
		echo "$2" >"$CXL_BUS/$decoder/dpa_size" &&
		echo 256 >"$path/interleave_granularity" &&
		echo 1 >"$path/interleave_ways" &&
		echo "$2" >"$path/size" &&
		echo "$decoder" >"$path/target0" &&
		echo 1 >"$path/commit" || return 1
	[ "${3:-}" != noautoprobe ] || echo 0 >/sys/bus/dax/drivers_autoprobe
	echo "$region" >/sys/bus/cxl/drivers/cxl_region/bind || status=1
	udevadm settle
	[ "${3:-}" != noautoprobe ] || echo 1 >/sys/bus/dax/drivers_autoprobe
	echo "$region"
	return $status
}
