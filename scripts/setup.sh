#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Installs what building and testing kvtier needs: setup.sh [GROUP...]
#
#   build  compilers, libraries of the tool; headers of the running kernel are not among it
#   vm     QEMU >= 9 and the tools that make the guest's initramfs
#   debug  what building the instrumented kernel takes
#   test   static checkers, sanitizers, dkms
#   all    everything (default)
#
# Idempotent: a group done by this very script leaves a stamp in the cache and
# costs nothing the next time.  Nothing it installs starts a service.  Kernel
# packages are not installed at all (the headers package depends on the image,
# which would write to /boot): they and guest-only software are unpacked into
# the cache by selftests/vm/kernel.sh and mkinitramfs.sh.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

BUILD_PKGS=(build-essential bc bison flex kmod libelf-dev libssl-dev pahole rsync
	zstd libzstd-dev libjson-c-dev libcxl-dev
	libdaxctl-dev libndctl-dev libblkid-dev libmd-dev pkg-config python3)
VM_PKGS=(busybox-static cpio procps kmod zstd liburing-dev python3)
DEBUG_PKGS=(build-essential bc bison flex libelf-dev libssl-dev cpio kmod
	rsync xz-utils)
# perl and git: what checkpatch.pl runs on and asks; patchelf: newest-headers.sh.
TEST_PKGS=(clang libclang-rt-14-dev llvm sparse shellcheck cppcheck codespell
	dkms patchelf perl git man-db valgrind e2fsprogs)
QEMU_MIN=9
WANTED=()	# groups

usage()
{
	sed -n '4,11s/^# \{0,1\}//p' "$0"
	exit "${1:-2}"
}

group_pkgs()
{
	case $1 in
	build) printf '%s\n' "${BUILD_PKGS[@]}" ;;
	vm) printf '%s\n' "${VM_PKGS[@]}" ;;
	debug) printf '%s\n' "${DEBUG_PKGS[@]}" ;;
	test) printf '%s\n' "${TEST_PKGS[@]}" ;;
	esac
}

# explain_other_system GROUP... : everything but Debian 12 is on its own: say exactly what is wanted.
explain_other_system()
{
	local g
	cat >&2 <<-END
	kvtier: this script can only install packages on Debian 12 (bookworm), and this
	is ${PRETTY_NAME:-an unknown system}.  Install the equivalents of the following yourself,
	then run again with KVTIER_SETUP=skip in the environment:
	END
	for g in "$@"; do
		printf '  %-6s %s\n' "$g:" "$(group_pkgs "$g" | paste -sd ' ')" >&2
	done
	cat >&2 <<-END
	  and QEMU >= $QEMU_MIN with the x86_64 system emulator, and the headers of the kernel that
	the module is for.  The test rig takes its kernels from Debian packages, so
	'make modules FLAVOUR=host' works there, the VM targets do not.
	END
	exit 1
}

apt_install()
{
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 \
		install --no-install-recommends "$@" >&2
}

apt_update()
{
	as_root apt-get -q -o DPkg::Lock::Timeout=600 update >&2
}

qemu_major()
{
	{ qemu-system-x86_64 --version 2>/dev/null || true; } |
		sed -n 's/^QEMU emulator version \([0-9]*\)\..*/\1/p'
}

enable_backports()
{
	local source list=/etc/apt/sources.list.d/kvtier-backports.list
	if apt-cache policy | grep -q 'n=bookworm-backports'; then
		return 0
	fi
	source=$(mirror_of_bookworm)
	log "enabling bookworm-backports (for QEMU) in $list"
	echo "$source bookworm-backports main" | as_root tee "$list" >/dev/null
	if ! apt_update; then
		as_root rm -f "$list"
		die "the mirror has no bookworm-backports: install QEMU >= $QEMU_MIN by hand"
	fi
}

install_qemu()
{
	local major
	major=$(qemu_major)
	if [ "${major:-0}" -ge "$QEMU_MIN" ]; then
		return 0
	fi
	enable_backports
	apt_install -t bookworm-backports qemu-system-x86
	major=$(qemu_major)
	[ "${major:-0}" -ge "$QEMU_MIN" ] ||
		die "QEMU ${major:-none} found; CXL RAM devices need >= $QEMU_MIN"
}

# Pins the kernel release for everybody, so that headers, image and source
# cannot drift apart while the mirror moves on.
pick_release()
{
	local pkg version
	pkg=$(apt-cache search --names-only \
		'^linux-image-6\.12\.[0-9]+\+deb12-amd64-unsigned$' |
		cut -d' ' -f1 | sort -V | tail -n 1)
	[ -n "$pkg" ] || die "apt offers no linux-image-6.12 (is bookworm-security enabled?)"
	version=$(apt-cache madison "$pkg" | cut -d'|' -f2 | tr -d ' ' | sort -V | tail -n 1)
	pkg=${pkg#linux-image-}
	echo "${pkg%-unsigned} $version" >"$KVT_CACHE/release"
}

setup_group()
{
	local group=$1 pkgs
	local stamp="$KVT_CACHE/stamps/setup-$group-$SCRIPT_HASH"
	if [ -e "$stamp" ]; then
		return 0
	fi
	[ "$DEBIAN_12" = yes ] || explain_other_system "${WANTED[@]}"
	if [ -z "${UPDATED:-}" ]; then
		apt_update
		UPDATED=1
	fi
	mapfile -t pkgs < <(group_pkgs "$group")
	log "installing packages of group '$group'"
	apt_install "${pkgs[@]}"
	case $group in
	build) pick_release ;;
	vm) install_qemu ;;
	esac
	mkdir -p "${stamp%/*}"
	touch "$stamp"
}

main()
{
	local group groups=("$@")
	[ "${KVTIER_SETUP:-}" != skip ] || exit 0
	[ ${#groups[@]} -gt 0 ] || groups=(all)
	# shellcheck disable=SC1091
	. /etc/os-release 2>/dev/null || true
	DEBIAN_12=no
	if [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ]; then
		DEBIAN_12=yes
	fi
	for group in "${groups[@]}"; do
		case $group in
		-h | --help) usage 0 ;;
		all) WANTED+=(build vm debug test) ;;
		build | vm | debug | test) WANTED+=("$group") ;;
		*) usage ;;
		esac
	done
	SCRIPT_HASH=$(hash_of "$0")
	mkdir -p "$KVT_CACHE"
	for group in "${WANTED[@]}"; do
		setup_group "$group"
	done
}

main "$@"
