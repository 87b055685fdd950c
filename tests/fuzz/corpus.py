#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Stores the inputs of a fuzzer in one text file: one input per line, in hexadecimal digits.
A line that begins with # describes the inputs after it.

usage: corpus.py unpack FILE.hex FOLDER    write each input of FILE.hex to a file in FOLDER
       corpus.py add FILE.hex INPUT...     append the files INPUT that FILE.hex does not contain
"""
import hashlib
import pathlib
import sys


def lines(path):
    if not path.exists():
        return []
    return [line.strip() for line in path.read_text().splitlines()
            if line.strip() and line[0] != "#"]


def main():
    what, path, rest = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    known = lines(path)
    if what == "unpack":
        folder = pathlib.Path(rest[0])
        folder.mkdir(parents=True, exist_ok=True)
        for line in known:
            data = bytes.fromhex(line)
            (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)
        return
    with path.open("a") as f:
        for name in sorted(rest, key=lambda n: (pathlib.Path(n).stat().st_size, n)):
            line = pathlib.Path(name).read_bytes().hex()
            if line and line not in known:
                f.write(line + "\n")


main()
