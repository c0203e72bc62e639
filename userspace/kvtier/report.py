#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns the JSON result of 'kvtier replay' into one self-contained HTML page.

    report.py RESULT.json [-o PAGE.html] [--title TEXT]

The page has no scripts and loads nothing: charts are inline SVG, colours are
CSS variables that follow the reader's light or dark preference. Everything a
chart shows is in a table as well, or in the tooltip of its marks.
"""
import argparse
import html
import json
import math
import sys

BINS = 32           # intervals shown in time series
WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 72, 28, 14, 34

STYLE = """
:root { color-scheme: light dark; --bg: #fcfcfb; --panel: #ffffff; --ink: #1c1d1f;
  --soft: #5d6066; --line: #e2e3e5; --good: #0a7d4f; --bad: #c0292b;
  --c0: #2f6fd0; --c1: #c9650c; --c2: #14867a; --c3: #8a52c8; --c4: #b83a72;
  --c5: #6d7a12; --c6: #1b8bb3; --c7: #8c5a3c; }
@media (prefers-color-scheme: dark) { :root { --bg: #15171a; --panel: #1d2024;
  --ink: #e9eaec; --soft: #a3a8b0; --line: #34383e; --good: #4cc38a; --bad: #ff7a78;
  --c0: #6ea8ff; --c1: #f0a050; --c2: #4fc7b6; --c3: #bb92f2; --c4: #ef82ae;
  --c5: #b9c64e; --c6: #66c5ea; --c7: #cf9d7d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 2px; letter-spacing: -.01em; }
h2 { font-size: 17px; margin: 0 0 2px; }
p.sub { color: var(--soft); margin: 0 0 20px; }
p.note { color: var(--soft); font-size: 13px; margin: 0 0 10px; }
.tiles { display: grid; gap: 12px; margin-bottom: 16px;
  grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); }
.tile, section { background: var(--panel); border: 1px solid var(--line);
  border-radius: 10px; }
.tile { padding: 12px 16px; }
.tile b { display: block; font-size: 25px; font-weight: 620; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; display: block; }
.tile.good b { color: var(--good); } .tile.bad b { color: var(--bad); }
.grid { display: grid; gap: 16px; grid-template-columns: repeat(2, minmax(0, 1fr)); }
@media (max-width: 900px) { .grid { grid-template-columns: minmax(0, 1fr); } }
section { padding: 16px 18px; overflow-x: auto; }
section.wide { grid-column: 1 / -1; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 12px system-ui, -apple-system, sans-serif; }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg .plot { fill: none; stroke-width: 2; stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px;
  margin: 2px 0 6px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px;
  margin-right: 6px; vertical-align: -1px; }
table { border-collapse: collapse; width: 100%; font-size: 14px;
  font-variant-numeric: tabular-nums; }
th { text-align: right; color: var(--soft); font-weight: 550; font-size: 13px; }
td { text-align: right; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.text, th.text { text-align: left; }
.bar { position: relative; min-width: 110px; }
.bar u { position: absolute; left: 10px; bottom: 2px; height: 3px; border-radius: 2px;
  max-width: calc(100% - 20px); }
"""


def esc(value):
    """Text for HTML, attribute values included."""
    return html.escape(str(value), quote=True)


def colour(index):
    """Colour of the index-th tier or series."""
    return f"var(--c{index % 8})"


def count(value):
    """1234567 as 1,234,567."""
    return f"{int(value):,}"


def percent(part):
    """0..1 as a percentage."""
    return f"{100 * part:.1f} %"


def size(value):
    """Bytes with a binary unit."""
    value = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    digits = 0 if unit == "B" or value >= 100 else 1
    return f"{value:.{digits}f} {unit}"


def time(ns):
    """Nanoseconds with a unit that fits."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= scale:
            value = ns / scale
            return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"
    return f"{ns:.0f} ns"


def ratio(part, whole):
    """part / whole, 0 of nothing is 0."""
    return part / whole if whole else 0.0


def nice_max(value):
    """A round number at or above value, to end an axis at."""
    if value <= 0:
        return 1.0
    scale = 10 ** math.floor(math.log10(value))
    for step in (1, 2, 4, 5, 10):
        if value <= step * scale:
            return step * scale
    return 10 * scale


class Plot:
    """An SVG drawing area with a linear time axis and a linear y axis."""

    def __init__(self, label, x_max, y_max, y_format, x_format=lambda v: f"{v:g} s"):
        self.x_max = x_max or 1.0
        self.y_max = y_max or 1.0
        self.parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
                      f'aria-label="{esc(label)}">']
        for i in range(5):
            value = self.y_max * i / 4
            y = self.y(value)
            self.parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
                              f'y1="{y:.1f}" y2="{y:.1f}"/>')
            self.parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" '
                              f'text-anchor="end">{esc(y_format(value))}</text>')
        self.x_ticks(x_format)

    def x_ticks(self, x_format):
        """Round steps of time, about six of them."""
        step = nice_max(self.x_max / 6)
        value = 0.0
        while value <= self.x_max * 1.0001:
            self.parts.append(f'<text x="{self.x(value):.1f}" y="{HEIGHT - 12}" '
                              f'text-anchor="middle">{esc(x_format(value))}</text>')
            value += step

    def x(self, value):
        """Where a time is."""
        return LEFT + (WIDTH - LEFT - RIGHT) * min(value / self.x_max, 1.0)

    def y(self, value):
        """Where a value is."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value / self.y_max, 1.0)

    def rect(self, x0, x1, y0, y1, fill, title):
        """A filled box between two times and two values."""
        left, right, top, low = self.x(x0), self.x(x1), self.y(y1), self.y(y0)
        if low - top < 0.05:
            return
        gap = 1 if right - left > 4 else 0
        self.parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" '
                          f'width="{max(right - left - gap, .5):.1f}" '
                          f'height="{low - top:.1f}" style="fill:{fill}">'
                          f'<title>{esc(title)}</title></rect>')

    def done(self):
        """The finished SVG element."""
        return "".join(self.parts) + "</svg>"


def legend(entries):
    """Names with their colours."""
    items = "".join(f'<span><i style="background:{c}"></i>{esc(name)}</span>'
                    for name, c in entries)
    return f'<div class="legend">{items}</div>'


def section(title, note, *body, wide=False):
    """A panel."""
    note = f'<p class="note">{esc(note)}</p>' if note else ""
    return (f'<section class="{"wide" if wide else ""}"><h2>{esc(title)}</h2>{note}'
            f'{"".join(body)}</section>')


class Series:
    """Counters over time, cut into intervals of equal length."""

    def __init__(self, result):
        series = result["series"]
        self.t = [t / 1e9 for t in series["t_ns"]]
        self.series = series
        self.end = max(self.t[-1], 1e-9)
        bins = max(1, min(BINS, len(self.t) - 1))
        self.edges = [self.end * i / bins for i in range(bins + 1)]

    def at(self, values, moment):
        """A counter at a moment, between samples by interpolation."""
        if moment <= self.t[0]:
            return float(values[0])
        for i in range(1, len(self.t)):
            if self.t[i] >= moment:
                span = self.t[i] - self.t[i - 1]
                share = (moment - self.t[i - 1]) / span if span else 1.0
                return values[i - 1] + share * (values[i] - values[i - 1])
        return float(values[-1])

    def steps(self, values):
        """How much a counter grew in each interval."""
        levels = [self.at(values, edge) for edge in self.edges]
        return [b - a for a, b in zip(levels, levels[1:])]


def hit_chart(series, tiers):
    """Share of blocks found in each tier, stacked, by interval."""
    asked = series.steps(series.series["blocks"])
    hits = [series.steps(values) for values in series.series["tier_hits"]]
    plot = Plot("Hit rate by tier over time", series.end, 1.0, lambda v: f"{100 * v:.0f} %")
    for i, total in enumerate(asked):
        base = 0.0
        for t, tier in enumerate(tiers):
            part = ratio(hits[t][i], total)
            plot.rect(series.edges[i], series.edges[i + 1], base, base + part, colour(t),
                      f'{tier["name"]}: {percent(part)} at {series.edges[i]:.1f} s')
            base += part
    return plot.done()


def used_chart(series, tiers):
    """What each tier holds, stacked; the axis ends at the size of all."""
    capacity = sum(tier["capacity_bytes"] for tier in tiers)
    plot = Plot("Bytes held by tier over time", series.end, capacity, size)
    for i, edge in enumerate(series.edges[1:]):
        base = 0.0
        for t, tier in enumerate(tiers):
            part = series.at(series.series["tier_used_bytes"][t], edge)
            plot.rect(series.edges[i], edge, base, base + part, colour(t),
                      f'{tier["name"]}: {size(part)} of {size(tier["capacity_bytes"])} '
                      f'at {edge:.1f} s')
            base += part
    return plot.done()


def move_chart(series, tiers, key, label):
    """Blocks moved into each tier per second, stacked, by interval."""
    moves = [series.steps(values) for values in series.series[key]]
    width = series.edges[1] - series.edges[0]
    totals = [sum(m[i] for m in moves) / width for i in range(len(series.edges) - 1)]
    plot = Plot(label, series.end, nice_max(max(totals)), lambda v: f"{v:,.6g}")
    for i in range(len(totals)):
        base = 0.0
        for t, tier in enumerate(tiers):
            part = moves[t][i] / width
            plot.rect(series.edges[i], series.edges[i + 1], base, base + part, colour(t),
                      f'into {tier["name"]}: {part:.1f} a second')
            base += part
    return plot.done()


def tick_time(ns):
    """A power of ten of nanoseconds."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= scale:
            return f"{ns / scale:g} {unit}"
    return f"{ns:g} ns"


