#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Tests the software NIC as an InfiniBand port: the distribution's verbs programs and
# gpunetio_verbs_put_bw connect by LID, and with a GRH if a program requests one or the port
# requires it.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
demo=$B/bin/gpunetio_verbs_put_bw
name=infiniband.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/lib/pair.sh
command -v ibv_rc_pingpong >/dev/null || { echo "infiniband.sh: ibv_rc_pingpong not found (package ibverbs-utils)"; exit 77; }

nic=(--link-layer infiniband)
timeout 30 "$run" "${nic[@]}" -- ibv_devinfo -v >"$tmp/info" 2>&1 || complain "ibv_devinfo -v fails" info
for want in 'link_layer:.*InfiniBand' 'port_lid:[^0-9]*[1-9]' 'sm_lid:[^0-9]*1$' 'GID\[  *0\]:.*fe80:'; do
	grep -q "$want" "$tmp/info" || complain "ibv_devinfo -v prints no line with $want" info
done
[ "$(grep -c 'GID\[' "$tmp/info")" = 1 ] || complain "the number of GIDs is not 1" info
timeout 30 "$run" "${nic[@]}" -- cat /sys/class/infiniband/mlx5_0/ports/1/link_layer /sys/class/infiniband/mlx5_0/ports/1/lid \
	>"$tmp/sysfs" 2>&1
if ! grep -q InfiniBand "$tmp/sysfs" || ! grep -q '^0x[1-9a-f]' "$tmp/sysfs"; then
	complain "sysfs shows another link layer, or no LID" sysfs
fi
# The LID is derived from the address; this address would give a multicast LID.
timeout 30 "$run" "${nic[@]}" --ip 127.1.255.1 -- true 2>"$tmp/lid" && complain "a multicast LID is accepted"

# The example takes the address of its server with -c, unlike the programs that pair() runs.
put() {
	local server i
	next_port
	on_nic put.server "$demo" -g host -d mlx5_0 -P $port >"$tmp/server" 2>&1 &
	server=$!
	await_port "$port" $server
	on_nic put.client "$demo" -g host -d mlx5_0 -P $port -c 127.0.0.1 -p 2 -i 200 >"$tmp/client" 2>&1 ||
		complain "put_bw: the client fails" client
	for ((i = 0; i < 100; i++)); do
		grep -q Validation "$tmp/server" && break
		sleep 0.05
	done
	kill -INT $server 2>/dev/null
	wait $server
	grep -q 'Validation successful' "$tmp/server" || complain "put_bw: not validated" server
}

for kind in rc uc ud srq; do
	pair "$kind" ibv_${kind}_pingpong -d mlx5_0 -p PORT -n 50
	pair "$kind with GRH" ibv_${kind}_pingpong -d mlx5_0 -p PORT -n 50 -g 0
done
put

nic=(--link-layer infiniband --grh-required)
pair "GRH required" ibv_rc_pingpong -d mlx5_0 -p PORT -n 50 -g 0
pair "GRH required, ud" ibv_ud_pingpong -d mlx5_0 -p PORT -n 50 -g 0
put
[ $bad != 0 ] || echo "infiniband.sh: rc, uc, ud and srq by LID and by GID, put_bw with and without GRH"
exit $bad
