# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts that let the kernel in one network namespace, $a, exchange frames with
# tests/responder on the software NIC in another, $b. The including script runs at the top of the
# repository and sets name (its own, for messages). This file creates both namespaces, joined by
# a veth pair of interfaces gdk0, and sets tmp (a folder).
# shellcheck shell=bash disable=SC2154 # name is the including script's
# shellcheck disable=SC2086 # names of namespaces are single words
run=$(realpath "${B:-build}")/bin/softnic-run
responder=$(realpath "${B:-build}")/responder/responder
tmp=$(mktemp -d)
a=gdk-a-$$ b=gdk-b-$$
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null; wait; ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$tmp"' EXIT
skip() { echo "$name: $1"; exit 77; }
cannot() { echo "$name: cannot create $1: $(head -n 1 "$tmp/why")"; exit 78; }
fail() {
	echo "$name: $1"
	for f in ping python server; do
		[ ! -s "$tmp/$f" ] || { echo "  $f:"; tail -n 8 "$tmp/$f" | sed 's/^/    /'; }
	done
	exit 1
}
ok() { "$@" >"$tmp/why" 2>&1 || fail "$* fails: $(head -n 1 "$tmp/why")"; }

command -v ip >/dev/null || skip "ip not found (package iproute2)"
command -v tshark >/dev/null || skip "tshark not found"
{ ip netns add $a && ip netns add $b && ip netns exec $a true; } 2>"$tmp/why" || cannot namespaces
ip -n $a link add gdk0 type veth peer name gdk0 netns $b 2>"$tmp/why" || cannot "a veth pair"
for ns in $a $b; do
	ok ip -n $ns link set lo up
	ok ip -n $ns link set gdk0 up
done

switch_off() { # interface, ethtool commands: switches off these features in namespace a
	ok ip netns exec $a python3 - "$@" <<'PYTHON'
import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for command in sys.argv[2:]:
        off = array.array("I", [int(command, 0), 0])
        fcntl.ioctl(s, SIOCETHTOOL,
                    struct.pack("16sQ", sys.argv[1].encode(), off.buffer_info()[0]))
PYTHON
}

begin_responder() { # its address, options of softnic-run
	local address=$1
	shift
	ip netns exec $b timeout 290 "$run" --strict --pcap "$tmp/nic.pcap" "$@" -- \
		"$responder" "$address" 280 >"$tmp/server" 2>&1 &
	server=$!
	for _ in $(seq 600); do
		grep -q ready "$tmp/server" && return
		kill -0 $server 2>/dev/null || fail "the responder ends"
		sleep 0.1
	done
}

# The kernel asks for a MAC address 3 times, once per second. On a busy machine the answer may take longer.
ask_longer() { # interface in namespace a
	ok ip -n $a ntable change name arp_cache dev "$1" mcast_probes 30
}

pings() { # address, number, bytes of each: each must be answered, however late
	ip netns exec $a timeout 250 python3 tests/lib/ping.py "$@" >"$tmp/ping" 2>&1 || fail "$2 pings with $3 bytes fail"
}

# Sends datagrams, which must return unchanged, and then bytes by TCP. Sets line: what TCP carried.
exchange() { # address, seed, datagrams, bytes by which each is longer than the last, bytes by TCP
	ip netns exec $a timeout 250 python3 - "$@" >"$tmp/python" 2>&1 <<'PYTHON' || fail "datagrams or TCP fail"
import random
import socket
import sys
import zlib

peer, (seed, count, step, size) = sys.argv[1], map(int, sys.argv[2:])
random.seed(seed)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(100)
for n in range(count):
    data = random.randbytes(1 + step * n)
    udp.sendto(data, (peer, 7))
    back = udp.recv(2000)
    assert back == data, f"datagram {n} returned with {len(back)} bytes"
data = random.randbytes(size)
# The limit is for each part: what a starved receiver loses, TCP repeats seconds later.
with socket.create_connection((peer, 9), timeout=100) as tcp:
    for at in range(0, size, 16384):
        tcp.sendall(data[at:at + 16384])
    tcp.shutdown(socket.SHUT_WR)
    assert tcp.recv(1) == b""
print(f"TCP {len(data)} bytes, CRC {zlib.crc32(data):08x}")
PYTHON
	line=$(cat "$tmp/python")
}

end_responder() { # what it must have counted of pings and datagrams
	local rc
	kill -TERM "$(pgrep -P $server -f responder/responder || echo $server)" 2>/dev/null
	wait $server
	rc=$?
	server=
	[ $rc = 0 ] || fail "the responder ends with status $rc"
	grep -q "^responder: $line, closed" "$tmp/server" || fail "the responder did not receive $line"
	grep -q "$1, .* 0 wrong checksums" "$tmp/server" || fail "wrong counts"
}
