# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Machines that consist of the files that gpunetio_doctor reads: sysfs, procfs, /etc, /dev."""
import os
import struct

GPU = '0000:43:00.0'
GPU_SCOPE = 'gpu ' + GPU
MIB = 1 << 20
GIB = 1 << 30
ACS_REDIRECT = 0x1d  # source validation, request and completion redirect, upstream forwarding


class Link(str):
    """The target of a symbolic link."""


def config_space(acs):
    """4096 bytes with the extended capabilities AER and ACS."""
    space = bytearray(4096)
    space[0x100:0x104] = struct.pack('<I', 0x0001 | 2 << 16 | 0x148 << 20)
    space[0x148:0x150] = struct.pack('<IHH', 0x000d | 1 << 16, 0x5f, acs)
    return bytes(space)


class Machine:
    """Files by path. A folder exists if it has a file, or is in self.folders."""

    def __init__(self):
        self.files = {}
        self.folders = set()

    def set(self, path, content):
        self.files[path] = content

    def remove(self, path):
        """Removes a file, or a folder with all that it has."""
        gone = [p for p in self.files if p == path or p.startswith(path + '/')]
        gone_folders = {p for p in self.folders if p == path or p.startswith(path + '/')}
        assert gone or gone_folders, path
        for p in gone:
            del self.files[p]
        self.folders -= gone_folders

    def pci_folder(self, address):
        target = self.files['/sys/bus/pci/devices/' + address]
        return '/sys/devices/' + target.split('devices/', 1)[1]

    def pci(self, chain, **attributes):
        """A device below the host bridge and bridges chain[:-1]; names of attributes are files."""
        folder = '/sys/devices/' + '/'.join(chain)
        address = chain[-1]
        self.set('/sys/bus/pci/devices/' + address, Link('../../..' + folder[4:]))
        for name, content in attributes.items():
            self.set(folder + '/' + name, content)
        self.set(folder + '/config', attributes.get('config', config_space(0)))
        return folder

    def bridge(self, chain, node, bus, last=None, speed='32.0 GT/s PCIe'):
        """bus, last: the buses below the bridge."""
        config = bytearray(config_space(0))
        config[0x0e] = 1  # header of a bridge
        config[0x19:0x1b] = bus, last or bus
        self.pci(chain, vendor='0x1000\n', device='0xc030\n', subsystem_vendor='0x1000\n',
                 subsystem_device='0x1000\n', revision='0xb0\n', numa_node='%d\n' % node,
                 local_cpus='%x\n' % (1 << max(node, 0)), max_link_speed=speed + '\n',
                 max_link_width='16\n', config=bytes(config), **{'class': '0x060400\n'})

    def endpoint(self, chain, vendor, device, class_, node, driver, **more):
        iommu_type = more.pop('iommu_type', None)
        link = {'speed': '32.0 GT/s PCIe', 'width': 16}
        folder = self.pci(chain, vendor='0x%04x\n' % vendor, device='0x%04x\n' % device,
                          subsystem_vendor='0x%04x\n' % vendor, subsystem_device='0x0001\n',
                          revision='0x00\n', numa_node='%d\n' % node,
                          local_cpus='%x\n' % (1 << max(node, 0)),
                          current_link_speed=link['speed'] + '\n',
                          max_link_speed=link['speed'] + '\n',
                          current_link_width='%d\n' % link['width'],
                          max_link_width='%d\n' % link['width'], **{'class': class_ + '\n'}, **more)
        if driver:
            self.set(folder + '/driver', Link('/'.join(['..'] * (len(chain) + 1)) +
                                              '/bus/pci/drivers/' + driver))
        if iommu_type:
            self.iommu(chain[-1], iommu_type)
        return folder

    def iommu(self, address, type_, unit='dmar0'):
        folder = self.pci_folder(address)
        self.set(folder + '/iommu_group/type', type_ + '\n')
        self.set(folder + '/iommu', Link('../../virtual/iommu/' + unit))
        self.folders.add('/sys/class/iommu/' + unit)

    def gpu(self, chain, node=0, device=0x2335, model='NVIDIA H200', bar1=256 * GIB,
            driver='nvidia'):
        address = chain[-1]
        mem64 = 0x14220c
        bars = [(0x44040000000, 16 * MIB), None, (0x40000000000, bar1), None,
                (0x44042000000, 32 * MIB), None, None]
        lines = ['0x%016x 0x%016x 0x%016x' % (b[0], b[0] + b[1] - 1, mem64) if b and b[1]
                 else '0x%016x 0x%016x 0x%016x' % (0, 0, 0) for b in bars]
        self.endpoint(chain, 0x10de, device, '0x030200', node, driver,
                      resource='\n'.join(lines) + '\n')
        self.set('/proc/driver/nvidia/gpus/%s/information' % address,
                 'Model: \t\t %s\nIRQ:   \t\t 0\n' % model)

    def nic(self, name, chain, node=0, device=0x1021, layer='Ethernet'):
        folder = self.endpoint(chain, 0x15b3, device, '0x020000', node, 'mlx5_core')
        self.set('/sys/class/infiniband/' + name,
                 Link('../../devices/%s/infiniband/%s' % ('/'.join(chain), name)))
        self.set('%s/infiniband/%s/device' % (folder, name), Link('../../../' + chain[-1]))
        self.set('%s/infiniband/%s/ports/1/link_layer' % (folder, name), layer + '\n')
        number = len([p for p in self.files if p.startswith('/dev/infiniband/uverbs')])
        self.set('/dev/infiniband/uverbs%d' % number, '')

    def build(self, root):
        for folder in self.folders:
            os.makedirs(root + folder, exist_ok=True)
        for path, content in self.files.items():
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            if isinstance(content, Link):
                os.symlink(content, root + path)
            else:
                with open(root + path, 'wb') as f:
                    f.write(content if isinstance(content, bytes) else content.encode())


