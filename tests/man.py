#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Check the manual pages.

mandoc reports no warning. The options that a program prints for --help are those of its page, with
a value or without; programs with a server and a client share a page of options. The page of
softnic-run has the same form of each value and the same default.
The environment variables that the library reads are those of gdaki(7), and
each function that gdaki(7) names is in a public header.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("B", "build")
LIBRARY = "core/gdaki.7"
PROGRAMS = {
    "tests/softnic/softnic-run.1": "softnic-run",
    "examples/gpunetio_doctor/gpunetio_doctor.1": "gpunetio_doctor",
    "examples/gpunetio_verbs_alltoall/gpunetio_verbs_alltoall.1": "gpunetio_verbs_alltoall",
    "examples/hello_put/hello_put.1": "hello_put",
    "examples/gpunetio_dma_memcpy/gpunetio_dma_memcpy.1": "gpunetio_dma_memcpy",
    "examples/gpunetio_rdma_client_server_write/gpunetio_rdma_client_server_write.1":
        "gpunetio_rdma_client_server_write",
    "examples/gpunetio_simple_receive/gpunetio_simple_receive.1": "gpunetio_simple_receive",
    "examples/gpunetio_simple_send/gpunetio_simple_send.1": "gpunetio_simple_send",
    "examples/gpunetio_send_wait_time/gpunetio_send_wait_time.1": "gpunetio_send_wait_time",
    "examples/gpunetio_echo/gpunetio_echo.1": "gpunetio_echo",
    "examples/gpunetio_plot/gpunetio_plot.1": "gpunetio_plot",
}
# The options that the examples with a server and a client share. Their pages refer to it.
COMMON = "examples/common/gpunetio_verbs_examples.7"
FOLDERS = ("core", "umem", "uar", "cq", "qp", "doorbell")
errors = 0


def error(where, text):
    global errors
    errors += 1
    print(f"man.py: {where}: {text}")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def compare(page, what, here, there, source):
    for name in sorted(here.keys() | there.keys()):
        if name not in here:
            error(page, f"{what} {name} of {source} is missing")
        elif name not in there:
            error(page, f"{source} has no {what} {name}")
        elif here[name] != there[name]:
            error(page, f"{source} differs in whether {name} takes a value")


def page_options(text):
    """Return the options of the .It lines as {"--name": takes a value}."""
    options = {}
    for line in re.findall(r"^\.It Fl (.*)$", text, re.M):
        names = re.match(r"([\w-]+)(?: , ([\w-]+))?", line)
        for name in filter(None, names.groups()):
            options["-" + name] = " Ar " in line
    return options


def help_options(program):
    done = subprocess.run([os.path.join(TOP, BUILD, "bin", program), "--help"],
                          capture_output=True, text=True)
    options = {}
    for line in done.stdout.split("\n"):
        m = re.match(r" +(-\w)?,? *(--[\w-]+)(\[=| [A-Z<])?", line)
        for name in filter(None, m.group(1, 2) if m else ()):
            options[name] = bool(m.group(3))
    # An option that every program has may be missing in the text of usage.
    return options | {"--help": False} if options else options


def common_pages():
    """Return the pages that refer to COMMON, as {path from TOP: program}."""
    pages = {}
    for path in sorted(glob.glob(os.path.join(TOP, "examples", "gpunetio_verbs_*", "*.1"))):
        page = os.path.relpath(path, TOP)
        if os.path.basename(COMMON).replace(".", " ") in read(page):
            pages[page] = os.path.basename(path)[:-2]
    return pages


def check_common():
    """COMMON and the page of a program have all of its options, and COMMON has no others."""
    common = page_options(read(COMMON))
    used = {}
    for page, program in common_pages().items():
        own = page_options(read(page))
        listed = help_options(program)
        used |= listed
        shared = {n: common[n] for n in common if n in listed}
        compare(page, "option", own | shared, listed, program)
        for name in own.keys() & common.keys():
            error(page, f"option {name} is also in {COMMON}")
    for name in common.keys() - used.keys():
        error(COMMON, f"no program has the option {name}")


def roff_text(line):
    """Return the text of a .It line: no space at Ns, brackets around what follows Op."""
    text, space, closing = "", "", ""
    for word in line.split():
        if word in ("Fl", "Ar", "Cm"):
            continue
        if word == "Ns":
            space = ""
        elif word == "Op":
            text += space + "["
            space, closing = "", closing + "]"
        else:
            text += space + word.replace("\\&", "")
            space = "" if word == "=" or word.endswith(":") and closing else " "
    return text + closing


def page_values(text):
    """Return {"--name": (form of the value, default)} of the items of a page."""
    values = {}
    for item in re.findall(r"^\.It Fl -(.*?)(?=^\.(?:It|El))", text, re.M | re.S):
        head, _, body = item.partition("\n")
        name, form = re.match(r"([\w-]+) ?(.*)", roff_text(head)).groups()
        body = re.sub(r"^\.[A-Z]\w ", "", body, flags=re.M)
        default = re.search(r"\(([^()]*?)\s*\)\s*\.?\s*$", body)
        values[name] = (form, " ".join(default.group(1).split()) if default else None)
    return values


def check_values(page, program):
    """The forms of values and the defaults of --help are those of the page."""
    done = subprocess.run([os.path.join(TOP, BUILD, "bin", program), "--help"],
                          capture_output=True, text=True)
    listed = page_values(read(page))
    for line in done.stdout.split("\n"):
        m = re.match(r"  --([\w-]+) ?(\S*) +(.*)$", line)
        if not m or m.group(1) not in listed:
            continue
        default = re.search(r"\(([^()]*)\)$", m.group(3))
        want = (m.group(2).lower(), default.group(1).lower() if default else None)
        if listed[m.group(1)] != want:
            error(page, f"--{m.group(1)} has {listed[m.group(1)]}, --help has {want}")


def check_library(text):
    read_by_code = {}
    for folder in FOLDERS:
        for path in glob.glob(os.path.join(TOP, folder, "**", "*.c"), recursive=True):
            for name in re.findall(r'(?:getenv|from_env)\("(\w+)"', read(path)):
                read_by_code[name] = True
    listed = {name: True for name in re.findall(r"^\.It Ev (\w+)$", text, re.M)}
    compare(LIBRARY, "variable", listed, read_by_code, "the library")
    headers = "".join(read(p) for p in glob.glob(os.path.join(TOP, BUILD, "include", "*", "*.*h")))
    for name in re.findall(r"^\.Fn (\w+)", text, re.M):
        if not re.search(rf"\b{name}\(", headers):
            error(LIBRARY, f"no public header has {name}")


def lint(page):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], cwd=TOP,
                          capture_output=True, text=True)
    if done.returncode or done.stdout:
        error(page, "mandoc: " + done.stdout + done.stderr)


def main():
    has_mandoc = shutil.which("mandoc")
    for page, program in PROGRAMS.items():
        compare(page, "option", page_options(read(page)), help_options(program), program)
    check_common()
    check_values("tests/softnic/softnic-run.1", "softnic-run")
    check_library(read(LIBRARY))
    pages = (*PROGRAMS, *common_pages(), COMMON, LIBRARY)
    for page in pages if has_mandoc else ():
        lint(page)
    if not has_mandoc:
        print("man.py: mandoc not found; install the Debian package mandoc")
    print(f"man.py: {len(pages)} pages, {errors} errors")
    return 1 if errors else 0 if has_mandoc else 77


if __name__ == "__main__":
    sys.exit(main())
