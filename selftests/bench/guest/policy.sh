#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# policy.sh TRACE: what the default policy takes for it, one tier and two; and two with requests in
# parts of 256 blocks: calls are what the driver tells it of.
set -euo pipefail
sim=(kvtier-sim --policy default --timed)
"${sim[@]}" --tier one=20% "$1" >/host/one.json
"${sim[@]}" --tier fast=2% --tier slow=8% "$1" >/host/two.json
"${sim[@]}" --tier fast=2% --tier slow=8% --chunk 256 --numbered "$1" >/host/parts.json
