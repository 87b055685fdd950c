#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The send kernels and the queues of Aerial's front-haul driver (NVIDIA/aerial-cuda-accelerated-ran,
# gpu_comm_doca.cu and doca_obj.cpp), unchanged, with gdaki-doca. aerial/driver.cu sends slots of a
# downlink with them on the software NIC: multi-packet WQEs behind waits for a time, rung by the GPU
# and by the CPU, with and without completions. It checks each byte, the number and the time of all
# packets. aerial/stand_in.h replaces what the files need of other parts, of DPDK and of fmt.
#
# g++ compiles the kernels for CPU threads. If nvcc is installed, it compiles them too, and they also
# run on a GPU if there is one.
#
# usage: aerial_send.sh CHECKOUT	(a work tree, or a git directory without one)
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
#   GPU_ONLY   does not run them on CPU threads
# Exit status 77: no such checkout was given.
set -u
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
name=aerial_send.sh
# shellcheck source=tests/lib/eth_driver.sh
. tests/lib/eth_driver.sh
work_tree "$checkout" HEAD cuPHY-CP/aerial-fh-driver
dir=$checkout/cuPHY-CP/aerial-fh-driver
[ -f "$dir/lib/gpu_comm_doca.cu" ] ||
	{ echo "$name: no checkout of NVIDIA/aerial-cuda-accelerated-ran given"; exit 77; }

replace_headers "$objects/stand_in" tests/consumers/aerial/stand_in.h slot_command/slot_command.hpp {app_config,cuphy_pti,nvlog,output_formatting}.hpp memfoot_global.h
replace_headers "$objects/cuda" tests/consumers/aerial/groups_cpu.h cooperative_groups.h \
	cooperative_groups/memcpy_async.h cuda/std/array
options=("-I$objects/stand_in" -Itests/consumers/aerial "-I$dir/lib" "-I$dir/include" -DDOCA_ALLOW_EXPERIMENTAL_API
	-include stand_in.h -include defaults.hpp -include fronthaul.hpp)
std=c++20
build_both "$dir"/lib/{gpu_comm_doca.cu,doca_obj.cpp} tests/consumers/aerial/driver.cu
nic=(--ts-format real)
run_both
exit "$bad"
