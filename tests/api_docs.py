#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Check the documentation of the public headers in $B/include and $B/include-doca.

Each function prototype has a comment of its own directly above it: no blank line and no other
declaration in between, and not the text of another prototype. Each header except those in
device/gdk has a @file comment, without which doxygen ignores its functions. doxygen then
generates the pages in $B/doc/html without a warning; core/Doxyfile makes it warn about each
entity without a comment.
"""
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("B", "build")
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*|\"(?:\\.|[^\"\\])*\"|\w+|\S",
                   re.S | re.M)
PROTOTYPE = re.compile(r"(\w+) \( .*\) (?:__attribute__ .*)?;$", re.S)
WORDS_MIN = 3
errors = 0


def error(where, text):
    global errors
    errors += 1
    print(f"api_docs.py: {where}: {text}")


def headers():
    for top in "include", "include-doca":
        for at, dirs, files in os.walk(os.path.join(TOP, BUILD, top)):
            dirs[:] = [d for d in dirs if d != "gdk"]
            for f in sorted(files):
                if f.endswith((".h", ".cuh")):
                    yield os.path.join(at, f)


def statements(text):
    """Yield (start, tokens, comment before it, end of the comment) at file scope."""
    tokens, comment, end, start, depth = [], None, 0, 0, 0
    for m in TOKEN.finditer(text):
        t = m.group(0)
        if t.startswith(("/*", "//")):
            if not tokens:
                comment, end = t, m.end()
            continue
        if t.lstrip().startswith("#"):
            if not tokens:
                comment = None
            continue
        if not tokens:
            start = m.start()
        tokens.append(t)
        if t == "{" and not depth and tokens[:2] == ["extern", '"C"']:
            tokens, comment = [], None
            continue
        depth += (t in "{(") - (t in "})")
        if depth < 0:  # the end of extern "C"
            depth, tokens, comment = 0, [], None
        elif not depth and t in (";", "}"):
            if t == ";":
                yield start, tokens, comment, end
            if t == ";" or "(" in tokens:  # not the } of a type
                tokens, comment = [], None


def check_prototypes(path, seen):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    where = os.path.relpath(path, os.path.join(TOP, BUILD, "include"))
    if not re.search(r"/\*\*\s*\n?\s*\*?\s*@file\b", text):
        error(where, "no @file comment")
    if path.endswith(".cuh"):
        return 0
    found = 0
    for start, tokens, comment, end in statements(text):
        m = PROTOTYPE.search(" ".join(tokens))
        if not m or tokens[0] in ("typedef", "struct") and "{" in tokens:
            continue
        if tokens[0] == "typedef" or not m.group(1).startswith(("doca_", "gdk_")):
            continue
        found += 1
        line = f"{where}:{text.count(chr(10), 0, start) + 1}"
        name = m.group(1)
        if comment is None or text[end:start] != "\n":
            error(line, f"no comment directly above {name}")
        elif not comment.startswith("/**") or comment.startswith("/**<"):
            error(line, f"the comment of {name} does not begin with /** and a blank")
        elif len(re.findall(r"[A-Za-z]+", comment)) < WORDS_MIN:
            error(line, f"the comment of {name} has less than {WORDS_MIN} words")
        elif seen.setdefault(comment, name) != name:
            error(line, f"the comment of {name} is that of {seen[comment]}")
    return found


def run_doxygen():
    if not shutil.which("doxygen"):
        print("api_docs.py: doxygen not found; install the Debian package doxygen")
        return False
    os.makedirs(os.path.join(TOP, BUILD, "doc"), exist_ok=True)
    done = subprocess.run(["doxygen", "core/Doxyfile"], cwd=TOP, env={**os.environ, "B": BUILD},
                          capture_output=True, text=True)
    if done.returncode:
        error("doxygen", f"exit {done.returncode}")
        print("\n".join(done.stderr.split("\n")[:20]))
    return True


def main():
    seen, count, files = {}, 0, 0
    for path in headers():
        count += check_prototypes(path, seen)
        files += 1
    if not count:
        error(BUILD + "/include", "no prototypes; run `make stage`")
    ran = run_doxygen()
    print(f"api_docs.py: {count} prototypes in {files} headers, {errors} errors")
    return 1 if errors else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
