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

for tls in rc_verbs,ud_verbs:aux rc_mlx5,ud_mlx5:aux ud_verbs ud_mlx5; do
	export UCX_TLS=$tls
	for what in 'tag_lat -s 8' 'tag_bw -s 100000' 'stream_bw -s 3000' 'ucp_put_bw -s 8000' \
		'ucp_get -s 5000' 'ucp_fadd -s 8' 'ucp_cswap -s 8'; do
		# shellcheck disable=SC2086 # options are words
		pair "$tls $what" ucx_perftest -p PORT -w 5 -n 100 -t $what || continue
		ran=$((ran + 1))
		grep -q '^Final' "$tmp/client" || complain "$tls $what: no result" client
	done
done
[ $bad != 0 ] || echo "ucx.sh: $ran runs of two processes"
exit $bad
