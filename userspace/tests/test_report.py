#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the replay's HTML page, the demo's verdict and the bench's tables for the README,
on made-up results."""
import copy
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
REPORT = os.path.join(TREE, "userspace", "kvtier", "report.py")
CHECK = os.path.join(TREE, "selftests", "vm", "demo_check.py")
BENCH = os.path.join(TREE, "selftests", "bench")
VOID = {"meta"}

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(CHECK), BENCH]
import demo_check  # noqa: E402
import log_tables  # noqa: E402
import report as bench_report  # noqa: E402
import tables  # noqa: E402


def make_tier(number, kind):
    """One tier as 'kvtier replay' writes it."""
    names = ("hits", "leased", "promotions_in", "promotions_out", "demotions_in",
             "demotions_out", "evictions", "read_bytes", "write_bytes", "dma_bytes")
    tier = {name: 10 + number for name in names}
    tier.update(id=number, name=f"tier{number}", type=kind, rank=10 * number,
                capacity_bytes=1 << 24, used_bytes=1 << 23, nr_blocks=5, hit_rate=0.2,
                io_errors=0)
    return tier


def make_latency(operation, tier):
    """A row of the latency list."""
    return {"operation": operation, "tier": tier, "count": 100, "mean_ns": 2000,
            "p50_ns": 1000, "p90_ns": 3000, "p99_ns": 9000, "max_ns": 20000,
            "curve": [[1000, 0.5], [20000, 1.0]]}


def make_result():
    """A result that is good in every respect."""
    samples = 20
    rising = [10 * i for i in range(samples)]
    tiers = [make_tier(0, "dram"), make_tier(1, "dax"), make_tier(2, "bdev")]
    clients = {name: 7 for name in (
        "stored", "existing", "skipped", "no_space", "no_parent",
        "io_errors", "timeouts", "stored_bytes")}
    clients.update(requests=190, blocks=190, hits=90, hit_rate=0.47, verified_bytes=1 << 30,
                   wrong_blocks=0, wrong_bytes=0)
    return {
        "passed": True, "duration_ns": 19 * 10**9,
        "trace": {"name": "t.csv", "requests": 190, "blocks": 190, "distinct_blocks": 50,
                  "endless_cache_hit_rate": 0.7},
        "options": {"procs": 4, "block_bytes": 65536, "verify": "full"},
        "clients": clients,
        "dedup": {"saved_blocks": 3, "saved_bytes": 3 << 16, "saved_rate": 0.1},
        "pool": {"counters_known": True, "promotions": 1, "demotions": 2, "evictions": 3,
                 "dma_bytes": 4, "dedup_waits": 6, "moves_dmaengine": 0, "moves_cpu": 5},
        "tiers": tiers,
        "latency": [make_latency("get_request", "all")] +
                   [make_latency(op, t["name"]) for t in tiers
                    for op in ("get_block", "read_block")],
        "series": {"t_ns": [10**9 * i for i in range(samples)], "blocks": rising,
                   "tier_hits": [rising] * 3, "tier_used_bytes": [rising] * 3,
                   "tier_promotions_in": [rising] * 3, "tier_demotions_in": [rising] * 3},
    }


def report(result):
    """Runs report.py; returns its exit status, page and messages."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(result if isinstance(result, str) else json.dumps(result))
        file.flush()
        done = subprocess.run([sys.executable, "-B", REPORT, file.name], text=True,
                              capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


class Balance(html.parser.HTMLParser):
    """Notes tags that do not close, and what the page shows as text."""

    def __init__(self):
        super().__init__()
        self.open, self.bad, self.text, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def parse(page):
    """The page, read; complains about anything unbalanced."""
    balance = Balance()
    balance.feed(page)
    assert not balance.bad and not balance.open, (balance.bad, balance.open)
    return balance


def test_page():
    """A page with all its charts and tables, and nothing from elsewhere."""
    status, page, errors = report(make_result())
    assert status == 0 and not errors, errors
    tags = parse(page).tags
    assert tags.count("svg") == 7, tags.count("svg")
    assert tags.count("table") == 3 and "script" not in tags
    assert not re.search(r"(src|href)=|url\(|@import|https?:", page)
    assert "NaN" not in page and "nan" not in re.sub(r"<[^>]*>", "", page)


def test_edges():
    """No latencies, no time, nothing asked for: still a page."""
    result = make_result()
    result["latency"] = []
    for key, value in result["series"].items():
        result["series"][key] = [v[:1] for v in value] if key.startswith("tier") else value[:1]
    result["duration_ns"] = 0
    status, page, errors = report(result)
    assert status == 0, errors
    parse(page)


def test_escapes():
    """Names are text, whatever they look like."""
    result = make_result()
    evil = '<script>alert("1")</script>&'
    result["trace"]["name"] = evil
    result["tiers"][0]["name"] = evil
    status, page, errors = report(result)
    assert status == 0, errors
    balance = parse(page)
    assert "script" not in balance.tags and evil in "".join(balance.text)


def test_refuses():
    """What is no result gives a message, no page and no traceback."""
    for bad in ("", "{", "[]", "{}", '{"tiers": 1}'):
        status, page, errors = report(bad)
        assert status == 1 and not page, (bad, status)
        assert errors.startswith("report.py: ") and "Traceback" not in errors, errors


def test_verdict():
    """The demo's check finds nothing in a good result, and each thing that is wrong."""
    good = make_result()
    assert list(demo_check.problems(good)) == []

    def change(path, value):
        result = copy.deepcopy(good)
        place = result
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        return list(demo_check.problems(result))

    assert change(["clients", "wrong_bytes"], 1)
    assert change(["clients", "requests"], 189)
    assert change(["clients", "verified_bytes"], 0)
    assert change(["clients", "verified_bytes"], 90 * 65536) == []
    assert change(["clients", "verified_bytes"], 90 * 65536 - 1)
    assert change(["passed"], False)
    assert change(["pool", "counters_known"], False)
    for tier in range(3):
        assert change(["tiers", tier, "hits"], 0) == [f"tier{tier}: no hits"]
        assert bool(change(["tiers", tier, "promotions_in"], 0)) == (tier != 2)
        assert bool(change(["tiers", tier, "demotions_out"], 0)) == (tier != 2)
        assert change(["tiers", tier, "io_errors"], 1)
    good["tiers"].reverse()
    assert list(demo_check.problems(good)) == []


def make_bench(folder, name):
    """NAME.jsonl with a row for all that the tables show."""
    works = [("kvtier", op) for op in ("lookup", "get", "put", "get_copy", "put_copy", "get_nvme")]
    works += [(who, op) for who in ("redis", "tmpfs") for op in ("get_copy", "put_copy")]
    works += [("direct", "get_nvme")]
    rows = [{"who": who, "op": op, "block_bytes": block, "batch": batch, "median": 1234}
            for who, op in works for block in tables.BLOCKS for batch in tables.BATCHES]
    rows += [{"who": "clock", "op": op, "median": 1, "block_bytes": 0, "batch": 0}
             for op in ("empty", "syscall")]
    with open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def bench_readme(folder, readme):
    """Runs the bench's report.py for a README; returns its exit status."""
    return subprocess.run([sys.executable, "-B", os.path.join(BENCH, "report.py"), folder,
                           "--readme", readme], capture_output=True, check=False).returncode


def test_bench_readme():
    """Tables of instructions and of times go between the marks, or the file stays as it is."""
    before = "head\n<!-- bench:begin -->\nold\n<!-- bench:end -->\ntail\n"
    with tempfile.TemporaryDirectory() as folder:
        readme = os.path.join(folder, "README.md")
        for parts, status in (((), 1), (("plain",), 1), (("icount",), 1),
                              (("icount", "plain"), 0)):
            with open(readme, "w", encoding="utf-8") as file:
                file.write(before)
            for name in ("icount", "plain"):
                if name in parts:
                    make_bench(folder, name)
                elif os.path.exists(os.path.join(folder, name + ".jsonl")):
                    os.remove(os.path.join(folder, name + ".jsonl"))
            assert bench_readme(folder, readme) == status, parts
            with open(readme, encoding="utf-8") as file:
                after = file.read()
            assert (after == before) == bool(status), parts
        assert after.startswith("head\n") and after.endswith("tail\n") and "old" not in after
        assert "instructions a block" in after and "µs a block" in after


LOG_PARTS = log_tables.FILES + ("recovery",)


def make_bench_log(folder, parts=LOG_PARTS):
    """What the log's tables are made of, or some of it."""
    streams = [{"who": who, "op": op, "block_bytes": block, "median": block / speed}
               for who, speed in (("raw", 0.04), ("kvtier", 0.039))
               for op in ("seq_write", "seq_read") for block in tables.BLOCKS]
    churn = {"block_bytes": 65536, "capacity_bytes": 100 << 20, "segment_bytes": 4 << 20,
             "demoted_bytes": 1000 << 20, "moved_bytes": 1080 << 20, "log_bytes": 20 << 20,
             "device_bytes": 1100 << 20, "clean_demotions": 7}
    survive = {"before": 200, "found": 199, "served": 198}
    ask = [{"clients": {"blocks": 400, "hits": hits}} for hits in (300, 299)]
    rows = (streams, streams, [churn], [survive], [survive], ask)
    for name, lines in zip(log_tables.FILES, rows):
        if name in parts:
            with open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
    if "recovery" in parts:
        with open(os.path.join(folder, "recovery.json"), "w", encoding="utf-8") as file:
            json.dump({"blocks": 1000000, "with_parent": 900000, "parent_in_other_segment": 300000,
                       "recovered_per_s": 2e6, "rounds_per_s": [2e6, 1e6],
                       "stays_bytes": {name: 5 for name, _ in log_tables.STAYS}, "stays_bytes_all": 117000000,
                       "goes_bytes": {name: 7 for name, _ in log_tables.GOES},
                       "goes_bytes_at_most": 68000000}, file)


def bench_log_readme(parts):
    """What the README is for these parts of the results, and what it was before."""
    before = "head\n<!-- bench-log:begin -->\nold\n<!-- bench-log:end -->\ntail\n"
    with tempfile.TemporaryDirectory() as folder:
        readme = os.path.join(folder, "README.md")
        with open(readme, "w", encoding="utf-8") as file:
            file.write(before)
        make_bench_log(folder, parts)
        assert bench_readme(folder, readme) == (0 if set(parts) - {"recovery"} else 1), parts
        with open(readme, encoding="utf-8") as file:
            return file.read(), before


def test_bench_log_readme():
    """The log's tables have marks of their own, and what was not measured is left out."""
    for parts in ((), ("recovery",)):
        after, before = bench_log_readme(parts)
        assert after == before, parts
    after, _ = bench_log_readme(LOG_PARTS)
    assert after.startswith("head\n") and after.endswith("tail\n") and "\nold\n" not in after
    lines = {"log-churn": "| 1.100 | 0.080 | 0.020 | 7 |", "log-throttled": "| 39.0 | 40.0 | 0.975 |",
             "log-survive-clean": "| 200 | 199 | 198 | 99.00 % |", "log-ask": "| 400 | 75.00 % | 74.75 % | 99.67 % |",
             "recovery": "| 1,000,000 | 900,000 | 300,000 | 2,000,000 |"}
    for part, line in lines.items():
        assert line in after, part
        after, _ = bench_log_readme([p for p in LOG_PARTS if not p.startswith(part[:11])])
        assert line not in after and "**" in after, part
        after, _ = bench_log_readme(LOG_PARTS)
    assert "| all | goes | 68,000,000 | 68.00 |" in after and "best of 2 rounds" in after


def promises(folder):
    """What the log has promised and kept, by name."""
    data = bench_report.load(folder)
    return {name: kept for name, kept, _ in log_tables.checks(data)}


def test_bench_log_promises():
    """Each promise is broken by its own figure, and by one that is missing."""
    with tempfile.TemporaryDirectory() as folder:
        make_bench_log(folder)
        assert all(promises(folder).values()), promises(folder)
    broken = {"log-churn": ("device_bytes", 1200 << 20, "log.amplification.64k.4m"),
              "log-throttled": ("median", 1e9, "log.seq_read.1024k"),
              "log-survive-clean": ("served", 197, "log.survive.restart"),
              "log-survive-crash": ("before", 0, "log.survive.reset"),
              "log-ask": ("clients", {"blocks": 400, "hits": 296}, "log.survive.hit_rate")}
    for name, (key, value, promise) in broken.items():
        with tempfile.TemporaryDirectory() as folder:
            make_bench_log(folder)
            path = os.path.join(folder, name + ".jsonl")
            with open(path, encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
            rows[-1][key] = value
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            kept = promises(folder)
            assert [p for p in kept if not kept[p]] == [promise], (name, kept)
    with tempfile.TemporaryDirectory() as folder:
        make_bench_log(folder)
        path = os.path.join(folder, "recovery.json")
        for rate in (999999, None):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"recovered_per_s": rate} if rate else {}, file)
            kept = promises(folder)
            assert [p for p in kept if not kept[p]] == ["log.recovery"], (rate, kept)
    for name in log_tables.FILES:
        with tempfile.TemporaryDirectory() as folder:
            make_bench_log(folder, [part for part in LOG_PARTS if part != name])
            assert all(promises(folder).values()) == (name == "log-icount"), name


def main():
    """Runs all tests; one result line each."""
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            print(f"ok report_{name[5:]}")
        except AssertionError as error:
            print(f"line {error.__traceback__.tb_next.tb_lineno}: {error}")
            print(f"not ok report_{name[5:]}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
