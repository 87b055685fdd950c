#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Prints the functions of a shared object, compiled with -O2, that only return an error: they call
# nothing but the log, store nothing, and each value that they return is a constant other than 0.
# usage: error_only.py OBJECT NAMES  (NAMES: a file with a name of a function on each line)
# Exit status 1: there are such functions, or one of the names is not defined.
import re
import subprocess
import sys

LOG = re.compile(r"gdk_log|doca_log|__stack_chk_fail|__cxa_")
# A store to memory other than the stack. Results: the register rax, eax or al.
STORE = re.compile(r"(?!lea|cmp|test|nop)\w.*,(?:%\ws:)?-?\w*\((?!%[re]sp|%[re]bp)[^()]*\)$"
                   r"|lock |rep stos")
RESULT = re.compile(r"(?!cmp|test).*,%(?:[er]ax|al)$|set\w+\s+%al$|pop\s+%rax$")
CONSTANT = re.compile(r"mov\s+\$(0x[0-9a-f]+),%eax$")


def bodies(path):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    return {m[1]: m[2] for m in
            re.finditer(r"^[0-9a-f]+ <([^>]+)>:\n((?:.+\n)*)", text, flags=re.M)}


def only_error(name, body):
    result = None  # what the register contains, if no call follows: the call could use it
    for line in body.splitlines():
        code = line.split("\t", 1)[-1].split("#")[0].strip()
        target = re.match(r"(?:call|j\w+)\s+.*?<([^>+@]+)", code)
        if target and target[1] != name and not target[1].startswith(f"{name}."):
            if not LOG.match(target[1]):
                return False
        elif not target and re.match(r"(?:call|jmp)\b", code):
            return False  # through a pointer
        if re.search(r"\bnop|xchg\s+%ax,%ax", code):
            continue
        if STORE.match(code):
            return False
        if code.startswith("call"):
            result = None
        elif RESULT.match(code):
            constant = CONSTANT.match(code)
            result = int(constant[1], 16) if constant else 0
        elif re.match(r"ret|j", code) and result == 0:
            return False
    return True


with open(sys.argv[2]) as f:
    names = f.read().split()
found = bodies(sys.argv[1])
bad = [n for n in names if n not in found or only_error(n, found[n])]
for n in bad:
    print(n)
sys.exit(1 if bad else 0)
