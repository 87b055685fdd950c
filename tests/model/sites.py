#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Numbers each fence and each ordered access of the device headers, and has the headers report the
# number before the access: (weak_at(N), gdk_fence_sc(scope)). Prints a line for each: number,
# file, line, function, the call.
# usage: sites.py FOLDER  (a copy of the staged headers, which is changed)
import re
import sys

FILES = ("ring", "bf", "slots", "token", "own", "wait", "post", "by_hand", "op", "recv", "srq")
CALLS = re.compile(r"\b(gdk_fence_(acq|rel|sc|load_store)|gdk_nic_fence|gdk_bf_settle"
                   r"|gdk_(ld|st)(32|64)_(acq|rel)|gdk_(rmw|red)_max64_rel"
                   r"|gdk_rmw_(xchg|cas)32)\(")
FUNCTION = re.compile(r"^GDK_(?:SLOW_)?FN [^(]*?(\w+)\(", re.M)
# Fewer polls: the results of the polls that remain are random.
POLLS = ((r"(GDK_OFFER_POLLS )\d+u", r"\g<1>2u"), (r"(GDK_QUICK_POLLS )\d+", r"\g<1>2"))


def end_of_call(text, at):
    depth = 0
    while True:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda c: re.sub(r"[^\n]", " ", c[0]), text, flags=re.S)


number = 0
for name in FILES:
    path = f"{sys.argv[1]}/device/gdk/{name}_dev.h"
    with open(path) as f:
        text = f.read()
    for old, new in POLLS:
        text = re.sub(old, new, text)
    plain, out, done = without_comments(text), "", 0
    for m in CALLS.finditer(plain):
        line_start = plain.rfind("\n", 0, m.start()) + 1
        if plain[line_start:m.start()].startswith("GDK_FN"):
            continue
        number += 1
        end = end_of_call(plain, m.end() - 1)
        call = " ".join(plain[m.start():end].split())
        print(f"{number}\t{name}_dev.h\t{plain.count(chr(10), 0, m.start()) + 1}\t"
              f"{FUNCTION.findall(plain, 0, m.start())[-1]}\t{call}")
        out += f"{text[done:m.start()]}(weak_at({number}), {text[m.start():end]})"
        done = end
    with open(path, "w") as f:
        f.write(out + text[done:])
