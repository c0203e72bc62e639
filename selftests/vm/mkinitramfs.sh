#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes the guest's initramfs: mkinitramfs.sh --kernel stock|debug|kcsan --output FILE
#	[--payload DIR] [--bin PROGRAM]... [--redis]
#
# The result is two cpio archives in a row, which the kernel unpacks one over
# the other.  The first holds what no source of ours changes (busybox, bash,
# kmod, udev, the kernel's modules) and is cached; the second holds our modules
# with a module index made over both, our programs with the libraries they are
# linked to, the test scripts, and the payload (as /payload).
#
# In the guest: modules in lib/modules/<release>/extra, tools in /usr/bin,
# tests in /kvt/{guest,kselftest}.  udev runs there as on a real host, so that
# who grabs a new CXL region first is tested too.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

HOST_PROGRAMS=(bash kmod dd timeout stat stdbuf setpriv unshare mke2fs dmesg
	taskset flock pgrep pkill ps)
FLAVOUR=stock
OUTPUT=
PAYLOAD=
REDIS=no
BINS=()

parse_args()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel) FLAVOUR=$2; shift 2 ;;
		--output) OUTPUT=$2; shift 2 ;;
		--payload) PAYLOAD=$2; shift 2 ;;
		--bin) BINS+=("$2"); shift 2 ;;
		--redis) REDIS=yes; shift ;;
		*) die "mkinitramfs.sh: unknown argument '$1'" ;;
		esac
	done
	[ -n "$OUTPUT" ] || die "mkinitramfs.sh: --output is missing"
}

# copy_libs ROOT FILE... : the shared libraries the files name, where the
# guest's loader looks for them.  A library missing on the host may come from
# the unpacked guest packages.
copy_libs()
{
	local root=$1 libs lib
	shift
	# ldd fails on a static program, which needs nothing.
	libs=$(LD_LIBRARY_PATH="$GUEST_PKGS/usr/lib/x86_64-linux-gnu:$GUEST_PKGS/lib/x86_64-linux-gnu:$KVT_OUT/lib" \
		ldd "$@" 2>/dev/null || true)
	if grep 'not found' <<<"$libs" >&2; then
		die "libraries of $* are missing"
	fi
	sed -n 's,.*=> \(/[^ ]*\) .*,\1,p; s,^[[:space:]]*\(/[^ ]*\) (0x.*,\1,p' <<<"$libs" |
		sort -u |
		while read -r lib; do
			case $lib in
			*/ld-linux-x86-64.so.2) cp -uL "$lib" "$root/lib64/" ;;
			*) cp -uL "$lib" "$root/usr/lib/x86_64-linux-gnu/" ;;
			esac
		done
}

# add_program ROOT FILE : an executable with its libraries, in /usr/bin.
add_program()
{
	cp -L "$2" "$1/usr/bin/"
	copy_libs "$1" "$2"
}

# udev and redis come as unpacked packages: installing them would start
# daemons on the host.
fetch_guest_packages()
{
	[ ! -d "$GUEST_PKGS" ] || return 0
	log "fetching guest-only packages"
	rm -rf "$GUEST_PKGS.new"
	fetch_debs "$GUEST_PKGS.new" udev redis-server redis-tools libjemalloc2 \
		liblzf1 liblua5.1-0 lua-cjson lua-bitop libatomic1 libhiredis0.14 ||
		die "cannot download the guest's packages"
	mv -T "$GUEST_PKGS.new" "$GUEST_PKGS"
}

skeleton()
{
	local root=$1
	mkdir -p "$root"/{dev,proc,sys,run,tmp,host,payload,root,var,etc/udev/rules.d} \
		"$root"/usr/{bin,sbin,lib/x86_64-linux-gnu,lib/modules} "$root/lib64"
	ln -s usr/bin "$root/bin"
	ln -s usr/sbin "$root/sbin"
	ln -s usr/lib "$root/lib"
	ln -s ../run "$root/var/run"
	printf '%s\n' root:x:0:0:root:/root:/bin/bash nobody:x:65534:65534::/:/bin/false \
		alice:x:1001:1001::/tmp:/bin/bash bob:x:1002:1002::/tmp:/bin/bash >"$root/etc/passwd"
	# The groups udev's own rules name, and ours.
	printf '%s\n' root:x:0: tty:x:5: disk:x:6: lp:x:7: kmem:x:15: dialout:x:20: cdrom:x:24: \
		tape:x:26: audio:x:29: video:x:44: kvm:x:104: render:x:105: sgx:x:106: \
		input:x:107: kvtier:x:990:alice nogroup:x:65534: alice:x:1001: \
		bob:x:1002: >"$root/etc/group"
	printf 'passwd: files\ngroup: files\n' >"$root/etc/nsswitch.conf"
	echo kvtier-test-vm >"$root/etc/hostname"
	# Not before somebody wants it, who says to which driver its device is to go.
	mkdir -p "$root/etc/modprobe.d"
	echo 'blacklist dax_hmem' >"$root/etc/modprobe.d/kvtier.conf"
}

