#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Tests the software NIC on a real network interface: two network namespaces joined by a veth
# pair, one program in each with --ip, IPv4 and IPv6, MTU 1500 and 4200. tshark captures on one
# end; ICRC, PSNs, source ports, traffic class and hop limit are checked in the capture.
# shellcheck disable=SC2086 # names of namespaces and addresses are single words
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
name=netns.sh
run=$(realpath "$B")/bin/softnic-run
demo=$(realpath "$B")/bin/gpunetio_verbs_put_bw
tmp=$(mktemp -d)
a=gdk-a-$$ b=gdk-b-$$
capture=
trap '[ -z "$capture" ] || kill $capture 2>/dev/null; wait; ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$tmp"' EXIT
skip() { echo "netns.sh: $1"; exit 77; }
cannot() { echo "netns.sh: cannot create $1: $(head -n 1 "$tmp/why")"; exit 78; }
command -v ip >/dev/null || skip "ip not found (package iproute2)"
command -v tshark >/dev/null || skip "tshark not found"
command -v ibv_rc_pingpong >/dev/null || skip "ibv_rc_pingpong not found (package ibverbs-utils)"
{ ip netns add $a && ip netns add $b && ip netns exec $a true; } 2>"$tmp/why" || cannot namespaces
. tests/lib/pair.sh

ok() { "$@" || { echo "netns.sh: $* fails"; exit 1; }; }
ip -n $a link add gdk0 type veth peer name gdk0 netns $b 2>"$tmp/why" || cannot "a veth pair"
ok ip -n $a addr add 10.77.0.1/24 dev gdk0
ok ip -n $b addr add 10.77.0.2/24 dev gdk0
for ns in $a $b; do
	ok ip -n $ns link set lo up
	ok ip -n $ns link set gdk0 up
done
six=1
{ ip -n $a addr add fd77::1/64 dev gdk0 nodad && ip -n $b addr add fd77::2/64 dev gdk0 nodad; } 2>/dev/null || six=

await() { # tenths of a second, command...: repeats the command until it succeeds
	local n=$1
	shift
	while ! "$@" && [ $((n--)) -gt 0 ]; do sleep 0.1; done
}

# The kernel adds the routes of an address some time after the address.
# shellcheck disable=SC2317 # await calls it
has_route() { ip -n "$1" -6 route show table local | grep -q "local $2 "; } # namespace, address
[ -z $six ] || { await 600 has_route $a fd77::1; await 600 has_route $b fd77::2; }

begin_capture() {
	ip netns exec $a dumpcap -q -i gdk0 -B 64 -P -f 'udp dst port 4791' -w "$tmp/$1.pcap" \
		>"$tmp/capture" 2>&1 &
	capture=$!
	await 600 test -s "$tmp/$1.pcap"
}

# Fields of the packets that the checks of a capture read.
fields=(infiniband.bth.opcode udp.srcport ip.ttl ipv6.hlim ip.flags.mf _ws.malformed)

end_capture() { # also writes a line with the fields of each packet
	sleep 0.5
	kill -INT $capture
	wait $capture
	capture=
	python3 tests/icrc_check.py "$tmp/$1.pcap" >"$tmp/icrc" || complain "$1: ICRC or PSNs" icrc
	tshark -r "$tmp/$1.pcap" -T fields -E separator=\; "${fields[@]/#/-e}" >"$tmp/$1.fields" 2>"$tmp/tshark" &&
		[ -s "$tmp/$1.fields" ] || complain "$1: tshark cannot read the capture" tshark
	! awk -F \; '$5 ~ /1|True/ || $6' "$tmp/$1.fields" | grep . >"$tmp/odd" || complain "$1: malformed or fragmented packets" odd
}

# Runs the server in namespace a and its client in b, with a capture.
both() { # label, network, additional arguments of the client, command...
	local label=$1 net=$2 to=$3 server
	shift 3
	begin_capture "$label"
	timeout 120 ip netns exec $a "$run" --strict --ip ${net}1 -- "$@" >"$tmp/server" 2>&1 &
	server=$!
	await 600 sh -c "ip netns exec $a cat /proc/net/tcp /proc/net/tcp6 | grep -q ' 0A '"
	timeout 120 ip netns exec $b "$run" --strict --ip ${net}2 -- "$@" $to >"$tmp/client" 2>&1 ||
		complain "$label: the client fails" client
	if [ "$1" = "$demo" ]; then # this server runs until it is stopped
		await 600 grep -q Validation "$tmp/server"
		kill -INT $server 2>/dev/null
	fi
	wait $server || complain "$label: the server fails" server
	end_capture "$label"
}

