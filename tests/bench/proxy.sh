#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The CPU proxy's passes and doorbells (proxy.c); with a checkout of
# NVIDIA-DOCA/gpunetio (3.0; CUDA_HOME: its headers) its progress call beside ours.
# idle us: a pass over idle queue pairs; all us: one that rings all; ring ns: from a
# raised counter to its register; bare ns: from a core to another and back, no proxy.
# usage: proxy.sh [CHECKOUT]
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
	peer_build -O2 && g++ -shared -o "$tmp/peer.so" -Wl,--whole-archive "${peer_libs[0]}" \
		-Wl,--no-whole-archive "${peer_libs[@]:1}" || exit 1
	args=("$tmp/peer.so")
	export "${peer_env[@]}"
fi
timeout 200 "$B/bin/softnic-run" -- "$B/bench/proxy" "${args[@]}"