def cpus(m, packages):
    """One CPU and one NUMA node for each package, for hwloc only."""
    everywhere = '0-%d\n' % (packages - 1) if packages > 1 else '0\n'
    cpu, node = '/sys/devices/system/cpu', '/sys/devices/system/node'
    for name in 'online', 'possible', 'present':
        m.set(cpu + '/' + name, everywhere)
        m.set(node + '/' + name, everywhere)
    for i in range(packages):
        topology, mask = '%s/cpu%d/topology/' % (cpu, i), '%x\n' % (1 << i)
        m.set(topology + 'physical_package_id', '%d\n' % i)
        m.set(topology + 'core_id', '0\n')
        for name in 'thread_siblings', 'core_siblings', 'core_cpus', 'package_cpus':
            m.set(topology + name, mask)
        m.set('%s/node%d/cpumap' % (node, i), mask)
        m.set('%s/node%d/meminfo' % (node, i), 'Node %d MemTotal: 1048576 kB\n' % i)


OPEN = ('NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release Build  '
        '(root@build)  Sat May 24 07:03:13 UTC 2025\nGCC version:  gcc version 12.2.0\n')
CLOSED = ('NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC '
          '2023\nGCC version:  gcc version 12.2.0\n')
PARAMS = 'ResmanDebugLevel: 4294967295\nEnableStreamMemOPs: 0\nRegistryDwords: "%s"\nRmMsg: ""\n'
OVERRIDE = 'PeerMappingOverride=1;'
STATUS = 'Name:\tgpunetio_doctor\nCapPrm:\t%s\nCapEff:\t%s\n'
NO_CAPABILITIES = STATUS % ('0' * 16, '0' * 16)
LIMITS = ('Limit                     Soft Limit           Hard Limit           Units     \n'
          'Max processes             1029000              1029000              processes \n'
          'Max locked memory         %-20s %-20s bytes     \n')
CUDA_GPU = 'gpu %s memory 150109880320 integrated 0 dmabuf 1 persistence 1\n' % GPU
PERSISTENCED = '/run/nvidia-persistenced/nvidia-persistenced.pid'
SETTINGS = '''
Device #1:
----------

Device type:        BlueField3
Name:               900-9D3B6-00CV-A_Ax
Device:             0000:44:00.0

Configurations:                          Default      Current      Next Boot
        MEMIC_BAR_SIZE                  0            0            0
*       INTERNAL_CPU_OFFLOAD_ENGINE     ENABLED(0)   %s  %s
        LINK_TYPE_P1                    ETH(2)       %s       %s
        LINK_TYPE_P2                    ETH(2)       ETH(2)       ETH(2)
        REAL_TIME_CLOCK_ENABLE          False(0)     %s     %s
        ACCURATE_TX_SCHEDULER           False(0)     %s     %s
The '*' shows parameters with next value different from default/current value.
'''


def settings(engine='DISABLED(1)', link='ETH(2)', clock='True(1)', scheduler='True(1)', **now):
    return SETTINGS % (now.get('engine_now', engine), engine, now.get('link_now', link), link,
                       clock, clock, scheduler, scheduler)


def host(m):
    m.set('/proc/sys/kernel/osrelease', '6.8.0-60-generic\n')
    m.set('/proc/cmdline', 'BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt quiet\n')
    m.set('/proc/self/limits', LIMITS % ('unlimited', 'unlimited'))
    m.set('/proc/self/status', NO_CAPABILITIES)
    m.set('/proc/1/cgroup', '0::/init.scope\n')
    m.set('/proc/driver/nvidia/version', OPEN)
    m.set('/proc/driver/nvidia/params', PARAMS % OVERRIDE)
    cpus(m, 2)
    for module in 'ib_uverbs', 'mlx5_core', 'mlx5_ib', 'nvidia', 'nvidia_peermem':
        m.folders.add('/sys/module/' + module)
    m.set('/usr/lib/x86_64-linux-gnu/libibverbs.so.1', Link('libibverbs.so.1.14.50.0'))
    m.set('/usr/lib/x86_64-linux-gnu/libgdrapi.so.2', '')
    m.set('/dev/gdrdrv', '')
    m.set('/cuda.txt', 'version 12090\n' + CUDA_GPU)


