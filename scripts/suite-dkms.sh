#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# dkms builds and installs the module from an installed copy of the source, for
# the stock kernel, in folders of its own.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
version=$(cat "$KVT_ROOT/VERSION")
release=$(stock_release)
headers=$("$KVT_ROOT/selftests/vm/kernel.sh" headers)
make -s -C "$KVT_ROOT" dkms-install DESTDIR="$TMP"
mkdir -p "$TMP/tree" "$TMP/lib/modules/$release"
ln -s "$headers" "$TMP/lib/modules/$release/build"
# dkms runs depmod without a way to point it elsewhere: it is not wanted here.
args=(--dkmstree "$TMP/tree" --sourcetree "$TMP/usr/src" --installtree "$TMP/lib/modules"
	--kernelsourcedir "$headers" -k "$release" -m kvtier -v "$version" --no-depmod)
if as_root dkms add "${args[@]:0:4}" -m kvtier -v "$version" >"$TMP/log" 2>&1 &&
	as_root dkms build "${args[@]}" >>"$TMP/log" 2>&1 &&
	as_root dkms install "${args[@]}" >>"$TMP/log" 2>&1 &&
	find "$TMP/lib/modules/$release" -name 'kvtier.ko*' | grep -q .; then
	echo "ok dkms.install"
else
	sed 's/^/# /' "$TMP/log"
	find "$TMP/tree" -name make.log -exec sed 's/^/# /' {} +
	echo "not ok dkms.install"
	exit 1
fi
