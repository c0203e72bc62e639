# SPDX-License-Identifier: GPL-2.0
"""The bench's figures as tables, in Markdown and as plain text.

A table is (title, note, header, rows); all cells are strings.
"""

import log_tables
from promises import SCALE_MAX

BLOCKS = (65536, 1048576)
BATCHES = (1, 16, 256)


def size(bytes_):
    return f"{bytes_ >> 20} MiB" if bytes_ >= 1 << 20 else f"{bytes_ >> 10} KiB"


def find(rows, who, op, block, batch):
    """The result of one work; every run has all of them."""
    for r in rows:
        if (r["who"], r["op"], r["block_bytes"], r["batch"]) == (who, op, block, batch):
            return r
    raise SystemExit(f"no result for {who} {op} at {size(block)}, batch {batch}")


def ratio(peer, ours):
    v = peer / ours
    return f"{v:,.0f} x" if v >= 100 else f"{v:.1f} x" if v >= 10 else f"{v:.2f} x"


def each_size():
    return [(block, batch) for block in BLOCKS for batch in BATCHES]


def number(v):
    return f"{v:,.0f}"


def micro(v):
    return f"{v / 1000:,.2f}" if v < 100000 else f"{v / 1000:,.0f}"


def versus(rows, cell, ours, peers):
    """Rows of our figures and the peers', each peer with ratios to all of ours."""
    out = []
    for block, batch in each_size():
        mine = [find(rows, *o, block, batch)["median"] for o in ours]
        line = [size(block), str(batch)] + [cell(v) for v in mine]
        for p in peers:
            v = find(rows, *p, block, batch)["median"]
            line += [cell(v)] + [ratio(v, m) for m in mine]
        out.append(line)
    return out


def calls(rows, cell):
    ops = ("lookup", "get", "put")
    return [[size(block), str(batch)] +
            [cell(find(rows, "kvtier", op, block, batch)["median"]) for op in ops]
            for block, batch in each_size()]


def measured(rows, cell, unit):
    """The four tables of one run."""
    head = ["block", "batch"]
    return [
        (f"kvtier alone, {unit}",
         "No byte is moved: GET makes a block readable where it lies, RESERVE gives the place to "
         "fill. COMMIT looks at each 4 KiB page for references that are held elsewhere.",
         head + ["LOOKUP", "GET + RELEASE", "RESERVE + COMMIT"], calls(rows, cell)),
        (f"Reading a block, {unit}",
         "*In place*: GET + RELEASE. *Copied*: the same and a copy into the client's own memory, "
         "which is where the peers' reads end. Ratios: the peer to each of the two.",
         head + ["in place", "copied", "Redis GET", "/ in place", "/ copied", "tmpfs file",
                 "/ in place", "/ copied"],
         versus(rows, cell, [("kvtier", "get"), ("kvtier", "get_copy")],
                [("redis", "get_copy"), ("tmpfs", "get_copy")])),
        (f"Writing a block, {unit}",
         "From the client's memory. kvtier: RESERVE, copy into the slot, COMMIT.",
         head + ["kvtier", "Redis SET", "ratio", "tmpfs file", "ratio"],
         versus(rows, cell, [("kvtier", "put_copy")],
                [("redis", "put_copy"), ("tmpfs", "put_copy")])),
        (f"Reading a block that is on NVMe, {unit}",
         "kvtier: GET that waits for the promotion, and RELEASE; it verifies the checksum of every "
         "block (crc32c). The pool goes by age meanwhile (policy lru). File: O_DIRECT into huge pages, a batch in flight at once by io_uring; "
         "nothing is verified. While a disk works the counted clock jumps, and timers that fire early are "
         "counted too: most at batch 1.",
         head + ["kvtier GET", "O_DIRECT", "ratio"],
         versus(rows, cell, [("kvtier", "get_nvme")], [("direct", "get_nvme")])),
    ]


def scale_note(host):
    """What is promised of the index's size, and what time does instead."""
    times = [f"{host[key][1] / host[key][0]:.2f} times {what}"
             for key, what in (("get_release_ns_random", "with keys at random"),
                               ("get_release_ns_prefix", "in runs of 256")) if key in host]
    return (f"Batch 256. What is promised is instructions and cache lines: with 1,000,000 blocks at most "
            f"{SCALE_MAX:g} times those with 1,000. Time is not, and grows several times more on a host"
            + (f" (here {' and '.join(times)})" if times else "") +
            ": the index no longer fits the processor's caches, and each miss is a wait for memory.")


