# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""dpdk-testpmd on the software NIC, controlled through a pseudo terminal."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time

RUN = os.path.join(os.environ.get("B") or "build", "bin", "softnic-run")
PCI = "5043:00:01.0"
PROMPT = b"testpmd> "
LOG_TAIL = 1500
SLOW = 100  # seconds; other tests may keep both processors busy
PORT = 0  # the NIC; a file of frames is port 1


# testpmd has a session of its own, so a test that is ended must end it, by its `finally`.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Failed(Exception):
    pass


def expect(holds, text):
    if not holds:
        raise Failed(text)


def file_port(source=None, target=None, queues=1):
    """EAL option for a port that reads frames from a pcap file or writes them to one."""
    parts = [f"rx_pcap={source}"] * queues if source else []
    parts += [f"tx_pcap={target}{'' if i == 0 else i}" for i in range(queues)] if target else []
    return "--vdev=net_pcap0," + ",".join(parts)


def counters(folder):
    """Counters of a NIC, added up over its processes, without the prefix eth_."""
    total = {}
    for path in folder.glob("*.json"):
        for key, value in json.loads(path.read_text()).items():
            if key.startswith("eth_") and isinstance(value, int):
                total[key[4:]] = total.get(key[4:], 0) + value
    return total


def usage(*testpmds):
    """Of each thread: ns on a processor, ns ready to run without one, number of time slices."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            group = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[2])
            if group not in [t.process.pid for t in testpmds]:
                continue
            for thread in stat.parent.glob("task/*/schedstat"):
                found[thread] = [int(x) for x in thread.read_text(encoding="utf-8").split()]
        except OSError:  # it has ended
            continue
    return found


def starved(then, *testpmds):
    """Whether a thread has waited for a processor for 50 ms since then, and has hardly run."""
    now = usage(*testpmds)
    return any(now[t][1] > then[t][1] + 50000000 and now[t][0] < then[t][0] + 5000000 and
               now[t][2] < then[t][2] + 5 for t in then if t in now)


class Testpmd:
    """A process on a NIC of its own with the address ip. nic: options of softnic-run; device:
    arguments of DPDK's driver; eal, app: further options of testpmd."""

    started = 0

    def __init__(self, folder, name, ip, nic="", device="dv_flow_en=1", eal=(), app=()):
        Testpmd.started += 1
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir()
        self.stats_dir = self.folder / "stats"
        self.name, self.ip, self.log = name, ip, b""
        parent, child = pty.openpty()
        self.fd = parent
        command = [
            RUN, "--strict", "--ip", ip, "--stats-dir", self.stats_dir, *nic.split(), "--",
            "dpdk-testpmd", "--no-huge", "-m", "256", "-l", "0,1", "--no-telemetry",
            # a name of its own: files of a killed testpmd would stop the next one
            "--file-prefix", f"gdaki{os.getpid()}{name}{Testpmd.started}", "-a",
            f"{PCI},{device},rxq_cqe_comp_en=0", *eal, "--", "-i",
            "--no-lsc-interrupt", "--no-mlockall", "--no-flush-rx", "--disable-link-check", *app]
        env = dict(os.environ, TERM="dumb")
        self.process = subprocess.Popen(command, stdin=child, stdout=child, env=env,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        os.close(child)

    def fail(self, text):
        tail = self.log[-LOG_TAIL:].decode(errors="replace").replace("\r", "")
        raise Failed(f"{self.name}: {text}\n{tail}")

    def read(self, seconds):
        """Reads what there is; waits up to `seconds` for it. Returns False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.log += data
        return bool(data)

    def until(self, found, what, seconds=SLOW):
        """Reads until found() is true. The limit counts from the last output."""
        end = time.monotonic() + seconds
        while not found():
            seen = len(self.log)
            if not self.read(0.05):
                self.fail(f"ended before {what}")
            if len(self.log) > seen:
                end = time.monotonic() + seconds
            if time.monotonic() > end:
                self.fail(f"no {what() if callable(what) else what} after {seconds} s")

    def ready(self):
        self.until(lambda: self.log.endswith(PROMPT), "prompt")
        ports = self.cmd("show port summary all")
        if not re.search(rf"^{PORT} .* mlx5_pci ", ports, re.M):
            self.fail("the NIC was not probed")
        return self

    def text(self, start=0):
        return self.log[start:].decode(errors="replace").replace("\r", "")

    def cmd(self, line, seconds=SLOW):
        """Executes a command; returns its output."""
        start = len(self.log)
        os.write(self.fd, line.encode() + b"\n")
        first = start + len(line)
        self.until(lambda: PROMPT in self.log[first:], f"end of \"{line}\"", seconds)
        text = self.text(start)
        if re.search("Bad arguments|Command not found|Ambiguous|Not all ports were|Fail to", text):
            self.fail(f"\"{line}\" was refused")
        return text

    def cmds(self, *lines):
        return [self.cmd(line) for line in lines]

    def stats(self, port=PORT):
        """The port's counters."""
        text = self.cmd(f"show port stats {port}")
        return {key: int(value) for key, value in re.findall(r"([RT]X-\w+): +(\d+)", text)}

    def wait_stat(self, key, value, seconds=SLOW, port=PORT):
        """Waits until a counter has reached a value; returns it. The limit counts from its last
        change."""
        end, last = time.monotonic() + seconds, -1
        while True:
            now = self.stats(port)[key]
            if now >= value:
                return now
            if now != last:
                end, last = time.monotonic() + seconds, now
            if time.monotonic() > end:
                self.fail(f"{key} of port {port} is {now} for {seconds} s, expected {value}")
            time.sleep(0.05)

    def wait_still(self, key, other, seconds=SLOW, port=PORT):
        """Waits until a counter does not change for 3 s in which no thread of this testpmd and of
        the other one is starved. After lost requests of --eth-pause a port sends nothing for more
        than a second (RECLAIM_NS in eth_pause.c)."""
        end, still = time.monotonic() + seconds, False
        while not still:
            before, then = self.stats(port)[key], usage(self, other)
            time.sleep(3)
            still = self.stats(port)[key] == before and not starved(then, self, other)
            if not still and time.monotonic() > end:
                self.fail(f"{key} of port {port} still changes after {seconds} s, or a thread gets "
                          "no processor")

    def quit(self):
        """Ends the program and returns the NIC's counters. A violation or crash is an error."""
        os.write(self.fd, b"quit\n")
        end = time.monotonic() + SLOW
        while self.read(0.05) and time.monotonic() < end:
            if self.process.poll() is not None:
                break
        try:
            status = self.process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.fail("does not end after quit")
        while self.read(0) and select.select([self.fd], [], [], 0)[0]:
            pass
        if status:
            self.fail(f"exit status {status}")
        return self.counters()

    def counters(self):
        return counters(self.stats_dir)

    def end(self):
        """Ends the program at once, if it still runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.fd)
