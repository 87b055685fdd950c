#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# dma.sh [cpu|gpu|faults]
#
# Measures how many copies by the NIC threads trigger, by engine and size, without a NIC: another
# thread or block is the NIC, verifies every request, copies the bytes and writes the CQEs.
#   cpu          only CPU threads (dma.c)
#   gpu          only GPU threads (dma.cu; exit status 77 without GPU or nvcc)
#   faults       no rows: makes faults on CPU threads, and fails if the checks do not find one
# Environment:
#   B            the build folder (build)
#   NVCC         the compiler (nvcc, or /usr/local/cuda/bin/nvcc)
#   ARCH         the architecture, without sm_ (that of GPU 0)
# Columns: median, minimum and maximum of five runs in millions of copies per second; GB/s of the median;
# requests verified; bits of enum dma_bad of dma_nic.h, 0 if all is right.
# Fails if a copy is lost, doubled or wrong, or if a row does not end.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
what=${1:-all}
case $what in
all | cpu | gpu | faults) ;;
*) sed -n '5,/^# Fails/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}

table() {
	awk -F '\t' '
	BEGIN { line = "%-45s %9s %9s %9s %9s %9s %s\n"
		printf line, "row", "M/s", "min", "max", "GB/s", "verified", "bad" }
	$1 == "dma" { printf line, $2, $3, $4, $5, $6, $7, $8; fflush(); next }
	{ print }'
}

cpu_part() { # arguments of the program
	make -s B="$B" "$B/bench/dma" >&2 || return 1
	timeout 150 "$B/bench/dma" "$@"
}

gpu_part() {
	make -s B="$B" stage >&2 && mkdir -p "$B/bench" || return 1
	ARCH=${ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 | tr -d .)}
	"$NVCC" -std=c++17 -O3 "-arch=sm_$ARCH" -I"$B/include" -I"$B/include-doca" -o "$B/bench/dma_gpu" \
		tests/bench/dma.cu || return 1
	nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader -i 0
	# Loading a kernel while another one polls would wait for it.
	CUDA_MODULE_LOADING=EAGER timeout 120 "$B/bench/dma_gpu"
}

rows() {
	[ "$what" = gpu ] || cpu_part || echo "FAILED: CPU threads (exit status $?)"
	[ "$what" = cpu ] && return
	if [ -z "$NVCC" ] || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
		echo "rows of GPU threads skipped: no GPU or no nvcc"
		return
	fi
	gpu_part || echo "FAILED: GPU threads (exit status $?)"
}

if [ "$what" = faults ]; then
	cpu_part faults
	exit
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
rows 2>&1 | tee "$out" | table
! grep -q -e '^FAILED' -e '^HANG' "$out" || exit 1
[ "$what" != gpu ] || ! grep -q '^rows of GPU threads skipped' "$out" || exit 77
[ "$what" != all ] || cpu_part faults
