#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Ethernet queues of the library against the unmodified dpdk-testpmd: threads send packets on one
software NIC, testpmd receives them on another one, swaps source and destination and sends them
back, and the threads receive them. The cases are a table in which each two of sharing mode, scope,
doorbell handler, memory and kind of send occur together (tests/gpu/eth_table.c), with 1000 packets
each (LONG: 10000), by threads in warps of 1 and of 32. Fewer packets are on the way than any ring
has slots, so that none may be lost. Every packet comes back once and unchanged, and the counters of
both NICs and of testpmd are exact.

usage: eth_testpmd.py [WIDTH...]   B: build folder, LONG
"""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "lib"))
import testpmd as tp  # noqa: E402
from testpmd import Failed, expect  # noqa: E402
from testpmd_pair import ENDS  # noqa: E402

LIMIT_S = 250
PACKETS = 10000 if os.environ.get("LONG") else 1000


def wait_for(process, log):
    """Returns the exit status. The process may run as long as it prints more to the log."""
    size = -1
    while True:
        try:
            return process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            if os.fstat(log.fileno()).st_size == size:
                return f"none, and nothing printed for {LIMIT_S} s"
            size = os.fstat(log.fileno()).st_size


def run_threads(folder, ip, peer, width):
    """Runs the cases; returns their exit status, what they print and the counters of their NIC."""
    stats = folder / "threads"
    stats.mkdir()
    command = [tp.RUN, "--strict", "--ip", ip, "--eth-peers", peer, "--stats-dir", stats, "--",
               f"{pathlib.Path(tp.RUN).parent.parent}/thread/eth_kernels_{width}",
               f"--testpmd={PACKETS}"]
    with open(folder / "log", "w+", encoding="utf-8") as log:
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                              start_new_session=True) as process:
            try:
                status = wait_for(process, log)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        log.seek(0)
        text = log.read()
    return status, text, tp.counters(stats)


def check(width):
    net = f"127.{random.randrange(64, 250)}.{random.randrange(256)}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        peer = tp.Testpmd(folder, "testpmd", f"{net}.2", f"--eth-peers {net}.1",
                          app=("--total-num-mbufs=4096", "--rxd=1024", "--txd=1024"))
        try:
            peer.ready()
            peer.cmds("set fwd macswap", "start")
            status, text, own = run_threads(folder, f"{net}.1", f"{net}.2", width)
            seen = peer.stats()
            peer.cmd("stop")
            other = peer.quit()
        finally:
            peer.end()
    # What both NICs and testpmd counted shows where a packet was lost or doubled.
    expect(status == 0, f"exit status {status}:\n{text[-1200:]}\nthreads' NIC: {own}\n"
           f"testpmd's NIC: {other}\ntestpmd: {seen}")
    packets = re.search(r"^(\d+) packets$", text, re.M)
    cases = re.search(r"^(\d+) passed, 0 failed$", text, re.M)
    expect(packets and cases, f"no result: {text[-300:]}")
    packets, cases = int(packets[1]), int(cases[1])
    for what, number in (("threads' NIC sent", own["tx_frames"]),
                         ("threads' NIC delivered", own["delivered"]),
                         ("testpmd's NIC delivered", other["delivered"]),
                         ("testpmd received", seen["RX-packets"]),
                         ("testpmd sent", seen["TX-packets"]),
                         ("testpmd's NIC sent", other["tx_frames"])):
        expect(number == packets, f"{what} {number} packets instead of {packets}")
    wrong = {f"{side} {key}": value for side, c in (("threads", own), ("testpmd", other))
             for key, value in c.items() if key in ENDS and key != "delivered" and value}
    expect(not wrong, f"packets that were not delivered: {wrong}")
    return f"{cases} cases, {packets} packets to testpmd and back"


def main():
    if not shutil.which("dpdk-testpmd"):
        print("eth_testpmd.py: dpdk-testpmd not found (package dpdk-dev)")
        return 77
    bad = 0
    for width in sys.argv[1:] or ("1", "32"):
        try:
            print(f"eth_testpmd.py: warps of {width}: {check(width)}", flush=True)
        except Failed as error:
            print(f"eth_testpmd.py: warps of {width}: {error}", flush=True)
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
