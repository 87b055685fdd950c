#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Measures the speed of the software NIC compared with this machine's memcpy and UDP, RoCE and
# Ethernet, puts by gdaki's data path, the control path, receives posted again, the CPU proxy, and,
# if it is installed, perftest.
# Takes about two minutes.
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
timeout 60 "$B/bench/eth_pair" || bad=1
timeout 60 "$run" -- "$B/bench/put_nic" || bad=1
timeout 120 tests/bench/control_path.sh || bad=1
timeout 300 tests/bench/recv.sh cpu || bad=1
timeout 300 tests/bench/dma.sh cpu || bad=1
# shellcheck disable=SC2086 # no argument if it is unset
timeout 200 tests/bench/proxy.sh ${GDAKI_PEER:-} || bad=1
perftest ib_write_bw -s 65536 -n 5000
perftest ib_write_bw -s 64 -n 50000
perftest ib_write_lat -s 8 -n 1000
exit "$bad"
