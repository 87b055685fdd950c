#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Prints the functions with more than MOST parameters in C sources and headers: declarations and
definitions at the start of a line. Functions of DOCA's interfaces, doca_* and gdk_doca_*, have the
parameters that DOCA gave them. usage: params.py FILE..."""
import re
import sys

MOST = 7
# Passes the names and values of a check on.
EXCEPT = {"gdk_log_range"}

HEAD = re.compile(r"^(?!typedef\b|return\b|else\b)[A-Za-z_][\w \t\n*]*?[ \n\t*](\w+)\(", re.M)


def parameters(text, at):
    """Text between the parenthesis before `at` and the one that closes it."""
    depth, end = 1, at
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    end -= 1
    return text[at:end]


def count(params):
    """Number of parameters; a comma inside parentheses separates none."""
    depth, n = 0, 1
    for c in params:
        depth += {"(": 1, ")": -1}.get(c, 0)
        n += c == "," and depth == 0
    return n


def newlines(match):
    """As many newlines as the match has, so that line numbers stay."""
    return "\n" * match.group().count("\n")


for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as f:
        text = f.read()
    # Comments, then directives
    text = re.sub(r"/\*.*?\*/|//[^\n]*", newlines, text, flags=re.S)
    text = re.sub(r"^[ \t]*#(\\\n|[^\n])*", newlines, text, flags=re.M)
    for m in HEAD.finditer(text):
        n = count(parameters(text, m.end()))
        if n > MOST and not re.match(r"(gdk_)?doca_", m.group(1)) and m.group(1) not in EXCEPT:
            line = text.count("\n", 0, m.start(1)) + 1
            print(f"{name}:{line}: {m.group(1)} has {n} parameters")
