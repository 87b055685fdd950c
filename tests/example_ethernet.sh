#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the Ethernet examples on the software NIC, their kernels on CPU threads: alone and in pairs, in
# each scope, with each doorbell handler. The NIC must count what the programs print. Then frames are
# lost, doubled and damaged by the NIC, and kernels are built that change a packet, send one twice,
# send early or give a wrong reply: each must make the exit status 1, with the reason.
# Exit status 77: frames need CAP_NET_RAW.
set -u
cd "$(dirname "$0")/.." || exit 2
B="${B:-build}"
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
bad=0 runs=0
. tests/lib/port.sh
capabilities=$(sed -n 's/^CapEff:[[:blank:]]*//p' /proc/self/status)
[ $((0x$capabilities >> 13 & 1)) = 1 ] || { echo "example_ethernet.sh: frames need CAP_NET_RAW"; exit 77; }

complain() { # what
	echo "example_ethernet.sh: $1"
	for f in "$tmp/out" "$tmp/server"; do [ ! -s "$f" ] || sed "s/^/    ${f##*/}: /" "$f"; done
	bad=1
}

start() { # options of softnic-run, program, its options
	# shellcheck disable=SC2086 # options
	exec tests/limit.sh 100 "$B/bin/softnic-run" $1 -- "$2" "${@:3}"
}

expect() { # exit status, text, then as start()
	local want=$1 text=$2 got
	shift 2
	runs=$((runs + 1))
	: >"$tmp/server"
	(start "$@") >"$tmp/out" 2>&1
	got=$?
	[ $got = "$want" ] && grep -qE -- "$text" "$tmp/out" || complain "$*: exit $got (expected $want), expected \"$text\""
}

pair() { # exit status, text, options of both NICs, program of the server, program of the client, its options
	local want=$1 text=$2 nic=$3 first=$4 second=$5 got server_got
	shift 5
	next_port
	runs=$((runs + 1))
	(start "$nic" "$first" -r -P $port) >"$tmp/server" 2>&1 &
	server=$!
	(start "$nic" "$second" -c 127.0.0.1 -P $port "$@") >"$tmp/out" 2>&1
	got=$?
	wait $server
	server_got=$?
	server=
	[ $got = "$want" ] && [ $server_got = "$want" ] && grep -qE -- "$text" "$tmp/out" ||
		complain "$second $*: exit $got, server $server_got (expected $want), expected \"$text\""
}

column() { # number of a column of the table
	awk -v c="$1" '/^ *packets +bytes/ { getline; print $c }' "$tmp/out"
}

receive=$B/bin/gpunetio_simple_receive send=$B/bin/gpunetio_simple_send timed=$B/bin/gpunetio_send_wait_time echo=$B/bin/gpunetio_echo
all() { echo "^all $1 packets are accounted for: $1 received, 0 out of buffer"; }

for f in examples/ethernet/*.c; do # example.mk compiles both folders into one
	[ ! -e "examples/common/${f##*/}" ] || complain "examples/common has a file of the name of $f"
done

# ---- right runs ----

for e in 0 1 2; do
	expect 0 "$(all 1024)" --strict "$receive" -g host -n mlx5_0 -e $e -i 1024
	[ "$(column 1) $(column 2) $(column 4)" = "1024 262144 0" ] || complain "the table of simple_receive -e $e"
	expect 0 "$(all 1024)" --strict "$send" -g host -n mlx5_0 -e $e -i 1024 -s 1514
	[ "$(column 1) $(column 2)" = "1024 1550336" ] || complain "the table of simple_send -e $e"
done
expect 0 "128 threads send 1024 packets of 256 bytes, handler CPU_PROXY" --strict "$send" -g host -n mlx5_0 -t 128 -p 1 -i 1024
expect 0 "$(all 1600)" --strict "$send" -e 1 -t 64 -M -i 1600
[ "$(column 4)" -le 20 ] || complain "$(column 4) doorbells for 1600 packets with -M"
expect 0 "$(all 1000)" --strict "$send" -t 5 -p 6 -i 1000 -f 7
expect 0 "$(all 1000)" --strict "$receive" -s 60 -i 1000 -m
for p in 0 1; do
	expect 0 "^every byte of the 512 replies is right" --strict "$echo" -p $p
