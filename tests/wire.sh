#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks the packets of the software NIC with tshark and icrc_check.py. First captures the
# traffic of a server and a client of gpunetio_verbs_put_bw on the loopback interface: every
# packet must decode as RoCEv2 RC, none may be malformed, PSNs must be consecutive, and the
# ICRC must be right. If capturing is not permitted, uses the NIC's own capture file instead
# and reports that. Then runs one pair of programs for each transport and operation and checks
# the NICs' own captures in the same way; they may contain only opcodes of that operation.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
demo=$B/bin/gpunetio_verbs_put_bw
tmp=$(mktemp -d)
capture=
server=
trap '[ -z "$capture$server" ] || kill $capture $server 2>/dev/null; wait; rm -rf "$tmp"' EXIT
command -v tshark >/dev/null || { echo "wire.sh: tshark not found"; exit 77; }
command -v ib_write_bw >/dev/null || { echo "wire.sh: perftest not found"; exit 77; }

fail() {
	echo "wire.sh: $1"
	for f in server client capture; do
		[ ! -s "$tmp/$f" ] || { echo "  $f:"; tail -n 8 "$tmp/$f" | sed 's/^/    /'; }
	done
	exit 1
}

file=$tmp/wire.pcap
# Random addresses, because other processes may use the software NIC at the same time.
net=127.$((240 + RANDOM % 15)).$((RANDOM % 256))
how="captured on lo"
pcap_server=
# -B 256: a capture buffer of 256 MiB, so that the kernel drops no packets.
dumpcap -q -i lo -B 256 -P -f "udp port 4791 and net $net" -w "$file" >"$tmp/capture" 2>&1 &
capture=$!
for _ in $(seq 600); do
	[ -s "$file" ] && break
	kill -0 $capture 2>/dev/null || break
	sleep 0.1
done
if ! kill -0 $capture 2>/dev/null; then
	echo "wire.sh: not permitted to capture on lo, reading the NIC's own capture:" \
		"$(tail -n 1 "$tmp/capture")"
	capture=
	how="captured by the NIC"
	pcap_server="--pcap $file"
fi

. tests/lib/port.sh
next_port
# shellcheck disable=SC2086 # an option and its value, or nothing
timeout 240 "$run" --ip $net.1 $pcap_server -- "$demo" -g host -d mlx5_0 -P $port >"$tmp/server" 2>&1 &
server=$!
await_port "$port" $server
timeout 240 "$run" --ip $net.2 -- "$demo" -g host -d mlx5_0 -c 127.0.0.1 -P $port -p 2 -i 500 -s 10000 >"$tmp/client" 2>&1 ||
	fail "the client fails"
for _ in $(seq 600); do
	kill -0 $server 2>/dev/null || break
	sleep 0.1
done
kill -INT $server 2>/dev/null
wait $server
server=
grep -q 'Validation successful' "$tmp/server" || fail "the server did not validate the data"
if [ -n "$capture" ]; then
	sleep 1
	kill -INT $capture
	wait $capture 2>/dev/null
	capture=
fi
[ -s "$file" ] || fail "nothing was captured"

# Disables the protocols that tshark detects heuristically: patterns in payloads match them.
shark() { # file, options...
	tshark --disable-protocol rpcordma --disable-protocol iser --disable-protocol smb_direct \
		--disable-protocol smc --disable-protocol lnet -r "$@" 2>"$tmp/tshark"
}

# A line for each packet of the flow.
shark "$file" -Y 'udp.dstport == 4791' -T fields -E separator=\; -e ip.src -e udp.srcport -e infiniband.bth.opcode \
	-e infiniband.bth.destqp -e infiniband.bth.psn -e _ws.malformed -e ip.checksum.status >"$tmp/packets" ||
	fail "tshark cannot read the capture"
count() { awk -F \; "$1" "$tmp/packets" | wc -l; }
all=$(count 1)
rc=$(count '$3 ~ /^[0-9]+$/ && $3 <= 31')
bad=$(count '$6 || $7 == "0" || $7 == "Bad"')
[ "$all" -gt 100 ] || fail "only $all packets $how"
[ "$all" = "$rc" ] || fail "$rc of $all packets decode as RoCEv2 RC"
[ "$bad" = 0 ] || fail "$bad packets are malformed"
# Each queue pair has its own source port, in the range that RoCEv2 recommends (49152 and up).
ports=$(cut -d\; -f1,2 --output-delimiter=' ' "$tmp/packets" | sort -u)
awk '$2 < 49152 { exit 1 }' <<<"$ports" || fail "packets from ports below 49152: $ports"
[ "$(awk '{ print $1 }' <<<"$ports" | sort -u | wc -l)" = 2 ] || fail "not two hosts: $ports"

