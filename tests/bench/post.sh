#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Measures posting rates on one GPU, without a NIC. Builds post.cu with gdaki's headers and
# with the peer's (NVIDIA's gpunetio), runs the two in turn, and prints registers, the cost of
# single instructions, the table and the matrix.
#   PEER=DIR     folder of the peer's headers (.gpu-deps/peer); if absent, only gdaki runs
#   UCX=DIR      a checkout of openucx/ucx with its submodule gpunetio (.gpu-deps/ucx), of which
#                src and external/gpunetio/include suffice; adds its rows to the table
#   OPTS=...     options of post.cu for both (--sys, --reg-gpu, --ms 5)
#   MATRIX=0     skip the matrix
#   BUILD=only   compile, check the registers, stop
# Fails if a kernel that posts has spills or uses local memory, or if a row of gdaki reports a
# mismatch or hangs.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
PEER=${PEER:-.gpu-deps/peer}
[ -d "$PEER/include" ] && PEER=$PEER/include
UCX=${UCX:-.gpu-deps/ucx}
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
ARCH=${ARCH:-90}
out=$B/bench/post
bad=0
who="ours"
[ -e "$PEER/doca_gpunetio_device.h" ] && who="$who peer"
[ -e "$UCX/src/uct/ib/mlx5/gdaki/gdaki.cuh" ] && who="$who ucx"
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

# Prints registers, local memory and spills of each kernel; fails if one has local memory or
# spills.
registers() { # name
	awk '/Compiling entry function/ { name = $0; sub(/^[^\047]*\047/, "", name)
			sub(/\047.*/, "", name) }
		/bytes stack frame/ { local = $1; stores = $5; loads = $9 }
		/Used [0-9]+ registers/ { sub(/.*Used /, ""); print name, $1, local, stores, loads }' \
		"$out/$1.log" | c++filt | sed -E \
		's/^(void )?([^(<]*)(<(.*)>)?\(([^)]*)\) ([0-9]+ [0-9]+ [0-9]+ [0-9]+)$/\6 \2 \4/
		s/\((doca_[a-z_]*)\)//g; s/, /,/g' | awk -v who="$1" '
		BEGIN { split("exclusive CTA GPU", mode, " "); split("thread warp block", scope, " ")
			h[1] = "proxy"; h[2] = "DB"; h[4] = h[6] = "BF"; h[10] = "no-DBR" }
		{ split($6, a, ",")
		  gsub(/u$/, "", a[5])
		  what = $5 " " $6
		  if (a[6] != "") what = mode[a[1] + 1] " " h[a[2] + 0] " " scope[a[3] + 1] " " a[4] \
			((a[5] % 4 >= 2) ? " unchecked" : "") ((a[6] == "true") ? " sparse" : "")
		  printf "%-5s %4d registers, %d local, %d + %d spilled: %s\n", who, $1, $2, $3, $4, what
		  if ($2 + $3 + $4) spilled++ }
		END { exit (spilled > 0) }'
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
		[ "$name" = ours ] && bad=1
		grep -q '^HANG' "$tsv.part" || break
		first=$((first + $(grep -c "^$section" "$tsv.part") + 1))
	done
	rm -f "$tsv.part" "$tsv.err"
}

table() { # section: prints the rows of gdaki with the peer's in the same line
	[ -e "$out/peer.$1.tsv" ] || : >"$out/peer.$1.tsv"
	awk -F '\t' -v ours="$out/ours.$1.tsv" -v section="$1" '
	function num(v) { return (v > 0) ? sprintf((v < 10) ? "%.3f" : "%.1f", v) : "-" }
	function span(a, b) { return (b > 0) ? num(a) "-" num(b) : "" }
	function wrong(n, bits) { return (n > 0) ? n " (" bits ")" : n }
	BEGIN { line = "%-46s %8s %15s %8s %15s %8s %6s %12s %7s %12s %14s %9s %9s %9s %6s %s\n"
		printf line, section, "ours", "min-max", "peer", "min-max", "ratio", "target",
			"verified", "wrong", "p. verified", "p. wrong", "late", "free ours",
			"free peer", "fences", "" }
	FILENAME != ours { rate[$3] = $5; range[$3] = span($6, $7); seen[$3] = $8
		bad[$3] = wrong($9, $10); late[$3] = $11; free[$3] = $12; next }
	{ ratio = (rate[$3] > 0) ? $5 / rate[$3] : 0
	  verdict = ($4 > 0 && ratio > 0) ? ((ratio >= $4) ? "met" : "BELOW") : ""
	  printf line, $3, num($5), span($6, $7), num(rate[$3]), range[$3], num(ratio),
		($4 > 0) ? $4 : "", $8, wrong($9, $10), seen[$3], bad[$3],
		$11 "/" (($3 in late) ? late[$3] : "-"), num($12), num(free[$3]),
		$14, verdict
	  sum += $9; rows++ }
	END { exit (sum > 0 || rows == 0) }' "$out/peer.$1.tsv" "$out/ours.$1.tsv" ||
		{ echo "post.sh: $1: gdaki's rows have mismatches, or there are none"; bad=1; }
}

