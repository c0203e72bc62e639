# SPDX-License-Identifier: GPL-2.0
"""The figures of the block tier's log: tables, chart rows and promises.

What was not measured is left out. Tables are those of tables.py; a promise is
(name, kept, detail).
"""
import statistics

MIB = 1 << 20
AMPLIFICATION_MAX = 1.15
CHURN_TIMES_MIN = 10        # of the tier's capacity, demoted
THROUGHPUT_MIN = 0.95       # of the device's own
SURVIVE_MIN = 0.99
RECOVERY_MIN = 1_000_000    # blocks a second
BLOCKS = (65536, 1048576)

PARTS = ("log_stream", "log_counted", "log_churn", "log_clean", "log_crash", "log_ask")
FILES = ("log-throttled", "log-icount", "log-churn", "log-survive-clean", "log-survive-crash",
         "log-ask")

HOW = """Measured by `make bench`, too: ratios within one boot, or counted instructions. The emulated device is small and
forgets nothing that was flushed or not, so neither its own write amplification nor the price of a flush is in here.
"""


def measured(data):
    """Whether the machine has measured anything of it."""
    return any(data[part] for part in PARTS)


def size(v):
    return f"{v / MIB:,.0f} MiB" if v >= MIB else f"{v >> 10} KiB"


def median_of(rows, who, op, block):
    """Median of a block's figure; the device's own was taken before and after."""
    return statistics.median(r["median"] for r in rows
                             if (r["who"], r["op"], r["block_bytes"]) == (who, op, block))


def of_raw(rows, op, block):
    """Throughput as a part of the device's own."""
    return median_of(rows, "raw", op, block) / median_of(rows, "kvtier", op, block)


def split(row):
    """What the device was given for each demoted byte: all, carried, for finding again."""
    demoted = row["demoted_bytes"]
    return (row["device_bytes"] / demoted, (row["moved_bytes"] - demoted) / demoted,
            row["log_bytes"] / demoted)


def churn_table(data):
    rows = []
    for r in data["log_churn"]:
        total, carried, log = split(r)
        rows.append([size(r["block_bytes"]), size(r["segment_bytes"]), size(r["capacity_bytes"]),
                     f"{r['demoted_bytes'] / r['capacity_bytes']:.1f} x", f"{total:.3f}",
                     f"{carried:.3f}", f"{log:.3f}", f"{r['clean_demotions']:,}"])
    return ("What the log writes for a byte of demoted payload",
            "Trace-driven churn: `kvtier gen` and `kvtier replay`, two processes, DRAM of a quarter of the capacity above. "
            "*Device*: all that the kernel's statistics say was written to the device, per byte written for "
            "demoted blocks. Of that, *carried*: blocks moved by the cleaner; *log*: headers, "
            "footers, superblocks. *Clean*: demotions that wrote nothing, because the device still had the block; "
            "they count neither above nor below the line.",
            ["block", "segment", "capacity", "demoted", "device", "carried", "log", "clean"], rows)


def speed(rows, who, op, block):
    return block * 1000 / median_of(rows, who, op, block)


def stream_table(data):
    rows = []
    for block in BLOCKS:
        for op, name in (("seq_write", "demote"), ("seq_read", "GET, a chain")):
            line = [size(block), name]
            if data["log_stream"]:
                s = data["log_stream"]
                line += [f"{speed(s, 'kvtier', op, block):.1f}", f"{speed(s, 'raw', op, block):.1f}",
                         f"{of_raw(s, op, block):.3f}"]
            if data["log_counted"]:
                c = data["log_counted"]
                line += [f"{median_of(c, who, op, block) * MIB / block:,.0f}"
                         for who in ("kvtier", "raw")]
            rows.append(line)
    head = ["block", ""]
    if data["log_stream"]:
        head += ["MB/s", "O_DIRECT, MB/s", "ratio"]
    if data["log_counted"]:
        head += ["instructions a MiB", "O_DIRECT, instructions a MiB"]
    return ("Sequential throughput between DRAM and the log",
            "128 MiB each way. The device is throttled by QEMU to 40 MB/s, so that the log and not the emulated "
            "processor is measured. O_DIRECT: the same device in the same boot, before and after, by io_uring with "
            "32 requests of a block's size in flight. A demotion ends when `fsync` has returned; every block that is "
            "read is verified. Instructions: another boot, without throttle; most of those of kvtier are the checksum.",
            head, rows)


def survive_table(data):
    rows = []
    for part, name in (("log_clean", "clean shutdown, after the churn"),
                       ("log_crash", "reset in the middle of a replay")):
        for r in data[part]:
            rows.append([name, f"{r['before']:,}", f"{r['found']:,}", f"{r['served']:,}",
                         f"{100 * r['served'] / r['before']:.2f} %"])
    return ("Blocks on NVMe, durable, after the next boot",
            "Listed before the machine went down; after assembly each was looked up, and then read. The trace was "
            "replayed again afterwards, and every byte compared.",
            ["", "before", "found", "served", "served / before"], rows)


def asked(data):
    """What the same trace found before and after: pairs of blocks asked for and hits."""
    clients = [r["clients"] for r in data["log_ask"]]
    return [(c["blocks"], c["hits"]) for c in clients] if len(clients) == 2 else []


