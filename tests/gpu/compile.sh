#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks that the device headers compile as C++17 and, if nvcc is installed, as CUDA for each
# architecture that make compiles for. tests/gpu/run executes the compiled code on a GPU.
set -eu
B="${B:-build}"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# With everything inlined the compiler needs fifty times longer.
for debug in "" -DGDK_DEBUG; do
	# shellcheck disable=SC2086 # no argument if debug is empty
	g++ -std=c++17 -Wall -Wextra -Werror $debug -I"$B/include" -c -o "$out/dev.o" \
		-include tests/lib/fewer_inlined.h tests/gpu/compile_dev.cpp
done

# A memory key has a type of its own (gdk_key_t), so that a number, which may have the wrong
# byte order, does not compile.
key() { # compiler and its options, expression for the key
	printf '#include "device/gdk/onesided_dev.h"\nvoid f(struct doca_gpu_dev_verbs_qp *q, %s\n%s' \
		'struct doca_gpu_dev_verbs_wqe *w, uint32_t lkey);' \
		'void f(struct doca_gpu_dev_verbs_qp *q, struct doca_gpu_dev_verbs_wqe *w, uint32_t lkey)' \
		>"$out/key.c"
	printf '\n{ gdk_wqe_dump(q, w, 0, 8, 0, %s, 1); }\n' "$2" >>"$out/key.c"
	$1 -I"$B/include" -fsyntax-only "$out/key.c" 2>/dev/null
}
for compiler in "gcc -std=c11" "g++ -std=c++17 -x c++"; do
	key "$compiler" 'gdk_key(lkey)' || { echo "compile.sh: $compiler: a gdk_key_t does not compile"; exit 1; }
	! key "$compiler" lkey || { echo "compile.sh: $compiler: a number compiles as a key"; exit 1; }
done
if [ -z "${NVCC:-}" ]; then
	echo "compile.sh: nvcc not found, compiled as C++17 only"
	exit 0
fi
# The architectures that make compiles for, also if `make test` compiles examples for one only.
CUDA_ARCH=${ARCHS-${CUDA_ARCH:-}} core/install/cuda_arch.sh "$out/options"
read -ra options <"$out/options"
archs=$(printf '%s\n' "${options[@]}" | sed -n 's/.*code=sm_//p')
[ -n "$archs" ] || { echo "compile.sh: core/install/cuda_arch.sh chose no architecture"; exit 1; }
echo '#define GDK_FN __device__ static __attribute__((__noinline__, __unused__))' >"$out/calls.h"
compile() { # architecture, how, debug options
	# calls: no function is inlined or optimized by ptxas; ptx: the same, and ptxas does not run
	local how="-include $out/calls.h"
	case $2 in
	inlined) how="-arch=sm_$1 -cubin -Xptxas -O3" ;;
	calls) how+=" -arch=sm_$1 -cubin -Xptxas -O0" ;;
	ptx) how+=" -arch=compute_$1 -ptx" ;;
	esac
	# shellcheck disable=SC2086 # options, a compiler and options
	$NVCC ${CUDAHOSTCXX:+-ccbin $CUDAHOSTCXX} -std=c++17 -O3 $how $3 -Xcompiler -Wall \
		-Werror all-warnings -I"$B/include" -o "$(mktemp -p "$out")" tests/gpu/compile_dev.cu ||
		return 255 # makes xargs stop
	echo "compile.sh: sm_$1 ($2${3:+ $3}) ok"
}
export -f compile
export B NVCC out
# With calls of functions, in half of the time: the functions then have the instructions for every
# scope, and ptxas assembles each of them. That checks that each architecture has all instructions.
# The examples and footprint.sh compile inlined code. No code of the debug build depends on the
# architecture or has instructions of its own. Without MORE=1 one architecture is enough, because
# footprint.sh compiles the most used functions for each. LONG=1: debug builds of all, and everything
# as make compiles it.
{
	if [ -n "${LONG:-}" ]; then
		for arch in $archs; do printf '%s\0' "$arch" inlined "" "$arch" inlined -DGDK_DEBUG; done
	else
		few=$archs
		[ -n "${MORE:-}" ] || few=$(grep -x 90 <<<"$archs") || few=${archs%%$'\n'*}
		for arch in $few; do printf '%s\0' "$arch" calls ""; done
		printf '%s\0' "${archs%%$'\n'*}" ptx -DGDK_DEBUG
	fi
} | xargs -0 -P "$(nproc)" -n 3 bash -c 'compile "$1" "$2" "$3"' compile
