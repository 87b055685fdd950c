#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The kernel, by its vxlan device in one network namespace, pings the threads of gpunetio_echo on the
# software NIC in another, and sends them datagrams, which must return unchanged. The threads are
# those of the CPU. The receive queue wraps several times.
# shellcheck disable=SC2086 # names of namespaces are single words
set -u
cd "$(dirname "$0")/.." || exit 2
name=echo_ping.sh
# shellcheck source=tests/lib/responder.sh
. tests/lib/responder.sh

ok ip -n $a addr add 10.80.0.1/24 dev gdk0
ok ip -n $b addr add 10.80.0.2/24 dev gdk0
ip -n $a link add vx0 type vxlan id 80 local 10.80.0.1 remote 10.80.0.2 dev gdk0 dstport 4789 \
	2>"$tmp/why" || cannot "a vxlan device"
ok ip -n $a addr add 192.168.180.1/24 dev vx0
ok ip -n $a link set vx0 up
# A veth pair passes packets on whose checksums were left to hardware. Let the kernel compute them.
stxcsum=0x17
switch_off vx0 $stxcsum
# The threads do not answer ARP. The NIC's MAC address is 02:00 and its IPv4 address.
ok ip -n $a neigh add 192.168.180.2 lladdr 02:00:0a:50:00:02 dev vx0

ip netns exec $b timeout 290 "$run" --strict --ip 10.80.0.2 --eth-peers 10.80.0.1 --eth-vni 80 -- \
	"$(realpath "${B:-build}")/bin/gpunetio_echo" -g host -D 280 -a 192.168.180.2 -b 64 -s 1514 >"$tmp/server" 2>&1 &
server=$!
for _ in $(seq 600); do
	grep -q 'threads answer' "$tmp/server" && break
	kill -0 $server 2>/dev/null || fail "gpunetio_echo ends"
	sleep 0.1
done
pings 192.168.180.2 100 56
pings 192.168.180.2 5 1300
ip netns exec $a timeout 120 python3 - >"$tmp/python" 2>&1 <<'PYTHON' || fail "datagrams do not return"
import random
import socket

udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(60)
udp.connect(("192.168.180.2", 7))
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other.sendto(b"no request", ("192.168.180.2", 8))
for n in range(100):
    data = random.randbytes(13 * n)
    udp.send(data)
    assert udp.recv(2000) == data, f"datagram {n}"
udp.send(b"burst")
assert udp.recv(2000) == b"burst"
PYTHON
kill -TERM $server # timeout, which passes it on
wait $server
status=$?
server=
[ $status = 0 ] || fail "gpunetio_echo ends with status $status"
grep -q '^answered 105 ICMP and 101 UDP echo requests, 1 other packets$' "$tmp/server" || fail "other counts"
echo "$name: 105 pings and 101 datagrams answered by threads"
