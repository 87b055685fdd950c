#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Copies examples/strategy_batching out of the tree and builds it against an installation, against
# the tree, and with the separate archives. Runs the program on the software NIC: all data arrive, no
# doorbell is lost, and n and t bound the number of doorbells. Checks that no file outside of the
# folder is used but gdaki's headers and archives, and that a strategy that was compiled for another
# interface does not link.
# shellcheck disable=SC2046 # a list of options
set -u
cd "$(dirname "$0")/.." || exit 2
B=$(realpath "${B:-build}")
command -v pkg-config >/dev/null || { echo "strategy_batching.sh: pkg-config is not installed"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
unset CPATH C_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH CFLAGS LDFLAGS MAKEFLAGS BATCHING_N BATCHING_US BUILD
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}

complain() { # what; prints the end of the log
	echo "strategy_batching.sh: $1"
	tail -n 12 "$tmp/log" | sed 's/^/    /'
	bad=1
}

build() { # how, folder of the sources, folder of the copy, arguments of make
	local how=$1 dir=$3
	mkdir "$dir"
	cp "$2"/{Makefile,*.c,*.h} "$dir"
	shift 3
	make -C "$dir" CFLAGS="-O2 -MMD" "$@" >"$tmp/log" 2>&1 || { complain "it does not build: $how"; exit 1; }
}
run() { # program and its arguments: on the software NIC
	timeout 120 "$softnic_run" --strict -- "$@" >"$tmp/log" 2>&1
}

make --no-print-directory B="$B" NVCC="$NVCC" PREFIX="$tmp/gdaki" install >"$tmp/log" 2>&1 ||
	{ complain "make install fails"; exit 1; }
export PKG_CONFIG_PATH=$tmp/gdaki/lib/pkgconfig
softnic_run=$tmp/gdaki/bin/softnic-run
build "an installation" "$tmp/gdaki/share/doc/gdaki/examples/strategy_batching" "$tmp/installed"
cat "$tmp"/installed/out/*.d | tr -s ' ' '\n' | grep '^/' | sort -u | grep -v -e "^$tmp/" -e '^/usr/' >"$tmp/log" &&
	complain "files outside of the folder are used"
build "the tree" examples/strategy_batching "$tmp/tree" BUILD="$B"

# ---- n, t and the doorbells ----
run "$tmp/installed/strategy_batching" || complain "the program fails with an installation"
cp "$tmp/log" "$tmp/out"
grep -q '^handler CPU_PROXY, strategy batching: ' "$tmp/out" || complain "the report does not name the strategy"
# columns: n, t, puts, doorbells, puts/doorbell, by n, by t, microseconds
awk '
	function fail(text) { print "n " $1 ": " text; bad = 1 }
	$1 ~ /^[0-9]+$/ && NF == 8 {
		lines++
		if ($4 != $6 + $7) fail("doorbells do not add up")
		if ($6 * $1 > $3) fail("a batch is smaller than n")
		if ($4 < $3 / 64) fail("fewer doorbells than windows")
		if ($1 == 64) {
			if ($6 != 0 || $7 < 1) fail("an incomplete batch is not rung by t")
			if ($8 < $2 / 2 - 100) fail("an incomplete batch is rung early")
			if ($8 > 10000000) fail("an incomplete batch is rung after more than 10 s")
		} else if ($7 > 2 * $8 / $2 + 2) # two queue pairs, each at most once in t
			fail("too many doorbells by t: " $7 " in " $8 " us")
	}
	END { if (lines != 4) { print lines " lines"; bad = 1 } exit bad }
' "$tmp/out" >"$tmp/log" || { cat "$tmp/out" >>"$tmp/log"; complain "the counters are wrong"; }
grep -q '^rung when a queue pair was closed: 2$' "$tmp/out" || complain "pending WQEs are not rung at the end"
grep -q '^all data arrived$' "$tmp/out" || complain "data are missing"

# ---- variables of the environment; the tree; separate archives ----
BATCHING_N=16 BATCHING_US=400 run "$tmp/tree/strategy_batching" 320 || complain "the program fails with the tree"
awk '$1 == 16 && $2 == 400 && $6 * 16 <= $3 { found = 1 } END { exit !found }' "$tmp/log" ||
	complain "BATCHING_N and BATCHING_US have no effect"
BATCHING_N=0 run "$tmp/tree/strategy_batching" 32
grep -q 'ignoring BATCHING_N="0" (expected 1..32768), using 16' "$tmp/log" || complain "BATCHING_N=0 is not refused"

separate() { # the archive of the strategy
	${CC:-gcc} -o "$tmp/separate" "$tmp"/installed/out/{strategy_batching,loopback}.o -L"$tmp/gdaki/lib" \
		-lgdaki_qp -lgdaki_db_auto "$1" -lgdaki_db_cpu_proxy -lgdaki_db_none -lgdaki_cq -lgdaki_uar \
		-lgdaki_umem -lgdaki_core $(pkg-config --variable=system_libs gdaki) >"$tmp/log" 2>&1
}
archive=$tmp/installed/out/libgdaki_db_batching.a
if separate "$archive"; then
	run "$tmp/separate" 32 || complain "the program fails with separate archives"
	grep -q 'strategy batching' "$tmp/log" || complain "another strategy is used with separate archives"
	linked=$(nm "$tmp/separate" | grep -c -E ' gdk_doorbell_(gpu_sm|bf)_linked$')
	[ "$(nm "$tmp/separate" | grep -c ' gdk_scan_pass$')" = 0 ] || complain "gdaki's cpu_proxy is linked, too"
	[ "$linked" = 2 ] || complain "the program does not define the symbols of all strategies"
else
	complain "it does not link with separate archives"
fi
objcopy --redefine-sym gdk_strategy_interface_1=gdk_strategy_interface_0 "$archive" "$tmp/old.a"
separate "$tmp/old.a" && complain "a strategy of another interface links"
grep -q 'gdk_strategy_interface_0' "$tmp/log" || complain "the linker does not name the interface"

exit $bad
