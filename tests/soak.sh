#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Two processes exchange messages of all kinds over a wire that drops 1 %, duplicates 1 %,
# reorders 1 % and corrupts 0.1 % of the packets; soak.c checks every byte and every
# completion.
#
# usage: soak.sh [MESSAGES [SEED...]]	(default: 100000 messages with seed 1)
#   B: build folder; LIMIT: seconds per seed (240)
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
messages=${1:-100000}
shift
[ $# -gt 0 ] || set -- 1
. tests/lib/port.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

side() { # name, seed, arguments of soak
	timeout "${LIMIT:-240}" "$B/bin/softnic-run" --strict --stats --seed "$2" --loss 0.01 \
		--dup 0.01 --reorder 0.01 --corrupt 0.001 \
		-- "$B/soak/soak" -p "$port" -n "$messages" -s "$2" "${@:3}" >"$tmp/$1" 2>&1
}

for seed; do
	next_port
	side server "$seed" &
	side client "$seed" 127.0.0.1
	rc=$?
	if ! wait $! || [ $rc != 0 ]; then
		echo "soak.sh: seed $seed fails (client $rc)"
		tail -n 30 "$tmp/client" "$tmp/server"
		exit 1
	fi
	grep -h '^soak: client' "$tmp/client"
	# shellcheck disable=SC2046 # joins the lines of awk
	echo "soak.sh: seed $seed:" $(awk '$1 ~ /^(faults_injected|tx_packets|retransmits|timeouts|probes|naks_received|dup_requests|icrc_errors)$/ {
		n[$1] += $2 } END { for (k in n) print k, n[k] }' "$tmp/client" "$tmp/server")
done