def hgx():
    """Two sockets. Every distance from the one GPU to a NIC occurs."""
    m = Machine()
    host(m)
    a, b, far = 'pci0000:40', 'pci0000:60', 'pci0000:c0'
    port, up = '0000:40:01.0', '0000:41:00.0'
    m.bridge([a, port], 0, 0x41, 0x47)
    m.bridge([a, port, up], 0, 0x42, 0x47)
    for i, bus, last in (0, 0x43, 0x43), (1, 0x44, 0x44), (2, 0x45, 0x47):
        m.bridge([a, port, up, '0000:42:0%d.0' % i], 0, bus, last)
    m.gpu([a, port, up, '0000:42:00.0', GPU])
    m.nic('mlx5_0', [a, port, up, '0000:42:01.0', '0000:44:00.0'])
    m.bridge([a, port, up, '0000:42:02.0', '0000:45:00.0'], 0, 0x46, 0x47)
    m.bridge([a, port, up, '0000:42:02.0', '0000:45:00.0', '0000:46:00.0'], 0, 0x47)
    m.nic('mlx5_1', [a, port, up, '0000:42:02.0', '0000:45:00.0', '0000:46:00.0', '0000:47:00.0'])
    m.bridge([a, '0000:40:02.0'], 0, 0x48)
    m.nic('mlx5_2', [a, '0000:40:02.0', '0000:48:00.0'])
    m.bridge([b, '0000:60:01.0'], 0, 0x61)
    m.nic('mlx5_3', [b, '0000:60:01.0', '0000:61:00.0'])
    m.bridge([far, '0000:c0:01.0'], 1, 0xc1)
    m.nic('mlx5_4', [far, '0000:c0:01.0', '0000:c1:00.0'], node=1)
    m.folders.add('/sys/class/iommu/dmar0')
    m.iommu(GPU, 'identity')
    for nic in '0000:44:00.0', '0000:47:00.0', '0000:48:00.0', '0000:61:00.0', '0000:c1:00.0':
        m.iommu(nic, 'identity')
        m.set('/mlxconfig/%s.txt' % nic, settings())
    return m


def far_apart():
    """GPU and NIC on different sockets; no NIC is nearer."""
    m = hgx()
    for nic in 'mlx5_0', 'mlx5_1', 'mlx5_2', 'mlx5_3':
        m.remove('/sys/class/infiniband/' + nic)
    return m


def two_ports():
    """A NIC with an InfiniBand port and, as its function 1, an Ethernet port."""
    m = hgx()
    m.nic('mlx5_5', ['pci0000:40', '0000:40:02.0', '0000:48:00.1'])
    m.set('/mlxconfig/0000:48:00.1.txt', settings(link='IB(1)'))
    return m


def bluefield():
    """A BlueField-3 in DPU mode, with InfiniBand ports."""
    m = hgx()
    folder = m.pci_folder('0000:44:00.0')
    m.set(folder + '/device', '0xa2dc\n')
    m.set(folder + '/infiniband/mlx5_0/ports/1/link_layer', 'InfiniBand\n')
    m.set('/mlxconfig/0000:44:00.0.txt', settings('ENABLED(0)', 'IB(1)', 'False(0)', 'False(0)'))
    return m


def spark():
    """DGX Spark: an integrated GPU without BAR1, an SMMU, one NUMA node."""
    m = Machine()
    host(m)
    m.set('/proc/driver/nvidia/version', OPEN.replace('x86_64', 'aarch64').replace('575', '580'))
    m.remove('/sys/devices/system')
    cpus(m, 1)
    m.remove('/cuda.txt')
    m.remove('/sys/module/nvidia_peermem')
    m.bridge(['pci000f:00', '000f:00:00.0'], -1, 1)
    m.gpu(['pci000f:00', '000f:00:00.0', '000f:01:00.0'], -1, 0x2e12, 'NVIDIA GB10', 0)
    m.bridge(['pci0000:00', '0000:00:00.0'], -1, 1)
    m.nic('rocep1s0f0', ['pci0000:00', '0000:00:00.0', '0000:01:00.0'], -1)
    m.iommu('000f:01:00.0', 'DMA', 'smmu3.0x0000000011000000')
    return m


def container():
    """The files of a container that was started without --device /dev/infiniband."""
    m = hgx()
    m.remove('/dev/infiniband')
    m.set('/.dockerenv', '')
    m.set('/proc/self/limits', LIMITS % ('65536', '65536'))
    return m


def changed(base, *changes):
    """A function that builds base with changes: (path, content), or (path, None) to remove it.

    {address} in a path is the folder of a PCI device."""
    def make():
        m = base()
        for path, content in changes:
            if path.startswith('{'):
                address, rest = path[1:].split('}')
                path = m.pci_folder(address) + rest
            if content is None:
                m.remove(path)
            else:
                m.set(path, content)
        return m
    return make
