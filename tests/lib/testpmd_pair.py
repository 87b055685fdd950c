# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Two dpdk-testpmd, a sender and a receiver of frames, and what tests compare: frames, the
counters of both NICs, tshark's findings, and the receiver's reports."""
import random
import re
import struct
import subprocess

import frames as fr
import testpmd as tp
from testpmd import expect

# Sends a burst again until the NIC has room for it.
RETRY = ("set fwd io retry", "set burst tx delay 10 retry 1000000")
# Each frame that arrives ends in one of these counters.
ENDS = ("delivered no_rule rule_dropped out_of_buffer not_ready too_long malformed fcs_errors "
        "rx_faults").split()
VERBOSE = re.compile(r"  src=(\S+) - dst=\S+ .*?length=(\d+)(.*)\n\s+ol_flags: (.*)")


class Pair:
    """A sender and a receiver. Each may have a file of frames as port 1."""

    def __init__(self, folder, nic="", device="dv_flow_en=1", send=None, store=False, queues=1,
                 app=(), tx_app=(), rx_app=(), tx_nic="", rx_nic="", tx_queues=1):
        net = f"127.{random.randrange(64, 250)}.{random.randrange(256)}"
        self.folder, self.count = folder, 0
        self.a, self.b = f"{net}.1", f"{net}.2"
        self.source, self.target = folder / "in.pcap", folder / "out.pcap"
        self.pcaps = [folder / "tx.pcap", folder / "rx.pcap"]
        rx_eal = [tp.file_port(target=self.target, queues=queues)] if store else []
        tx_eal = []
        if send is not None:
            self.count = len(send)
            fr.write_pcap(self.source, send)
            tx_eal = [tp.file_port(source=self.source)]
        small = ["--total-num-mbufs=4096", "--rxd=256"]
        self.rx = tp.Testpmd(folder, "rx", self.b, f"--eth-peers {self.a} {nic} {rx_nic}", device,
                             rx_eal, [*small, f"--rxq={queues}", f"--txq={queues}", *app, *rx_app])
        self.tx = tp.Testpmd(folder, "tx", self.a, f"--eth-peers {self.b} {nic} {tx_nic}", device,
                             tx_eal, [*small, f"--txq={tx_queues}", f"--rxq={tx_queues}", *app,
                                      *tx_app])

    def __enter__(self):
        try:
            self.rx.ready()
            self.tx.ready()
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.rx.end()
        self.tx.end()

    def run(self):
        """Sends all frames of the file. The receiver has been started."""
        self.tx.cmd("start")
        return self.tx.wait_stat("TX-packets", self.count)

    def finish(self):
        """Ends both programs; returns the counters of both NICs, sender first."""
        tx = self.tx.quit()
        return tx, self.rx.quit()


def mac_of(ip):
    return bytes([2, 0] + [int(x) for x in ip.split(".")])


ANY_MAC = bytes.fromhex("020000000099")  # of no NIC: goes to all peers


def numbered(i):
    """Source MAC address of frame i, by which the receiver's report is matched."""
    return b"\x02\x11" + struct.pack("!I", i)


def number_of(text):
    return int(text.replace(":", "")[4:], 16)


def account(tx, rx):
    """Checks that sent = received + out of buffer + dropped by cause; returns a summary."""
    wire = tx["tx_copies"] - tx["tx_lost"] - tx["tx_failed"] + tx["tx_duplicated"]
    ends = {name: rx[name] for name in ENDS if rx[name]}
    arrived = rx["rx_frames"] + rx["rx_missed"]
    expect(wire == arrived, f"{wire} frames on the wire, {arrived} arrived or missed: {tx} {rx}")
    expect(not tx["rx_frames"], f"the sender received its own frames: {tx}")
    expect(rx["rx_frames"] == sum(ends.values()), f"arrived {rx['rx_frames']}, ends {ends}")
    return ", ".join(f"{k} {v}" for k, v in [("missed", rx["rx_missed"]), *ends.items()] if v)


def same(sent, got):
    """Checks that the frames are the same in the same order."""
    for i, (a, b) in enumerate(zip(sent, got)):
        expect(a == b, f"frame {i} of {len(a)} bytes changed, {len(b)} bytes: "
               f"{a[:64].hex()} {b[:64].hex()}")
    expect(len(sent) == len(got), f"sent {len(sent)}, received {len(got)}")


DISSECTED = ("frame raw eth eth_maybefcs eth_withoutfcs ethertype vlan ip ipv6 icmp udp tcp vxlan "
             "data pcap _ws.malformed").split()


def only_headers(folder):
    """A configuration folder of tshark with which it leaves random payload alone."""
    names = subprocess.run(["tshark", "-G", "protocols"], capture_output=True, text=True,
                           timeout=60, check=True).stdout.splitlines()
    names = {line.split("\t")[2] for line in names} - set(DISSECTED)
    (folder / "disabled_protos").write_text("\n".join(sorted(names)) + "\n")
    return folder


def tshark(path, *options):
    """Lines of tshark, which reads the frames that a test stored."""
    out = subprocess.run(["tshark", "-r", path, *options], capture_output=True, text=True,
                         timeout=120, check=False)
    expect(out.returncode == 0, f"tshark: {out.stderr[-300:]}")
    return out.stdout.splitlines()


def nothing_wrong(path, protocols=("ip", "udp", "tcp")):
    """tshark finds no malformed frame and no wrong checksum."""
    checks = [x for proto in protocols for x in
              ("-o", f"{proto}.check_checksum:TRUE")]
    wrong = "_ws.malformed || " + " || ".join(
        f'{p}.checksum.status == "Bad"' for p in protocols)
    lines = tshark(path, *checks, "-Y", wrong)
    expect(not lines, f"tshark finds in {path.name}: {lines[:3]}")


def reports(text):
    """What testpmd reports of each frame: number, length, fields and flags."""
    expect("INVALID mbuf" not in text, f"invalid mbuf: {text[-300:]}")
    found = {}
    for src, length, fields, flags in VERBOSE.findall(text):
        if src.startswith("02:11:"):
            i = number_of(src)
            expect(i not in found, f"frame {i} was received twice")
            found[i] = (int(length), fields, flags.split())
    return found


def receive_reports(pair, n=None, prepare=()):
    """Sends the file; returns the reports of all frames, or of n of them."""
    n = pair.count if n is None else n
    pair.rx.cmds("set fwd rxonly", "set verbose 1", *prepare, "start")
    start = len(pair.rx.log)
    pair.tx.cmds(*RETRY)
    pair.run()

    def complete():
        return len(re.findall(rb"ol_flags:[^\n]*\n", pair.rx.log[start:]))

    pair.rx.until(lambda: complete() >= n, lambda: f"{complete()} of {n} reports")
    return reports(pair.rx.text(start))
