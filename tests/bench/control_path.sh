#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Measures the control path of high-level queue pairs, with 1, 64 and 1024 at once: the
# rates of creation, connection, export and destruction, and the memory of each queue pair.
# With a checkout of NVIDIA-DOCA/gpunetio (3.0), measures NVIDIA's library too, in turn with
# gdaki. Prints medians of 5 runs. Uses a stand-in of the CUDA driver and the software NIC.
# usage: control_path.sh [CHECKOUT [HANDLER [DEPTH]]]	(default: AUTO, depth 128)
#   CUDA_HOME: folder of the CUDA headers (/usr/local/cuda)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
src=${1:-}
what=(0000:8a:00.0 "${2:-0}" "${3:-128}")
name=control_path.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
make --no-print-directory -s B="$B" all "$B/bench/control_path" "$B/standin/libcuda.so.1" \
	"$B/standin/libgdrapi.so" || exit 1
export STANDIN_CUDA_IOMEM=1 # the GPU can map registers
run=("$B/bin/softnic-run" --strict --dmabuf --)

once() { # library, environment, command...
	local as=$1 rc
	shift
	timeout 100 env "$@" >"$tmp/out" 2>&1
	rc=$?
	[ $rc = 0 ] || {
		echo "$name: exit status of $as: $rc"
		tail -n 5 "$tmp/out" | sed 's/^/    /'
		return 1
	}
	sed -n "s/^[0-9]/$as &/p" "$tmp/out" >>"$tmp/all"
}

if [ -n "$src" ]; then
	# shellcheck disable=SC2154 # peer_build.sh sets peer_*
	. tests/consumers/peer_build.sh
	# shellcheck disable=SC2154
	peer_build -O2 && gcc -std=gnu11 -O2 -D_GNU_SOURCE -c tests/bench/memory.c -o "$tmp/memory.obj" &&
		g++ -O2 -Wall "${peer_inc[@]}" -x c++ tests/bench/control_path.c -x none \
			"$tmp/memory.obj" "${peer_libs[@]}" -o "$tmp/peer" || exit 1
fi
for _ in 1 2 3 4 5; do
	once gdaki LD_LIBRARY_PATH="$B/standin" "${run[@]}" "$B/bench/control_path" "${what[@]}" || exit 1
	[ -z "$src" ] || once peer "${peer_env[@]}" "${run[@]}" "$tmp/peer" "${what[@]}" || exit 1
done
awk '
	function median(list,  a, n, i, j, t) {
		n = split(list, a, " ")
		for (i = 1; i < n; i++)
			for (j = i + 1; j <= n; j++)
				if (a[j] + 0 < a[i] + 0) { t = a[i]; a[i] = a[j]; a[j] = t }
		return a[int((n + 1) / 2)]
	}
	{ row[$2]; lib[$1]; for (i = 3; i <= NF; i++) v[$1, $2, i] = v[$1, $2, i] " " $i }
	END {
		printf "%-7s %5s %9s %9s %9s %9s %9s %11s %11s %6s\n", "library", "QPs", "create/s",
			"connect/s", "export/s", "destroy/s", "all/s", "host B/QP", "GPU B/QP", "calls"
		split("1 64 1024", sizes, " ")
		split("gdaki peer", libs, " ")
		for (s = 1; s <= 3; s++) {
			for (l = 1; l <= 2; l++) {
				if (!(libs[l] in lib)) continue
				for (i = 3; i <= 10; i++) m[l, i] = median(v[libs[l], sizes[s], i])
				printf "%-7s %5d %9d %9d %9d %9d %9d %11d %11d %6.1f\n", libs[l], sizes[s],
					m[l, 3], m[l, 4], m[l, 5], m[l, 6], m[l, 7], m[l, 8], m[l, 9], m[l, 10]
			}
			if (!("peer" in lib)) continue
			printf "%-7s %5s", "ratio", ""
			for (i = 3; i <= 10; i++) {
				d = m[2, i] + 0
				printf i < 8 ? " %9.2f" : i < 10 ? " %11.2f" : " %6.2f\n", d ? m[1, i] / d : 0
			}
		}
	}' "$tmp/all"
