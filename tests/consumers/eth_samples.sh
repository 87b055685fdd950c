#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# NVIDIA's samples gpunetio_simple_receive, gpunetio_simple_send and gpunetio_send_wait_time
# (NVIDIA-DOCA/doca-samples, tags 3.3.0 and 3.2.1), hosts and kernels unchanged, with gdaki-doca:
# compiles them, the kernels with g++ for CPU threads and, if it is installed, with nvcc, and runs them
# on the software NIC, also on a GPU if there is one. eth_samples_peer.py is the other end, by the
# kernel's vxlan device in another network namespace. Where there is no such device, and with
# OTHER_END=socket, it sends and receives the VXLAN packets itself, which needs no namespace.
#   simple_receive   receives all datagrams, in each scope, on CPU threads with and without DUMPs
#   simple_send      sends equal frames until a signal, in each scope, not shared, and by the CPU proxy
#   send_wait_time   sends 8 bursts of 32 packets, each once, none before its time
#
# usage: eth_samples.sh CHECKOUT	(a work tree, or a git directory without one)
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
#   GPU_ONLY   does not run them on CPU threads
#   OTHER_END  socket: without the kernel's vxlan device
# Exit status 77: no such checkout was given.
# shellcheck disable=SC2086 # names of namespaces and lists of options
set -u
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
name=eth_samples.sh
tmp=$(mktemp -d)
objects=$tmp
a=gdk-a-$$ b=gdk-b-$$
server=
listener=
cleanup() {
	# shellcheck disable=SC2046 # numbers of processes
	kill $server $listener 2>/dev/null
	wait
	ip netns del $a 2>/dev/null
	ip netns del $b 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT
if [ -f "$checkout/HEAD" ] && [ -d "$checkout/objects" ]; then
	git -C "$checkout" archive HEAD samples | tar -x -C "$tmp"
	checkout=$tmp
fi
src=$checkout/samples/doca_gpunetio
[ -f "$src/gpunetio_simple_send/gpunetio_common.h" ] || {
	echo "$name: no checkout of NVIDIA-DOCA/doca-samples given"
	exit 77
}
base=(-DDOCA_ALLOW_EXPERIMENTAL_API "-I$checkout/samples" "-I$src" -Itests/consumers/doca_argp "-I$B/include-doca"
	"-I$B/include")
# The functions of DOCA Flow that add entries have another form since 3.3.
! grep -q 'doca_flow_pipe_add_entry(' "$src"/gpunetio_simple_receive/host/*.c || base+=(-DGDK_DOCA_FLOW_3_2)
samples="simple_receive simple_send send_wait_time"
bad=0
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh
# shellcheck disable=SC2034 # env.sh reads it
DIR=$tmp
# shellcheck source=tests/gpu/env.sh
. tests/gpu/env.sh
use_debs
read -ra parts < <(sed -n 's/^SDK_PARTS := //p' Makefile)
libs=("${parts[@]/#/$B/lib/libgdaki_}")
libs=("${libs[@]/%/.a}" "$B/lib/libgdaki_doca.a" "$B/lib/libgdaki.a")

# ---- build ----

# shellcheck disable=SC2317 # build calls the two functions
cpu_kernel() { # source, object
	tests/consumers/cpu_launch.py "$1" >"$tmp/kernel.cpp" || bad=1
	try_compile g++ -std=c++17 -O2 -pthread -w -DGDK_WARP=32 -DCUDART_CPU_ONE_LOAD "${inc[@]}" "-I${1%/*}" -c -o "$2" "$tmp/kernel.cpp"
}

# shellcheck disable=SC2317
gpu_kernel() { # source, object
	try_compile "$NVCC" -std=c++17 -arch=sm_"${cap:-90}" "${inc[@]}" -c -o "$2" "$1"
}

build() { # folder, folder of CUDA's headers, function that compiles a kernel, libraries of CUDA
	local s dir f more=
	# The samples allocate GPU memory that the CPU can access, which needs GDRCopy.
	[ -z "$4" ] || [ -e /dev/gdrdrv ] || more=tests/consumers/no_gdrcopy.c
	for s in $samples; do
		dir=$src/gpunetio_$s
		inc=("${base[@]}" "-I$dir" "-I$2")
		mkdir -p "$1/$s"
		for f in "$dir"/{host/,}*.c "$checkout/samples/common.c" tests/consumers/doca_argp/doca_argp.c $more; do
			try_compile gcc -std=gnu11 -O1 -g -D_GNU_SOURCE -Werror=implicit-function-declaration \
				-Werror=incompatible-pointer-types -Werror=int-conversion "${inc[@]}" \
				-c -o "$1/$s/$(basename "$f" .c).o" "$f"
		done
		$3 "$dir/device/gpunetio_${s}_kernel.cu" "$1/$s/kernel.o"
		g++ -pthread -o "$1/$s/$s" "$1/$s"/*.o ${more:+-Wl,--wrap=gdk_doca_gpu_mem_alloc} "${libs[@]}" $4 \
			-lmlx5 -libverbs -lnuma -ldl >"$tmp/err" 2>&1 || { echo "$name: $s does not link"; head -n 5 "$tmp/err"; bad=1; }
	done
	[ $bad = 0 ] || exit 1
}

# ---- the other end ----

vxlan_device() {
	ip netns add $a && ip netns add $b && ip -n $a link add gdk0 type veth peer name gdk0 netns $b &&
		ip -n $a addr add 10.79.0.1/24 dev gdk0 && ip -n $b addr add 10.79.0.2/24 dev gdk0 &&
		ip -n $a link set gdk0 up && ip -n $b link set gdk0 up &&
		ip -n $a link add vx0 type vxlan id 79 local 10.79.0.1 remote 10.79.0.2 dev gdk0 dstport 4789 &&
		ip -n $a addr add 192.168.179.1/24 dev vx0 && ip -n $a link set vx0 mtu 1400 up &&
		ip -n $a neigh add 192.168.179.2 lladdr 02:00:0a:4f:00:02 dev vx0
}

if [ "${OTHER_END:-}" != socket ] && vxlan_device 2>"$tmp/why"; then
	at_peer=(ip netns exec "$a") at_nic=(ip netns exec "$b")
	own=10.79.0.1 nic_ip=10.79.0.2 link=vx0
else
	[ ! -s "$tmp/why" ] || echo "$name: no vxlan device: $(head -n 1 "$tmp/why")"
	at_peer=() at_nic=()
	net=127.$((130 + RANDOM % 100)).$((RANDOM % 256))
	own=$net.1 nic_ip=$net.2 link=$net.1,$net.2
fi

fail() {
	echo "$name: $1"
	for f in python frames server; do
		[ ! -s "$tmp/$f" ] || { echo "  $f:"; tail -n 8 "$tmp/$f" | cut -c 1-300 | sed 's/^/    /'; }
	done
	exit 1
}

# ---- runs ----

nic= # more options of softnic-run
begin() { # text that the sample prints when it is ready, sample, its options
	local ready=$1 s=$2
	shift 2
	rm -rf "$tmp/stats"
	mkdir "$tmp/stats"
	"${at_nic[@]}" timeout -k 60 100 "$B/bin/softnic-run" --strict --stats-dir "$tmp/stats" --ip $nic_ip --eth-peers $own \
		--eth-vni 79 $nic -- "$programs/$s/$s" -n 5043:00:01.0 -g "$gpu" "$@" >"$tmp/server" 2>&1 &
	server=$!
	for _ in $(seq 600); do
		grep -q "$ready" "$tmp/server" && return
		kill -0 $server 2>/dev/null || fail "$s $* ends"
		sleep 0.1
	done
	fail "$s $* does not start"
}

end() { # sample, its options
	kill $server # timeout, which passes the signal on to the sample
	finish "$@"
}

finish() { # sample, its options
	wait $server
	status=$?
	server=
	[ $status = 0 ] || fail "$*: exit status $status"
	# A driver without dmabufs is not an error: the samples then use the module of peer memory.
	! grep -v dmabuf "$tmp/server" | grep -i -E 'error|fail' || fail "$*: an error"
	runs=$((runs + 1))
}

counter() { # name of a counter of the NIC
	python3 -c 'import glob, json, sys; print(sum(json.load(open(f))[sys.argv[1]] for f in glob.glob(sys.argv[2] + "/*.json")))' "$1" "$tmp/stats"
}

receive() { # number of datagrams, options
	local n=$1
	shift
	begin 'Waiting for termination' simple_receive "$@"
	"${at_peer[@]}" tests/consumers/eth_samples_peer.py $link send $n >"$tmp/python" 2>&1 || fail "datagrams are not sent"
	sleep 1
	end simple_receive "$@"
	grep -q "Total number of received packets: $n$" "$tmp/server" || fail "simple_receive $*: not $n packets"
}

listen() { # frames, bytes of a frame, whether they have numbers
	"${at_peer[@]}" timeout 120 tests/consumers/eth_samples_peer.py $link listen "$@" >"$tmp/frames" 2>&1 &
	listener=$!
	until_printed listens
}

until_printed() { # word
	for _ in $(seq 1200); do
		! grep -q "^$1$" "$tmp/frames" || return
		kill -0 $listener 2>/dev/null || break
		sleep 0.05
	done
	fail "the other end does not print \"$1\""
}

listened() { # what, the line that it must print
	wait $listener || fail "$1: the other end fails"
	listener=
	# shellcheck disable=SC2053 # a pattern
	[[ $(tail -n 1 "$tmp/frames") == $2 ]] || fail "$1: frames, wrong, different, doubled: $(tail -n 1 "$tmp/frames")"
}

# The receiver may lose frames, because simple_send does not wait for it.
send() { # packets that are sent together, options
	local together=$1 sent
	shift
	listen 2000 256 0
	begin 'Waiting for ctrl+c' simple_send -s 256 "$@"
	until_printed enough
	end simple_send "$@"
	listened "simple_send $*" "* 0 1 0"
	sent=$(counter eth_tx_frames)
	((sent % together == 0 && sent >= $(tail -n 1 "$tmp/frames" | cut -d ' ' -f 1))) ||
		fail "simple_send $*: the NIC sent $sent frames (expected a multiple of $together)"
}

# Prints how many bursts came before their time. Burst k's time is 50 ms + k intervals after the
# sample has read the clock, which it does after it has mapped its packets.
early() { # ns between bursts
	python3 - "$1" "$tmp/frames" "$tmp/server" <<'PYTHON'
import datetime
import re
import sys

line = re.search(r"(\S+)Z .*Mapping send queue buffer", open(sys.argv[3]).read())
mapped = datetime.datetime.fromisoformat(line[1] + "+00:00").timestamp() * 1e9
came = [int(word) for word in open(sys.argv[2]).read().split("\n")[-3].split()]
print(sum(at < mapped + 5e7 + k * int(sys.argv[1]) - 1e3 for k, at in enumerate(came)))
PYTHON
}

wait_time() { # ns between bursts
	listen 256 1024 1
	begin 'Launching CUDA kernel' send_wait_time -t $1
	listened send_wait_time "256 0 256 0"
	finish send_wait_time
	[ "$(early $1)" = 0 ] || fail "send_wait_time: bursts that came early: $(early $1)"
}

run_all() { # folder of the programs, GPU
	local scope
	programs=$1 gpu=$2 runs=0
	for scope in 0 1 2; do
		receive 2000 -e $scope
	done
	[ "$gpu" != host ] || CUDART_CPU_MAJOR=8 receive 2000 -e 2
	send 32 -t 32 -q 0
	send 32 -t 32 -q 0 -p 1
	for scope in 0 1 2; do
		send 32 -t 64 -q 1 -e $scope
	done
	nic="--ts-format real"
	wait_time 100000000
	# Without a real-time clock the capability is NONE.
	nic=
	begin 'supported mode: None' send_wait_time -t 1000000
	wait $server && fail "send_wait_time does not fail without a real-time clock"
	server=
	echo "$name: GPU $gpu, other end $link: $runs runs: all packets exact"
}

cuda_headers "$tmp/cuda"
if [ -z "${GPU_ONLY:-}" ]; then
	build "$tmp/cpu" "$tmp/cuda" cpu_kernel ""
	run_all "$tmp/cpu" host
fi
if [ -z "$NVCC" ] || [ ! -f "$cuda/include/cuda_runtime_api.h" ]; then
	echo "$name: no nvcc or no headers in $cuda: not compiled for a GPU"
	exit $((${GPU_ONLY:+1} + 0))
fi
cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
# CUDA has a libcuda.so to link with for machines without a driver.
driver=$(find "$cuda/" -name libcuda.so -printf '-L%h ' 2>/dev/null)
build "$tmp/gpu" "$cuda/include" gpu_kernel "$driver-L$cuda/lib64 -lcuda -lcudart"
if [ -z "$cap" ]; then
	echo "$name: compiled by nvcc, no GPU: not run on one"
	exit $((${GPU_ONLY:+1} + 0))
fi
export CUDA_MODULE_LOADING=EAGER
[ -e /dev/gdrdrv ] || export DOCA_GPUNETIO_DISABLE_GDRCOPY=1
run_all "$tmp/gpu" "$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0 | sed s/^0000//)"
