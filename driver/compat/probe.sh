#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Finds out what the kernel has that the module is built for: probe.sh OUTPUT
# COMPILER [FLAG]... compiles every probes/NAME.c, which uses one thing, and
# writes a header that defines KVT_HAVE_NAME for those that compile.
#
# A probe must fail for no other reason than the thing it asks about. So it is
# compiled with KVT_CONTROL defined first, which leaves that out, and must compile
# then. Besides there are two canaries: sane.c must compile and broken.c must not.
# If any of these disappoints, the answers would be worthless: the build stops here.
set -eu

here=$(dirname "$0")
out=$1
shift
log=$out.log
obj=$out.o
tmp=$out.tmp
trap 'rm -f "$obj" "$tmp"' EXIT
: >"$log"

compiles()
{
	probe=$1
	shift
	echo "== $probe: $*" >>"$log"
	"$@" -Wno-error -Werror=implicit-function-declaration \
		-Werror=incompatible-pointer-types -Werror=int-conversion \
		-DKBUILD_MODNAME='"kvt_probe"' -DKBUILD_BASENAME='"kvt_probe"' \
		-c -o "$obj" "$here/probes/$probe.c" >>"$log" 2>&1
}

fail()
{
	cat "$log" >&2
	echo "kvtier: $1" >&2
	exit 1
}

compiles sane "$@" || fail "cannot compile for this kernel (6.12 or later is needed)"
if compiles broken "$@"; then
	fail "this compiler accepts undeclared functions, nothing can be probed"
fi

echo "/* Made by probe.sh. */" >"$tmp"
for file in "$here"/probes/*.c; do
	name=$(basename "$file" .c)
	case $name in
	sane | broken)
		continue
		;;
	esac
	compiles "$name" "$@" -DKVT_CONTROL || fail "the probe $name is broken"
	if compiles "$name" "$@"; then
		echo "#define KVT_HAVE_$(echo "$name" | tr '[:lower:]' '[:upper:]') 1" >>"$tmp"
	fi
done
mv "$tmp" "$out"
