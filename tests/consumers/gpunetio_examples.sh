#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Builds NVIDIA's examples (a checkout of NVIDIA-DOCA/gpunetio, branch R3.0) with their own makefiles
# against an installation of gdaki, and runs server and client on the software NIC. The sources
# are unchanged; the private headers of NVIDIA's library that they include are replaced.
#
# The examples are compiled by g++, with kernels on CPU threads (GPU "host"): for that, a script in
# place of nvcc translates the launches of kernels. With nvcc, they are also compiled for a GPU, and
# run if there is one.
#
# usage: gpunetio_examples.sh CHECKOUT
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
#   PREFIX     an installation of gdaki; otherwise `make install` puts one into a temporary folder
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
src=${1:-}
[ -f "$src/examples/verbs_common.h" ] || {
	echo "gpunetio_examples.sh: no checkout of NVIDIA-DOCA/gpunetio given"
	exit 77
}
grep -q doca_verbs_dev_open "$src/examples/verbs_common.cpp" || {
	echo "gpunetio_examples.sh: the checkout is older than 3.0"
	exit 77
}
src=$(cd "$src" && pwd)
tmp=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
bad=0
unset CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH CFLAGS CXXFLAGS LDFLAGS MAKEFLAGS
DIR=$tmp # for env.sh
. tests/gpu/env.sh
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh
use_debs
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
examples="put_bw write_bw write_lat"

complain() { # what, file of which to print the end
	echo "gpunetio_examples.sh: $1"
	[ -z "${2:-}" ] || tail -n 12 "$2" | sed 's/^/    /'
	bad=1
}

