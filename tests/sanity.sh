#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks that the sanitizer builds detect bugs. Each program of tests/sanity has one planted
# bug. It is built like the tests and run by the scripts that `make SAN=... test` uses. With
# the bug the run must fail with a sanitizer report; without it (-DPLANT=0) it must pass.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
CC=${CC:-gcc}
dir=$B/sanity
rm -rf "$dir"
mkdir -p "$dir/bin" "$dir/tests"
ln -s "$(realpath "$B")/bin/softnic-run" "$dir/bin/softnic-run"
bad=0

check() { # sanitizer, program, text in its report, runner, libraries...
	local san=$1 name=$2 says=$3 runner=$4 plant rc log
	local flags=(-fsanitize="$san")
	shift 4
	[ "$san" != undefined ] || flags+=(-fno-sanitize-recover=undefined)
	for plant in 0 1; do
		"$CC" -std=gnu11 -g -O1 -pthread "${flags[@]}" -DPLANT=$plant \
			-o "$dir/tests/$name" "tests/sanity/$name.c" "$@" || { bad=1; return; }
		log=$dir/$name.$plant.log
		B=$dir SAN=$san LIMIT=60 GDAKI_TEST_TIMEOUT=60 "tests/$runner" "$dir/tests/$name" >"$log" 2>&1
		rc=$?
		if [ $plant = 0 ] && [ $rc != 0 ]; then
			echo "sanity.sh: $name fails under SAN=$san without the bug:"
			tail -n 20 "$log"
			bad=1
		elif [ $plant = 1 ] && [ $rc = 0 ]; then
			echo "sanity.sh: SAN=$san does not detect the bug of $name:"
			tail -n 20 "$log"
			bad=1
		elif [ $plant = 1 ] && ! cat "$dir/san-logs/$name".* 2>/dev/null | grep -q "$says"; then
			echo "sanity.sh: $name fails under SAN=$san without a report of '$says':"
			tail -n 20 "$log"
			bad=1
		fi
	done
	[ $bad != 0 ] || echo "sanity.sh: SAN=$san detects $name"
}

check address planted_leak 'LeakSanitizer: detected' run-unit.sh -lcriterion
check address planted_uaf heap-use-after-free run-unit.sh -lcriterion
check undefined planted_undefined 'signed integer overflow' run-unit.sh -lcriterion
check thread planted_race 'data race' run-one.sh
exit $bad