seen() { # label, what, condition for awk: of some packet, by the numbers of its fields
	[ "$(awk -F \; "$3" "$tmp/$1.fields" | wc -l)" -gt 0 ] ||
		complain "$1: no packet with $2; source ports $(cut -d\; -f2 "$tmp/$1.fields" | sort -u | tr '\n' ' ')"
}

for mtu in 1500 4200; do
	ip -n $a link set gdk0 mtu $mtu && ip -n $b link set gdk0 mtu $mtu || exit 1
	want=1024
	[ $mtu = 1500 ] || want=4096
	timeout 20 ip netns exec $a "$run" --ip 10.77.0.1 -- ibv_devinfo -v >"$tmp/info" 2>&1
	grep -q "active_mtu:.*$want" "$tmp/info" || complain "MTU $mtu: active_mtu is not $want" info
	for net in 10.77.0. ${six:+fd77::}; do
		label=$mtu-${net%%[.:]*}
		both "$label-rc" $net 10.77.0.1 ibv_rc_pingpong -g 3 -n 100 -s 9000 -m $want -c
		seen "$label-rc" "a source port >= 49152" '$2 >= 49152'
		seen "$label-rc" "the hop limit 1 of ibv_rc_pingpong" '$3 == 1 || $4 == 1'
		[ $mtu = 1500 ] || continue
		both "$label-link-local" $net 10.77.0.1 ibv_rc_pingpong -g 1 -n 20 -c
		both "$label-v1" $net 10.77.0.1 ibv_rc_pingpong -g 0 -n 20 -c
		both "$label-ud" $net 10.77.0.1 ibv_ud_pingpong -g 3 -n 20 -s 1024
		seen "$label-ud" "opcode 100" '$1 == 100'
	done
done

both put_bw 10.77.0. "-c 10.77.0.1 -p 2 -i 500 -s 10000" "$demo" -g host -d mlx5_0
grep -q 'Validation successful' "$tmp/server" || complain "put_bw: not validated" server
seen put_bw "a source port >= 49152" '$2 >= 49152'

# The NIC refuses a path MTU that exceeds the frame size of the interface.
ip -n $a link set gdk0 mtu 1500
timeout 20 ip netns exec $a "$run" --ip 10.77.0.1 -- ibv_rc_pingpong -g 3 -m 2048 -n 1 >"$tmp/server" 2>&1 &
server=$!
await 600 sh -c "ip netns exec $a cat /proc/net/tcp /proc/net/tcp6 | grep -q ' 0A '"
timeout 20 ip netns exec $b "$run" --ip 10.77.0.2 -- ibv_rc_pingpong -g 3 -m 2048 -n 1 10.77.0.1 >"$tmp/client" 2>&1
wait $server
grep -q 'to RTR' "$tmp/server" || complain "a path MTU of 2048 on an interface of 1500 is not refused" server

# The NIC refuses an address that another process uses.
timeout 20 ip netns exec $a "$run" --ip 10.77.0.1 -- ibv_asyncwatch -d mlx5_0 >"$tmp/first" 2>&1 &
first=$!
await 600 sh -c "ip netns exec $a cat /proc/net/udp | grep -qi ':12B7 '"
timeout 20 ip netns exec $a "$run" --ip 10.77.0.1 -- ibv_devinfo >"$tmp/second" 2>&1
grep -q 'Address already in use' "$tmp/second" || complain "two processes share one address" second
kill $first
wait $first

# The NIC refuses an address that the namespace does not have.
timeout 20 ip netns exec $a "$run" --ip 10.77.0.9 -- true >"$tmp/gone" 2>&1
[ $? = 2 ] || complain "an address that the namespace lacks is accepted" gone
[ $bad != 0 ] || echo "netns.sh: IPv4${six:+ and IPv6} between namespaces, MTU 1500 and 4200; put_bw: $(cat "$tmp/icrc")"
exit $bad
