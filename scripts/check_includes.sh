#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The layering, as rules on #include lines (see Documentation/design):
#
#   driver/core        the gateway header kvt_env.h, core headers, the uAPI
#   driver/tier_*.c    nothing of ioctl, io_uring, mmap, sysfs or ops
#   driver             kernel versions only in driver/compat
#   lib                its own headers, the uAPI, the system
#   userspace          the library's public header, its own headers, the system;
#                      through media.h the core's decoder
#
# check_includes.sh [TREE] prints each offence and exits 1 when there is one.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
BAD=0

# includes FILE : what it includes, as written: "a.h" or <b.h>.
includes()
{
	sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*\(["<][^">]*[">]\).*/\1/p' "$1"
}

offence()
{
	echo "$1: includes $2: $3"
	BAD=1
}

check_core()
{
	local file inc name
	for file in driver/core/*.[ch]; do
		if [ ! -e "$file" ] || [ "$file" = driver/core/kvt_env.h ]; then
			continue
		fi
		while read -r inc; do
			name=${inc:1:-1}
			case $inc in
			'<linux/kvtier.h>') ;;
			'"'kvt_*.h'"')
				[ -e "driver/core/$name" ] ||
					offence "$file" "$inc" "not a header of the core"
				;;
			*) offence "$file" "$inc" "the core sees the world through kvt_env.h only" ;;
			esac
		done < <(includes "$file")
	done
}

check_driver()
{
	local file inc
	for file in driver/tier_*.[ch]; do
		[ -e "$file" ] || continue
		while read -r inc; do
			case $inc in
			*ioctl*.h? | *uring*.h? | *mman*.h? | *kvt_mmap.h? | *sysfs.h? | *ops.h?)
				offence "$file" "$inc" "a tier knows nothing of its callers"
				;;
			esac
		done < <(includes "$file")
	done
	while IFS= read -r file; do
		echo "$file: depends on the kernel's version outside driver/compat"
		BAD=1
	done < <(grep -rlE 'LINUX_VERSION_CODE|linux/version\.h' driver --include='*.[ch]' |
		grep -v '^driver/compat/' || true)
}

# check_user DIR ALLOWED... : quoted includes must exist in DIR; kvtier's own
# headers in angle brackets must be among ALLOWED.
check_user()
{
	local dir=$1 file inc name allowed
	shift
	while IFS= read -r file; do
		while read -r inc; do
			name=${inc:1:-1}
			case $inc in
			'"kvt_recover.h"' | '"kvt_zone.h"')
				[ "$file" = userspace/kvtier/media.h ] ||
					offence "$file" "$inc" "media.h is the way to the core's decoder"
				;;
			\"*)
				find "$dir" -path "*/${name##*../}" | grep -q . ||
					offence "$file" "$inc" "outside of $dir"
				;;
			*kvt*)
				for allowed in "$@"; do
					[ "$name" != "$allowed" ] || continue 2
				done
				offence "$file" "$inc" "not for $dir"
				;;
			esac
		done < <(includes "$file")
	done < <(find "$dir" -name '*.[ch]')
}

check_core
check_driver
check_user lib linux/kvtier.h kvtier/libkvtier.h
check_user userspace kvtier/libkvtier.h
exit $BAD
