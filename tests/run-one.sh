#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs one test program on the software NIC, with a time limit (GDAKI_TEST_TIMEOUT seconds, 120).
# A sanitizer's report goes to a file of its own and makes the exit status 66 if it was 0.
# The options of softnic-run are those of GDAKI_NIC_OPTIONS, then those of a comment
# "softnic-run: OPTIONS" in the first 12 lines of the test's source.
set -u
B="${B:-build}" SAN="${SAN:-}" t=$1
name=$(basename "$t")
for src in tests/{unit,thread,sanity}/"$name".c; do
	[ ! -f "$src" ] || break
done
[ -f "$src" ] || src=/dev/null
opts="${GDAKI_NIC_OPTIONS:-} "$(sed -n '1,12s|.*softnic-run: \(--.*[^ */]\) *\*/.*|\1|p' "$src")
logs=$B/san-logs
mkdir -p "$logs"
rm -f "$logs/$name".*
log="log_path=$PWD/$logs/$name"
if [ -n "$SAN" ]; then
	opts="--no-preload $opts"
	export ASAN_OPTIONS="$log:detect_leaks=1:${ASAN_OPTIONS:-}"
	[ ! -f tests/lsan.supp ] ||
		export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
	export UBSAN_OPTIONS="$log:print_stacktrace=1:${UBSAN_OPTIONS:-}"
	export TSAN_OPTIONS="$log:second_deadlock_stack=1:${TSAN_OPTIONS:-}"
fi
# shellcheck disable=SC2086
tests/limit.sh "${GDAKI_TEST_TIMEOUT:-120}" "$B/bin/softnic-run" $opts -- "$t"
rc=$?
if ls "$logs/$name".* >/dev/null 2>&1; then
	echo "sanitizer reports of $name:" >&2
	cat "$logs/$name".* >&2
	[ "$rc" != 0 ] || rc=66
fi
exit $rc
