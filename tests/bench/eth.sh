#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# eth.sh [send|recv|compile]
#
# Measures how many Ethernet packets per second GPU threads send and receive, without a NIC (eth.cu):
#   send         sends, each beside puts by the same threads to a queue pair, and multi-packet sends
#                beside plain ones. Another kernel verifies every WQE before it writes CQEs.
#   recv         receives, beside a loop that does the least that a receive must do
#   compile      only compiles
# Environment:
#   B            the build folder (build)
#   NVCC         the compiler (nvcc, or /usr/local/cuda/bin/nvcc)
#   ARCH         the architecture, without sm_ (that of GPU 0; 90 to compile)
# Columns: 10^6 packets per second, median, minimum and maximum; the median of the reference; their
# ratio; the target, and whether the ratio meets it.
# Fails if a WQE or the sum of the packets' bytes is wrong, or if a row does not end. Exit status 77:
# no GPU or no nvcc.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
bin=$B/bench/eth
case ${1:-all} in
all | send | recv | compile) ;;
*) sed -n '5,/^# no GPU/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
[ -n "$NVCC" ] || { echo "eth.sh: no nvcc"; exit 77; }
gpu=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
make -s B="$B" stage && mkdir -p "$B/bench" || exit 1
"$NVCC" -std=c++17 -O3 "-arch=sm_${ARCH:-${gpu:-90}}" -DDOCA_ALLOW_EXPERIMENTAL_API "-I$B/include-doca" "-I$B/include" \
	-o "$bin" tests/bench/eth.cu || exit 1
[ "${1:-all}" != compile ] || exit 0
[ -n "$gpu" ] || { echo "eth.sh: no GPU"; exit 77; }
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader -i 0
out=$(mktemp)
trap 'rm -f "$out"' EXIT
timeout 300 "$bin" ${1:+"$1"} >"$out" 2>&1
status=$?
awk -F '\t' 'function title(what, reference) {
	printf line, what, "ours", "min", "max", reference, "ratio", "target", "" }
BEGIN { line = "%-50s %9s %9s %9s %10s %6s %6s  %s\n"
	first["send"] = "sends"; reference["send"] = "puts"
	first["multi"] = "multi-packet sends"; reference["multi"] = "plain"
	first["recv"] = "receives"; reference["recv"] = "least loop" }
NF == 8 && $1 in first { rows[$1] = rows[$1] sprintf(line, $2, $3, $4, $5, $6, $7, $8 > 0 ? $8 : "",
		$8 > 0 ? ($7 >= $8 ? "met" : "below") : ""); next }
{ print }
END { n = split("send multi recv", order, " ")
	for (i = 1; i <= n; i++)
		if (order[i] in rows) { title(first[order[i]], reference[order[i]]); printf "%s", rows[order[i]] } }' "$out"
[ $status = 0 ] && ! grep -q -e '^FAILED' -e '^HANG' "$out"
