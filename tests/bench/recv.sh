#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# recv.sh [cpu|gpu|faults]
#
# Measures how many receives per second threads post again, and the round trip of a send that
# completes a receive, whose thread answers with a send; without a NIC: other threads are the NIC,
# verify every WQE, and write the CQEs. The threads of the first rows are CPU threads (recv.c);
# with a GPU and nvcc, those of the other rows are GPU threads (recv.cu).
#   cpu          only CPU threads
#   gpu          only GPU threads (exit status 77 without GPU or nvcc)
#   faults       no rows: posts wrong receives and sends wrong messages on CPU threads, and fails
#                if the checks do not find one of these faults
# Environment:
#   B            the build folder (build)
#   NVCC         the compiler (nvcc, or /usr/local/cuda/bin/nvcc)
#   ARCH         the architecture, without sm_ (that of GPU 0)
# Columns: median, minimum and maximum of five runs; p99.9 of all round trips, which include the
# NIC's delay of 2.0 us twice; receives or messages verified. NVIDIA's open headers (DOCA GPUNetIO
# 3.0) have no receives, hence no peer and no ratio.
# Fails if a receive or a message is lost, doubled or wrong, or if a row does not end.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
bin=$B/bench/recv
gpu_bin=$B/bench/recv_gpu
what=${1:-all}
case $what in
all | cpu | gpu | faults) ;;
*) sed -n '5,/^# Fails/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
[ $# -le 1 ] || exit 2
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
bad=0

cpu_part() { # arguments of the program
	if [ ! -x "$bin" ] || [ -n "$(find -H tests/bench core cq doorbell qp -newer "$bin" -name '*.[ch]')" ]; then
		make -s B="$B" "$bin" >&2 || return 1
	fi
	timeout 150 "$bin" "$@"
}

table() { # reads the lines that the programs print
	awk -F '\t' '
	BEGIN { line = "%-55s %4s %9s %9s %9s %9s %6s %6s %10s %s\n"
		printf line, "row", "unit", "ours", "min", "max", "p99.9", "peer", "ratio", "verified",
			"wrong" }
	$1 == "recv" { printf line, $2, $3, $4, $5, $6, $7, "-", "-", $8, ($9 > 0) ? $9 " (" $10 ")" : 0
		fflush(); next }
	{ print }'
}

# Prints the reason if the rows of the GPU cannot run here.
no_gpu() {
	[ -n "$NVCC" ] || { echo "no nvcc"; return; }
	nvidia-smi -L 2>/dev/null | grep -q '^GPU' || echo "no GPU"
}

gpu_build() {
	make -s B="$B" stage && mkdir -p "$B/bench" || return 1
	ARCH=${ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 | tr -d .)}
	"$NVCC" -std=c++17 -O3 "-arch=sm_$ARCH" -I"$B/include" -o "$gpu_bin" tests/bench/recv.cu
}

rows() {
	[ "$what" = gpu ] || cpu_part || echo "FAILED: CPU threads (exit status $?)"
	[ "$what" = cpu ] && return
	why=$(no_gpu)
	if [ -n "$why" ]; then
		echo "rows of GPU threads skipped: $why"
		return
	fi
	gpu_build || { echo "FAILED: recv.cu does not compile"; return; }
	nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader -i 0
	timeout 80 "$gpu_bin" || echo "FAILED: GPU threads (exit status $?)"
}

if [ "$what" = faults ]; then
	cpu_part faults
	exit
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
rows 2>&1 | tee "$out" | table
! grep -q -e '^FAILED' -e '^HANG' "$out" || bad=1
[ "$what" != gpu ] || ! grep -q '^rows of GPU threads skipped' "$out" || bad=77
[ "$what" != all ] || cpu_part faults >"$out" || { cat "$out"; bad=1; }
exit $bad
