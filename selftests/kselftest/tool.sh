#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tool with the module itself: every file of sysfs that a command shows is there, what it sets
# is what the driver has then, and blocks come back as they went in. (How commands are read and
# what they answer when something is wrong, userspace/tests asks of them without a module.)
set -Eeuo pipefail

WORK=/tmp/tool
POOL=
DISK=
OUT=$WORK/out

fail()
{
	echo "# $*"
	[ ! -e "$OUT" ] || head -c 4000 "$OUT" | sed 's/^/#   /'
	exit 1
}

clean_up()
{
	[ -z "$POOL" ] || kvtier pool destroy "$POOL" >/dev/null
	[ -z "$DISK" ] || losetup -d "$DISK"
	rm -rf "$WORK"
}

# run COMMAND... : its result as JSON, in OUT.
run()
{
	kvtier -j "$@" >"$OUT" || fail "failed: kvtier $*"
}

# has KEY... : all of them are in the result.
has()
{
	local key
	for key in "$@"; do
		grep -q "\"$key\":" "$OUT" || fail "no $key"
	done
}

# is KEY VALUE [TIER] : the first of that name in the result, or that of a tier.
is()
{
	local got
	got=$(sed -E "s/.*\"(tier|name)\": *\"${3:-}\"//" "$OUT" | grep -o "\"$1\": *[^],}]*" | head -n 1 |
		sed 's/^[^:]*: *//; s/^\[ *//; s/^"//; s/"$//') || true
	[ "$got" = "$2" ] || fail "$1 is '$got', not '$2'"
}

pools_and_tiers()
{
	run pool create --tier dram:size=8M
	POOL=$(grep -o '"pool": *[0-9]*' "$OUT" | head -n 1 | grep -o '[0-9]*$')
	[ -n "$POOL" ] || fail "no pool"
	run tier attach "$POOL" "bdev:path=$DISK,size=16M,name=slow"
	run tier list "$POOL"
	has id rank state
	is capacity_bytes 8388608 dram0
	is blocks 0 slow
	run pool list
	is pool "$POOL"
	is nr_tiers 2
	run pool set "$POOL" policy=lru watermark_high_percent=91 prefetch_max_bytes=1M
	run pool show "$POOL"
	has uuid watermark_low_percent reserve_percent copies_percent reservation_timeout_ms
	is policy lru
	is watermark_high_percent 91
	is prefetch_max_bytes 1048576
	[ "$(<"/sys/class/kvtier/kvtier$POOL/policy")" = lru ] || fail "the policy is not set"
}

blocks()
{
	local ns=(--ns tool --block-bytes 64K --pool "$POOL") i
	for i in 1 2; do
		head -c 65536 /dev/urandom >"$WORK/in$i"
	done
	run put "${ns[@]}" --key-text one "$WORK/in1"
	run put "${ns[@]}" --key-text two --parent-text one "$WORK/in2"
	for i in one:1 two:2; do
		kvtier get "${ns[@]}" --key-text "${i%:*}" --output "$WORK/got" >/dev/null
		cmp -s "$WORK/in${i#*:}" "$WORK/got" || fail "${i%:*} is not what was put"
	done
	run ls "${ns[@]}"
	has key parent group leases idle_ns
	is status hit
	[ "$(grep -o '"key":' "$OUT" | wc -l)" -eq 2 ] || fail "not two blocks"
}

namespaces()
{
	local id
	run ns list "$POOL"
	has ns quota_bytes min_bytes misses evictions
	is owner_uid 0
	is mode 0600
	is blocks 2
	is puts 2
	is hits 2
	is used_bytes 131072
	is block_bytes 65536
	id=$(grep -o '"ns": *[0-9]*' "$OUT" | grep -o '[0-9]*$')
	run ns tiers "$POOL" "$id" --limit dram0=4M
	run ns tiers "$POOL" "$id"
	is used_bytes 131072 dram0
	is limit_bytes 4194304 dram0
}

counters()
{
	local name
	run stat "$POOL"
	is blocks 2
	is puts 2
	has hit_rate promotions demotions meta_bytes_per_block regions_quarantined
	# One that is not read from STAT is left out if there is no such file.
	for name in promotions_unread prefetches prefetches_used prefetches_unread evicted_room \
		evicted_quota evicted_ttl evicted_worth evicted_io evicted_lost evicted_detach \
		dropped demoted_bytes log_bytes clean_demotions copy_bytes; do
		[ "$(grep -o "\"$name\":" "$OUT" | wc -l)" -ge 2 ] || fail "no $name of each tier"
	done
	run stat "$POOL" --watch 10ms --count 2
	[ "$(wc -l <"$OUT")" -eq 2 ] || fail "not two lines"
	has hits_per_s misses_per_s puts_per_s
	run cxl list
	has memdevs regions
}

# What is in memory goes to the disk; what is forgotten, or goes with its tier, is not there.
away()
{
	local ns=(--ns tool --block-bytes 64K --pool "$POOL")
	run tier drain "$POOL" dram0
	run tier list "$POOL"
	is state draining dram0
	is blocks 2 slow
	run rm "${ns[@]}" --key-text two
	is dropped 1
	run ns list "$POOL"
	is blocks 1
	run tier detach "$POOL" slow --discard
	run tier list "$POOL"
	! grep -q '"slow"' "$OUT" || fail "the tier is there"
	# A namespace without blocks that nobody has open ends.
	run ns list "$POOL"
	! grep -q '"ns"' "$OUT" || fail "the namespace is there"
}

trap 'echo "# line $LINENO: $BASH_COMMAND"' ERR
modprobe kvtier
trap clean_up EXIT
mkdir -p "$WORK"
modprobe -q loop || :
truncate -s 64M "$WORK/disk"
DISK=$(losetup -f)
losetup "$DISK" "$WORK/disk"
pools_and_tiers
blocks
namespaces
counters
away
