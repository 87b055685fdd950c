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
name=vxlan.sh
. tests/lib/responder.sh

ok ip -n $a addr add 10.78.0.1/24 dev gdk0
ok ip -n $b addr add 10.78.0.2/24 dev gdk0
ip -n $a link add vx0 type vxlan id 77 local 10.78.0.1 remote 10.78.0.2 dev gdk0 dstport 4789 \
	2>"$tmp/why" || cannot "a vxlan device"
ok ip -n $a addr add 192.168.177.1/24 dev vx0
ok ip -n $a link set vx0 up
# A veth pair passes packets on whose checksums were left to hardware. Let the kernel compute them.
stxcsum=0x17
switch_off vx0 $stxcsum
ask_longer vx0

begin_responder 192.168.177.2 --ip 10.78.0.2 --eth-peers 10.78.0.1 --eth-vni 77
pings 192.168.177.2 100 56
pings 192.168.177.2 3 1400
exchange 192.168.177.2 1 100 13 1000001
errors=$(ip netns exec $a cat /proc/net/snmp | awk '/^(Tcp|Udp|Icmp):/ {
	if (!($1 in names)) { names[$1] = $0; next }
	split(names[$1], n); split($0, v)
	for (i in n) if (n[i] ~ /CsumErrors/) sum += v[i] } END { print sum + 0 }')
[ "$errors" = 0 ] || fail "the kernel counts $errors wrong checksums"
end_responder '103 pings, 100 datagrams'
tshark -r "$tmp/nic.pcap" -T fields -E separator=\; -e vxlan.vni -e frame.protocols -e _ws.malformed \
	>"$tmp/fields" 2>"$tmp/why"
[ -s "$tmp/fields" ] || fail "the NIC's capture is empty"
grep -q '^77;.*:vxlan:eth:ethertype:ip:tcp' "$tmp/fields" || fail "no TCP over VXLAN in the capture"
if grep -v '^77;.*:vxlan:eth:ethertype:[a-z0-9:._-]*;$' "$tmp/fields" >"$tmp/why"; then
	fail "malformed or foreign packets in the capture: $(head -n 1 "$tmp/why")"
fi
echo "vxlan.sh: 103 pings, 100 datagrams, $line; $(wc -l <"$tmp/fields") packets captured"
