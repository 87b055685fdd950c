#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""gpunetio_doctor's checks of host, driver, GPU and of the path to the NIC.

The machines are constructed, see lib/machines.py. Each check has a machine on which it passes and
one on which it does not; level, text and remedy are compared. If lstopo of hwloc is installed, it
must find the same PCIe distances.

usage: doctor_host.py [WORD]    only the cases whose name contains the word; B: build folder (build)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))
import machines as M  # noqa: E402 (the folder must be in the path first)
from machines import changed, hgx  # noqa: E402

DOCTOR = os.path.join(os.environ.get('B', 'build'), 'bin', 'gpunetio_doctor')
GPU, NIC = '{%s}' % M.GPU, '{0000:44:00.0}'
G, N, PAIR = M.GPU_SCOPE, 'mlx5_0', M.GPU_SCOPE + ' + mlx5_0'
VERSION = '/proc/driver/nvidia/version'
PARAMS = '/proc/driver/nvidia/params'
LIBRARY = '/usr/lib/x86_64-linux-gnu/'
KERNEL = '/proc/sys/kernel/osrelease'
ADMIN = M.STATUS % ('0' * 16, '%016x' % (1 << 21))
NO_FIX = None


def version(text):
    return M.OPEN.replace('575.57.08', text)


def closed(*changes):
    """The closed driver without nvidia-peermem."""
    return changed(hgx, (VERSION, M.CLOSED), ('/sys/module/nvidia_peermem', None),
                   ('/cuda.txt', 'version 12020\n' + M.CUDA_GPU.replace('dmabuf 1', 'dmabuf 0')),
                   *changes)


def without_memory(*changes):
    """CUDA does not report the GPU's memory."""
    return changed(hgx, ('/cuda.txt', 'version 12090\n'), *changes)


def module(name):
    return '/sys/module/' + name


def link(device, **values):
    """Changed link attributes of a device."""
    return [(device + '/' + name, value + '\n') for name, value in values.items()]


