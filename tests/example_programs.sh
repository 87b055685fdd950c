#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs each example with a server and a client on the software NIC, its kernel on CPU threads, with
# each handler that it supports. The programs check all data. Also checks that a program refuses
# the options that it does not have.
# LONG: also sweeps, several queue pairs and blocks, warp scope, runs bounded by time, and a kernel
# that prints its times.
set -u
cd "$(dirname "$0")/.." || exit 2
B="${B:-build}"
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
bad=0 runs=0
. tests/lib/port.sh

bandwidth="put_bw get_bw put_signal_bw put_counter_bw write_bw twosided_bw"
latency="write_lat put_signal_lat put_counter_lat"
names=(- CPU_PROXY GPU_SM_DB - - - GPU_SM_BF - - - GPU_SM_NO_DBR)

handlers() { # program
	case $1 in
	put_counter_* | write_bw | twosided_bw) echo 0 1 2 10 ;;
	*) echo 0 1 2 6 10 ;;
	esac
}

start() { # program, options
	local name=$1
	shift
	exec tests/limit.sh 90 "$B/bin/softnic-run" -- "$B/bin/gpunetio_verbs_$name" -d mlx5_0 -P $port -w 30 "$@"
}

columns() { # names: their values in the client's CSV file, a line for each size
	awk -F, -v names="$*" '{ gsub(/"[^"]*"/, "-") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ n = split(names, name, " "); for (i = 1; i <= n; i++) printf "%s ", $at[name[i]]; print "" }' "$tmp/csv"
}

complain() { # program and options, what is wrong
	echo "example_programs.sh: $1: $2"
	sed 's/^/    server: /' "$tmp/server"
	sed 's/^/    client: /' "$tmp/client"
	bad=1
}

pair() { # program, handler, other options
	local name=$1 handler=$2 what="$1 -p $2 ${*:3}" rc server_rc
	shift 2
	next_port
	runs=$((runs + 1))
	rm -f "$tmp/csv"
	(start "$name" -p "$handler" "${both[@]}") >"$tmp/server" 2>&1 &
	server=$!
	(start "$name" -c 127.0.0.1 -p "$handler" --csv "$tmp/csv" "${both[@]}" "$@") >"$tmp/client" 2>&1
	rc=$?
	# A server waits forever for a client that failed before it connected.
	[ $rc = 0 ] || { sleep 1; kill $server 2>/dev/null; }
	wait $server
	server_rc=$?
	server=
	[ $rc = 0 ] && [ $server_rc = 0 ] || { complain "$what" "exit $rc, server $server_rc"; return; }
	grep -q '^Validation successful' "$tmp/server" || complain "$what" "the server prints no verdict"
	[ "$name" != twosided_bw ] || grep -q '^[0-9]* bytes: [0-9]* messages received, [0-9.]* M/s$' "$tmp/server" ||
		complain "$what" "the server prints no rate"
	[ -s "$tmp/csv" ] || { complain "$what" "no CSV file"; return; }
	[ "${names[$handler]}" = - ] || [ "$(columns handler | sort -u)" = "${names[$handler]} " ] ||
		complain "$what" "handler $(columns handler)"
	case $name in
	*_bw) columns gbps | awk '!($1 > 0) { exit 1 }' || complain "$what" "gbps: $(columns gbps)" ;;
	*_lat)
		columns min_us median_us max_us | awk '!(0 < $1 && $1 <= $2 && $2 <= $3) { exit 1 }' ||
			complain "$what" "min, median, max: $(columns min_us median_us max_us)"
		;;
	esac
}

refused() { # text, program, options
	local text=$1 rc
	runs=$((runs + 1))
	timeout 20 "$B/bin/gpunetio_verbs_$2" "${@:3}" >"$tmp/client" 2>&1
	rc=$?
	[ $rc = 2 ] && grep -qF -- "$text" "$tmp/client" || complain "$*" "exit $rc, expected 2 and the text"
}

: >"$tmp/server"
both=()
for name in $bandwidth $latency; do
	for handler in $(handlers "$name"); do
		pair "$name" "$handler" -s 200 -i 64 -n 4
	done
done

rdma() { # options of both NICs, handler, other options of the client
	local program=$B/bin/gpunetio_rdma_client_server_write what="rdma_client_server_write $*" rc server_rc
	next_port
	runs=$((runs + 1))
	# shellcheck disable=SC2086 # options
	tests/limit.sh 90 "$B/bin/softnic-run" $1 -- "$program" -P $port -w 30 -p "$2" >"$tmp/server" 2>&1 &
	server=$!
	# shellcheck disable=SC2086 # options
	tests/limit.sh 90 "$B/bin/softnic-run" $1 -- "$program" -P $port -w 30 -p "$2" -c 127.0.0.1 "${@:3}" >"$tmp/client" 2>&1
	rc=$?
	wait $server
	server_rc=$?
	server=
	[ $rc = 0 ] && [ $server_rc = 0 ] || { complain "$what" "exit $rc, server $server_rc"; return; }
	grep -q '^Validation successful' "$tmp/server" || complain "$what" "the server prints no verdict"
	[ "$(grep -cE '^ *(strong|weak) +[0-9]+ +[0-9]+( +[0-9.e+-]+){3}$' "$tmp/client")" = 2 ] ||
		complain "$what" "the client does not print two rows"
	[ "${names[$2]}" = - ] || grep -q "handler: ${names[$2]}$" "$tmp/client" || complain "$what" "another handler"
}

