#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# post.sh [table|latency|tail|compute|limits|all]
#
# Measures posting on one GPU, without a NIC. Builds the programs with gdaki's headers and
# with the peer's (NVIDIA's gpunetio), runs the two in turn, and prints registers and:
#   table        rates (post.cu), the cost of single instructions, and the matrix of rates
#   latency      latency of one operation (post_lat.cu)
#   tail         the longest put on a shared queue pair (post_tail.cu)
#   compute      a kernel that copies memory and posts (post_compute.cu)
#   limits       rates of gdaki with 64 registers, and with 40 in exclusive rows
#   all          all of them (default)
# Environment:
#   PEER=DIR     folder of the peer's headers (.gpu-deps/peer); if absent, only gdaki runs
#   UCX=DIR      a checkout of openucx/ucx with its submodule gpunetio (.gpu-deps/ucx), of which
#                src and external/gpunetio/include suffice; adds its rows to the table
#   OPTS=...     options of post.cu for both (--sys, --reg-gpu, --ms 5)
#   MATRIX=0     skip the matrix
#   BUILD=only   compile, check the registers, stop
# Fails if a kernel that posts with unlimited registers has spills or uses local memory, or if
# a row of gdaki reports an error or hangs.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/bench/post_print.sh
B=${B:-build}
PEER=${PEER:-.gpu-deps/peer}
[ -d "$PEER/include" ] && PEER=$PEER/include
UCX=${UCX:-.gpu-deps/ucx}
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
ARCH=${ARCH:-90}
OPTS=${OPTS:-}
out=$B/bench/post
bad=0
case ${1:-all} in
all) parts="table latency tail compute limits" ;;
table | latency | tail | compute | limits) parts=$1 ;;
*) sed -n '5,/^#   BUILD/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
who="ours"
[ -e "$PEER/doca_gpunetio_device.h" ] && who="$who peer"
[ -e "$UCX/src/uct/ib/mlx5/gdaki/gdaki.cuh" ] && ucx="ucx" || ucx=""
mkdir -p "$out" || exit 2

sources() { # include folder: lists post.cu's sources and all headers that they may include
	find -L tests/bench/post* "$1" -name '*.h' -o -name '*.cu*'
}

build() { # name, include folder, source, options
	local bin=$out/$1 name=$1 inc=$2 source=$3 newer
	shift 3
	newer=$(sources "$inc" | while read -r f; do [ "$bin" -nt "$f" ] || echo "$f"; done)
	[ -z "$newer" ] && return
	"$NVCC" -std=c++17 -O3 "-arch=sm_$ARCH" -Xptxas -v "-I$inc" "$@" -o "$bin" "$source" \
		>"$bin.log" 2>&1 && return
	echo "post.sh: $name does not compile:"
	grep -E -A 3 'error|fatal' "$bin.log" | head -n 20
	rm -f "$bin"
	return 1
}

# Prints the programs of a part of the benchmark, one per line: name, include folder, source,
# options.
programs() { # part
	local w
	case $1 in
	table) [ -z "$ucx" ] || echo "ucx $UCX/src post_ucx.cu -DHAVE_CONFIG_H -DHAVE_GDA" ;;
	limits) printf "ours%s $B/include post.cu -maxrregcount=%s -DPOST_NO_MATRIX\n" 64 64 40 40 ;;
	esac
	for w in $who; do
		case $1-$w in
		table-* | limits-ours) echo "$w $(headers "$w") post.cu" ;;
		latency-*) echo "$w.lat $(headers "$w") post_lat.cu" ;;
		tail-* | compute-*) echo "$w.$1 $(headers "$w") post_$1.cu" ;;
		esac
	done
}

headers() { # ours or peer
	[ "$1" = ours ] && echo "$B/include" || echo "$PEER"
}

# Compiles the programs of all parts, at most as many at once as there are processors.
build_all() {
	local name inc source options
	while read -r name inc source options; do
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
		# shellcheck disable=SC2086 # a list of words
		build "$name" "$inc" "tests/bench/$source" $options </dev/null &
	done <<<"$list"
	wait
	for name in $names; do [ -x "$out/$name" ] || return 1; done
}

