#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the Criterion programs one after the other through run-one.sh (software NIC, time limit,
# sanitizer reports as failures) and adds up their numbers of tests. The last line is "N passed,
# N failed, N skipped". A program that passes is one line; of one that fails, the end of its
# output is printed. The whole output is in $B/test-output/NAME.log.
#
# usage: run-unit.sh [executable...]	(default: $B/tests/test_*)
#   B build folder, SAN as for make, LIMIT seconds per executable (240), V=1 shows all output
set -u
cd "$(dirname "$0")/.." || exit 2
export B="${B:-build}" SAN="${SAN:-}"
export GDAKI_TEST_TIMEOUT="${LIMIT:-240}"
export CRITERION_JOBS=1 # the tests of an executable share one RoCE address
export CRITERION_VERBOSITY_LEVEL=1 # print which tests ran and which were skipped
mkdir -p "$B/test-output"
out=$(mktemp -d -p "$B/test-output") # models.sh may run the same programs at the same time
trap 'mv -f "$out"/* "$B/test-output"; rmdir "$out"' EXIT

if [ $# -eq 0 ]; then
	for exe in "$B"/tests/test_*; do # not those whose source was deleted
		[ -x "$exe" ] && [ -f "tests/unit/$(basename "$exe").c" ] && set -- "$@" "$exe"
	done
fi
[ $# -gt 0 ] || { echo "run-unit.sh: no test executable in $B/tests"; exit 2; }

count() { # what, line: Criterion's "Tested: 4 | Passing: 3 | Failing: 1 | Crashing: 0"
	sed -n "s/.*$1: *\([0-9]*\).*/\1/p" <<<"$2"
}

passed=0 failed=0 skipped=0
for exe in "$@"; do
	name=$(basename "$exe")
	log=$out/$name.log
	start=$SECONDS
	tests/run-one.sh "$exe" >"$log" 2>&1
	status=$?
	took=$((SECONDS - start))
	sum=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -a 'Tested:.*Passing:' | tail -n 1)
	tested=$(count Tested "$sum") good=$(count Passing "$sum") bad=0 why=
	if [ -n "$sum" ]; then
		bad=$(($(count Failing "$sum") + $(count Crashing "$sum")))
		skips=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -a -c '^\[SKIP\]')
		skipped=$((skipped + skips))
		[ "$bad" -gt 0 ] && why="$bad of $tested tests failed"
		[ "$((tested + skips))" -gt 0 ] || why="no test in it"
	fi
	case $status in
	0) [ -n "$sum" ] || why="it ended without a summary" ;;
	77) [ -n "$sum" ] || skipped=$((skipped + 1)) ;;
	124 | 137) why="did not end within $GDAKI_TEST_TIMEOUT s" ;;
	66) why="${why:+$why, and }a sanitizer report" ;;
	*) why=${why:-exit status $status} ;;
	esac
	[ -z "$why" ] || [ "$bad" -gt 0 ] || bad=1
	passed=$((passed + ${good:-0})) failed=$((failed + bad))
	if [ -n "$why" ]; then
		echo "FAIL $name: $why ($took s)"
		tail -n 60 "$log" | sed 's/^/    /'
	else
		echo "PASS $name: ${good:-0} tests, $took s"
		[ "${V:-0}" = 0 ] || sed 's/^/    /' "$log"
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
