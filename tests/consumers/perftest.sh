#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the distribution's unmodified perftest, two processes on two software NICs: every
# operation, and the options that change how the queues are used.
# usage: perftest.sh [--pcap FOLDER] [long]
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
name=perftest.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/lib/pair.sh
command -v ib_write_bw >/dev/null || { echo "perftest.sh: ib_write_bw not found (package perftest)"; exit 77; }
${CC:-gcc} -O1 -Wall -shared -fPIC -o "$tmp/clock.so" tests/consumers/fast_clock.c || exit 1
# shellcheck disable=SC2016 # sh expands it
fast=(sh -c 'LD_PRELOAD="$LD_PRELOAD $0" exec "$@"' "$tmp/clock.so") # the start of a command
n=20 ran=0
[ "${1:-}" != long ] || n=1000

bench() { # program, options...
	ran=$((ran + 1))
	pair "$*" "${fast[@]}" "$1" -d mlx5_0 -x 3 -F -p PORT -n "$n" "${@:2}" || return
	grep -q -E '^ *#bytes' "$tmp/client" || complain "$*: no result" client
}

for op in write read send; do
	bench ib_${op}_bw
	bench ib_${op}_bw -m 256 -s 5000
	bench ib_${op}_lat
done
n=20 bench ib_write_bw -a # 2 bytes to 8 MiB
bench ib_read_bw -s 100000 -o 4
nic=(--loss 0.01 --seed 5) # one READ in flight, of which some responses are lost
n=300 bench ib_read_bw -o 1 -s 65536
nic=()
bench ib_write_bw -q 8
bench ib_write_lat -s 200 -I 200 # inline in the WQE
bench ib_send_bw -e
bench ib_send_bw -b -m 1024
bench ib_send_bw --use-srq
bench ib_send_bw --use-srq -q 4 -e
bench ib_send_bw -c UD -r 1000 # UD drops a message without a posted receive: post all in advance
bench ib_send_lat -c UD
bench ib_send_bw -c UD -e -r 1000
bench ib_write_bw -c UC
bench ib_send_bw -c UC -s 2000 -r 1000
bench ib_send_lat -c UC

# Received data of up to 32 bytes is in the CQE; a variable of libmlx5 switches it off. Both
# processes of ib_send_lat receive, and only the server of ib_send_bw does.
inline_cqes() { # file; prints how many CQEs of the device held data
	awk '$1 == "inline_cqes" { print $2; found = 1; exit } END { if (!found) print 0 }' "$tmp/$1"
}

bench_inline() { # expected number in each process that receives, program, options...
	local want=$1 as count
	shift
	bench "$@" || return
	for as in server client; do
		[ "$1 $as" != "ib_send_bw client" ] || continue
		count=$(inline_cqes "$as")
		[ "$count" = "$want" ] ||
			complain "$*: $count CQEs of the $as held data, expected $want" "$as"
	done
}

nic=(--stats)
for program in ib_send_bw ib_send_lat; do
	bench_inline "$n" $program -s 2
	bench_inline "$n" $program -s 32
	MLX5_SCATTER_TO_CQE=0 bench_inline 0 $program -s 32
done
bench_inline 0 ib_send_bw -s 33
MLX5_CQE_SIZE=128 bench_inline "$n" ib_send_bw -s 64
nic=(--trace)
bench ib_send_bw -s 2
grep -q -E 'CQE cq .* SEND received, with 2 bytes of data$' "$tmp/server" ||
	complain "ib_send_bw -s 2: the trace shows no data in CQEs" server
nic=()
bench ib_atomic_bw -A FETCH_AND_ADD
bench ib_atomic_bw -A CMP_AND_SWAP
bench ib_atomic_lat
if [ "${1:-}" = long ]; then
	for op in write read send; do
		n=20 bench ib_${op}_bw -a
		n=50 bench ib_${op}_lat -a
		bench ib_${op}_bw -q 8 -l 4 -Q 4
		bench ib_${op}_bw -b -q 4
		for mtu in 256 512 1024 2048 4096; do bench ib_${op}_bw -m $mtu; done
	done
	for size in 1 64 512 900; do
		bench ib_write_bw -s $size -I $size
		bench ib_send_lat -s $size -I $size
	done
	bench ib_send_lat --use-srq
	n=20 bench ib_send_bw --use-srq -a
	n=20 bench ib_send_bw -c UD -a
	n=20 bench ib_write_bw -c UC -a
	bench ib_write_lat -c UC -s 65536
	bench ib_send_bw -q 8 -e
	bench ib_read_lat -e
	bench ib_atomic_bw -q 8 -o 16
	bench ib_send_bw -c UD -q 4 -r 1000
	bench ib_send_bw -r 1 -t 1
	bench ib_write_bw --use_old_post_send
	bench ib_write_bw --mr_per_qp -q 4
fi
[ $bad != 0 ] || echo "perftest.sh: $ran runs of two processes, $n messages each"
exit $bad
