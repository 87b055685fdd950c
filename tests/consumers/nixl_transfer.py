#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Transfers between two processes with NIXL's Python API: WRITE and READ of 1, 64 and 1024
descriptors, 8 bytes to 16 MiB in all, with and without a notification, and notifications alone in
both directions. Every byte of both sides is checked, also those between the descriptors.

usage: nixl_transfer.py target|initiator|alone ADDRESS PEER [options]
  alone only creates and destroys an agent, twice. Start the target first. ADDRESS is the own one,
  PEER the other's (control connection, port 7777).
  --wheel DIR     folder of an unpacked wheel nixl-cu13 (default: the installed package)
  --backend NAME  GPUNETIO (default) or UCX
  --memory KIND   gpu (default; with CUDA's runtime) or host
  --nic NAME      mlx5_0
  --largest BYTES largest transfer (16777216)
  --descs N       most descriptors (1024)
  --repeat N      posts of each request for the rate (20)
  --limit S       seconds until the program gives up (100)
The last line is "ok ..." or the exit status is not 0.

What the plugin GPUNETIO 1.4.0 can do limits the program (gpunetio_backend.cpp):
- prepXfer() uses the address at which the memory of a descriptor was registered, not that of the
  descriptor. So each descriptor is registered alone.
- Of a request with more than 512 descriptors it sends the first 512 several times. So 1024
  descriptors are two requests.
- A descriptor must begin where its memory does, but may be shorter.
- It has 32 requests in its life; xferRingPos then points behind the end of the ring.
- The message of a request's notification lies in one buffer for all requests. So the next request
  with a notification is made after the last one has completed.
The bindings do not pass a stream. With NIXL_ATTACH=1 the preloaded nixl_preload.so attaches one to
each request."""
import argparse
import ctypes
import faulthandler
import json
import os
import random
import socket
import sys
import threading
import time

PORT = 7777
CASES = (  # descriptors, bytes of each
    (1, 8), (1, 4096), (1, 1 << 20), (1, 16 << 20),
    (64, 8), (64, 4096), (64, 256 << 10),
    (1024, 8), (1024, 16 << 10),
)
MOST = 512  # descriptors of a request
GAP = 256
BLANK = 0xEE

here = "start"


def step(text):
    global here
    here = text


def watch():
    """In a thread, because the main one may wait in NIXL."""
    time.sleep(args.limit)
    print(f"{role}: FAIL not complete after {args.limit} s; in: {here}", flush=True)
    faulthandler.dump_traceback(sys.stdout)
    os._exit(4)


def fail(text):
    print(f"{role}: FAIL {text}", flush=True)
    os._exit(5)


# ---- memory ----
class Host:
    kind = "DRAM"

    def alloc(self, size):
        self.keep = getattr(self, "keep", [])
        buf = ctypes.create_string_buffer(size + 4096)
        self.keep.append(buf)
        return (ctypes.addressof(buf) + 4095) & ~4095

    def put(self, address, data):
        ctypes.memmove(address, data, len(data))

    def get(self, address, size):
        return ctypes.string_at(address, size)


class Gpu:
    kind = "VRAM"

    def __init__(self):
        self.cuda = ctypes.CDLL("libcudart.so.13")
        self.must(self.cuda.cudaSetDevice(0), "cudaSetDevice")
        self.must(self.cuda.cudaFree(None), "cudaFree(0)")

    def must(self, error, what):
        if error:
            fail(f"{what}: CUDA error {error}")

    def alloc(self, size):
        pointer = ctypes.c_void_p()
        self.must(self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)), "cudaMalloc")
        return pointer.value

    def copy(self, to, source, size):
        self.must(self.cuda.cudaMemcpy(to, source, ctypes.c_size_t(size), 4), "cudaMemcpy")

    def put(self, address, data):
        self.copy(ctypes.c_void_p(address), data, len(data))

    def get(self, address, size):
        buf = ctypes.create_string_buffer(size)
        self.copy(buf, ctypes.c_void_p(address), size)
        return buf.raw


class Region:
    """Memory of num descriptors of up to `most` bytes, with gaps between them."""

    def __init__(self, memory, num, most):
        self.memory, self.num, self.most = memory, num, most
        self.stride = (most + GAP + 255) & ~255
        self.bytes = num * self.stride
        self.base = memory.alloc(self.bytes)

    def image(self, size, seed):
        """The region with random data in `size` bytes of each descriptor; seed None: no data."""
        if seed is None:
            return bytes([BLANK]) * self.bytes
        gap = bytes([BLANK]) * (self.stride - size)
        data = random.Random(seed).randbytes(self.num * size)
        return b"".join(data[i * size:(i + 1) * size] + gap for i in range(self.num))

    def fill(self, size, seed):
        self.memory.put(self.base, self.image(size, seed))

    def check(self, size, seed, what):
        got, want = self.memory.get(self.base, self.bytes), self.image(size, seed)
        if got == want:
            return
        at = next(i for i in range(self.bytes) if got[i] != want[i])
        fail(f"{what}: byte {at % self.stride} of descriptor {at // self.stride} is {got[at]:#x},"
             f" expected {want[at]:#x}")

    def descs(self, base, size, first, num):
        return [(base + i * self.stride, size, 0) for i in range(first, first + num)]


# ---- the control connection ----
class Control:
    def __init__(self, own, peer):
        if role == "target":
            server = socket.create_server((own, PORT))
            self.sock, _ = server.accept()
            server.close()
        else:
            end = time.monotonic() + args.limit
            while True:
                try:
                    self.sock = socket.create_connection((peer, PORT))
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.1)
        self.file = self.sock.makefile("rw")

    def send(self, what, **more):
        print(json.dumps(dict(more, what=what)), file=self.file, flush=True)

    def get(self, expected=None):
        line = self.file.readline()
        if not line:
            fail(f"the peer closed the connection; in: {here}")
        message = json.loads(line)
        if expected and message["what"] != expected:
            fail(f"the peer sent {message['what']}, expected {expected}")
        return message


# ---- both sides ----
def create_agent():
    from nixl_cu13 import nixl_agent, nixl_agent_config

    step("create the agent")
    agent = nixl_agent(role, nixl_agent_config(backends=[]))
    params = {}
    if args.backend == "GPUNETIO":
        params = {"network_devices": args.nic, "gpu_devices": "0", "cuda_streams": "2"}
    step("create the backend")
    agent.create_backend(args.backend, params)
    return agent


def destroy_agent(agent):
    step("destroy the agent")
    agent.agent = None


class Side:
    def __init__(self):
        self.peer_name = "initiator" if role == "target" else "target"
        self.memory = Gpu() if args.memory == "gpu" else Host()
        self.control = Control(args.address, args.peer)
        self.agent = create_agent()
        step("register memory")
        start = time.monotonic()
        self.cases = [
            (num, size) for num, size in CASES if num * size <= args.largest and num <= args.descs
        ]
        most = dict(sorted(self.cases))  # the largest size of each number
        self.regions = {num: Region(self.memory, num, size) for num, size in most.items()}
        self.registered = []
        for r in self.regions.values():
            r.fill(0, None)
            descs = [d + ("",) for d in r.descs(r.base, r.most, 0, r.num)]
            regs = self.agent.get_reg_descs(descs, self.memory.kind)
            self.registered.append(self.agent.register_memory(regs, backends=[args.backend]))
        count = sum(self.regions)
        took = time.monotonic() - start
        print(f"{role}: {count} descriptors registered in {took:.2f} s", flush=True)
        self.exchange()

    def exchange(self):
        step("exchange metadata")
        self.control.send("metadata", metadata=self.agent.get_agent_metadata().hex(),
                          bases={n: r.base for n, r in self.regions.items()})
        message = self.control.get("metadata")
        self.bases = {int(n): base for n, base in message["bases"].items()}
        if role == "initiator":  # one side connects first; the other then finds the connection
            self.agent.add_remote_agent(bytes.fromhex(message["metadata"]))
            self.control.send("connected")
        else:
            self.control.get("connected")
            self.agent.add_remote_agent(bytes.fromhex(message["metadata"]))
            self.control.send("connected")
        if role == "initiator":
            self.control.get("connected")

    def await_notifs(self, expected):
        """Waits for these messages, in this order."""
        got = []
        while len(got) < len(expected):
            for message in self.agent.get_new_notifs([args.backend]).get(self.peer_name, []):
                got.append(message)
        if got != expected:
            bad = next(i for i, m in enumerate(expected) if got[i:i + 1] != [m])
            fail(f"notification {bad} is {got[bad][:80]!r}, expected {expected[bad][:80]!r}")

    def messages(self, seed):
        numbers = random.Random(seed)
        sizes = [1, 20, 300, 4000] + [numbers.randrange(1, 200) for _ in range(28)]
        return [bytes(numbers.randrange(33, 127) for _ in range(n)) for n in sizes]

    def close(self):
        step("deregister memory")
        for descs in self.registered:
            self.agent.deregister_memory(descs, backends=[args.backend])
        destroy_agent(self.agent)


def case_name(op, num, size):
    return f"{op} of {num} x {size} bytes"


# ---- target ----
def serve(side):
    while True:
        step("wait for a command")
        m = side.control.get()
        what = m["what"]
        if what == "end":
            return
        r = side.regions[m["num"]] if "num" in m else None
        step(f"{what} {m.get('name', '')}")
        if what == "fill":
            r.fill(m["size"], m["seed"])
        elif what == "check":
            r.check(m["size"], m["seed"], m["name"])
        elif what == "notifs":
            side.await_notifs([m["text"].encode()] * m["count"])
        elif what == "receive":
            side.await_notifs(side.messages(m["seed"]))
        elif what == "transmit":
            for text in side.messages(m["seed"]):
                side.agent.send_notif(side.peer_name, text)
        side.control.send("done")


# ---- initiator ----
def ask(side, what, **more):
    side.control.send(what, **more)
    if what != "end":
        side.control.get("done")


def run(side, handles, what):
    for handle in handles:
        state = side.agent.transfer(handle)
        while state == "PROC":
            state = side.agent.check_xfer_state(handle)
        if state != "DONE":
            fail(f"{what}: state {state}")


def transfer(side, op, num, size, notify):
    r = side.regions[num]
    name = case_name(op, num, size)
    case = {"num": num, "size": size, "name": name}
    text = f"{name} complete" if notify else ""
    seed = random.Random(name).randrange(1 << 30)
    ask(side, "fill", seed=None if op == "WRITE" else seed, **case)
    r.fill(size, seed if op == "WRITE" else None)
    step(f"make the request: {name}")
    handles = []
    for first in range(0, num, MOST):
        part = min(MOST, num - first)
        text_of = text.encode() if first + part == num else b""
        lists = [side.agent.get_xfer_descs(r.descs(base, size, first, part), side.memory.kind)
                 for base in (r.base, side.bases[num])]
        handles.append(side.agent.initialize_xfer(
            op, lists[0], lists[1], side.peer_name, text_of, [args.backend]))
    step(f"transfer: {name}")
    run(side, handles, name)
    ask(side, "check", seed=seed, **case)
    r.check(size, seed, name)
    count = 1 + args.repeat
    start = time.monotonic()
    for _ in range(args.repeat):
        run(side, handles, name)
    took = time.monotonic() - start
    if notify:
        ask(side, "notifs", text=text, count=count, name=name)
    rate = args.repeat * num * size / took
    note = ", notified" if notify else ""
    print(f"      {args.backend:8} {op:5} {num:5} x {size:9} bytes{note:10}"
          f" {1e6 * took / args.repeat:10.1f} us {rate * 8e-9:9.3f} Gb/s", flush=True)
    step(f"release: {name}")
    for handle in handles:
        handle.release()


def initiate(side):
    for op in ("WRITE", "READ"):
        for num, size in side.cases:
            transfer(side, op, num, size, op == "WRITE" or size == 8)
    step("notifications to the target")
    side.control.send("receive", seed=1)
    for text in side.messages(1):
        side.agent.send_notif(side.peer_name, text)
    side.control.get("done")
    step("notifications from the target")
    side.control.send("transmit", seed=2)
    side.await_notifs(side.messages(2))
    side.control.get("done")
    ask(side, "end")


parser = argparse.ArgumentParser()
parser.add_argument("role", choices=("target", "initiator", "alone"))
parser.add_argument("address")
parser.add_argument("peer")
parser.add_argument("--wheel")
parser.add_argument("--backend", default="GPUNETIO")
parser.add_argument("--memory", default="gpu", choices=("gpu", "host"))
parser.add_argument("--nic", default="mlx5_0")
parser.add_argument("--largest", type=int, default=16 << 20)
parser.add_argument("--descs", type=int, default=1024)
parser.add_argument("--repeat", type=int, default=20)
parser.add_argument("--limit", type=int, default=100)
args = parser.parse_args()
role = args.role
if args.wheel:
    sys.path.insert(0, args.wheel)
threading.Thread(target=watch, daemon=True).start()
if role == "alone":
    for _ in range(2):
        destroy_agent(create_agent())
    print("ok    alone", flush=True)
    sys.exit(0)
side = Side()
if role == "target":
    serve(side)
else:
    initiate(side)
side.close()
print(f"ok    {role}: {2 * len(side.cases)} transfers, 64 notifications", flush=True)
if args.backend == "UCX":
    # The wheel's UCX and the software NIC load two versions of libnl. One crashes at exit.
    os._exit(0)
