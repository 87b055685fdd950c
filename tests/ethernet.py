#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Raw Ethernet on the software NIC, judged by the unmodified dpdk-testpmd 22.11: two
processes exchange frames, and DPDK's driver, its packet parser and rte_thash say what is
right. Frames come from and go to pcap files by DPDK's pcap driver, so that DPDK also reads
and writes the contents that are compared.

usage: ethernet.py [CHECK[:DV_FLOW_EN]...]   B: build folder; MORE=1: more checks also
       with dv_flow_en=0; LONG=1: all of them, and 10^6 frames instead of 10^4
"""
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "lib"))
import frames as fr  # noqa: E402
from testpmd import Failed, expect  # noqa: E402
from testpmd_pair import (ANY_MAC, RETRY, Pair, account, nothing_wrong, numbered,  # noqa: E402
                          only_headers, receive_reports, reports, same, tshark)

LONG = bool(os.environ.get("LONG"))
MORE = bool(os.environ.get("MORE"))
MANY = 1000000 if LONG else 10000
CHUNK = 20000  # frames of one pcap file
SEED = 20
JUMBO = 9000
TX_OFFLOAD_TIMESTAMP = 1 << 21
CLOCKS_NS = 20000  # error of the comparison of two clocks
TX_OFFLOAD_SEGMENTS = 1 << 15


# ---- checks ----

def check_lossless(folder, device):
    """Frames of 64 to 9000 bytes: with --eth-pause none is lost and none is changed."""
    sizes = [64, 65, 127, 128, 1500, 1514, 4096, JUMBO]
    total = 0
    for chunk in range(max(1, MANY // CHUNK)):
        rng = random.Random(SEED + chunk)
        sent = [fr.sized(ANY_MAC, numbered(i), size, rng) for i, size in enumerate(
            sizes + [int(64 * (JUMBO / 64) ** rng.random()) for _ in
                     range(min(MANY, CHUNK) - len(sizes))])]
        part = folder / f"part{chunk}"
        part.mkdir()
        large = ("--max-pkt-len=9018", "--mbuf-size=9600")
        scatter = device.endswith("0")  # to buffers of 2 KB
        rx_app = () if scatter else large
        with Pair(part, "--eth-pause --eth-mtu 1500", device, send=sent, store=True,
                  rx_app=rx_app, tx_app=large) as pair:
            for side in (pair.rx, pair.tx):
                side.cmd("port stop 0")
                if scatter and side is pair.rx:
                    side.cmd("port config 0 rx_offload scatter on")
                side.cmd(f"port config mtu 0 {JUMBO}")
            pair.rx.cmd("port start 0")
            pair.tx.cmd("port start 0")
            pair.rx.cmds("set fwd io", "start")
            pair.tx.cmds(*RETRY)
            pair.run()
            pair.rx.wait_stat("RX-packets", len(sent))
            pair.rx.wait_stat("TX-packets", len(sent), port=1)
            pair.rx.cmd("stop")
            account(*pair.finish())
        same(sent, fr.read_pcap(pair.target))
        total += len(sent)
        if chunk == 0 and not LONG:
            nothing_wrong(pair.target)
        shutil.rmtree(part)
    return f"{total} frames"


def txonly(pair, size, seconds):
    """Sends frames of one size until `seconds` are over; returns the number."""
    parts = [min(2000, size - at) for at in range(0, size, 2000)]
    pair.tx.cmds("set fwd txonly", "set txpkts " + ",".join(map(str, parts)), "clear port stats 0")
    pair.rx.cmd("clear port stats 0")
    pair.tx.cmd("start")
    time.sleep(seconds)
    pair.tx.cmd("stop")
    return pair.tx.stats()["TX-packets"]


def check_txonly(folder, device):
    """txonly to rxonly: with --eth-pause the receiver gets each frame that was sent."""
    sums = []
    with Pair(folder, "--eth-pause", device,
              app=("--max-pkt-len=9018", "--mbuf-size=9600"),
              tx_app=(f"--tx-offloads={TX_OFFLOAD_SEGMENTS:#x}",)) as pair:
        pair.rx.cmds("set fwd rxonly", "start")
        for size in (64, 1500, JUMBO):
            n = txonly(pair, size, 0.3)
            got = pair.rx.wait_stat("RX-packets", n)
            expect(got == n and n, f"{size} bytes: sent {n}, received {got}")
            got = pair.rx.stats()["RX-bytes"]
            expect(got == n * size, f"{n} frames of {size} bytes: RX-bytes {got}")
            sums.append(n)
        account(*pair.finish())
    return f"{sums} frames of 64, 1500, {JUMBO} bytes"


def settled(side):
    """Waits until testpmd has received all that its NIC has delivered; returns its counters. On a
    busy machine it may not poll its queue for seconds, so its counter must not change for 2 s."""
    seen, still = side.stats(), 0
    for _ in range(80):
        time.sleep(0.5)
        last, seen = seen, side.stats()
        same_as_before = seen["RX-packets"] and seen["RX-packets"] == last["RX-packets"]
        still = still + 1 if same_as_before else 0
        if still == 4:
            break
    return seen


def check_account(folder, device):
    """Without flow control: the counters of both NICs add up, and the receiver agrees."""
    with Pair(folder, "", device, tx_app=("--txd=256",), rx_app=("--rxd=64",)) as pair:
        pair.rx.cmds("set fwd rxonly", "start")
        n = txonly(pair, 200, 0.5)
        seen = settled(pair.rx)
        tx, rx = pair.finish()
    expect(tx["tx_frames"] == n, f"testpmd sent {n} frames, the NIC {tx['tx_frames']}")
    expect(seen["RX-packets"] == rx["delivered"],
           f"received {seen['RX-packets']}, delivered {rx['delivered']}")
    # With dv_flow_en=0 the queues are of verbs, and DPDK's set of queue counters is not theirs.
    expect(seen["RX-missed"] == (rx["out_of_buffer"] if device.endswith("1") else 0),
           f"testpmd missed {seen['RX-missed']}, out of buffer {rx['out_of_buffer']}")
    return f"sent {n}, " + account(tx, rx)


def check_faults(folder, device):
    """1 % of the frames is lost and 1 % duplicated: each that arrives is whole."""
    lost = twice = total = 0
    for chunk in range(max(1, MANY // CHUNK)):
        rng = random.Random(SEED + chunk)
        n = min(MANY, CHUNK)
        sent = [fr.sized(ANY_MAC, numbered(i), rng.randrange(64, 1515), rng) for i in range(n)]
        part = folder / f"part{chunk}"
        part.mkdir()
        faults = f"--eth-pause --loss 0.01 --dup 0.01 --seed {SEED + chunk}"
        with Pair(part, faults, device, send=sent, store=True) as pair:
            pair.rx.cmds("set fwd io", "start")
            pair.tx.cmds(*RETRY)
            pair.run()
            pair.rx.wait_still("TX-packets", pair.tx, port=1)
            pair.rx.cmd("stop")
            tx, rx = pair.finish()
        got = fr.read_pcap(pair.target)
        account(tx, rx)
        expect(len(got) == rx["delivered"], f"stored {len(got)}, delivered {rx['delivered']}")
        for name in ("tx_lost", "tx_duplicated"):
            expect(0.005 * n < tx[name] < 0.02 * n, f"{name} {tx[name]} of {n} frames")
        expect(len(got) == n - tx["tx_lost"] + tx["tx_duplicated"], f"{len(got)} of {n}: {tx}")
        for frame in got:
            i = struct.unpack("!I", frame[8:12])[0]
            expect(i < n and frame == sent[i], f"frame {i} arrived changed")
        kinds = len(set(got))
        expect(0.97 * n < kinds < n and kinds < len(got), f"{kinds} of {n} frames arrived")
        lost, twice, total = lost + n - kinds, twice + len(got) - kinds, total + n
        shutil.rmtree(part)
    return f"{total} frames, {lost} lost, {twice} duplicated"


def mixed(n, sizes=(0, 400), seed=SEED, dmac=ANY_MAC, **args):
    """Frames of TCP and UDP over IPv4 and IPv6."""
    rng = random.Random(seed)
    return [fr.packet(dmac, numbered(i), (4, 6)[i % 2], (6, 17)[i // 2 % 2],
                      rng.randbytes(rng.randrange(*sizes)), rng, **args) for i in range(n)]


def check_csum(folder, device):
    """Checksums that the NIC inserts are right in the receiver's memory."""
    sent = mixed(400, l3_right=False, l4_right=False)
    with Pair(folder, "--eth-pause", device, send=sent, store=True) as pair:
        pair.tx.cmds("port stop 0", *(f"csum set {x} hw 0" for x in ("ip", "udp", "tcp")),
                     "port start 0", "set fwd csum retry", RETRY[1])
        pair.rx.cmds("set fwd io", "start")
        pair.run()
        pair.rx.wait_stat("TX-packets", len(sent), port=1)
        pair.rx.cmd("stop")
        account(*pair.finish())
    got = fr.read_pcap(pair.target)
    expect(len(got) == len(sent), f"sent {len(sent)}, received {len(got)}")
    for i, (a, b) in enumerate(zip(sent, got)):
        expect(not fr.checksums_right(a), f"the checksums of frame {i} were right before")
        expect(fr.checksums_right(b), f"frame {i} has a wrong checksum: {b.hex()}")
        expect(a[75:] == b[75:] and len(a) == len(b), f"the payload of frame {i} changed")
    nothing_wrong(pair.target)
    return f"{len(sent)} frames"


