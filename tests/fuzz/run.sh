#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the fuzzers that `make build-fuzz` built, one after another. They start with the
# inputs of tests/fuzz/corpus and those that earlier runs left in $B/fuzz/corpus. If a fuzzer
# finds a bug, the input is in $B/fuzz/found and the exit status is 1.
#
# usage: run.sh SECONDS [PROCESSES] [FUZZER...]   SECONDS for all fuzzers together
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build} total=$1 jobs=${2:-1}
shift "$(($# < 2 ? $# : 2))"
if [ $# = 0 ]; then
	for x in "$B"/fuzz/fuzz_*; do
		[ ! -x "$x" ] || set -- "$@" "${x##*/fuzz_}"
	done
fi
[ $# -gt 0 ] || { echo "run.sh: no fuzzers in $B/fuzz (make build-fuzz)"; exit 2; }
each=$((total / $#))
[ "$each" -gt 0 ] || each=1
found=$B/fuzz/found
mkdir -p "$found"
rc=0
for x in "$@"; do
	own=$B/fuzz/corpus/$x log=$B/fuzz/$x.log
	mkdir -p "$own"
	[ ! -f "tests/fuzz/corpus/$x.hex" ] ||
		tests/fuzz/corpus.py unpack "tests/fuzz/corpus/$x.hex" "$own" || exit 2
	fork=
	[ "$jobs" -le 1 ] || fork="-fork=$jobs"
	# shellcheck disable=SC2086 # no argument if fork is empty
	"$B/fuzz/fuzz_$x" -max_total_time="$each" -max_len=1024 -timeout=120 -rss_limit_mb=1024 \
		-print_final_stats=1 -artifact_prefix="$found/$x-" $fork "$own" >"$log" 2>&1
	r=$?
	if [ "$r" != 0 ]; then
		rc=1
		tail -n 60 "$log"
		echo "fuzz_$x: found a bug (exit $r); its input is in $found"
	else
		# The last progress line is "#1234 NEW cov: 56 ..." or "#1234: cov: 56 ...".
		echo "fuzz_$x: $(grep -a -oE '^#[0-9]+.*cov: [0-9]+' "$log" | tail -n 1 |
			sed -E 's/^#([0-9]+).*cov: ([0-9]+)/\1 inputs, \2 branches reached/')"
	fi
done
exit $rc
