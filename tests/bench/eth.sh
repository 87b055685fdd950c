#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# eth.sh [compile]
#
# Measures how many packets per second GPU threads receive by gdk_eth_recv(), without a NIC, beside a
# loop that does the least that a receive must do (eth.cu).
#   compile      only compiles
# Environment:
#   B            the build folder (build)
#   NVCC         the compiler (nvcc, or /usr/local/cuda/bin/nvcc)
#   ARCH         the architecture, without sm_ (that of GPU 0; 90 to compile)
# Columns: 10^6 packets per second, median, minimum and maximum of five runs; the reference's median;
# their ratio.
# Fails if the sum of the packets' bytes is wrong, or if a row does not end. Exit status 77: no GPU or
# no nvcc.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
bin=$B/bench/eth
case ${1:-all} in
all | compile) ;;
*) sed -n '5,/^# no nvcc/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
[ -n "$NVCC" ] || { echo "eth.sh: no nvcc"; exit 77; }
gpu=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
make -s B="$B" stage && mkdir -p "$B/bench" || exit 1
"$NVCC" -std=c++17 -O3 "-arch=sm_${ARCH:-${gpu:-90}}" -DDOCA_ALLOW_EXPERIMENTAL_API "-I$B/include-doca" "-I$B/include" \
	-o "$bin" tests/bench/eth.cu || exit 1
[ "${1:-all}" = all ] || exit 0
[ -n "$gpu" ] || { echo "eth.sh: no GPU"; exit 77; }
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader -i 0
out=$(mktemp)
trap 'rm -f "$out"' EXIT
timeout 120 "$bin" >"$out" 2>&1
status=$?
awk -F '\t' 'BEGIN { line = "%-48s %9s %9s %9s %9s %6s\n"
	printf line, "row", "ours", "min", "max", "reference", "ratio" }
$1 == "eth" { printf line, $2, $3, $4, $5, $6, $7; next }
{ print }' "$out"
[ $status = 0 ] && ! grep -q -e '^FAILED' -e '^HANG' "$out"
