#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The kvtier tool as a user meets it, over a stand-in for the kernel: cli.sh TOP OUT
# shellcheck disable=SC2030,SC2031 # each test has a subshell and variables of its own
# shellcheck disable=SC2317 # functions are called by the names in the last lines
# shellcheck source=userspace/tests/cli_lib.sh
. "$1/userspace/tests/cli_lib.sh"
# shellcheck source=userspace/tests/fake_sysfs.sh
. "$tests/fake_sysfs.sh"

# --- grammar, help, errors ---------------------------------------------------

test_help()
{
	want 0 help
	says 'pool'
	says 'version'
	want 0 pool help
	says 'kvtier pool create [--id N]'
	want 0 pool create --help
	says 'kvtier pool create'
	want 0 help cxl
	says 'kvtier cxl create'
	want 0 put --help
	says 'kvtier put'
	want 0 help replay
	says '--procs'
	want 0 gen --help
	says '--seed'
	want 2
	complains 'Usage:'
	want 2 help nonsense
	complains "unknown command 'nonsense'"
	want 0 version
	says "$(cat "$top/VERSION")"
	want 0 -j version
	json 'j["version"] == j["library"] and j["abi_revision"] >= 1'
}

test_prefixes()
{
	want 2 p list
	complains "'p' is ambiguous: pool or put?"
	want 0 po li
	want 2 pool s
	complains 'show or set?'
	want 2 pool frobnicate
	complains "'pool' cannot 'frobnicate'"
	want 2 pool
	complains 'needs a verb'
}

test_usage_errors()
{
	local line
	while read -r line; do
		# shellcheck disable=SC2086 # words on purpose
		want 2 $line
		[ ! -s "$work/stdout" ] || fail "$line wrote to stdout"
		grep -q '^kvtier: ' "$work/stderr" || fail "$line: no message"
		# shellcheck disable=SC2086
		want 2 $line -j
		json 'j["error"]["name"] == "USAGE" and j["error"]["message"]'
		[ ! -s "$work/stderr" ] || fail "$line -j wrote to stderr"
	done <<-'END'
	pool create --id 256
	pool create --id x
	pool create --tier
	pool create --tier dram
	pool create --nonsense
	pool create stray
	pool create --tier bdev:path=/dev/x,rank=0 --tier dram:size=1M,rank=1
	pool list stray
	pool show 0 1
	pool show notapool
	pool destroy
	pool set 0
	pool assemble --id x
	pool assemble --tier bdev:path=/dev/x
	pool assemble --nonsense
	pool members --export
	pool scrub --rate fast
	pool scrub --stop --wait
	pool scrub 0 1
	ns claim 0 1
	ns claim 0 x --uid 1
	ns claim 0 1 --uid nobody
	tier attach
	tier detach a b c
	tier detach x --timeout soon
	tier drain x --discard
	ns list a b
	stat --watch 0
	stat --watch never
	stat --count 3
	stat 0 1
	put
	put --ns x
	put --ns x 1234
	put --ns x --key-text a f g
	put --key-text a
	put --ns x --key-text a --block-bytes 512M
	put --ns x --key-text a --mode 999
	get --ns x
	get --ns x --key-text a --quota 1M
	get --ns x --key-text a --pad
	ls --ns x --all
	rm --ns x --all --limit 3
	ls --ns x --limit many
	ls --ns x 00
	rm --ns x
	rm --ns x --all --key-text a
	cxl create --size 0
	cxl create --memdev
	cxl create --type disk
	cxl create --uuid 6f1a5c62-2d0e-4a51-8f4e-0d5f8f1b7a11
	cxl create --map dev
	cxl create --type pmem --uuid 6f1a5c62-2d0e-4a51-8f4e
	cxl create --type pmem --uuid 6f1a5c62-2d0e-4a51-8f4e_0d5f8f1b7a11
	cxl create --type pmem --map disk
	cxl destroy
	cxl destroy dax0.0
	cxl destroy region0/../x
	cxl bind region0
	cxl bind
	version now
	nonsense
	END
	want 2 put --ns x --key-text a --limit 3
	complains "put takes no option '--limit'"
	want 2 get --ns x --key-text a --quota 1M
	complains "get takes no option '--quota'"
}

