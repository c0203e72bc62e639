#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Removes what "make install" of library and tool put below $DESTDIR: installs
# once more into an empty folder and deletes the same paths.  Folders stay.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
for part in lib userspace; do
	make -s -C "$KVT_ROOT/$part" install DESTDIR="$TMP" PREFIX="${PREFIX:-/usr/local}"
done
(cd "$TMP" && find . ! -type d -print0) | while IFS= read -r -d '' path; do
	rm -f "${DESTDIR:-}/${path#./}"
done
