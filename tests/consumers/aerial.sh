#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles kernels of NVIDIA/aerial-cuda-accelerated-ran, unchanged, with gdaki-doca and nvcc: those
# that send by multi-packet WQEs at given times (gpu_comm_doca.cu), and those that receive by
# doca_gpu_dev_eth_rxq_recv (order_cuda_kernels.cu). Needs the headers of DPDK, yaml-cpp and fmt.
#
# usage: aerial.sh CHECKOUT	(a work tree, or a git directory without one)
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
#   ARCH       the architecture, without sm_ (90)
#   INCLUDE    a folder with more headers
# Exit status 77: no such checkout was given, no nvcc, or headers are missing.
# shellcheck disable=SC2086 # a list of files
set -u
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
B=$(realpath "${B:-build}")
NVCC=${NVCC-$(command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
name=aerial.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
skip() { echo "$name: $1"; exit 77; }

kernels="cuPHY-CP/aerial-fh-driver/lib/gpu_comm_doca.cu cuPHY-CP/cuphydriver/src/uplink/order_cuda_kernels.cu"
if [ -f "$checkout/HEAD" ] && [ -d "$checkout/objects" ]; then
	git -C "$checkout" ls-tree -r --name-only HEAD >"$tmp/files" 2>/dev/null
	{ grep -E '\.(h|hpp|cuh|inl)$' "$tmp/files"; printf '%s\n' $kernels; } |
		xargs -d '\n' git -C "$checkout" archive HEAD 2>/dev/null | tar -x -C "$tmp" 2>/dev/null
	checkout=$tmp
fi
for k in $kernels; do
	[ -f "$checkout/$k" ] || skip "no checkout of NVIDIA/aerial-cuda-accelerated-ran given"
done
[ -n "$NVCC" ] || skip "no nvcc"
pkg-config --exists libdpdk || skip "no headers of DPDK (package dpdk-dev)"
cd "$checkout" || exit 2
inc=("-I$B/include-doca" "-I$B/include" ${INCLUDE:+"-I$INCLUDE"})
for option in $(pkg-config --cflags libdpdk); do
	case $option in
	-m*) inc+=(-Xcompiler "$option") ;;
	*) inc+=("$option") ;;
	esac
done
for library in yaml-cpp/yaml.h fmt/format.h; do
	echo "#include <$library>" | "${CXX:-g++}" -E -x c++ ${INCLUDE:+"-I$INCLUDE"} - >/dev/null 2>&1 ||
		skip "no $library (packages libyaml-cpp-dev and libfmt-dev)"
done
# Each folder of headers, and the one that contains it.
while read -r dir; do
	inc+=("-I$dir" "-I$(dirname "$dir")")
done < <(find cuPHY cuPHY-CP -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -name '*.inl' | sed 's,/[^/]*$,,' |
	grep -v -E 'test|example|testBenches' | sort -u)
for k in $kernels; do
	"$NVCC" -std=c++20 "-arch=sm_${ARCH:-90}" -DDOCA_ALLOW_EXPERIMENTAL_API "${inc[@]}" -c -o "$tmp/kernel.o" "$k" \
		>"$tmp/err" 2>&1 || {
		echo "$name: $k does not compile"
		grep -E 'error' "$tmp/err" | head -n 12 | sed 's/^/    /'
		exit 1
	}
done
echo "$name: 2 files of kernels compiled for sm_${ARCH:-90}"
