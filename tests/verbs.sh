#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The distribution's own verbs programs, unmodified, on the software NIC: they
# know nothing of us, and libmlx5's own data path drives the queues.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

complain() {
	echo "verbs.sh: $1"
	tail -n 15 "$tmp/$2" | sed 's/^/    /'
	bad=1
}

for p in ibv_devices ibv_devinfo ibv_rc_pingpong; do
	command -v $p >/dev/null || { echo "verbs.sh: no $p here (package ibverbs-utils)"; exit 77; }
done

timeout 30 "$run" -- ibv_devices >"$tmp/devices" 2>&1 && grep -q mlx5_0 "$tmp/devices" ||
	complain "ibv_devices does not list mlx5_0" devices
timeout 30 "$run" -- ibv_devinfo -v >"$tmp/info" 2>&1 || complain "ibv_devinfo -v fails" info
for want in 'hca_id:.*mlx5_0' 'PORT_ACTIVE' 'link_layer:.*Ethernet' 'GID\[  *1\]:.*RoCE v2'; do
	grep -q "$want" "$tmp/info" || complain "ibv_devinfo -v does not say $want" info
done

pingpong() { # name, options...
	local name=$1 port rc server
	shift
	port=$((20000 + RANDOM % 10000))
	timeout 60 "$run" -- ibv_rc_pingpong -d mlx5_0 -g 1 -p $port "$@" >"$tmp/server" 2>&1 &
	server=$!
	for _ in $(seq 100); do # until it listens
		ss -ltn 2>/dev/null | grep -q ":$port " && break
		grep -q 'local address' "$tmp/server" && sleep 0.3 && break
		sleep 0.1
	done
	timeout 60 "$run" -- ibv_rc_pingpong -d mlx5_0 -g 1 -p $port "$@" 127.0.0.1 >"$tmp/client" 2>&1
	rc=$?
	[ $rc = 0 ] || complain "ibv_rc_pingpong ($name): the client ends with $rc" client
	wait $server || complain "ibv_rc_pingpong ($name): the server fails" server
	grep -q 'iters in' "$tmp/client" || complain "ibv_rc_pingpong ($name): no result" client
	! grep -q 'invalid data' "$tmp/client" "$tmp/server" ||
		complain "ibv_rc_pingpong ($name): wrong data" client
}

pingpong polled -n 500 -c
pingpong 'with events' -n 200 -e -c
pingpong 'many packets' -n 50 -s 100000 -m 1024 -c
[ $bad != 0 ] || echo "verbs.sh: $(tail -n 1 "$tmp/client")"
exit $bad
