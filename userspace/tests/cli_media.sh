#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# fsck and dump on images of members, whole and damaged: cli_media.sh TOP OUT
# The images come from the crash test of the log, which also takes them back: after a
# repair it must recover from them, and nothing that was dropped may come back.
# shellcheck disable=SC2030,SC2031 # each test has a subshell and variables of its own
# shellcheck disable=SC2317 # functions are called by the names in the last lines
# shellcheck source=userspace/tests/cli_lib.sh
. "$1/userspace/tests/cli_lib.sh"

mkimage=$out/userspace/tests/mkimage

# image clean|crash [SEED]: makes $work/image.
image()
{
	image=$work/image
	"$mkimage" --image "$image" "${2:-1}" 400 "$1" || fail "no image of seed ${2:-1}"
}

damage()
{
	"$tests/damage.py" "$image" "$@"
}

# dumped PYTHON: of a dump of everything, as "j", with "live(SEGMENT)", "sealed" (those
# that are, and live), "obsolete(SEGMENT)" (its first kill is: nobody misses it) and
# "records" (those that are not dead).
dumped()
{
	want 0 -j dump "$image" --super --segments --batches --records --namespaces --kills
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
kills = {(k["dead_segment"], k["dead_life"], k["dead_unit"]) for k in j["kills"]}
def live(s):
    return s["life"] and (s["segment"], s["life"], "all") not in kills
sealed = [s for s in j["segments"] if s["state"] == "sealed" and live(s)]
lives = {s["life"] for s in j["segments"]}
def obsolete(s):
    return next(k for k in j["kills"] if k["segment"] == s["segment"])["dead_life"] not in lives
records = [r for r in j["records"] if live(r) and
           (r["segment"], r["life"], r["unit"]) not in kills]
print(eval(sys.argv[2]))' "$work/stdout" "$1"
}

# Which superblock counts.
valid_super()
{
	dumped '[s["superblock"] for s in j["superblocks"] if s["valid"]][0]'
}

# A sealed segment that has blocks, and where it starts.
sealed_segment()
{
	dumped 'next("%d %d" % (s["segment"], s["byte"]) for s in sealed if s["blocks"])'
}

# finds STATUS PROBLEM [OPTION...]: fsck's status, and that problem among others.
finds()
{
	local status=$1 problem=$2
	shift 2
	want "$status" -j fsck "$@" "$image"
	json "any(p['problem'] == '$problem' for p in j[0]['problems'])"
	json "j[0]['status'] == $status"
	want "$status" fsck "$@" "$image"
}

# repairs PROBLEM [OPTION...]: it is found and repaired, nothing is left, recovery
# goes on with it, and a second repair has nothing to do.
repairs()
{
	local problem=$1
	shift
	finds 4 "$problem" "$@"
	says '--repair would'
	cp "$image" "$work/before"
	want 1 -j fsck --repair "$@" "$image"
	json 'j[0]["repaired"] > 0 and j[0]["errors"] == 0'
	want 0 -j fsck --repair "$@" "$image"
	json 'j[0]["repaired"] == 0'
	cp "$work/before" "$image"
	want 1 fsck --repair "$@" "$image"
	says 'repaired: '
	takes_it damaged
}

takes_it()
{
	"$mkimage" --mount "$image" "$1" || fail 'recovery does not take it'
}

# --- whole -------------------------------------------------------------------

test_good()
{
	local seed kind
	for seed in 1 2 3; do
		for kind in clean crash; do
			image "$kind" "$seed"
			cp "$image" "$work/copy"
			want 0 -j fsck --payload "$image"
			json 'j[0]["errors"] == 0 and j[0]["counts"]["blocks"] > 0'
			json "j[0]['state'] == '${kind/crash/dirty}'"
			want 0 fsck --notes --payload "$image"
			says 'good'
			want 0 -j fsck --repair --payload "$image"
			json 'j[0]["repaired"] == 0'
			cmp "$image" "$work/copy" || fail 'a good image was changed'
			takes_it whole
		done
	done
	image clean
	want 0 fsck "$image"
	says 'clean, 8 segments'
	want 0 -j fsck "$image" "$image"
	json 'len(j) == 2'
}

