#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs one test program on the software NIC, bounded in time. A sanitizer's
# report goes to a file of its own and fails the run whatever the program says.
# A first lines comment "softnic-run: OPTIONS" in the test's source is obeyed, and
# GDAKI_NIC_OPTIONS before it.
set -u
B="${B:-build}" SAN="${SAN:-}" t=$1
name=$(basename "$t")
src=$(ls tests/unit/"$name".c tests/thread/"$name".c tests/sanity/"$name".c 2>/dev/null | head -n 1)
opts="${GDAKI_NIC_OPTIONS:-} "$(sed -n '1,12s|.*softnic-run: \(--.*[^ */]\) *\*/.*|\1|p' "${src:-/dev/null}")
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
timeout -k 5 "${GDAKI_TEST_TIMEOUT:-120}" "$B/bin/softnic-run" $opts -- "$t"
rc=$?
if ls "$logs/$name".* >/dev/null 2>&1; then
	echo "sanitizer reports of $name:" >&2
	cat "$logs/$name".* >&2
	[ "$rc" != 0 ] || rc=66
fi
exit $rc
