#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the unmodified NCCL of the Python package nvidia-nccl (or of NCCL_HOME, with include/ and
# lib/libnccl.so.2) on a machine with CUDA GPUs, without NIC or network. Two processes, each
# with a software NIC, share one GPU, and if there are two GPUs, then use one each. They run
# collectives and messages, and device-initiated puts through NCCL's proxy (GIN type 2) and
# through doorbells of the GPU (type 3, handler 2). NCCL must detect GPUDirect. Memory is
# registered by address and by dmabuf. Every byte is checked, and no packet may be retransmitted.
#
# Without CUDA MPS, two processes on one GPU run alternately for milliseconds, during which the
# copies of the other process wait. The script therefore starts an MPS daemon if
# nvidia-cuda-mps-control is installed (unless NO_MPS=1). Prints "N passed, N failed" at the end.
# usage: nccl.sh [BYTES [PART]]	BYTES: largest all-reduce; PART: only cases with PART in the name
#   DIR: folder for the output of each process (a temporary folder)

cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
most=${1:-67108864}
only=${2:-}
DIR=${DIR:-$(mktemp -d)}
. tests/gpu/env.sh

home=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl as n; print(n.__path__[0])' 2>/dev/null)}
[ -f "$home/lib/libnccl.so.2" ] || { echo "no NCCL: 0 passed, 1 failed"; exit 1; }
gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)
[ "$gpus" -gt 0 ] || { echo "no GPU: 0 passed, 1 failed"; exit 1; }
use_debs
make -j"$(nproc)" "$B/lib/libsoftnic.so" "$B/bin/softnic-run" >"$DIR/build.log" 2>&1 || {
	tail -n 20 "$DIR/build.log"
	echo "0 passed, 1 failed (build)"
	exit 1
}
app=$B/gpu/nccl_app
if [ ! -x "$app" ] || [ tests/gpu/nccl_app.cu -nt "$app" ]; then
	arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 | tr -d .)
	mkdir -p "$B/gpu"
	${NVCC:-nvcc} -std=c++17 -O2 -arch="sm_$arch" -cudart static -w -I"$home/include" -o "$app" \
		tests/gpu/nccl_app.cu -L"$home/lib" -l:libnccl.so.2 || {
		echo "0 passed, 1 failed (nvcc)"
		exit 1
	}
fi
export LD_LIBRARY_PATH="$home/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# NCCL must use only the network between the two, as if they were on different hosts.
export NCCL_NVLS_ENABLE=0 NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NET=IB NCCL_IB_HCA=mlx5_0 \
	NCCL_SOCKET_IFNAME=lo NCCL_NET_GDR_LEVEL=SYS NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH

# Sums a statistic of both processes. In each file the device's own count is the first one.
count() { # statistic
	sum=0
	for f in "$at"/stats/*.json; do
		sum=$((sum + $(grep -o "\"$1\": [0-9]*" "$f" | head -n 1 | grep -o '[0-9]*$')))
	done
	echo "$sum"
}

passed=0
failed=0
verdict() { # name, reason of the failure (empty: passed)
	if [ -z "$2" ]; then
		passed=$((passed + 1))
		echo "ok    $1; $(count retransmits) of $(count tx_packets) packets retransmitted"
	else
		failed=$((failed + 1))
		echo "FAIL  $1: $2"
		tail -n 12 "$at"/err.* | cut -c 1-220
	fi
}

# Runs the two processes of one case.
# name, "GPU GPU", NIC options, "VARIABLE=value...", line that NCCL must log, arguments
pair() {
	name=$1 on=$2 opts=$3 vars=$4 line=$5
	shift 5
	[[ $name == *$only* ]] || return 0
	at=$DIR/$(echo "$name" | tr ' ' _)
	rm -rf "$at"
	mkdir -p "$at/meet" "$at/stats"
	rank=0
	pids=
	for gpu in $on; do
		# shellcheck disable=SC2086 # lists of settings and of options
		env $vars NCCL_HOSTID="host$rank" NCCL_DEBUG_FILE="$at/nccl.$rank" \
			timeout -k 5 "${LIMIT:-100}" "$B/bin/softnic-run" --stats --stats-dir "$at/stats" $opts -- \
			"$app" "$at/meet" $rank "$gpu" "$@" >"$at/out.$rank" 2>"$at/err.$rank" &
		pids="$pids $!"
		rank=$((rank + 1))
	done
	rc=0
	for pid in $pids; do
		wait "$pid" || rc=$?
	done
	sed 's/^/      /' "$at/out.0"
	grep FAIL "$at/out.1"
	if [ $rc -ne 0 ]; then
		verdict "$name" "exit status $rc"
	elif ! grep -q "$line" "$at/nccl.0"; then
		verdict "$name" "NCCL does not log '$line'"
	elif [ "$(count retransmits)" -gt 0 ]; then
		verdict "$name" "$(count retransmits) of $(count tx_packets) packets retransmitted"
	else
		verdict "$name" ""
	fi
}

gdr=GDRDMA
trap mps_stop EXIT
for on in "0 0" "0 1"; do
	[ "$on" = "0 0" ] || [ "$gpus" -gt 1 ] || continue
	what="one GPU"
	if [ "$on" = "0 0" ]; then
		mps_start
	else
		what="two GPUs"
		mps_stop
	fi
	pair "$what collectives by address" "$on" "" NCCL_DMABUF_ENABLE=0 $gdr collectives "$most"
	pair "$what collectives by dmabuf" "$on" --dmabuf NCCL_DMABUF_ENABLE=1 $gdr collectives "$most"
	pair "$what GIN by the proxy" "$on" "" "NCCL_GIN_ENABLE=1 NCCL_GIN_TYPE=2" . gin-proxy
	pair "$what GIN by the GPU" "$on" "" \
		"NCCL_GIN_ENABLE=1 NCCL_GIN_TYPE=3 NCCL_GIN_GDAKI_NIC_HANDLER=2" . gin
	pair "$what GIN by the GPU with dmabuf" "$on" --dmabuf \
		"NCCL_GIN_ENABLE=1 NCCL_GIN_TYPE=3 NCCL_GIN_GDAKI_NIC_HANDLER=2 NCCL_DMABUF_ENABLE=1" . gin
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