# name, machine, [scope, check, level, part of the text, part of the remedy (NO_FIX: none)]
CASES = [
    ('good', hgx, [
        ('host', 'kernel', 'ok', 'Linux 6.8.0-60-generic (6.2 or newer)', NO_FIX),
        ('host', 'rdma-core', 'ok', 'rdma-core 50 (libibverbs.so.1.14.50.0)', NO_FIX),
        ('host', 'nvidia-driver', 'ok', 'driver 575.57.08 with open kernel modules', NO_FIX),
        ('host', 'cuda', 'ok', 'CUDA 12.9', NO_FIX),
        ('host', 'nvidia-peermem', 'ok', 'nvidia_peermem is loaded', NO_FIX),
        ('host', 'gdrcopy', 'ok', '/dev/gdrdrv and ' + LIBRARY + 'libgdrapi.so.2', NO_FIX),
        ('host', 'peer-mapping', 'ok', 'PeerMappingOverride=1 is set', NO_FIX),
        ('host', 'persistence', 'ok', 'on for 1 of 1 GPUs', NO_FIX),
        ('host', 'rdma-modules', 'ok', 'the kernel has 5 RDMA devices', NO_FIX),
        ('host', 'rdma-device-files', 'ok', '/dev/infiniband has 5 uverbs files', NO_FIX),
        ('host', 'memlock', 'ok', 'not limited', NO_FIX),
        ('host', 'iommu', 'note', '1 IOMMU is active (dmar0 ...); the kernel was started with '
                                  'iommu=pt', NO_FIX),
        ('host', 'nearest-nic', 'note', M.GPU + ' + mlx5_0 (PIX)', NO_FIX),
        (G, 'gpu-driver', 'ok', 'NVIDIA H200, used by the NVIDIA driver', NO_FIX),
        (G, 'gpu-memory', 'ok', 'by dmabuf; nvidia-peermem is loaded, too', NO_FIX),
        (G, 'bar1', 'ok', 'BAR1 has 262144 MiB, all memory of the GPU (143155 MiB)', NO_FIX),
        (G, 'pcie-link', 'ok', '32 GT/s x16', NO_FIX),
        (G, 'numa-node', 'ok', 'NUMA node 0 (nodes of the machine: 0-1)', NO_FIX),
        (G, 'iommu', 'ok', 'type identity', NO_FIX),
        (N, 'pcie-link', 'ok', '32 GT/s x16', NO_FIX),
        (N, 'numa-node', 'ok', 'NUMA node 0', NO_FIX),
        (N, 'iommu', 'ok', 'type identity', NO_FIX),
        (N, 'link-type', 'ok', 'Ethernet (LINK_TYPE_P1=ETH(2))', NO_FIX),
        (N, 'real-time-clock', 'note', 'REAL_TIME_CLOCK_ENABLE=True(1)', NO_FIX),
        (N, 'accurate-tx-scheduler', 'note', 'ACCURATE_TX_SCHEDULER=True(1)', NO_FIX),
        (PAIR, 'distance', 'ok', 'PIX: at most one PCIe switch', NO_FIX),
        (G + ' + mlx5_1', 'distance', 'ok', 'PXB: several PCIe switches', NO_FIX),
        (G + ' + mlx5_2', 'distance', 'note', 'PHB: the same PCIe host bridge', NO_FIX),
        (G + ' + mlx5_3', 'distance', 'warn', 'NODE: different host bridges of one NUMA node',
         'use mlx5_0 with this GPU'),
        (G + ' + mlx5_4', 'distance', 'warn', 'SYS: different NUMA nodes',
         'use mlx5_0 with this GPU'),
        (PAIR, 'numa', 'ok', 'GPU on NUMA node 0, NIC on NUMA node 0', NO_FIX),
        (G + ' + mlx5_4', 'numa', 'warn', 'GPU on NUMA node 0, NIC on NUMA node 1',
         'use mlx5_0 with this GPU'),
        (PAIR, 'acs', 'ok', 'no bridge between GPU and NIC redirects', NO_FIX),
    ]),

    # ---- kernel and rdma-core ----
    ('kernel_5.10', changed(hgx, (KERNEL, '5.10.0-29-amd64\n')), [
        ('host', 'kernel', 'warn', 'Linux 5.10.0-29-amd64: queue memory needs 5.11',
         '6.2 or newer'),
        (G, 'gpu-memory', 'ok', 'by peer memory (no dmabuf: Linux 5.10.0-29-amd64 is older than '
                                '5.12)', NO_FIX)]),
    ('kernel_5.10_with_newer_drivers',
     changed(hgx, (KERNEL, '5.10.0\n'), (module('mlx5_core/taint'), 'OE\n')),
     [('host', 'kernel', 'note', 'mlx5_core is such a driver', '6.2 or newer')]),
    ('kernel_5.11', changed(hgx, (KERNEL, '5.11.22\n')),
     [('host', 'kernel', 'warn', 'from a dmabuf need 5.12', '6.2 or newer')]),
    ('kernel_5.15', changed(hgx, (KERNEL, '5.15.0-91-generic\n')),
     [('host', 'kernel', 'warn', 'guide requires 6.2', '6.2 or newer')]),
    ('kernel_6.1', changed(hgx, (KERNEL, '6.1.0-13-amd64\n')),
     [('host', 'kernel', 'warn', 'guide requires 6.2', '6.2 or newer')]),
    ('kernel_not_known', changed(hgx, (KERNEL, None)),
     [('host', 'kernel', 'unknown', 'No such file', 'uname -r')]),
    ('rdma_core_28', changed(hgx, (LIBRARY + 'libibverbs.so.1', M.Link('libibverbs.so.1.11.28.0')),
                             (module('nvidia_peermem'), None)),
     [('host', 'rdma-core', 'warn', 'rdma-core 28 (libibverbs.so.1.11.28.0) cannot', '34 or newer'),
      (G, 'gpu-memory', 'warn', 'no dmabuf (rdma-core 28 is older than 34)', 'modprobe')]),
    ('rdma_core_not_found', changed(hgx, (LIBRARY + 'libibverbs.so.1', None)),
     [('host', 'rdma-core', 'unknown', 'not found', 'dpkg -l libibverbs1')]),
    ('rdma_core_of_rpm', changed(hgx, (LIBRARY + 'libibverbs.so.1', None),
                                 ('/usr/lib64/libibverbs.so.1', M.Link('libibverbs.so.1.14.54.0'))),
     [('host', 'rdma-core', 'ok', 'rdma-core 54', NO_FIX)]),

    # ---- driver ----
    ('closed_driver_without_peermem', closed(), [
        ('host', 'nvidia-driver', 'warn', 'driver 535.104.05 with closed kernel modules',
         'nvidia-open'),
        ('host', 'nvidia-peermem', 'warn', 'not loaded (', 'modprobe nvidia-peermem'),
        (G, 'gpu-memory', 'warn', 'no dmabuf (the kernel modules of the driver are closed), and '
                                  'nvidia-peermem is not loaded', 'modprobe nvidia-peermem')]),
    ('closed_driver_with_peermem', changed(hgx, (VERSION, M.CLOSED)), [
        (G, 'gpu-memory', 'ok', 'by peer memory', NO_FIX)]),
    ('closed_driver_with_old_peermem', closed((module('nv_peer_mem/version'), '1.2\n')), [
        ('host', 'nvidia-peermem', 'note', 'nv_peer_mem is loaded', 'modprobe -r nv_peer_mem'),
        (G, 'gpu-memory', 'ok', 'by peer memory', NO_FIX)]),
    ('open_driver_510', changed(hgx, (VERSION, version('510.108.03')),
                                (module('nvidia_peermem'), None)),
     [('host', 'nvidia-driver', 'warn', 'driver 510.108.03 with open kernel modules: dmabuf needs',
       '515 or newer'),
      (G, 'gpu-memory', 'warn', 'the driver is older than 515', 'modprobe nvidia-peermem')]),
    ('open_driver_without_peermem', changed(hgx, (module('nvidia_peermem'), None)),
     [('host', 'nvidia-peermem', 'note', 'not loaded; dmabuf replaces it', 'modprobe'),
      (G, 'gpu-memory', 'ok', 'by dmabuf', NO_FIX)]),
    ('driver_kind_by_taint_open', changed(hgx, (VERSION, None), (PARAMS, None),
                                          (module('nvidia/version'), '575.57.08\n'),
                                          (module('nvidia/taint'), 'OE\n')),
     [('host', 'nvidia-driver', 'ok', 'driver 575.57.08 with open', NO_FIX),
      ('host', 'peer-mapping', 'unknown', 'params could not be read', 'grep RegistryDwords')]),
    ('driver_kind_by_taint_closed', changed(hgx, (VERSION, None),
                                            (module('nvidia/version'), '575.57.08\n'),
                                            (module('nvidia/taint'), 'POE\n')),
     [('host', 'nvidia-driver', 'warn', 'driver 575.57.08 with closed', 'nvidia-open')]),
    ('driver_kind_not_known', changed(hgx, ('/cuda.txt', None), (VERSION, None),
                                      (module('nvidia_peermem'), None),
                                      (module('nvidia/version'), '575.57.08\n')),
     [('host', 'nvidia-driver', 'unknown', 'driver 575.57.08; whether', 'modinfo -F license'),
      (G, 'gpu-memory', 'unknown', 'could not be read', 'modinfo -F license')]),
    ('driver_not_loaded', changed(hgx, ('/cuda.txt', None), (VERSION, None), (PARAMS, None),
                                  (GPU + '/driver', None)),
     [('host', 'nvidia-driver', 'warn', 'not loaded', 'modprobe nvidia'),
      (G, 'gpu-driver', 'FAIL', 'no driver uses NVIDIA H200', 'modprobe nvidia'),
      (G, 'gpu-memory', 'unknown', 'not loaded', 'modprobe nvidia')]),
    ('gpu_that_only_cuda_lists', changed(hgx, (VERSION, None), (PARAMS, None),
                                         ('/sys/bus/pci/devices/' + M.GPU, None)),
     [('host', 'nvidia-driver', 'unknown', 'driver of unknown version', 'modinfo'),
      (G, 'gpu-driver', 'unknown', 'CUDA lists the GPU, but sysfs does not show it', 'nvidia-smi'),
      (G, 'gpu-memory', 'ok', 'by dmabuf', NO_FIX),
      (PAIR, 'distance', 'unknown', 'sysfs does not show', 'nvidia-smi topo -m')]),
    ('no_gpu', changed(hgx, ('/cuda.txt', None), (VERSION, None), (GPU + '/class', '0x020000\n')),
     [('host', 'nvidia-driver', 'note', 'no NVIDIA GPU and no NVIDIA driver', NO_FIX)]),
    ('gpu_of_another_vendor', changed(hgx, ('/cuda.txt', None), (VERSION, None),
                                      (GPU + '/vendor', '0x1002\n')),
     [('host', 'nvidia-driver', 'note', 'no NVIDIA GPU and no NVIDIA driver', NO_FIX)]),
    ('cuda_11.4', changed(hgx, ('/cuda.txt', 'version 11040\n')),
     [('host', 'cuda', 'warn', 'CUDA 11.4: dmabuf needs 11.7', '515 or newer')]),
    ('cuda_fails', changed(hgx, ('/cuda.txt', 'version 12090\nerror cuInit: 802\n')),
     [('host', 'cuda', 'warn', 'cannot be used: cuInit: 802', 'nvidia-smi')]),
    ('cuda_not_known', changed(hgx, ('/cuda.txt', None)),
     [('host', 'cuda', 'unknown', 'cuda.txt: No such file', 'nvidia-smi')]),
    ('gdrcopy_without_module', changed(hgx, ('/dev/gdrdrv', None)),
     [('host', 'gdrcopy', 'note', '/dev/gdrdrv does not', 'modprobe gdrdrv')]),
    ('gdrcopy_without_library', changed(hgx, (LIBRARY + 'libgdrapi.so.2', None)),
     [('host', 'gdrcopy', 'note', 'libgdrapi.so.2 was not found', 'GDRCOPY_PATH_L')]),
    ('no_gdrcopy', changed(hgx, ('/dev/gdrdrv', None), (LIBRARY + 'libgdrapi.so.2', None)),
     [('host', 'gdrcopy', 'note', 'not installed', 'gdrcopy')]),
    ('no_peer_mapping', changed(hgx, (PARAMS, M.PARAMS % '')),
     [('host', 'peer-mapping', 'warn', 'not set: .*does not have; handlers 2, 6 and 10 need it',
       "echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' > /etc/")]),
    ('peer_mapping_0', changed(hgx, (PARAMS, M.PARAMS % 'PeerMappingOverride=0;')),
     [('host', 'peer-mapping', 'warn', 'not set', 'update-initramfs -u')]),
    ('peer_mapping_for_root', changed(hgx, (PARAMS, M.PARAMS % ''), ('/proc/self/status', ADMIN)),
     [('host', 'peer-mapping', 'note', 'CAP_SYS_ADMIN, which this process has', 'dracut -f')]),
    ('peer_mapping_not_active', changed(hgx, (PARAMS, M.PARAMS % ''), (
        '/etc/modprobe.d/nv.conf',
        '# options nvidia\noptions nvidia NVreg_RegistryDwords="PeerMappingOverride=1;"\n')),
     [('host', 'peer-mapping', 'warn', '/etc/modprobe.d/nv.conf sets', '^update-initramfs -u')]),
    ('peer_mapping_per_gpu', changed(hgx, (
        PARAMS, 'RegistryDwords: ""\nRegistryDwordsPerDevice: "pci=0000:43:00.0;' + M.OVERRIDE +
                '"\n')),
     [('host', 'peer-mapping', 'note', 'some GPUs only', NO_FIX)]),
    ('persistence_off', changed(hgx, ('/cuda.txt', 'version 12090\n' + M.CUDA_GPU.replace(
        'persistence 1', 'persistence 0'))),
     [('host', 'persistence', 'warn', 'on for 0 of 1', 'nvidia-smi -pm 1')]),
    ('persistence_by_daemon',
     changed(hgx, ('/cuda.txt', 'version 12090\n'), (M.PERSISTENCED, '812\n'),
             ('/proc/812/cmdline', '/usr/bin/nvidia-persistenced\0--user\0nvpd\0')),
     [('host', 'persistence', 'ok', 'nvidia-persistenced runs', NO_FIX)]),
    ('persistence_not_known',
     changed(hgx, ('/cuda.txt', 'version 12090\n'), (M.PERSISTENCED, '812\n'),
             ('/proc/812/cmdline', 'nvidia-persistenced\0--no-persistence-mode\0')),
     [('host', 'persistence', 'unknown', '--no-persistence-mode', 'query-gpu=persistence_mode')]),
    ('persistenced_ended', changed(hgx, ('/cuda.txt', 'version 12090\n'),
                                   (M.PERSISTENCED, '812\n')),
     [('host', 'persistence', 'unknown', 'does not run', 'nvidia-smi -pm 1')]),

    # ---- RDMA stack, limits, container, IOMMU ----
    ('container', M.container, [
        ('host', 'container', 'note', '/.dockerenv exists', '--device /dev/infiniband'),
        ('host', 'rdma-device-files', 'FAIL', 'no uverbs file', 'docker run --device'),
        ('host', 'memlock', 'warn', 'limited to 64 KiB', 'ulimit memlock=-1')]),
    ('container_of_podman', changed(hgx, ('/run/.containerenv', '')),
     [('host', 'container', 'note', '/run/.containerenv exists', 'memlock')]),
    ('container_of_kubernetes', changed(hgx, ('/proc/1/cgroup', '1:cpu:/kubepods/burstable/x\n')),
     [('host', 'container', 'note', 'contains "kubepods"', 'memlock')]),
    ('no_device_files', changed(hgx, ('/dev/infiniband', None)),
     [('host', 'rdma-device-files', 'FAIL', 'no RDMA device .* can be opened',
       'modprobe ib_uverbs')]),
    ('no_rdma_modules', changed(hgx, ('/sys/class/infiniband', None), ('/dev/infiniband', None),
                                (module('mlx5_ib'), None), (module('ib_uverbs'), None)),
     [('host', 'rdma-modules', 'warn', 'not loaded: ib_uverbs mlx5_ib',
       'modprobe -a ib_uverbs mlx5_ib'),
      ('host', 'rdma-device-files', 'warn', 'no uverbs file', 'rdma-modules')]),
    ('no_nic', changed(hgx, ('/sys/class/infiniband', None)),
     [('host', 'rdma-modules', 'warn', 'although', 'lspci -d 15b3:')]),
    ('memlock_of_root', changed(hgx, ('/proc/self/limits', M.LIMITS % ('8388608', '8388608')),
                                ('/proc/self/status', M.STATUS % ('0' * 16, '%x' % (1 << 14)))),
     [('host', 'memlock', 'note', 'limited to 8192 KiB, but not for this process', 'memlock')]),
    ('memlock_not_known', changed(hgx, ('/proc/self/limits', None)),
     [('host', 'memlock', 'unknown', 'could not be read', 'ulimit -l')]),
    ('no_iommu', changed(hgx, ('/sys/class/iommu', None), ('/sys/class/iommu/.keep', '')),
     [('host', 'iommu', 'ok', 'no IOMMU is active; the kernel was started with iommu=pt', NO_FIX)]),
    ('iommu_not_known', changed(hgx, ('/sys/class/iommu', None)),
     [('host', 'iommu', 'unknown', '/sys/class/iommu could not be read', 'dmesg')]),
    ('iommu_translates', changed(hgx, (GPU + '/iommu_group/type', 'DMA-FQ\n'),
                                 (NIC + '/iommu_group/type', 'DMA\n')),
     [(G, 'iommu', 'warn', 'translates addresses of the device (type DMA-FQ)', 'iommu=pt'),
      (N, 'iommu', 'warn', '(type DMA)', 'GRUB_CMDLINE_LINUX')]),
    ('iommu_type_not_known', changed(hgx, (GPU + '/iommu_group/type', None),
                                     (GPU + '/iommu_group/devices/x', '')),
     [(G, 'iommu', 'unknown', 'could not be read', 'iommu_groups')]),
    ('not_behind_iommu', changed(hgx, (GPU + '/iommu_group', None)),
     [(G, 'iommu', 'ok', 'not behind an IOMMU', NO_FIX)]),

    # ---- GPU ----
    ('gpu_of_nouveau', changed(hgx, (GPU + '/driver', M.Link('../x/drivers/nouveau'))),
     [(G, 'gpu-driver', 'FAIL', 'is used by the driver nouveau', 'modprobe -r nouveau')]),
    ('gpu_of_vfio', changed(hgx, (GPU + '/driver', M.Link('../x/drivers/vfio-pci'))),
     [(G, 'gpu-driver', 'FAIL', 'belongs to a virtual machine (driver vfio-pci)',
       'give the GPU')]),
    ('gpu_model_not_known', changed(hgx, ('/proc/driver/nvidia/gpus', None)),
     [(G, 'gpu-driver', 'ok', 'PCI device 10de:2335', NO_FIX)]),
    ('cuda_exports_no_dmabuf',
     changed(hgx, (module('nvidia_peermem'), None),
             ('/cuda.txt', 'version 12090\n' + M.CUDA_GPU.replace('dmabuf 1', 'dmabuf 0'))),
     [(G, 'gpu-memory', 'warn', 'CUDA does not export memory of this GPU', 'GDAKI_QUEUE_MEM')]),
    ('bar1_smaller_than_memory', changed(hgx, ('/cuda.txt', 'version 12090\n' + M.CUDA_GPU.replace(
        '150109880320', '500000000000'))),
     [(G, 'bar1', 'warn', 'BAR1 has 262144 MiB, the GPU 476837 MiB', 'Above 4G')]),
    ('bar1_can_grow', without_memory((GPU + '/resource2_resize', '00000000000c0000\n')),
     [(G, 'bar1', 'warn', 'BAR1 has 262144 MiB, and the GPU supports 524288 MiB',
       'Resizable BAR')]),
    ('bar1_memory_not_known', without_memory(),
     [(G, 'bar1', 'ok', '262144 MiB (the size of the GPU\'s memory was not read)', NO_FIX)]),
    ('bar1_small', without_memory(
        (GPU + '/resource', '0xde000000 0xdeffffff 0x40200\n0xc0000000 0xcfffffff 0x14220c\n')),
     [(G, 'bar1', 'warn', 'BAR1 has 256 MiB: no more', 'Above 4G')]),
    ('bar1_not_known', changed(hgx, (GPU + '/resource', None)),
     [(G, 'bar1', 'unknown', 'could not be read', 'nvidia-smi -q -d MEMORY')]),
    ('numa_node_not_known', changed(hgx, (GPU + '/numa_node', '-1\n')),
     [(G, 'numa-node', 'unknown', 'does not know the NUMA node', 'BIOS'),
      (G + ' + mlx5_3', 'distance', 'unknown', 'not known', 'nvidia-smi topo -m')]),
    ('integrated', M.spark, [
        ('gpu 000f:01:00.0', 'gpu-driver', 'ok', 'NVIDIA GB10', NO_FIX),
        ('gpu 000f:01:00.0', 'gpu-memory', 'warn', 'an integrated GPU shares', 'GDAKI_QUEUE_MEM='),
        ('gpu 000f:01:00.0', 'numa-node', 'ok', 'one NUMA node', NO_FIX),
        ('gpu 000f:01:00.0', 'iommu', 'note', 'the SMMU translates', NO_FIX),
        ('gpu 000f:01:00.0 + rocep1s0f0', 'distance', 'note', 'NODE', NO_FIX)]),
    ('integrated_by_cuda', changed(hgx, ('/cuda.txt', 'version 13000\n' + M.CUDA_GPU.replace(
        'integrated 0', 'integrated 1'))),
     [(G, 'gpu-memory', 'warn', 'an integrated GPU', 'cudaHostAlloc')]),
    ('integrated_on_another_node', changed(M.far_apart, (
        '/cuda.txt', 'version 13000\n' + M.CUDA_GPU.replace('integrated 0', 'integrated 1'))),
     [(G + ' + mlx5_4', 'distance', 'note', 'SYS', NO_FIX),
      (G + ' + mlx5_4', 'numa', 'note', 'GPU on NUMA node 0, NIC on NUMA node 1', NO_FIX)]),

    # ---- PCIe ----
    ('gpu_without_load', changed(hgx, *link(GPU, current_link_speed='2.5 GT/s PCIe')),
     [(G, 'pcie-link', 'note', '2.5 GT/s x16, but .* 32 GT/s x16 (a GPU without load',
       'while a program uses the GPU')]),
    ('narrow_links', changed(hgx, *link(GPU, current_link_width='8'),
                             *link(NIC, current_link_width='4')),
     [(G, 'pcie-link', 'warn', '32 GT/s x8, but', 'reseat'),
      (N, 'pcie-link', 'warn', '32 GT/s x4, but the device can do 32 GT/s x16', 'reseat')]),
    ('slow_slot', changed(hgx, *link(NIC, current_link_speed='16.0 GT/s PCIe'),
                          *link('{0000:42:01.0}', max_link_speed='16.0 GT/s PCIe')),
     [(N, 'pcie-link', 'warn', '16 GT/s x16, but',
       'use a slot with 32 GT/s x16: 0000:42:01.0 allows 16 GT/s x16')]),
    ('link_not_known', changed(hgx, *link(NIC, current_link_width='0')),
     [(N, 'pcie-link', 'unknown', 'virtual device', 'lspci -s 0000:44:00.0 -vv')]),
    ('far_apart', M.far_apart, [
        (G + ' + mlx5_4', 'distance', 'warn', 'SYS', 'slots of the same PCIe switch'),
        (G + ' + mlx5_4', 'numa', 'warn', 'GPU on NUMA node 0, NIC on NUMA node 1', 'slots'),
        ('host', 'nearest-nic', 'note', M.GPU + ' + mlx5_4 (SYS)', NO_FIX)]),
    ('path_not_known', changed(hgx, ('/sys/bus/pci/devices/0000:44:00.0', None)),
     [(PAIR, 'distance', 'unknown', 'sysfs does not show', 'nvidia-smi topo -m')]),
    ('acs_redirects', changed(hgx, ('{0000:42:01.0}/config', M.config_space(M.ACS_REDIRECT))),
     [(PAIR, 'acs', 'warn', 'to the root complex, at 0000:42:01.0',
       'for p in 0000:42:01.0; do setpci -s $p ECAP_ACS+6.w=0'),
      (G + ' + mlx5_1', 'acs', 'ok', 'no bridge', NO_FIX)]),
    ('acs_above_the_switch', changed(hgx, ('{0000:40:01.0}/config',
                                           M.config_space(M.ACS_REDIRECT))),
     [(PAIR, 'acs', 'ok', 'no bridge', NO_FIX)]),
    ('acs_for_user', changed(hgx, ('{0000:42:01.0}/config', M.config_space(0)[:64])),
     [(PAIR, 'acs', 'unknown', 'only root', 'ECAP_ACS+6.w; done')]),
    ('acs_of_conventional_pci', changed(hgx, ('{0000:42:01.0}/config', M.config_space(0)[:256])),
     [(PAIR, 'acs', 'ok', 'no bridge', NO_FIX)]),

    # ---- settings of the NIC ----
    ('link_type_of_second_port', M.two_ports, [
        ('mlx5_5', 'link-type', 'ok', 'Ethernet (LINK_TYPE_P2=ETH(2))', NO_FIX)]),
    ('bluefield_in_dpu_mode', M.bluefield, [
        (N, 'bluefield-mode', 'warn', 'BlueField-3 in DPU mode (INTERNAL_CPU_OFFLOAD_ENGINE='
                                      'ENABLED(0))',
         'mlxconfig -d 0000:44:00.0 set INTERNAL_CPU_MODEL=1 INTERNAL_CPU_OFFLOAD_ENGINE=1'),
        (N, 'link-type', 'note', 'InfiniBand (LINK_TYPE_P1=IB(1))', 'set LINK_TYPE_P1=2'),
        (N, 'real-time-clock', 'note', '=False(0)', 'set REAL_TIME_CLOCK_ENABLE=1'),
        (N, 'accurate-tx-scheduler', 'note', '=False(0)', 'set ACCURATE_TX_SCHEDULER=1')]),
    ('bluefield_in_nic_mode', changed(M.bluefield, ('/mlxconfig/0000:44:00.0.txt', M.settings())),
     [(N, 'bluefield-mode', 'ok', 'BlueField-3 in NIC mode', NO_FIX)]),
    ('bluefield_after_restart', changed(M.bluefield, (
        '/mlxconfig/0000:44:00.0.txt', M.settings(engine_now='ENABLED(0)'))),
     [(N, 'bluefield-mode', 'ok', 'in NIC mode from the next start of the NIC on', NO_FIX)]),
    ('bluefield_not_known', changed(M.bluefield, ('/mlxconfig/0000:44:00.0.txt', None)),
     [(N, 'bluefield-mode', 'unknown', 'has no output of mlxconfig',
       'mlxconfig -d 0000:44:00.0 q INTERNAL_CPU_OFFLOAD_ENGINE'),
      (N, 'settings', 'unknown', 'has no output of mlxconfig',
       'mlxconfig -d 0000:44:00.0 q LINK')]),
    ('link_type_pending', changed(hgx, ('/mlxconfig/0000:44:00.0.txt',
                                        M.settings(link='IB(1)', link_now='ETH(2)'))),
     [(N, 'link-type', 'warn', 'LINK_TYPE_P1=IB(1) is set, but .* Ethernet', 'mlxfwreset')]),
    ('short_list_of_settings', changed(hgx, (
        '/mlxconfig/0000:44:00.0.txt', 'Configurations:   Next Boot\n  LINK_TYPE_P1   ETH(2)\n')),
     [(N, 'link-type', 'ok', 'LINK_TYPE_P1=ETH(2)', NO_FIX)]),
    ('virtual_function', changed(hgx, (NIC + '/physfn', M.Link('../../0000:42:02.0'))),
     [(N, 'settings', 'unknown', 'virtual function', 'mlxconfig')]),
    ('device_without_pci', changed(hgx, ('/sys/class/infiniband/mlx5_0', None),
                                   ('/sys/class/infiniband/mlx5_0/node_type', '1: CA\n')),
     [(N, 'pci', 'unknown', 'could not be read', 'ls -l')]),
]
# Checks whose results all have the same level.
ONE_LEVEL = {'nearest-nic', 'real-time-clock', 'accurate-tx-scheduler', 'container', 'settings',
             'pci'}

