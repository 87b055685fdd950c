# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions of post.sh that print its tables. They read the files in $out and set bad=1 if
# gdaki's rows are wrong.
# shellcheck shell=bash disable=SC2034,SC2154 # post.sh sets $out and reads $bad

# Prints registers, local memory and spills of each kernel, with those of the functions that it
# calls; fails if there are local memory or spills.
registers() { # name
	awk 'function flush() { if (name) print name, used, local, stores, loads }
		/Compiling entry function/ { flush(); name = $0; sub(/^[^\047]*\047/, "", name)
			sub(/\047.*/, "", name); local = stores = loads = 0 }
		/bytes stack frame/ { local += $1; stores += $5; loads += $9 }
		/Used [0-9]+ registers/ { used = $0; sub(/.*Used /, "", used); used += 0 }
		END { flush() }' \
		"$out/$1.log" | c++filt | sed -E \
		's/^(void )?([^(<]*)(<(.*)>)?\(([^)]*)\) ([0-9]+ [0-9]+ [0-9]+ [0-9]+)$/\6 \2 \4/
		s/\((doca|lat)_[a-z_]*\)//g; s/, /,/g' | awk -v who="$1" '
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

# Prints one table of latencies, in us: the rows whose name begins with "complete: ", or the
# others. "required": an absolute latency, a multiple of the peer's, or both.
latency_rows() { # 1: complete, 0: against the NIC
	awk -F '\t' -v ours="$out/ours.lat.latency.tsv" -v complete="$1" '
	function us(v) { return (v == "") ? "-" : sprintf("%.2f", v) }
	function verdict(v, most, part, peer) {
		if (most > 0 && v > most) return "BELOW"
		if (part > 0 && peer > 0 && v > part * peer) return "BELOW"
		return (most > 0 || (part > 0 && peer > 0)) ? "met" : "" }
	function required(most, part) {
		return ((most > 0) ? sprintf("%.2f", most) : "") \
			((most > 0 && part > 0) ? ", " : "") ((part > 0) ? part "x" : "") }
	BEGIN { line = "%-46s %6s %6s %6s %6s %6s %12s %-6s %5s %-4s"
		printf line, complete ? "latency, us" : "latency above 2.0 us, us", "ours", "p99",
			"peer", "p99", "ratio", "required", "", "goal", ""
		print complete ? "" : "  answer at once: ours p99, peer p99; verified" }
	FILENAME != ours { med[$3] = $4; p99[$3] = $5; med0[$3] = $6; p990[$3] = $7
		lost[$3] = $12 ? ", p. wrong " $12 " (" $13 ")" : ""; next }
	($3 ~ /^complete: /) != complete { next }
	{ sub(/^complete: /, "", $3); name = (complete ? "complete: " : "") $3
	  printf line, $3, us($4), complete ? "" : us($5), us(med[name]),
		complete ? "" : us(p99[name]), (med[name] > 0) ? us($4 / med[name]) : "-",
		required($8, $9), verdict($4, $8, $9, med[name]), ($10 > 0) ? us($10) : "",
		($10 > 0 && $4 <= $10) ? "met" : ""
	  if (!complete) printf "  %15s %5s, %5s %5s; %8d", us($6), us($7), us(med0[name]),
		us(p990[name]), $11
	  print ($12 || !complete) ? " wrong " $12 ($12 ? " (" $13 ")" : "") lost[name] : lost[name]
	  sum += $12; rows++ }
	END { exit (sum > 0 || rows == 0) }' "$out/peer.lat.latency.tsv" "$out/ours.lat.latency.tsv" ||
		{ echo "post.sh: latency: gdaki's rows have errors, or there are none"; bad=1; }
}

latency_table() {
	echo "== latency of one operation by one thread; NIC: a block that answers after 2.0 us, or at once"
	latency_rows 0
	echo "== completions that are there already: mean of 8000 operations, registers in host memory"
	latency_rows 1
}

tail_table() {
	echo "== longest put on a GPU-shared queue pair; blocks x threads, completions cost nothing"
	echo "(the peer posts fewer WQEs, and a kernel writes its CQEs)"
	awk -F '\t' -v ours="$out/ours.tail.tail.tsv" '
	BEGIN { line = "%-30s %10s %12s %8s %10s %10s %7s %-6s %10s %12s %8s %10s %s\n"
		printf line, "us", "puts", "longest put", "p99.9", "total ms", "doorbells", "target", "",
			"peer: puts", "longest put", "p99.9", "total ms", "" }
	FILENAME != ours { puts[$3] = $4; longest[$3] = $5; most[$3] = $6; ms[$3] = $7; next }
	{ printf line, $3, $4, $5, $6, $7, $8, $9, ($5 <= $9) ? "met" : "BELOW", puts[$3],
		longest[$3], most[$3], ms[$3], $10 ? $10 " WRONG" : ""
	  sum += $10; rows++ }
	END { exit (sum > 0 || rows == 0) }' "$out/peer.tail.tail.tsv" "$out/ours.tail.tail.tsv" ||
		{ echo "post.sh: tail: gdaki's rows have errors, or there are none"; bad=1; }
}

compute_table() {
	echo "== copy kernel, 2 x 1024 threads per multiprocessor; one thread per block posts and waits"
	awk -F '\t' -v ours="$out/ours.compute.compute.tsv" '
	function part(v, all) { return (all > 0) ? sprintf("%.1f%%", 100 * v / all) : "-" }
	BEGIN { line = "%-34s %9s %15s %7s %9s %7s %10s %10s %7s %s\n"
		printf line, "GB/s read + written", "ours", "min-max", "of copy", "peer", "of copy",
			"registers", "local B", "blocks", "(ours/peer)" }
	FILENAME != ours { rate[$3] = $4; regs[$3] = $7; mem[$3] = $8; fit[$3] = $9
		if (!peer) peer = $4; next }
	{ if (!copy) copy = $4
	  printf line, $3, $4, $5 "-" $6, part($4, copy), ($3 in rate) ? rate[$3] : "-",
		part(rate[$3], peer), $7 "/" regs[$3], $8 "/" mem[$3], $9 "/" fit[$3],
		$10 ? $10 " WRONG" : ""
	  sum += $10; rows++ }
	END { exit (sum > 0 || rows == 0) }' "$out/peer.compute.compute.tsv" \
		"$out/ours.compute.compute.tsv" ||
		{ echo "post.sh: compute: gdaki's rows have errors, or there are none"; bad=1; }
	spills ours.compute
}

# Prints which kernels that post have spills or local memory.
spills() { # name
	awk -v who="$1" '/: post_consume|: micro|: time_/ { next }
	{ n++ } !/ 0 local, 0 \+ 0 spilled/ { bad++; if (bad <= 3) print "    " $0 }
	END { printf "%s: %d of %d kernels with spills or local memory%s\n", who, bad, n,
		bad ? ": BELOW" : "" }' "$out/$1.registers"
}

# Prints the rates of a build with limited registers beside those of the unlimited build.
limits_table() { # limit
	echo "== rates of gdaki limited to $1 registers (at least 0.97 of the unlimited build)"
	spills "ours$1"
	awk -F '\t' -v limited="$out/ours$1.table.tsv" '
	BEGIN { line = "%-46s %9s %9s %6s %-6s %12s %s\n"
		printf line, "M WQE/s", "limited", "unlimited", "ratio", "", "verified", "wrong" }
	FILENAME != limited { rate[$3] = $5; next }
	{ ratio = (rate[$3] > 0) ? $5 / rate[$3] : 0
	  printf line, $3, $5, rate[$3], sprintf("%.3f", ratio),
		(rate[$3] > 0) ? ((ratio >= 0.97) ? "met" : "BELOW") : "", $8, $9
	  sum += $9; rows++ }
	END { exit (sum > 0 || rows == 0) }' "$out/ours.table.tsv" "$out/ours$1.table.tsv" ||
		{ echo "post.sh: $1 registers: mismatches, or no rows"; bad=1; }
}
