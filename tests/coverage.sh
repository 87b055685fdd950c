#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Line coverage of the library's folders after the unit tests ran in the build
# folder B, which was compiled with --coverage. Fails where a folder is under
# COVERAGE_MIN percent (92). V=1: the lines that nothing reached, too.
set -eu
B=${B:-build/coverage}
GCOV=${GCOV:-gcov}
find "$B/obj" -name '*.gcda' -delete # of the run before
tests/run-unit.sh | tail -n 1
bad=0
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
			if (100 * hit / lines < least) { print dir ": under " least " %"; exit 1 }
		}' || bad=1
done
exit "$bad"