# Spills are allowed in the builds with limited registers and in the kernel that computes:
# their tables print them.
check_registers() {
	local name
	for name in $names; do
		registers "$name" >"$out/$name.registers" || case $name in
		ours[0-9]* | *.compute) ;;
		*) echo "post.sh: $name: spills or local memory"
			[ "${name#ours}" = "$name" ] || bad=1 ;;
		esac
		[ -s "$out/$name.registers" ] ||
			{ echo "post.sh: no kernel found in $out/$name.log"; bad=1; }
	done
	echo "== registers of the kernels that post (all in $out/*.registers)"
	for name in $names; do
		awk '!/: micro|: post_consume|: time_/' "$out/$name.registers" | sort -k 2,2n |
			awk -v name="$name" 'NR == 1 { min = $2 } { max = $2; spilled += !/ 0 local, 0 \+ 0 spilled/ }
			END { printf "%s: %d kernels, %d to %d registers", name, NR, min, max
				print spilled ? ", " spilled " with spills or local memory" : "" }'
	done
}

# Runs all rows in one process. A row that hangs ends the process; another process then
# continues after that row.
run() { # name, section, options...
	local bin=$out/$1 name=$1 section=$2 first=0 tsv=$out/$1.$2.tsv
	shift 2
	: >"$tsv"
	for _ in 1 2 3 4 5 6; do
		# shellcheck disable=SC2086 # OPTS is a list of words
		timeout 150 "$bin" "$@" $OPTS --first "$first" >"$tsv.part" 2>"$tsv.err" && done=1 || done=0
		grep "^$section" "$tsv.part" >>"$tsv"
		[ "$done" = 1 ] && break
		cat "$tsv.err"
		echo "post.sh: $name, $section: $(grep '^HANG' "$tsv.part" || echo "died")"
		[ "${name#ours}" = "$name" ] || bad=1
		grep -q '^HANG' "$tsv.part" || break
		first=$((first + $(grep -c "^$section" "$tsv.part") + 1))
	done
	rm -f "$tsv.part" "$tsv.err"
}

table_part() {
	local w
	# shellcheck disable=SC2086 # OPTS is a list of words
	timeout 60 "$out/ours" --micro $OPTS >"$out/micro.tsv" || bad=1
	echo "== the consumer alone, on filled rings: the highest rate that it can verify"
	awk -F '\t' '/^capacity/ { printf "%d QPs: %s M WQE/s\n", $2, $3 }' "$out/micro.tsv"
	echo "== single instructions, one thread: ns, best and worst of 5 runs"
	awk -F '\t' '/^micro/ { printf "%-58s %8.1f %8.1f\n", $2, $3, $4 }' "$out/micro.tsv"
	for w in $who $ucx; do run "$w" table; done
	echo "== table: M WQE/s verified; 'late': doorbells found elsewhere, gdaki's/peer's;"
	echo "== 'free': without availability check and consumer"
	table table
	[ -z "$ucx" ] || ucx_table
	echo "(a) a doorbell for every 1024th WQE, none in the free run  (b) 28 bytes inline in the WQE"
	echo "free '-': posters overtook their own ring, so doorbells were lost"
}

matrix_part() {
	local w
	for w in $who; do run "$w" matrix --matrix --ms 6; done
	echo "== matrix: exclusive: 1 thread or warp per QP; CTA: 256 threads per QP; GPU: 132x32 threads"
	table matrix
}

limits_part() {
	[[ $parts == *table* ]] || run ours table --no-free
	run ours64 table --no-free
	limits_table 64
	run ours40 table --no-free --exclusive
	limits_table 40
}

# Runs a program that takes none of post.cu's options, with both headers, and prints its table.
small_part() { # part, program
	local w
	: >"$out/peer.$2.$1.tsv"
	for w in $who; do OPTS="" run "$w.$2" "$1"; done
	"$1_table"
}

make -s stage || exit 2
list=$(for part in $parts; do programs "$part"; done | sort -u)
names=$(cut -d' ' -f1 <<<"$list")
build_all || exit 1
check_registers
[ "${BUILD:-}" = only ] && exit $bad

nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader -i 0
echo "rings, CQs and records in GPU memory; options: ${OPTS:-none (registers in pinned host memory)}"
for part in $parts; do
	case $part in
	table) table_part ;;
	latency) small_part latency lat ;;
	tail | compute) small_part "$part" "$part" ;;
	limits) limits_part ;;
	esac
done
[[ $parts == *table* ]] && [ "${MATRIX:-1}" != 0 ] && matrix_part
echo "post.sh: $SECONDS s"
exit $bad