done
pair 0 "$(all 1024)" --strict "$receive" "$send" -i 1024 -e 2
pair 0 "^UDP echo +256 +256$" --strict "$echo" "$echo"
grep -q '^answered 256 ICMP and 256 UDP echo requests, 0 other packets' "$tmp/server" || complain "the server of echo"

# The NIC counts the same doorbells, DBRECs and packets without a buffer.
nic_counts() { # name of a counter
	python3 -c 'import glob, json, sys; print(sum(json.load(open(f))[sys.argv[1]] for f in glob.glob(sys.argv[2] + "/*.json")))' "$1" "$tmp/stats"
}
mkdir "$tmp/stats"
expect 0 "^all 8192 packets are accounted for" "--stats-dir $tmp/stats" "$receive" -b 64 -f 4000 -i 8192
dropped=$(column 6)
[ "$dropped" -gt 0 ] && [ "$(nic_counts eth_out_of_buffer)" = "$dropped" ] ||
	complain "out of buffer: $dropped, the NIC counts $(nic_counts eth_out_of_buffer)"

# Sends at a given time: the row has the number of bursts, those that are early, and lateness.
clock="--strict --ts-format real --wait-on-time 1"
expect 0 '^first packet of a burst +40 +0 +[0-9.]+ +[0-9.]+$' "$clock" "$timed" -i 40 -t 32
grep -qE '^arrival of a packet +1280 +0 ' "$tmp/out" || complain "the arrivals"
expect 0 '^first packet of a burst +20 +0 ' "$clock" "$timed" -i 20 -t 64 -p 1
expect 1 'the NIC cannot send at a given time: its send queues have no real-time clock' --strict "$timed"

# ---- wrong use ----

for wrong in "-e 3" "-t 0" "-i x" "-s 59" "-s 1515" "-f 0" "-w 0"; do
	# shellcheck disable=SC2086 # an option and its value
	expect 2 "^error: invalid ${wrong% *}, --[a-z-]+ '${wrong#* }' \(expected a number from " "" "$send" $wrong
done
expect 2 "invalid -p, --handler '10' \(expected 0, 1, 2 or 6\)" "" "$send" -p 10
expect 2 "invalid -i, --iterations 7 \(expected a multiple of -t, --threads: 4\)" "" "$send" -i 7 -t 4
expect 2 "invalid -f, --in-flight 3 \(expected at least -t, --threads: 4\)" "" "$send" -f 3 -t 4
expect 2 "invalid -t, --threads 48 \(expected a multiple of 32" "" "$receive" -t 48
expect 2 "invalid -M, --multi with -e 0 \(expected -e 1" "" "$send" -M
expect 2 "unexpected argument 'extra'" "" "$echo" extra
expect 2 "either asks, or answers" "" "$echo" -r -c 127.0.0.1
expect 2 "either asks, or answers" "" "$echo" -r -D 1
expect 2 "invalid -a, --address '1.2.3' \(expected an IPv4 address\)" "" "$echo" -a 1.2.3
expect 2 "invalid -a, --address '198.18.0.1': requests come from it" "" "$echo" -a 198.18.0.1
expect 0 "^every byte of the 512 replies is right" --strict "$echo" -a 203.0.113.7
expect 0 "^answered 0 ICMP and 0 UDP echo requests, 0 other packets" --strict "$echo" -D 1
expect 1 "cannot open the NIC mlx5_7" "" "$receive" -n mlx5_7
next_port
expect 1 "none within 1 s \(-w\)" "" "$receive" -r -w 1 -P $port
expect 1 "cannot connect to the server at 127.0.0.1" "" "$send" -c 127.0.0.1 -w 1 -P $port
pair 1 "is gpunetio_echo, this program is gpunetio_simple_send" "" "$echo" "$send"
for p in "$receive" "$send" "$timed" "$echo"; do
	expect 0 "^usage: ${p##*/}" "" "$p" --help
	expect 0 "^${p##*/} \(gdaki\)" "" "$p" --version
