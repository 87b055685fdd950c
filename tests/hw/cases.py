# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""The test cases of tests/hw/run: programs, and how to compare their output."""
import csv
import os
import re

B = os.environ.get("B", "build")
PUT_BW = B + "/bin/gpunetio_verbs_put_bw"
PROBE = B + "/hw/probe"
HELLO = B + "/bin/hello_put"
HANDLERS = (0, 1, 2, 6, 10)

# Unit tests that can pass on a device. Those that inject faults into the software NIC, use
# options of softnic-run, or need a stand-in of CUDA or of the DOCA SDK are not listed.
UNIT = """caps ah uar cq qp qp_modify firmware high_level export reset abort slab dump
e2e_handlers e2e_share e2e_wrap e2e_errors e2e_service e2e_peer_death service cpu_proxy
defects_proxy counter_dev onesided_dev doorbell_auto
verbs_qp verbs_srq verbs_change verbs_transport verbs_many""".split()
SHORT_UNIT = "caps qp_modify".split()


class Case:
    """lines: function that converts the output to {name: value}. boxes: compare the command
    boxes of the two traces; otherwise only the firmware's status and syndrome."""

    def __init__(self, name, argv, lines, boxes=True, server=None, gpu=False):
        self.name, self.argv, self.lines, self.boxes = name, argv, lines, boxes
        self.server, self.gpu = server, gpu


def probe_lines(text):
    """Parses lines "name: value". A name that occurs again gets a number."""
    found, seen = {}, {}
    for line in text.splitlines():
        name, colon, value = line.partition(": ")
        if colon and not re.match(r"\d{4}-\d\d-\d\dT|softnic\[", line):
            seen[name] = seen.get(name, 0) + 1
            found[name if seen[name] == 1 else "%s #%d" % (name, seen[name])] = value
    return found


def hello_lines(text):
    return {"output": line for line in text.splitlines() if line.startswith("status ")}


def put_lines(text):
    """Returns the columns of the CSV output that do not depend on the speed."""
    found, columns = {}, None
    for line in text.splitlines():
        if columns:
            row = dict(zip(columns, next(csv.reader([line]))))
            found.update((k, row.get(k, "-")) for k in
                         ("handler_requested", "handler", "messages", "bytes", "reason"))
            columns = None
        elif line.startswith("program,version,"):
            columns = line.split(",")
        elif line.startswith("Validation "):
            found["server"] = line
    return found


def unit_lines(text):
    """Parses Criterion's output: the number of tests, and those that failed or were skipped."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    found, assertions = {}, []
    for line in text.splitlines():
        tag = re.match(r"\[(FAIL|SKIP|PASS|----|====)\] (.*)", line)
        if not tag:
            continue
        if tag[1] == "----":
            assertions += [tag[2].strip()] if tag[2].strip() else []
        elif tag[1] == "====":
            number = re.search(r"Tested: (\d+)", tag[2])
            found["tests"] = number[1] if number else "?"
        elif tag[1] != "PASS":
            name = tag[2].split(": (")[0]
            found[name] = "%s%s" % ({"FAIL": "failed", "SKIP": "skipped"}[tag[1]],
                                    "".join("; " + a for a in assertions))
        if tag[1] != "----":
            assertions = []
    return found


def put_bw(name, handler, extra=(), server=(), gpu=False):
    size = ["-i", "1024", "-s", "2048", "--csv", "-"]
    return Case(name, [PUT_BW, "-p", str(handler)] + size + list(extra), put_lines,
                server=[PUT_BW] + list(server), gpu=gpu)


def loopback_cases(short, where):
    return [put_bw("put_bw %s -p %d" % (where, h), h, ["-g", "host"], ["-g", "host"])
            for h in (HANDLERS[:2] if short else HANDLERS)]


def gpu_cases(gpu):
    return [put_bw("put_bw GPU -p %d" % h, h, ["-g", gpu], ["-g", gpu], gpu=True)
            for h in HANDLERS]


def all_cases(opt):
    found = [Case("probe " + part, [PROBE, part], probe_lines)
             for part in ("caps", "objects", "states", "errors")]
    if opt.limits:
        found.append(Case("probe limits", [PROBE, "limits"], probe_lines, boxes=False))
    if opt.hello:  # it has no option to choose a device
        found.append(Case("hello_put", [HELLO], hello_lines))
    found += loopback_cases(opt.short, "loopback")
    if opt.peer_device and not opt.peer_host:
        found += loopback_cases(opt.short, "to the other device")
    if opt.gpu != "none":
        found += gpu_cases(opt.gpu)
    found += [Case("test_" + t, [B + "/tests/test_" + t], unit_lines, boxes=False)
              for t in (SHORT_UNIT if opt.short else UNIT)]
    return [c for c in found if not opt.only or re.search(opt.only, c.name)]


def remote_cases(opt):
    """Returns the tests with a server on another host. Server i listens on --port + i."""
    if not opt.peer_host:
        return []
    return loopback_cases(opt.short, "to the other host")
