#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""The queue that each frame of tests/unit/test_doca_flow_rss.c reached, compared with the hash of
DPDK's rte_softrss() (tests/consumers/thash.c). Skipped without DPDK's headers. B: build folder"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("B", "build"))
FRAMES_MIN = 1000


def main():
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True,
                           check=False)
    if flags.returncode:
        print("flow_rss.py: skipped: no headers of DPDK")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        out, program = pathlib.Path(folder) / "frames", pathlib.Path(folder) / "thash"
        subprocess.run([os.environ.get("CC") or "gcc", "-O1", "-o", program,
                        ROOT / "consumers/thash.c", *flags.stdout.split()], check=True, timeout=60)
        test = subprocess.run([ROOT / "run-unit.sh", BUILD / "tests/test_doca_flow_rss"],
                              env={**os.environ, "GDAKI_RSS_OUT": str(out)}, check=False)
        if test.returncode:
            return 1
        if not out.exists():
            print("flow_rss.py: skipped: the frames were not sent")
            return 77
        frames = [line.split() for line in out.read_text(encoding="ascii").splitlines()]
        text = "".join(f"{f[0]} {f[1]}\n" for f in frames)
        hashes = subprocess.run([program], input=text, capture_output=True, text=True, check=True,
                                timeout=20).stdout.split()
    bad = [f for f, h in zip(frames, hashes) if int(h, 16) % int(f[2]) % int(f[3]) != int(f[4])]
    for frame in bad[:5]:
        print("flow_rss.py: another queue than by rte_softrss():", *frame[1:])
    if bad or len(frames) < FRAMES_MIN or len(hashes) != len(frames):
        print(f"flow_rss.py: {len(bad)} of {len(frames)} frames differ, {len(hashes)} hashes")
        return 1
    print(f"flow_rss.py: {len(frames)} frames, queues as by rte_softrss()")
    return 0


sys.exit(main())
