#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Runs 50 servers and 50 clients of ibv_rc_pingpong at once, each with a software NIC of
its own. All must succeed, use at most 32 MiB each and leave no files in TMPDIR. Prints
the start-up time of softnic-run, measured with the program true.

usage: many.py [PAIRS]
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

RUN = os.path.join(os.environ.get("B", "build"), "bin", "softnic-run")
RSS_MAX_KIB = 32 << 10
LIMIT_S = 120


def free_ports(count):
    """Distinct TCP ports that were free when this function closed them."""
    held = []
    for _ in range(count):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", 0))
        held.append(s)
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def listening():
    ports = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name) as f:
                rows = [row.split() for row in f.readlines()[1:]]
        except FileNotFoundError:
            continue
        ports |= {int(r[1].rsplit(":", 1)[1], 16) for r in rows if r[3] == "0A"}
    return ports


def start(out, port, *to):
    cmd = [RUN, "--strict", "--", "ibv_rc_pingpong", "-d", "mlx5_0", "-g", "3", "-e", "-n", "20",
           "-c", "-p", str(port), *to]
    return subprocess.Popen(cmd, stdout=out, stderr=subprocess.STDOUT)


def main():
    if not shutil.which("ibv_rc_pingpong"):
        print("many.py: ibv_rc_pingpong not found (package ibverbs-utils)")
        return 77
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    begin = time.monotonic()
    for _ in range(10):
        subprocess.run([RUN, "--", "true"], check=True)
    startup = (time.monotonic() - begin) / 10
    bad, peak = 0, 0
    with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryFile("w+") as out:
        os.environ["TMPDIR"] = tmp
        begin = time.monotonic()
        end = begin + LIMIT_S
        ports = free_ports(pairs)
        running = [start(out, p) for p in ports]
        while not set(ports) <= listening() and time.monotonic() < end:
            if any(p.poll() is not None for p in running):
                break
            time.sleep(0.1)
        running += [start(out, p, "127.0.0.1") for p in ports]
        while running and time.monotonic() < end:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if not pid:
                time.sleep(0.05)
                continue
            running = [p for p in running if p.pid != pid]
            bad += status != 0
            peak = max(peak, used.ru_maxrss)
        took = time.monotonic() - begin
        for p in running:
            p.kill()
            p.wait()
        left = os.listdir(tmp)
        out.seek(0)
        if bad or running:
            print("".join(out.readlines()[-40:]))
    print(f"many.py: {2 * pairs} processes, {bad} failed, {len(running)} did not end, "
          f"{took:.1f} s; at most {peak / 1024:.1f} MiB each; "
          f"softnic-run starts in {startup * 1000:.0f} ms")
    if left:
        print(f"many.py: files left in TMPDIR: {left}")
    return bool(bad or running or left or peak > RSS_MAX_KIB)


sys.exit(main())