test_no_module()
{
	unset KVTIER_MOCK
	want 1 pool list
	complains 'modprobe kvtier'
	want 1 -j pool create --tier dram:size=1M
	json 'j["error"]["name"] == "ENOENT" and j["error"]["errno"] == 2'
	json '"modprobe kvtier" in j["error"]["hint"]'
	want 1 -j stat
	json '"modprobe kvtier" in j["error"]["hint"]'
	export KVTIER_MOCK_DENY=1
	want 1 pool create
	complains 'managed by root'
	# Without the control device, sysfs tells which pools there are.
	mkdir -p "$KVTIER_SYSFS/class/kvtier/kvtier4"
	want 1 stat
	complains 'pool 4'
	complains 'member of group kvtier'
}

test_json_forms()
{
	want 0 pool create --tier dram:size=64M
	want 0 pool list -j
	[ "$(wc -l <"$work/stdout")" -eq 1 ] || fail 'plain JSON is not one line'
	json 'j[0]["pool"] == 0'
	want 0 -p pool list
	[ "$(wc -l <"$work/stdout")" -gt 5 ] || fail 'pretty JSON is not indented'
	json 'j[0]["tiers"][0]["capacity_bytes"] == 64 << 20'
	want 0 --pretty pool show
	json 'j["features"] == ["async", "arena"]'
}

# Every verb and command has its place in the manual.
test_manual()
{
	local page=$top/Documentation/man/kvtier.1 words
	sed 's/\\f[BIR]//g; s/\\-/-/g; s/^\.B //' "$page" >"$work/page"
	for object in cxl pool tier ns; do
		"$tool" help "$object"
	done | sed -n 's/^  \(kvtier [a-z]* [a-z]*\).*/\1/p' >"$work/verbs"
	"$tool" help | sed -n '/^Commands/,/^Options/s/^  \([a-z]*\) .*/kvtier \1/p' >>"$work/verbs"
	[ "$(wc -l <"$work/verbs")" -gt 15 ] || fail 'too few verbs found'
	while read -r words; do
		grep -q "^$words" "$work/page" || fail "kvtier(1) lacks: $words"
	done <"$work/verbs"
}

# --- pools and tiers ---------------------------------------------------------

test_pool()
{
	want 0 -j pool create --id 3 --tier dram:name=fast,size=256M \
		--tier node:node=1,size=1.5G
	json 'j["pool"] == 3 and j["capacity_bytes"] == 1792 << 20'
	json '[t["name"] for t in j["tiers"]] == ["fast", "node0"]'
	json '[t["rank"] for t in j["tiers"]] == [0, 1]'
	want 1 -j pool create --id 3
	json 'j["error"]["name"] == "EEXIST"'
	want 0 pool create
	want 0 pool list
	says '/dev/kvtier3'
	says '/dev/kvtier0'
	want 2 stat
	complains 'there are 2 pools'
	want 0 pool destroy 0
	want 0 pool show
	says '256M'
	says 'async,arena'
	want 1 -j pool destroy 0
	json 'j["error"]["name"] == "ENOENT"'
	want 0 pool destroy kvtier3
	want 1 pool show
	complains 'kvtier pool create'
}