test_crash_is_no_error()
{
	image crash
	want 0 -j fsck "$image"
	json 'j[0]["notes"] > 0 and all(p["severity"] == "note" for p in j[0]["problems"])'
	json 'any(p["problem"] == "segment-unsealed" for p in j[0]["problems"])'
	want 0 fsck "$image"
	[ "$(wc -l <"$work/stdout")" -eq 1 ] || fail 'notes are shown unasked'
	# The same on a member that claims to be clean is one.
	damage super "$(valid_super)" state 1
	repairs segment-unsealed
}

test_foreign()
{
	image=$work/file
	head -c 3000000 /dev/zero >"$image"
	want 8 fsck "$image"
	complains 'is not a member of a kvtier pool'
	want 8 -j fsck "$image" --repair
	json '"not a member" in j[0]["failed"] and j[0]["status"] == 8'
	want 1 dump "$image"
	complains 'is not a member'
	: >"$image"
	want 8 fsck "$image"
	want 8 fsck "$work/nothing"
	complains 'No such file'
	want 8 fsck "$work"
	complains 'neither a block device nor a file'
	want 16 fsck
	want 16 fsck --frobnicate x
	image clean
	want 8 fsck "$image" "$work/nothing"
	damage flip 100
	want 12 fsck "$image" "$work/nothing"
}

test_in_use()
{
	image clean
	damage flip 100
	ln "$image" "$work/locked"
	(
		flock 9
		want 8 fsck --repair "$image"
		complains 'is in use'
		want 4 -j fsck "$image"
		json 'j[0]["in_use"]'
		want 0 -j dump "$image"
		complains 'is in use'
		want 4 fsck "$image"
		complains 'may not be so'
	) 9<"$work/locked"
	mkdir -p "$KVTIER_SYSFS/block/loop3/loop"
	realpath "$image" >"$KVTIER_SYSFS/block/loop3/loop/backing_file"
	want 8 fsck --repair "$image"
	# By whichever of its names.
	want 8 fsck --repair "$work/locked"
	complains 'is in use'
}

# --- superblocks -------------------------------------------------------------

test_super()
{
	local slot
	for slot in 0 1; do
		image clean
		damage flip $((slot * 524288 + 60))
		finds 4 super-damaged
		says "superblock $slot: "
		repairs super-damaged
		image crash
		damage zero $((slot * 524288)) 4096
		repairs super-missing
	done
	image clean
	damage flip 60
	damage flip $((524288 + 60))
	finds 4 supers-damaged
	want 4 fsck --repair "$image"
	want 0 dump --super "$image"
	says 'found=damaged'
	want 0 -j dump --super "$image"
	json '"both damaged" in j["problem"]'
	# The segments that were asked for, too, are not there.
	want 1 dump "$image"
	says 'found=damaged'
	complains 'both damaged'
	want 1 -j dump "$image"
	json 'len(j["superblocks"]) == 2 and "both damaged" in j["problem"] and len(j) == 3'
	complains 'both damaged'
	want 1 dump --records "$image"
	complains 'both damaged'
}

test_super_newer()
{
	image clean
	damage super 0 incompat 4
	damage super 1 incompat 4
	want 8 fsck "$image"
	complains 'features that this tool does not know'
	want 8 fsck --repair "$image"
	want 0 -j dump --super "$image"
	json 'j["superblocks"][0]["found"] == "newer" and j["superblocks"][0]["incompat"] == 4'
	want 1 dump --records "$image"
	# It may be read, and not written.
	image clean
	damage super 0 ro_compat 1
	damage super 1 ro_compat 1
	want 0 fsck "$image"
	damage flip $(((1 - $(valid_super)) * 524288 + 60))
	cp "$image" "$work/before"
	want 8 fsck --repair "$image"
	complains 'features without which this tool cannot write to it'
	cmp "$image" "$work/before" || fail 'it was written to'
	image clean
	damage super 0 version 2
	damage super 1 version 2
	want 8 fsck "$image"
}

test_super_limits()
{
	local limit slot
	for limit in life_limit seq_limit ns_limit; do
		image clean 2
		slot=$(valid_super)
		damage super "$slot" "$limit" 1
		case $limit in
		ns_limit) repairs namespace-limit ;;
		*) repairs "${limit/_/-}" ;;
		esac
	done
	image clean
	damage super 0 generation 101
	damage super 1 generation 100
	finds 4 super-misplaced
	want 4 fsck --repair "$image"
}

