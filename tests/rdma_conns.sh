#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Sends messages on the 8 connections of an RDMA object, which share a receive queue, over a wire that
# drops 1 %, duplicates 1 %, reorders 1 % and corrupts 0.1 % of the packets; rdma_conns.c checks the
# connection, the order and the content of each, and that each completion comes once.
# The runs, two per seed, are in parallel.
#
# usage: rdma_conns.sh [MESSAGES [SEED...]]	(default: 100000 in all, with seeds 1, 2 and 3)
#   B: build folder; LONG=1: 10^6 messages per run; LIMIT: seconds per run (60, and 2000 per million)
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
messages=${1:-17000}
[ -z "${LONG:-}" ] || messages=${1:-1000000}
limit=${LIMIT:-$((60 + messages / 500))}
shift
[ $# -gt 0 ] || set -- 1 2 3

out=$(mktemp -d)
pids=()
trap 'rm -rf "$out"' EXIT
trap 'kill "${pids[@]}" 2>/dev/null; exit 1' INT TERM

# Each run is a host of its own, with its own wire. Most of the time it waits.
start() { # seed, options of rdma_conns
	timeout "$limit" "$B/bin/softnic-run" --strict --seed "$1" --loss 0.01 --dup 0.01 \
		--reorder 0.01 --corrupt 0.001 -- "$B/soak/rdma_conns" -n "$messages" -s "$@" \
		>"$out/$*" 2>&1 &
	pids+=($!)
	runs+=("$*")
}

runs=()
for seed; do
	start "$seed"
	start "$seed" -w
done
bad=0
for i in "${!runs[@]}"; do
	wait "${pids[i]}"
	rc=$?
	line=$(<"$out/${runs[i]}")
	if [ $rc != 0 ]; then
		echo "rdma_conns.sh: fails with seed ${runs[i]} (exit $rc)"
		tail -n 30 <<<"$line"
		bad=1
	elif [[ $line =~ [^0-9]0\ faults ]]; then
		echo "rdma_conns.sh: the wire had no faults (seed ${runs[i]})"
		bad=1
	else
		echo "seed ${runs[i]%% *}, $line"
	fi
done
exit $bad