# A tier that cannot be had takes the pool and the others with it.
test_pool_create_undoes()
{
	fake_sysfs "$KVTIER_SYSFS" 0
	mkdir -p "$KVTIER_SYSFS/bus/dax/devices/dax9.9"
	ln -s "$KVTIER_SYSFS/bus/dax/drivers/kvtier" \
		"$KVTIER_SYSFS/bus/dax/devices/dax9.9/driver"
	export KVTIER_MOCK_FAIL_OP=36 KVTIER_MOCK_FAIL_ERRNO=16
	want 1 -j pool create --tier dram:size=1M --tier dax:dev=dax9.9
	json 'j["error"]["name"] == "EBUSY" and "dram0" in j["error"]["message"]'
	unset KVTIER_MOCK_FAIL_OP
	want 0 -j pool list
	json 'j == []'
	# The same rank twice is found before anything is made.
	want 2 pool create --tier dram:size=1M,rank=1 --tier dax:dev=dax9.9,rank=1
	want 1 -j pool create --tier dram:size=1M,name=a --tier dax:dev=dax9.9,name=a
	json 'j["error"]["name"] == "EEXIST"'
	want 0 -j pool list
	json 'j == []'
}

test_tier_devices()
{
	fake_sysfs "$KVTIER_SYSFS" 0
	local dax=$KVTIER_SYSFS/bus/dax
	want 0 pool create --tier dram:size=1M
	want 1 tier attach dax:dev=dax0.0
	complains 'kvtier cxl create'
	mkdir "$dax/devices/dax0.0"
	want 1 tier attach dax:dev=dax0.0
	complains 'kvtier cxl bind'
	ln -s "$dax/drivers/kmem" "$dax/devices/dax0.0/driver"
	want 1 -j tier attach dax:dev=dax0.0
	json '"system RAM" in j["error"]["hint"]'
	ln -sfn "$dax/drivers/device_dax" "$dax/devices/dax0.0/driver"
	want 1 tier attach dax:dev=dax0.0
	complains 'driver device_dax has dax0.0'
	ln -sfn "$dax/drivers/kvtier" "$dax/devices/dax0.0/driver"
	want 0 tier attach dax:dev=dax0.0
	want 1 tier attach bdev:path=/nonexistent
	complains '/nonexistent'
	touch "$work/file"
	want 1 tier attach "bdev:path=$work/file"
	complains 'losetup'
}

test_tier()
{
	local tier
	want 0 pool create --tier dram:size=16M
	want 0 -j tier attach 0 node:node=0,size=32M
	json '[t["rank"] for t in j["tiers"]] == [0, 1]'
	want 1 -j tier attach dram:size=16M,name=dram0,rank=7
	json 'j["error"]["name"] == "EEXIST"'
	tier=$KVTIER_SYSFS/class/kvtier/kvtier0/tiers/node0
	mkdir -p "$tier"
	echo node0 >"$tier/device"
	want 0 tier list
	says 'node0'
	want 0 -j tier list kvtier0
	json 'j[1]["device"] == "node0" and "device" not in j[0]'
	want 1 tier drain ghost
	complains 'kvtier tier list'
	want 0 -j tier drain node0 --timeout 100ms
	json 'j["tiers"][1]["state"] == "draining"'
	export KVTIER_MOCK_FAIL_OP=37 KVTIER_MOCK_FAIL_ERRNO=16
	want 1 tier detach node0
	complains 'what it was before'
	unset KVTIER_MOCK_FAIL_OP
	echo 0 >"${tier%/*/*}/unwiped"
	want 0 tier detach 0 node0 --discard
	! grep -q . "$work/stderr" || fail 'a member that was wiped is told of'
	echo 1 >"${tier%/*/*}/unwiped"
	want 0 tier attach 0 node:node=0,size=32M
	want 0 tier detach 0 node0
	complains 'members that have left without being wiped, because the device had gone or took no writes: 1;'
	complains 'echo 0 > /sys/class/kvtier/kvtier0/unwiped'
	want 0 -j tier attach 0 node:node=0,size=32M
	want 0 -j tier detach 0 node0 --discard
	json 'len(j["tiers"]) == 1 and j["unwiped"] == 1'
}

