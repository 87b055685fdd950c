#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# What the software NIC says about a run: JSON and text statistics of the device
# and of each queue pair, the trace of commands, WQEs, packets and CQEs, and the
# exit status of --strict. B is the build folder.
set -u
cd "$(dirname "$0")/.." || exit 2
B="${B:-build}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
	echo "report.sh: $*"
	exit 1
}

timeout 60 "$B/bin/softnic-run" --strict --stats --stats-dir "$tmp/stats" --trace="$tmp/trace" \
	-- "$B/bin/hello_put" >"$tmp/out" 2>"$tmp/err" || fail "hello_put: exit $?, $(cat "$tmp/err")"
grep -q 'status 0: put by a thread' "$tmp/out" || fail "hello_put printed $(cat "$tmp/out")"

python3 - "$tmp"/stats/*.json <<'P' || fail "the JSON is not what one put of 64 bytes makes"
import json, sys
[path] = sys.argv[1:]
dev = json.load(open(path))
[qp] = dev["qps"]
assert dev["violations"] == 0 and dev["commands_failed"] == 0 and dev["commands"] > 4, dev
assert qp["type"] == "RC" and qp["dest_qpn"] == qp["qpn"], qp
for side in dev, qp:
    # the WRITE (BTH 12, RETH 16, 64 bytes) and its acknowledgement (BTH 12, AETH 4)
    assert side["wqes"] == side["cqes"] == 1 and side["error_cqes"] == 0, side
    assert side["tx_packets"] == side["rx_packets"] == 2, side
    assert side["tx_bytes"] == side["rx_bytes"] == 12 + 16 + 64 + 12 + 4, side
P
grep -q '^  wqes  *1$' "$tmp/err" || fail "no device counters in the text: $(cat "$tmp/err")"
grep -q '^  qp 0x[0-9a-f]* RC to 0x[0-9a-f]*:.* wqes 1 cqes 1 ' "$tmp/err" ||
	fail "no queue pair in the text: $(cat "$tmp/err")"

line=0
while read -r want; do # in this order
	at=$(grep -n -E "$want" "$tmp/trace" | head -n 1 | cut -d: -f1)
	[ -n "$at" ] || fail "the trace has no line like: $want"
	[ "$at" -gt "$line" ] || fail "the trace has this too early: $want"
	line=$at
done <<'LINES'
command CREATE_QP \(0x500\): status 0$
command RTR2RTS_QP \(0x504\): status 0$
WQE qp 0x[0-9a-f]+ index 0 WRITE, 64 bytes in segments 1, remote 0x[0-9a-f]+ rkey 0x[0-9a-f]+, signalled$
tx RC WRITE_ONLY to qp 0x[0-9a-f]+ psn 0x[0-9a-f]{6}, 92 bytes, ack requested$
tx RC ACK to qp 0x[0-9a-f]+ psn 0x[0-9a-f]{6}, 16 bytes$
CQE cq 0x[0-9a-f]+ entry 0 qp 0x[0-9a-f]+ WQE 0 send$
command DESTROY_QP
LINES
echo "report.sh: statistics and trace of one put are right"
