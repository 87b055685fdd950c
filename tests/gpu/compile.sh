#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The device headers compile as C++17 and, where nvcc is, as CUDA for each
# architecture we claim. Only the compilation is checked here; tests/gpu/run
# executes.
set -eu
B="${B:-build}"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for debug in "" -DGDK_DEBUG; do
	# shellcheck disable=SC2086
	g++ -std=c++17 -Wall -Wextra -Werror $debug -I"$B/include" -c -o "$out/dev.o" \
		tests/gpu/compile_dev.cpp
done

# A memory key is a type of its own: a number, whose byte order nobody knows, is refused.
key() { # command, expression
	printf '#include "device/gdk/onesided_dev.h"\nvoid f(struct doca_gpu_dev_verbs_qp *q, %s\n%s' \
		'struct doca_gpu_dev_verbs_wqe *w, uint32_t lkey);' \
		'void f(struct doca_gpu_dev_verbs_qp *q, struct doca_gpu_dev_verbs_wqe *w, uint32_t lkey)' \
		>"$out/key.c"
	printf '\n{ gdk_wqe_dump(q, w, 0, 8, 0, %s, 1); }\n' "$2" >>"$out/key.c"
	$1 -I"$B/include" -fsyntax-only "$out/key.c" 2>/dev/null
}
for compiler in "gcc -std=c11" "g++ -std=c++17 -x c++"; do
	key "$compiler" 'gdk_key(lkey)' || { echo "compile.sh: $compiler: a key is refused"; exit 1; }
	! key "$compiler" lkey || { echo "compile.sh: $compiler: a number passes for a key"; exit 1; }
done
if [ -z "${NVCC:-}" ]; then
	echo "compile.sh: nvcc not found: C++17 only"
	exit 0
fi
compile() { # architecture and options
	# shellcheck disable=SC2086
	"$NVCC" -std=c++17 -O3 -arch=sm_$1 -Xcompiler -Wall -Werror all-warnings -I"$B/include" \
		-cubin -o "$(mktemp -p "$out")" tests/gpu/compile_dev.cu || return 255 # xargs ends
	echo "compile.sh: sm_$1 ok"
}
export -f compile
export B NVCC out
# Nearly a minute each, on one core.
printf '%s\0' 80 90 100 "80 -DGDK_DEBUG" "90 -DGDK_DEBUG" |
	xargs -0 -P "$(nproc)" -I{} bash -c 'compile "$1"' compile {}
