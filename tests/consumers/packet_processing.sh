#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# NVIDIA's application gpu_packet_processing (NVIDIA-DOCA/doca-samples, tags 3.3.0 and 3.2.1),
# unchanged, with gdaki-doca: compiles its host files and its four kernels, these with g++ for CPU
# threads and, if it is installed, with nvcc. packet_processing/tcp_cpu.c replaces the file that opens
# and closes TCP connections on the CPU.
#
# Then it runs as an HTTP server on the software NIC, its kernels on CPU threads, and the kernel's
# vxlan device in another network namespace is the other end: pings, requests of all pages by curl,
# each on a connection of its own and several on one, and datagrams. Each ping must be answered, each
# page must be the text in the source, and the counts that the application prints must be exact.
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
common=$checkout/applications/common
[ -f "$app/config_queues/flow.c" ] || { echo "$name: no checkout of NVIDIA-DOCA/doca-samples given"; exit 77; }
dpdk=$(pkg-config --cflags libdpdk 2>/dev/null) || { echo "$name: no headers of DPDK (package dpdk-dev)"; exit 77; }
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
here=tests/consumers/packet_processing
# gdaki has one function that returns the version.
inc=(-Ddoca_version_runtime=doca_version -DDOCA_ALLOW_EXPERIMENTAL_API "-I$here" "-I$app" "-I$app/gpu_kernels"
	"-I$app/config_queues" "-I$common" -Itests/consumers/doca_argp "-I$B/include-doca" "-I$B/include")
# The functions of DOCA Flow that add entries have another form since 3.3.
! grep -q 'doca_flow_pipe_add_entry(' "$app/config_queues/flow.c" || inc+=(-DGDK_DOCA_FLOW_3_2)
bad=0
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh

# ---- build ----
cuda_headers "$objects/cuda"
for f in "$app"/config_queues/*.c "$app/gpu_packet_processing.c" "$app/tcp_cpu/tcp_session_table.c" "$common/utils.c" \
	"$here/tcp_cpu.c" tests/consumers/doca_argp/doca_argp.c; do
	try_compile gcc -std=gnu11 -O1 -g -D_GNU_SOURCE -Werror=implicit-function-declaration \
		-Werror=incompatible-pointer-types -Werror=int-conversion $dpdk "${inc[@]}" "-I$objects/cuda" \
		-c -o "$objects/$(basename "$f" .c).o" "$f"
done
for k in http_server receive_icmp receive_tcp receive_udp; do
	tests/consumers/cpu_launch.py "$app/gpu_kernels/$k.cu" >"$objects/$k.cpp" || bad=1
	try_compile g++ -std=c++17 -O2 -pthread -w -DGDK_WARP=32 -DCUDART_CPU_THREADS=64 -DCUDART_CPU_ONE_LOAD "${inc[@]}" "-I$objects/cuda" \
		-c -o "$objects/$k.o" "$objects/$k.cpp"
	[ -z "$NVCC" ] || try_compile "$NVCC" -std=c++17 -arch=sm_90 "${inc[@]}" -cubin -o "$objects/$k.cubin" \
		"$app/gpu_kernels/$k.cu"
done
[ -n "$NVCC" ] || echo "$name: no nvcc: not compiled for a GPU"
g++ -pthread -o "$objects/app" "$objects"/*.o "$B"/lib/libgdaki_{flow,eth,doca}.a "$B/lib/libgdaki.a" -lmlx5 -libverbs \
	-lnuma -ldl >"$objects/err" 2>&1 || { echo "$name: the application does not link"; head -n 5 "$objects/err"; bad=1; }
[ $bad = 0 ] || exit 1
echo "$name: 10 host files and 4 kernels compiled${NVCC:+, also by nvcc}"

# ---- run ----
# shellcheck source=tests/lib/responder.sh
. tests/lib/responder.sh
trap '[ -z "$server" ] || kill $server 2>/dev/null; wait; ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$tmp" "$objects"' EXIT
command -v curl >/dev/null || skip "curl not found"
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
ip netns exec $b timeout -k 60 200 "$run" --strict --pcap "$tmp/nic.pcap" --ip 10.78.0.2 --eth-peers 10.78.0.1 --eth-vni 77 -- \
	"$objects/app" -n 5043:00:01.0 -g host -q 1 -s >"$tmp/server" 2>&1 &
server=$!
for _ in $(seq 600); do
	grep -q 'Waiting for termination' "$tmp/server" && break
	kill -0 $server 2>/dev/null || fail "the application ends"
	sleep 0.1
done

# ---- ping ----
# With a deadline, ping sends requests until this number is answered, and does not give up earlier.
pings=0
ping() { # number, bytes
	ip netns exec $a ping -c $1 -s $2 -i 0.01 -w 60 192.168.177.2 >"$tmp/ping" 2>&1 || fail "ping -s $2: not $1 replies"
	pings=$((pings + $(sed -n 's/ packets transmitted.*//p' "$tmp/ping")))
}
ping 100 56
ping 5 300

