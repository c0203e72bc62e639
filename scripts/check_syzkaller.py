#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares selftests/syzkaller/dev_kvtier.txt with the uAPI headers: every command, flag
and struct is described, every field in its place and with its width, and nothing else.
check_syzkaller.py [TREE]"""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
HEADERS = [ROOT / 'uapi/linux' / name for name in ('kvtier.h', 'kvtier_ctl.h')]
TEXT = ROOT / 'selftests/syzkaller/dev_kvtier.txt'
RESERVED = {'EVENTS'}       # numbers of commands that are not there yet
# The same struct with another kind of handle.
ALIASES = {'kvtier_reserve_result': 'kvtier_block_result'}
WIDTHS = {'__u8': 1, '__s8': 1, 'char': 1, '__u16': 2, '__u32': 4, '__s32': 4,
          '__aligned_u64': 8}


def constants(source):
    numbers = {'KVTIER_KEY_BYTES', 'KVTIER_NAME_MAX', 'KVTIER_PATH_MAX'}
    return {n: int(v) for n, v in re.findall(r'#define\s+(\w+)\s+(\d+)', source) if n in numbers}


def header_structs(source):
    sizes = constants(source)
    structs = {}
    for name, body in re.findall(r'^struct (\w+) \{\n(.*?)^\};', source, re.M | re.S):
        fields = []
        for kind, field, length in re.findall(r'^\t(\w+) (\w+)(?:\[(\w+)\])?;', body, re.M):
            count = int(sizes.get(length, length)) if length else 1
            fields.append((field, WIDTHS[kind] * count))
        structs[name] = fields
    return structs


class Description:
    def __init__(self, text):
        self.text = re.sub(r'^#.*\n', '', text, flags=re.M)
        self.resources = dict(re.findall(r'^resource (\w+)\[(\w+)\]', self.text, re.M))
        self.bodies = dict((name, body) for name, body in re.findall(
            r'^(?:type )?(\w+)(?:\[\w+\])? \{\n(.*?)^\}', self.text, re.M | re.S))

    def struct(self, name):
        fields = []
        for line in self.bodies[name].splitlines():
            field, kind = re.match(r'\t(\w+)\t+(.*?)(?:\t\(\w+\))?$', line).groups()
            fields.append((field, self.width(kind)))
        return fields

    def width(self, kind):
        if kind.startswith('ptr64['):
            return 8
        if kind.startswith('array['):
            inner, count = re.match(r'array\[(.*), (\d+)\]$', kind).groups()
            return self.width(inner) * int(count)
        if kind.startswith('string['):
            return int(re.search(r', (\d+)\]$', kind).group(1))
        base = kind.split('[')[0]
        if base in ('const', 'flags', 'len', 'bytesize'):
            return self.width(re.search(r', (\w+)\]$', kind).group(1))
        if base in self.bodies:
            return sum(width for _, width in self.struct(base))
        if base in self.resources:
            return self.width(self.resources[base])
        if base.startswith('fd'):
            return 4
        return int(re.match(r'int(\d+)$', base).group(1)) // 8


def check(source, description):
    ops = set(re.findall(r'KVTIER_OP_(\w+) = ', source)) - RESERVED
    for what, found in (
            ('calls', re.findall(r'^ioctl\$KVTIER_(\w+)\(.*const\[KVTIER_IOC_\1\]',
                                 description.text, re.M)),
            ('numbers', re.findall(r'^define KVTIER_IOC_(\w+)\s+KVTIER_IOC\(KVTIER_OP_\1\)',
                                   description.text, re.M))):
        for op in sorted(ops ^ set(found)):
            yield f'{what}: {op} is in one of them only'
    structs = header_structs(source)
    described = {name for name in description.bodies if name.startswith('kvtier_')}
    for name in sorted(described - set(structs) - set(ALIASES) - {'kvtier_key'}):
        yield f'{name}: no such struct'
    for name in sorted(set(structs) - described):
        yield f'{name}: is not described'
    for name in sorted(described):
        wanted = structs.get(ALIASES.get(name, name))
        if wanted and wanted != description.struct(name):
            yield f'{name}: {wanted}, but described as {description.struct(name)}'
    flags = set(re.findall(r'#define (KVTIER_(?:NS|GET|RESERVE|COMMIT|PREFETCH|STAT|DETACH|'
                           r'ASSEMBLE|SCRUB|ATTACH)_\w+)\s+\(1U << ', source))
    flags |= set(re.findall(r'(KVTIER_(?:ADV|SESSION)_\w+) = ', source))
    for flag in sorted(flags):
        if not re.search(rf'\b{flag}\b', description.text):
            yield f'{flag}: is not described'


def main():
    source = ''.join(header.read_text() for header in HEADERS)
    wrong = list(check(source, Description(TEXT.read_text())))
    for line in wrong:
        print(f'{TEXT.relative_to(ROOT)}: {line}')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
