# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Describes the machine for a report of tests/hw/run, and masks private values in the report."""
import glob
import os
import platform
import re
import resource
import shutil
import socket
import subprocess

SYS_IB = "/sys/class/infiniband"


def read(path, otherwise="-"):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read().strip() or otherwise
    except OSError:
        return otherwise


def output_of(*argv):
    """Returns the first line that a program prints; "-" if it prints none in time."""
    if not shutil.which(argv[0]):
        return "-"
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=20, check=False)
        return done.stdout.decode(errors="replace").strip().split("\n")[0] or "-"
    except (OSError, subprocess.TimeoutExpired):
        return "-"


def devices():
    return sorted(os.listdir(SYS_IB)) if os.path.isdir(SYS_IB) else []


def uverbs_of(device):
    for path in glob.glob("/sys/class/infiniband_verbs/uverbs*"):
        if read(path + "/ibdev") == device:
            return "/dev/infiniband/" + os.path.basename(path)
    return None


def why_not(device):
    """Returns the reason why a device of this host cannot be tested, or None."""
    if device not in devices():
        return "no RDMA device %s (found: %s)" % (device, ", ".join(devices()) or "none")
    link = "%s/%s/device/driver" % (SYS_IB, device)
    driver = os.path.basename(os.path.realpath(link)) if os.path.exists(link) else "mlx5_core"
    if driver != "mlx5_core":
        return "the driver of %s is %s, expected mlx5_core" % (device, driver)
    node = uverbs_of(device)
    if not node or not os.access(node, os.R_OK | os.W_OK):
        return "%s: no permission for %s" % (device, node or "its /dev/infiniband/uverbs file")
    return None


def device_facts(device):
    at = "%s/%s" % (SYS_IB, device)
    pci = at + "/device/"
    yield "PCI id", "%s:%s subsystem %s:%s revision %s" % tuple(
        read(pci + f) for f in ("vendor", "device", "subsystem_vendor", "subsystem_device",
                                "revision"))
    yield "firmware", read(at + "/fw_ver")
    yield "board", read(at + "/board_id")
    yield "NUMA node", read(pci + "numa_node")
    for port in sorted(glob.glob(at + "/ports/*")):
        yield "port " + os.path.basename(port), "%s, %s, %s" % tuple(
            read(port + "/" + f) for f in ("link_layer", "state", "rate"))
    yield "PCI function", "virtual" if os.path.exists(pci + "physfn") else "physical"


def host_facts():
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', read("/etc/os-release"), re.M)
    yield "system", "%s %s %s, %s" % (platform.system(), platform.release(), platform.machine(),
                                      release[1] if release else "-")
    yield "CPUs", "%s, page size %d" % (os.cpu_count(), resource.getpagesize())
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    yield "locked memory", "unlimited" if limit < 0 else "%d KiB" % (limit // 1024)
    yield "user", "root" if os.geteuid() == 0 else "not root"
    yield "OFED", output_of("ofed_info", "-s")
    yield "rdma-core package", output_of("dpkg-query", "-W", "-f", "${Version}", "libibverbs1") \
        if shutil.which("dpkg-query") else output_of("rpm", "-q", "libibverbs")
    yield "mlx5 driver", read("/sys/module/mlx5_core/version", "of the kernel")
    yield "NVIDIA driver", read("/proc/driver/nvidia/version").split("\n")[0]
    yield "GPUs", output_of("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader")
    yield "nvidia_peermem", "loaded" if os.path.isdir("/sys/module/nvidia_peermem") else "-"
    yield "IOMMU groups", "yes" if glob.glob("/sys/kernel/iommu_groups/*") else "no"
    yield "gdaki", output_of("git", "describe", "--always", "--dirty")


class Mask:
    """Replaces names and addresses in a text that is sent to others."""

    def __init__(self, names):
        """names: {name: its replacement}"""
        names = dict(names)
        names.setdefault(socket.gethostname(), "HOST")
        names.setdefault(os.path.expanduser("~"), "HOME")
        names.setdefault(os.getcwd(), ".")
        self.names = [(n, names[n]) for n in sorted(names, key=len, reverse=True)
                      if len(n) > 2 and names[n] != n]

    def __call__(self, text):
        for name, instead in self.names:
            text = re.sub(r"(?<![\w-])%s(?![\w-])" % re.escape(name), instead, text)
        text = re.sub(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.])", "IP", text)
        text = re.sub(r"(?<![\w:])([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])", "MAC", text)
        text = re.sub(r"(?<![\w:])([0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{0,4}(?![\w:])", "GID", text)
        text = re.sub(r"\b(addr(?:ess)?|[rl]?key|gid|guid) 0x[0-9a-fA-F]+", r"\1 **", text)
        return re.sub(r"\b0x[0-9a-fA-F]{9,16}\b", "0x**", text)