add_udev()
{
	local root=$1 rule
	mkdir -p "$root/usr/lib/udev/rules.d" "$root/usr/lib/systemd"
	cp "$GUEST_PKGS/bin/udevadm" "$root/usr/bin/"
	ln -s ../../bin/udevadm "$root/usr/lib/systemd/systemd-udevd"
	for rule in 50-udev-default 60-block 60-persistent-storage 80-drivers; do
		cp "$GUEST_PKGS/lib/udev/rules.d/$rule.rules" "$root/usr/lib/udev/rules.d/"
	done
	copy_libs "$root" "$root/usr/bin/udevadm"
}

# Paths of the listed modules and their dependencies, relative to the kernel.
resolve_modules()
{
	local rel=$1 opt name
	while read -r opt name; do
		case $opt in
		'#'* | '') continue ;;
		'?') ;;
		*) name=$opt opt= ;;
		esac
		if ! modprobe -d "$KERNEL" -S "$rel" --show-depends --ignore-install -q "$name"; then
			[ "$opt" = '?' ] || die "module $name is missing from $KERNEL"
		fi
	done <"$HERE/modules.list" |
		sed -n "s,^insmod $KERNEL/\([^ ]*\).*,\1,p" | sort -u
}

add_modules()
{
	local root=$1 rel=$2 path
	mkdir -p "$root/usr/lib/modules/$rel"
	cp "$KERNEL/lib/modules/$rel"/modules.{builtin,builtin.modinfo,order} \
		"$root/usr/lib/modules/$rel/"
	resolve_modules "$rel" >"$root/modules.tmp"
	while read -r path; do
		mkdir -p "$root/usr/${path%/*}"
		case $path in
		*.xz) xz -dc "$KERNEL/$path" >"$root/usr/${path%.xz}" ;;
		*.zst) zstd -q -dc "$KERNEL/$path" >"$root/usr/${path%.zst}" ;;
		*) cp "$KERNEL/$path" "$root/usr/$path" ;;
		esac
	done <"$root/modules.tmp"
	rm "$root/modules.tmp"
	depmod -b "$root" "$rel"
}

pack()
{
	(cd "$1" && find . -print0 | sort -z |
		cpio --quiet --null -o -H newc -R 0:0 --reproducible)
}

make_base()
{
	local base=$1 rel=$2 root prog
	[ ! -d "$base" ] || return 0
	fetch_guest_packages
	rm -rf "$base.new"
	root="$base.new/root"
	mkdir -p "$root"
	skeleton "$root"
	cp "$(command -v busybox)" "$root/usr/bin/busybox"
	for prog in "${HOST_PROGRAMS[@]}"; do
		prog=$(PATH=$PATH:/usr/sbin:/sbin command -v "$prog") || die "$prog is missing"
		add_program "$root" "$prog"
	done
	ln -s bash "$root/usr/bin/sh"
	for prog in modprobe insmod rmmod lsmod depmod modinfo; do
		ln -s ../bin/kmod "$root/usr/sbin/$prog"
	done
	ln -s ../bin/mke2fs "$root/usr/sbin/mkfs.ext4"
	cp /etc/mke2fs.conf "$root/etc/"
	# Every other command is busybox's.
	busybox --list | while read -r prog; do
		[ -e "$root/usr/bin/$prog" ] || [ -L "$root/usr/sbin/$prog" ] ||
			ln -s busybox "$root/usr/bin/$prog"
	done
	add_udev "$root"
	add_modules "$root" "$rel"
	install -m 755 "$HERE/guest/init" "$root/init"
	pack "$root" >"$base.new/base.cpio"
	mv -T "$base.new" "$base"
	# Earlier versions; young ones may be in use by another run.
	find "$KVT_CACHE" -maxdepth 1 -name "initramfs-${KERNEL##*/}-*" ! -path "$base" \
		-mmin +60 -exec rm -rf {} +
}

