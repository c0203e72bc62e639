#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Damage to the image of a member, for the tests of fsck; members without contents.

  damage.py IMAGE flip BYTE                 one bit there
  damage.py IMAGE zero BYTE COUNT
  damage.py IMAGE super SLOT FIELD VALUE    a field, and the checksum made right
  damage.py IMAGE kill SUMMARY FOOTER SEGMENT LIFE
                                            the first kill in the summary at that byte,
                                            whose footer is at that other: of the whole
                                            segment in that life, and valid
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

U64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


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


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & U64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & U64
    return z ^ z >> 31


def scrambled(data, life, salt, offset):
    """Both ways; see kvt_scramble() of the driver's core."""
    state = mix(mix(life + GAMMA & U64) ^ salt)
    out = bytearray()
    for number, (word,) in enumerate(struct.iter_unpack("<Q", data), offset // 8 + 1):
        out += struct.pack("<Q", word ^ mix(state + number * GAMMA & U64))
    return out


def forge_kill(image, summary_at, footer_at, segment, life):
    image.seek(footer_at)
    footer = bytearray(image.read(128))
    own_life, = struct.unpack_from("<Q", footer, 32)
    length, = struct.unpack_from("<I", footer, 64)
    nr_ns, nr_blocks, nr_kills = struct.unpack_from("<III", footer, 72)
    salt, = struct.unpack_from("<Q", footer, 96)
    assert nr_kills, "there is no kill in this summary"
    image.seek(summary_at)
    summary = bytearray(image.read(length))
    at = 512 * nr_ns + 128 * nr_blocks
    kill = struct.pack("<IIQ", segment, 0xFFFFFFFF, life)
    summary[at:at + 16] = scrambled(kill, own_life, salt, at)
    struct.pack_into("<I", footer, 68, crc32c(summary))
    struct.pack_into("<I", footer, 8, 0)
    struct.pack_into("<I", footer, 8, crc32c(footer))
    image.seek(summary_at)
    image.write(summary)
    image.seek(footer_at)
    image.write(footer)


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
        if what == "kill":
            forge_kill(image, *map(int, args))
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