def check_tso(folder, device):
    """Segments of large TCP packets: contents, sequence numbers, flags and checksums."""
    rng, mss = random.Random(SEED), 700
    sizes = [1, 699, 700, 701, 1399, 1400, 1401, 2100, 4096, 8000] * 4
    sent = []
    for i, size in enumerate(sizes):
        payload = rng.randbytes(size)
        version = (4, 6)[i % 2]
        src, dst = fr.address(rng, version), fr.address(rng, version)
        body = fr.transport(src, dst, 6, (1000 + i, 80), payload, False, seq=rng.randrange(1 << 32),
                            flags=0x19)
        kind = b"\x08\x00" if version == 4 else b"\x86\xdd"
        sent.append(ANY_MAC + numbered(i) + kind + fr.network(src, dst, 6, body, False))
    with Pair(folder, "--eth-pause", device, send=sent, store=True,
              tx_app=("--max-pkt-len=9018", "--mbuf-size=9600")) as pair:
        pair.tx.cmds("port stop 0", "csum set ip hw 0", "csum set tcp hw 0", f"tso set {mss} 0",
                     "port start 0", "set fwd csum retry", RETRY[1])
        pair.rx.cmds("set fwd io", "start")
        segments = sum((n + mss - 1) // mss for n in sizes)
        pair.run()
        pair.rx.wait_stat("TX-packets", segments, port=1)
        pair.rx.cmd("stop")
        account(*pair.finish())
    compare_segments(sent, fr.read_pcap(pair.target), mss)
    nothing_wrong(pair.target)
    return f"{len(sent)} packets, {segments} segments"


def tcp_parts(frame):
    """Port, sequence number, flags and payload of a TCP packet."""
    at = 34 if frame[12:14] == b"\x08\x00" else 54
    end = 14 + struct.unpack("!H", frame[16:18])[0] if at == 34 else len(frame)
    port, _, seq = struct.unpack("!HHI", frame[at:at + 8])
    return port, seq, frame[at + 13], frame[at + 20:end]


def compare_segments(sent, got, mss):
    at = 0
    for i, frame in enumerate(sent):
        port, seq, flags, payload = tcp_parts(frame)
        for offset in range(0, len(payload), mss):
            part = payload[offset:offset + mss]
            last = offset + mss >= len(payload)
            want = (port, (seq + offset) & 0xffffffff, flags if last else flags & ~0x09, part)
            expect(at < len(got), f"only {at} segments arrived")
            expect(tcp_parts(got[at]) == want, f"packet {i}, offset {offset}: wrong segment "
                   f"{tcp_parts(got[at])[:3]} instead of {want[:3]}")
            expect(fr.checksums_right(got[at]), f"packet {i}, offset {offset}: wrong checksum")
            at += 1
    expect(at == len(got), f"{len(got)} segments arrived instead of {at}")


def check_vlan(folder, device):
    """VLAN tags: the sender's NIC inserts them; the receiver's NIC strips them."""
    sent = mixed(200)
    with Pair(folder / "insert", "--eth-pause", device, send=sent, store=True) as pair:
        pair.tx.cmds("port stop 0", "tx_vlan set 0 291", "port start 0", "set fwd mac retry",
                     RETRY[1])
        pair.rx.cmds("vlan set strip off 0", "set fwd io", "start")
        pair.run()
        pair.rx.wait_stat("TX-packets", len(sent), port=1)
        pair.rx.cmd("stop")
        account(*pair.finish())
    got = fr.read_pcap(pair.target)
    tag = struct.pack("!HH", 0x8100, 291)
    same([x[12:] for x in sent], [x[16:] for x in got])
    expect(all(x[12:16] == tag for x in got), "a frame has no tag, or another")
    tagged = [x[:12] + struct.pack("!HH", 0x8100, 0x2000 + i) + x[12:] if i % 4 else x
              for i, x in enumerate(sent)]
    strip_case(folder / "strip", device, tagged)
    return f"{len(sent)} frames inserted, {len(tagged)} stripped"


def strip_case(folder, device, sent):
    with Pair(folder, "--eth-pause", device, send=sent) as pair:
        found = receive_reports(pair, prepare=("vlan set strip on 0",))
        account(*pair.finish())
    for i, frame in enumerate(sent):
        expect(i in found, f"frame {i} was not received")
        length, fields, flags = found[i]
        tag = re.search(r"VLAN tci=0x(\w+)", fields)
        tagged = frame[12:14] == b"\x81\x00"
        expect(("RTE_MBUF_F_RX_VLAN_STRIPPED" in flags) == tagged, f"frame {i}: {flags}")
        expect(length == len(frame) - (4 if tagged else 0), f"frame {i}: {length} bytes")
        expect(not tagged or tag and int(tag[1], 16) == 0x2000 + i, f"frame {i}: {fields}")


def thash(folder, key, tuples):
    """Hashes by DPDK's rte_softrss()."""
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True,
                           check=True).stdout.split()
    program = folder / "thash"
    subprocess.run([os.environ.get("CC") or "gcc", "-O1", "-o", program, ROOT / "consumers/thash.c",
                    *flags], check=True, timeout=60)
    text = "".join(f"{key} {t.hex()}\n" for t in tuples)
    out = subprocess.run([program], input=text, capture_output=True, text=True, check=True,
                         timeout=20).stdout.split()
    expect(len(out) == len(tuples), "thash printed too few hashes")
    return [int(x, 16) for x in out]