# Numbers change from boot to boot, the UUID does not.
test_pool_by_uuid()
{
	local dir=$KVTIER_SYSFS/class/kvtier uuid=01020304-0506-0708-090a-0b0c0d0e0f10
	want 0 pool create
	want 0 pool create
	mkdir -p "$dir"/kvtier{0,1}
	echo "${uuid/01/ff}" >"$dir/kvtier0/uuid"
	echo "$uuid" >"$dir/kvtier1/uuid"
	want 1 -j pool destroy "${uuid/01/ee}"
	json 'j["error"]["name"] == "ENOENT"'
	want 2 pool destroy "${uuid/01/}"
	want 0 -j pool show "$uuid"
	json "j['pool'] == 1 and j['uuid'] == '$uuid'"
	want 0 -j pool destroy "${uuid^^}"
	json 'j["destroyed"] == 1'
	want 0 pool show 0
}

test_pool_set()
{
	local dir=$KVTIER_SYSFS/class/kvtier/kvtier0
	want 0 pool create
	mkdir -p "$dir"
	echo lru >"$dir/policy"
	echo 70 >"$dir/watermark_low_percent"
	echo 0 >"$dir/prefetch_max_bytes"
	want 0 -j pool set 0 policy=reuse watermark_low_percent=60
	json 'j["policy"] == "reuse" and j["watermark_low_percent"] == 60'
	want 0 -j pool set 0 prefetch_max_bytes=64M
	json 'j["prefetch_max_bytes"] == 64 << 20'
	want 2 pool set 0 prefetch_max_bytes=64Q
	[ "$(cat "$dir/prefetch_max_bytes")" = $((64 << 20)) ] || fail 'half a number was written'
	# One that makes no sense, and nothing is set.
	: >"$work/log"
	want 2 pool set 0 policy=lru color=red
	want 2 pool set 0 policy=lru watermark_low_percent
	want 2 pool set 0 policy=lru watermark_low_percent=
	want 2 pool set 0 policy=lru prefetch_max_bytes=64Q
	[ ! -s "$work/log" ] || fail "set: $(cat "$work/log")"
	echo 'class/kvtier/kvtier0/policy 22' >"$work/fail"
	want 1 pool set 0 policy=nonsense
	complains 'unknown'
	[ ! -e "$work/fail" ] || fail 'the error was not injected'
}

test_pool_cgroups()
{
	local pool=class/kvtier/kvtier0 groups=$KVTIER_SYSFS/fs/cgroup a b
	want 0 pool create
	mkdir -p "$KVTIER_SYSFS/$pool" "$groups/a.slice/one two.scope" "$groups/b"
	: >"$groups/file"
	a=$(stat -c %i "$groups/a.slice/one two.scope")
	b=$(stat -c %i "$groups")
	want 1 pool cgroups 0
	complains 'kvtier pool list'
	: >"$KVTIER_SYSFS/$pool/cgroup_limits"
	want 0 -j pool cgroups
	json 'j == []'
	printf '%s 1048576 2097152\n%s 7 65536\n18446744073709551615 0 4096\n' "$a" "$b" \
		>"$KVTIER_SYSFS/$pool/cgroup_limits"
	want 0 -j pool cgroups 0
	json "[c['cgroup'] for c in j] == [$a, $b, (1 << 64) - 1]"
	json '[c.get("path") for c in j] == ["/a.slice/one two.scope", "/", None]'
	json '[c["used_bytes"] for c in j] == [1 << 20, 7, 0]'
	json '[c["limit_bytes"] for c in j] == [2 << 20, 65536, 4096]'
	want 0 pool cgroups
	says 'one two.scope'
	# What is wrong about the last changes nothing of the first.
	: >"$work/log"
	want 1 pool cgroups 0 --limit /b=4K --limit /c=4K
	complains "cgroup '/c'"
	want 1 pool cgroups 0 --limit /b=4K --limit /file=4K
	want 1 pool cgroups 9 --limit /b=max
	complains 'kvtier pool list'
	want 2 pool cgroups 0 --limit /b=4K --limit /b=lots
	complains 'or max'
	want 2 pool cgroups 0 --limit /b
	want 2 pool cgroups 0 --limit =4K
	want 2 pool cgroups 0 --limit b=4K
	want 2 pool cgroups 0 --limit 0=4K
	want 2 pool cgroups --limit /b=4K
	want 2 pool cgroups 0 1
	[ ! -s "$work/log" ] || fail 'something was written'
	want 0 pool cgroups 0 --limit "/a.slice/one two.scope=1.5M" --limit "$groups/b=max" \
		--limit "$groups=4K" --limit 5123=64K
	printf '%s/cgroup_limits=%s\n' "$pool" '/a.slice/one two.scope 1572864' "$pool" '/b max' \
		"$pool" '/ 4096' "$pool" '5123 65536' >"$work/wanted"
	same "$work/wanted" "$work/log"
	echo "$pool/cgroup_limits 28" >"$work/fail"
	want 1 pool cgroups 0 --limit /b=1T
	complains 'take one away'
}

