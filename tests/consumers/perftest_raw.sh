#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the distribution's unmodified perftest over raw Ethernet, two processes on two software
# NICs with lossless flow control: bandwidth, latency, bursts, and the rate of flow rules. Each
# run must end, report a result, and lose no frame: the counters of both NICs are added up.
# usage: perftest_raw.sh [--pcap FOLDER] [long]
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
name=perftest_raw.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/lib/pair.sh
command -v raw_ethernet_bw >/dev/null || { echo "$name: raw_ethernet_bw not found (package perftest)"; exit 77; }
cap=$((16#$(awk '/^CapEff/ { print $2 }' /proc/self/status))) # bit 13: CAP_NET_RAW
[ $((cap >> 13 & 1)) = 1 ] || { echo "$name: raw packet queue pairs need CAP_NET_RAW"; exit 78; }
${CC:-gcc} -O1 -Wall -shared -fPIC -o "$tmp/clock.so" tests/consumers/fast_clock.c || exit 1
# shellcheck disable=SC2016 # sh expands it
fast=(sh -c 'LD_PRELOAD="$LD_PRELOAD $0" exec "$@"' "$tmp/clock.so") # the start of a command
# A multiple of the lists (-l) and of 100: raw_ethernet_bw counts 100 sends for each CQE. If they are
# fewer after the last one, the sum of several queue pairs reaches the total before all have sent, and
# it polls no more.
n=800 ran=0
[ "${1:-}" != long ] || n=20000

# Two addresses that no other run of this script has, and the MAC addresses of their ports.
net=$((64 + $$ / 62500 % 64)) third=$((1 + $$ / 250 % 250)) fourth=$((1 + $$ % 250))
ip_of() { echo "127.$((net + $1 * 64)).$third.$fourth"; }
mac_of() { printf '02:00:7f:%02x:%02x:%02x' $((net + $1 * 64)) $third $fourth; }

pause=(--eth-pause) # options of softnic-run

# Starts the program in the background on NIC 0 (server) or 1 (client).
side() { # 0 or 1, label, program, options...
	local me=$1 peer=$((1 - $1)) as
	local role=(server client)
	as=$(tr -cs 'A-Za-z0-9_\n' - <<<"$2").${role[me]}
	rm -rf "$tmp/stats.$me"
	timeout 40 "$run" --strict --ip "$(ip_of "$me")" --eth-peers "$(ip_of $peer)" \
		--eth-mtu 9000 --stats-dir "$tmp/stats.$me" "${pause[@]}" "${nic[@]}" \
		${pcap:+--pcap "$pcap/raw-$as.pcap"} -- "${fast[@]}" stdbuf -oL "$3" -d mlx5_0 -F \
		"--${role[me]}" -B "$(mac_of "$me")" -E "$(mac_of $peer)" "${@:4}" \
		>"$tmp/${role[me]}" 2>&1 &
}

# Waits until the server has posted its receive WQEs, or has ended.
ready() { # process
	local i
	for ((i = 0; i < 400; i++)); do
		grep -q '#bytes' "$tmp/server" && return
		kill -0 "$1" 2>/dev/null || return
		sleep 0.05
	done
}

# Adds up the counters of both NICs. Every frame on the wire arrived or was counted as missed,
# and each one that arrived has one outcome. one: with flow control, one receive queue on each
# side and one rule for a frame, each frame was also delivered to a receive queue, once.
add_up() { # label, one or any
	python3 - "$2" "$tmp"/stats.0/*.json "$tmp"/stats.1/*.json <<'P' || complain "$1: the counters do not add up"
import json, sys
how, *paths = sys.argv[1:]
ENDS = ["eth_" + name for name in ("delivered no_rule rule_dropped out_of_buffer not_ready "
                                   "too_long malformed fcs_errors rx_faults").split()]
sides = [json.load(open(p)) for p in paths]
assert len(sides) == 2, paths
bad = []
for me, peer, name in (sides[0], sides[1], "server"), (sides[1], sides[0], "client"):
    sent = sum(q["frames"] for q in me["sqs"])
    wire = (me["eth_tx_copies"] - me["eth_tx_lost"] - me["eth_tx_failed"] +
            me["eth_tx_duplicated"])
    ends = {k: peer[k] for k in ENDS if peer[k]}
    if me["qps"] or sent != me["eth_tx_frames"] or sent != me["eth_tx_copies"]:
        bad.append(f"{name}: its queues sent {sent}, its port {me['eth_tx_frames']}")
    if wire != peer["eth_rx_frames"] + peer["eth_rx_missed"]:
        bad.append(f"{name} sent {wire}, {peer['eth_rx_frames']} arrived")
    if peer["eth_rx_frames"] != sum(ends.values()):
        bad.append(f"{peer['eth_rx_frames']} frames arrived, outcomes {ends}")
    got = sum(q["frames"] for q in peer["rqs"])
    if how == "one" and (got != sent or got != sum(r["packets"] for r in peer["rules"])):
        bad.append(f"{name} sent {sent}, its peer received {got}, {ends}, {peer['rules']}")
if not sides[1]["eth_tx_frames"]:
    bad.append("no frames were sent")
print("\n".join(bad), end="\n" if bad else "")
sys.exit(bool(bad))
P
}

pair_of() { # how to add up, program, options...
	local label="${*:2}" server client rc
	ran=$((ran + 1))
	: >"$tmp/server"
	side 0 "$label" "${@:2}"
	server=$!
	ready $server
	side 1 "$label" "${@:2}"
	client=$!
	wait $client
	rc=$?
	[ $rc = 0 ] || complain "$label: exit status of the client: $rc" client
	wait $server
	rc=$?
	[ $rc = 0 ] || { complain "$label: exit status of the server: $rc" server; return; }
	grep -q -E '^ *#bytes' "$tmp/client" || complain "$label: no result" client
	[ "$1" = none ] || add_up "$label" "$1"
}

bench() { pair_of one "$@" -n "$n"; }

# raw_ethernet_fs_rate is one process: it creates rules and destroys them.
rules() { # options...
	ran=$((ran + 1))
	timeout 40 "$run" --strict "${nic[@]}" -- raw_ethernet_fs_rate --server -d mlx5_0 -F -n "$n" \
		-B 02:00:00:00:00:01 -E 02:00:00:00:00:02 "$@" >"$tmp/server" 2>&1 ||
		complain "raw_ethernet_fs_rate $*: exit status $?" server
	grep -q -E '^ *[0-9]+ +[0-9.]+' "$tmp/server" || complain "raw_ethernet_fs_rate $*: no result" server
}

udp=(-J 10.0.0.1 -j 10.0.0.2 -K 4000 -k 5000)
for size in 64 256 1500; do
	bench raw_ethernet_bw -s $size
	bench raw_ethernet_lat -s $size
done
bench raw_ethernet_bw -m 9000 -s 9000
bench raw_ethernet_lat -m 9000 -s 9000
bench raw_ethernet_bw -b -s 512
bench raw_ethernet_bw -s 200 "${udp[@]}" --tcp
bench raw_ethernet_bw -s 200 "${udp[@]}" --flows 4 --flows_burst 8
bench raw_ethernet_bw -s 200 --raw_ipv6 -J fd00::1 -j fd00::2
bench raw_ethernet_bw -s 300 -l 16 -Q 16 --recv_post_list=8
bench raw_ethernet_bw -s 64 -I 64
bench raw_ethernet_bw -s 256 --promiscuous
bench raw_ethernet_bw -s 256 -r 32
bench raw_ethernet_lat -s 64 -I 64 "${udp[@]}"
bench raw_ethernet_lat -s 256 --reply_every 4
bench raw_ethernet_bw -s 256 "${udp[@]}" --vlan_en
# Each WQE, frame and CQE makes a line of the trace.
nic=(--trace="$tmp/trace")
bench raw_ethernet_bw -s 100
nic=()
while read -r want; do
	[ "$(grep -c -E "^softnic\[[0-9]+\] +[0-9]+ $want\$" "$tmp/trace")" = "$n" ] ||
		complain "the trace does not have $n lines like: $want"
done <<LINES
WQE sq 0x[0-9a-f]+ index [0-9]+ SEND, 1 frames, header 0 bytes, data 96 bytes in 1 pieces, checksums 0x00(, signalled)?
tx frame $(mac_of 1) to $(mac_of 0) type 0x[0-9a-f]{4}, 96 bytes, to 1 hosts
rx frame $(mac_of 1) to $(mac_of 0) type 0x[0-9a-f]{4}, 96 bytes, rule 0x[0-9a-f]+: RQ 0x[0-9a-f]+
CQE cq 0x[0-9a-f]+ entry [0-9]+ qp 0x[0-9a-f]+ WQE [0-9]+ frame received, 96 bytes, type 0x[0-9a-f]{4}, tag 0x0, hash 0x00000000
LINES
# Each queue pair has the same rule, so each receives all frames, and the sniffer receives copies.
# The server has enough completions, and ends, before the client has sent all frames.
pair_of none raw_ethernet_bw -s 300 -q 4 -n "$n"
pair_of none raw_ethernet_bw -s 300 --sniffer -n "$n"
# Without flow control, for a time: the sender is faster than the receiver.
pause=()
pair_of any raw_ethernet_bw -s 64 -D 1 -f 0
pause=(--eth-pause)
rules
rules "${udp[@]}"
rules --raw_ipv6 -J fd00::1 -j fd00::2
if [ "${1:-}" = long ]; then
	for size in 65 128 512 1024 1518 2048 4096 9000; do
		for how in "" "-b" "-I 128" "-l 32 -Q 32" "-t 16 -Q 4 -r 16"; do
			# shellcheck disable=SC2086 # several options
			bench raw_ethernet_bw -m 9000 -s $size $how
		done
		bench raw_ethernet_lat -m 9000 -s $size "${udp[@]}"
	done
fi
# Not run: --mac_fwd needs a third program. raw_ethernet_burst_lat of perftest 4.5 forces the
# software rate limiter, and then refuses it. --raw_mcast needs ibv_attach_mcast() for raw packet
# queue pairs, which Linux refuses. With --raw_ipv6 and ports, perftest writes a wrong length into
# the IPv6 header.
[ $bad != 0 ] || echo "$name: $ran runs, $n frames each"
exit $bad
