#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A piece of a real trace that fills a pool: cut_trace.py OPTIONS FOLDER

Reads every *.csv, *.csv.zst, *.jsonl and *.jsonl.zst in FOLDER (formats as in
kvtier-replay(1), told apart by content) from its start on, until it has asked for
enough distinct blocks. A trace that would ask for too many blocks to get there is not
taken; if all of them would, only every second request is used, then every fourth and
so on. Of what is left the one that asks for a block most often is written to
--out/trace.csv or trace.jsonl, and the name of that file is printed.
"""
import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys

SUFFIXES = (".csv", ".csv.zst", ".jsonl", ".jsonl.zst")
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
STRIDES = (1, 2, 4, 8, 16, 32)


class Bad(Exception):
    """A file that is not a trace."""


@contextlib.contextmanager
def opened(path):
    """The file's lines, inflated if need be. Leaving early is fine, a damaged end is not."""
    with open(path, "rb") as file:
        if file.read(len(ZSTD_MAGIC)) != ZSTD_MAGIC:
            file.seek(0)
            yield file
            return
    with subprocess.Popen(["zstd", "-dcq", "--", path], stdout=subprocess.PIPE) as zstd:
        try:
            yield zstd.stdout
            if not zstd.stdout.read(1) and zstd.wait():
                raise Bad(f"{path}: cannot be inflated")
        finally:
            zstd.kill()


def csv_blocks(line):
    """Blocks of a CSV request; runs are a-b."""
    for part in line.split(b",")[4].split():
        first, _, last = part.partition(b"-")
        yield from range(int(first), int(last or first) + 1)


def json_blocks(line):
    """Blocks of a request of the Mooncake traces."""
    return json.loads(line)["hash_ids"]


class Trace:
    """One file: the line before its requests (CSV), and how to read these."""

    def __init__(self, path):
        self.path = path
        with opened(path) as lines:
            first = next((line for line in lines if line.strip()), b"")
        self.is_json = first.lstrip().startswith(b"{")
        self.head = b"" if self.is_json else first
        self.blocks = json_blocks if self.is_json else csv_blocks
        if not self.is_json and not first.startswith(b"ts_ms,"):
            raise Bad(f"{path}: neither CSV nor JSON lines of a trace")

    @contextlib.contextmanager
    def requests(self):
        """Lines of the requests, from the first on."""
        with opened(self.path) as lines:
            full = (line for line in lines if line.strip())
            yield full if self.is_json else itertools.islice(full, 1, None)

    def measure(self, stride, enough, most):
        """(requests, accesses for each block): what it takes to ask for enough distinct
        blocks; None if it has not so many, or would ask too often."""
        seen, accesses = set(), 0
        with self.requests() as lines:
            for number, line in enumerate(lines):
                if number % stride:
                    continue
                try:
                    ids = set(self.blocks(line))
                except (ValueError, IndexError, KeyError, TypeError) as error:
                    raise Bad(f"{self.path}: request {number + 1}: {error!r}") from error
                seen |= ids
                accesses += len(ids)
                if accesses > most:
                    return None
                if len(seen) >= enough:
                    return number + 1, accesses / len(seen)
        return None

    def write(self, out, stride, count):
        """One in STRIDE of the first COUNT requests, as a trace of its own."""
        name = "trace.jsonl" if self.is_json else "trace.csv"
        with open(os.path.join(out, name), "wb") as file, self.requests() as lines:
            file.write(self.head)
            file.writelines(itertools.islice(lines, 0, count, stride))
        return name


def choose(traces, enough, most):
    """(reuse, trace, stride, requests) of the best, or None."""
    for stride in STRIDES:
        found = [(trace, trace.measure(stride, enough, most)) for trace in traces]
        fits = [(cut[1], trace, stride, cut[0]) for trace, cut in found if cut]
        if fits:
            return max(fits, key=lambda fit: fit[0])
    return None


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--distinct", type=int, required=True, help="blocks to be asked for")
    parser.add_argument("--most", type=int, required=True, help="times blocks may be asked for")
    parser.add_argument("--out", required=True, help="folder to write to")
    args = parser.parse_args()
    names = sorted(n for n in os.listdir(args.folder) if n.endswith(SUFFIXES))
    if not names:
        sys.exit(f"no {', '.join('*' + s for s in SUFFIXES)} in {args.folder}")
    try:
        traces = [Trace(os.path.join(args.folder, name)) for name in names]
        best = choose(traces, args.distinct, args.most)
        if not best:
            sys.exit(f"no trace in {args.folder} fills the pool")
        _, trace, stride, count = best
        print(trace.write(args.out, stride, count))
    except Bad as error:
        sys.exit(str(error))
    print(f"trace: one in {stride} of the first {count} requests of "
          f"{os.path.basename(trace.path)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
