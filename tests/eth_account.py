#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Two processes on the software NIC, one that sends numbered Ethernet frames and one that
# receives them (tests/soak/eth_peer.c). Checks that every frame is accounted for in the
# counters of both NICs, that no frame arrives changed, and that with --eth-pause none is lost:
# with a fast and a slow receiver, with injected faults, and while the receiver is stopped.
#
# usage: eth_account.py [NAME...]    B: build folder; LONG=1: ten times as many frames
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

B = pathlib.Path(os.environ.get("B") or "build").resolve()
RUN, PEER = B / "bin/softnic-run", B / "soak/eth_peer"
LONG = 10 if os.environ.get("LONG") else 1
LIMIT_S = 60 * LONG
# Each frame that arrives ends in one of these counters.
ENDS = ("delivered no_rule rule_dropped out_of_buffer not_ready too_long malformed fcs_errors "
        "rx_faults").split()
QUIET_S = "2"  # the receiver ends so long after the last frame, if frames were lost
FAULTS = "--loss 0.01 --dup 0.01 --reorder 0.01 --corrupt 0.01 --seed 5"

# name, frames, largest frame, options of both NICs, receiver's pause in us, its slots,
# time for which the receiver is stopped
CASES = [
    ("plain", 20000, 1500, "", 0, 512, 0),
    ("slow", 20000, 1500, "", 20, 32, 0),
    ("stopped", 20000, 1500, "", 0, 512, 0.3),
    ("pause", 20000, 1500, "--eth-pause", 0, 512, 0),
    ("pause_large", 5000, 9000, "--eth-pause --eth-mtu 9216", 0, 512, 0),
    ("pause_slow", 4000, 1500, "--eth-pause", 20, 16, 0),
    ("pause_stopped", 20000, 1500, "--eth-pause", 0, 512, 0.3),
    ("faults", 20000, 1500, FAULTS, 0, 512, 0),
    ("pause_faults", 10000, 1500, FAULTS + " --eth-pause", 0, 512, 0),
    ("pause_killed", 1000000, 1500, "--eth-pause", 1000, 16, 0),
]


class Failed(Exception):
    pass


def expect(holds, text):
    if not holds:
        raise Failed(text)


class Side:
    """One process on a NIC of its own."""

    def __init__(self, folder, name, ip, options, args):
        self.ip, self.stats, self.log = ip, folder / name, folder / (name + ".log")
        self.stats.mkdir()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [RUN, "--strict", "--ip", ip, "--stats-dir", self.stats, *options.split(), "--",
                 PEER, *args], stdout=log, stderr=subprocess.STDOUT)

    def wait(self):
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.log.name} still runs after {LIMIT_S} s") from None
        expect(status == 0, f"{self.log.name}: status {status}: {self.text()[-400:]}")

    def text(self):
        return self.log.read_text(errors="replace")

    def find(self, pattern):
        return re.search(pattern, self.text())

    def counters(self):
        total = {}
        for path in self.stats.glob("*.json"):
            for key, value in json.loads(path.read_text()).items():
                if key.startswith("eth_") and isinstance(value, int):
                    total[key[4:]] = total.get(key[4:], 0) + value
        return total

    def children(self):
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()] or [self.process.pid]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, what)
        time.sleep(0.01)


def stop_for(side, seconds):
    """Stops the process of the receiver, with its NIC, while frames arrive."""
    time.sleep(0.1)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in side.children():
            os.kill(pid, number)
        if number == signal.SIGSTOP:
            time.sleep(seconds)


def killed(rx, tx):
    """Kills the receiver while frames arrive. The sender ends with an error and names the cause."""
    pids = rx.children()
    wait_until(lambda: rx.find("first frame"), LIMIT_S, "no frame arrives")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    status = tx.process.wait(LIMIT_S)
    cause = f"the process of peer {rx.ip} (pid {pids[0]}) has ended"
    expect(status == 1 and cause in tx.text(), f"status {status}: {tx.text()[-400:]}")
    return f"the sender ends with: {cause}"


def account(tx, rx, received, frames):
    """Checks the counters of sender and receiver; returns a summary."""
    wire = tx["tx_copies"] - tx["tx_lost"] - tx["tx_failed"] + tx["tx_duplicated"]
    ends = {name: rx[name] for name in ENDS if rx[name]}
    expect(tx["tx_frames"] == frames, f"{tx['tx_frames']} frames sent instead of {frames}")
    expect(tx["tx_copies"] + tx["no_peer"] == frames, f"copies: {tx}")
    expect(wire == rx["rx_frames"] + rx["rx_missed"],
           f"{wire} frames on the wire, {rx['rx_frames']} arrived, {rx['rx_missed']} missed")
    expect(rx["rx_frames"] == sum(ends.values()), f"arrived {rx['rx_frames']}, ends {ends}")
    expect(received == rx["delivered"], f"received {received}, delivered {rx['delivered']}")
    return f"sent {frames}, on the wire {wire}, missed {rx['rx_missed']}, " + ", ".join(
        f"{name} {value}" for name, value in ends.items())


def run_case(folder, case):
    name, frames, size, options, pause_us, slots, stop_s = case
    frames *= LONG
    a, b = (f"127.{random.randrange(130, 250)}.{random.randrange(256)}.{last}" for last in (1, 2))
    rx = Side(folder, "receiver", b, options + f" --eth-peers {a}",
              ["receive", str(frames), str(size), "9", str(pause_us), str(slots), QUIET_S])
    tx = None
    try:
        wait_until(lambda: rx.find(r"MAC (\S+)") or rx.process.poll() is not None, 20,
                   "the receiver does not start")
        expect(rx.find(r"MAC (\S+)"), f"the receiver ends: {rx.text()[-400:]}")
        tx = Side(folder, "sender", a, options + f" --eth-peers {b}",
                  ["send", rx.find(r"MAC (\S+)")[1], str(frames), str(size), "9"])
        if name == "pause_killed":
            return killed(rx, tx)
        if stop_s:
            stop_for(rx, stop_s)
        tx.wait()
        rx.wait()
    finally:
        rx.end()
        if tx:
            tx.end()
    tally = rx.find(r"received (\d+) wrong (\d+) twice (\d+) late (\d+)")
    expect(tally, f"no result: {rx.text()[-400:]}")
    received, wrong, twice, late = map(int, tally.groups())
    text = account(tx.counters(), rx.counters(), received, frames)
    expect(not wrong, f"{wrong} frames arrived changed; {text}")
    if not tx.counters()["tx_duplicated"]:
        expect(not twice and not late, f"{twice} frames twice, {late} late; {text}")
    if "--eth-pause" in options and "--loss" not in options:
        expect(received == frames, f"{frames - received} frames lost; {text}")
    if name == "slow":
        expect(rx.counters()["out_of_buffer"], "no frame was out of buffer")
    return text


def main():
    names, bad = sys.argv[1:], 0
    for case in CASES:
        if names and case[0] not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"eth_account.py: {case[0]}: {run_case(pathlib.Path(folder), case)}")
            except Failed as error:
                print(f"eth_account.py: {case[0]} fails: {error}")
                bad = 1
    return bad


sys.exit(main())