test_truncated()
{
	image clean
	truncate -s -4096 "$image"
	finds 4 layout
	want 4 fsck --repair "$image"
	truncate -s 100000 "$image"
	finds 4 layout
	image clean
	damage super 0 nr_segs 4000000
	damage super 1 nr_segs 4000000
	finds 4 layout
}

# --- segments ----------------------------------------------------------------

# What it had is found again, kills included: nothing comes back.
test_head()
{
	local seg byte seed blocks
	for seed in 1 2 3; do
		image clean "$seed"
		want 0 -j fsck "$image"
		blocks=$(python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["counts"]["blocks"])' <"$work/stdout")
		read -r seg byte < <(sealed_segment)
		damage flip $((byte + 300))
		repairs segment-headless
		want 0 -j fsck --payload "$image"
		json "j[0]['counts']['blocks'] == $blocks and j[0]['state'] == 'clean'"
		image clean "$seed"
		damage zero "$byte" 4096
		repairs segment-headless
	done
	# One that has ended has nothing to lose: it was about to be used anew.
	image clean
	damage zero "$(dumped '[s["byte"] for s in j["segments"] if s["state"] == "sealed" and
		not live(s)][0]')" 4096
	want 0 -j fsck --payload "$image"
	json 'not j[0]["problems"]'
	# Without its summary nothing is left of it, and that is said. A superblock can be helped.
	image clean 4
	damage flip $(((1 - $(valid_super)) * 524288 + 60))
	read -r seg byte < <(sealed_segment)
	damage zero "$(dumped "[s['byte'] + 4096 * s['summary_unit'] for s in sealed
		if s['segment'] == $seg][0]")" 512
	damage zero "$byte" 4096
	finds 4 segment-headless
	# A kill in it is missing; that much is left to recovery.
	want 5 fsck --repair "$image"
	says 'left:'
	# After a crash only if it is certain which life it had.
	image crash
	read -r seg byte < <(sealed_segment)
	damage flip $((byte + 300))
	repairs segment-headless
	image crash
	damage zero "$byte" 4096
	finds 4 segment-headless
	want 4 fsck --repair "$image"
	says "segment $seg: "
}

# Of a life that was never given out, it says nothing: recovery does not heed it, either. It takes
# the place of a kill that nobody misses.
test_kill_life()
{
	local seed seg='' byte summary='' footer limit
	image=$work/image
	for seed in {1..20}; do
		"$mkimage" --image "$image" "$seed" 400 clean || continue
		read -r seg byte < <(sealed_segment 2>/dev/null) || continue
		read -r summary footer limit < <(dumped "next('%d %d %d' % (s['byte'] +
			4096 * s['summary_unit'], s['byte'] + j['superblocks'][0]['segment_bytes'] - 4096,
			max(v['life_limit'] for v in j['superblocks']))
			for s in sealed if s['kills'] and s['segment'] != $seg and obsolete(s))" \
			2>/dev/null) && break
	done
	[ -n "$summary" ] || fail 'no image has such a kill'
	damage kill "$summary" "$footer" "$seg" "$((limit + 9))"
	want 0 -j fsck --payload "$image"
	json "any(p['problem'] == 'kill-life' and p['severity'] == 'note' for p in j[0]['problems'])"
	want 0 fsck --notes "$image"
	says '1 kills are of lives'
	want 0 -j dump "$image" --kills
	json "any(k['dead_segment'] == $seg and k['dead_life'] == $limit + 9 for k in j['kills'])"
	damage flip $((byte + 300))
	repairs segment-headless
}

# Recovery takes the batches instead.
test_footer()
{
	local foot
	image clean
	foot=$(dumped 'sealed[0]["byte"] + j["superblocks"][0]["segment_bytes"] - 4096')
	damage flip $((foot + 20))
	repairs segment-unsealed
	want 0 -j fsck "$image"
	json 'j[0]["state"] == "dirty"'
	image clean
	foot=$(dumped 'sealed[0]["byte"] + 4096 * sealed[0]["summary_unit"]')
	damage flip $((foot + 20))
	repairs segment-summary
}