errors = 0


def complain(text):
    global errors
    errors += 1
    print('doctor_host.py:', text)


def doctor(root, *options):
    """Returns the results by scope and check."""
    p = subprocess.run([DOCTOR, '--root', root, '--json', *options], capture_output=True,
                       text=True, timeout=60)
    if p.returncode not in (0, 1) or p.stderr:
        complain('exit status %d: %s' % (p.returncode, p.stderr))
        return {}
    return {(c['scope'], c['check']): c for c in json.loads(p.stdout)['checks']}


def matches(part, text):
    """part may contain ".*" and begin with "^"."""
    pattern = re.escape(part).replace(r'\.\*', '.*').replace(r'\^', '^', part.startswith('^'))
    return text is not None and re.search(pattern, text)


def compare(name, results, expected):
    scope, check, level, text, fix = expected
    got = results.get((scope, check))
    if not got:
        complain('%s: no result %s of %s' % (name, check, scope))
    elif (got['level'].lower() != level.lower() or not matches(text, got['text']) or
          (got['fix'] is not None if fix is NO_FIX else not matches(fix, got['fix']))):
        complain('%s: %s of %s:\n    expected %s, %s, %s\n    got      %s, %s, %s' % (
            name, check, scope, level, text, fix, got['level'], got['text'], got['fix']))


