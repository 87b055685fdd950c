#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Runs rdma-core's Python tests, each in a process of its own.

usage: run_pyverbs.py --list LIST --listed N --version N --dev DEVICE --gid N [--limit SECONDS]
                      [--log FILE] [--pcap FOLDER] TESTS [NAME...]

TESTS is the folder of rdma-core's tests. NAME is a module, class or test; without one, all
tests of LIST run. A test passes, skips, fails, crashes (a signal) or hangs (longer than
SECONDS). Prints the totals of each module. The exit status is 0 if every test that LIST
claims passes and the others neither crash nor hang.

LIST contains every test of rdma-core version --listed, and some that later versions added
(claimed-from-N). --version is the version of TESTS. If it equals --listed, LIST and TESTS
must contain the same tests; otherwise tests without an entry in LIST are not claimed.
Tests that need CAP_NET_RAW are claimed if this process has it (claimed-with-net-raw).
"""
import argparse
import faulthandler
import gc
import importlib
import os
import select
import signal
import sys
import time
import unittest

MUST_PASS_PERCENT = 80
FROM = "claimed-from-"
NET_RAW = "claimed-with-net-raw"
CAP_NET_RAW = 13
OUTCOMES = ("pass", "skip", "fail", "crash", "hang")


def has_net_raw():
    """Whether this process is root and has CAP_NET_RAW; the tests check the former."""
    with open("/proc/self/status") as f:
        caps = next(line.split()[1] for line in f if line.startswith("CapEff:"))
    return os.geteuid() == 0 and int(caps, 16) >> CAP_NET_RAW & 1 == 1


def read_list(path):
    """Returns {test: is it claimed}, {test: version that added it}, in the file's order."""
    marks, since = {}, {}
    with open(path) as f:
        for line in f:
            if line.startswith("#"):
                continue
            name, mark = line.split(maxsplit=1)
            mark = mark.strip()
            if mark.startswith(FROM) and mark.removeprefix(FROM).isdigit():
                since[name] = int(mark.removeprefix(FROM))
            elif mark not in ("claimed", NET_RAW) and not mark.startswith("not-claimed: "):
                raise SystemExit(f"{path}: {name}: neither claimed nor not-claimed with a reason")
            marks[name] = mark == "claimed" or name in since or mark == NET_RAW and has_net_raw()
    return marks, since


def expected(opt, cases):
    """Returns {test: is it claimed} for the tests of this version, and the list's errors."""
    marks, since = read_list(opt.list)
    marks = {name: mark for name, mark in marks.items() if since.get(name, 0) <= opt.version}
    if opt.version != opt.listed:
        added = [name for name in marks if name in since and name not in cases]
        marks = {name: marks.get(name, False) for name in sorted(cases)}
        return marks, [f"{name}: claimed, not in the tests" for name in added]
    bad = [f"{name}: in the list, not in the tests" for name in marks if name not in cases]
    return marks, bad + [f"{name}: in the tests, not in the list"
                         for name in cases if name not in marks]


def load(folder, dev, gid):
    """Returns {test: its test case}. rdma-core's tests read their options from sys.argv."""
    top = os.path.abspath(folder)
    sys.path[:0] = [os.path.dirname(top), top]
    sys.argv[1:] = ["--dev", dev, "--gid", gid]
    importlib.import_module("args_parser").parser.parse_args()
    cases = {}
    # Load each module: the package's own loader does not work with Python 3.12 and later.
    modules = importlib.import_module("tests").__test_modules__
    stack = [unittest.TestLoader().loadTestsFromModule(m) for m in modules]
    while stack:
        item = stack.pop()
        if isinstance(item, unittest.TestSuite):
            stack.extend(item)
        else:
            cases[item.id().removeprefix("tests.")] = item
    return cases


def outcome(case):
    """Runs one test in this process; returns ('pass' | 'skip' | 'fail', reason)."""
    result = unittest.TestResult()
    case.run(result)
    if result.failures or result.errors:
        return "fail", (result.failures + result.errors)[0][1]
    if result.skipped:
        return "skip", result.skipped[0][1]
    return "pass", ""


