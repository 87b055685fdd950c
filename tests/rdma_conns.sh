#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Sends messages on the 8 connections of an RDMA object, which share a receive queue, over a wire that
# drops 1 %, duplicates 1 %, reorders 1 % and corrupts 0.1 % of the packets; rdma_conns.c checks the
# connection, the order and the content of each, and that each completion comes once.
#
# usage: rdma_conns.sh [MESSAGES [SEED...]]	(default: 100000 in all, with seeds 1, 2 and 3)
#   B: build folder; LONG=1: 10^6 messages per run; LIMIT: seconds per run (60, and 200 per million)
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
messages=${1:-17000}
[ -z "${LONG:-}" ] || messages=${1:-1000000}
limit=${LIMIT:-$((60 + messages / 5000))}
shift
[ $# -gt 0 ] || set -- 1 2 3

for seed; do
	for what in "" -w; do
		# shellcheck disable=SC2086 # the options of rdma_conns
		line=$(timeout "$limit" "$B/bin/softnic-run" --strict --seed "$seed" --loss 0.01 --dup 0.01 \
			--reorder 0.01 --corrupt 0.001 -- "$B/soak/rdma_conns" -n "$messages" -s "$seed" $what 2>&1) || {
			rc=$?
			echo "rdma_conns.sh: fails with seed $seed $what (exit $rc)"
			tail -n 30 <<<"$line"
			exit 1
		}
		echo "seed $seed, $line"
		[[ $line =~ [^0-9]0\ faults ]] && { echo "rdma_conns.sh: the wire had no faults"; exit 1; }
	done
done
exit 0