def hwloc_distances(root):
    """The distance of each NVIDIA GPU and RDMA device in lstopo's tree of the machine."""
    out = subprocess.run(['lstopo-no-graphics', '--whole-io', '--of', 'xml'], capture_output=True,
                         env=dict(os.environ, HWLOC_FSROOT=root, HWLOC_COMPONENTS='-x86'),
                         timeout=60).stdout
    ways = {}  # from the machine down to the device, by scope

    def walk(element, way):
        way = way + [element]
        if element.get('type') == 'PCIDev' and '[10de:' in element.get('pci_type'):
            ways['gpu ' + element.get('pci_busid')] = way
        elif element.get('type') == 'OSDev' and element.get('osdev_type') == '3':
            ways[element.get('name')] = way[:-1]
        for child in element.findall('object'):
            walk(child, way)

    machine = xml.etree.ElementTree.fromstring(out).find('object')
    walk(machine, [])
    nodes = len(machine.findall(".//object[@type='NUMANode']"))
    distances = {}
    for gpu in [k for k in ways if k.startswith('gpu')]:
        for nic in [k for k in ways if not k.startswith('gpu')]:
            same = [a for a, b in zip(ways[gpu], ways[nic]) if a is b]
            bridges = max(len(ways[gpu]), len(ways[nic])) - len(same) - 1
            kind = same[-1].get('bridge_type')
            distances[gpu + ' + ' + nic] = (
                ('PIX' if bridges <= 1 else 'PXB') if kind == '1-1' else
                'PHB' if kind == '0-1' else
                'SYS' if same[-1] is machine and nodes > 1 else 'NODE')
    return distances


