#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Compare core/errors.md with the sources.

The page must have a row for each doca_error_t value that the library returns, each errno of the
device functions, each CQE syndrome, each status of a firmware command, each error and warning in
the log, each error that the example programs share, and each reason that a message quotes. It must
have no row for anything else. The names and causes of syndromes and the names of statuses must be
those of the code.

In a message of the page, * stands for a conversion or macro of the message in the code, and "..."
for any text. A row may have several messages, each in backquotes. "(warning)" behind a message must
agree with its level.

usage: error_docs.py [PAGE]
"""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "core/errors.md"
FOLDERS = ("core", "umem", "uar", "cq", "qp", "doorbell")
STRING = r'"(?:[^"\\]|\\.)*"'
CONVERSION = r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]"
CALLS = {"gdk_err": "error", "gdk_warn": "warning", "GDK_CHECK_ARG": "error",
         "GDK_CHECK_ARG_OR": "error", "GDK_LOG": None, "gdk_log": None}
LITERAL_MIN = 8  # characters besides * and blanks that a message of the page must have
errors = 0


def error(where, text):
    global errors
    errors += 1
    print(f"error_docs.py: {where}: {text}")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read().replace("\\\n", " \n")  # macros of several lines


def sources(suffixes, folders=FOLDERS):
    found = []
    for folder in folders:
        for at, _, files in os.walk(os.path.join(TOP, folder)):
            found += [os.path.relpath(os.path.join(at, f), TOP) for f in files
                      if f.endswith(suffixes)]
    return sorted(found)


def literals(text):
    return len(re.sub(r"[*\s]", "", text))


def arguments(text, start):
    """Return the text from start to the parenthesis that closes the one before start."""
    depth, at = 1, start
    for token in re.finditer(STRING + r"|[()]", text[start:]):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        at = start + token.start()
        if depth == 0:
            break
    return text[start:at]


def message(tokens):
    """Return the message of literals and macros in the place of a format."""
    parts = [re.sub(CONVERSION, "*", re.sub(r"\\(.)", r"\1", t[1:-1].replace("%%", "\0")))
             if t[0] == '"' else "*" for t in tokens]
    text = "".join(parts).replace("\0", "%")
    return " ".join(re.sub(r"%?\*(?:\s*%?\*)*", "*", text).split())  # %*: "%" PRIu64


def formats(args):
    """Return the formats in the arguments of a call: adjacent literals and macros."""
    found = []
    for m in re.finditer(rf"(?:#?\w+\s+)?{STRING}(?:\s*(?:{STRING}|#?\b[A-Za-z_]\w*))*", args):
        found.append(message(re.findall(rf"{STRING}|#?\w+", m.group())))
    return found


def log_messages():
    """Return {message: (level, place)} of the messages of level error and warning."""
    found = {}
    for path in sources((".c", ".h")):
        if path in ("core/log/log.h", "core/log/log.c"):
            continue
        text = read(path)
        for m in re.finditer(rf"\b({'|'.join(CALLS)}|snprintf)\s*\(", text):
            name, args = m.group(1), arguments(text, m.end())
            level = CALLS.get(name)
            if name in ("GDK_LOG", "gdk_log"):
                if not re.search("GDK_LOG_(ERR|WARNING)", args):
                    continue
                level = "warning" if "GDK_LOG_WARNING" in args else "error"
            if name == "snprintf" and not args.startswith("r->text"):
                continue
            texts = formats(args)
            if texts and texts[0] == "*":
                texts = texts[1:] or [None]  # "%s" with literals as arguments
            else:
                texts = texts[:1]
            for t in texts:
                prefix = "invalid " if name.startswith("GDK_CHECK") else ""
                if t:
                    found[prefix + t] = (level, f"{path}:{text.count(chr(10), 0, m.start()) + 1}")
    return found


def example_messages():
    """Return {message: (None, place)} of the errors that the example programs share."""
    found = {}
    for path in sources((".c",), ("examples/common",)):
        text = read(path)
        for m in re.finditer(r"\bex_error\s*\(", text):
            for t in formats(arguments(text, m.end()))[:1]:
                if literals(t) >= LITERAL_MIN:
                    found[t] = (None, f"{path}:{text.count(chr(10), 0, m.start()) + 1}")
    return found


def reasons():
    """Return {reason: place} of the texts that are quoted in messages."""
    found = {}
    assigned = rf"(?:\*?\b(?:reason|how|why|cure)|\.missing) = ((?:{STRING}|[#\w\s\\])+?)[;,]"
    listed = rf"\{{ \w+, ({STRING}) \}},"  # the ways to register a page
    printed = r"\bsnprintf\((?:tried->\w+|reason),"
    for path in sources((".c",)):
        text = read(path)
        ways = re.finditer(listed, text) if path == "core/gpu/reg_page.c" else ()
        for m in (*re.finditer(assigned, text), *ways):
            for t in formats(m.group(1)):
                found[t] = path
        for m in re.finditer(printed, text):
            for t in formats(arguments(text, m.end()))[:1]:
                found[t] = path
    return {t: p for t, p in found.items() if t != "*"}


def tables(page):
    """Return {heading: [cells]} of the rows of tables."""
    found, heading, fence = {}, "", False
    for line in page.split("\n"):
        fence ^= line.startswith("```")
        if fence:
            continue
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("|") and not re.match(r"\|[-| ]+$", line):
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.setdefault(heading, []).append(cells)
    return found


def plain(cell):
    return " ".join(cell.replace("`", "").split())


def check_names(kind, rows, expected):
    """Compare the first cells of rows, in backquotes, with expected, a dict or a set."""
    named = {}
    for row in rows:
        for name in re.findall(r"`([^`]+)`", row[0]):
            named[name] = row
    for name in sorted(set(expected) - set(named)):
        error(PAGE, f"no row for {kind} {name}")
    for name in sorted(set(named) - set(expected)):
        error(PAGE, f"{kind} {name} is not in the code")
    return named


def check_values(rows):
    returned = set()
    for path in sources((".c",)):
        if path != "core/log/error.c":
            returned |= set(re.findall(r"\bDOCA_ERROR_\w+", read(path)))
    check_names("doca_error_t value", rows, returned)


def check_errnos(rows):
    found = set()
    for path in sources(("_dev.h", ".cuh")):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", read(path), flags=re.S)
        found |= set(re.findall(r"[(\s]-(E[A-Z]{2,})\b", code))
    check_names("device errno", rows, {"-" + e for e in found})


def check_syndromes(rows):
    names = dict(re.findall(rf"case (0x[0-9a-f]+):\s*return ({STRING});",
                            read("cq/include/device/gdk/cqe_text_dev.h")))
    causes = {n: message(re.findall(STRING, t)) for n, t in
              re.findall(rf"\{{ (0x[0-9a-f]+),\s*((?:{STRING}\s*)+)\}}", read("qp/export/error.c"))}
    if set(names) != set(causes):
        error("qp/export/error.c", "does not have the syndromes of cqe_text_dev.h")
    for name, row in check_names("syndrome", rows, names).items():
        if name in names and plain(row[1]) != names[name].strip('"'):
            error(PAGE, f"syndrome {name}: the code has {names[name]}")
        if name in causes and plain(row[2]) != causes[name]:
            error(PAGE, f"cause of syndrome {name}: the code has \"{causes[name]}\"")


def check_statuses(rows):
    table = re.search(r"statuses\[\] = \{(.*?)\n\};", read("core/nic/devx.c"), re.S).group(1)
    names = {n: message(re.findall(STRING, t)) for n, t in
             re.findall(rf"\{{ (0x[0-9a-f]+), ((?:{STRING}\s*)+)\}}", table)}
    names.pop("0x00")
    for name, row in check_names("status", rows, names).items():
        if name in names and plain(row[1]) != names[name]:
            error(PAGE, f"status {name}: the code has \"{names[name]}\"")


def check_texts(kind, rows, found):
    """Compare the rows' messages with found: {message: (level, place)}."""
    seen = set()
    for row in rows:
        for text, warning in re.findall(r"`([^`]+)`( \(warning\))?", row[0]):
            if literals(text) < LITERAL_MIN:
                error(PAGE, f"{kind} \"{text}\" has too few words")
            match = re.compile(".*".join(map(re.escape, text.split("..."))))
            hits = [t for t in found if match.fullmatch(t)]
            seen.update(hits)
            if not hits:
                error(PAGE, f"{kind} \"{text}\" is not in the code")
            for t in hits:
                level, place = found[t]
                if level and (level == "warning") != bool(warning):
                    error(PAGE, f"{kind} \"{text}\": {level} in {place}")
        if len(row) < 3 or not all(row):
            error(PAGE, f"{kind} {row[0]}: a cell is empty")
    for t in sorted(set(found) - seen):
        error(found[t][1], f"no row in {PAGE} for {kind} \"{t}\"")


def main(args):
    page = read(args[0] if args else PAGE)
    rows = {h: r[1:] for h, r in tables(page).items()}  # without the table's heading

    def section(start):
        found = [r for h, r in rows.items() if h.startswith(start)]
        if not found:
            error(PAGE, f"no table below a heading \"{start}...\"")
        # Further tables in a section begin with the same heading.
        return [r for r in found[0] if "`" in r[0]] if found else []

    check_values(section("Values"))
    check_errnos(section("Status of device functions"))
    check_syndromes(section("Syndromes"))
    check_statuses(section("Status of firmware commands"))
    messages = log_messages()
    check_texts("message", section("Messages of the library"), messages)
    check_texts("message", section("Messages of the examples"), example_messages())
    found = {t: (None, p) for t, p in reasons().items()}
    check_texts("reason", section("Reasons"), found)
    print(f"error_docs.py: {len(messages)} messages, {len(found)} reasons, {errors} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