def asked_table(data):
    (blocks, before), (_, after) = asked(data)
    return ("Hit rate of a trace before and after a reboot",
            "The last requests of the churn, asked for by LOOKUP in the pool whose memory had been drained to NVMe, and "
            "again after shutdown, boot and assembly. Hits are those of an unbroken prefix.",
            ["blocks asked for", "hit rate before", "after", "after / before"],
            [[f"{blocks:,}", f"{100 * before / blocks:.2f} %", f"{100 * after / blocks:.2f} %",
              f"{100 * after / before:.2f} %"]])


def recovery_table(data):
    r = data["recovery"]
    return ("Recovery on the host harness",
            "From the bytes of a member's segments to all that a pool has of them: segments read three times, index, "
            "chains, lists, as the driver does it, by the core's own functions, among older, dropped and orphaned records; "
            "every block is compared afterwards. One thread, media in memory, seconds of processor time, the best of "
            f"{len(r['rounds_per_s'])} rounds.",
            ["blocks", "with a parent", "of these in another segment", "blocks a second"],
            [[f"{r['blocks']:,}", f"{r['with_parent']:,}", f"{r['parent_in_other_segment']:,}",
              f"{r['recovered_per_s']:,.0f}"]])


# What recovery.json calls it, and what it is.
STAYS = (("entries", "entries"), ("index", "index"),
         ("segments", "segments of the log, and which blocks are in them"))
GOES = (("parents", "keys of parents, until all can be linked"),
        ("dead", "a bit for each unit of the device"),
        ("found", "what each segment turned out to be"), ("owed", "records to be killed"),
        ("namespaces", "namespaces that records name"), ("buffers", "buffers of as many workers as there may be"))


def recovery_bytes_table(data):
    r = data["recovery"]
    rows = []
    for part, names, total in (("stays", STAYS, "stays_bytes_all"), ("goes", GOES, "goes_bytes_at_most")):
        lines = [(name, r[f"{part}_bytes"][key]) for key, name in names] + [("all", r[total])]
        rows += [[name, part, f"{v:,}", f"{v / r['blocks']:.2f}"] for name, v in lines]
    return ("DRAM that recovery takes",
            "Of the same recovery, as it was asked for. *Stays*: the pool's own. *Goes*: needed beside it until "
            "the pool is there; *all* of it is the most at any time. Records are the driver's. What is for units, namespaces "
            "and workers does not grow with the blocks.",
            ["what", "", "bytes", "bytes a block"], rows)


def log_tables(data):
    """Those for which there is something."""
    out = []
    if data["log_churn"]:
        out.append(churn_table(data))
    if data["log_stream"] or data["log_counted"]:
        out.append(stream_table(data))
    if data["log_clean"] or data["log_crash"]:
        out.append(survive_table(data))
    if asked(data):
        out.append(asked_table(data))
    if data["recovery"]:
        out += [recovery_table(data), recovery_bytes_table(data)]
    return out


def bars(data):
    """[(group, label, class, value)] for a linear chart: parts of one."""
    out = []
    for r in data["log_churn"]:
        out.append(("Bytes to the device for a demoted byte",
                    f"{size(r['block_bytes'])}, segments of {size(r['segment_bytes'])}", "kvtier",
                    split(r)[0]))
    if data["log_stream"]:
        for block in BLOCKS:
            for op, name in (("seq_write", "write"), ("seq_read", "read")):
                out.append(("Throughput, O_DIRECT is 1", f"{size(block)}, {name}", "kvtier",
                            of_raw(data["log_stream"], op, block)))
    return out


def check_churn(r):
    times = r["demoted_bytes"] / r["capacity_bytes"]
    total, carried, log = split(r)
    return (total <= AMPLIFICATION_MAX and times >= CHURN_TIMES_MIN,
            f"{total:.3f} bytes to the device for a demoted byte ({carried:.3f} carried, {log:.3f} log), "
            f"at most {AMPLIFICATION_MAX}; {times:.1f} times the capacity")


def churn_checks(data):
    return [(f"log.amplification.{r['block_bytes'] >> 10}k.{r['segment_bytes'] >> 20}m",
             *check_churn(r)) for r in data["log_churn"]] or \
        [("log.amplification", False, "not measured")]


def stream_checks(data):
    if not data["log_stream"]:
        return [("log.throughput", False, "not measured")]
    out = []
    for block in BLOCKS:
        for op in ("seq_write", "seq_read"):
            v = of_raw(data["log_stream"], op, block)
            out.append((f"log.{op}.{block >> 10}k", v >= THROUGHPUT_MIN,
                        f"{v:.3f} of O_DIRECT's throughput, at least {THROUGHPUT_MIN}"))
    return out


def survive_checks(data):
    out = []
    for part, name in (("log_clean", "restart"), ("log_crash", "reset")):
        r = data[part][0] if data[part] else {"before": 0, "served": 0}
        out.append((f"log.survive.{name}",
                    r["before"] > 0 and r["served"] >= SURVIVE_MIN * r["before"],
                    f"{r['served']} of {r['before']} blocks that were on NVMe are served"))
    before, after = [hits for _, hits in asked(data)] or (0, 0)
    out.append(("log.survive.hit_rate", before > 0 and after >= SURVIVE_MIN * before,
                f"a trace had {before} hits before the reboot, and {after} after it"))
    return out


def checks(data):
    rate = data["recovery"].get("recovered_per_s", 0)
    return churn_checks(data) + stream_checks(data) + survive_checks(data) + \
        [("log.recovery", rate >= RECOVERY_MIN,
          f"{rate:,.0f} blocks recovered a second, at least {RECOVERY_MIN:,}")]