# Our modules beside the kernel's, and one index over all of them.
add_our_modules()
{
	local root=$1 base=$2 rel=$3 tree ko
	compgen -G "$KVT_OUT/$FLAVOUR/*.ko" >/dev/null || return 0
	tree="$TMP/tree"
	mkdir -p "$tree"
	cp -al "$base/root/usr/lib" "$tree/lib" 2>/dev/null || cp -a "$base/root/usr/lib" "$tree/lib"
	mkdir -p "$tree/lib/modules/$rel/extra"
	for ko in "$KVT_OUT/$FLAVOUR"/*.ko; do
		cp "$ko" "$tree/lib/modules/$rel/extra/"
		# Debug information is of no use inside and triples the size.
		strip --strip-debug "$tree/lib/modules/$rel/extra/${ko##*/}"
	done
	# Hard links of the cached index must not be written through.
	rm -f "$tree/lib/modules/$rel"/modules.{alias,dep,symbols,builtin.alias}* \
		"$tree/lib/modules/$rel"/modules.{softdep,devname,builtin.bin}
	depmod -b "$tree" "$rel"
	mkdir -p "$root/usr/lib/modules/$rel"
	cp -r "$tree/lib/modules/$rel/extra" "$root/usr/lib/modules/$rel/"
	cp "$tree/lib/modules/$rel"/modules.* "$root/usr/lib/modules/$rel/"
}

# Whatever is built: the tool, helpers, kselftest programs (which are linked statically), udev
# rules.
add_our_programs()
{
	local root=$1 file
	for file in "$KVT_OUT"/bin/* "${BINS[@]}"; do
		if [ ! -f "$file" ] || [ ! -x "$file" ]; then
			continue
		fi
		add_program "$root" "$file"
	done
	mkdir -p "$root/kvt/kselftest"
	for file in "$KVT_OUT"/kselftest/*; do
		if [ ! -f "$file" ] || [ ! -x "$file" ]; then
			continue
		fi
		cp "$file" "$root/kvt/kselftest/"
	done
	for file in "$KVT_ROOT"/selftests/kselftest/*.sh "$KVT_ROOT"/selftests/kselftest/*.list; do
		[ ! -f "$file" ] || cp "$file" "$root/kvt/kselftest/"
	done
	cp -r "$HERE/guest" "$root/kvt/guest"
	mkdir -p "$root/usr/lib/udev/rules.d" "$root/kvt/udev"
	while IFS= read -r -d '' file; do
		# What installation has to fill in is put to work by who needs it: see guest/udev.sh.
		if grep -q '@[A-Z]*@' "$file"; then
			cp "$file" "$root/kvt/udev/"
		else
			cp "$file" "$root/usr/lib/udev/rules.d/"
		fi
	done < <(find "$KVT_ROOT/userspace" "$KVT_ROOT/driver" -name '*.rules' -print0)
}

add_redis()
{
	local root=$1 prog
	for prog in redis-server redis-cli redis-benchmark; do
		add_program "$root" "$GUEST_PKGS/usr/bin/$prog"
	done
}

main()
{
	local rel base key root
	parse_args "$@"
	"$KVT_ROOT/scripts/setup.sh" build vm
	KERNEL=$("$HERE/kernel.sh" "$FLAVOUR")
	rel=$(ls "$KERNEL/lib/modules")
	key=$(hash_of "$0" "$HERE/modules.list" "$HERE/guest/init")
	GUEST_PKGS="$KVT_CACHE/guest-$(sed -n '/^fetch_guest_packages/,/^}/p' "$0" | sha256sum | cut -c1-8)"
	base="$KVT_CACHE/initramfs-${KERNEL##*/}-$key"
	with_lock initramfs make_base "$base" "$rel"

	TMP=$(mktemp -d "$KVT_CACHE/initramfs.XXXXXX")
	trap 'rm -rf "$TMP"' EXIT
	root="$TMP/root"
	mkdir -p "$root"/usr/{bin,lib/x86_64-linux-gnu} "$root"/lib64
	# Same links as in the base: the second archive must not replace them.
	add_our_modules "$root" "$base" "$rel"
	add_our_programs "$root"
	[ "$REDIS" = no ] || add_redis "$root"
	if [ -n "$PAYLOAD" ]; then
		mkdir -p "$root/payload"
		cp -a "$PAYLOAD/." "$root/payload/"
	fi
	{ cat "$base/base.cpio"; pack "$root"; } >"$OUTPUT"
}

main "$@"