def child(case, pipe, log, pcap):
    """Runs the test in the forked process, writes its outcome to pipe, and exits."""
    os.setpgid(0, 0)  # not a session of its own: own_group() of tests/hw/run says why
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable()
    if pcap:
        os.environ["SOFTNIC_PCAP"] = os.path.join(pcap, case.id() + ".pcap")
    how, why = outcome(case)
    with os.fdopen(pipe, "w") as f:
        f.write(f"{how}\n{why}")
    # Exit normally, so that the NIC closes all objects and reports violations. Skip Python's
    # last garbage collection, which may close a context before its CQs.
    gc.freeze()
    sys.exit(0)


def run(case, limit, log, pcap):
    """Runs one test in a process of its own; returns (outcome, reason)."""
    out, into = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(out)
        child(case, into, log, pcap)
    os.close(into)
    said = b""
    end = time.monotonic() + limit
    while True:
        ready, _, _ = select.select([out], [], [], max(0, end - time.monotonic()))
        if not ready:
            break
        more = os.read(out, 65536)
        if not more:
            break
        said += more
    os.close(out)
    # The outcome is known, but the process must also exit.
    status = None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = code
        else:
            time.sleep(0.005)
    try:
        os.killpg(pid, signal.SIGKILL)  # the process, or children that it left
    except ProcessLookupError:
        pass
    how, _, why = said.decode(errors="replace").partition("\n")
    if status is None:
        os.waitpid(pid, 0)
        detail = ": the test ended, but its process did not exit" if how else ""
        return "hang", f"after {limit} s{detail}"
    if os.WIFSIGNALED(status):
        return "crash", f"signal {os.WTERMSIG(status)}"
    if not how or os.WEXITSTATUS(status):
        return "crash", f"exit status {os.WEXITSTATUS(status)}"
    return how, why


def count(outcomes):
    return ", ".join(f"{outcomes[w]} {w}" for w in OUTCOMES if outcomes.get(w)) or "none"


def last_line(why):
    lines = [line for line in why.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--list", required=True)
    args.add_argument("--dev", required=True)
    args.add_argument("--gid", required=True)
    args.add_argument("--limit", type=float, default=60)
    args.add_argument("--log", default=os.devnull)
    args.add_argument("--pcap")
    args.add_argument("--listed", required=True, type=int)
    args.add_argument("--version", required=True, type=int)
    args.add_argument("tests")
    args.add_argument("names", nargs="*")
    opt = args.parse_args()
    cases = load(opt.tests, opt.dev, opt.gid)
    marks, bad = expected(opt, cases)
    chosen = [name for name in marks if name in cases and
              (not opt.names or any((name + ".").startswith(n + ".") for n in opt.names))]
    log = os.open(opt.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    totals = {}  # of a module: claimed outcomes, other outcomes
    for name in chosen:
        how, why = run(cases[name], opt.limit, log, opt.pcap)
        os.write(log, f"{name}: {how}\n{why}\n".encode())
        claimed, rest = totals.setdefault(name.split(".")[0], ({}, {}))
        side = claimed if marks[name] else rest
        side[how] = side.get(how, 0) + 1
        if how in ("crash", "hang") or marks[name] and how != "pass":
            mark = "claimed" if marks[name] else "not claimed"
            line = f"{name} ({mark}): {how}: {last_line(why)}"
            if how == "skip":
                print(line)
            else:
                bad.append(line)
    for module, (claimed, rest) in totals.items():
        n = sum(claimed.values())
        if claimed:
            print(f"{module:24} {count(claimed)} of the claimed tests")
        if claimed.get("pass", 0) * 100 < n * MUST_PASS_PERCENT:
            bad.append(f"{module}: {claimed.get('pass', 0)} of {n} claimed tests pass")
    for line in bad:
        print(f"FAIL {line}")
    every = [{w: sum(t[i].get(w, 0) for t in totals.values()) for w in OUTCOMES} for i in (0, 1)]
    print(f"{count(every[0])} of {sum(every[0].values())} claimed tests; "
          f"the others: {count(every[1])}")
    return 1 if bad or not chosen else 0


sys.exit(main())
