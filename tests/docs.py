#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Run the commands of the documents and check what they refer to.

A fenced block of language "sh" is run as one script by bash -e, from the top of the repository
with HOME set to an empty folder. A block of language "console" holds lines "$ COMMAND", each
followed by its expected output; a number matches any number, the blank between two numbers and two
or more blanks match any number of blanks, and a line "[...]" matches any lines. A block whose info
string has needs=WHAT (gpu, nic, root, reboot, checkout, sdk), skip=test (make demo, make test) or
skip=long is not run; --long runs the last kind. The last lines of the output list these blocks,
and the errors again. A block "c file=PATH" must be the text of PATH from its first #include on. A
block of another language with file=PATH must consist of consecutive lines of PATH.
A block of language "yaml" has the steps for CI, which programs.sh runs.
Paths and make targets in backquotes must exist, and README.md may have at most 8192 bytes.

usage: docs.py [--long] [DOCUMENT...]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("core", "umem", "uar", "cq", "qp", "doorbell", "tests", "examples")
README_MAX = 8192
LIMIT_S = 120
LONG_S = 1800
ELSEWHERE = ("mlx5_ifc.h",)  # files of other projects that documents name
NEEDS = ("gpu", "nic", "root", "reboot", "checkout", "sdk")
WHY = {"test": "done by the first commands of the README", "long": "takes long"}
NUMBER = r"\d+(?:\.\d+)?(?:e[-+]\d+)?"
errors = []  # printed again at the end, below the list of what did not run
not_run = []  # a line of text for each command that did not run


def error(where, text):
    errors.append(f"docs.py: {where}: {text}")
    print(errors[-1])


def documents():
    if os.path.exists(os.path.join(TOP, ".git")):
        out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=TOP,
                             capture_output=True, text=True, check=True)
        return [f for f in out.stdout.split() if os.path.exists(os.path.join(TOP, f))]
    found = []
    for at, dirs, files in os.walk(TOP):
        dirs[:] = [d for d in dirs if d != "build" and not d.startswith(".")]
        found += [os.path.relpath(os.path.join(at, f), TOP) for f in files if f.endswith(".md")]
    return sorted(found)


def parse(path):
    """Return the blocks (line, info, text) and the text outside them."""
    blocks, prose, block = [], [], None
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        for number, line in enumerate(f.read().split("\n"), 1):
            if re.match(r"\s+```|~~~", line):
                error(f"{path}:{number}", "fence is indented or made of ~~~, and is not checked")
            if line.startswith("```"):
                if block is None:
                    block = (number, line[3:].split(), [])
                else:
                    blocks.append(block)
                    block = None
            elif block is not None:
                block[2].append(line)
            else:
                prose.append((number, line))
    if block is not None:
        error(f"{path}:{block[0]}", "block without end")
    return blocks, prose


def run(script, home, limit=LIMIT_S):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env.update(HOME=home, B="build")
    try:
        out = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=TOP, env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return 124, f"no end within {limit} s"
    return out.returncode, out.stdout


def pattern(expected):
    """Return a regular expression for lines of expected output."""
    parts = []
    for line in expected:
        if line.strip() == "[...]":
            parts.append(r"(?:.*\n)*?")
        else:
            for token in re.split(rf"({NUMBER}|  +)", line.rstrip()):
                if re.fullmatch(NUMBER, token):
                    parts.append(NUMBER)
                else:
                    parts.append(" +" if re.fullmatch(" +", token) else re.escape(token))
            parts.append(r" *\n")
    return "".join(parts)


def run_script(where, lines, home, limit):
    code, out = run("\n".join(lines), home, limit)
    if code:
        error(where, f"exit status {code}:\n    " + "\n    ".join(out.split("\n")[-15:]))


# A warning that is true on a busy machine.
BUSY = re.compile(r"(?m)^.* gdaki WARNING .* a thread that rings may have got no processor .*\n")


def run_console(where, lines, home):
    commands = []
    for line in lines:
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
        else:
            error(where, "a console block begins with a line '$ COMMAND'")
            return
    for command, expected in commands:
        code, out = run(command, home)
        out = BUSY.sub("", out)
        if code:
            error(where, f"{command}: exit status {code}: {out.strip()[-500:]}")
        elif not re.fullmatch(pattern(expected), out if out.endswith("\n") else out + "\n"):
            error(where, f"{command} printed:\n    " + "\n    ".join(out.split("\n")))


