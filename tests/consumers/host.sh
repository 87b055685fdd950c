#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles host sources of other projects, which are written for DOCA GPUNetIO 3.x, unchanged
# with gdaki's headers instead of NVIDIA's, and checks that gdaki's archives define the
# functions that they call. Prints each name that is missing or has another type. The script
# recognizes a checkout by these files:
#	NVSHMEM		src/modules/transport/gpunetio
#	MSCCL++		src/gpunetio/host, or src/core/gpu_net_io_service.cc
#	NCCL		src/transport/net_ib/gdaki (2.30 is written for 2, 2.31 for what came after 3)
#	gpunetio	examples (NVIDIA's own)
# usage: host.sh CHECKOUT...	(CUDA_HOME: folder of the CUDA headers, /usr/local/cuda)
# Exit status 77: no such checkout was given, or only for DOCA GPUNetIO 2.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -f "$cuda/include/cuda_runtime_api.h" ] || { echo "host.sh: no CUDA headers in $cuda"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
inc=$(readlink -f "$B/include")
compiled=0 bad=0

# Creates the headers that NVSHMEM's build generates, and its link to gpunetio's headers.
stage() { # folder
	mkdir -p "$1/gen/non_abi" "$1/as"
	ln -sfn "$inc" "$1/as/gpunetio"
	printf '#define NVSHMEM_%s\n' IBGDA_SUPPORT GPUNETIO_SUPPORT USE_MLX5DV \
		>"$1/gen/non_abi/nvshmem_build_options.h"
	sed -n 's/^#define \(NVSHMEM_[A-Z_]*_VERSION\) .*/#define \1 3/p; s/^#define \(NVSHMEM_BUILD_VARS\) .*/#define \1 ""/p' \
		"$src/src/include/non_abi/nvshmem_version.h.in" >"$1/gen/non_abi/nvshmem_version.h" 2>/dev/null
}

# Creates nccl.h from its template, and the part of CUDA's C++ library that NCCL needs.
stage_nccl() { # folder
	mkdir -p "$1/cuda"
	sed 's/\${[A-Za-z:_]*}/2/g' "$src/src/nccl.h.in" >"$1/nccl.h"
	printf '%s\n' '#include <atomic>' 'namespace cuda { using namespace std; }' >"$1/cuda/atomic"
}

# Creates the private headers of the library that the examples include, for its log macros.
private_headers() {
	mkdir -p "$1"
	: >"$1/doca_verbs_uar.hpp"
	printf '%s\n' '#include <cstdio>' '#include <cstring>' '#include "host/doca_verbs.h"' \
		'enum { LOG_EMERG, LOG_ALERT, LOG_CRIT, LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };' \
		'#define DOCA_LOG(level, ...) ((void)(level), fprintf(stderr, __VA_ARGS__))' >"$1/doca_internal.hpp"
}

# Prints the errors about missing names and wrong types, each once with its count.
explain() { # log
	sed -n -e "s/.*error: \(.*\)/\1/p" "$1" | grep -E "doca_|DOCA_|gpunetio|No such file" |
		sort | uniq -c | sort -rn | sed 's/^ *\([0-9]*\) /    \1 x /' | head -n 30
}

# Succeeds if the file is for DOCA GPUNetIO 2: since 3, address handles and QPs are created
# with a doca_dev.
is_for_2() { # name of the project, file that creates them
	grep -q doca_verbs_ah_attr_create "$2" && ! grep -q 'doca_verbs_dev_open\|net_dev' "$2" &&
		echo "host.sh: $1: $(basename "$2") uses no doca_dev: it is written for DOCA GPUNetIO 2"
}

compile() { # name of the project, source, options
	local name=$1 file=$2 obj
	shift 2
	[ -f "$file" ] || return
	obj=$tmp/$(basename "$file").o
	is_for_2 "$name" "$file" && return
	compiled=$((compiled + 1))
	if ! g++ -std=gnu++17 -w -fmax-errors=200 -c -o "$obj" "$@" -I"$cuda/include" "$file" 2>"$tmp/log"; then
		echo "host.sh: $name: $(basename "$file") does not compile:"
		explain "$tmp/log" | grep . || sed -n 's/.*error: /    /p' "$tmp/log" | head -n 10
		bad=1
		return
	fi
	nm -u "$obj" | sed -n 's/^ *U \(doca_[a-z0-9_]*\)$/\1/p' | sort -u >"$tmp/calls"
	comm -23 "$tmp/calls" "$tmp/ours" >"$tmp/missing"
	if [ -s "$tmp/missing" ]; then
		echo "host.sh: $name: $(basename "$file") calls functions that the archives lack:"
		sed 's/^/    /' "$tmp/missing"
		bad=1
		return
	fi
	echo "host.sh: $name: $(basename "$file"): $(wc -l <"$tmp/calls") functions, all defined"
}

nm "$B"/lib/libgdaki_*.a 2>/dev/null | sed -n 's/.* T \(doca_[a-z0-9_]*\)$/\1/p' | sort -u >"$tmp/ours"
for src in "$@"; do
	if [ -d "$src/src/modules/transport" ]; then
		stage "$tmp/nvshmem"
		compile NVSHMEM "$src/src/modules/transport/gpunetio/gpunetio.cpp" -DNVSHMEM_X86_64 \
			-I"$tmp/nvshmem/as" -I"$inc" -I"$tmp/nvshmem/gen" \
			-I"$src/src/modules/transport/common" -I"$src/src/include" -I"$src/src/include/internal"
	fi
	for f in src/gpunetio/host/gpu_net_io_service.cpp src/core/gpu_net_io_service.cc; do
		compile MSCCL++ "$src/$f" -DUSE_IBVERBS -DMSCCLPP_USE_CUDA -I"$inc" -I"$src/include" \
			-I"$src/src/core/include" -I"$src/src/gpunetio/include"
	done
	nccl=$src/src/transport/net_ib/gdaki/gin_host_gdaki.cc
	if [ -f "$nccl" ]; then
		stage_nccl "$tmp/nccl"
		compile NCCL "$nccl" -I"$tmp/nccl" -I"$inc" -I"$src/src/include" -I"$src/src" \
			-I"$src/src/include/plugin" -I"$(dirname "$nccl")"
	fi
	if [ -f "$src/examples/verbs_common.h" ] && ! is_for_2 gpunetio "$src/examples/verbs_common.cpp"; then
		private_headers "$tmp/private"
		for f in "$src"/examples/*.cpp "$src"/examples/*/*.cpp; do
			compile gpunetio "$f" -I"$tmp/private" -I"$inc" -I"$inc/host" -I"$inc/common" \
				-I"$src/examples"
		done
	fi
done
[ "$compiled" != 0 ] || { echo "host.sh: no checkout with host sources at 3.x given"; exit 77; }
exit "$bad"
