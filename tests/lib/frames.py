# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Ethernet frames as bytes: building, checksums, VLAN tags, and files in pcap format."""
import random
import struct

ETH, IP4, IP6, UDP, TCP = 14, 20, 40, 8, 20
PROTO_TCP, PROTO_UDP = 6, 17


def ones_sum(data):
    """Sum of 16-bit words, folded to 16 bits."""
    data += b"\0" * (len(data) & 1)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def pseudo_header(src, dst, proto, length):
    if len(src) == 4:
        return src + dst + struct.pack("!BBH", 0, proto, length)
    return src + dst + struct.pack("!IBBBB", length, 0, 0, 0, proto)


def transport(src, dst, proto, ports, payload, right=True, seq=0, flags=0x10):
    """A UDP datagram or TCP segment; right: with its checksum, otherwise with 0x1234."""
    length = len(payload) + (UDP if proto == PROTO_UDP else TCP)
    if proto == PROTO_UDP:
        head, tail = struct.pack("!HHH", *ports, length), b""
    else:
        head = struct.pack("!HHIIBBH", *ports, seq, 0, 5 << 4, flags, 8192)
        tail = struct.pack("!H", 0)
    pseudo = pseudo_header(src, dst, proto, length)
    csum = 0xffff - ones_sum(pseudo + head + b"\0\0" + tail + payload)
    if not right:
        csum = 0x1234 if csum != 0x1234 else 0x4321
    elif proto == PROTO_UDP:
        csum = csum or 0xffff
    return head + struct.pack("!H", csum) + tail + payload


def network(src, dst, proto, payload, right=True):
    """An IP packet. right: the IPv4 header has its checksum, otherwise a wrong one."""
    if len(src) == 16:
        return struct.pack("!IHBB", 6 << 28, len(payload), proto, 64) + src + dst + payload
    head = struct.pack("!BBHHHBBH", 0x45, 0, IP4 + len(payload), 1, 0, 64, proto, 0) + src + dst
    csum = 0xffff - ones_sum(head)
    if not right:
        csum ^= 0x0101
    return head[:10] + struct.pack("!H", csum) + head[12:] + payload


def address(rng, version):
    """A unicast address."""
    if version == 4:
        return bytes([10] + [rng.randrange(1, 255) for _ in range(3)])
    return b"\x20\x01" + rng.randbytes(14)


def packet(dmac, smac, version=4, proto=PROTO_UDP, payload=b"", rng=None, ports=None, vlan=None,
           l3_right=True, l4_right=True, addresses=None):
    """A frame with an IP packet of random addresses and ports where none are given."""
    rng = rng or random
    src, dst = addresses or (address(rng, version), address(rng, version))
    ports = ports or (rng.randrange(1024, 65536), rng.randrange(1024, 65536))
    body = transport(src, dst, proto, ports, payload, l4_right) if proto in (6, 17) else payload
    kind = struct.pack("!H", 0x0800 if version == 4 else 0x86dd)
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    return dmac + smac + tag + kind + network(src, dst, proto, body, l3_right)


def sized(dmac, smac, size, rng, **args):
    """A UDP packet over IPv4 in a frame of `size` bytes, with random payload."""
    return packet(dmac, smac, payload=rng.randbytes(size - ETH - IP4 - UDP), rng=rng, **args)


def checksums_right(frame):
    """Whether the checksums of an untagged frame with UDP or TCP over IPv4 or IPv6 are right."""
    ip = frame[ETH:]
    if ip[0] >> 4 == 4:
        if ones_sum(ip[:IP4]) != 0xffff:
            return False
        length, proto = struct.unpack("!H", ip[2:4])[0], ip[9]
        src, dst, body = ip[12:16], ip[16:20], ip[IP4:length]
    else:
        length, proto = struct.unpack("!H", ip[4:6])[0], ip[6]
        src, dst, body = ip[8:24], ip[24:40], ip[IP6:IP6 + length]
    return ones_sum(pseudo_header(src, dst, proto, len(body)) + body) == 0xffff


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        f.write(b"".join(struct.pack("<IIII", 0, i, len(x), len(x)) + x
                         for i, x in enumerate(frames)))


def read_pcap(path):
    """The frames of a file with or without nanoseconds. A last frame that is cut off is left
    out."""
    with open(path, "rb") as f:
        data = f.read()
    frames, at = [], 24
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + size > len(data):
            break
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames
