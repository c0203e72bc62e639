#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Damage to the image of a member, for the tests of fsck.

  damage.py IMAGE flip BYTE                 one bit there
  damage.py IMAGE zero BYTE COUNT
  damage.py IMAGE super SLOT FIELD VALUE    a field, and the checksum made right
"""
import struct
import sys

# Offset and struct letter; see Documentation/design/format.rst.
FIELDS = {
    "version": (12, "H"),
    "generation": (48, "Q"),
    "incompat": (72, "Q"),
    "ro_compat": (64, "Q"),
    "nr_segs": (108, "I"),
    "life_limit": (112, "Q"),
    "seq_limit": (120, "Q"),
    "ns_limit": (128, "Q"),
    "state": (152, "I"),
}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def main(path, what, *args):
    with open(path, "r+b") as image:
        if what == "super":
            slot, field, value = int(args[0]), args[1], int(args[2])
            image.seek(slot << 19)
            block = bytearray(image.read(4096))
            offset, letter = FIELDS[field]
            struct.pack_into("<" + letter, block, offset, value)
            struct.pack_into("<I", block, 8, 0)
            struct.pack_into("<I", block, 8, crc32c(block))
            image.seek(slot << 19)
            image.write(block)
            return
        byte = int(args[0])
        image.seek(byte)
        if what == "zero":
            image.write(bytes(int(args[1])))
            return
        old = image.read(1)[0]
        image.seek(byte)
        image.write(bytes([old ^ 0x10]))


if __name__ == "__main__":
    main(*sys.argv[1:])
