#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# On a machine with CUDA GPUs, no NIC and no network: the unmodified NCCL of the Python package
# nvidia-nccl (or NCCL_HOME with include/ and lib/libnccl.so.2) between two processes on one
# GPU and, where there are two, on two, each with a software NIC: collectives and messages,
# and device-initiated puts by NCCL's proxy (GIN type 2) and by doorbells of the GPU (type 3,
# handler 2). NCCL finds GPUDirect; memory is registered by address and by dmabuf. Every byte
# is checked, and no packet may be sent again. Two processes on one GPU take turns of
# milliseconds, in which no copy to or from it ends, unless a daemon of CUDA MPS lets them run
# at the same time: the script starts one of its own where nvidia-cuda-mps-control is
# (NO_MPS=1: without). Ends with "N passed, N failed".
# usage: nccl.sh [BYTES-OF-THE-LARGEST-ALL-REDUCE [PART-OF-THE-NAMES-OF-CASES]]; the output of
# each process stays in DIR

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
# The network alone connects the two, which are of different hosts to NCCL.
export NCCL_NVLS_ENABLE=0 NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NET=IB NCCL_IB_HCA=mlx5_0 \
	NCCL_SOCKET_IFNAME=lo NCCL_NET_GDR_LEVEL=SYS NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH

count() { # statistic; of both processes, whose own counts are the first of each file
	sum=0
	for f in "$at"/stats/*.json; do
		sum=$((sum + $(grep -o "\"$1\": [0-9]*" "$f" | head -n 1 | grep -o '[0-9]*$')))
	done
	echo "$sum"
}

passed=0
failed=0
verdict() { # name, reason why it failed; nothing: passed
	if [ -z "$2" ]; then
		passed=$((passed + 1))
		echo "ok    $1; $(count retransmits) of $(count tx_packets) packets sent again"
	else
		failed=$((failed + 1))
		echo "FAIL  $1: $2"
		tail -n 12 "$at"/err.* | cut -c 1-220
	fi
}

# Words of a variable's settings become variables of both processes.
pair() { # name, "GPU GPU", NIC options, "VARIABLE=value...", line that NCCL must log, arguments
	name=$1 on=$2 opts=$3 vars=$4 line=$5
	shift 5
	[[ $name == *$only* ]] || return 0
	at=$DIR/$(echo "$name" | tr ' ' _)
	rm -rf "$at"
	mkdir -p "$at/meet" "$at/stats"
	rank=0
	pids=
	for gpu in $on; do
		# shellcheck disable=SC2086 # words
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
		verdict "$name" "$(count retransmits) of $(count tx_packets) packets sent again"
	else
		verdict "$name" ""
	fi
}

# Its pipes are in a folder of this run, so that no other daemon or program is concerned.
mps_start() {
	[ -z "${NO_MPS:-}" ] && command -v nvidia-cuda-mps-control >/dev/null || return 0
	mkdir -p "$DIR/mps"
	export CUDA_MPS_PIPE_DIRECTORY="$DIR/mps" CUDA_MPS_LOG_DIRECTORY="$DIR/mps"
	if CUDA_VISIBLE_DEVICES=0 timeout 20 nvidia-cuda-mps-control -d; then
		trap mps_stop EXIT
		echo "one GPU: shared by CUDA MPS"
	else
		unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
		echo "one GPU: CUDA MPS does not start, the processes take turns"
	fi
}

mps_stop() {
	[ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || return 0
	echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

gdr=GDRDMA
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
