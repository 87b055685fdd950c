#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs NVIDIA's host library (a checkout of NVIDIA-DOCA/gpunetio, 3.0) on the software NIC. The
# library is compiled unchanged in a temporary folder, with a driver program of ours. Of CUDA
# only the headers are needed; a stand-in replaces its driver.
# usage: peer.sh CHECKOUT   (CUDA_HOME: folder of the CUDA headers, /usr/local/cuda)
# shellcheck disable=SC2034 # src and name are read by the included script
# shellcheck disable=SC2154 # the included script sets peer_*
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

# Each line: whether the GPU can map doorbell registers (if not, only the CPU can ring), the
# handler (AUTO, CPU proxy, GPU doorbell, BlueFlame), and an option of the driver program.
bad=0
while read -r iomem handler how; do
	# shellcheck disable=SC2086 # no argument if how is empty
	env STANDIN_CUDA_IOMEM="$iomem" "${peer_env[@]}" timeout 60 "$run" --strict -- \
		"$tmp/driver" "$handler" $how >"$tmp/out" 2>&1 </dev/null
	rc=$?
	[ $rc = 0 ] || {
		echo "peer.sh: handler $handler $how: exit status $rc"
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