for handler in 0 1 2; do
	rdma --strict $handler -i 64
done
rdma "--loss 0.02 --dup 0.02 --reorder 0.02 --seed 7" 0 -q 8 -i 301 -t 3 -s 5000
for name in put_counter_bw put_counter_lat write_bw twosided_bw; do
	refused "invalid -p, --handler '6' (expected 0, 1, 2 or 10)" $name -p 6
done
for name in $latency; do
	for option in -b -e -q -t; do
		refused "gpunetio_verbs_$name does not have the option $option, --" "$name" $option 1
	done
done
refused "gpunetio_verbs_write_bw does not have the option -e, --scope" write_bw -e 1
refused "gpunetio_verbs_twosided_bw does not have the option -e, --scope" twosided_bw -e 1
refused "all threads of a queue pair of gpunetio_verbs_write_bw are in one block" write_bw -b 2 -t 4
refused "invalid -t, --threads 2049 (expected at most 2048: the WQEs of a send queue)" write_bw -t 2049

# The kernel of a server fails, because the client's queue pair no longer answers: the client gets
# the server's error, long before its own time limit.
next_port
runs=$((runs + 1))
(start put_signal_lat) >"$tmp/server" 2>&1 &
server=$!
timeout 60 "$B/bin/softnic-run" --err-after 20 -- "$B/bin/gpunetio_verbs_put_signal_lat" -P $port -c 127.0.0.1 -i 64 >"$tmp/client" 2>&1
rc=$?
wait $server
server_rc=$?
server=
[ $rc = 1 ] && [ $server_rc = 1 ] && grep -q 'the server failed: .*transport retries exceeded' "$tmp/client" ||
	complain "a kernel of the server fails" "exit $rc, server $server_rc, no error of the server"

if [ -n "${LONG:-}" ]; then
	for name in $bandwidth $latency; do
		pair "$name" 0 -a -i 64
		[ "$(columns bytes | wc -l)" -ge 15 ] || complain "$name -a" "sizes: $(columns bytes | xargs)"
		pair "$name" 0 -D 2
		[ "$name" = get_bw ] || pair "$name" 0 -s 1 -i 1024
		pair "$name" 0 -s 1000003 -i 8
	done
	for name in $bandwidth; do
		both=(-q 4)
		pair "$name" 0 -i 256
		both=()
		[[ $name != @(write|twosided)_bw ]] || continue
		pair "$name" 0 -t 8 -b 2 -i 256
		pair "$name" 0 -e 1 -i 256
	done
	# A kernel that prints the time of each operation.
	name=gpunetio_verbs_put_bw
	mkdir -p "$tmp/bin"
	sed 's/^#define KERNEL_DEBUG_TIMES 0/#define KERNEL_DEBUG_TIMES 1/' examples/$name/${name}_kernel.cu >"$tmp/kernel.cu"
	# shellcheck disable=SC2046 # a list of options
	if g++ -x c++ -std=c++17 -D_GNU_SOURCE -pthread -I"$B/include" -Iexamples/common -c -o "$tmp/kernel.o" "$tmp/kernel.cu" &&
		g++ -pthread -o "$tmp/bin/$name" "$B/obj/examples/$name/$name.o" "$tmp/kernel.o" "$B"/obj/examples/common/*.o \
			$(make -s --no-print-directory B="$B" NVCC= link-line) -ljson-c; then
		mkdir "$tmp/B" && ln -s "$PWD/$B/bin/softnic-run" "$tmp/bin" && ln -s "$tmp/bin" "$tmp/B/bin" && ln -s "$PWD/$B/lib" "$tmp/B/lib"
		(B=$tmp/B pair put_bw 2 -i 64; exit $bad) || bad=1
		grep -q 'iteration [0-9]*: put [0-9]* ns, poll [0-9]* ns' "$tmp/client" ||
			complain "KERNEL_DEBUG_TIMES" "the kernel prints no times"
	else
		echo "example_programs.sh: put_bw with KERNEL_DEBUG_TIMES does not build"
		bad=1
	fi
fi
[ $bad != 0 ] || echo "example_programs.sh: $runs runs of the examples"
exit $bad
