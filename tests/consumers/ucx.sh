#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs UCX's benchmark (package ucx-utils) between two software NICs, with the transports that
# use verbs and with those that write mlx5 WQEs themselves, into queues and receive pools that
# they create through DEVX.
# usage: ucx.sh [--pcap FOLDER]
#   LONG=1: one-sided operations over RC also with the default PCI relaxed ordering
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
name=ucx.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/lib/pair.sh
command -v ucx_perftest >/dev/null || { echo "ucx.sh: ucx_perftest not found (package ucx-utils)"; exit 77; }
export UCX_NET_DEVICES=mlx5_0:1 UCX_IB_GID_INDEX=3 UCX_LOG_LEVEL=warn
ran=0

# With relaxed ordering of PCI writes, UCX registers each memory twice and uses an indirect key
# for atomics, at an offset that depends on the process. The default depends on the CPU's
# vendor, so both settings are tested explicitly too.
measure() { # transports, test, label
	# shellcheck disable=SC2086 # a test and its options
	UCX_TLS=$1 pair "$1 $2${3:-}" ucx_perftest -p PORT -w 5 -n 100 -t $2 || return
	ran=$((ran + 1))
	grep -q '^Final' "$tmp/client" || complain "$1 $2${3:-}: no result" client
}

one_sided=('ucp_put_bw -s 8000' 'ucp_get -s 5000' 'ucp_fadd -s 8' 'ucp_cswap -s 8')
for tls in rc_verbs,ud_verbs:aux rc_mlx5,ud_mlx5:aux ud_verbs ud_mlx5; do
	for what in 'tag_lat -s 8' 'tag_bw -s 100000' 'stream_bw -s 3000'; do
		measure "$tls" "$what"
	done
	# The default of UCX_IB_PCI_RELAXED_ORDERING, auto, is one of the two values below.
	if [[ $tls != rc_* ]] || [ -n "${LONG:-}" ]; then
		for what in "${one_sided[@]}"; do measure "$tls" "$what"; done
	fi
	[[ $tls == rc_* ]] || continue
	# UCP emulates atomics; these two tests below UCP use the NIC's, with the indirect key.
	nic_atomics=("fadd -s 8 -d mlx5_0:1 -x ${tls%%,*}" "cswap -s 8 -d mlx5_0:1 -x ${tls%%,*}")
	for order in on off; do
		for what in "${one_sided[@]}" "${nic_atomics[@]}"; do
			UCX_IB_PCI_RELAXED_ORDERING=$order measure "$tls" "$what" " relaxed $order"
		done
	done
done
# Received data in CQEs: UCX sets cs_res of its DEVX queue pairs and reads the CQEs itself.
nic=(--stats)
for bytes in 0 32 64; do
	UCX_RC_MLX5_RX_INLINE=$bytes measure rc_mlx5,ud_mlx5:aux 'tag_lat -s 8' " RX_INLINE=$bytes"
	for as in server client; do
		count=$(awk '$1 == "inline_cqes" { print $2; exit }' "$tmp/$as")
		if [ $bytes = 0 ] && [ "${count:-0}" != 0 ]; then
			complain "RX_INLINE=0: $count CQEs of the $as held data" "$as"
		elif [ $bytes != 0 ] && [ "${count:-0}" -lt 100 ]; then
			complain "RX_INLINE=$bytes: ${count:-0} CQEs of the $as held data, expected 100" "$as"
		fi
	done
done
nic=()
[ $bad != 0 ] || echo "ucx.sh: $ran runs of two processes"
exit $bad