# The PSNs of each flow's writes, as decoded by tshark, are consecutive.
awk -F \; '$3 <= 11 { k = $1 " " $4; p = $5 + 0
		if (!(k in next_psn) || p == next_psn[k]) { next_psn[k] = (p + 1) % 16777216; good++ }
		else if ((next_psn[k] - p + 16777216) % 16777216 < 8388608) again++
		else { print "flow " k ": PSN " p ", expected " next_psn[k]; holes++; next_psn[k] = p + 1 }
	} END { print good + 0 " requests in order, " again + 0 " sent again, " holes + 0 " holes"
		exit holes > 0 || good == 0 }' "$tmp/packets" >"$tmp/psn" || { cat "$tmp/psn"; fail "PSNs are not consecutive"; }

python3 tests/icrc_check.py "$file" >"$tmp/icrc" || { cat "$tmp/icrc"; fail "icrc_check.py reports errors"; }
python3 tests/icrc_check.py --corrupt "$file" >"$tmp/icrc2" ||
	{ cat "$tmp/icrc2"; fail "icrc_check.py accepts corrupted packets"; }
echo "wire.sh: $all packets $how, all RoCEv2 RC; $(tail -n 1 "$tmp/psn"); $(cat "$tmp/icrc")"

# ---- each transport and operation, in the NICs' own captures ----
name=wire.sh
set -- --pcap "$tmp/pcap"
. tests/lib/pair.sh
families=0

# The conditions name opcodes that the capture must contain, and all that it may contain.
family() { # label, conditions of bash for op: of required opcodes, of permitted opcodes; command...
	local label=$1 must=$2 may=$3 f=$tmp/pcap/$1.client.pcap op seen=
	shift 3
	families=$((families + 1))
	pair "$label" "$@" -d mlx5_0 -p PORT || return
	shark "$f" -T fields -E separator=\; -e infiniband.bth.opcode -e _ws.malformed -e _ws.expert.severity \
		>"$tmp/fields" || complain "$label: tshark cannot read the capture" tshark
	# What tshark reports: malformed packets, those of severity warning (6291456) and above, those
	# without an opcode.
	awk -F \; '{ n = split($3, s, ","); odd = $1 !~ /^[0-9]+$/ || $2
		for (i = 1; i <= n; i++) odd = odd || s[i] >= 6291456
		if (odd) print }' "$tmp/fields" >"$tmp/odd"
	while read -r op; do
		((may)) || echo "opcode $op" >>"$tmp/odd"
		! ((must)) || seen=1
	done < <(cut -d\; -f1 "$tmp/fields" | grep -x '[0-9]*' | sort -nu)
	[ ! -s "$tmp/odd" ] || [[ ${nic[*]} == *--corrupt* ]] || # a flipped bit may change the opcode
		complain "$label: packets with unexpected opcodes, or that tshark reports" odd
	[ -n "$seen" ] || complain "$label: no packet with $must"
	wrong=$(python3 tests/icrc_check.py "$f" 2>&1 | tee "$tmp/icrc" | sed -n 's/.* \([0-9]*\) wrong ICRC.*/\1/p')
	case ${nic[*]} in
	*--corrupt*) [ "${wrong:-0}" -gt 0 ] || complain "$label: no packet was corrupted" icrc ;;
	'') grep -q ' 0 wrong ICRC, 0 gaps' "$tmp/icrc" || complain "$label: ICRC or PSNs" icrc ;;
	*) [ "${wrong:-1}" = 0 ] || complain "$label: wrong ICRC" icrc ;;
	esac
}

acks="op == 0x11"
family rc "op == 0x01" "op <= 0x05 || $acks" ibv_rc_pingpong -g 3 -n 50 -s 9000
family ud "op == 0x64" "op == 0x64 || op == 0x65" ibv_ud_pingpong -g 3 -n 50
family uc "op == 0x21" "op >= 0x20 && op <= 0x25" ibv_uc_pingpong -g 3 -n 50 -s 9000
family uc-write "op == 0x27" "op >= 0x26 && op <= 0x2b" ib_write_bw -c UC -x 3 -n 20
family srq "op == 0x00" "op <= 0x05 || $acks" ibv_srq_pingpong -g 3 -n 50 -q 4
family send "op == 0x04" "op <= 0x05 || $acks" ib_send_lat -x 3 -n 20
family write "op == 0x07" "(op >= 0x06 && op <= 0x0b) || $acks" ib_write_bw -x 3 -n 20
family read "op == 0x0e" "(op >= 0x0c && op <= 0x10) || $acks" ib_read_bw -x 3 -n 20
family add "op == 0x14" "op == 0x14 || op == 0x12" ib_atomic_bw -A FETCH_AND_ADD -x 3 -n 20
family swap "op == 0x13" "op == 0x13 || op == 0x12" ib_atomic_bw -A CMP_AND_SWAP -x 3 -n 20
nic=(--loss 0.01 --dup 0.01 --reorder 0.01)
# Not ibv_rc_pingpong: perftest's server runs until the client is done, so that the last packets
# are retransmitted if they are lost.
family faults "op == 0x01" "op <= 0x05 || $acks" ib_send_bw -x 3 -n 50 -s 9000
nic=(--corrupt 0.02)
family corrupt "op == 0x07" "op <= 0xff" ib_write_bw -x 3 -n 50 -s 9000
[ $bad != 0 ] || echo "wire.sh: $families kinds of traffic captured by the NICs, no errors"
exit $bad