def compare_with_hwloc(name, root, results):
    distances = hwloc_distances(root)
    if not distances:
        complain('%s: lstopo shows no pair of GPU and NIC' % name)
    for scope, distance in distances.items():
        text = results[scope, 'distance']['text']
        if not text.startswith(distance + ':'):
            complain('%s: %s: hwloc %s, doctor %s' % (name, scope, distance, text))


def record(tmp):
    """--record of this machine, with a software NIC; --root of the copy has the same results."""
    copy = os.path.join(tmp, 'copy')
    run = [os.path.join(os.path.dirname(DOCTOR), 'softnic-run'), '--', DOCTOR]
    p = subprocess.run(run + ['--record', copy, '--json'], capture_output=True, text=True,
                       timeout=120)
    if p.returncode:
        complain('--record: exit status %d: %s' % (p.returncode, p.stderr))
        return
    live = {(c['scope'], c['check']): c for c in json.loads(p.stdout)['checks']}
    results = doctor(copy)
    names = checks_of_sources() - {'settings', 'cuda', 'persistence'}  # the reasons differ
    same = [k for k in live if k[1] in names and live[k] == results.get(k)]
    for k in live:
        if k[1] in names and k not in same:
            complain('--record: %s\n    --root:   %s' % (live[k], results.get(k)))
    for scope, check in ('host', 'kernel'), ('host', 'rdma-modules'), (N, 'pcie-link'):
        if (scope, check) not in same:
            complain('--record: no result %s of %s' % (check, scope))
    for options, message in ((['--record', copy], 'cannot record into .*: Directory not empty'),
                             (['--record', copy + 'x', '--root', copy], 'cannot be combined'),
                             (['--record', ''], "invalid --record ''")):
        p = subprocess.run([DOCTOR] + options, capture_output=True, text=True, timeout=60)
        if p.returncode != 2 or not re.search(message, p.stderr):
            complain('%s: exit status %d: %s' % (options, p.returncode, p.stderr))


