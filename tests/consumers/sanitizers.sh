#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Programs that gcc and clang built with -fsanitize=address, undefined or thread run under
# softnic-run without settings: they use the NIC, the sanitizer reports nothing about the NIC,
# and still reports the program's own bug.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
run=$PWD/$B/bin/softnic-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
bad=0 programs=0 skipped=""
complain() { echo "sanitizers.sh: $1"; sed 's/^/    /' "$tmp/out" | head -n 12; bad=1; }

ends() { # program, kind of bug, expected line
	timeout 60 "$run" -- "${prefix[@]}" "$tmp/$1" "$2" >"$tmp/out" 2>&1
	local rc=$?
	grep -q -E -- "$3" "$tmp/out" || complain "$1 $2: no line with: $3"
	[[ $2 != none && $2 != fork ]] || { [ $rc = 0 ] && [ "$(wc -l <"$tmp/out")" = 1 ]; } || complain "$1 $2: exit status $rc"
}

for cc in gcc clang; do
	command -v $cc >/dev/null || { skipped+=" $cc"; continue; }
	for kind in address undefined thread; do
		[ $cc-$kind = gcc-address ] && more=-static-libasan || more=
		[ $cc-$kind = clang-address ] && more=-shared-libasan
		[ $kind = address ] && more+=" -DOWN_OPTIONS"
		for flags in "" $more; do
			name=$cc-$kind$flags
			# shellcheck disable=SC2086 # no flag, or one
			$cc -g -O1 -fsanitize=$kind $flags tests/consumers/sanitized.c -o "$tmp/$name" -libverbs -lpthread \
				${flags:+-Wl,-rpath,"$(dirname "$($cc -print-file-name=libclang_rt.asan-x86_64.so)")"} \
				>"$tmp/out" 2>&1 || { complain "$name does not compile"; continue; }
			# Some kernels place memory where an older ThreadSanitizer cannot start.
			"$tmp/$name" start >"$tmp/out" 2>&1 || { skipped+=" $name"; continue; }
			programs=$((programs + 1)) prefix=()
			ends "$name" none '^done$'
			case $kind in
			address)
				ends "$name" fork '^done$'
				ends "$name" overflow 'ERROR: AddressSanitizer: heap-buffer-overflow'
				ends "$name" leak 'AddressSanitizer: 33 byte\(s\) leaked in 1 allocation'
				# The user's settings stay in force, also those of a script.
				export ASAN_OPTIONS=detect_leaks=0
				ends "$name" leak '^done$'
				unset ASAN_OPTIONS
				[[ $flags == *OWN* ]] && continue
				prefix=(env ASAN_OPTIONS=detect_leaks=0)
				ends "$name" none '^done$'
				ends "$name" leak '^done$' ;;
			undefined) ends "$name" integer 'runtime error: signed integer overflow' ;;
			thread) ends "$name" race 'WARNING: ThreadSanitizer: data race' ;;
			esac
		done
	done
done
[ -z "$skipped" ] || echo "sanitizers.sh: cannot run here:$skipped"
[ $bad != 0 ] || echo "sanitizers.sh: $programs programs"
[ -z "$skipped" ] || [ $bad != 0 ] || exit 77
exit $bad
