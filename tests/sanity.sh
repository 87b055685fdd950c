#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Do the sanitizer targets notice? Each program of tests/sanity has one planted
# bug; it is built as the tests are and run by the runners that `make SAN=…
# test` uses. With the bug the runner must fail and show a report; without it
# (the same source, -DPLANT=0) the runner must pass.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
CC=${CC:-gcc}
dir=$B/sanity
rm -rf "$dir"
mkdir -p "$dir/bin" "$dir/tests"
ln -s "$PWD/$B/bin/softnic-run" "$dir/bin/softnic-run"
bad=0

check() { # sanitizer, program, what its report says, runner, libraries...
	local san=$1 name=$2 says=$3 runner=$4 plant rc log
	shift 4
	for plant in 0 1; do
		"$CC" -std=gnu11 -g -O1 -pthread -fsanitize="$san" $([ "$san" != undefined ] ||
			echo -fno-sanitize-recover=undefined) -DPLANT=$plant \
			-o "$dir/tests/$name" "tests/sanity/$name.c" "$@" || { bad=1; return; }
		log=$dir/$name.$plant.log
		B=$dir SAN=$san LIMIT=60 GDAKI_TEST_TIMEOUT=60 "tests/$runner" "$dir/tests/$name" >"$log" 2>&1
		rc=$?
		if [ $plant = 0 ] && [ $rc != 0 ]; then
			echo "sanity.sh: $name fails under SAN=$san although nothing is planted:"
			tail -n 20 "$log"
			bad=1
		elif [ $plant = 1 ] && [ $rc = 0 ]; then
			echo "sanity.sh: the bug of $name passes under SAN=$san:"
			tail -n 20 "$log"
			bad=1
		elif [ $plant = 1 ] && ! cat "$dir/san-logs/$name".* 2>/dev/null | grep -q "$says"; then
			echo "sanity.sh: $name fails under SAN=$san without a report that says '$says':"
			tail -n 20 "$log"
			bad=1
		fi
	done
	[ $bad != 0 ] || echo "sanity.sh: SAN=$san catches $name"
}

check address planted_leak 'LeakSanitizer: detected' run-unit.sh -lcriterion
check address planted_uaf heap-use-after-free run-unit.sh -lcriterion
check undefined planted_undefined 'signed integer overflow' run-unit.sh -lcriterion
check thread planted_race 'data race' run-one.sh
exit $bad
