#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Whether a replay exercised the whole hierarchy: demo_check.py RESULT.json

Every tier must have had hits. Promotions end in memory, so every memory tier must
have taken some in; every tier with one below it must have given some down; each must have moved
some by DMA. All requests must have been served, every block that was hit compared as a whole,
and no byte may have been wrong.
"""
import json
import sys


def problems(result):
    """Yields what is not as it should be, one line each."""
    clients, tiers = result["clients"], sorted(result["tiers"], key=lambda t: t["rank"])
    if clients["wrong_bytes"] or clients["wrong_blocks"]:
        yield f'{clients["wrong_bytes"]} wrong bytes in {clients["wrong_blocks"]} blocks'
    if clients["requests"] != result["trace"]["requests"]:
        yield f'{clients["requests"]} of {result["trace"]["requests"]} requests served'
    if not result["passed"]:
        yield "the replay says that it failed"
    hit_bytes = clients["hits"] * result["options"]["block_bytes"]
    if not clients["verified_bytes"] or clients["verified_bytes"] < hit_bytes:
        yield f'{clients["verified_bytes"]} of {hit_bytes} bytes verified'
    if not result["pool"]["counters_known"]:
        yield "the pool's counters could not be read"
    if len(tiers) < 2:
        yield "there is no hierarchy"
    for place, tier in enumerate(tiers):
        name = tier["name"]
        if not tier["hits"]:
            yield f"{name}: no hits"
        if tier["type"] != "bdev" and not tier["promotions_in"]:
            yield f"{name}: no promotions into it"
        if place + 1 < len(tiers) and not tier["demotions_out"]:
            yield f"{name}: no demotions out of it"
        if not tier["dma_bytes"]:
            yield f"{name}: nothing was moved by DMA"
        if tier["io_errors"]:
            yield f'{name}: {tier["io_errors"]} I/O errors'


def main():
    """Command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: demo_check.py RESULT.json")
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(problems(json.load(file)))
    for line in found:
        print(f"demo_check: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
