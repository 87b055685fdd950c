#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Raw Ethernet on an interface (--eth-if): the kernel's stack at one end of a veth pair, and
# tests/responder on the software NIC at the other, each in a network namespace. The kernel leaves
# checksums to hardware; the NIC completes them, and the responder verifies them.
# shellcheck disable=SC2086 # names of namespaces are single words
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$(realpath "$B")/bin/softnic-run
responder=$(realpath "$B")/responder/responder
tmp=$(mktemp -d)
a=gdk-ia-$$ b=gdk-ib-$$
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null; wait; ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$tmp"' EXIT
skip() { echo "eth_if.sh: $1"; exit 77; }
cannot() { echo "eth_if.sh: cannot create $1: $(head -n 1 "$tmp/why")"; exit 78; }
fail() {
	echo "eth_if.sh: $1"
	for f in ping python server; do
		[ ! -s "$tmp/$f" ] || { echo "  $f:"; tail -n 8 "$tmp/$f" | sed 's/^/    /'; }
	done
	exit 1
}
command -v ip >/dev/null || skip "ip not found (package iproute2)"
command -v ping >/dev/null || skip "ping not found (package iputils-ping)"
command -v tshark >/dev/null || skip "tshark not found"
{ ip netns add $a && ip netns add $b && ip netns exec $a true; } 2>"$tmp/why" || cannot namespaces
ok() { "$@" >"$tmp/why" 2>&1 || fail "$* fails: $(head -n 1 "$tmp/why")"; }
ip -n $a link add gdk0 type veth peer name gdk0 netns $b 2>"$tmp/why" || cannot "a veth pair"
ok ip -n $a addr add 192.168.178.1/24 dev gdk0
for ns in $a $b; do
	ok ip -n $ns link set lo up
	ok ip -n $ns link set gdk0 up
done
# A frame of the NIC is not longer than the MTU, but the kernel passes longer ones to a veth device.
ok ip netns exec $a python3 - <<'PYTHON'
import array
import fcntl
import socket
import struct

SIOCETHTOOL, SET_TSO, SET_GSO = 0x8946, 0x1f, 0x24
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for feature in (SET_TSO, SET_GSO):
        off = array.array("I", [feature, 0])
        fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sQ", b"gdk0", off.buffer_info()[0]))
PYTHON

ip netns exec $b timeout 60 "$run" --strict --eth-if gdk0 --pcap "$tmp/nic.pcap" -- \
	"$responder" 192.168.178.2 50 >"$tmp/server" 2>&1 &
server=$!
for _ in $(seq 100); do
	grep -q ready "$tmp/server" && break
	kill -0 $server 2>/dev/null || fail "the responder ends"
	sleep 0.1
done

ip netns exec $a timeout 30 ping -c 50 -i 0.01 -s 1400 -W 2 192.168.178.2 >"$tmp/ping" 2>&1
grep -q '50 packets transmitted, 50 received' "$tmp/ping" || fail "ping loses packets"
ip netns exec $a timeout 30 python3 - >"$tmp/python" 2>&1 <<'PYTHON' || fail "datagrams or TCP fail"
import random
import socket
import zlib

random.seed(2)
peer = "192.168.178.2"
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(5)
for n in range(50):
    data = random.randbytes(1 + 27 * n)
    udp.sendto(data, (peer, 7))
    back = udp.recv(2000)
    assert back == data, f"datagram {n} returned with {len(back)} bytes"
data = random.randbytes(300001)
with socket.create_connection((peer, 9), timeout=10) as tcp:
    tcp.sendall(data)
    tcp.shutdown(socket.SHUT_WR)
    assert tcp.recv(1) == b""
print(f"TCP {len(data)} bytes, CRC {zlib.crc32(data):08x}")
PYTHON
kill -TERM "$(pgrep -P $server -f responder/responder || echo $server)" 2>/dev/null
wait $server
rc=$?
server=
[ $rc = 0 ] || fail "the responder ends with status $rc"
line=$(cat "$tmp/python")
grep -q "^responder: $line, closed" "$tmp/server" || fail "the responder did not receive $line"
grep -q '50 pings, 50 datagrams, .* 0 wrong checksums' "$tmp/server" || fail "wrong counts"
tshark -r "$tmp/nic.pcap" -T fields -e frame.protocols -e _ws.malformed >"$tmp/fields" 2>"$tmp/why"
grep -q '^eth:ethertype:ip:tcp' "$tmp/fields" || fail "no TCP in the capture"
! grep -q -v '^eth:' "$tmp/fields" || fail "a packet without Ethernet header in the capture"
! grep -q '[Mm]alformed' "$tmp/fields" || fail "a malformed packet in the capture"
echo "eth_if.sh: 50 pings, 50 datagrams, $line; $(wc -l <"$tmp/fields") packets captured"
