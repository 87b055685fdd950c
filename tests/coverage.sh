#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the unit tests of the build folder B, which was compiled with --coverage, and prints
# the line coverage of each folder of the library. Fails if a folder is below COVERAGE_MIN
# percent (92), or if a test fails. V=1 also prints the lines that were not executed. With T only
# the tests whose names contain that pattern run, and there is no minimum.
set -eu
export B=${B:-build/coverage}
GCOV=${GCOV:-gcov}
find "$B/obj" -name '*.gcda' -delete # counts of the previous run
bad=0
T=${T:-test_} tests/run.sh >"$B/run.log" || bad=1
if [ $bad = 0 ]; then tail -n 1 "$B/run.log"; else grep -E '^(FAIL|failed:|[0-9]+ passed)|\[(FAIL|CRASH)\]' "$B/run.log"; fi
[ "${T:-test_}" = test_ ] || COVERAGE_MIN=0
for dir in core umem uar cq qp doorbell; do
	find "$B/obj/$dir" -name '*.gcda' | while read -r f; do
		"$GCOV" -t -o "$(dirname "$f")" "$f" 2>/dev/null
	done | awk -F: -v dir="$dir" -v least="${COVERAGE_MIN:-92}" -v all="${V:-0}" '
		$3 == "Source" { file = $4; mine = index(file, dir "/") == 1 && file ~ /\.c$/; next }
		{ count = $1; gsub(/[ *]/, "", count) }
		!mine || count == "-" { next }
		{ lines++ }
		count !~ /^[#=]/ { hit++; next }
		all != 0 { line = $2; gsub(/ /, "", line); sub(/^[^:]*:[^:]*:/, ""); print file ":" line ":" $0 }
		END {
			if (!lines) { print dir ": no data"; exit 1 }
			printf "%-10s %5.1f %% of %d lines\n", dir, 100 * hit / lines, lines
			if (100 * hit / lines < least) { print dir ": below " least " %"; exit 1 }
		}' || bad=1
done
exit "$bad"