def run_mlxconfig(tmp):
    """mlxconfig is run for root, with a time limit, and its output is recorded."""
    folder, copy = os.path.join(tmp, 'bin'), os.path.join(tmp, 'mlx')
    os.mkdir(folder)

    def settings(script, *options):
        with open(os.path.join(folder, 'mlxconfig'), 'w') as f:
            f.write('#!/bin/sh\n' + script)
        os.chmod(os.path.join(folder, 'mlxconfig'), 0o755)
        p = subprocess.run([os.path.join(os.path.dirname(DOCTOR), 'softnic-run'), '--', DOCTOR,
                            '--json', *options], capture_output=True, text=True, timeout=120,
                           env=dict(os.environ, PATH=folder + ':' + os.environ['PATH']))
        return {(c['scope'], c['check']): c for c in json.loads(p.stdout)['checks']}

    if os.geteuid():
        compare('mlxconfig', settings('exit 1\n'), (N, 'settings', 'unknown', 'only root', 'sudo'))
        return
    print_settings = 'test "$1 $3 $4" = "-d -e q" && cat <<E\n' + M.settings() + 'E\n'
    compare('mlxconfig', settings(print_settings, '--record', copy),
            (N, 'link-type', 'ok', 'LINK_TYPE_P1=ETH(2)', NO_FIX))
    compare('mlxconfig, recorded', doctor(copy),
            (N, 'link-type', 'ok', 'LINK_TYPE_P1=ETH(2)', NO_FIX))
    compare('mlxconfig, error', settings('echo LINK_TYPE_P1 "IB(1)"; exit 3\n'),
            (N, 'settings', 'unknown', 'mlxconfig failed', 'sudo mlxconfig'))
    start = time.monotonic()
    compare('mlxconfig, endless', settings('exec sleep 100\n', '-w', '1'),
            (N, 'settings', 'unknown', 'mlxconfig did not end in time', 'sudo mlxconfig'))
    if time.monotonic() - start > 60:
        complain('an endless mlxconfig was not ended')


