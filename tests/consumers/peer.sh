#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# NVIDIA's own host library (a checkout of NVIDIA-DOCA/gpunetio, 3.0) on the
# software NIC: it is compiled unchanged in a temporary folder, with a driver
# program of ours; CUDA is headers alone, the GPU is the stand-in's.
# usage: peer.sh CHECKOUT   (CUDA_HOME: /usr/local/cuda)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
src=${1:-}
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -f "$src/src/doca_gpunetio_high_level.cpp" ] || {
	echo "peer.sh: no checkout of NVIDIA-DOCA/gpunetio given"
	exit 77
}
[ -f "$cuda/include/cuda_runtime_api.h" ] || { echo "peer.sh: no CUDA headers in $cuda"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

inc=(-I"$src/include" -I"$src/src" -I"$cuda/include")
list=$(sed -n 's/^LIBSRCS[: +]*= //p' "$src/Makefile" | tr ' ' '\n' |
	grep -v -E 'cuda_wrapper|mlx5dv_wrapper|ibv_wrapper' | sort -u)
for f in $list; do
	echo "$src/src/$f"
done | xargs -P 2 -I{} sh -c 'g++ -O1 -fPIC -w "$@" -c "{}" -o "$0/$(basename "{}" .cpp).o"' "$tmp" "${inc[@]}" || {
	echo "peer.sh: NVIDIA's library does not compile"
	exit 1
}
ar rcs "$tmp/libpeer.a" "$tmp"/*.o
gcc -O1 -Wall -Werror -I"$cuda/include" -c tests/consumers/peer_cudart.c -o "$tmp/cudart.o" &&
	g++ -O1 -Wall -Werror "${inc[@]}" tests/consumers/peer_driver.cpp "$tmp/libpeer.a" "$tmp/cudart.o" \
		-o "$tmp/driver" -L"$B/standin" -l:libcuda.so.1 -libverbs -lmlx5 -ldl -lpthread || exit 1
cp "$B/standin/libgdrapi.so" "$tmp/libgdrapi.so.2"

# The handlers AUTO, CPU proxy, GPU doorbell and BlueFlame; a GPU that can map registers, and
# one that cannot, for which only the CPU rings.
bad=0
while read -r iomem handler how; do
	STANDIN_CUDA_IOMEM=$iomem LD_LIBRARY_PATH=$B/standin:$tmp timeout 60 "$run" --strict -- \
		"$tmp/driver" "$handler" $how >"$tmp/out" 2>&1 </dev/null
	rc=$?
	[ $rc = 0 ] || {
		echo "peer.sh: handler $handler $how: exit $rc"
		tail -n 15 "$tmp/out" | sed 's/^/    /'
		bad=1
	}
	grep '^handler' "$tmp/out" | sed 's/^/peer.sh: /'
done <<-END
	1 0
	1 1
	1 2
	1 6
	1 0 collapsed
	1 0 no-dbr
	1 1 service
	1 0 group
	1 1 group
	1 2 group
	0 0
	0 1
	0 0 group
END
exit $bad