# The makefiles need a folder TOP_DIR with include, src and examples.
stage() { # folder
	mkdir -p "$1/src"
	ln -s "$prefix/include/gdaki" "$1/include"
	cp -r "$src/examples" "$1/examples"
	rm -rf "$1"/examples/*/build
	: >"$1/src/doca_verbs_uar.hpp"
	cat >"$1/src/doca_internal.hpp" <<-'HPP'
		#include <cstdio>
		#include <cstring>
		#include "host/doca_verbs.h"
		enum { LOG_EMERG, LOG_ALERT, LOG_CRIT, LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };
		#define DOCA_LOG(level, ...) ((void)(level), fprintf(stderr, __VA_ARGS__), (void)fputc('\n', stderr))
	HPP
}

build() { # folder of stage, CUDA_HOME, architecture, libraries of CUDA
	local e
	for e in $examples; do
		make -C "$1/examples/gpunetio_verbs_$e" TOP_DIR="$1" CUDA_HOME="$2" CUDA_ARCH="$3" \
			LDFLAGS="$4 $libs" >"$tmp/log" 2>&1 ||
			complain "$e does not build with CUDA_HOME=$2" "$tmp/log"
	done
	echo "gpunetio_examples.sh: ${examples// /, }: built with $2/bin/nvcc"
}

# Puts a script in place of nvcc that compiles kernels for CPU threads, and headers in place of CUDA's.
cpu_cuda() { # folder
	mkdir -p "$1/bin"
	cuda_headers "$1/include"
	cat >"$1/bin/nvcc" <<-'SH'
		#!/bin/bash
		args=()
		for a; do
			case $a in
			-arch=*) ;;
			*.cu)
				LAUNCH "$a" >"$a.cpp" || exit 1
				args+=("$a.cpp") ;;
			*) args+=("$a") ;;
			esac
		done
		exec g++ -O2 -pthread "${args[@]}"
	SH
	sed -i "s|LAUNCH|$PWD/tests/consumers/cpu_launch.py|" "$1/bin/nvcc"
	chmod +x "$1/bin/nvcc"
	mkdir "$1/lib64"
	ar rc "$1/lib64/libcuda.a" && ar rc "$1/lib64/libcudart.a"
}

# Runs server and client, and interrupts the server when the client has ended. The server of put_bw
# and write_bw then compares all data.
run() { # folder, example, GPU, other options
	local program=$1/examples/gpunetio_verbs_$2/gpunetio_verbs_$2 what="$2 on GPU $3" server lines i
	local -a options=(-d mlx5_0 -g "$3")
	local -a nic=(timeout -k 5 300 "$prefix/bin/softnic-run" --)
	# write_bw does not accept -l, and uses GID 0.
	[ "$2" = write_bw ] || options+=(-l "$gid")
	shift 3
	[ -x "$program" ] || { complain "$what was not built"; return; }
	"${nic[@]}" "$program" "${options[@]}" "$@" >"$tmp/server" 2>&1 &
	server=$!
	pids=("$server")
	for ((i = 0; i < 300; i++)); do
		grep -q 'Listening' "$tmp/server" && break
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	"${nic[@]}" "$program" "${options[@]}" -c 127.0.0.1 "$@" >"$tmp/client" 2>&1 ||
		complain "the client of $what fails" "$tmp/client"
	case $program in
	*_bw) kill -INT "$(pgrep -P "$server")" ;; # the child of timeout
	esac
	wait "$server" || complain "the server of $what fails" "$tmp/server"
	pids=()
	case $program in
	*_bw) grep -q 'Validation successfull! Data received correctly from client' "$tmp/server" ||
		complain "the server of $what does not find the data" "$tmp/server" ;;
	esac
	! grep -i 'Error CQE' "$tmp/client" || complain "$what has an error CQE"
	lines=$(grep -c -E '^ [0-9]+ ' "$tmp/client")
	[ "$lines" -ge 10 ] || complain "$what prints $lines results" "$tmp/client"
	echo "gpunetio_examples.sh: $what, $*: $lines sizes; last:$(grep -E '^ [0-9]+ ' "$tmp/client" | tail -n 1 | tr -s ' \t' ' ')"
}

prefix=${PREFIX:-$tmp/gdaki}
[ -n "${PREFIX:-}" ] || make --no-print-directory B="$B" NVCC="$NVCC" PREFIX="$prefix" install >"$tmp/log" 2>&1 ||
	{ complain "make install fails" "$tmp/log"; exit 1; }
libs=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs gdaki 2>/dev/null) ||
	libs="-L$prefix/lib -lgdaki -lmlx5 -libverbs -lnuma -ldl -lpthread"
gid=3 # of the software NIC: RoCEv2 with an IPv4 address

stage "$tmp/cpu"
cpu_cuda "$tmp/cpu_cuda"
build "$tmp/cpu" "$tmp/cpu_cuda" 0 "-L$tmp/cpu_cuda/lib64 -lcuda -lcudart"
run "$tmp/cpu" put_bw host -i 512
run "$tmp/cpu" put_bw host -i 512 -p 1 -e 1
run "$tmp/cpu" write_bw host -i 512
run "$tmp/cpu" write_lat host -i 16

[ -n "$NVCC" ] || { echo "gpunetio_examples.sh: no $cuda/bin/nvcc: not compiled for a GPU"; exit $bad; }
cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
stage "$tmp/gpu"
# CUDA has a libcuda.so to link with for machines without a driver.
driver=$(find "$cuda/" -name libcuda.so -printf '-L%h ' 2>/dev/null)
build "$tmp/gpu" "$cuda" "${cap:-90}" "$driver-L$cuda/lib64 -lcuda -lcudart"
if [ -z "$cap" ]; then
	echo "gpunetio_examples.sh: no GPU: not run on one"
else
	gpu=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0)
	for p in 0 1 2; do
		run "$tmp/gpu" put_bw "$gpu" -i 512 -p $p
		run "$tmp/gpu" write_bw "$gpu" -i 512 -p $p
		run "$tmp/gpu" write_lat "$gpu" -i 64 -p $p
	done
fi
exit $bad