def log_share(ns, low, high):
    """Where between two powers of ten a latency is, 0..1."""
    share = math.log10(max(ns, low) / low) / math.log10(high / low)
    return min(max(share, 0.0), 1.0)


def log_x(ns, low, high):
    """Where a latency is on the axis of the percentile chart."""
    return 210 + (WIDTH * 2 - 210 - 30) * log_share(ns, low, high)


def decades(rows, low_key):
    """Powers of ten around all latencies of the rows."""
    low = 10 ** math.floor(math.log10(max(1, min(r[low_key] for r in rows))))
    high = 10 ** math.ceil(math.log10(max(10, max(r["max_ns"] for r in rows))))
    return low, max(high, low * 10)


def curve_chart(rows, tier_names, label):
    """Share of values up to a latency, one line a tier, logarithmic."""
    low, high = decades(rows, "p50_ns")
    plot = Plot(label, 1.0, 1.0, lambda v: f"{100 * v:.0f} %", lambda v: "")
    tick = low
    while tick <= high:
        x = plot.x(log_share(tick, low, high))
        plot.parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 12}" '
                          f'text-anchor="middle">{esc(tick_time(tick))}</text>')
        tick *= 10
    for row in rows:
        path, before = [], 0.0
        for ns, share in row["curve"]:
            x = plot.x(log_share(ns, low, high))
            path += [f"{x:.1f},{plot.y(before):.1f}", f"{x:.1f},{plot.y(share):.1f}"]
            before = share
        plot.parts.append(f'<polyline class="plot" points="{" ".join(path)}" '
                          f'style="stroke:{colour(tier_names.index(row["tier"]))}">'
                          f'<title>{esc(row["tier"])}</title></polyline>')
    return plot.done()


