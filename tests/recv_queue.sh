#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Drives receive queues as NIXL (RC) and Holoscan (UC, by one thread and by four) do, over a wire
# that drops 1 %, duplicates 1 %, reorders 1 % and corrupts 0.1 % of the packets; recv_queue.c checks
# every completion and every byte.
#
# usage: recv_queue.sh [RECEIVES [SEED...]]	(default: 100000 receives with seeds 1, 2 and 3)
#   B: build folder; LONG=1: 10^7 receives; LIMIT: seconds per run (60, and 100 per million)
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
receives=${1:-100000}
[ -z "${LONG:-}" ] || receives=${1:-10000000}
limit=${LIMIT:-$((60 + receives / 10000))}
shift
[ $# -gt 0 ] || set -- 1 2 3

for seed; do
	for what in nixl holoscan "-t 4 holoscan"; do
		# shellcheck disable=SC2086 # the options of recv_queue
		line=$(timeout "$limit" "$B/bin/softnic-run" --strict --seed "$seed" --loss 0.01 --dup 0.01 \
			--reorder 0.01 --corrupt 0.001 -- "$B/soak/recv_queue" -n "$receives" -s "$seed" $what 2>&1) || {
			rc=$?
			echo "recv_queue.sh: $what fails with seed $seed (exit $rc)"
			tail -n 30 <<<"$line"
			exit 1
		}
		echo "$line"
		[[ $line =~ [^0-9]0\ faults ]] && { echo "recv_queue.sh: the wire had no faults"; exit 1; }
	done
done
exit 0
