#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Line coverage of the library's folders after the unit tests ran in the build
# folder B, which was compiled with --coverage.
set -eu
B=${B:-build/coverage}
GCOV=${GCOV:-gcov}
tests/run-unit.sh | tail -n 1
for dir in core umem uar cq qp doorbell; do
	find "$B/obj/$dir" -name '*.gcda' | while read -r f; do
		"$GCOV" -n -o "$(dirname "$f")" "$f" 2>/dev/null
	done | awk -v dir="$dir" '
		/^File / { mine = index($0, "\047" dir "/") && /\.c\047$/ }
		/^Lines executed:/ && mine {
			split($0, a, /[:% ]+/)
			lines += $NF; hit += a[3] * $NF / 100; mine = 0
		}
		END { if (lines) printf "%-10s %5.1f %% of %d lines\n", dir, 100 * hit / lines, lines
		      else { print dir ": no data"; exit 1 } }'
done
