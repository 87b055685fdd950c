#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The kernels and the queues of the gpunetio manager of holohub's advanced_network operator
# (nvidia-holoscan/holohub, tag holoscan-sdk-4.3.0), unchanged, with gdaki-doca. holohub/driver.cpp
# sends packets with its send kernel and receives them with its two receive kernels on the software
# NIC, and checks each byte. holohub/stand_in.h replaces what the files need of the Holoscan SDK and
# of DPDK.
#
# g++ compiles the kernels for CPU threads. If nvcc is installed, it compiles them too, and they also
# run on a GPU if there is one.
#
# usage: holohub.sh CHECKOUT	(a work tree, or a git directory without one)
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
#   GPU_ONLY   does not run them on CPU threads
# Exit status 77: no such checkout was given.
set -u
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
name=holohub.sh
# shellcheck source=tests/lib/eth_driver.sh
. tests/lib/eth_driver.sh
operator=operators/advanced_network
work_tree "$checkout" holoscan-sdk-4.3.0 "$operator"
dir=$checkout/$operator/advanced_network/managers/gpunetio
[ -f "$dir/adv_network_doca_kernels.cu" ] || { echo "$name: no checkout of nvidia-holoscan/holohub given"; exit 77; }

replace_headers "$objects/stand_in" tests/consumers/holohub/stand_in.h holoscan/holoscan.hpp advanced_network/common.h \
	doca_dpdk.h rte_{eal,ethdev,flow,mbuf,ring}.h
options=("-I$objects/stand_in" "-I$checkout/$operator" "-I$dir" -DDOCA_ALLOW_EXPERIMENTAL_API -DGDK_DOCA_FLOW_3_2
	'-DCUDART_CPU_BLOCK_LOAD="*exit_cond"')
std=c++20
build_both "$dir"/adv_network_doca_{kernels.cu,mgr_obj.cpp} tests/consumers/holohub/driver.cpp
nic=()
run_both
exit "$bad"