def curves(latency, tiers):
    """Distribution of what happens block by block."""
    tier_names = [tier["name"] for tier in tiers]
    panels = []
    for operation, title, note in (
            ("get_block", "GET, distribution", "Share of blocks leased within a time, by the "
             "slowest tier of their batch."),
            ("read_block", "Reading, distribution", "Share of blocks read and compared "
             "within a time, by the tier they are mapped from.")):
        rows = [r for r in latency
                if r["operation"] == operation and r["tier"] in tier_names]
        if rows:
            names = legend([(r["tier"], colour(tier_names.index(r["tier"])))
                            for r in rows])
            panels.append(section(title, note, names, curve_chart(rows, tier_names, title)))
    return panels


def latency_label(row):
    """What a row of the latency table is about."""
    names = {"get_request": "Prefix of a request: find, lease, release",
             "put_block": "Store a block: RESERVE + COMMIT"}
    by_tier = {"get_block": "GET a block", "read_block": "Read and compare a block"}
    if row["operation"] in names:
        return names[row["operation"]]
    return f'{by_tier.get(row["operation"], row["operation"])}, {row["tier"]}'


def latency_chart(rows, tier_names):
    """Median, 90th, 99th percentile and maximum on a logarithmic axis."""
    low, high = decades(rows, "p50_ns")
    height = 30 * len(rows) + 40
    parts = [f'<svg viewBox="0 0 {WIDTH * 2} {height}" role="img" '
             f'aria-label="Latency percentiles">']
    tick = low
    while tick <= high:
        x = log_x(tick, low, high)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="6" '
                     f'y2="{height - 30}"/><text x="{x:.1f}" y="{height - 10}" '
                     f'text-anchor="middle">{esc(tick_time(tick))}</text>')
        tick *= 10
    for i, row in enumerate(rows):
        parts.append(latency_row(row, 20 + 30 * i, low, high, tier_names))
    return "".join(parts) + "</svg>"