def or_and_xor(pair):
    """A symmetric pair: source OR destination, then source XOR destination."""
    half = len(pair) // 2
    a, b = pair[:half], pair[half:]
    return bytes(x | y for x, y in zip(a, b)) + bytes(x ^ y for x, y in zip(a, b))


def tuple_of(frame, symmetric):
    """The bytes over which a receiver hashes: addresses, and ports of TCP and UDP."""
    version = 4 if frame[12:14] == b"\x08\x00" else 6
    start, at, proto = (26, 34, frame[23]) if version == 4 else (22, 54, frame[20])
    addresses, ports = frame[start:at], frame[at:at + 4] if proto in (6, 17) else b""
    if symmetric:
        addresses, ports = or_and_xor(addresses), or_and_xor(ports)
    return addresses + ports


def check_rss(folder, device):
    """RSS over 4 queues: hash as of DPDK's rte_thash, queue by hash; also packets that have
    only addresses."""
    rng = random.Random(SEED)
    sent = mixed(1200)
    sent += [fr.packet(ANY_MAC, numbered(1200 + i), (4, 6)[i % 2], 47 if i % 4 < 2 else 253,
                       rng.randbytes(64), rng) for i in range(400)]
    with Pair(folder, "--eth-pause", device, send=sent, queues=4,
              rx_app=("--rss-ip",)) as pair:
        for ip, l4 in ((i, t) for i in ("ipv4", "ipv6") for t in ("tcp", "udp")):
            text = pair.rx.cmd(f"flow create 0 ingress pattern eth / {ip} / {l4} / end actions rss "
                               f"types {ip}-{l4} end queues 0 1 2 3 end / end")
            expect("created" in text, text)
        key = re.search(r"RSS key:\s*([0-9A-Fa-f]{80})", pair.rx.cmd("show port 0 rss-hash key"))
        expect(key, "testpmd shows no RSS key")
        found = receive_reports(pair)
        account(*pair.finish())
    verbs = device.endswith("0")  # Linux makes the hash of an RSS QP of verbs symmetric
    hashes = thash(folder, key[1], [tuple_of(x, verbs) for x in sent])
    used = [0] * 4
    for i, want in enumerate(hashes):
        expect(i in found, f"frame {i} was not received")
        got = re.search(r"RSS hash=0x(\w+) - RSS queue=0x(\w+)", found[i][1])
        expect(got, f"frame {i} has no hash: {found[i]}")
        expect(int(got[1], 16) == want, f"frame {i}: hash {got[1]} instead of {want:x}: "
               f"{sent[i][:64].hex()}")
        expect(int(got[2], 16) == want % 4, f"frame {i}: queue {got[2]}, hash {want:x}")
        used[int(got[2], 16)] += 1
    expect(min(used) > 300, f"frames per queue: {used}")
    return f"{len(sent)} frames, per queue {used}"