test_ns_list()
{
	local dir=$KVTIER_SYSFS/class/kvtier/kvtier0/namespaces
	want 0 pool create
	want 1 ns list
	mkdir -p "$dir/2" "$dir/10"
	echo 1001 >"$dir/2/owner_uid"
	echo 0640 >"$dir/2/mode"
	echo 65536 131072 >"$dir/2/groups"
	echo 1048576 >"$dir/2/used_bytes"
	want 0 -j ns list
	json '[n["ns"] for n in j] == [2, 10]'
	json 'j[0]["mode"] == "0640" and j[0]["block_bytes"] == [65536, 131072]'
	want 0 ns list 0
	says '0640'
	says '65536,131072'
	says '1M'
}

test_ns_tiers()
{
	local ns=class/kvtier/kvtier0/namespaces/7 dir
	dir=$KVTIER_SYSFS/$ns
	want 0 pool create
	want 1 ns tiers 0 7
	complains 'kvtier ns list'
	mkdir -p "$dir"
	printf 'dram0 4096\nnvme0 1048576\nnvme01 7\n' >"$dir/tier_used_bytes"
	printf 'nvme0 1048576 2097152\n' >"$dir/tier_limits"
	printf 'nvme01 7 65536\n' >"$dir/tier_mins"
	want 0 -j ns tiers 0 7
	json '[t["tier"] for t in j] == ["dram0", "nvme0", "nvme01"]'
	json '[t["used_bytes"] for t in j] == [4096, 1 << 20, 7]'
	json '[t.get("limit_bytes") for t in j] == [None, 2 << 20, None]'
	json '[t.get("guaranteed_bytes") for t in j] == [None, None, 65536]'
	want 0 ns tiers 0 7
	says '2M'
	# What is wrong about the last changes nothing of the first.
	: >"$work/log"
	want 1 ns tiers 0 7 --limit dram0=4K --limit nvme=4K
	complains 'kvtier tier list'
	want 2 ns tiers 0 7 --limit dram0=4K --guarantee nvme0=max
	want 2 ns tiers 0 7 --limit dram0=4K --limit nvme0=lots
	complains 'or max'
	want 2 ns tiers 0 7 --limit dram0
	want 2 ns tiers 0 7 --limit =4K
	want 2 ns tiers 0
	want 2 ns tiers 0 seven
	[ ! -s "$work/log" ] || fail 'something was written'
	want 0 ns tiers 0 7 --limit dram0=4K --limit nvme01=max --guarantee nvme0=1.5M
	printf '%s\n' "$ns/tier_limits=dram0 4096" "$ns/tier_limits=nvme01 max" \
		"$ns/tier_mins=nvme0 1572864" >"$work/wanted"
	same "$work/wanted" "$work/log"
	echo "$ns/tier_mins 28" >"$work/fail"
	want 1 ns tiers 0 7 --guarantee nvme0=1T
	complains 'three quarters'
}

