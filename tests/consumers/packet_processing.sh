#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# NVIDIA's application gpu_packet_processing (NVIDIA-DOCA/doca-samples, tag 3.3.0), unchanged, with
# gdaki-doca. Compiles the host files that set up DOCA Flow and the queues for UDP, ICMP and HTTP, and
# the four kernels: with g++ for CPU threads, with nvcc if it is installed. Not compiled: the threads
# that receive TCP on the CPU, and the parser of arguments.
#
# Then packet_processing/answer.c runs its set-up and its ICMP kernel (CPU threads) on the software
# NIC, and the kernel's vxlan device pings it.
#
# usage: packet_processing.sh CHECKOUT
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
# Exit status 77: no such checkout was given, or no headers of DPDK. 78: compiled, and this machine
# has no network namespaces.
# shellcheck disable=SC2086 # names of namespaces and lists of options
set -u
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
name=packet_processing.sh
app=$checkout/applications/gpu_packet_processing
[ -f "$app/config_queues/flow.c" ] || { echo "$name: no checkout of NVIDIA-DOCA/doca-samples given"; exit 77; }
dpdk=$(pkg-config --cflags libdpdk 2>/dev/null) || { echo "$name: no headers of DPDK (package dpdk-dev)"; exit 77; }
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
here=tests/consumers/packet_processing
inc=(-DDOCA_ALLOW_EXPERIMENTAL_API "-I$here" "-I$app" "-I$app/gpu_kernels" "-I$app/config_queues"
	"-I$checkout/applications/common" -Itests/consumers/doca_argp "-I$B/include-doca" "-I$B/include")
bad=0
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh

# ---- build ----
cuda_headers "$objects/cuda"
for f in "$app"/config_queues/{device,flow,http_txbuf,icmp_queues,tcp_queues,udp_queues}.c \
	"$app/gpu_packet_processing.c" "$here/answer.c"; do
	try_compile gcc -std=gnu11 -O1 -g -D_GNU_SOURCE -Werror=implicit-function-declaration \
		-Werror=incompatible-pointer-types -Werror=int-conversion $dpdk "${inc[@]}" "-I$objects/cuda" \
		-c -o "$objects/$(basename "$f" .c).o" "$f"
done
for k in http_server receive_icmp receive_tcp receive_udp; do
	tests/consumers/cpu_launch.py "$app/gpu_kernels/$k.cu" >"$objects/$k.cpp" || bad=1
	try_compile g++ -std=c++17 -O2 -pthread -w -DGDK_WARP=32 "${inc[@]}" "-I$objects/cuda" -c \
		-o "$objects/$k.o" "$objects/$k.cpp"
	[ -z "$NVCC" ] || try_compile "$NVCC" -std=c++17 -arch=sm_90 "${inc[@]}" -cubin -o "$objects/$k.cubin" \
		"$app/gpu_kernels/$k.cu"
done
[ -n "$NVCC" ] || echo "$name: no nvcc: not compiled for a GPU"
cd "$objects" && g++ -pthread -o answer {device,flow,icmp_queues,udp_queues,answer,receive_icmp}.o \
	-L"$OLDPWD/$B/lib" -lgdaki_flow -lgdaki_eth -lgdaki_doca -lgdaki -lmlx5 -libverbs -lnuma -ldl \
	>err 2>&1 || { echo "$name: answer.c does not link"; head -n 5 err; bad=1; }
cd - >/dev/null || exit 2
[ $bad = 0 ] || exit 1
echo "$name: 7 host files and 4 kernels compiled${NVCC:+, also by nvcc}"

# ---- ping ----
# shellcheck source=tests/lib/responder.sh
. tests/lib/responder.sh
trap '[ -z "$server" ] || kill $server 2>/dev/null; wait; ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$tmp" "$objects"' EXIT
ok ip -n $a addr add 10.78.0.1/24 dev gdk0
ok ip -n $b addr add 10.78.0.2/24 dev gdk0
ip -n $a link add vx0 type vxlan id 77 local 10.78.0.1 remote 10.78.0.2 dev gdk0 dstport 4789 \
	2>"$tmp/why" || cannot "a vxlan device"
ok ip -n $a addr add 192.168.177.1/24 dev vx0
ok ip -n $a link set vx0 up
stxcsum=0x17
switch_off vx0 $stxcsum
# The kernels do not answer ARP. The NIC's MAC address is 02:00 and its IPv4 address.
ok ip -n $a neigh add 192.168.177.2 lladdr 02:00:0a:4e:00:02 dev vx0
# shellcheck disable=SC2016 # the shell that softnic-run starts has the variable
ip netns exec $b timeout 60 "$run" --strict --ip 10.78.0.2 --eth-peers 10.78.0.1 --eth-vni 77 -- sh -c \
	'exec "$0" "$(ls "$SOFTNIC_SYSFS/bus/pci/devices" | head -n 1)" host' "$objects/answer" >"$tmp/server" 2>&1 &
server=$!
for _ in $(seq 200); do
	grep -q ready "$tmp/server" && break
	kill -0 $server 2>/dev/null || fail "the application ends"
	sleep 0.1
done
ip netns exec $a timeout 30 ping -c 100 -i 0.01 -W 2 192.168.177.2 >"$tmp/ping" 2>&1
grep -q '100 packets transmitted, 100 received' "$tmp/ping" || fail "ping loses packets"
ip netns exec $a timeout 10 ping -c 5 -i 0.01 -s 300 -W 2 192.168.177.2 >>"$tmp/ping" 2>&1 ||
	fail "ping with 300 bytes fails"
pkill -TERM -P $server # timeout, which passes it on to the application
wait $server
status=$?
server=
grep -q '^105 replies, 0 errors' "$tmp/server" || fail "the application counts other replies (exit status $status)"
[ $status = 0 ] || fail "the application's exit status is $status"
echo "$name: 105 pings answered by the ICMP kernel"