def checks_of_sources():
    """The checks that the C files of this area add."""
    names = set()
    for name in 'host', 'driver', 'gpu', 'pci', 'topology', 'acs', 'nicconf':
        with open('examples/gpunetio_doctor/%s.c' % name) as f:
            names.update(re.findall(r'dr_add\(r, [^,"]*(?:"host")?, "([^"]*)"', f.read()))
    return names


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    word = sys.argv[1] if len(sys.argv) > 1 else ''
    levels = {}
    hwloc = shutil.which('lstopo-no-graphics')
    if not hwloc:
        print('no lstopo (package hwloc-nox): distances are not compared with it')
    tmp = tempfile.mkdtemp()
    try:
        for name, machine, expectations in CASES:
            if word not in name:
                continue
            root = os.path.join(tmp, name)
            machine().build(root)
            results = doctor(root)
            for expected in expectations:
                compare(name, results, expected)
                levels.setdefault(expected[1], set()).add(expected[2])
            if hwloc and name in ('good', 'far_apart', 'integrated'):
                compare_with_hwloc(name, root, results)
        if word in 'record':
            record(tmp)
        if word in 'mlxconfig':
            run_mlxconfig(tmp)
    finally:
        shutil.rmtree(tmp)
    if not word:
        for check, found in levels.items():
            if len(found) < 2 and check not in ONE_LEVEL:
                complain('check %s has cases of level %s only' % (check, *found))
        for check in checks_of_sources() - set(levels):
            complain('no case has a result of the check %s' % check)
    print('%d machines, %d results compared, %d wrong' % (
        len([c for c in CASES if word in c[0]]), sum(len(c[2]) for c in CASES if word in c[0]),
        errors))
    return errors > 0


sys.exit(main())
