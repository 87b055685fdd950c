#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""The other end of NVIDIA's samples for Ethernet (eth_samples.sh): sends datagrams to
simple_receive, or reads the frames that simple_send and send_wait_time send.

usage: eth_samples_peer.py LINK send DATAGRAMS
       eth_samples_peer.py LINK listen FRAMES BYTES NUMBERED
  LINK   a vxlan device of the kernel, or OWN,NIC: the IPv4 addresses of this end and of the
         software NIC, for VXLAN packets (RFC 7348) of a UDP socket, which needs no privilege
listen prints "listens" when it is ready, and "enough" after FRAMES frames. When no frame has come
for 5 s it prints the times, in ns, at which the first frame of each burst came, and then four
numbers: frames, those with other contents, different frames, frames that came twice."""
import collections
import pathlib
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import frames  # noqa: E402

VXLAN = struct.pack("!II", 0x08 << 24, 79 << 8)  # a valid VNI, which is 79
NIC_IP, OWN_IP, PORT = "192.168.179.2", "192.168.179.1", 7777
HEADER = bytes.fromhex("101112131415202122232425" "0800")  # of the samples' frames
TEXT = b"Sent from DOCA GPUNetIO "
BURST = 32


def mac(ip):
    return b"\x02\0" + socket.inet_aton(ip)


class Device:
    """The kernel's vxlan device, and the kernel's IP stack for datagrams."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((name, 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send(self, data):
        self.udp.sendto(data, (NIC_IP, PORT))

    def recv(self):
        return self.socket.recv(4096)


class Socket:
    """VXLAN packets of a UDP socket."""

    def __init__(self, own, nic):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((own, 4789))
        self.own, self.nic = own, nic

    def send(self, data):
        addresses = socket.inet_aton(OWN_IP), socket.inet_aton(NIC_IP)
        frame = frames.packet(mac(self.nic), mac(self.own), payload=data, ports=(40000, PORT),
                              addresses=addresses)
        self.socket.sendto(VXLAN + frame, (self.nic, 4789))

    def recv(self):
        packet, source = self.socket.recvfrom(4096)
        if packet[:8] != VXLAN or source[0] != self.nic:
            sys.exit(f"a packet from {source[0]} with the header {packet[:8].hex()}")
        return packet[8:]


def send(link, count):
    for n in range(count):
        link.send(b"%d" % n)
        if n % 64 == 63:
            time.sleep(0.005)


def contents(frame, size, numbered):
    """The number of a frame of the samples, or None if its contents are others."""
    body = frame[14:].rstrip(b"\0")
    if len(frame) != size or (not body.startswith(TEXT) if numbered else body):
        return None
    return int(body[len(TEXT):]) if numbered else 0


def listen(link, enough, size, numbered):
    seen, wrong, first = collections.Counter(), 0, {}
    link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    link.socket.settimeout(60)
    print("listens", flush=True)
    while True:
        try:
            frame = link.recv()
        except TimeoutError:
            break
        now = time.time_ns()
        if frame[:14] != HEADER:
            continue
        link.socket.settimeout(5)
        number = contents(frame, size, numbered)
        if number is None:
            wrong += 1
        else:
            seen[number] += 1
            first.setdefault(number // BURST, now)
        if sum(seen.values()) + wrong == enough:
            print("enough", flush=True)
    print(*(first[burst] for burst in sorted(first)))
    twice = sum(n > 1 for n in seen.values()) if numbered else 0
    print(sum(seen.values()), wrong, len(seen), twice)


def main():
    link, command, *rest = sys.argv[1:]
    end = Socket(*link.split(",")) if "," in link else Device(link)
    {"send": send, "listen": listen}[command](end, *map(int, rest))


main()
