#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What a host gets: the packaged dkms adds, builds, installs and removes the
# module from an installed copy of the source, for the stock kernel, and "make
# install" puts everything where it belongs.  All below a temporary folder.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

STATUS=0
TMP=$(mktemp -d)
trap 'as_root rm -rf "$TMP"' EXIT
VERSION=$(cat "$KVT_ROOT/VERSION")
RELEASE=$(stock_release)
HEADERS=$("$KVT_ROOT/selftests/vm/kernel.sh" headers)
STAGE="$TMP/stage"

# verdict NAME COMMAND... : its output, and dkms's own logs, only if it fails.
verdict()
{
	local name=$1
	shift
	if "$@" >"$TMP/log" 2>&1; then
		echo "ok $name"
		return
	fi
	sed 's/^/# /' "$TMP/log"
	[ ! -d "$TMP/tree" ] || find "$TMP/tree" -name make.log -exec sed 's/^/# /' {} +
	echo "not ok $name"
	STATUS=1
}

# run_dkms VERB [ARG]... : in folders of our own.
run_dkms()
{
	local verb=$1
	shift
	as_root dkms "$verb" -m kvtier -v "$VERSION" --dkmstree "$TMP/tree" \
		--sourcetree "$STAGE/usr/src" --installtree "$TMP/lib/modules" "$@"
}

# depmod cannot be pointed elsewhere than to /lib/modules: it is left out.
kernel_args()
{
	printf '%s\n' -k "${1:-$RELEASE}" --kernelsourcedir "$HEADERS" --no-depmod
}

dkms_prepare()
{
	mkdir -p "$TMP/tree" "$TMP/lib/modules/$RELEASE"
	make -s -C "$KVT_ROOT" dkms-install DESTDIR="$STAGE"
}

# Sources of the same version again: what is no more is not built with the rest.
dkms_update()
{
	local source=$STAGE/usr/src/kvtier-$VERSION
	touch "$source/driver/gone.c"
	make -s -C "$KVT_ROOT" dkms-install DESTDIR="$STAGE"
	[ -e "$source/dkms.conf" ] && [ ! -e "$source/driver/gone.c" ]
}

# Where dkms has that version, it is taken from it before it is given the new one.
dkms_replaces()
{
	local steps
	steps=$(make -n -C "$KVT_ROOT" dkms-install |
		grep -oE '(dkms|rm|cp) (status|remove|install|-rf|-r)' | paste -sd,)
	[ "$steps" = 'dkms status,dkms remove,rm -rf,cp -r,dkms install' ] || {
		echo "$steps"
		return 1
	}
}

dkms_version()
{
	grep -x "PACKAGE_VERSION=\"$VERSION\"" "$KVT_ROOT/dkms.conf"
}

dkms_build()
{
	local args module
	mapfile -t args < <(kernel_args)
	run_dkms build "${args[@]}" || return 1
	module=$(find "$TMP/tree" -path "*/$RELEASE/*" -name 'kvtier.ko*')
	[ -n "$module" ] || return 1
	[ "$(modinfo -F version "$module")" = "$VERSION" ] &&
		[[ $(modinfo -F vermagic "$module") == "$RELEASE "* ]]
}

dkms_install()
{
	local args
	mapfile -t args < <(kernel_args)
	run_dkms install "${args[@]}" &&
		find "$TMP/lib/modules/$RELEASE" -name 'kvtier.ko*' | grep .
}

# What has been installed is loaded, serves a test program, and goes again.
dkms_loads()
{
	local module payload=$TMP/payload
	module=$(find "$TMP/lib/modules/$RELEASE" -name 'kvtier.ko*')
	mkdir -p "$payload"
	case $module in
	*.xz) xz -dc "$module" >"$payload/kvtier.ko" ;;
	*.zst) zstd -qdc "$module" >"$payload/kvtier.ko" ;;
	*) cp "$module" "$payload/" ;;
	esac
	"$KVT_ROOT/scripts/build-modules.sh" stock &&
		make -s --no-print-directory -C "$KVT_ROOT" tools kselftest || return 1
	# Those that it needs come with the machine's own. It is not that one: it has gone then.
	"$KVT_ROOT/selftests/vm/run.sh" --cxl 0 --nvme 0 --mem 1024 --timeout 600 --payload "$payload" -- \
		bash -c 'modprobe kvtier && rmmod kvtier && insmod /payload/kvtier.ko &&
			timeout 300 /kvt/kselftest/chain && rmmod kvtier && echo "it has gone"' |
		tee "$TMP/loads"
	grep -q '^ok [0-9]* chain.drop_a_fork' "$TMP/loads" && grep -qx 'it has gone' "$TMP/loads"
}