test_payload()
{
	local byte
	image clean
	byte=$(dumped 'records[0]["byte"]')
	damage flip $((byte + 20))
	want 0 fsck "$image"
	repairs payload-damaged --payload
	want 0 -j fsck --payload "$image"
	json 'any(p["problem"] == "payload-torn" for p in j[0]["problems"])'
	json 'j[0]["state"] == "dirty"'
	# Not when the segment could not be walked without its footer.
	image clean
	byte=$(dumped 'records[0]["byte"]')
	damage flip $((byte + 20))
	damage flip "$(dumped '[b["byte"] for b in j["batches"] if b["number"] == 1 and
		b["segment"] == records[0]["segment"]][0]')"
	finds 4 payload-damaged --payload
	want 4 fsck --repair --payload "$image"
}

# A batch of a sealed segment is in its summary, too.
test_batch()
{
	image clean
	damage flip "$(dumped '[b["byte"] for b in j["batches"] if b["number"] == 1 and
		b["segment"] == sealed[0]["segment"]][0]')"
	want 0 fsck "$image"
	want 0 -j fsck --payload "$image"
	json '[p["problem"] for p in j[0]["problems"]] == ["segment-batches"]'
}

# A sector lost anywhere: whatever is repaired, recovery takes, and nothing comes back.
test_anywhere()
{
	local byte size i
	image clean 3
	size=$(stat -c %s "$image")
	cp "$image" "$work/whole"
	for i in $(seq 30); do
		cp "$work/whole" "$image"
		byte=$(((i * 2654435761) % size / 512 * 512))
		damage zero "$byte" 512
		kv fsck --payload --repair "$image"
		case $(cat "$work/status") in
		0 | 1) ;;
		*) fail "512 bytes at $byte: status $(cat "$work/status")" ;;
		esac
		takes_it damaged
	done
}

# Without memory the status is neither that of a good member nor that of a damaged one.
test_no_memory()
{
	local limit_kib=4096 step_kib=32 status=127 failed=0
	image clean
	cp "$image" "$work/before"
	while [ "$status" -ne 0 ] && [ "$limit_kib" -lt 65536 ]; do
		limit_kib=$((limit_kib + step_kib))
		status=0
		(ulimit -v "$limit_kib" && exec "$out/bin/kvtier" -j fsck --payload --repair "$image") \
			>"$work/stdout" 2>"$work/stderr" || status=$?
		case $status in
		8) failed=$((failed + 1)) ;;
		0 | 127) ;;	# 127: it could not even be loaded
		*) fail "with $limit_kib KiB: status $status" ;;
		esac
		cmp -s "$work/before" "$image" || fail "with $limit_kib KiB: the image has changed"
	done
	[ "$status" -eq 0 ] || fail "not even $limit_kib KiB were enough"
	[ "$failed" -gt 0 ] || fail 'there was no limit at which memory was short'
}

# --- dump --------------------------------------------------------------------

test_dump()
{
	image clean
	want 0 dump "$image"
	says 'superblock superblock=0 found=good'
	says 'segment segment=0 '
	want 0 -j dump "$image" --super --segments --batches --records --namespaces --kills
	json 'len(j["superblocks"]) == 2 and len(j["segments"]) == 8'
	json 'all(j[k] for k in ("batches", "records", "namespaces", "kills"))'
	json 'len(j["records"]) == sum(s["blocks"] for s in j["segments"])'
	json 'len(j["kills"]) == sum(s["kills"] for s in j["segments"])'
	json 'all(len(r["key"]) == 64 for r in j["records"])'
	json 'not any("secret" in k and k != "secret" for n in j["namespaces"] for k in n)'
	json 'all(len(n["salt_start"]) == 8 and n["secret"] in (True, False)
		for n in j["namespaces"])'
	want 0 -p dump "$image" --segment 1
	json '[s["segment"] for s in j["segments"]] == [1]'
	json 'all(r["segment"] == 1 for r in j["records"])'
	want 1 dump "$image" --segment 99
	complains 'has 8 segments'
	want 2 dump
	want 2 dump "$image" "$image"
	want 2 dump --segment x "$image"
	want 2 dump --nonsense "$image"
}

for name in good crash-is-no-error foreign in-use super super-newer super-limits truncated \
	head kill-life footer payload batch anywhere no-memory dump; do
	run_test "$name"
done
exit "$failed"
