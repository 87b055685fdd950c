#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Sends exactly COUNT echo requests of BYTES bytes, one each 10 ms, and waits until each is
answered with the same data; needs CAP_NET_RAW. ping(8) does not wait for a late answer: after
the first answer it ends two round trips after the last request, whatever its option -W.

usage: ping.py ADDRESS COUNT BYTES
"""
import random
import socket
import struct
import sys
import time

INTERVAL_S = 0.01
QUIET_S = 20  # without an answer for this time, the others are lost
ECHO_REQUEST, ECHO_REPLY = 8, 0


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def request(ident, seq, data):
    head = struct.pack("!BBHHH", ECHO_REQUEST, 0, 0, ident, seq)
    return head[:2] + struct.pack("!H", checksum(head + data)) + head[4:] + data


def main():
    peer, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ident, data = random.randrange(1 << 16), random.randbytes(size - size % 2)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.connect((peer, 0))
        sent, left = 0, set(range(count))
        due = last = time.monotonic()
        while left and time.monotonic() - last < QUIET_S:
            if sent < count and time.monotonic() >= due:
                s.send(request(ident, sent, data))
                sent, due, last = sent + 1, due + INTERVAL_S, time.monotonic()
            s.settimeout(max(0.0001, due - time.monotonic()) if sent < count else 0.1)
            try:
                packet = s.recv(65536)
            except TimeoutError:
                continue
            icmp = packet[(packet[0] & 15) * 4:]
            kind, _, _, who, seq = struct.unpack_from("!BBHHH", icmp)
            if (kind, who) == (ECHO_REPLY, ident) and icmp[8:] == data:
                left.discard(seq)
                last = time.monotonic()
    print(f"{count - len(left)} of {count} pings of {size} bytes answered; not: {sorted(left)}")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
