#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The known defects of the peer that concern the host, by number: each has a test
# with defect_ and the number in its name. Lists them; a number without one fails.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0
for n in 03 04 05 $(seq 12 34); do
	found=$(grep -ho "defect_${n}_[a-z0-9_]*" tests/unit/test_*.c | sort -u)
	[ -n "$found" ] || { echo "defects.sh: no test of defect $n"; bad=1; }
	[ "${V:-0}" = 0 ] || echo "$found"
done
[ $bad = 1 ] || echo "defects.sh: each of 26 defects has a test"
exit $bad