def latency_row(row, y, low, high, tier_names):
    """One line of the latency chart: a box from p50 to p99, a whisker to max."""
    tier = row["tier"]
    fill = colour(tier_names.index(tier)) if tier in tier_names else "var(--soft)"
    p50, p90, p99, most = (log_x(row[k], low, high)
                           for k in ("p50_ns", "p90_ns", "p99_ns", "max_ns"))
    title = (f'p50 {time(row["p50_ns"])}, p90 {time(row["p90_ns"])}, '
             f'p99 {time(row["p99_ns"])}, max {time(row["max_ns"])}')
    short = {"get_request": "prefix of a request", "get_block": "get",
             "read_block": "read", "put_block": "store a block"}
    name = short.get(row["operation"], row["operation"])
    if tier != "all":
        name = f"{name}, {tier}"
    return (f'<g style="fill:{fill};stroke:{fill}"><title>{esc(title)}</title>'
            f'<line x1="{p99:.1f}" x2="{most:.1f}" y1="{y}" y2="{y}" '
            f'style="stroke-width:1.5"/>'
            f'<rect x="{p50:.1f}" y="{y - 7}" width="{max(p99 - p50, 2):.1f}" '
            f'height="14" rx="3" style="fill-opacity:.35;stroke:none"/>'
            f'<rect x="{p50:.1f}" y="{y - 7}" width="{max(p90 - p50, 2):.1f}" '
            f'height="14" rx="3" style="fill-opacity:.55;stroke:none"/>'
            f'<line x1="{p50:.1f}" x2="{p50:.1f}" y1="{y - 9}" y2="{y + 9}" '
            f'style="stroke-width:3"/>'
            f'<circle cx="{most:.1f}" cy="{y}" r="3"/></g>'
            f'<text x="200" y="{y + 4}" text-anchor="end">{esc(name)}</text>')


