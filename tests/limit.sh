#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs COMMAND with a time limit, in a process group of its own. The time for which a thread of it
# waits for a processor does not count, nor the time that a busy machine costs, but the limit is at
# most ten times SECONDS. At the limit it copies the evidence of the NICs in $SOFTNIC_EVIDENCE to the
# folder limit in it, and writes the stacks of all threads of the test, of the processes with the same
# SOFTNIC_EVIDENCE in their environment. Then it ends COMMAND's group by SIGTERM, after 5 s by SIGKILL.
# The exit status is COMMAND's, or 124.
#
# usage: limit.sh SECONDS COMMAND [ARGS]
set -u
seconds=$1
shift

of_test() {
	[ -z "${SOFTNIC_EVIDENCE:-}" ] ||
		grep -lzxF "SOFTNIC_EVIDENCE=$SOFTNIC_EVIDENCE" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

# Prints the seconds for which the thread of the test that waited longest for a processor did so. For
# scripts of many short processes it estimates them from the load of the last minute.
waited() {
	local p
	of_test | while read -r p; do cat "/proc/$p/task"/*/schedstat; done 2>/dev/null |
		awk -v load="$(cut -d' ' -f1 /proc/loadavg)" -v few="$((2 * $(nproc)))" -v elapsed=$SECONDS '
			$2 > most { most = $2 }
			END {
				busy = load > few ? elapsed * (1 - few / load) : 0
				print int(busy > most / 1e9 ? busy : most / 1e9)
			}'
}

wait_until_limit() {
	local granted=0 all
	sleep "$seconds"
	while all=$(waited) && [ "$all" -gt "$granted" ] && [ "$granted" -lt $((9 * seconds)) ]; do
		sleep $((all - granted))
		granted=$all
	done
}

# The processes of the test, without the shells and their tools.
processes() {
	local p
	of_test | while read -r p; do
		case $(cat "/proc/$p/comm" 2>/dev/null) in
		'' | bash | sh | awk | cat | grep | cut | head | sleep | timeout | xargs | make | softnic-run) ;;
		*) echo "$p" ;;
		esac
	done
}

threads() { # process: a line for each thread, and its stack in the kernel if the caller may read it
	local t
	echo "process $1: $(tr '\0' ' ' <"/proc/$1/cmdline")"
	for t in "/proc/$1/task"/*; do
		echo "  thread ${t##*/} $(cat "$t/comm"), state $(sed 's/.*) //; s/ .*//' "$t/stat"), in $(cat "$t/wchan")," \
			"system call $(cat "$t/syscall")"
		cat "$t/stack"
	done 2>/dev/null
}

stacks() {
	local p all until=$((SECONDS + 600))
	all=$(processes | head -n 32)
	echo "$*: still running after $SECONDS s"
	# gdb stops a process for a while, and then the retries of its peers may run out.
	mkdir -p "$SOFTNIC_EVIDENCE/limit"
	cp "$SOFTNIC_EVIDENCE"/*.* "$SOFTNIC_EVIDENCE/limit"
	for p in $all; do threads "$p"; done
	for p in $all; do
		[ $SECONDS -lt $until ] || { echo "process $p: no time left"; continue; }
		echo "process $p: $(tr '\0' ' ' <"/proc/$p/cmdline")"
		timeout -k 5 120 gdb -nx -batch -iex 'set debuginfod enabled off' -p "$p" -ex 'thread apply all backtrace' 2>&1
	done
}

set -m # a process group for each of the two
"$@" &
group=$!
wait_until_limit &
alarm=$!
set +m
trap 'kill -TERM -- "-$group"' TERM HUP
trap 'kill -INT -- "-$group"' INT
while [ -z "${ended:-}" ]; do # a signal interrupts wait
	wait -n -p ended "$group" "$alarm"
	rc=$?
done
if [ "$ended" = "$group" ]; then
	kill -TERM -- "-$alarm"
	exit "$rc"
fi
[ -z "${SOFTNIC_EVIDENCE:-}" ] || stacks "$@" >>"$SOFTNIC_EVIDENCE/stacks" 2>&1 </dev/null
kill -TERM -- "-$group" 2>/dev/null
for _ in {1..50}; do
	kill -0 -- "-$group" 2>/dev/null || break
	sleep 0.1
done
kill -KILL -- "-$group" 2>/dev/null
exit 124
