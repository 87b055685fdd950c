#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Measures the example programs with each doorbell handler over message sizes, and makes a table in
# Markdown and a plot for each program. Server and client run on this machine, on a software NIC
# each, or on a NIC with --nic. Needs no network; the table needs Python, the plots gnuplot, both
# possibly on another machine with --plot-only.
set -u

usage() {
	cat <<'END'
Usage: examples/results.sh --out <folder> [options] [-- <options of the client>]

  -o, --out <folder>       folder of the results; it has none yet, except with --plot-only
  -g, --gpu <host|PCI>     GPU that runs the data path (host: CPU threads)
      --nic <device>       use this RDMA device instead of a software NIC
      --programs <list>    programs, without gpunetio_verbs_ (put_bw get_bw put_signal_bw
                           write_lat put_signal_lat)
      --handlers <list>    numbers as of the option -p of the programs (1 2 6 10)
      --server <options>   options of the server, for example "-m host"
      --timeout <seconds>  time limit of one program with one handler (600)
      --plot-only          measure nothing: table and plots of a folder with results
  -h, --help               print this help

Options of the client, which follow --, replace "-a -D 1": all sizes, 1 second each.
The build folder is $B (build).

Writes <folder>/PROGRAM-HANDLER.json, machine.txt, log/, results.md and PROGRAM.svg.
END
}

fail() { # message, exit status (1)
	echo "error: $1" >&2
	exit "${2:-1}"
}

out='' gpu=host nic='' server_options='' plot_only='' bound=600
programs="put_bw get_bw put_signal_bw write_lat put_signal_lat" handlers="1 2 6 10"
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--plot-only) plot_only=1; shift; continue ;;
	--) break ;;
	-o | --out | -g | --gpu | --nic | --programs | --handlers | --server | --timeout)
		[ $# -gt 1 ] || fail "$1 needs a value; see examples/results.sh -h" 2 ;;
	*) fail "unknown argument '$1'; see examples/results.sh -h" 2 ;;
	esac
	case $1 in
	-o | --out) out=$2 ;;
	-g | --gpu) gpu=$2 ;;
	--nic) nic=$2 ;;
	--programs) programs=$2 ;;
	--handlers) handlers=$2 ;;
	--server) server_options=$2 ;;
	--timeout) bound=$2 ;;
	esac
	shift 2
done
if [ "${1:-}" = -- ] && [ $# -gt 1 ]; then
	shift
	client=("$@")
else
	client=(-a -D 1)
fi
[ -n "$out" ] || fail "no --out <folder>; see examples/results.sh -h" 2
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd) || exit 1
cd "$(dirname "$0")/.." || exit 1
B=${B:-build}

# ---- measurement ----

server='' port=$((20000 + $$ % 10000)) failed=()
stop() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	server=
}
trap stop EXIT
trap 'exit 130' INT TERM

start() { # program, options: replaces the calling subshell, with a time limit
	local program=$B/bin/gpunetio_verbs_$1
	shift
	if [ -n "$nic" ]; then
		exec timeout -k 5 "$bound" "$program" -g "$gpu" -d "$nic" -P "$port" "$@"
	fi
	exec timeout -k 5 "$bound" "$B/bin/softnic-run" -- "$program" -g "$gpu" -d mlx5_0 -P "$port" "$@"
}

measure() { # program, handler
	local name=$1-$2 rc
	port=$((port + 1))
	# shellcheck disable=SC2086 # a list of options
	(start "$1" -p "$2" $server_options) >"$out/log/$name.server" 2>&1 &
	server=$!
	(start "$1" -p "$2" -c 127.0.0.1 --json "$out/$name.json" "${client[@]}") >"$out/log/$name.client" 2>&1
	rc=$?
	# A client that fails early leaves a server that waits for it.
	[ $rc = 0 ] || { sleep 1; kill "$server" 2>/dev/null; }
	wait "$server"
	server=
	if [ $rc = 0 ] && [ -s "$out/$name.json" ]; then
		echo "$1 -p $2: done"
		return
	fi
	failed+=("$name")
	echo "$1 -p $2: FAILED (exit $rc)$([ $rc != 124 ] || echo ": more than $bound s")"
	tail -n 5 "$out/log/$name.client" "$out/log/$name.server" | sed 's/^/    /'
}

machine() { # of this measurement, in Markdown
	echo "gdaki $(sed -n 's/^#define GDK_VERSION "\(.*\)"/\1/p' core/include/host/gdk_version.h), $(date -u +%Y-%m-%d);" \
		"$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(nproc) processors, Linux $(uname -r);" \
		"$([ -n "$nic" ] && echo "RDMA device $nic" || echo "software NIC");" \
		"$([ "$gpu" = host ] && echo "CPU threads run the data path" ||
			nvidia-smi -i "$gpu" --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null |
			sed 's/, /, driver /')"
	echo
	echo '```sh'
	echo "examples/results.sh --out DIR -g $gpu${nic:+ --nic $nic} --programs \"$programs\"" \
		"--handlers \"$handlers\"${server_options:+ --server \"$server_options\"} -- ${client[*]}"
	echo '```'
}

if [ -z "$plot_only" ]; then
	for f in "$out"/*.json; do
		[ ! -e "$f" ] || fail "$out has results of another run: choose another folder, or --plot-only"
	done
	for p in $programs; do
		[ -x "$B/bin/gpunetio_verbs_$p" ] || fail "$B/bin/gpunetio_verbs_$p not found; run make, or name other --programs"
	done
	mkdir -p "$out/log" && machine >"$out/machine.txt" || exit 1
	for p in $programs; do
		for h in $handlers; do
			measure "$p" "$h"
		done
	done
fi

# ---- table and plots ----

in_order() { # program: its result files, in the order of the handlers' numbers
	local f
	for f in "$out/$1"-[0-9].json "$out/$1"-[0-9][0-9].json; do
		[ ! -e "$f" ] || echo "$f"
	done
}

measured=$(for f in "$out"/*-*.json; do basename "$f"; done | sed -n 's/-[0-9]*\.json$//p' | sort -u)
[ -n "$measured" ] || fail "$out has no results${failed[*]:+; these failed: ${failed[*]}}"
if ! command -v python3 >/dev/null; then
	echo "no python3: for the table and the plots run on another machine:" \
		"examples/results.sh --plot-only --out DIR"
	exit $((${#failed[@]} > 0))
fi
plot=examples/gpunetio_plot/gpunetio_plot plots=0
command -v gnuplot >/dev/null && plots=1 ||
	echo "no gnuplot: for the plots run on another machine: examples/results.sh --plot-only --out DIR"
tmp=$(mktemp "$out/results.md.XXXXXX") || exit 1
trap 'stop; rm -f "$tmp" "$out"/table.md' EXIT
{
	[ ! -e "$out/machine.txt" ] || cat "$out/machine.txt"
	for p in $measured; do
		mapfile -t files < <(in_order "$p")
		"$plot" -o "$out/table.md" "${files[@]}" || exit 1
		printf '\n## gpunetio_verbs_%s\n\n' "$p"
		cat "$out/table.md"
		printf '\n![%s](%s.svg)\n' "$p" "$p"
		[ $plots = 0 ] || "$plot" -o "$out/$p.svg" "${files[@]}" || exit 1
	done
} >"$tmp" || exit 1
chmod 644 "$tmp" && mv "$tmp" "$out/results.md" || exit 1
echo "$out/results.md: $(wc -w <<<"$measured") programs"
[ ${#failed[@]} = 0 ] || fail "these failed: ${failed[*]}"