def scale_medians(data):
    """Among a thousand blocks and among a million, in the machine."""
    return [next(r["median"] for r in data["scale"] if r["op"] == op)
            for op in ("get_1000", "get_many")]


def scale_table(data):
    host, rows = data["host"], []
    if data["scale"]:
        few, many = scale_medians(data)
        rows.append(["instructions, module and library", number(few), number(many),
                     f"{many / few:.2f}"])
    if "get_release_instructions" in host:
        few, many = host["get_release_instructions"]
        rows.append(["instructions, core alone (host)", number(few), number(many),
                     f"{many / few:.2f}"])
    for name, key in (("ns, core alone, keys at random (host)", "get_release_ns_random"),
                      ("ns, core alone, runs of 256 (host)", "get_release_ns_prefix"),
                      ("distinct cache lines (host)", "cache_lines_per_get")):
        if key in host:
            few, many = host[key]
            rows.append([name, f"{few:g}", f"{many:g}", f"{many / few:.2f}"])
    return ("GET + RELEASE of a block, by blocks in the index",
            scale_note(host),
            ["", "1,000", "1,000,000", "ratio"], rows)


def clock_note(data):
    values = {}
    for r in data["icount"]:
        if r["who"] == "clock":
            values.setdefault(r["op"], r["median"])
    return (f"Cost of measuring, contained in every figure once for all blocks of a sample: "
            f"{values['empty']:.0f} instructions (two readings of the clock). A system call that "
            f"does nothing takes {values['syscall']:.0f}.")


HOW = """Measured by `make bench` in the test machine (QEMU, TCG, stock Debian 6.12 kernel). *Instructions*
are counted with `-icount shift=0,sleep=off` and one CPU, so they are those of client, kernel and server together,
and without `erms` and `fsrm`: `rep movsb` would count one instruction a byte, to the peers' disadvantage. All columns of a table
come from one boot: median of the samples after one that warms up, through libkvtier. Redis: unix socket, a batch is
a pipeline, nothing persistent, a client that copies and allocates nothing it need not. tmpfs: a file for each block,
open, read or write, close; it knows no batches. What the CPU sleeps while a disk works is not counted.
"""

TIME = """Emulated time says little about a real host: TCG translates, and only ratios between
columns mean anything. One CPU as well; medians, on a machine that does other things too. Checksums look
especially dear: TCG calls a function for each crc32 instruction, where a processor needs a cycle.
"""


def all_tables(data):
    """Those of counted instructions, and those of emulated time if it was measured."""
    return (measured(data["icount"], number, "instructions a block"),
            measured(data["plain"], micro, "µs a block, emulated") if data["plain"] else [])


def md_table(table):
    title, note, header, rows = table
    lines = [f"**{title}**", "", note, "", "| " + " | ".join(header) + " |",
             "|" + "---:|" * len(header)]
    lines += ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join(lines) + "\n"


def markdown(data):
    """What goes into the README."""
    counted, timed = all_tables(data)
    parts = [HOW] + [md_table(t) for t in counted] + [clock_note(data) + "\n"]
    parts += [md_table(scale_table(data))] + ([TIME] if timed else [])
    parts += [md_table((title, "", header, rows)).replace("\n\n\n\n", "\n\n")
              for title, _, header, rows in timed]
    return "\n".join(parts)


def markdown_log(data):
    """The log's part of it."""
    return "\n".join([log_tables.HOW] + [md_table(t) for t in log_tables.log_tables(data)])


def text_table(table):
    title, _, header, rows = table
    widths = [max(len(r[i]) for r in [header] + rows) for i in range(len(header))]
    lines = [title, "-" * len(title)]
    lines += ["  ".join(c.rjust(w) for c, w in zip(r, widths)) for r in [header] + rows]
    return "\n".join(lines) + "\n"


def plain_text(data):
    counted, timed = all_tables(data)
    return "\n".join(text_table(t) for t in counted + [scale_table(data)] +
                     log_tables.log_tables(data) + timed)