PTYPES = {(4, 6): ("L3_IPV4", "L4_TCP"), (4, 17): ("L3_IPV4", "L4_UDP"),
          (6, 6): ("L3_IPV6", "L4_TCP"), (6, 17): ("L3_IPV6", "L4_UDP")}


def check_flags(folder, device):
    """Checksum flags and packet types of received frames with right and wrong checksums."""
    rng, sent, wants = random.Random(SEED), [], []
    for i in range(480):
        version, proto = (4, 6)[i % 2], (6, 17)[i // 2 % 2]
        l3, l4 = bool(i % 3) or version == 6, bool(i % 5)
        payload = rng.randbytes(rng.randrange(20, 300))
        sent.append(fr.packet(ANY_MAC, numbered(i), version, proto, payload, rng, l3_right=l3,
                              l4_right=l4))
        wants.append((l3, l4, PTYPES[version, proto]))
    with Pair(folder, "--eth-pause", device, send=sent,
              rx_app=("--enable-rx-cksum",)) as pair:
        found = receive_reports(pair)
        account(*pair.finish())
    for i, (l3, l4, types) in enumerate(wants):
        expect(i in found, f"frame {i} was not received")
        _, fields, flags = found[i]
        ptype = re.search(r"hw ptype: (.*?) +- sw", fields)
        for layer, right in (("IP", l3), ("L4", l4)):
            if layer == "L4" and not l3:
                continue  # the NIC may stop at the first error
            good = f"RTE_MBUF_F_RX_{layer}_CKSUM_GOOD" in flags
            expect(good == right, f"frame {i}: {layer} checksum right: {right}, flags {flags}")
        expect(ptype and all(t in ptype[1] for t in types), f"frame {i}: type {fields}")
    return f"{len(sent)} frames"


FLOWS = [  # UDP port, actions, packets
    (1001, "queue index 2", 40), (1002, "drop", 40), (1003, "mark id 0x1234 / queue index 1", 40),
    (1004, "count / queue index 3", 40), (1005, "count / drop", 40)]


def create_flow(side, port, actions):
    text = side.cmd(f"flow create 0 ingress pattern eth / ipv4 / udp dst is {port} / end "
                    f"actions {actions} / end")
    number = re.search(r"Flow rule #(\d+) created", text)
    expect(number, f"{port} {actions}: {text[-300:]}")
    return int(number[1])


def count_of(side, number, want):
    """The value of a counter. DPDK reads the counters of the NIC once per second."""
    end = time.monotonic() + 60
    while True:
        text = side.cmd(f"flow query 0 {number} count")
        hits = re.search(r"hits: (\d+)", text)
        expect(hits, f"no counter: {text[-300:]}")
        if int(hits[1]) == want or time.monotonic() > end:
            return int(hits[1])
        time.sleep(0.1)


def check_flows(folder, device):
    """Rules that are created and destroyed while frames arrive: queue, drop, mark, count."""
    rng, sent = random.Random(SEED), []
    for port, _, n in FLOWS:
        sent += [fr.packet(ANY_MAC, numbered(len(sent) + i), payload=rng.randbytes(100), rng=rng,
                           ports=(5, port)) for i in range(n)]
    with Pair(folder, "--eth-pause", device, send=sent, queues=4) as pair:
        pair.rx.cmds("set fwd rxonly", "set verbose 1", "start")
        numbers = [create_flow(pair.rx, port, actions) for port, actions, _ in FLOWS]
        found = receive_reports(pair, 120, ("stop",))
        for i, frame in enumerate(sent):
            one_flow(i, FLOWS[i // 40], found.get(i))
        for number, (port, actions, n) in zip(numbers, FLOWS):
            if "count" in actions:
                got = count_of(pair.rx, number, n)
                expect(got == n, f"port {port}: counter {got} instead of {n}")
        churn(pair.rx, numbers)
        again(pair, sent)
        account(*pair.finish())
    return f"{len(FLOWS)} rules, {len(sent)} frames twice"


def one_flow(i, flow, found):
    """Checks what rule `flow` did with frame i."""
    _, actions, _ = flow
    queue = re.search(r"queue index (\d)", actions)
    expect((found is not None) == bool(queue), f"frame {i}, {actions}: {found}")
    if queue:
        got = re.search(r"Receive queue=0x(\d+)", found[1])
        expect(got[1] == queue[1], f"frame {i}, {actions}: queue {got[1]}")
        mark = re.search(r"FDIR matched ID=0x(\w+)", found[1])
        expect(bool(mark) == ("mark" in actions), f"frame {i}, {actions}: {found[1]}")
        expect(not mark or int(mark[1], 16) == 0x1234, f"frame {i}: mark {mark and mark[1]}")


def churn(side, numbers):
    """Creates and destroys rules in use, and destroys all."""
    for i in range(5):
        number = create_flow(side, 2000 + i, f"queue index {i % 4}")
        text = side.cmd(f"flow destroy 0 rule {number}")
        expect(f"Flow rule #{number} destroyed" in text, text)
    for number in numbers[:2]:
        side.cmd(f"flow destroy 0 rule {number}")
    side.cmd("flow flush 0")


def again(pair, sent):
    """Without the rules, each frame arrives."""
    pair.tx.cmds("stop", "port stop 1", "port start 1")
    start = len(pair.rx.log)
    pair.tx.cmd("start")
    pair.rx.until(lambda: pair.rx.log[start:].count(b"ol_flags:") >= len(sent),
                  "all frames after the rules are gone", 20)
    found = reports(pair.rx.text(start))
    expect(len(found) == len(sent), f"{len(found)} of {len(sent)} frames after flow flush")
    expect(not any("FDIR" in x[1] for x in found.values()), "a mark without rule")


def check_captures(folder, device):
    """tshark decodes the captures of both NICs; no inner frame is malformed."""
    sent = mixed(300)
    with Pair(folder, "--eth-pause", device, send=sent, store=True,
              tx_nic=f"--pcap {folder}/wire_tx.pcap",
              rx_nic=f"--pcap {folder}/wire_rx.pcap") as pair:
        pair.rx.cmds("set fwd io", "start")
        pair.tx.cmds(*RETRY)
        pair.run()
        pair.rx.wait_stat("TX-packets", len(sent), port=1)
        pair.finish()
    for path in (folder / "wire_tx.pcap", folder / "wire_rx.pcap"):
        nothing_wrong(path, ("udp", "tcp"))  # a capture has no checksum of the outer header
        inner = tshark(path, "-Y", f"eth.src[0:2] == 02:11 && ip.dst == {pair.b}")
        expect(len(inner) == len(sent), f"{path.name}: {len(inner)} frames of {len(sent)}")
    return f"{len(sent)} frames"


def check_schedule(folder, device):
    """Frames that are scheduled with testpmd's txtimes: none is sent before its time."""
    inter, intra = 2000000, 20000  # ns between bursts, and between frames of a burst
    with Pair(folder, "--eth-pause --wait-on-time 1 --ts-format free", device,
              tx_app=(f"--tx-offloads={TX_OFFLOAD_TIMESTAMP:#x}",),
              tx_nic=f"--pcap {folder}/wire.pcap") as pair:
        pair.rx.cmds("set fwd rxonly", "start")
        # Without retry, testpmd schedules frames without end, and drops most of them.
        pair.tx.cmds("set fwd txonly retry", RETRY[1], "set txpkts 128", "set burst 16",
                     f"set txtimes {inter},{intra}", "start")
        offset = time.time_ns() - time.monotonic_ns()
        time.sleep(0.5)
        pair.tx.cmd("stop")
        n = pair.tx.stats()["TX-packets"]
        pair.rx.wait_stat("RX-packets", n)
        account(*pair.finish())
    return compare_times(folder / "wire.pcap", n, pair.b, offset)


def compare_times(path, n, to, offset):
    """Compares the times in the capture with those in the frames, which use the device
    clock (CLOCK_MONOTONIC). offset: time of day minus device clock, ns."""
    lines = tshark(path, "-T", "fields", "-e", "frame.time_epoch", "-e", "data.data", "-Y",
                   f"vxlan && data && ip.dst == {to} && eth.type != 0x88b5")
    late = []
    for line in lines:
        stamp, data = line.split("\t")[:2]
        seconds, ns = stamp.split(".")
        when = int(seconds) * 10**9 + int(ns.ljust(9, "0")[:9])
        magic, _, _, due = struct.unpack_from("!IHHQ", bytes.fromhex(data))
        expect(magic == 0xBEEFC0DE, f"a frame without mark: {data[:32]}")
        late.append(when - offset - due)
        expect(late[-1] > -CLOCKS_NS, f"frame {len(late)} was sent {-late[-1]} ns early")
    expect(len(late) == n > 50, f"{len(late)} frames in the capture, {n} sent")
    late.sort()
    return f"{n} frames, late by {late[n // 2] / 1000:.1f} us (median), {late[-1] / 1000:.0f} us"


BOTH = ("dv_flow_en=1", "dv_flow_en=0")
CHECKS = {
    "lossless": (check_lossless, BOTH), "txonly": (check_txonly, BOTH),
    "account": (check_account, BOTH), "csum": (check_csum, BOTH), "tso": (check_tso, BOTH),
    "vlan": (check_vlan, BOTH), "rss": (check_rss, BOTH), "flags": (check_flags, BOTH),
    "flows": (check_flows, BOTH), "faults": (check_faults, BOTH),
    "captures": (check_captures, BOTH[:1]), "schedule": (check_schedule, BOTH[:1]),
}
# Without LONG=1 these run with dv_flow_en=1 only: they use no rule of their own. The others, except
# flows, need MORE=1 or LONG=1 for dv_flow_en=0.
ONCE = ("account", "csum", "tso", "faults")


def run_check(name, function, device):
    with tempfile.TemporaryDirectory(prefix="gdaki-eth-", dir=os.environ.get("KEEP")) as tmp:
        folder = pathlib.Path(tmp)
        for part in ("insert", "strip"):
            (folder / part).mkdir()
        begin = time.monotonic()
        try:
            result = function(folder, device)
        except (Failed, subprocess.SubprocessError) as e:
            print(f"FAIL {name} {device}: {e}", flush=True)
            return False
        print(f"ok {name} {device}: {result} ({time.monotonic() - begin:.1f} s)", flush=True)
        return True


def main():
    for program in ("dpdk-testpmd", "tshark", "pkg-config"):
        if not shutil.which(program):
            print(f"ethernet.py: {program} not found (packages dpdk-dev, tshark, pkg-config)")
            return 77
    names = sys.argv[1:] or list(CHECKS)
    unknown = [n for n in names if n.partition(":")[0] not in CHECKS]
    if unknown:
        print(f"ethernet.py: no check {unknown[0]}; there are {' '.join(CHECKS)}")
        return 2
    good = True
    config = tempfile.TemporaryDirectory(prefix="gdaki-tshark-")
    os.environ["WIRESHARK_CONFIG_DIR"] = str(only_headers(pathlib.Path(config.name)))
    for name in names:
        name, _, device = name.partition(":")
        function, devices = CHECKS[name]
        once = name in ONCE or (not MORE and name != "flows")
        if once and not LONG:
            devices = devices[:1]
        for one in [f"dv_flow_en={device}"] if device else devices:
            good &= run_check(name, function, one)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
