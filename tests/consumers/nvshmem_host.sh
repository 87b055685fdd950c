#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the host side of NVSHMEM's ibgda transport on the software NIC. ibgda.cpp and the sources
# that it needs (src/modules/transport) are compiled unchanged. In a driver of ours, two
# processing elements create, connect and use their RC queue pairs. Of CUDA only the headers are
# needed; a stand-in replaces its driver. No library of gdaki takes part.
# usage: nvshmem_host.sh CHECKOUT	a checkout of NVIDIA/nvshmem (tested with 3.5)
#   CUDA_HOME: folder of the CUDA headers (/usr/local/cuda)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
name=nvshmem_host.sh
cuda=${CUDA_HOME:-/usr/local/cuda}
src=${1:-}/src
transport=$src/modules/transport
[ -f "$transport/ibgda/ibgda.cpp" ] || { echo "$name: no checkout of NVSHMEM given"; exit 77; }
[ -f "$cuda/include/cuda_runtime_api.h" ] || { echo "$name: no CUDA headers in $cuda"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Headers that NVSHMEM's build generates.
mkdir -p "$tmp/gen/non_abi"
printf '#define NVSHMEM_%s\n' IBGDA_SUPPORT USE_MLX5DV >"$tmp/gen/non_abi/nvshmem_build_options.h"
sed -n 's/^#define \(NVSHMEM_[A-Z_]*_VERSION\) .*/#define \1 3/p; s/^#define \(NVSHMEM_BUILD_VARS\) .*/#define \1 ""/p' \
	"$src/include/non_abi/nvshmem_version.h.in" >"$tmp/gen/non_abi/nvshmem_version.h"
inc=(-I"$tmp/gen" -I"$src/include" -I"$transport/common" -I"$transport/ibgda" -I"$cuda/include")
common=("$transport"/common/transport_{common,ib_common,mlx5_common}.cpp)
printf '%s\n' "${common[@]}" "$PWD/tests/consumers/nvshmem_host_driver.cpp" | xargs -P 2 -I{} sh -c \
	'g++ -std=gnu++17 -O1 -w "$@" -c "{}" -o "$0/$(basename "{}" .cpp).o"' "$tmp" \
	-DNVSHMEM_X86_64 "${inc[@]}" 2>"$tmp/log" || {
	echo "$name: ibgda does not compile"
	sed -n 's/.*error: /    /p' "$tmp/log" | head -n 20
	exit 1
}
gcc -O1 -Wall -Werror -I"$cuda/include" -c tests/consumers/peer_cudart.c -o "$tmp/cudart.o" &&
	g++ -pthread -o "$tmp/driver" "$tmp"/*.o -L"$B/standin" -l:libcuda.so.1 -libverbs -lmlx5 -ldl || exit 1

bad=0
# With --dbrec-only the NIC reads the DBRECs and ignores the doorbells' values.
while read -r memory how; do
	# shellcheck disable=SC2086 # no argument if how is empty
	env LD_LIBRARY_PATH="$B/standin" STANDIN_CUDA_IOMEM=1 STANDIN_CUDA_DMABUF=0 NVSHMEM_IB_GID_INDEX=3 \
		NVSHMEM_IBGDA_FORCE_NIC_BUF_MEMTYPE=$memory timeout 60 "$B/bin/softnic-run" --strict $how -- \
		"$tmp/driver" >"$tmp/out" 2>&1 </dev/null
	rc=$?
	[ $rc = 0 ] || {
		echo "$name: $memory $how: exit status $rc"
		tail -n 15 "$tmp/out"
		bad=1
	}
	grep -E 'data right$|^rings' "$tmp/out" | sed "s/^/$name: ${memory}${how:+ $how}: /"
done <<-END
	gpumem
	hostmem
	gpumem --dbrec-only
END
exit $bad
