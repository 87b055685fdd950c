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
name=eth_if.sh
. tests/lib/responder.sh

ok ip -n $a addr add 192.168.178.1/24 dev gdk0
# A frame of the NIC is not longer than the MTU, but the kernel passes longer ones to a veth device.
stso=0x1f sgso=0x24
switch_off gdk0 $stso $sgso
ask_longer gdk0

begin_responder 192.168.178.2 --eth-if gdk0
pings 192.168.178.2 50 1400
exchange 192.168.178.2 2 50 27 300001
end_responder '50 pings, 50 datagrams'
tshark -r "$tmp/nic.pcap" -T fields -e frame.protocols -e _ws.malformed >"$tmp/fields" 2>"$tmp/why"
grep -q '^eth:ethertype:ip:tcp' "$tmp/fields" || fail "no TCP in the capture"
! grep -q -v '^eth:' "$tmp/fields" || fail "a packet without Ethernet header in the capture"
! grep -q '[Mm]alformed' "$tmp/fields" || fail "a malformed packet in the capture"
echo "eth_if.sh: 50 pings, 50 datagrams, $line; $(wc -l <"$tmp/fields") packets captured"
