#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# What `make test` runs after the build: unit tests and thread tests under the
# software NIC, then the scripts that look at the archives, headers, links and
# the wire. Ends with one line of totals; any failure is a non-zero exit.
# B (build folder), SAN, CC and NVCC come from make. `run.sh check`: scripts only.
set -u
cd "$(dirname "$0")/.."
export B="${B:-build}" SAN="${SAN:-}" CC="${CC:-gcc}" NVCC="${NVCC:-}"
pass=0 fail=0 skip=0 failed=""

note() { # name, exit status
	case $2 in
	0) pass=$((pass + 1)); echo "PASS $1" ;;
	77) skip=$((skip + 1)); echo "SKIP $1"
		# In CI everything can be installed: a skipped check is a hole.
		if [ "${CI:-}" = true ]; then skip=$((skip - 1)); fail=$((fail + 1)); failed="$failed $1(skipped)"; fi ;;
	78) skip=$((skip + 1)); echo "SKIP $1 (this machine does not allow it)" ;;
	*) fail=$((fail + 1)); failed="$failed $1"; echo "FAIL $1 (exit $2)" ;;
	esac
}

script() { # path, arguments
	timeout "${LIMIT:-300}" "$@"
	note "$1" $?
}

if [ "${1:-}" != check ]; then
	if [ "$SAN" != thread ]; then
		# Its last line is "N passed, N failed, N skipped".
		tests/run-unit.sh | tee "$B/unit.log"
		rc=${PIPESTATUS[0]}
		read -r p f s < <(sed -n 's/^\(Unit: \)\{0,1\}\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)\{0,1\}$/\2 \3 \5/p' "$B/unit.log" | tail -n 1)
		pass=$((pass + ${p:-0})) fail=$((fail + ${f:-0})) skip=$((skip + ${s:-0}))
		[ "${f:-0}" = 0 ] || failed="$failed unit"
		if [ "$rc" != 0 ] && [ "${f:-0}" = 0 ]; then note tests/run-unit.sh "$rc"; fi
		[ -n "${p:-}" ] || note "tests/run-unit.sh(no totals)" 1
	fi
	for t in "$B"/thread/*; do
		case $t in *.d | *.o) continue ;; esac
		[ -x "$t" ] || continue
		tests/run-one.sh "$t"
		note "$t" $?
	done
fi

[ "${1:-}" = check ] || [ "$SAN" = thread ] || script tests/fuzz.sh
if [ -z "$SAN" ]; then
	for s in link symbols headers api defects style prm_vs_ifc install report paths verbs infiniband wire netns hw soak consumers/perftest consumers/ucx sanity; do
		[ -x "tests/$s.sh" ] && script "tests/$s.sh"
	done
	rm -rf "$B/captures"
	script tests/consumers/pyverbs.sh --pcap "$B/captures"
	script tests/captures.sh "$B/captures"
	LIMIT=900 script tests/consumers/rdma_core_current.sh
	script tests/api_docs.py
	script tests/man.py
	script tests/many.py
	script tests/models.sh short
	script tests/model/run.sh replay
	# Checkouts of the projects whose host sources and kernels these compile, and run.
	# shellcheck disable=SC2086 # several checkouts
	[ -z "${GDAKI_HOST_USERS:-}" ] || script tests/consumers/host.sh $GDAKI_HOST_USERS
	[ -z "${GDAKI_PEER:-}" ] || script tests/consumers/peer.sh "$GDAKI_PEER"
	[ -z "${GDAKI_DPDK:-}" ] || script tests/consumers/dpdk.sh "$GDAKI_DPDK"
	[ -z "${GDAKI_NCCL:-}" ] || LIMIT=900 script tests/consumers/nccl.sh "$GDAKI_NCCL"
	[ -z "${GDAKI_NCCL:-}" ] || LIMIT=900 script tests/consumers/nccl_net.sh "$GDAKI_NCCL"
	[ -z "${GDAKI_NVSHMEM:-}" ] || script tests/consumers/nvshmem_host.sh "$GDAKI_NVSHMEM"
	[ -z "${GDAKI_UCX:-}" ] || script tests/consumers/ucx_gdaki.sh "$GDAKI_UCX"
	[ -z "${GDAKI_UCX:-}" ] || LIMIT=1200 script tests/consumers/ucx_host.sh "$GDAKI_UCX"
	[ -x tests/gpu/compile.sh ] && LIMIT=900 script tests/gpu/compile.sh
fi

[ -z "$failed" ] || echo "failed:$failed"
echo "$pass passed, $fail failed, $skip skipped"
[ "$fail" = 0 ]
