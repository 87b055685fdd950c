#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# NVIDIA's samples gpunetio_simple_receive, gpunetio_simple_send and gpunetio_send_wait_time
# (NVIDIA-DOCA/doca-samples, tag 3.3.0), hosts and kernels unchanged, with gdaki-doca: compiles them,
# the kernels with g++ for CPU threads and, if it is installed, with nvcc. Then runs them on the
# software NIC; the other end is the kernel's vxlan device in another network namespace.
#   simple_receive   receives all datagrams of a bound socket, in each scope, with and without DUMPs
#   simple_send      sends equal frames until a signal, in each scope, not shared, and by the CPU proxy
#   send_wait_time   sends 8 bursts of 32 packets, each once, none before its time
#
# usage: eth_samples.sh CHECKOUT	(a work tree, or a git directory without one)
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
# Exit status 77: no such checkout was given. 78: compiled, and this machine has no network namespaces.
# shellcheck disable=SC2086 # names of namespaces and lists of options
set -u
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
name=eth_samples.sh
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
if [ -f "$checkout/HEAD" ] && [ -d "$checkout/objects" ]; then
	git -C "$checkout" archive HEAD samples | tar -x -C "$objects"
	checkout=$objects
fi
src=$checkout/samples/doca_gpunetio
[ -f "$src/gpunetio_simple_send/gpunetio_common.h" ] || {
	echo "$name: no checkout of NVIDIA-DOCA/doca-samples given"
	exit 77
}
inc=(-DDOCA_ALLOW_EXPERIMENTAL_API "-I$checkout/samples" "-I$src" -Itests/consumers/doca_argp "-I$B/include-doca"
	"-I$B/include")
bad=0
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh

# ---- build ----
cuda_headers "$objects/cuda"
for s in simple_receive simple_send send_wait_time; do
	dir=$src/gpunetio_$s
	kernel=$dir/device/gpunetio_${s}_kernel.cu
	mkdir "$objects/$s"
	for f in "$dir"/{host/,}*.c "$checkout/samples/common.c" tests/consumers/doca_argp/doca_argp.c; do
		try_compile gcc -std=gnu11 -O1 -g -D_GNU_SOURCE -Werror=implicit-function-declaration \
			-Werror=incompatible-pointer-types -Werror=int-conversion "${inc[@]}" "-I$dir" "-I$objects/cuda" \
			-c -o "$objects/$s/$(basename "$f" .c).o" "$f"
	done
	tests/consumers/cpu_launch.py "$kernel" >"$objects/$s.cpp" || bad=1
	try_compile g++ -std=c++17 -O2 -pthread -w -DGDK_WARP=32 -DCUDART_CPU_ONE_LOAD "${inc[@]}" "-I$dir" "-I$dir/device" "-I$objects/cuda" \
		-c -o "$objects/$s/kernel.o" "$objects/$s.cpp"
	[ -z "$NVCC" ] || try_compile "$NVCC" -std=c++17 -arch=sm_90 "${inc[@]}" "-I$dir" -cubin -o "$objects/$s.cubin" "$kernel"
	g++ -pthread -o "$objects/$s/$s" "$objects/$s"/*.o "-L$B/lib" -lgdaki_flow -lgdaki_eth -lgdaki_doca -lgdaki \
		-lmlx5 -libverbs -lnuma -ldl >"$objects/err" 2>&1 || { echo "$name: $s does not link"; head -n 5 "$objects/err"; bad=1; }
done
[ -n "$NVCC" ] || echo "$name: no nvcc: not compiled for a GPU"
[ $bad = 0 ] || exit 1
echo "$name: 3 samples compiled${NVCC:+, their kernels also by nvcc}"

# ---- runs ----
# shellcheck source=tests/lib/responder.sh
. tests/lib/responder.sh
trap '[ -z "$server" ] || kill $server 2>/dev/null; wait; ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$tmp" "$objects"' EXIT
ok ip -n $a addr add 10.79.0.1/24 dev gdk0
ok ip -n $b addr add 10.79.0.2/24 dev gdk0
ip -n $a link add vx0 type vxlan id 79 local 10.79.0.1 remote 10.79.0.2 dev gdk0 dstport 4789 \
	2>"$tmp/why" || cannot "a vxlan device"
ok ip -n $a addr add 192.168.179.1/24 dev vx0
ok ip -n $a link set vx0 mtu 1400 up
ok ip -n $a neigh add 192.168.179.2 lladdr 02:00:0a:4f:00:02 dev vx0

nic= # more options of softnic-run
begin() { # text that the sample prints when it is ready, sample, its options
	local ready=$1 s=$2
	shift 2
	# shellcheck disable=SC2016 # the shell that softnic-run starts has the variable
	ip netns exec $b timeout 60 "$run" --strict --ip 10.79.0.2 --eth-peers 10.79.0.1 --eth-vni 79 $nic -- sh -c \
		'exec "$0" -n "$(ls "$SOFTNIC_SYSFS/bus/pci/devices" | head -n 1)" -g host "$@"' "$objects/$s/$s" "$@" \
		>"$tmp/server" 2>&1 &
	server=$!
	for _ in $(seq 300); do
		grep -q "$ready" "$tmp/server" && return
		kill -0 $server 2>/dev/null || fail "$s $* ends"
		sleep 0.1
	done
	fail "$s $* does not start"
}

end() { # sample, its options
	pkill -INT -P $server # timeout, which passes it on to the sample
	finish "$@"
}

finish() { # sample, its options
	wait $server
	status=$?
	server=
	[ $status = 0 ] || fail "$*: exit status $status"
	! grep -i -E 'error|fail' "$tmp/server" || fail "$*: an error"
}

receive() { # number of datagrams, options
	local n=$1
	shift
	begin 'Waiting for termination' simple_receive "$@"
	ip netns exec $a python3 - $n <<'PYTHON' >"$tmp/python" 2>&1 || fail "datagrams are not sent"
import socket
import sys
import time

udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[1])):
    udp.sendto(b"%d" % n, ("192.168.179.2", 7777))
    if n % 64 == 63:
        time.sleep(0.005)
time.sleep(0.5)
PYTHON
	end simple_receive "$@"
	grep -q "Total number of received packets: $n$" "$tmp/server" || fail "simple_receive $*: not $n packets"
	runs=$((runs + 1))
}

# Reads frames of the samples' source address until none has come for a second, or until `most`.
# Prints the ns at which the first frame of each burst came, then: frames, those with other contents,
# different ones, doubled ones.
listen() { # most, bytes of a frame, whether they have numbers
	ip netns exec $a timeout 60 python3 - "$@" <<'PYTHON'
import collections
import socket
import sys
import time

most, size, numbers = map(int, sys.argv[1:])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
s.bind(("vx0", 0))
print("listens", flush=True)
header = bytes.fromhex("101112131415202122232425" "0800")
start = b"Sent from DOCA GPUNetIO "
seen, wrong, first = collections.Counter(), 0, {}
s.settimeout(30)
while sum(seen.values()) + wrong < most:
    try:
        frame = s.recv(4096)
    except TimeoutError:
        break
    now = time.time_ns()
    if frame[:14] != header:
        continue
    s.settimeout(1)
    body = frame[14:].rstrip(b"\0")
    if len(frame) != size or (not body.startswith(start) if numbers else body):
        wrong += 1
        continue
    k = int(body[len(start):]) if numbers else 0
    seen[k] += 1
    first.setdefault(k // 32, now)
print(*(first[burst] for burst in sorted(first)))
print(sum(seen.values()), wrong, len(seen), sum(n > 1 for n in seen.values()) if numbers else 0)
PYTHON
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
came = [int(word) for word in open(sys.argv[2]).read().split("\n")[1].split()]
print(sum(at < mapped + 5e7 + k * int(sys.argv[1]) - 1e3 for k, at in enumerate(came)))
PYTHON
}

send() { # options
	listen 2000 256 0 >"$tmp/frames" 2>&1 &
	listener=$!
	until grep -q listens "$tmp/frames"; do sleep 0.05; done
	begin 'Waiting for ctrl+c' simple_send -s 256 "$@"
	wait $listener || fail "simple_send $*: $(tail -n 1 "$tmp/frames")"
	end simple_send "$@"
	[ "$(tail -n 1 "$tmp/frames")" = "2000 0 1 0" ] ||
		fail "simple_send $*: frames, wrong, different, doubled: $(tail -n 1 "$tmp/frames")"
	runs=$((runs + 1))
}

wait_time() { # ns between bursts
	listen 1000 1024 1 >"$tmp/frames" 2>&1 &
	listener=$!
	until grep -q listens "$tmp/frames"; do sleep 0.05; done
	begin 'Launching CUDA kernel' send_wait_time -t $1
	wait $listener || fail "send_wait_time: $(tail -n 1 "$tmp/frames")"
	finish send_wait_time
	[ "$(tail -n 1 "$tmp/frames")" = "256 0 256 0" ] ||
		fail "send_wait_time: frames, wrong, different, doubled: $(tail -n 1 "$tmp/frames")"
	[ "$(early $1)" = 0 ] || fail "send_wait_time: bursts that came early: $(early $1)"
	runs=$((runs + 1))
}

runs=0
for scope in 0 1 2; do
	receive 2000 -e $scope
done
CUDART_CPU_MAJOR=8 receive 2000 -e 2
send -t 32 -q 0
send -t 32 -q 0 -p 1
for scope in 0 1 2; do
	send -t 64 -q 1 -e $scope
done
nic="--ts-format real"
wait_time 100000000
# Without a real-time clock the capability is NONE.
nic=
begin 'supported mode: None' send_wait_time -t 1000000
wait $server && fail "send_wait_time does not fail without a real-time clock"
server=
echo "$name: $runs runs: all packets exact"