# ---- HTTP ----
# Writes the text of each page in the source to a file.
python3 - "$app/config_queues/http_txbuf.c" "$tmp" <<'PYTHON' || fail "no pages in the source"
import ast
import re
import sys

source = open(sys.argv[1]).read()
for page in ("index", "contacts", "not_found"):
    literals = re.search(rf'payload_page_{page} =(.*?";)', source, re.S)[1]
    payload = "".join(ast.literal_eval(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', literals))
    with open(f"{sys.argv[2]}/{page}", "w", newline="") as f:
        f.write(payload.split("\r\n\r\n", 1)[1])
PYTHON
# A request that is sent again is counted again. So the kernel does not send early on a busy machine.
ok ip -n $a route change 192.168.177.0/24 dev vx0 rto_min 60s
ip netns exec $a sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_early_retrans' 2>/dev/null

gets=0
get() { # expected numbers of new connections, pages as NAME:PATH
	local connections=$1 urls=() p
	shift
	: >"$tmp/expected"
	for p; do
		cat "$tmp/${p%:*}" >>"$tmp/expected"
		urls+=("http://192.168.177.2/${p#*:}")
	done
	ip netns exec $a curl -s --max-time 100 -w '%{stderr}%{num_connects} ' "${urls[@]}" >"$tmp/body" 2>"$tmp/connections" ||
		fail "curl $*: no page"
	cmp "$tmp/expected" "$tmp/body" || fail "curl $*: another text"
	[ "$(cat "$tmp/connections")" = "$connections " ] || fail "curl $*: new connections: $(cat "$tmp/connections")"
	gets=$((gets + $#))
}

for _ in $(seq 4); do
	get 1 index:index.html
	get 1 contacts:contacts.html
	get 1 not_found:other.html
done
get "1 0 0 0" index:index.html contacts:contacts.html index:index.html contacts:contacts.html
get "1 0 1" contacts:contacts.html not_found:no.html index:index.html # a page that is not found ends the connection

# ---- UDP ----
dns=300 others=500
ip netns exec $a python3 - $dns $others <<'PYTHON' >"$tmp/python" 2>&1 || fail "datagrams are not sent"
import socket
import sys
import time

dns, others = map(int, sys.argv[1:])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ports = [53] * dns + [1 + 100 * i for i in range(others)]
for n, port in enumerate(ports):
    udp.sendto(bytes(n), ("192.168.177.2", port))
    if n % 32 == 31:
        time.sleep(0.02)
PYTHON

# ---- counts ----
# The application prints them every 5 seconds. Other packets of a connection than those with SYN or FIN
# also go to the kernel: the acknowledgement of the SYN, and those of the pages.
counts() { # what the last line with this text must match
	grep "^\[$1\]" "$tmp/server" | tail -n 1 | grep -q -E "$2"
}
udp="DNS: $dns (.* )?OTHER: $others (.* )?TOTAL: $((dns + others))( |\$)"
tcp="HTTP: 0 HTTP HEAD: 0 HTTP GET: $gets HTTP POST: 0 TCP \[SYN: 0 FIN: 0 ACK: [0-9]+\] OTHER: 0 TOTAL: "
replies() {
	grep -c 'ICMP debug event' "$tmp/server"
}
for _ in $(seq 600); do
	counts UDP "$udp" && counts TCP "$tcp" && [ "$(replies)" -ge $pings ] && break
	sleep 0.1
done
kill $server # timeout, which passes the signal on to the application
wait $server
status=$?
server=
counts UDP "$udp" || fail "not the counts $udp: $(grep '^\[UDP' "$tmp/server" | tail -n 1)"
counts TCP "$tcp" || fail "not the counts $tcp: $(grep '^\[TCP' "$tmp/server" | tail -n 1)"
[ "$(replies)" = $pings ] || fail "the application reports $(replies) replies to $pings pings"
[ $status = 0 ] || fail "the application's exit status is $status"
# ping does not verify the checksum of a reply. l: of the inner headers.
tshark -r "$tmp/nic.pcap" -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -Y 'icmp.type == 0 || tcp.srcport == 80' \
	-T fields -E occurrence=l -e ip.checksum.status -e icmp.checksum.status -e tcp.checksum.status >"$tmp/sums" 2>"$tmp/why"
sums=$(sort "$tmp/sums" | uniq -c | tr -s ' \t\n' ' ')
[[ $sums =~ ^\ [0-9]+\ 1\ 1\ [0-9]+\ 1\ 1\ $ ]] || fail "wrong checksums of IP, ICMP or TCP (1: right): $sums"
! grep -v dmabuf "$tmp/server" | grep -E ' ERR | CRIT |kernel error|tcp_cpu' || fail "an error"
echo "$name: $pings pings answered, $gets pages by HTTP, $dns + $others datagrams counted"