test_stat()
{
	want 0 pool create --tier dram:size=16M
	want 0 -j stat
	json 'j["pool"] == 0 and j["tiers"][0]["tier"] == "dram0"'
	json '"hit_rate" not in j and j["meta_bytes_per_block"] == 120'
	json '"promotions_unread" not in j["tiers"][0]'
	mkdir -p "$KVTIER_SYSFS/class/kvtier/kvtier0/tiers/dram0"
	echo 12345 >"$KVTIER_SYSFS/class/kvtier/kvtier0/tiers/dram0/promotions_unread"
	echo 7 >"$KVTIER_SYSFS/class/kvtier/kvtier0/tiers/dram0/evicted_worth"
	want 0 -j stat
	json 'j["tiers"][0]["promotions_unread"] == 12345 and j["tiers"][0]["evicted_worth"] == 7'
	want 0 -j stat --watch 10ms --count 3
	[ "$(wc -l <"$work/stdout")" -eq 3 ] || fail 'not three samples'
	[ "$(grep -c hits_per_s "$work/stdout")" -eq 2 ] || fail 'rates'
	want 0 stat 0
	says 'dram0'
	says '12345'
	export KVTIER_MOCK_FAIL_OP=14 KVTIER_MOCK_FAIL_ERRNO=1
	want 1 stat
	complains 'CAP_SYS_ADMIN'
}

# --- blocks ------------------------------------------------------------------

