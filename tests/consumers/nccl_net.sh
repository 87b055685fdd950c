#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles NCCL's InfiniBand transport (src/transport/net_ib of a checkout of NVIDIA/nccl, 2.30)
# and the parts of NCCL that it needs, unchanged, with CUDA's headers. Two processes, each with
# a software NIC, then move data two-sided and one-sided in host memory, on a wire without loss
# and on lossy ones.
# usage: nccl_net.sh CHECKOUT [OPTION...]	options of softnic-run, in place of these wires
#   CUDA_HOME: folder of the CUDA headers (/usr/local/cuda)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
src=${1:-}
cuda=${CUDA_HOME:-/usr/local/cuda}/include
if [ ! -f "$src/src/transport/net_ib/p2p_resiliency.cc" ] || [ ! -f "$cuda/cuda_runtime.h" ]; then
	echo "nccl_net.sh: no checkout of NVIDIA/nccl given, or no headers in $cuda"
	exit 77
fi
src=$(cd "$src/src" && pwd)
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
out=$B/consumers/nccl_net
mkdir -p "$out"
bad=0

sed -e 's/\${nccl:Major}/2/; s/\${nccl:Minor}/30/; s/\${nccl:Patch}/0/; s/\${nccl:Suffix}//' \
	-e 's/\${nccl:Version}/23000/' "$src/nccl.h.in" >"$tmp/nccl.h"
inc=(-I"$tmp" -I"$src" -I"$src/include" -I"$src/include/plugin" -I"$src/transport/net_ib"
	-I"$cuda" -I"$cuda/cccl")
files=("$src"/transport/net_ib/*.cc "$src"/os/linux.cc "$src"/debug.cc
	"$src"/param/{param,param_registry}.cc
	"$src"/misc/{ibvwrap,ibvsymbols,mlx5dvwrap,mlx5dvsymbols,socket,param,utils}.cc
	tests/consumers/nccl_net_driver.cc)
compile() { # file
	${CXX:-g++} -std=c++17 -O1 -w -DNCCL_OS_LINUX "${inc[@]}" -c "$1" \
		-o "$out/$(cksum <<<"$1" | cut -d' ' -f1).o"
}
export -f compile
rm -f "$out"/*.o
for f in "${files[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	compile "$f" &
done
wait
${CXX:-g++} -o "$out/driver" "$out"/*.o -ldl -lpthread || { echo "nccl_net.sh: not built"; exit 1; }

# Sums a statistic of both processes. In each file the device's own count is the first one.
count() { # statistic
	local f sum=0
	for f in "$tmp"/stats/*.json; do
		sum=$((sum + $(grep -o "\"$1\": [0-9]*" "$f" | head -n 1 | grep -o '[0-9]*$')))
	done
	echo "$sum"
}

one() { # name, rounds, softnic-run options
	local name=$1 rounds=$2 r rc=0
	shift 2
	rm -rf "$tmp/meet" "$tmp/stats"
	mkdir "$tmp/meet" "$tmp/stats"
	for r in 0 1; do
		NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET timeout -k 5 100 \
			"$B/bin/softnic-run" --dmabuf --strict --stats-dir "$tmp/stats" \
			--seed $((r + 1)) "$@" -- "$out/driver" "$tmp/meet" $r "$rounds" >"$tmp/out.$r" 2>&1 &
	done
	wait -n || rc=$?
	wait -n || rc=$?
	resent=$(count retransmits)
	# The NIC probes a peer that gets no CPU for some milliseconds: tolerate a few retransmissions.
	if [ $rc = 0 ] && [ "$name" = clean ] && [ $((resent * 1000)) -gt "$(count tx_packets)" ]; then
		echo "nccl_net.sh: $resent of $(count tx_packets) packets retransmitted on a wire without loss"
		rc=1
	fi
	if [ $rc = 0 ] && ! grep -q 'set_ece={supported=1, vendor_id=0x15b3, options=0x3' "$tmp/out.0"
	then
		echo "nccl_net.sh: the two NICs did not negotiate the ECE options 0x3"
		rc=1
	fi
	if [ $rc = 0 ]; then
		echo "ok   $name: $(sed -n 's/^rank 0: //p' "$tmp/out.0" | paste -sd';'); $resent retransmitted"
	else
		echo "FAIL $name (exit $rc)"
		tail -n 15 "$tmp"/out.*
		bad=1
	fi
}

if [ $# -gt 0 ]; then
	one "$*" 5 "$@"
	exit $bad
fi
one clean 5
one lossy 2 --loss 0.01
one disordered 2 --loss 0.002 --reorder 0.01 --dup 0.01
exit $bad
