#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles the benchmarks that run on a GPU for one architecture (host and device code), so that
# they still compile when they are needed. post_ucx.cu needs a checkout of UCX and is left out.
# Without LONG=1 no function of the library is inlined and ptxas does not run, in half of the time:
# gpu/compile.sh and footprint.sh assemble these functions.
#   B, NVCC, CUDAHOSTCXX as for make. Exit status 77: no nvcc.
set -eu
cd "$(dirname "$0")/../.."
export B="${B:-build}"
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}
[ -n "$NVCC" ] || { echo "compile.sh: no nvcc"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
how="-arch=sm_90"
[ -n "${LONG:-}" ] || {
	echo '#define GDK_FN __device__ static __attribute__((__noinline__, __unused__))' >"$out/calls.h"
	how="-gencode arch=compute_90,code=compute_90 -include $out/calls.h -Xcompiler -O0"
}
compile() { # source
	# shellcheck disable=SC2086 # NVCC and options may be several words
	$NVCC ${CUDAHOSTCXX:+-ccbin $CUDAHOSTCXX} -std=c++17 -O3 $how -DPOST_NO_MATRIX \
		-DDOCA_ALLOW_EXPERIMENTAL_API -I"$B/include-doca" -I"$B/include" -c -o "$(mktemp -p "$out")" "$1" ||
		return 255 # makes xargs stop
	echo "compile.sh: $1"
}
export -f compile
export NVCC out how
find tests/bench -name '*.cu' ! -name post_ucx.cu -print0 | sort -z |
	xargs -0 -P "$(nproc)" -I{} bash -c 'compile "$1"' _ {}
