#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Table and charts of what policies keep: policy_report.py [--generated] SIM OUT TRACE...

Runs kvtier-sim for every trace, size and policy on one tier, and on two tiers for
the core's policies, without and with the segments of the slow one's log, and with hints
of when sessions go on. Writes OUT/policy.json, OUT/policy.html (with SVG in it) and
prints the table. The score of a policy is the mean of hits over MIN's, over all
traces and the sizes up to 10 %. Then says which of the promises below are not kept;
the exit status is 1 if any is not. Of the three traces that the policy was made with more is
promised than of others, by their names.
"""
import html
import json
import os
import pathlib
import subprocess
import sys

SIZES = (0.1, 1, 5, 10, 20, 40)
SCORED = 10
POLICIES = ("default", "lru", "lru-head", "fifo", "slru", "s3fifo", "arc", "lirs", "min")
COLOURS = {"default": "#1b6ca8", "lru": "#c9a227", "arc": "#7a9e3f", "lirs": "#a05195", "min": "#999"}
TOLERANCE = 0.005  # hits, one tier, against lru
TWO_TIERS_LOSS = 0.03  # hits, against lru, on real traces
GENERATED_LOSS = 0.04
TWO_TIERS_WRITES = 0.55  # of lru's
SEGMENT = 64  # blocks, of the slow tier's log
# The slow tier as space for so many blocks, and as the log that it is.
SPACES = {"two_tiers": (), "two_tiers_log": ("--segment", str(SEGMENT))}
# Of single traces; the score of these three together.
SCORE = 0.72
WRITES = {"claudeA": 0.35}  # of lru's
TOLD = {"conv60": (5, 0.28)}  # size, hits with exact hints
KNOWN = {"claudeA", "conv60", "mixDev"}
# Beside a tenant who scans: guaranteed, of a tier so large; blocks of a scan; hits lost at most.
GUARANTEE, BESIDE, SCAN, SCAN_LOSS = 1, 1.2, 512, 0.01
# Beside a tenant who says when what it scans will be used, with nothing guaranteed.
LIES, LIES_SIZE = (None, "1", "1000", "20000", "600000", "never", "random", "hot"), 5
VICTIMS = {"beside_lies": (), "beside_lies_told": ("--hints", "exact")}
# With hints hits vary more with anything that somebody else does.
LIES_LOSS = {"beside_lies": 0.01, "beside_lies_told": 0.02}
HINTS = ("exact", "wrong20")
TOLD_SIZES = (1, 5)
STYLE = """
body { font: 15px system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #333; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
td, th { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #ddd; }
.grid { stroke: #ddd; } .worse { color: #b00; }
"""


def simulate(sim, policy, tiers, trace, *options):
    command = [sim, "--policy", policy, *options]
    for name, size in tiers:
        command += ["--tier", f"{name}={size}%"]
    done = subprocess.run(command + [str(trace)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def name_of(trace):
    if trace.startswith("gen:"):
        return trace.split(":")[1]
    return pathlib.Path(trace).name.split(".")[0]


def measure(sim, traces):
    one, told, beside = {}, {}, {}
    lied = {victim: {} for victim in VICTIMS}
    two = {space: {} for space in SPACES}
    for trace in traces:
        name = name_of(trace)
        print(f"# {name}", file=sys.stderr)
        one[name] = {policy: {str(size): simulate(sim, policy, (("one", size),), trace)
                              for size in SIZES} for policy in POLICIES}
        for space, options in SPACES.items():
            two[space][name] = {policy: simulate(sim, policy, (("fast", 2), ("slow", 8)), trace,
                                                 *options) for policy in ("default", "lru")}
        told[name] = {hints: {str(size): simulate(sim, "default", (("one", size),), trace,
                                                  "--hints", hints) for size in TOLD_SIZES}
                      for hints in HINTS}
        beside[name] = {policy: simulate(sim, policy, (("one", BESIDE),), trace, "--scan",
                                         str(SCAN), "--guarantee", f"{GUARANTEE}%")
                        for policy in ("default", "lru")}
        for victim, options in VICTIMS.items():
            lied[victim][name] = {str(lie): simulate(
                sim, "default", (("one", LIES_SIZE),), trace, "--scan", str(SCAN), *options,
                *(("--lie", lie) if lie else ())) for lie in LIES}
    return {"one_tier": one, **two, "hints": told, "beside_a_scan": beside, **lied}


def score(one, policy):
    parts = [runs[policy][str(size)]["hits"] / runs["min"][str(size)]["hits"]
             for runs in one.values() for size in SIZES
             if size <= SCORED and runs["min"][str(size)]["hits"]]
    return sum(parts) / len(parts)


def worse(runs, policy, size):
    ratio = runs[policy][str(size)]["hit_ratio"]
    return policy == "default" and ratio < runs["lru"][str(size)]["hit_ratio"] - TOLERANCE


def one_tier_rows(data):
    one = data["one_tier"]
    yield ["policy", "trace"] + [f"{size} %" for size in SIZES] + ["score"]
    for policy in POLICIES:
        for number, (name, runs) in enumerate(one.items()):
            cells = [f"{runs[policy][str(s)]['hit_ratio']:.3f}" +
                     ("!" if worse(runs, policy, s) else "") for s in SIZES]
            yield [policy if not number else "", name] + cells + \
                [f"{score(one, policy):.3f}" if not number else ""]


def two_tier_rows(data, space):
    yield ["2 % + 8 %" + (f", log with segments of {SEGMENT}" if SPACES[space] else ""),
           "hits, lru", "hits, default", "writes, lru", "writes, default", "of lru's",
           "promoted", "unread"]
    for name, runs in data[space].items():
        lru, new = runs["lru"], runs["default"]
        part = new["slow_writes"] / lru["slow_writes"] if lru["slow_writes"] else 0
        yield [name, f"{lru['hit_ratio']:.3f}", f"{new['hit_ratio']:.3f}",
               str(lru["slow_writes"]), str(new["slow_writes"]), f"{100 * part:.0f} %",
               str(new["promotions"]), str(new["unread_promotions"])]


def hint_rows(data):
    yield ["hints", "trace"] + [f"{size} %" for size in TOLD_SIZES]
    for name, runs in data["one_tier"].items():
        told = {"none": runs["default"], **data["hints"][name], "min": runs["min"]}
        for hints, cells in told.items():
            yield [hints, name] + [f"{cells[str(s)]['hit_ratio']:.3f}" for s in TOLD_SIZES]


def beside_rows(data):
    yield [f"{GUARANTEE} %", "trace", "alone", "beside a scan"]
    for name, runs in data["beside_a_scan"].items():
        for policy, run in runs.items():
            alone = data["one_tier"][name][policy][str(GUARANTEE)]
            yield [policy, name, f"{alone['hit_ratio']:.3f}", f"{run['hit_ratio']:.3f}"]


def lie_rows(data):
    yield [f"{LIES_SIZE} %, beside a scan", "hints", "none"] + [f"{lie}" for lie in LIES[1:]]
    for victim, options in VICTIMS.items():
        for name, runs in data[victim].items():
            yield [name, options[1] if options else "none"] + \
                [f"{runs[str(lie)]['hit_ratio']:.3f}" for lie in LIES]


def broken_lies(data):
    for victim in VICTIMS:
        for name, runs in data[victim].items():
            for lie in LIES[1:]:
                silent, got = runs[str(None)]["hit_ratio"], runs[lie]["hit_ratio"]
                if got < silent - LIES_LOSS[victim]:
                    yield f"{name}, {victim}: {silent:.3f} hits, {got:.3f} if he lies ({lie})"


def broken_tenants(data):
    for name, runs in data["beside_a_scan"].items():
        for policy, run in runs.items():
            alone = data["one_tier"][name][policy][str(GUARANTEE)]["hit_ratio"]
            if run["hit_ratio"] < alone - SCAN_LOSS:
                yield f"{name}, {policy}: {alone:.3f} hits alone, {run['hit_ratio']:.3f} beside a scan"


def broken_known(data):
    """What was promised of traces by their names."""
    for name, (size, hits) in TOLD.items():
        if name in data["hints"]:
            got = data["hints"][name]["exact"][str(size)]["hit_ratio"]
            if got < hits:
                yield f"{name}, {size} %: {got:.3f} hits with exact hints, {hits} are promised"
    if KNOWN <= set(data["one_tier"]):
        got = score({name: data["one_tier"][name] for name in KNOWN}, "default")
        if got < SCORE:
            yield f"score: {got:.3f}, {SCORE} is promised"


def broken(data, loss):
    """What was promised of the default policy, and is not so."""
    for name, runs in data["one_tier"].items():
        for size in SIZES:
            if worse(runs, "default", size):
                yield f"{name}, {size} %: fewer hits than lru"
        for hints, cells in data["hints"][name].items():
            for size in TOLD_SIZES:
                if cells[str(size)]["hits"] <= runs["default"][str(size)]["hits"]:
                    yield f"{name}, {size} %: no more hits with hints ({hints}) than without"
    others = {p: data["score"][p] for p in POLICIES if p not in ("default", "min")}
    best = max(others, key=others.get)
    if data["score"]["default"] < others[best]:
        yield f"score: {data['score']['default']:.3f}, {best} has {others[best]:.3f}"
    for space in SPACES:
        yield from broken_two_tiers(data[space], space, loss)


def broken_two_tiers(two, space, loss):
    for name, runs in two.items():
        lru, new = runs["lru"], runs["default"]
        if new["hit_ratio"] < lru["hit_ratio"] - loss:
            yield f"{name}, {space}: {new['hit_ratio']:.3f} hits, lru has {lru['hit_ratio']:.3f}"
        if new["slow_writes"] > lru["slow_writes"] * WRITES.get(name, TWO_TIERS_WRITES):
            yield f"{name}, {space}: {new['slow_writes']} writes, lru has {lru['slow_writes']}"


def text_table(rows):
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip()
                     for row in rows)


def html_table(rows):
    out = ["<table>"]
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        out.append("<tr>" + "".join(
            f"<{tag}{' class=worse' if cell.endswith('!') else ''}>{html.escape(cell)}</{tag}>"
            for cell in row) + "</tr>")
    return "\n".join(out + ["</table>"])


def chart(name, runs):
    """Hit ratio over size; sizes stand at equal distances."""
    width, height, left, top = 900, 300, 50, 14
    step = (width - left - 110) / (len(SIZES) - 1)
    high = max(runs["min"][str(s)]["hit_ratio"] for s in SIZES) or 1
    out = [f'<svg viewBox="0 0 {width} {height + 40}" role="img" aria-label="{html.escape(name)}">']
    for part in range(5):
        y = top + (height - top) * (1 - part / 4)
        out.append(f'<line class="grid" x1="{left}" x2="{width - 110}" y1="{y:.0f}" y2="{y:.0f}"/>'
                   f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">'
                   f'{high * part / 4:.2f}</text>')
    for number, size in enumerate(SIZES):
        out.append(f'<text x="{left + number * step:.0f}" y="{height + 22}" '
                   f'text-anchor="middle">{size} %</text>')
    for number, (policy, colour) in enumerate(COLOURS.items()):
        ends = [(left + i * step, top + (height - top) *
                 (1 - runs[policy][str(s)]["hit_ratio"] / high)) for i, s in enumerate(SIZES)]
        points = " ".join(f"{x:.0f},{y:.1f}" for x, y in ends)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{width - 100}" y="{top + 20 + 18 * number}" '
                   f'style="fill:{colour}">{policy}</text>')
    return "\n".join(out + ["</svg>"])


def page(data):
    charts = "\n".join(f"<h2>{html.escape(name)}</h2>\n{chart(name, runs)}"
                       for name, runs in data["one_tier"].items())
    return (f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>kvtier policies</title>"
            f"<style>{STYLE}</style>\n<h1>What policies keep</h1>\n"
            f"<p>Prefix hits, by the share of distinct blocks there is room for. The score is the "
            f"mean of hits over MIN's up to {SCORED} %. A ! marks what is worse than LRU by more "
            f"than half a point.</p>\n{charts}\n{html_table(one_tier_rows(data))}\n"
            f"<h2>Two tiers</h2>\n" +
            "\n".join(html_table(two_tier_rows(data, space)) for space in SPACES) +
            f"\n"
            f"<h2>Told when sessions go on</h2>\n{html_table(hint_rows(data))}\n"
            f"<h2>Guaranteed so much, beside a tenant who scans</h2>\n"
            f"{html_table(beside_rows(data))}\n"
            f"<h2>Beside a tenant who says that what it scans will be used</h2>\n"
            f"{html_table(lie_rows(data))}\n</html>\n")


def main():
    loss = GENERATED_LOSS if "--generated" in sys.argv else TWO_TIERS_LOSS
    args = [arg for arg in sys.argv[1:] if arg != "--generated"]
    if len(args) < 3:
        sys.exit(__doc__)
    sim, out, traces = args[0], pathlib.Path(args[1]), args[2:]
    data = measure(os.path.abspath(sim), traces)
    data["score"] = {policy: score(data["one_tier"], policy) for policy in POLICIES}
    out.mkdir(parents=True, exist_ok=True)
    (out / "policy.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    (out / "policy.html").write_text(page(data), encoding="utf-8")
    print(text_table(one_tier_rows(data)))
    print()
    for space in SPACES:
        print(text_table(two_tier_rows(data, space)))
        print()
    print(text_table(hint_rows(data)))
    print()
    print(text_table(beside_rows(data)))
    print()
    print(text_table(lie_rows(data)))
    print(f"\n{out}/policy.json, {out}/policy.html")
    faults = [*broken(data, loss), *broken_known(data), *broken_tenants(data),
              *broken_lies(data)]
    for fault in faults:
        print(f"not kept: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
