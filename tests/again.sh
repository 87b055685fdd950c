#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the tests several times, without building, beside busy loops. Prints a line for each run and
# each failure, then how often each test failed. The output of run N is $B/again/N.out, and the
# evidence of a test that failed in it $B/again/N/NAME. The exit status is 1 after a failure.
#
# usage: again.sh RUNS [LOOPS]
#   T, JOBS, B, LONG and the other variables of run.sh
set -u
cd "$(dirname "$0")/.." || exit 2
export B="${B:-build}"
# As make chooses them.
export NVCC="${NVCC-$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)}" CUDA_ARCH="${CUDA_ARCH:-90}"
runs=${1:-} load=${2:-0} at=$B/again
[[ $runs =~ ^[1-9][0-9]*$ && $load =~ ^[0-9]+$ ]] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
# At the lowest priority, tests that only compute would hardly run beside busy loops.
[ "$load" = 0 ] || export NICE="${NICE:-0}"
loop_s=7200 # a run that needs longer continues without busy loops

groups=() # of processes: the busy loops and the tests
end() {
	local group
	for group in "${groups[@]}"; do kill -TERM -- "-$group" 2>/dev/null; done
	groups=()
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

begin() { # command...: in the background, in a process group of its own
	set -m
	"$@" &
	set +m
	groups+=($!)
}

# shellcheck disable=SC2317 # begin() calls it
loop() { # it also ends if this script is killed
	local i until=$((SECONDS + loop_s))
	while [ "$SECONDS" -lt "$until" ] && kill -0 $$ 2>/dev/null; do
		for ((i = 0; i < 100000; i++)); do :; done
	done
}

rm -rf "$at"
mkdir -p "$at"
for ((run = 1; run <= runs; run++)); do
	for ((i = 0; i < load; i++)); do begin loop; done
	begin tests/run.sh >"$at/$run.out" 2>&1
	wait "${groups[-1]}"
	rc=$?
	end
	[ $rc -le 1 ] || { tail -n 1 "$at/$run.out" >&2; exit $rc; }
	echo "run $run: $(tail -n 1 "$at/$run.out"); $(sed -n 's/.*programs and scripts: \([^;]*\).*/\1/p' "$at/$run.out" | tail -n 1)"
	sed -n 's/^failed: //p' "$at/$run.out" | while read -r name; do
		evidence=$(sed -n "s|^evidence of $name: ||p" "$at/$run.out" | tail -n 1)
		mkdir -p "$at/$run"
		[ -z "$evidence" ] || mv "$evidence" "$at/$run/"
		echo "  failed: $name${evidence:+, evidence: $at/$run/${evidence##*/}}"
		echo "$name" >>"$at/failures"
	done
done
[ -e "$at/failures" ] || { echo "$runs runs beside $load busy loops: no failure"; exit 0; }
sort "$at/failures" | uniq -c | sort -rn | while read -r n name; do echo "$name failed in $n of $runs runs"; done
exit 1
