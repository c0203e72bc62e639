# SPDX-License-Identifier: GPL-2.0
"""What is promised of GET, in one place: make bench, suite bench and the host's tests ask for it.

Instructions and cache lines, never seconds, which are the machine's.
"""

# Instructions a block, of client and kernel, for GET and RELEASE of blocks in memory, 256 in a
# call. 889 were measured with 64 KiB and 908 with 1 MiB, from boot to boot within 0.3; single
# samples hold a timer's tick (20 to 70 a block), so the median is taken.
GET_BATCH = 256
GET_MAX = 1000

# By how much that may be more with 1 MiB than with 64 KiB. Neither the bytes of a block nor its
# pages are looked at, so nothing should grow with their number, which is sixteen times as large.
# 2.1 to 2.2 % were measured; with three instructions for each 4 KiB page it was 78 %.
GROWTH_MAX = 0.05

# Instructions, or distinct cache lines, among a million blocks against those among a thousand.
# 1.33 and 1.34 were measured of module and library, 1.01 of the core's instructions, 1.10 of its
# cache lines. An index that does not grow with the blocks has chains of hundreds.
SCALE_MAX = 1.5


def grown(few_many):
    """That ratio, and whether it is as promised. Nothing is no measurement."""
    few, many = few_many
    ratio = many / few if few > 0 else float("inf")
    return ratio, 0 < ratio <= SCALE_MAX
