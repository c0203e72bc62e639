# SPDX-License-Identifier: GPL-2.0
"""The bench's figures as one HTML page that needs nothing else.

Bars on a logarithmic axis: the costs compared lie three orders of magnitude
apart, and a factor is the same length everywhere.
"""
import html
import math

import log_tables
import tables

WIDTH, LABEL, ROW, PAD = 900, 210, 22, 28

STYLE = """
body { font: 15px system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: #333; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
td, th { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #ddd; }
.grid { stroke: #ddd; } .kvtier { fill: #1b6ca8; } .peer { fill: #c9a227; }
.note { color: #555; }
@media (prefers-color-scheme: dark) {
 body { color: #ddd; background: #181818; } svg text { fill: #ccc; } .note { color: #aaa; }
 .grid { stroke: #444; } td, th { border-color: #444; }
}
"""

GROUPS = (
    ("Reading", (("kvtier", "get", "kvtier, in place"), ("kvtier", "get_copy", "kvtier, copied"),
                 ("tmpfs", "get_copy", "tmpfs file"), ("redis", "get_copy", "Redis GET"))),
    ("Writing", (("kvtier", "put_copy", "kvtier"), ("tmpfs", "put_copy", "tmpfs file"),
                 ("redis", "put_copy", "Redis SET"))),
    ("Reading from NVMe", (("kvtier", "get_nvme", "kvtier, verified"),
                           ("direct", "get_nvme", "O_DIRECT"))),
)


def bars(rows, block, batch):
    """[(group, label, class, value)] of one size."""
    return [(group, label, "kvtier" if who == "kvtier" else "peer",
             tables.find(rows, who, op, block, batch)["median"])
            for group, works in GROUPS for who, op, label in works]


def svg(rows, block, batch):
    data = bars(rows, block, batch)
    low = math.floor(math.log10(min(v for *_, v in data)))
    high = math.ceil(math.log10(max(v for *_, v in data)))
    scale = (WIDTH - LABEL - 90) / (high - low)
    height = PAD + ROW * (len(data) + len(GROUPS)) + 8
    out = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="'
           f'{tables.size(block)}, batch {batch}">']
    for p in range(low, high + 1):
        x = LABEL + (p - low) * scale
        out.append(f'<line class="grid" x1="{x:.0f}" x2="{x:.0f}" y1="{PAD - 8}" y2="{height}"/>'
                   f'<text x="{x:.0f}" y="{PAD - 12}" text-anchor="middle">{10 ** p:,}</text>')
    y, last = PAD, None
    for group, label, css, value in data:
        if group != last:
            out.append(f'<text x="0" y="{y + 15}" font-weight="600">{group}</text>')
            y, last = y + ROW, group
        w = (math.log10(value) - low) * scale
        out.append(f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end">{label}</text>'
                   f'<rect class="{css}" x="{LABEL}" y="{y + 2}" width="{w:.1f}" height="{ROW - 6}"/>'
                   f'<text x="{LABEL + w + 6:.1f}" y="{y + 14}">{value:,.0f}</text>')
        y += ROW
    return "".join(out) + "</svg>"


def linear(data):
    """Bars from zero, with a line at one."""
    top = max(1.0, *(v for *_, v in data))
    scale = (WIDTH - LABEL - 90) / top
    groups = len({g for g, *_ in data})
    height = ROW * (len(data) + groups) + 8
    x = LABEL + scale
    out = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="the log">'
           f'<line class="grid" x1="{x:.0f}" x2="{x:.0f}" y1="0" y2="{height}"/>']
    y, last = 0, None
    for group, label, css, value in data:
        if group != last:
            out.append(f'<text x="0" y="{y + 15}" font-weight="600">{group}</text>')
            y, last = y + ROW, group
        out.append(f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end">{label}</text>'
                   f'<rect class="{css}" x="{LABEL}" y="{y + 2}" width="{value * scale:.1f}" '
                   f'height="{ROW - 6}"/><text x="{LABEL + value * scale + 6:.1f}" y="{y + 14}">'
                   f'{value:.3f}</text>')
        y += ROW
    return "".join(out) + "</svg>"


def html_table(table):
    title, note, header, rows = table
    cells = "".join(f"<th>{html.escape(h)}</th>" for h in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in r) + "</tr>"
                   for r in rows)
    return (f"<h3>{html.escape(title)}</h3><p class=note>{html.escape(note.replace('*', ''))}</p>"
            f"<table><tr>{cells}</tr>{body}</table>")


def page(data):
    counted, timed = tables.all_tables(data)
    charts = "".join(f"<h3>{tables.size(b)}, batch {n}</h3>{svg(data['icount'], b, n)}"
                     for b in tables.BLOCKS for n in (1, 256))
    log = log_tables.bars(data)
    text = html.escape(tables.HOW.replace("`", "").replace("*", ""))
    return (f"<!doctype html><html lang=en><meta charset=utf-8><title>kvtier bench</title>"
            f"<style>{STYLE}</style><h1>kvtier bench</h1><p>{text}</p>"
            f"<h2>Instructions a block (logarithmic)</h2>{charts}"
            + (f"<h2>The log (the line is one)</h2>{linear(log)}" if log else "")
            + "".join(html_table(t) for t in counted + [tables.scale_table(data)]
                      + log_tables.log_tables(data) + timed)
            + f"<p class=note>{html.escape(tables.clock_note(data))}</p>"
            f"<p class=note>{html.escape(tables.TIME)}</p></html>\n")
