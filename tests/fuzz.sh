#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Feeds each input of tests/fuzz/corpus to the function of its fuzzer, in this build. MORE=1: in a
# build without sanitizer, also runs the fuzzers for 20 s.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build} rc=0
for inputs in tests/fuzz/corpus/*.hex; do
	x=$(basename "$inputs" .hex)
	n=$("$B/fuzz/replay_$x" "$inputs") || rc=1
	echo "replay_$x: $n"
done
if [ -z "${SAN:-}" ] && [ -n "${MORE:-}" ]; then
	command -v clang >/dev/null || exit 77
	log=$B/fuzz-run.log
	${MAKE:-make} --no-print-directory -j"$(nproc)" fuzz FUZZ_SECONDS=20 FUZZ_JOBS=1 >"$log" 2>&1 || rc=1
	grep -a '^fuzz_' "$log" || tail -n 40 "$log"
fi
exit $rc