# A kernel that is too old is left alone (status 77), not tried and failed on.
dkms_exclusive()
{
	local args status=0
	mapfile -t args < <(kernel_args 6.1.0-1-amd64)
	run_dkms build "${args[@]}" || status=$?
	echo "exit status $status"
	[ "$status" -eq 77 ]
}

dkms_remove()
{
	run_dkms remove --all --no-depmod &&
		! find "$TMP/lib/modules" "$TMP/tree" -name 'kvtier.ko*' | grep .
}

# Debian's paths, so that the library is found where pkg-config says. The module for the running
# kernel is built at full length only: the one of this kernel that the tests load is the same.
stage_install()
{
	local flavour=host
	[ "${KVT_LENGTH:-full}" = long ] || flavour=stock
	make -s -C "$KVT_ROOT" install FLAVOUR="$flavour" KDIR="$HEADERS" KREL="$RELEASE" \
		DESTDIR="$STAGE" PREFIX=/usr
}

staged()
{
	local missing=0 path
	for path in "$@"; do
		if [ ! -s "$STAGE/$path" ]; then
			echo "not installed: $path"
			missing=1
		fi
	done
	return "$missing"
}

install_module()
{
	staged "lib/modules/$RELEASE/updates/kvtier.ko"
}

install_library()
{
	staged usr/lib/libkvtier.a usr/lib/libkvtier.so usr/lib/libkvtier.so.0 \
		usr/lib/pkgconfig/libkvtier.pc usr/include/kvtier/libkvtier.h \
		usr/include/linux/kvtier.h usr/include/linux/kvtier_ctl.h
}

install_tool()
{
	staged usr/sbin/kvtier usr/share/bash-completion/completions/kvtier &&
		"$STAGE/usr/sbin/kvtier" version | grep -F "$VERSION"
}

# Each page of Documentation/man, and one for each function of the library.
install_man()
{
	local page name pages=()
	for page in "$KVT_ROOT"/Documentation/man/*.[1-9]; do
		name=${page##*/}
		pages+=("usr/share/man/man${name##*.}/$name")
	done
	while IFS= read -r name; do
		pages+=("usr/share/man/man3/$name.3")
	done < <(sed -n 's/^\t\(kvtier_[a-z0-9_]*\);$/\1/p' "$KVT_ROOT/lib/libkvtier.map")
	staged "${pages[@]}"
}

# What udev and systemd read.
install_host()
{
	local rules=usr/lib/udev/rules.d/60-kvtier.rules conf=usr/lib/sysusers.d/kvtier.conf
	local boot=usr/lib/udev/rules.d/64-kvtier.rules
	local unit=usr/lib/systemd/system/kvtier-assemble@.service
	staged "$rules" "$conf" "$boot" "$unit" || return 1
	grep -q 'program}="/usr/sbin/kvtier pool members' "$STAGE/$boot" &&
		grep -q '^ExecStart=/usr/sbin/kvtier pool assemble ' "$STAGE/$unit" &&
		grep -qx 'ExecStop=/usr/sbin/kvtier pool destroy %i' "$STAGE/$unit" || return 1
	grep -q '^g kvtier ' "$STAGE/$conf" && grep -q 'GROUP="kvtier"' "$STAGE/$rules"
}

# The group is made of it.
install_group()
{
	mkdir -p "$TMP/root/etc"
	systemd-sysusers --root="$TMP/root" "$STAGE/usr/lib/sysusers.d/kvtier.conf" &&
		grep '^kvtier:' "$TMP/root/etc/group"
}

# The README's program, with what pkg-config says of the installed library.
install_example()
{
	local flags
	flags=$(PKG_CONFIG_SYSROOT_DIR="$STAGE" PKG_CONFIG_LIBDIR="$STAGE/usr/lib/pkgconfig" \
		PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
		pkg-config --cflags --libs libkvtier) || return 1
	# shellcheck disable=SC2086 # words on purpose
	cc -std=gnu11 -Wall -Wextra -Werror "$KVT_ROOT/userspace/examples/roundtrip.c" \
		$flags -o "$TMP/roundtrip"
}

