#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tables, chart and checks from the bench's raw results.

report.py DIR [--readme FILE | --gets]

DIR has NAME.jsonl from the machine (icount, plain, perhaps scale; log-*), and host.json
and recovery.json from the host harness; what is missing is left out. bench.json, bench.txt, bench.md and bench.html are written
there. With --readme the tables go into FILE, between its marks, and no promise is
checked: those of the store if counted and timed results are both there, those of the
log if the machine has measured any of it; else they stay as they are. A promise that
is not kept is "not ok" and makes the exit status 1. With --gets DIR has gets.jsonl, perhaps
scale.jsonl, and nothing is written: only what is promised of GET is checked.
"""
import argparse
import json
import os
import sys

import chart
import log_tables
import tables
from promises import GET_BATCH, GET_MAX, GROWTH_MAX, SCALE_MAX, grown

CLOCK_ERROR_MAX = 0.02  # of one instruction a nanosecond
REPEAT_MAX = 0.01       # median over least; single samples may hold a timer's tick


def load_lines(folder, name):
    path = os.path.join(folder, name + ".jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def load_object(folder, name):
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def load(folder):
    """All that was measured; the parts that are missing are empty."""
    data = {name: load_lines(folder, name) for name in ("icount", "plain", "scale")}
    data.update({part: load_lines(folder, name)
                 for part, name in zip(log_tables.PARTS, log_tables.FILES)})
    data.update({name: load_object(folder, name) for name in ("host", "recovery")})
    return data


def check_clock(data):
    """The loop of known length, before and after: did the clock count?"""
    loops = [r["median"] for r in data["icount"] if r["op"] == "loop"]
    return (len(loops) == 2 and all(abs(v - 1) <= CLOCK_ERROR_MAX for v in loops),
            f"nanoseconds for an instruction, before and after: {loops}")


def check_get(data, block):
    row = tables.find(data["icount"], "kvtier", "get", block, GET_BATCH)
    return (row["median"] <= GET_MAX,
            f"{row['median']} instructions for GET+RELEASE of {tables.size(block)}, at most {GET_MAX}")


def check_growth(data, batch):
    small, large = (tables.find(data["icount"], "kvtier", "get", b, batch)["median"]
                    for b in tables.BLOCKS)
    return (large - small <= GROWTH_MAX * small,
            f"GET+RELEASE of 64 KiB {small}, of 1 MiB {large}: {large / small - 1:+.1%}, "
            f"at most {GROWTH_MAX:+.0%}")


def check_repeat(data, block):
    row = tables.find(data["icount"], "kvtier", "get", block, GET_BATCH)
    return (row["median"] <= (1 + REPEAT_MAX) * row["min"],
            f"samples: median {row['median']}, from {row['min']} to {row['max']}")


def check_scale(data):
    """In the machine when there was memory for it; the host harness in any case."""
    ratios = []
    if data["scale"]:
        ratios.append(grown(tables.scale_medians(data))[0])
    if "ratio_instructions" in data["host"]:
        ratios.append(data["host"]["ratio_instructions"])
    return (bool(ratios) and max(ratios) <= SCALE_MAX,
            "1,000,000 blocks against 1,000: " +
            (", ".join(f"{r:.3f}" for r in ratios) or "not measured") + f", at most {SCALE_MAX:g}")


def check_lines(data):
    lines = data["host"].get("cache_lines_per_get", [])
    return (len(lines) == 2 and grown(lines)[1],
            f"cache lines a GET touches: {lines}")


def checks(data):
    """(name, passed, detail) of each promise."""
    todo = [("clock", check_clock, ())]
    todo += [(f"get.{b >> 10}k", check_get, (b,)) for b in tables.BLOCKS]
    todo += [(f"repeatable.{b >> 10}k", check_repeat, (b,)) for b in tables.BLOCKS]
    todo += [(f"block_size.{n}", check_growth, (n,)) for n in tables.BATCHES]
    todo += [("index_size", check_scale, ()), ("cache_lines", check_lines, ())]
    return [(name, *fn(data, *args)) for name, fn, args in todo] + log_tables.checks(data)


def gets_checks(folder):
    """The same promises, those of GET alone."""
    data = {"icount": load_lines(folder, "gets"), "scale": load_lines(folder, "scale"), "host": {}}
    todo = [("clock", check_clock, ())]
    todo += [(f"{name}.{b >> 10}k", fn, (b,)) for b in tables.BLOCKS
             for name, fn in (("get", check_get), ("repeatable", check_repeat))]
    todo += [(f"block_size.{GET_BATCH}", check_growth, (GET_BATCH,))]
    if data["scale"]:
        todo += [("index_size", check_scale, ())]
    return [(name, *fn(data, *args)) for name, fn, args in todo]


def verdicts(results):
    """Says them, and what the program ends with."""
    for name, ok, detail in results:
        print(f"# {detail}")
        print(f"{'ok' if ok else 'not ok'} bench/{name}")
    return 0 if all(ok for _, ok, _ in results) else 1


def insert(old, name, text):
    """Replace what is between the marks of that name."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if old.count(begin) != 1 or old.count(end) != 1:
        sys.exit(f"no place for the tables ({begin} ... {end})")
    head, rest = old.split(begin)
    return f"{head}{begin}\n{text}{end}{rest.split(end)[1]}"


def readme(path, data):
    """The tables that can be made go into the file."""
    store = bool(data["icount"])
    if store and not data["plain"]:
        sys.exit("plain.jsonl is missing: the README announces emulated times")
    if not store and not log_tables.measured(data):
        sys.exit("icount.jsonl or results of the log are missing: run the bench first")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if store:
        text = insert(text, "bench", tables.markdown(data))
    if log_tables.measured(data):
        text = insert(text, "bench-log", tables.markdown_log(data))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--readme", metavar="FILE")
    parser.add_argument("--gets", action="store_true")
    args = parser.parse_args()
    if args.gets:
        return verdicts(gets_checks(args.folder))
    data = load(args.folder)
    if args.readme:
        readme(args.readme, data)
        return 0
    if not data["icount"]:
        sys.exit(f"{args.folder}/icount.jsonl is missing: run the bench first")
    results = checks(data)
    data["checks"] = [{"name": n, "ok": ok, "detail": d} for n, ok, d in results]
    write(args.folder, "bench.json", json.dumps(data, indent=1) + "\n")
    write(args.folder, "bench.md", tables.markdown(data) + "\n" + tables.markdown_log(data))
    write(args.folder, "bench.txt", tables.plain_text(data))
    write(args.folder, "bench.html", chart.page(data))
    print(tables.plain_text(data))
    return verdicts(results)


if __name__ == "__main__":
    sys.exit(main())
