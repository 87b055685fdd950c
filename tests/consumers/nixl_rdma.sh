#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles NIXL's older plugin GPUNETIO, which uses the RDMA library, with the headers of gdaki-doca:
# its kernels, unchanged, with nvcc, and its host sources with g++. It is the plugin before commit
# fce56d7cb. Checks that gdaki's archives define every function of DOCA that the host sources call.
# tests/thread/rdma_weak.c and tests/soak/rdma_conns.c (-w) use the library as these kernels do.
#
# usage: nixl_rdma.sh NIXL ABSEIL
#	NIXL: a repository of ai-dynamo/nixl with that commit; ABSEIL: checkout of abseil/abseil-cpp
#   CUDA_HOME  folder of CUDA (/usr/local/cuda);  CUDA_ARCH: architecture (sm_90)
# Exit status 77: one of the two is missing, or CUDA.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda} arch=${CUDA_ARCH:-sm_90}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
commit=fce56d7cb^
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

skip() {
	echo "nixl_rdma.sh: $1"
	exit 77
}
nixl=${1:-/nonexistent} absl=${2:-}
git -C "$nixl" rev-parse -q --verify "$commit:src/plugins/gpunetio" >"$tmp/tree" 2>/dev/null ||
	skip "no repository of ai-dynamo/nixl with commit fce56d7cb given"
[ -f "$absl/absl/base/config.h" ] || skip "no checkout of abseil/abseil-cpp given"
[ -n "$NVCC" ] && [ -f "$cuda/include/cuda_runtime.h" ] || skip "no nvcc or no headers in $cuda"
git -C "$nixl" archive "$commit" src | tar -x -C "$tmp"
plugin=$tmp/src/plugins/gpunetio
inc=("-I$B/include-doca" "-I$B/include" "-I$absl" "-I$cuda/include" "-I$plugin")
for d in api/cpp api/cpp/backend infra core utils utils/common; do
	inc+=("-I$tmp/src/$d")
done

try() { # what, command...
	local what=$1
	shift
	"$@" >"$tmp/err" 2>&1 && return
	echo "nixl_rdma.sh: $what does not compile"
	grep error "$tmp/err" | head -n 12 | sed 's/^/    /'
	bad=1
}

try gpunetio_kernels.cu "$NVCC" -std=c++17 -arch="$arch" -c -o "$tmp/kernels.o" "${inc[@]}" "$plugin/gpunetio_kernels.cu"
for f in backend utils plugin; do
	try "gpunetio_$f.cpp" g++ -std=c++17 -O0 -w -fPIC -c -o "$tmp/$f.o" "${inc[@]}" "$plugin/gpunetio_$f.cpp"
done
nm "$B/lib/libgdaki_rdma.a" "$B/lib/libgdaki_doca.a" "$B/lib/libgdaki.a" 2>/dev/null | sed -n 's/.* T //p' | sort -u >"$tmp/have"
nm "$tmp"/*.o | sed -n 's/^ *U \(\(doca\|gdk\)_[a-z0-9_]*\)$/\1/p' | sort -u |
	comm -23 - <(nm "$tmp"/*.o | sed -n 's/.* T //p' | cat - "$tmp/have" | sort -u) >"$tmp/missing"
[ ! -s "$tmp/missing" ] || {
	echo "nixl_rdma.sh: no archive defines $(paste -sd" " "$tmp/missing")"
	bad=1
}
[ $bad != 0 ] || echo "nixl_rdma.sh: compiled the plugin of $commit, tree $(cat "$tmp/tree")"
exit $bad
