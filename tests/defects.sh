#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks that each known defect of the peer's host library (NVIDIA's DOCA GPUNetIO open)
# has a test that gdaki does not share it: a test with defect_ and the number in its name.
# V=1 lists these tests.
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