def check_program(where, path, lines):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        text = f.read()
    if text[text.index("#include"):].rstrip() != "\n".join(lines).rstrip():
        error(where, f"differs from {path}")


def check_excerpt(where, path, lines):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        text = f.read()
    if "\n" + "\n".join(lines).rstrip() + "\n" not in "\n" + text:
        error(where, f"is not in {path}")


def check_block(path, block, home, run_long):
    """Check one block. Return "ran", "listed" or None."""
    number, info, lines = block
    where = f"{path}:{number}"
    language = info[0] if info else ""
    options = dict(i.split("=", 1) for i in info[1:] if "=" in i)
    if language == "c" and "file" in options:
        check_program(where, options["file"], lines)
        return None
    if "file" in options:
        check_excerpt(where, options["file"], lines)
        return None
    if language not in ("sh", "console"):
        known = language in ("", "c", "cuda", "text", "yaml")
        if not known or any(x.startswith("$ ") for x in lines):
            error(where, f"block of language '{language}' is not checked; use sh or console")
        return None
    skip, needs = options.get("skip"), options.get("needs")
    if needs not in (None,) + NEEDS or skip not in (None,) + tuple(WHY):
        error(where, f"unknown option: {' '.join(info[1:])}")
        return None
    if needs or (skip and not (run_long and skip == "long")):
        why = f"needs={needs}" if needs else WHY[skip]
        commands = [line.split("  #")[0] for line in lines if line.strip()]
        not_run.extend(f"  {where}: {why}: {command.strip()}" for command in commands)
        return "listed"
    if language == "sh":
        run_script(where, lines, home, LONG_S if skip else LIMIT_S)
    else:
        run_console(where, lines, home)
    return "ran"


def targets():
    out = subprocess.run(["make", "-pnq", "NVCC="], cwd=TOP, capture_output=True, text=True,
                         env={**os.environ, "MAKEFLAGS": ""}, check=False)
    return set(re.findall(r"^([A-Za-z][\w./-]*):", out.stdout, re.M))


def exists(span, path):
    """Whether a span that looks like a path of the repository exists, if it is one."""
    name = span.split()[0].rstrip(":,")
    if name in ELSEWHERE:
        return True
    if re.search(r"[*<>$={}\[\]()]|\.\.\.", name) or "NAME" in name:
        return True
    if name.split("/")[0] in FOLDERS and "/" in name:
        return os.path.exists(os.path.join(TOP, name))
    if re.fullmatch(r"[\w.-]+\.(c|h|cu|sh|py|md)", name):
        near = [os.path.join(TOP, os.path.dirname(path), name), os.path.join(TOP, name)]
        tree = subprocess.run(["find", *FOLDERS, "-name", name], cwd=TOP, capture_output=True,
                              text=True, check=False)
        return any(map(os.path.exists, near)) or bool(tree.stdout)
    return True


def check_prose(path, prose, known):
    text = "\n".join(line for _, line in prose)
    for number, line in prose:
        if re.match(r"    \S", line) and not re.match(r"    [-*|]", line):
            error(f"{path}:{number}", "indented block; use a fenced one")
    for span in re.findall(r"`([^`]+)`", text):
        span = " ".join(span.split())
        for word in span.split()[1:] if span.startswith("make ") else []:
            if "=" not in word and word != "-j" and word not in known and "/" not in word:
                error(path, f"`{span}`: make has no target {word}")
        if not exists(span, path):
            error(path, f"`{span}` does not exist")


def main(args):
    run_long = "--long" in args
    names = [a for a in args if a != "--long"] or documents()
    known = targets()
    ran = listed = 0
    size = os.path.getsize(os.path.join(TOP, "README.md"))
    if size > README_MAX:
        error("README.md", f"{size} bytes, expected at most {README_MAX}")
    for path in names:
        blocks, prose = parse(path)
        check_prose(path, prose, known)
        home = tempfile.mkdtemp()
        for block in blocks:
            result = check_block(path, block, home, run_long)
            ran += result == "ran"
            listed += result == "listed"
        shutil.rmtree(home)
    if not names:
        error("docs.py", "found no documents")
    if not_run:
        print("docs.py: not run:", *not_run, sep="\n")
        print(*errors, sep="\n", end="\n" * bool(errors))
    print(f"docs.py: {len(names)} documents, {ran} blocks ran, {listed} listed,"
          f" {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
