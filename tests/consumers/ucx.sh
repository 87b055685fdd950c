#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# UCX's own benchmark (package ucx-utils) between two software NICs, by the
# transports that drive verbs and by those that write mlx5 work requests
# themselves, with queues and receive pools made by DEVX.
# usage: ucx.sh [--pcap FOLDER]
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
name=ucx.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/lib/pair.sh
command -v ucx_perftest >/dev/null || { echo "ucx.sh: no ucx_perftest here (package ucx-utils)"; exit 77; }
export UCX_NET_DEVICES=mlx5_0:1 UCX_IB_GID_INDEX=3 UCX_LOG_LEVEL=warn
ran=0

# What UCX registers depends on whether it wants relaxed ordering of PCI writes: with it, each
# memory twice, and an indirect key for atomics that is shifted by the process. The default
# is the CPU's vendor's, so both are asked for too.
measure() { # transports, test, label
	# shellcheck disable=SC2086 # options are words
	UCX_TLS=$1 pair "$1 $2${3:-}" ucx_perftest -p PORT -w 5 -n 100 -t $2 || return
	ran=$((ran + 1))
	grep -q '^Final' "$tmp/client" || complain "$1 $2${3:-}: no result" client
}

one_sided=('ucp_put_bw -s 8000' 'ucp_get -s 5000' 'ucp_fadd -s 8' 'ucp_cswap -s 8')
for tls in rc_verbs,ud_verbs:aux rc_mlx5,ud_mlx5:aux ud_verbs ud_mlx5; do
	for what in 'tag_lat -s 8' 'tag_bw -s 100000' 'stream_bw -s 3000' "${one_sided[@]}"; do
		measure "$tls" "$what"
	done
	[[ $tls == rc_* ]] || continue
	# Two without UCP, which emulates atomics here: by the NIC, with that key.
	nic_atomics=("fadd -s 8 -d mlx5_0:1 -x ${tls%%,*}" "cswap -s 8 -d mlx5_0:1 -x ${tls%%,*}")
	for order in on off; do
		for what in "${one_sided[@]}" "${nic_atomics[@]}"; do
			UCX_IB_PCI_RELAXED_ORDERING=$order measure "$tls" "$what" " relaxed $order"
		done
	done
done
[ $bad != 0 ] || echo "ucx.sh: $ran runs of two processes"
exit $bad
