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
name=peer.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/consumers/peer_build.sh
peer_build -O1 &&
	g++ -O1 -Wall -Werror "${peer_inc[@]}" tests/consumers/peer_driver.cpp "${peer_libs[@]}" \
		-o "$tmp/driver" || exit 1

# The handlers AUTO, CPU proxy, GPU doorbell and BlueFlame; a GPU that can map registers, and
# one that cannot, for which only the CPU rings.
bad=0
while read -r iomem handler how; do
	# shellcheck disable=SC2086 # how may be nothing
	env STANDIN_CUDA_IOMEM="$iomem" "${peer_env[@]}" timeout 60 "$run" --strict -- \
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
