#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Checks the ICRC and the PSNs of captured RoCEv2 packets. Shares no code with the NIC.

For every packet to UDP port 4791 of a pcap file, computes the invariant CRC from the
captured bytes (InfiniBand architecture, volume 1, annex A17: CRC-32 over eight bytes of
ones, the IPv4 header with TTL, TOS and checksum as ones or the IPv6 header with traffic
class, flow label and hop limit as ones, the UDP header with its checksum as ones, the BTH
with its reserved byte as ones, and the rest) and compares it with the last four bytes.
The request PSNs of each (sender, destination QP) must be consecutive, except for
retransmissions.

usage: icrc_check.py [--corrupt] FILE.pcap
--corrupt flips one bit of each packet first; then every ICRC must be wrong.
"""
import struct
import sys

ROCE_PORT = 4791
POLY = 0xEDB88320
# Opcodes of requests that use one PSN: send and write of RC and UC, atomics. A read request
# uses one PSN for each response packet.
ONE_PSN = set(range(0x00, 0x0C)) | set(range(0x20, 0x2C)) | {0x13, 0x14, 0x16, 0x17}
REQUESTS = ONE_PSN | {0x0C}


def crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLY if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = crc_table()


def crc32(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def packets(path):
    """Yields the bytes of each IP packet of a classic pcap file."""
    with open(path, "rb") as f:
        head = f.read(24)
        if len(head) < 24:
            raise SystemExit(f"{path}: not a pcap file")
        magic = head[:4]
        if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
            order = "<"
        elif magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
            order = ">"
        else:
            raise SystemExit(f"{path}: not a pcap file")
        link = struct.unpack(order + "I", head[20:24])[0] & 0xFFFF
        skip = {1: 14, 101: 0, 228: 0, 12: 0, 113: 16, 276: 20}.get(link)
        if skip is None:
            raise SystemExit(f"{path}: link type {link}")
        while True:
            rec = f.read(16)
            if len(rec) < 16:
                return
            caplen, origlen = struct.unpack(order + "II", rec[8:16])
            data = f.read(caplen)
            if len(data) == caplen == origlen:
                yield data[skip:]


def roce(ip):
    """(offset of UDP, end of the datagram) of a RoCEv2 packet, or None."""
    if len(ip) >= 28 and ip[0] >> 4 == 4 and ip[9] == 17:
        udp = (ip[0] & 15) * 4
    elif len(ip) >= 48 and ip[0] >> 4 == 6 and ip[6] == 17:
        udp = 40
    else:
        return None
    if struct.unpack("!H", ip[udp + 2:udp + 4])[0] != ROCE_PORT:
        return None
    end = udp + struct.unpack("!H", ip[udp + 4:udp + 6])[0]
    return (udp, end) if udp + 24 <= end <= len(ip) else None


def icrc(ip, udp, end):
    masked = bytearray(ip[:end - 4])
    if ip[0] >> 4 == 4:
        masked[1] = 0xFF  # TOS
        masked[8] = 0xFF  # TTL
        masked[10:12] = b"\xff\xff"  # header checksum
    else:
        masked[0] |= 0x0F  # traffic class and flow label
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF  # hop limit
    masked[udp + 6:udp + 8] = b"\xff\xff"
    masked[udp + 8 + 4] = 0xFF  # BTH: reserved byte before the destination QP
    return crc32(b"\xff" * 8 + bytes(masked))


def main():
    args = [a for a in sys.argv[1:] if a != "--corrupt"]
    corrupt = "--corrupt" in sys.argv
    if len(args) != 1:
        raise SystemExit(__doc__)
    seen = wrong = acks = gaps = repeated = 0
    expected, flows = {}, set()
    limit = 20000
    for ip in packets(args[0]):
        where = roce(ip)
        if not where:
            continue
        udp, end = where
        seen += 1
        if corrupt:
            ip = bytearray(ip)
            ip[udp + 8 + 11] ^= 1  # lowest bit of the PSN
            ip = bytes(ip)
        bth = ip[udp + 8:udp + 20]
        opcode, dest = bth[0], int.from_bytes(bth[5:8], "big")
        psn = int.from_bytes(bth[9:12], "big")
        if seen <= limit:
            got = struct.unpack("<I", ip[end - 4:end])[0]
            if got != icrc(ip, udp, end):
                wrong += 1
        if opcode not in REQUESTS:
            acks += 1
            continue
        key = (ip[12:udp] if udp == 20 else ip[8:udp], dest)
        ahead = (psn - expected.get(key, psn)) & 0xFFFFFF
        if ahead >= 0x800000:
            repeated += 1  # a retransmission
            continue
        if ahead:
            gaps += 1
            if gaps <= 5 and not corrupt:
                print(f"to QP {dest:#x}: PSN {psn:#x}, expected {expected[key]:#x}")
        flows.add(key)
        if opcode in ONE_PSN:
            expected[key] = (psn + 1) & 0xFFFFFF
        else:  # the number of response packets is unknown: accept any PSN after a read
            expected.pop(key, None)
    print(f"{seen} RoCEv2 packets, {len(flows)} flows, {acks} responses, {repeated} sent again, "
          f"{wrong} wrong ICRC, {gaps} gaps in PSN")
    if not seen:
        return 2
    if corrupt:
        return 0 if wrong == min(seen, limit) else 1
    return 1 if wrong or gaps else 0


sys.exit(main())
