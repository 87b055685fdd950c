#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# rdma.sh [cpu|gpu]
#
# Measures operations per second through the RDMA library, strong and weak, by 1, 32 and 256 threads.
#   cpu  CPU threads on the software NIC (rdma.c): the best of three runs, all data checked at the end
#   gpu  GPU threads without a NIC (rdma.cu): other blocks of the GPU are the NIC and verify every WQE;
#        exit status 77 without GPU or nvcc
# Environment: B (build), NVCC (nvcc, or /usr/local/cuda/bin/nvcc), ARCH (that of GPU 0, without sm_)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
what=${1:-all}
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
bad=0

if [ "$what" != gpu ]; then
	make -s B="$B" "$B/bench/rdma" "$B/bin/softnic-run" "$B/lib/libsoftnic.so" >&2 || exit 1
	echo "== CPU threads, software NIC"
	timeout 300 "$B/bin/softnic-run" -- "$B/bench/rdma" || bad=1
fi
[ "$what" != cpu ] || exit $bad
if [ -z "$NVCC" ] || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
	echo "rdma.sh: no nvcc or no GPU"
	[ "$what" = gpu ] && exit 77
	exit $bad
fi
ARCH=${ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 | tr -d .)}
make -s B="$B" stage >&2 && mkdir -p "$B/bench" || exit 1
"$NVCC" -std=c++17 -O3 -arch="sm_$ARCH" "-I$B/include" "-I$B/include-doca" -o "$B/bench/rdma_gpu" tests/bench/rdma.cu || exit 1
echo "== GPU threads, a verifying NIC on the GPU: median, minimum and maximum, M/s"
timeout 300 "$B/bench/rdma_gpu" --no-free "${@:2}" >"$B/bench/rdma_gpu.out" || bad=1
awk -F '\t' '$1 == "table" {
	printf "%-45s %9.3f %9.3f %9.3f  %s verified, %s wrong\n", $3, $5, $6, $7, $8, ($9 > 0) ? $9 " (" $10 ")" : 0
	rows++
	wrong += $9 > 0
	next
} { print }
END { exit rows != 8 || wrong }' "$B/bench/rdma_gpu.out" || bad=1
exit $bad
