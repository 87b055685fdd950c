#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The software NIC's speed beside this machine's, puts through our data path, queue
# pairs that come and go, the CPU proxy, and perftest's figures where it is installed;
# about two minutes.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
name=bench run=$B/bin/softnic-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/lib/pair.sh

perftest() { # program, options...
	command -v "$1" >/dev/null || return
	pair "$*" "$@" -d mlx5_0 -x 1 -F -p PORT || return
	echo "$*"
	grep -E -A 1 '^ *#bytes' "$tmp/client"
}

timeout 60 "$B/bench/nic" || bad=1
timeout 60 "$run" -- "$B/bench/put_nic" || bad=1
timeout 120 tests/bench/control_path.sh || bad=1
# shellcheck disable=SC2086 # a checkout of NVIDIA-DOCA/gpunetio, or nothing
timeout 200 tests/bench/proxy.sh ${GDAKI_PEER:-} || bad=1
perftest ib_write_bw -s 65536 -n 5000
perftest ib_write_bw -s 64 -n 50000
perftest ib_write_lat -s 8 -n 1000
exit "$bad"
