#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The kernel as the peer of the software NIC: its vxlan device in one network namespace, and
# tests/responder, a program with a raw packet queue pair, on the NIC in another. The kernel
# pings it, exchanges datagrams with it and sends it 1 MB by TCP. The kernel and the responder
# verify the checksums of what they receive; tshark reads the NIC's capture.
# shellcheck disable=SC2086 # names of namespaces are single words
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$(realpath "$B")/bin/softnic-run
responder=$(realpath "$B")/responder/responder
tmp=$(mktemp -d)
a=gdk-va-$$ b=gdk-vb-$$
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null; wait; ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$tmp"' EXIT
skip() { echo "vxlan.sh: $1"; exit 77; }
cannot() { echo "vxlan.sh: cannot create $1: $(head -n 1 "$tmp/why")"; exit 78; }
fail() {
	echo "vxlan.sh: $1"
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
ok ip -n $a addr add 10.78.0.1/24 dev gdk0
ok ip -n $b addr add 10.78.0.2/24 dev gdk0
for ns in $a $b; do
	ok ip -n $ns link set lo up
	ok ip -n $ns link set gdk0 up
done
ip -n $a link add vx0 type vxlan id 77 local 10.78.0.1 remote 10.78.0.2 dev gdk0 dstport 4789 \
	2>"$tmp/why" || cannot "a vxlan device"
ok ip -n $a addr add 192.168.177.1/24 dev vx0
ok ip -n $a link set vx0 up
# A veth pair passes packets on whose checksums were left to hardware. Let the kernel compute them.
ok ip netns exec $a python3 - <<'PYTHON'
import array
import fcntl
import socket
import struct

ETHTOOL_STXCSUM, SIOCETHTOOL = 0x17, 0x8946
off = array.array("I", [ETHTOOL_STXCSUM, 0])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sQ", b"vx0", off.buffer_info()[0]))
PYTHON

ip netns exec $b timeout 60 "$run" --strict --ip 10.78.0.2 --eth-peers 10.78.0.1 --eth-vni 77 \
	--pcap "$tmp/nic.pcap" -- "$responder" 192.168.177.2 50 >"$tmp/server" 2>&1 &
server=$!
for _ in $(seq 100); do
	grep -q ready "$tmp/server" && break
	kill -0 $server 2>/dev/null || fail "the responder ends"
	sleep 0.1
done

ip netns exec $a timeout 30 ping -c 100 -i 0.01 -W 2 192.168.177.2 >"$tmp/ping" 2>&1
grep -q '100 packets transmitted, 100 received' "$tmp/ping" || fail "ping loses packets"
ip netns exec $a timeout 10 ping -c 3 -i 0.01 -s 1400 -W 2 192.168.177.2 >>"$tmp/ping" 2>&1 ||
	fail "ping with 1400 bytes fails"

ip netns exec $a timeout 30 python3 - >"$tmp/python" 2>&1 <<'PYTHON' || fail "datagrams or TCP fail"
import random
import socket
import zlib

random.seed(1)
peer = "192.168.177.2"
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(5)
for n in range(100):
    data = random.randbytes(1 + 13 * n)
    udp.sendto(data, (peer, 7))
    back = udp.recv(2000)
    assert back == data, f"datagram {n} returned with {len(back)} bytes"
data = random.randbytes(1000001)
with socket.create_connection((peer, 9), timeout=10) as tcp:
    tcp.sendall(data)
    tcp.shutdown(socket.SHUT_WR)
    assert tcp.recv(1) == b""
print(f"TCP {len(data)} bytes, CRC {zlib.crc32(data):08x}")
PYTHON
errors=$(ip netns exec $a cat /proc/net/snmp | awk '/^(Tcp|Udp|Icmp):/ {
	if (!($1 in names)) { names[$1] = $0; next }
	split(names[$1], n); split($0, v)
	for (i in n) if (n[i] ~ /CsumErrors/) sum += v[i] } END { print sum + 0 }')
[ "$errors" = 0 ] || fail "the kernel counts $errors wrong checksums"
kill -TERM "$(pgrep -P $server -f responder/responder || echo $server)" 2>/dev/null
wait $server
rc=$?
server=
[ $rc = 0 ] || fail "the responder ends with status $rc"
line=$(cat "$tmp/python")
grep -q "^responder: $line, closed" "$tmp/server" || fail "the responder did not receive $line"
grep -q '103 pings, 100 datagrams, .* 0 wrong checksums' "$tmp/server" || fail "wrong counts"
tshark -r "$tmp/nic.pcap" -T fields -E separator=\; -e vxlan.vni -e frame.protocols -e _ws.malformed \
	>"$tmp/fields" 2>"$tmp/why"
[ -s "$tmp/fields" ] || fail "the NIC's capture is empty"
grep -q '^77;.*:vxlan:eth:ethertype:ip:tcp' "$tmp/fields" || fail "no TCP over VXLAN in the capture"
if grep -v '^77;.*:vxlan:eth:ethertype:[a-z0-9:._-]*;$' "$tmp/fields" >"$tmp/why"; then
	fail "malformed or foreign packets in the capture: $(head -n 1 "$tmp/why")"
fi
echo "vxlan.sh: 103 pings, 100 datagrams, $line; $(wc -l <"$tmp/fields") packets captured"
