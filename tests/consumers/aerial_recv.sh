#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The receive kernel of Aerial's test bench (NVIDIA/aerial-cuda-accelerated-ran,
# receive_kernel_for_test_bench() in order_cuda_kernels.cu) and the queues of its front-haul driver
# (doca_obj.cpp), unchanged, with gdaki-doca. aerial/recv.cu sends slots of an O-RAN uplink to the kernel
# on the software NIC: three cells of different bit widths, packets of the slot, of the next slot and
# of other slots and frames. One packet of the last slot but one is missing, and all of the last one. The
# driver checks each byte and number that the kernel stores.
#
# The kernel and the function that launches it are cut out of their file, which needs all of cuPHY. g++
# compiles them for CPU threads. If nvcc is installed, it compiles them too, and they also run on a
# GPU if there is one.
#
# usage: aerial_recv.sh CHECKOUT	(a work tree, or a git directory without one)
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
#   GPU_ONLY   does not run them on CPU threads
#   NIC        more options of softnic-run; with --loss 0.01 the script must fail
# Exit status 77: no such checkout was given.
set -u
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
name=aerial_recv.sh
# shellcheck source=tests/lib/eth_driver.sh
. tests/lib/eth_driver.sh
kernels=cuPHY-CP/cuphydriver/src/uplink/order_cuda_kernels.cu
header=cuPHY-CP/cuphydriver/include/gpudevice.hpp
work_tree "$checkout" HEAD cuPHY-CP/aerial-fh-driver "$kernels" "$header"
dir=$checkout/cuPHY-CP/aerial-fh-driver
if ! [ -f "$dir/lib/doca_obj.cpp" ] || ! [ -f "$checkout/$kernels" ]; then
	echo "$name: no checkout of NVIDIA/aerial-cuda-accelerated-ran given"
	exit 77
fi

replace_headers "$objects/stand_in" tests/consumers/aerial/stand_in.h slot_command/slot_command.hpp {app_config,cuphy_pti,nvlog,output_formatting}.hpp memfoot_global.h
replace_headers "$objects/stand_in" tests/consumers/aerial/recv_stand_in.h gpu_blockFP.h gpu_fixed.h
replace_headers "$objects/cuda" tests/consumers/aerial/groups_cpu.h cooperative_groups.h \
	cooperative_groups/memcpy_async.h cuda/std/array
# The beginning of the file, to the end of its first function, which is for the GPU only. Then the
# kernel, and what follows it up to the next device function.
{
	sed -e $'/__globaltimer()$/i\\\n#ifdef __CUDACC__' -e '/^}/q' "$checkout/$kernels"
	echo '#endif'
	sed -n -e '/^__global__ void receive_kernel_for_test_bench(/,/^__device__/{/^__device__/!p}' "$checkout/$kernels"
	echo '}'
} >"$objects/order_kernels.cu"
sed -n '/^int launch_receive_kernel_for_test_bench(/,/);/p' "$checkout/$header" >"$objects/stand_in/launch_receive.h"

options=("-I$objects/stand_in" -Itests/consumers/aerial "-I$dir/lib" "-I$dir/include" -DDOCA_ALLOW_EXPERIMENTAL_API
	-include stand_in.h -include defaults.hpp -include fronthaul.hpp
	-DCUDART_CPU_THREADS=64 "-DCUDART_CPU_BLOCK_LOAD=\"*exit_cond_d_cell\"")
std=c++20
build_both "$objects/order_kernels.cu" "$dir/lib/doca_obj.cpp" tests/consumers/aerial/recv.cu
read -ra nic <<<"--ts-format real ${NIC:-}"
run_both
exit "$bad"