done
if command -v setpriv >/dev/null; then
	expect 1 "a raw packet queue pair needs CAP_NET_RAW: run this as root" "" setpriv --bounding-set=-net_raw "$receive"
	expect 1 "flow rules need CAP_NET_RAW: run this as root" "" setpriv --bounding-set=-net_raw "$send"
fi

# ---- faults of the NIC ----

expect 1 'of 2048 packets are missing' "--loss 0.02 --seed 5" "$receive" -i 2048
expect 1 'packets came twice' "--dup 0.02 --seed 5" "$receive" -i 2048
expect 1 'of 2048 packets are missing' "--corrupt 0.02 --seed 5" "$send" -i 2048
expect 1 'packets came twice' "--dup 0.02 --seed 5" "$send" -i 2048
expect 0 "$(all 2048)" "--reorder 0.02 --seed 5" "$send" -i 2048
expect 1 'echo: [0-9]+ requests have no right reply' "--loss 0.1 --seed 5" "$echo"
expect 1 'replies are wrong or came twice' "--dup 0.1 --seed 5" "$echo"
expect 1 'of 640 packets are missing' "--loss 0.02 --seed 5 ${clock#--strict}" "$timed" -i 20 -t 32 -w 1
pair 1 'packets are missing' "--loss 0.02 --seed 5" "$receive" "$send" -i 1024

# ---- faults of kernels ----

link=$(make -s --no-print-directory B="$B" NVCC= link-line)
build() { # program, sed expression that adds the fault to its kernel
	local dir=examples/$1 objects
	sed -E "$2" "$dir/$1_kernel.cu" >"$tmp/kernel.cu"
	! cmp -s "$tmp/kernel.cu" "$dir/$1_kernel.cu" || { complain "$1: the expression changes nothing: $2"; return 1; }
	mapfile -t objects < <(printf '%s\n' "$B/obj/$dir"/*.o "$B"/obj/examples/ethernet/*.o \
		"$B"/obj/examples/common/{connect,endpoint,error,exchange,grid,message,nic}.o | grep -v _kernel.o)
	# shellcheck disable=SC2086 # $link is a list of options
	g++ -x c++ -std=c++17 -D_GNU_SOURCE -pthread -include tests/lib/fewer_inlined.h "-I$B/include-doca" "-I$B/include" -Iexamples/common -Iexamples/ethernet "-I$dir" \
		-c -o "$tmp/kernel.o" "$tmp/kernel.cu" &&
		g++ -pthread -o "$tmp/program" "${objects[@]}" "$tmp/kernel.o" "$B"/lib/libgdaki_{flow,eth,doca}.a $link
}

faulty() { # program, expression, text, options of the NIC, options of the program
	build "$1" "$2" || { bad=1; return; }
	expect 1 "$3" "$4" "$tmp/program" "${@:5}"
}

faulty gpunetio_simple_send 's/^(\t*)et_write.*$/&\n\1frame[50] ^= ss->first + slot == 9;/' '1 packets were changed' "" -i 64
pair 1 '1 packets were changed' "" "$receive" "$tmp/program" -i 64
grep -q '1 packets were changed' "$tmp/server" || complain "the receiver does not find the changed packet"
faulty gpunetio_simple_send 's/ss->first \+ slot, false/ss->first + slot - (ss->first + slot == 9), false/' \
	'1 packets came twice' "" -i 64
faulty gpunetio_simple_send 's/ss->key, ss->size\)/ss->key, ss->size - (ss->first + slot == 9))/' '1 of 64 packets are missing' "" -i 64
faulty gpunetio_echo 's/l4\[0\] = EC_REPLY/l4[0] = 13/' '256 replies are wrong' "" -i 256
faulty gpunetio_echo 's/swap\(l4, l4 \+ 2, 2\);//' '256 replies are wrong' "" -i 256
# The last burst is 1.8 s early, also if all of them are late because the machine is busy.
faulty gpunetio_send_wait_time 's/wt->when\[burst\]/wt->when[burst < 3 ? burst : 2]/' \
	'^error: 0 packets left early, [1-9][0-9]* arrived early' "${clock#--strict}" -i 12 -u 200000
[ $bad != 0 ] || echo "example_ethernet.sh: $runs runs of the Ethernet examples"
exit $bad
