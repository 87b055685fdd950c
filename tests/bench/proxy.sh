#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Measures the CPU proxy (proxy.c), and with a checkout of NVIDIA-DOCA/gpunetio (3.0) the
# progress call of NVIDIA's library too. Columns: "idle us": a pass over idle queue pairs;
# "all us": a pass that rings all; "ring ns": from the counter's increment to the store to the
# doorbell register; "bare ns": from one core to another and back, without a proxy.
# usage: proxy.sh [CHECKOUT]	(CUDA_HOME: folder of the CUDA headers, /usr/local/cuda)
# shellcheck disable=SC2034 # name is read by the included script
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
src=${1:-}
name=proxy.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
make --no-print-directory -s B="$B" all "$B/bench/proxy" "$B/standin/libcuda.so.1" \
	"$B/standin/libgdrapi.so" || exit 1
args=()
if [ -n "$src" ]; then
	. tests/consumers/peer_build.sh
	# shellcheck disable=SC2154 # peer_build.sh sets peer_*
	peer_build -O2 && g++ -shared -o "$tmp/peer.so" -Wl,--whole-archive "${peer_libs[0]}" \
		-Wl,--no-whole-archive "${peer_libs[@]:1}" || exit 1
	args=("$tmp/peer.so")
	export "${peer_env[@]}"
fi
timeout 200 "$B/bin/softnic-run" -- "$B/bench/proxy" "${args[@]}"
