#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the distribution's unmodified verbs programs on the software NIC, whose queues are
# driven by libmlx5's own data path.
# usage: verbs.sh [--pcap FOLDER]
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
name=verbs.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/lib/pair.sh

for p in ibv_devices ibv_devinfo ibv_rc_pingpong; do
	command -v $p >/dev/null || { echo "verbs.sh: $p not found (package ibverbs-utils)"; exit 77; }
done

timeout 30 "$run" -- ibv_devices >"$tmp/devices" 2>&1 || complain "ibv_devices fails" devices
grep -q mlx5_0 "$tmp/devices" || complain "ibv_devices does not list mlx5_0" devices
timeout 30 "$run" -- ibv_devinfo -v >"$tmp/info" 2>&1 || complain "ibv_devinfo -v fails" info
for want in 'hca_id:.*mlx5_0' 'PORT_ACTIVE' 'link_layer:.*Ethernet' 'GID\[  *1\]:.*fe80.*RoCE v2' 'GID\[  *3\]:.*::ffff:127.*RoCE v2'; do
	grep -q "$want" "$tmp/info" || complain "ibv_devinfo -v prints no line with $want" info
done

pingpong() { # program, options...
	pair "$*" "$1" -d mlx5_0 -g 3 -p PORT "${@:2}" || return
	grep -q 'iters in' "$tmp/client" || complain "$*: no result" client
	! grep -q 'invalid data' "$tmp/client" "$tmp/server" || complain "$*: wrong data" client
}

for kind in rc uc ud srq; do
	pingpong ibv_${kind}_pingpong -n 300
	pingpong ibv_${kind}_pingpong -n 200 -e
	pingpong ibv_${kind}_pingpong -n 200 -c
	pingpong ibv_${kind}_pingpong -n 100 -e -c -s 1
done
pingpong ibv_rc_pingpong -n 50 -s 100000 -m 1024 -c # many packets per message
pingpong ibv_uc_pingpong -n 20 -s 40000 -m 512 -c
pingpong ibv_srq_pingpong -n 20 -s 9000 -m 2048 -q 3 -c
pingpong ibv_rc_pingpong -n 100 -t # time stamps
pingpong ibv_rc_pingpong -n 100 -N -c # posted through ibv_wr_*
result=$(tail -n 1 "$tmp/client")

# ibv_asyncwatch waits for events until it is stopped.
timeout -s INT 1 "$run" -- ibv_asyncwatch -d mlx5_0 >"$tmp/watch" 2>&1
if [ $? != 124 ] || ! grep -q 'async event FD' "$tmp/watch"; then
	complain "ibv_asyncwatch does not wait" watch
fi

# The NIC has no XRC: the program reports that and exits.
timeout 30 "$run" -- ibv_xsrq_pingpong -d mlx5_0 -g 3 >"$tmp/xrc" 2>&1
if [ $? != 1 ] || ! grep -q 'XRC Domain' "$tmp/xrc"; then
	complain "ibv_xsrq_pingpong is not refused" xrc
fi

[ $bad != 0 ] || echo "verbs.sh: $result"
exit $bad