test_blocks()
{
	local key
	want 0 pool create --tier dram:size=16M
	head -c 65536 /dev/urandom >"$work/in"
	want 1 put --ns model "$work/in" --key-text hello
	complains '--block-bytes SIZE'
	want 0 -j put --ns model --key-text hello --block-bytes 64K "$work/in"
	json 'j["status"] == "done" and j["bytes"] == 65536'
	key=$(python3 -c 'import hashlib
print(hashlib.sha256(b"hello").hexdigest())')
	json "j['key'] == '$key'"
	want 0 -j put --ns model --block-bytes 64K "$key" "$work/in"
	json 'j["status"] == "exists"'
	want 0 get --ns model --block-bytes 64K "$key"
	same "$work/in" "$work/stdout"
	want 0 -j get --ns model --block-bytes 64K "$key" -o "$work/out"
	same "$work/in" "$work/out"
	want 2 -j get --ns model --block-bytes 64K "$key"
	want 1 get --ns model --block-bytes 64K --key-text other
	complains 'not in the pool'
	[ ! -s "$work/stdout" ] || fail 'a miss wrote something'
	want 1 get --ns nobody "$key"
	complains 'another'
	want 1 get --ns model --block-bytes 32K "$key"
	complains 'other block sizes'
	"$tool" put --ns model --block-bytes 64K --key-text stdin <"$work/in" >/dev/null
	want 0 get --ns model --block-bytes 64K --key-text stdin
	same "$work/in" "$work/stdout"
	want 1 get --ns model --block-bytes 64K --key-text stdin -o /nonexistent/x
	if [ -e /dev/full ]; then
		"$tool" get --ns model --block-bytes 64K "$key" >/dev/full \
			2>"$work/stderr" && fail '/dev/full took it'
		complains 'writing'
	fi
}

test_block_sizes()
{
	want 0 pool create --tier dram:size=16M
	echo short >"$work/short"
	head -c 5000 /dev/zero >"$work/long"
	want 1 put --ns s --block-bytes 4K --key-text a "$work/short"
	complains '--pad'
	want 0 put --ns s --block-bytes 4K --key-text a --pad "$work/short"
	want 0 get --ns s --block-bytes 4K --key-text a
	{ cat "$work/short"; head -c $((4096 - 6)) /dev/zero; } >"$work/padded"
	same "$work/padded" "$work/stdout"
	want 1 put --ns s --block-bytes 4K --key-text b "$work/long"
	complains 'File too large'
	want 1 put --ns s --block-bytes 4K --key-text b "$work/nothing"
	# Sizes of an existing namespace come from sysfs.
	want 1 get --ns s --key-text a
	complains '--block-bytes SIZE'
	mkdir -p "$KVTIER_SYSFS/class/kvtier/kvtier0/namespaces/1"
	echo 4096 >"$KVTIER_SYSFS/class/kvtier/kvtier0/namespaces/1/groups"
	want 0 get --ns s --key-text a
	same "$work/padded" "$work/stdout"
	want 1 get --ns s --key-text a --group 1
}

test_secrets()
{
	want 0 pool create --tier dram:size=16M
	head -c 4096 /dev/urandom >"$work/in"
	head -c 32 /dev/urandom >"$work/secret"
	head -c 31 /dev/urandom >"$work/stub"
	want 0 put --ns n --secret-file "$work/secret" --block-bytes 4K \
		--key-text a "$work/in"
	want 1 get --ns n --block-bytes 4K --key-text a
	want 1 get --ns n --secret-file "$work/stub" --block-bytes 4K --key-text a
	complains 'a secret has 32 bytes'
	head -c 33 /dev/zero >"$work/stub"
	want 1 get --ns n --secret-file "$work/stub" --block-bytes 4K --key-text a
	want 0 get --ns n --secret-file "$work/secret" --block-bytes 4K --key-text a
	same "$work/in" "$work/stdout"
	printf n >"$work/name"
	want 0 ls --ns-file "$work/name" --secret-file "$work/secret" -j
	json 'len(j) == 1'
	want 2 ls --ns n --owner nobody
	complains 'is not the number of a user'
	# Nobody else has it, and nothing is made for others.
	want 1 get --ns n --secret-file "$work/secret" --owner 4000000000 --key-text a
	want 1 put --ns m --owner 4000000000 --block-bytes 4K --key-text a "$work/in"
	complains 'No such file'
	want 0 get --ns n --secret-file "$work/secret" --owner "$(id -u)" \
		--block-bytes 4K --key-text a
}

test_chains()
{
	local i parent=()
	want 0 pool create --tier dram:size=16M
	head -c 4096 /dev/zero >"$work/in"
	want 1 put --ns c --block-bytes 4K --key-text b --parent-text a "$work/in"
	complains 'its parent is not in the pool'
	for i in $(seq 30); do
		want 0 put --ns c --block-bytes 4K --key-text "k$i" \
			"${parent[@]}" "$work/in"
		parent=(--parent-text "k$i")
	done
	want 0 -j ls --ns c
	json 'len(j) == 30 and sum("parent" in b for b in j) == 29'
	json 'all(b["status"] == "hit" and b["tier"] == "dram0" for b in j)'
	want 0 -j ls --ns c --limit 3
	json 'len(j) == 3'
	want 0 ls --ns c
	[ "$(wc -l <"$work/stdout")" -eq 31 ] || fail 'not 30 lines and a heading'
	want 1 rm --ns d --key-text k1
	complains 'kvtier ns list'
	want 1 rm --ns c --key-text k1
	complains '0 blocks dropped, 1 kept'
	want 0 -j rm --ns c --key-text k30
	json 'j["dropped"] == 1'
	want 0 -j rm --ns c --key-text k28 --key-text k29 --key-text nothere
	json 'j["dropped"] == 2 and j["missing"] == 1'
	want 0 -j rm --ns c --all
	json 'j["dropped"] == 27 and j["kept"] == 0'
	want 0 -j ls --ns c
	json 'j == []'
	want 0 -j rm --ns c --all
	json 'j["dropped"] == 0'
}

for name in help prefixes usage-errors no-module json-forms manual pool \
	pool-create-undoes tier-devices tier pool-by-uuid pool-set pool-cgroups ns-list ns-tiers stat \
	blocks block-sizes secrets chains; do
	run_test "$name"
done
exit "$failed"