def table(columns, rows):
    """columns: (title, is text); rows: lists of HTML cells."""
    head = "".join(f'<th class="{"text" if text else ""}">{esc(title)}</th>'
                   for title, text in columns)
    body = "".join("<tr>" + "".join(
        cell if cell.startswith("<td") else
        f'<td class="{"text" if columns[i][1] else ""}">{cell}</td>'
        for i, cell in enumerate(row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bar(text, share, fill):
    """A table cell with a bar below its number."""
    return (f'<td class="bar">{text}<u style="width:{100 * min(share, 1):.1f}%;'
            f'background:{fill}"></u></td>')


def tier_table(tiers):
    """What each tier did."""
    columns = [("Tier", True), ("Type", True), ("Size", False), ("In use", False),
               ("Hits", False), ("Hit rate", False), ("Promoted in", False),
               ("Promoted out", False), ("Demoted in", False), ("Demoted out", False),
               ("Evicted", False), ("By DMA", False)]
    rows = []
    for t, tier in enumerate(tiers):
        name = (f'<i style="display:inline-block;width:11px;height:11px;border-radius:3px;'
                f'margin-right:8px;background:{colour(t)}"></i>{esc(tier["name"])}')
        full = ratio(tier["used_bytes"], tier["capacity_bytes"])
        rows.append([name, esc(tier["type"]), size(tier["capacity_bytes"]),
                     bar(percent(full), full, colour(t)), count(tier["hits"]),
                     bar(percent(tier["hit_rate"]), tier["hit_rate"], colour(t))] +
                    [count(tier[k]) for k in ("promotions_in", "promotions_out",
                                              "demotions_in", "demotions_out",
                                              "evictions")] +
                    [size(tier["dma_bytes"])])
    return table(columns, rows)


def latency_table(rows):
    """The percentiles in numbers."""
    columns = [("What", True), ("Count", False), ("Mean", False), ("p50", False),
               ("p90", False), ("p99", False), ("Maximum", False)]
    return table(columns, [[esc(latency_label(r)), count(r["count"])] +
                           [time(r[k]) for k in ("mean_ns", "p50_ns", "p90_ns",
                                                 "p99_ns", "max_ns")] for r in rows])


def count_table(result):
    """What the clients and the pool counted."""
    c, d, p, t = (result[k] for k in ("clients", "dedup", "pool", "trace"))
    rows = [
        ("Requests", count(c["requests"]), "served by "
         f'{result["options"]["procs"]} processes'),
        ("Blocks asked for", count(c["blocks"]),
         f'{count(t["distinct_blocks"])} distinct, '
         f'{size(result["options"]["block_bytes"])} each'),
        ("Hits", count(c["hits"]),
         f'{percent(c["hit_rate"])}; a cache that never forgets would have '
         f'{percent(t["endless_cache_hit_rate"])}'),
        ("Blocks stored", count(c["stored"]), size(c["stored_bytes"])),
        ("Stored by others meanwhile", count(c["existing"]),
         f'missed, then found when about to be stored; {count(p["dedup_waits"])} waited for '
         'while another process filled them'),
        ("Not stored", count(c["skipped"]),
         f'no space {count(c["no_space"])}, no parent {count(c["no_parent"])}, '
         f'timeouts {count(c["timeouts"])}'),
        ("Copies saved by sharing", count(d["saved_blocks"]),
         f'{size(d["saved_bytes"])}, {percent(d["saved_rate"])} of what a cache in each '
         'process would hold'),
        ("Promotions", count(p["promotions"]), ""),
        ("Demotions", count(p["demotions"]), ""),
        ("Evictions", count(p["evictions"]), ""),
        ("Moved by DMA", size(p["dma_bytes"]), ""),
        ("Memory to memory moves", count(p["moves_dmaengine"] + p["moves_cpu"]),
         f'{count(p["moves_dmaengine"])} by a DMA engine'),
        ("Bytes compared", size(c["verified_bytes"]), f'check: {result["options"]["verify"]}'),
        ("Wrong bytes", count(c["wrong_bytes"]), ""),
    ]
    return table([("Count", True), ("", False), ("", True)],
                 [[esc(a), b, f'<td class="text">{esc(note)}</td>']
                  for a, b, note in rows])


def tile(value, label, kind=""):
    """A headline number."""
    return f'<div class="tile {kind}"><b>{esc(value)}</b><span>{esc(label)}</span></div>'


def tiles(result):
    """The headline numbers."""
    c, seconds = result["clients"], result["duration_ns"] / 1e9
    wrong = c["wrong_bytes"]
    ok = result["passed"]
    return '<div class="tiles">' + "".join([
        tile(percent(c["hit_rate"]), "of blocks found, as unbroken prefixes"),
        tile(f'{ratio(c["requests"], seconds):.1f} /s', f'{count(c["requests"])} requests '
             f'in {seconds:.1f} s'),
        tile(size(result["dedup"]["saved_bytes"]), "saved by keeping one copy for all"),
        tile(size(result["pool"]["dma_bytes"]), "moved by DMA between tiers"),
        tile(count(wrong), f'wrong bytes of {size(c["verified_bytes"])} compared',
             "bad" if wrong else "good"),
        tile("passed" if ok else "FAILED", "run", "good" if ok else "bad"),
    ]) + "</div>"


def charts(result):
    """All panels with drawings."""
    tiers = result["tiers"]
    names = legend([(tier["name"], colour(t)) for t, tier in enumerate(tiers)])
    series = Series(result)
    return [
        section("Hit rate by tier", "Share of the blocks asked for, by the tier they were "
                "found in.", names, hit_chart(series, tiers)),
        section("What is held", "Bytes in use in each tier; the axis ends at the size of "
                "all.", names, used_chart(series, tiers)),
        section("Promotions", "Blocks a second moved up, by the tier they came into.", names,
                move_chart(series, tiers, "tier_promotions_in", "Promotions over time")),
        section("Demotions", "Blocks a second moved down, by the tier they came into.",
                names, move_chart(series, tiers, "tier_demotions_in",
                                  "Demotions over time")),
    ]


def page(result, title):
    """The whole document."""
    tiers, latency = result["tiers"], result["latency"]
    trace = result["trace"]
    body = charts(result)
    if latency:
        note = ("Bar: median to 90th and 99th percentile; dot: maximum. Logarithmic. A GET "
                "(with its RELEASE) is filed under the slowest tier it touched.")
        body.append(section("Latency", note,
                            latency_chart(latency, [t["name"] for t in tiers]), wide=True))
        body += curves(latency, tiers)
    body += [section("Tiers", "", tier_table(tiers), wide=True),
             section("Latency in numbers", "", latency_table(latency), wide=True),
             section("Counts", "", count_table(result), wide=True)]
    sub = (f'{trace["name"]}: {count(trace["requests"])} requests, '
           f'{count(trace["blocks"])} blocks, {result["options"]["procs"]} processes')
    return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
            f"<title>{esc(title)}</title><style>{STYLE}</style></head><body><main>"
            f"<h1>{esc(title)}</h1><p class=\"sub\">{esc(sub)}</p>{tiles(result)}"
            f"<div class=\"grid\">{''.join(body)}</div></main></body></html>\n")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Make an HTML page of a replay's result.")
    parser.add_argument("result", help="JSON written by 'kvtier replay --out'")
    parser.add_argument("-o", "--out", help="page to write (default: standard output)")
    parser.add_argument("--title", default="kvtier replay", help="heading of the page")
    args = parser.parse_args()
    try:
        with open(args.result, encoding="utf-8") as file:
            result = json.load(file)
        text = page(result, args.title)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        sys.exit(f"report.py: {args.result}: {type(error).__name__}: {error}")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