# An empty pool with one tier in the library's stand-in for the kernel.
mock_pool_source()
{
	cat <<-'END'
	#include <kvtier/libkvtier.h>
	int main(void)
	{
		struct kvtier_tier_params tier = KVTIER_TIER_PARAMS_INIT;
		struct kvtier_ctl *ctl;
		uint32_t id = 0;

		tier.type = KVTIER_TIER_DRAM;
		tier.name = "dram";
		tier.capacity_bytes = 16 << 20;
		return kvtier_ctl_open(&ctl) || kvtier_ctl_pool_create(ctl, &id) ||
		       kvtier_ctl_tier_attach(ctl, id, &tier, NULL);
	}
	END
}

# It does what it says: stores at first and finds everything the second time.
example_runs()
{
	local top=$KVT_ROOT name
	mock_pool_source >"$TMP/pool.c"
	cp "$top/userspace/examples/roundtrip.c" "$TMP/roundtrip.c"
	for name in pool roundtrip; do
		cc -std=gnu11 -Wall -Wextra -I"$top/uapi" -I"$top/lib/include" \
			-I"$top/lib/src" -I"$top/lib/test" "$TMP/$name.c" \
			"$top"/lib/test/mock{,_data,_main}.c \
			"$STAGE/usr/lib/libkvtier.a" -pthread -o "$TMP/mock-$name" || return 1
	done
	export KVTIER_MOCK="$TMP/store"
	"$TMP/mock-pool" && "$TMP/mock-roundtrip" 0 >"$TMP/first" &&
		"$TMP/mock-roundtrip" 0 >"$TMP/second" || return 1
	cat "$TMP/first" "$TMP/second"
	grep -qx '0 blocks were there, 8 stored' "$TMP/first" &&
		grep -qx '8 blocks were there, 0 stored' "$TMP/second"
}

# What make would take for two paths, one of them somebody else's, is refused.
install_blanks()
{
	local where
	for where in . lib userspace; do
		! make -n -C "$KVT_ROOT/$where" install DESTDIR="$TMP/a b" || return 1
	done
	! make -n -C "$KVT_ROOT" dkms-uninstall DESTDIR="$TMP/a b" &&
		! make -n -C "$KVT_ROOT" clean OUT="$TMP/a b"
}

# A module that its kernel does not load is not put beside it.
install_other()
{
	! make -s -C "$KVT_ROOT" install FLAVOUR=stock KDIR="$HEADERS" KREL=6.1.0-other-amd64 \
		DESTDIR="$TMP/other" PREFIX=/usr 2>"$TMP/other.log" || return 1
	grep 'not one for kernel 6.1.0-other-amd64' "$TMP/other.log" && [ ! -e "$TMP/other" ]
}

uninstall()
{
	make -s -C "$KVT_ROOT" uninstall KREL="$RELEASE" DESTDIR="$STAGE" PREFIX=/usr &&
		make -s -C "$KVT_ROOT" dkms-uninstall DESTDIR="$STAGE" &&
		! find "$STAGE" ! -type d | grep .
}

verdict dkms.version dkms_version
verdict dkms.source dkms_prepare
verdict dkms.update dkms_update
verdict dkms.replaces dkms_replaces
verdict dkms.add run_dkms add
verdict dkms.build dkms_build
verdict dkms.install dkms_install
if [ "${KVT_LENGTH:-full}" = long ]; then
	verdict dkms.loads dkms_loads
else
	echo "skip dkms.loads # in make check-long only"
fi
verdict dkms.exclusive dkms_exclusive
verdict dkms.remove dkms_remove
verdict install.make stage_install
verdict install.module install_module
verdict install.library install_library
verdict install.tool install_tool
verdict install.man install_man
verdict install.host install_host
if command -v systemd-sysusers >/dev/null; then
	verdict install.group install_group
else
	echo "skip install.group # systemd-sysusers, which makes the group, is not installed here"
fi
verdict install.example install_example
verdict install.example_runs example_runs
verdict install.blanks install_blanks
verdict install.other install_other
verdict install.uninstall uninstall
exit $STATUS
