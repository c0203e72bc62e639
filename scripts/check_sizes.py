#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Limits on the size of functions and files: check_sizes.py FILE...

A function of C or shell is what stands between "{" and "}" in column 0; one of
Python is what the parser says.  Fails when a function or file is too long, or
when more than a tenth of all functions reach P90_LINES.
"""
import ast
import sys

MAX_LINES = 100
P90_LINES = 45
MAX_FILE_LINES = 900


def brace_functions(lines):
    """Yields (first line number, length) by the braces in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        text = line.rstrip()
        if start is None and (text == "{" or (text.endswith("() {") and not text[0].isspace())):
            start = number
        elif start is not None and text == "}":
            yield start, number - start + 1
            start = None


def python_functions(lines):
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def main(paths):
    sizes = []
    bad = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        if len(lines) >= MAX_FILE_LINES:
            bad.append(f"{path}: {len(lines)} lines (limit {MAX_FILE_LINES - 1})")
        functions = python_functions if path.endswith(".py") else brace_functions
        for start, length in functions(lines):
            sizes.append((length, path, start))
            if length > MAX_LINES:
                bad.append(f"{path}:{start}: function of {length} lines (limit {MAX_LINES})")
    sizes.sort()
    if sizes:
        p90 = sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)][0]
        median = sizes[len(sizes) // 2][0]
        print(f"# {len(sizes)} functions: median {median}, p90 {p90}, longest {sizes[-1][0]}")
        if p90 >= P90_LINES:
            bad.append(f"p90 of all functions is {p90} lines (must be below {P90_LINES}):")
            bad += [f"  {path}:{start}: {length}" for length, path, start in sizes[-20:]]
    for line in bad:
        print(line)
    return 1 if bad or not sizes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
