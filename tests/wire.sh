#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The demo's traffic as others see it: captured on the loopback interface while
# a server and a client of gpunetio_verbs_put_bw run, every packet decodes as
# RoCEv2 RC in tshark, none is malformed, sequence numbers add up, and the ICRC
# is what icrc_check.py computes from the captured bytes. Where capturing is not
# allowed, the NIC's own capture file is read instead, and the output says so.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
demo=$B/bin/gpunetio_verbs_put_bw
tmp=$(mktemp -d)
capture=
server=
trap '[ -z "$capture$server" ] || kill $capture $server 2>/dev/null; wait; rm -rf "$tmp"' EXIT
command -v tshark >/dev/null || { echo "wire.sh: no tshark here"; exit 77; }

fail() {
	echo "wire.sh: $1"
	for f in server client capture; do
		[ ! -s "$tmp/$f" ] || { echo "  $f:"; tail -n 8 "$tmp/$f" | sed 's/^/    /'; }
	done
	exit 1
}

file=$tmp/wire.pcap
how="captured on lo"
pcap_server=
# -B: a large buffer, so that the kernel drops nothing.
tshark -i lo -B 256 -F pcap -f 'udp port 4791' -w "$file" >"$tmp/capture" 2>&1 &
capture=$!
for _ in $(seq 50); do
	grep -q 'Capturing on' "$tmp/capture" && [ -s "$file" ] && break
	kill -0 $capture 2>/dev/null || break
	sleep 0.1
done
if ! kill -0 $capture 2>/dev/null; then
	echo "wire.sh: capturing on lo is not allowed here, reading the NIC's own capture:" \
		"$(tail -n 1 "$tmp/capture")"
	capture=
	how="captured by the NIC"
	pcap_server="--pcap $file"
fi

port=$((20000 + RANDOM % 10000))
# shellcheck disable=SC2086 # options are words
timeout 60 "$run" $pcap_server -- "$demo" -g host -d mlx5_0 -P $port >"$tmp/server" 2>&1 &
server=$!
sleep 1
timeout 60 "$run" -- "$demo" -g host -d mlx5_0 -c 127.0.0.1 -P $port -p 2 -i 500 -s 10000 >"$tmp/client" 2>&1 ||
	fail "the client fails"
for _ in $(seq 50); do
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

count() { tshark -r "$file" "$@" 2>/dev/null | wc -l; }
all=$(count -Y 'udp.dstport == 4791')
rc=$(count -Y 'infiniband.bth.opcode <= 0x1f')
bad=$(count -Y '_ws.malformed || ip.checksum.status == 0')
[ "$all" -gt 100 ] || fail "only $all packets $how"
[ "$all" = "$rc" ] || fail "$rc of $all packets decode as RoCEv2 RC"
[ "$bad" = 0 ] || fail "$bad packets are malformed"

# PSNs as tshark reads them: each flow's writes are numbered without a hole.
tshark -r "$file" -Y 'infiniband.bth.opcode <= 0x0b' -T fields -e ip.src -e infiniband.bth.destqp \
	-e infiniband.bth.psn 2>/dev/null |
	awk '{ k = $1 " " $2; p = $3 + 0
		if (!(k in next_psn) || p == next_psn[k]) { next_psn[k] = (p + 1) % 16777216; good++ }
		else if ((next_psn[k] - p + 16777216) % 16777216 < 8388608) again++
		else { print "flow " k ": PSN " p " where " next_psn[k] " is next"; holes++; next_psn[k] = p + 1 }
	} END { print good + 0 " requests in order, " again + 0 " sent again, " holes + 0 " holes"
		exit holes > 0 || good == 0 }' >"$tmp/psn" || { cat "$tmp/psn"; fail "sequence numbers do not add up"; }

python3 tests/icrc_check.py "$file" >"$tmp/icrc" || { cat "$tmp/icrc"; fail "icrc_check.py disagrees"; }
python3 tests/icrc_check.py --corrupt "$file" >"$tmp/icrc2" ||
	{ cat "$tmp/icrc2"; fail "icrc_check.py accepts corrupted packets"; }
echo "wire.sh: $all packets $how, all RoCEv2 RC; $(tail -n 1 "$tmp/psn"); $(cat "$tmp/icrc")"
