#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Numbers each fence and each access with a scope wider than the thread's in the device headers, and
# has the headers report the number before the access: (weak_at(N), gdk_fence_sc(scope)). Prints a
# line for each: number, file, line, function, the call, and what it has: "order" for fences and
# ordered accesses, "scope" for the others.
# usage: sites.py FOLDER  (a copy of the staged headers, which is changed)
import re
import sys

FILES = ("ring", "bf", "status", "slots", "token", "own", "wait_time", "wait", "post", "by_hand",
         "op", "onesided", "recv", "srq")
RDMA = ("gdk_rdma_send_dev.h", "gdk_rdma_recv_dev.h")
ORDERED = (r"gdk_fence_(?:acq|rel|sc|load_store)|gdk_nic_fence|gdk_bf_settle"
           r"|gdk_(?:ld|st)(?:32|64)_(?:acq|rel)|gdk_(?:rmw|red)_max64_rel|gdk_rmw_(?:xchg|cas)32")
SCOPED = (r"gdk_(?:any_)?(?:ld|st)(?:32|64)(?:x2)?|gdk_(?:rmw|red)_\w+|gdk_(?:add|max)64"
          r"|gdk_any_cas64")
CALLS = re.compile(rf"\b(?:({ORDERED})|{SCOPED})\(")
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
for path in [f"device/gdk/{name}_dev.h" for name in FILES] + list(RDMA):
    name = path.split("/")[-1]
    path = f"{sys.argv[1]}/{path}"
    with open(path) as f:
        text = f.read()
    for old, new in POLLS:
        text = re.sub(old, new, text)
    plain, out, done = without_comments(text), "", 0
    for m in CALLS.finditer(plain):
        line_start = plain.rfind("\n", 0, m.start()) + 1
        if plain[line_start:m.start()].startswith("GDK_FN"):
            continue
        end = end_of_call(plain, m.end() - 1)
        call = " ".join(plain[m.start():end].split())
        if not m[1] and re.search(r", (GDK_SCOPE_THREAD|own)\)$", call):
            continue
        number += 1
        print(f"{number}\t{name}\t{plain.count(chr(10), 0, m.start()) + 1}\t"
              f"{FUNCTION.findall(plain, 0, m.start())[-1]}\t{call}\t"
              f"{'order' if m[1] else 'scope'}")
        out += f"{text[done:m.start()]}(weak_at({number}), {text[m.start():end]})"
        done = end
    with open(path, "w") as f:
        f.write(out + text[done:])
