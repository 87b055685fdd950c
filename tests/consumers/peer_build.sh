# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts that build NVIDIA's host library. The including script runs at the top
# of the repository and sets name (its own, for messages), B, src (a checkout of
# NVIDIA-DOCA/gpunetio, 3.0) and tmp (a folder). peer_build compiles the library unchanged into
# $tmp/libpeer.a. Programs link "${peer_libs[@]}" and run with the environment
# "${peer_env[@]}". Of CUDA only the headers are needed; a stand-in replaces its driver.
# shellcheck shell=bash
# shellcheck disable=SC2034 # the including script reads peer_inc, peer_libs and peer_env
# shellcheck disable=SC2154 # the including script sets name, B, src and tmp
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -f "$src/src/doca_gpunetio_high_level.cpp" ] || {
	echo "$name: no checkout of NVIDIA-DOCA/gpunetio given"
	exit 77
}
[ -f "$cuda/include/cuda_runtime_api.h" ] || { echo "$name: no CUDA headers in $cuda"; exit 77; }
peer_inc=(-I"$src/include" -I"$src/src" -I"$cuda/include")
peer_libs=("$tmp/libpeer.a" "$tmp/cudart.o" -L"$B/standin" -l:libcuda.so.1 -libverbs -lmlx5 -ldl -lpthread)
peer_env=(LD_LIBRARY_PATH="$B/standin:$tmp")

peer_build() { # options of the compiler
	local list f
	list=$(sed -n 's/^LIBSRCS[: +]*= //p' "$src/Makefile" | tr ' ' '\n' |
		grep -v -E 'cuda_wrapper|mlx5dv_wrapper|ibv_wrapper' | sort -u)
	for f in $list; do
		echo "$src/src/$f"
	done | xargs -P 2 -I{} sh -c 'g++ -fPIC -w "$@" -c "{}" -o "$0/$(basename "{}" .cpp).o"' \
		"$tmp" "$@" "${peer_inc[@]}" || {
		echo "$name: NVIDIA's library does not compile"
		return 1
	}
	ar rcs "$tmp/libpeer.a" "$tmp"/*.o
	gcc -O1 -fPIC -Wall -Werror -I"$cuda/include" -c tests/consumers/peer_cudart.c -o "$tmp/cudart.o" &&
		cp "$B/standin/libgdrapi.so" "$tmp/libgdrapi.so.2"
}
