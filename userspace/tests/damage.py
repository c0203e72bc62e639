#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Damage to the image of a member, for the tests of fsck; members without contents.

  damage.py IMAGE flip BYTE                 one bit there
  damage.py IMAGE zero BYTE COUNT
  damage.py IMAGE super SLOT FIELD VALUE    a field, and the checksum made right
  damage.py IMAGE member POOL MEMBER GENERATION NAME [MEMBER:GENERATION]...
                                            a new image; POOL and MEMBER are bytes that
                                            their uuids consist of
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


def superblock(pool, member, generation, name, members):
    block = bytearray(4096)
    struct.pack_into("<QIH2x16s16sQ", block, 0, 0x425352454954564B, 0, 1, bytes([pool] * 16),
                     bytes([member] * 16), generation)
    struct.pack_into("<QQQIIQQQ", block, 80, 2 << 20, 1 << 20, 65536, 4096, 16, 1, 1, 1)
    struct.pack_into("<IIII", block, 152, 1, 3, 128, len(members))
    block[192:192 + len(name)] = name.encode()
    for number, (uuid, known) in enumerate(members):
        struct.pack_into("<16sQ", block, 256 + 32 * number, bytes([uuid] * 16), known)
    struct.pack_into("<I", block, 8, crc32c(block))
    return block


def make_member(path, pool, member, generation, name, *members):
    members = [tuple(map(int, text.split(":"))) for text in members]
    with open(path, "wb") as image:
        image.truncate(2 << 20)
        for known in (int(generation) - 1, int(generation)):
            image.seek((known % 2) << 19)
            image.write(superblock(int(pool), int(member), known, name, members))


def main(path, what, *args):
    if what == "member":
        make_member(path, *args)
        return
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