# Prints UCX's rows. The ratio is that of gdaki's row of the same name, or of the name without
# its last part (after the comma).
ucx_table() {
	echo "== UCX's gdaki.cuh: doorbell every 128th, or each; signalled every 128th"
	awk -F '\t' -v ours="$out/ours.table.tsv" '
	FILENAME == ours { rate[$3] = $5; next }
	{ name = $3; if (!(name in rate)) sub(/, doorbell each$/, "", name)
	  printf "%-52s %8.3f M/s (%.3f-%.3f), ours %.3f: ratio %.1f; %s verified, %s wrong\n", $3,
		$5, $6, $7, rate[name], ($5 > 0) ? rate[name] / $5 : 0, $8, $9 }' \
		"$out/ours.table.tsv" "$out/ucx.table.tsv"
}

OPTS=${OPTS:-}
make -s stage || exit 2
for w in $who; do
	case $w in
	ours) build ours "$B/include" tests/bench/post.cu & ;;
	peer) build peer "$PEER" tests/bench/post.cu & ;;
	ucx) build ucx "$UCX/src" tests/bench/post_ucx.cu -DHAVE_CONFIG_H -DHAVE_GDA & ;;
	esac
	pids="${pids:-} $!"
done
for p in $pids; do wait "$p" || exit 1; done
for w in $who; do
	registers "$w" >"$out/$w.registers" || { echo "post.sh: $w: spills or local memory"
		[ "$w" = ours ] && bad=1; }
	[ -s "$out/$w.registers" ] || { echo "post.sh: no kernel found in $out/$w.log"; bad=1; }
done
echo "== registers of the kernels that post (all in $out/*.registers)"
sort -k 1,1 -k 2,2n "$out"/*.registers | awk '!/: micro|: post_consume/ { n[$1]++; if (!min[$1]) min[$1] = $2; max[$1] = $2 }
	END { for (w in n) print w ": " n[w] " kernels, " min[w] " to " max[w] " registers" }'
awk '!/ 0 local, 0 \+ 0 spilled/' "$out"/*.registers
[ "${BUILD:-}" = only ] && exit $bad

nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader -i 0
echo "rings, CQs and records in GPU memory; options: ${OPTS:-none (registers in pinned host memory)}"
# shellcheck disable=SC2086 # OPTS is a list of words
timeout 60 "$out/ours" --micro $OPTS >"$out/micro.tsv" || bad=1
echo "== the consumer alone, on filled rings: the highest rate that it can verify"
awk -F '\t' '/^capacity/ { printf "%d QPs: %s M WQE/s\n", $2, $3 }' "$out/micro.tsv"
echo "== single instructions, one thread: ns, best and worst of 5 runs"
awk -F '\t' '/^micro/ { printf "%-58s %8.1f %8.1f\n", $2, $3, $4 }' "$out/micro.tsv"
for w in $who; do run "$w" table; done
echo "== table: M WQE/s verified; 'late': doorbells found elsewhere, gdaki's/peer's;"
echo "== 'free': without availability check and consumer"
table table
[ -e "$out/ucx" ] && ucx_table
echo "(a) a doorbell for every 1024th WQE, none in the free run  (b) 28 bytes inline in the WQE"
echo "free '-': posters overtook their own ring, so doorbells were lost"
[ "${MATRIX:-1}" = 0 ] && exit $bad
for w in ${who% ucx}; do run "$w" matrix --matrix --ms 6; done
echo "== matrix: exclusive: 1 thread or warp per QP; CTA: 256 threads per QP; GPU: 132x32 threads"
table matrix
echo "post.sh: $SECONDS s"
exit $bad
