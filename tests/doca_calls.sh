#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles tests/doca/*.c, which call each function of the SDK's interface: calls.c those of Verbs,
# umems and UARs, rdma.c, dma.c, eth.c and flow.c those of the libraries, base.c the others. As C11 and
# C++17 with gcc, with clang if it is installed, as CUDA if nvcc is installed. Links them, so that each
# function has a definition. Fails if a function
# that a header of gdaki-doca declares is not called. Also compiles the calls of device functions in
# tests/doca/*.cuh, in which each name of tests/device_names_sdk.txt and device_names_eth.txt must be called.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
NVCC=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
inc=("-I$B/include-doca" "-I$B/include")
warn=(-Wall -Wextra -Werror)
read -ra parts < <(sed -n 's/^SDK_PARTS := //p' Makefile)
libs=("-L$B/lib" "${parts[@]/#/-lgdaki_}" -lgdaki_doca -lgdaki -lmlx5 -libverbs -lnuma -ldl -lpthread)

try() { # what, command...
	local what=$1
	shift
	"$@" >"$tmp/err" 2>&1 && return
	echo "doca_calls.sh: $what"
	head -n 20 "$tmp/err" | sed 's/^/    /'
	bad=1
}

for src in tests/doca/*.c; do
	name=$(basename "$src" .c)
	cp "$src" "$tmp/$name.cpp"
	cp "$src" "$tmp/$name.cu"
	try "$src, C11" gcc -std=c11 "${warn[@]}" "${inc[@]}" -o "$tmp/$name" "$src" "${libs[@]}"
	try "$src, C++17" g++ -std=c++17 "${warn[@]}" "${inc[@]}" -o "$tmp/cpp" "$tmp/$name.cpp" "${libs[@]}"
	if command -v clang >/dev/null; then
		try "$src, C11 (clang)" clang -std=c11 "${warn[@]}" "${inc[@]}" -fsyntax-only "$src"
		try "$src, C++17 (clang)" clang++ -std=c++17 "${warn[@]}" "${inc[@]}" -fsyntax-only "$tmp/$name.cpp"
	fi
	if [ -n "$NVCC" ]; then
		try "$src, CUDA" "$NVCC" ${CUDAHOSTCXX:+-ccbin "$CUDAHOSTCXX"} -std=c++17 -arch=sm_90 \
			-Werror all-warnings "${inc[@]}" -o "$tmp/cu" "$tmp/$name.cu" "${libs[@]}"
	fi
	# The reference to a function is the name of its symbol: of gdk_doca_ where the header binds it.
	try "$src, run" "$tmp/$name"
done
# For nvcc as calls of functions that ptxas does not optimize, in half of the time.
echo '#define GDK_FN __device__ static __attribute__((__noinline__, __unused__))' >"$tmp/calls.h"
for src in tests/doca/*.cuh; do
	try "$src, C++17" g++ -std=c++17 "${warn[@]}" "${inc[@]}" -fsyntax-only -x c++ "$src"
	if command -v clang >/dev/null; then
		try "$src, C++17 (clang)" clang++ -std=c++17 "${warn[@]}" "${inc[@]}" -fsyntax-only -x c++ "$src"
	fi
	if [ -n "$NVCC" ]; then
		try "$src, CUDA" "$NVCC" ${CUDAHOSTCXX:+-ccbin "$CUDAHOSTCXX"} -std=c++17 -arch=sm_90 \
			-Werror all-warnings -include "$tmp/calls.h" -Xptxas -O0 "${inc[@]}" -cubin \
			-o "$tmp/device.cubin" -x cu "$src"
	fi
done
while read -r name _; do
	grep -q -w "$name" tests/doca/*.cuh && continue
	echo "doca_calls.sh: tests/doca/*.cuh do not call $name"
	bad=1
done < <(grep -h '^doca' tests/device_names_sdk.txt tests/device_names_eth.txt)
[ -n "$NVCC" ] || echo "doca_calls.sh: nvcc not found, not compiled as CUDA"

calls=0
while read -r name; do
	calls=$((calls + 1))
	grep -q -w "$name" tests/doca/*.c && continue
	echo "doca_calls.sh: tests/doca/*.c do not call $name"
	bad=1
done < <(cat "$B"/include-doca/*.h "$B/include/host/gdk_gpu.h" | grep -v '^ \*' |
	grep -o -E '\bdoca_[a-z0-9_]+\(' | tr -d '(' | sort -u)
[ $bad != 0 ] || echo "doca_calls.sh: $calls functions"
exit $bad
