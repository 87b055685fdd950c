#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Checks the language of comments.

usage: sample_comments.py [SEED]     prints 90 comments drawn at random, for a reader to judge
       sample_comments.py --idioms   lists idioms that are hard to understand; exits with 1
                                     if there are any

The sample has 30 comments of the device path (*_dev.h of cq, qp and doorbell), and 20 each of the
rest of the product (core, umem, uar, cq, qp, doorbell, examples), of the software NIC and of the
tests. It contains comments of at least three words in C, C++ and CUDA sources, but no licence lines
and no separators. Each is printed with its place and the code after it. The default seed is
the hash of HEAD.

The search for idioms covers comments and strings of the same sources, scripts and documents.
"""
import os
import random
import re
import subprocess
import sys

SOURCE = (".c", ".h", ".cu", ".cuh", ".cpp", ".cc")
PRODUCT = ("core", "umem", "uar", "cq", "qp", "doorbell", "examples")
DEVICE_PATH = re.compile(r"(cq|qp|doorbell)/include/device/gdk/\w+_dev\.h$")
GROUPS = {"device path": 30, "product": 20, "NIC": 20, "tests": 20}
CODE_LINES = 8

# Comments and literals, in the order in which a C compiler finds them.
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
# A space in a pattern matches any white space.
IDIOMS = [re.compile(p.replace(" ", r"\s+"), re.I | re.M) for p in (
    r"\b(nobody|somebody|anybody|everybody|whoever)\b",
    r"\bby and by\b",
    r"\bever (more|less|fewer|seldom)\b",
    r"\b(go|goes|going|went) (its|their) way\b",
    r"\bin a row\b",
    r"\bof late(?=[.,;:)]|$)",
    r"\b(is|are|was|were) (said|asked|told)\b",
    r"\b(asked|looked) (for|at)\b",
    r"\bwho (rings|posts|polls|waits|takes|holds|publishes|leaves|asks|looks)\b",
    r"\bwhat (is|was|are|were) (wanted|asked|said|there)\b",
    r"\bwhat comes\b",
    r"\bwhich is what\b",
    r"\bthe one who\b",
    r"\blooks? (whether|if)\b",
    r"\b(tells?|told) of\b",
    r"\bsaid so\b",
    r"(^|[.;]\s)\W*(here|there): ",
    r"\bnot so here\b",
    r"^\W*said (at|by|once)\b",
    r"\bas many as (there are|it|they)\b",
    r"\bso many\b",
    r"\b(is|are|was|were|be|been) given up\b",
    r"\b(is|are) of (the|a|an|its|this|that|another)\b(?! (same|type|kind|form|size|length))",
)]


def files():
    if os.path.exists(".git"):
        out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], check=True,
                             stdout=subprocess.PIPE).stdout.decode()
        names = out.split("\n")
    else:
        names = [os.path.relpath(os.path.join(top, n)) for top, folders, found in os.walk(".")
                 if not top.startswith("./build") for n in found]
    return sorted(n for n in names if n and os.path.isfile(n))


def read(name):
    with open(name, encoding="utf-8", errors="replace") as f:
        return f.read()


def group_of(name):
    """Returns one of GROUPS; None for a file that is not sampled."""
    if not name.endswith(SOURCE):
        return None
    if DEVICE_PATH.match(name):
        return "device path"
    if name.startswith("tests/softnic/"):
        return "NIC"
    top = name.split("/")[0]
    return "product" if top in PRODUCT else "tests" if top == "tests" else None


def words(comment):
    """Returns the text of a comment, without its delimiters and line starts."""
    text = re.sub(r"^//|^/\*+|\*+/$", "", comment)
    return re.sub(r"^\s*\*+ ?", "", text, flags=re.M).strip()


def is_sampled(comment):
    text = words(comment)
    if re.match(r"SPDX-License|Copyright|clang-format|softnic-run:|-{3,}|={3,}", text):
        return False
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= 3


def comments(name):
    """Yields (line, comment, code) of a source."""
    source = read(name)
    for m in TOKEN.finditer(source):
        if m.group()[0] != "/" or not is_sampled(m.group()):
            continue
        start = source.rfind("\n", 0, m.start()) + 1
        # Of a comment at the end of a line, the code is that line and those after it.
        before = source[start:m.start()].strip()
        code = source[start if before else m.end():].strip("\n").split("\n")[:CODE_LINES]
        yield source.count("\n", 0, m.start()) + 1, m.group(), "\n".join(code)


def print_sample(seed):
    found = {group: [] for group in GROUPS}
    for name in files():
        group = group_of(name)
        if group:
            found[group] += [(name, *c) for c in comments(name)]
    chance = random.Random(seed)
    print(f"seed {seed}; " + ", ".join(f"{n} of {len(found[g])} in {g}" for g, n in GROUPS.items()))
    number = 0
    for group, all_comments in found.items():
        for name, line, comment, code in chance.sample(all_comments, GROUPS[group]):
            number += 1
            print(f"\n==== {number} ({group}) {name}:{line}\n{comment}\n---- code\n{code}")


def searched(name):
    """Yields (offset, text) of the parts of a file in which idioms are searched."""
    text = read(name)
    if name.endswith(SOURCE + (".def",)):
        for m in TOKEN.finditer(text):
            yield m.start(), m.group()
    else:
        yield 0, text


def is_searched(name):
    if name == "tests/sample_comments.py":
        return False
    return name.endswith(SOURCE + (".def", ".sh", ".py", ".md", ".mk", ".pml", ".txt", ".in")) or \
        os.path.basename(name) == "Makefile" or read(name)[:2] == "#!"


def print_idioms():
    hits = 0
    for name in files():
        if not is_searched(name):
            continue
        source = read(name)
        for offset, text in searched(name):
            # A line break and the start of the next comment line become spaces.
            text = re.sub(r"(?<=\w)\n[\s*#/]*(?=\w)", lambda b: " " * len(b.group()), text)
            for pattern in IDIOMS:
                for m in pattern.finditer(text):
                    line = source.count("\n", 0, offset + m.start()) + 1
                    print(f"{name}:{line}: {' '.join(m.group().split())}: "
                          f"{source.splitlines()[line - 1].strip()[:100]}")
                    hits += 1
    print(f"sample_comments.py: {hits} idioms")
    return 1 if hits else 0


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if sys.argv[1:] == ["--idioms"]:
        return print_idioms()
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return 2
    seed = sys.argv[1] if len(sys.argv) > 1 else subprocess.run(
        ["git", "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    print_sample(seed)
    return 0


sys.exit(main())
