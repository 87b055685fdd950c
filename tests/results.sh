#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# examples/results.sh: a short sweep on the software NIC; and with programs that only write a result:
# a program that fails, a machine without gnuplot or Python, and wrong uses.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

ends() { # exit status, text that must be in the output, command
	local want=$1 text=$2 got=0
	shift 2
	timeout 250 "$@" >"$tmp/out" 2>&1 </dev/null || got=$?
	[ "$got" = "$want" ] && grep -qF -- "$text" "$tmp/out" && return
	echo "results.sh: $*: exit $got (expected $want), expected \"$text\", printed:"
	cat "$tmp/out"
	bad=1
}
has() { # folder, names of the files that it has to contain, sorted
	local names
	names=$(cd "$1" && echo *)
	[ "$names" = "$2" ] && return
	echo "results.sh: $1 has \"$names\" instead of \"$2\""
	bad=1
}
line() { # extended regular expression, file
	grep -qE -- "$1" "$2" && return
	echo "results.sh: no line \"$1\" in:"
	cat "$2"
	bad=1
}

# ---- programs that only write a result ----

mkdir -p "$tmp/bin"
cat >"$tmp/bin/softnic-run" <<'END'
#!/bin/sh
shift
exec "$@"
END
cat >"$tmp/bin/gpunetio_verbs_fake_bw" <<'END'
#!/bin/sh
echo "$0 $*" >>"$LOG"
while [ $# -gt 1 ]; do
	case $1 in -p) handler=$2 ;; --json) json=$2 ;; -c) server=$2 ;; esac
	shift
done
[ -n "${server:-}" ] || exec sleep "${SERVER_S:-0}"
[ "$handler" != "${BROKEN:-}" ] || { echo "planted failure"; exit 3; }
printf '{"program": "fake", "handler": "H%s", "rows": [{"bytes": 64, "gbps": %s}, {"bytes": 128, "gbps": 9}]}\n' \
	"$handler" "$handler" >"$json"
END
chmod +x "$tmp"/bin/*
export LOG=$tmp/log
run=(env "B=$tmp" examples/results.sh --programs fake_bw --out)

ends 0 "1 programs" "${run[@]}" "$tmp/a" --handlers "2 10 1" --server "-m host" -- -a -s 128
has "$tmp/a" "fake_bw-1.json fake_bw-10.json fake_bw-2.json fake_bw.svg log machine.txt results.md"
line '^\| bytes \| H1 \| H2 \| H10 \|$' "$tmp/a/results.md"
line '^\| 64 \| 1\.000 \| 2\.000 \| 10\.00 \|$' "$tmp/a/results.md"
line '^examples/results.sh --out DIR -g host --programs "fake_bw" --handlers "2 10 1" --server "-m host" -- -a -s 128$' \
	"$tmp/a/results.md"
line ' -g host -d mlx5_0 -P [0-9]+ -p 10 -c 127.0.0.1 --json .*fake_bw-10.json -a -s 128$' "$LOG"
line ' -g host -d mlx5_0 -P [0-9]+ -p 10 -m host$' "$LOG"
ends 1 "has results of another run" "${run[@]}" "$tmp/a"

# A handler that fails is reported and left out. Its server, which waits, is ended.
ends 1 "these failed: fake_bw-6" env BROKEN=6 SERVER_S=200 "${run[@]}" "$tmp/b" --handlers 6
ends 1 "these failed: fake_bw-6" env BROKEN=6 "${run[@]}" "$tmp/c" --handlers "2 6"
line 'planted failure' "$tmp/out"
line '^\| bytes \| H2 \|$' "$tmp/c/results.md"

# Without gnuplot, then without Python; the plots are made later.
mkdir "$tmp/nognuplot" "$tmp/nopython"
for tool in bash sh env sed awk grep cat basename dirname mktemp mv rm mkdir chmod sort wc nproc uname date timeout sleep head tail; do
	ln -s "$(command -v $tool)" "$tmp/nognuplot/$tool"
	ln -s "$(command -v $tool)" "$tmp/nopython/$tool"
done
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$tmp/nognuplot/python3"
ends 0 "no gnuplot" env "PATH=$tmp/nognuplot" "${run[@]}" "$tmp/d"
has "$tmp/d" "fake_bw-1.json fake_bw-10.json fake_bw-2.json fake_bw-6.json log machine.txt results.md"
ends 0 "no python3" env "PATH=$tmp/nopython" "${run[@]}" "$tmp/e"
has "$tmp/e" "fake_bw-1.json fake_bw-10.json fake_bw-2.json fake_bw-6.json log machine.txt"
ends 0 "1 programs" "${run[@]}" "$tmp/e" --plot-only
has "$tmp/e" "fake_bw-1.json fake_bw-10.json fake_bw-2.json fake_bw-6.json fake_bw.svg log machine.txt results.md"

echo '{"broken": ' >"$tmp/e/fake_bw-2.json"
cp "$tmp/e/results.md" "$tmp/old.md"
ends 1 "fake_bw-2.json is neither JSON nor CSV" "${run[@]}" "$tmp/e" --plot-only
cmp "$tmp/old.md" "$tmp/e/results.md" || bad=1

ends 1 "has no results" "${run[@]}" "$tmp/f" --plot-only
ends 1 "gpunetio_verbs_nothing not found; run make" "${run[@]}" "$tmp/f" --programs nothing
ends 2 "no --out" examples/results.sh
ends 2 "--out needs a value" examples/results.sh --out
ends 2 "unknown argument '--fast'" "${run[@]}" "$tmp/f" --fast
ends 0 "Usage: examples/results.sh" examples/results.sh --help

# ---- the software NIC ----

ends 0 "1 programs" examples/results.sh --out "$tmp/nic" --programs put_bw --handlers "1 2" -- -a -i 64 -s 256
line '^\| bytes \| CPU_PROXY \| GPU_SM_DB \|$' "$tmp/nic/results.md"
for size in 1 64 128 256; do
	line "^\\| $size \\| [0-9.]+[0-9e.-]* \\| [0-9.]+[0-9e.-]* \\|\$" "$tmp/nic/results.md"
done
[ "$(grep -c '</svg>' "$tmp/nic/put_bw.svg")" = 1 ] || bad=1

[ $bad != 0 ] || echo "results.sh: ok"
exit $bad
