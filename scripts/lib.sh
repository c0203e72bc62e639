# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Shared by every script of the tree (sourced, never run).
#
# Model: the checkout holds sources, out/ holds what is built from them, and
# the cache folder holds what was downloaded or is slow to build and does not
# depend on our sources.  The cache may be removed at any time: everything in
# it comes back.  An entry is built under a temporary name and renamed when it
# is complete, so a killed run never leaves half of one behind.

KVT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
KVT_OUT=${KVT_OUT:-$KVT_ROOT/out}
KVT_CACHE=${KVTIER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvtier}
export KVT_ROOT KVT_OUT KVT_CACHE
export LC_ALL=C

# With "set -e" a script ends where a command fails: say where that was.
set -E
trap 'echo "kvtier: ${BASH_SOURCE[0]##*/}:$LINENO: failed: $BASH_COMMAND" >&2' ERR

log()
{
	printf '%s\n' "kvtier: $*" >&2
}

die()
{
	log "error: $*"
	exit 1
}

# Runs a command as root: directly, or through sudo.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -- "$@"
	else
		die "'$*' needs root: run as root or install sudo"
	fi
}

# hash_of FILE... : a short key for stamps and cache entries.
hash_of()
{
	cat -- "$@" | sha256sum | cut -c1-16
}

# with_lock NAME COMMAND... : one holder of a cache lock at a time.
with_lock()
{
	local name=$1
	shift
	mkdir -p "$KVT_CACHE/locks"
	(
		flock 9
		# Children (daemons, compilers) must not keep the lock open.
		"$@" 9>&-
	) 9>"$KVT_CACHE/locks/$name"
}

# Release of the stock kernel everything is built for and tested on: the newest
# 6.12 kernel Debian 12 offered when setup.sh last ran (see kernel.sh).
stock_release()
{
	[ -e "$KVT_CACHE/release" ] || die "run scripts/setup.sh build first"
	cut -d' ' -f1 "$KVT_CACHE/release"
}

stock_version()
{
	cut -d' ' -f2 "$KVT_CACHE/release"
}

# The place this machine gets bookworm itself from, as an apt source line
# without the suite.  apt reports it the same for both configuration formats.
mirror_of_bookworm()
{
	local site key
	# shellcheck disable=SC2016 # apt expands these
	read -r site key < <(apt-get indextargets --format '$(SITE) $(SIGNED_BY)' \
		'Created-By: Packages' 'Component: main' 'Codename: bookworm' |
		sort -u | head -n 1) ||
		die "cannot tell from apt's configuration where this system comes from"
	# An unset SIGNED_BY comes back as it went in.
	case $key in
	/*) echo "deb [signed-by=$key] $site" ;;
	*) echo "deb $site" ;;
	esac
}

# fetch_debs DEST PACKAGE[=VERSION]... : unpacks packages into DEST without
# installing them.  Extra apt options come from the array APT_OPTS.
fetch_debs()
{
	local dest=$1 tmp deb
	shift
	tmp=$(mktemp -d "$KVT_CACHE/fetch.XXXXXX")
	if ! (cd "$tmp" && apt-get -q "${APT_OPTS[@]}" download "$@" >apt.log 2>&1); then
		tail -n 20 "$tmp/apt.log" >&2
		rm -rf "$tmp"
		return 1
	fi
	mkdir -p "$dest"
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dest"
	done
	rm -rf "$tmp"
}
APT_OPTS=()

# tree_files REGEX... : files of the tree (not ignored, tracked or not), by
# extended regular expressions on their paths.
tree_files()
{
	local pattern
	pattern=$(printf '|%s' "$@")
	if git -C "$KVT_ROOT" rev-parse --git-dir >/dev/null 2>&1; then
		git -C "$KVT_ROOT" ls-files -co --exclude-standard
	else
		(cd "$KVT_ROOT" && find . -path ./out -prune -o -type f -printf '%P\n')
	fi | sort -u | grep -E "${pattern#|}" | while IFS= read -r file; do
		[ ! -f "$KVT_ROOT/$file" ] || printf '%s\n' "$file"
	done
}
