#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the tests after the build: the unit test programs, the programs of threads, and the
# scripts. The last line is "N passed, N failed, N skipped"; the exit status is 1 after a failure.
#
# Of a test that fails, $B/failed/NAME has the evidence: its output, of each software NIC PID.txt
# (counters, states of the queues) and PID.pcapng (the last packets), and the stacks of all threads
# if it was still running at its time limit.
#
# usage: run.sh [check | more | targets]
#   check: only the scripts that read sources, headers and archives
#   more: only the tests that build much, which run.sh without argument leaves out unless T or LONG
#         selects them, and others with all their parts
#   targets: run nothing; print the make targets that the selected tests need
#   T     run the tests whose name contains this shell pattern (all)
#   LONG  1: the scripts also run their long forms, with ten times the time limit
#   NICE  priority of the tests that only compute (19, the lowest)
#   JOBS  tests at a time (processors + 1, because most tests wait most of the time)
#   B, SAN, CC, NVCC, CUDA_ARCH, CUDAHOSTCXX as for make. V=1 prints all output of the unit tests.
#   ARCHS  CUDA_ARCH of tests/gpu/compile.sh (CUDA_ARCH)
# Of the programs whose threads poll, one runs at a time: two of them would wait for each other's
# threads. Beside all these run, at a lower priority and one per processor, the tests that only
# compute: those that compile, and checks of sources. A polling thread whose peer does not get a
# processor because of them would use several times the CPU time.
set -u
cd "$(dirname "$0")/.." || exit 2
export B="${B:-build}" SAN="${SAN:-}" CC="${CC:-gcc}" NVCC="${NVCC:-}" V="${V:-}"
export ARCHS="${ARCHS-${CUDA_ARCH:-}}" CUDA_ARCH="${CUDA_ARCH:-}" CUDAHOSTCXX="${CUDAHOSTCXX:-}" LONG="${LONG:-}"
T=${T:-} what=${1:-} jobs=${JOBS:-$(($(nproc) + 1))}

# ---- which tests ----

# Scripts that read sources, headers and archives.
check="tests/install.sh tests/link.sh tests/headers.sh tests/lint.sh tests/doca_calls.sh tests/style.sh tests/format.sh
	tests/commits.sh tests/layers.sh tests/help.sh tests/symbols.sh
	tests/api.sh tests/api_docs.py tests/error_docs.py tests/docs_check.sh tests/man.py
	tests/defects.sh tests/prm_vs_ifc.sh tests/plugin.sh"
# Other scripts without time limits on what they do: those that only compile, the longest first, then
# those that also run programs.
patient="tests/model/run.sh tests/gpu/compile.sh tests/footprint.sh tests/fuzz.sh tests/docs.py tests/cuda_versions.sh
	tests/plot.py tests/doctor_host.py tests/sanity.sh"
# Those that build much: for another processor, other projects, a current rdma-core, clean builds, the
# benchmarks, and the fuzzers.
more="tests/aarch64.sh tests/consumers/rdma_core_current.sh tests/rebuild.sh tests/projects.sh tests/bench/compile.sh"
# Those that have further parts if MORE is set.
parts="tests/model/run.sh tests/footprint.sh tests/gpu/compile.sh tests/fuzz.sh tests/ethernet.py"
# A script whose programs poll all the time, and then starve the others on two processors.
busy="tests/eth_testpmd.py"
# Scripts that use the NIC, and scripts whose checkouts the caller names.
scripts="tests/models.sh tests/ethernet.py tests/consumers/pyverbs.sh tests/many.py tests/hw.sh tests/soak.sh tests/recv_queue.sh tests/rdma_conns.sh tests/bench/recv.sh tests/bench/dma.sh tests/wire.sh
	tests/report.sh tests/doctor.sh tests/examples.sh tests/example_programs.sh tests/example_ethernet.sh tests/example_faults.sh
	tests/evidence.sh tests/results.sh tests/alltoall.sh tests/paths.sh tests/options.sh
	tests/programs.sh tests/verbs.sh
	tests/strategy_batching.sh tests/service_many_qps.sh tests/infiniband.sh tests/netns.sh tests/vxlan.sh tests/echo_ping.sh tests/eth_if.sh tests/eth_account.py tests/flow_rss.py tests/consumers/perftest.sh tests/consumers/perftest_raw.sh
	tests/consumers/ucx.sh
	tests/consumers/sanitizers.sh
	${GDAKI_HOST_USERS:+tests/consumers/host.sh} ${GDAKI_PEER:+tests/consumers/peer.sh tests/consumers/gpunetio_examples.sh}
	${GDAKI_DPDK:+tests/consumers/dpdk.sh} ${GDAKI_NCCL:+tests/consumers/nccl.sh tests/consumers/nccl_net.sh}
	${GDAKI_NVSHMEM:+tests/consumers/nvshmem_host.sh} ${GDAKI_DOCA_SAMPLES:+tests/consumers/doca_samples.sh tests/consumers/eth_samples.sh
	tests/consumers/packet_processing.sh}
	${GDAKI_NIXL:+tests/consumers/nixl.sh tests/consumers/nixl_cpu.sh} ${GDAKI_NIXL_RDMA:+tests/consumers/nixl_rdma.sh} ${GDAKI_HOLOSCAN:+tests/consumers/holoscan.sh}
	${GDAKI_HOLOHUB:+tests/consumers/holohub.sh} ${GDAKI_AERIAL:+tests/consumers/aerial.sh tests/consumers/aerial_send.sh tests/consumers/aerial_recv.sh}
	${GDAKI_UCX:+tests/consumers/ucx_gdaki.sh tests/consumers/ucx_host.sh}"
# Programs whose threads poll, the longest first, then the others of thread.
polling="thread/kernels_32 thread/kernels_1 thread/eth_kernels_32 thread/eth_kernels_1 test_doca_eth_scopes test_e2e_share test_e2e_wrap test_qp_mixed"
# The longest of the other programs, which start first.
long="test_softnic_slow test_failinject"

programs() { # from the sources, so that a program whose source was deleted does not run
	local f
	[ "$SAN" = thread ] || for f in tests/unit/test_*.c; do basename "$f" .c; done
	for f in tests/thread/*.c; do echo "thread/$(basename "$f" .c)"; done
	printf '%s\n' thread/{,eth_}kernels_{1,32}
}

selected() { # names...: those that contain T
	local name
	for name; do
		# shellcheck disable=SC2254 # T is a pattern
		case $name in *$T*) echo "$name" ;; esac
	done
}

checks() {
	local s
	for s in $check; do
		[ ! -x "$s" ] || echo "$s"
	done
}

# The tests for which time matters: those that run one at a time, then the others.
alone() {
	[ "$what" = check ] || [ "$what" = more ] && return
	# shellcheck disable=SC2046,SC2086 # lists of names
	{
		selected $polling | grep -xFf <(programs)
		selected $(programs | grep '^thread/') | grep -vxF "$(printf '%s\n' $polling)"
		[ -n "$SAN" ] || selected $busy
	}
}

timed() {
	[ "$what" = check ] || [ "$what" = more ] && return
	# shellcheck disable=SC2046,SC2086 # lists of names
	{
		selected $long | grep -xFf <(programs)
		[ -n "$SAN" ] || selected $scripts
		selected $(programs) | grep -vxF "$(printf '%s\n' $long; alone)"
	}
}

untimed() {
	# shellcheck disable=SC2046,SC2086 # lists of names
	case $what:$SAN in
	check:*) selected $(checks) ;;
	*:thread) ;;
	more:*) selected $more $parts ;;
	*:) selected $patient $([ -z "$T$LONG" ] || echo "$more") $(checks) ;;
	*) selected tests/fuzz.sh ;;
	esac
}

[ -z "$LONG" ] && [ "$what" != more ] || export MORE=1
alone=$(alone) timed=$(timed) untimed=$(untimed)
[ -n "$alone$timed$untimed" ] || {
	echo "run.sh: T=$T matches no test; their names are test_X, thread/X and tests/X.sh" >&2
	exit 2
}

if [ "$what" = targets ]; then
	[ -n "$T" ] || { echo build-tests; exit; }
	echo all standins
	for name in $alone $timed $untimed; do
		case $name in
		test_* | thread/*) echo "$B/${name/#test_/tests/test_}" ;;
		tests/hw.sh) echo "$B/hw/probe" ;;
		tests/soak.sh) echo "$B/soak/soak" ;;
		tests/recv_queue.sh) echo "$B/soak/recv_queue" ;;
		tests/rdma_conns.sh) echo "$B/soak/rdma_conns" ;;
		tests/bench/recv.sh) echo "$B/bench/recv" ;;
		tests/bench/dma.sh) echo "$B/bench/dma" ;;
		tests/vxlan.sh | tests/eth_if.sh) echo "$B/responder/responder" ;;
		tests/eth_account.py) echo "$B/soak/eth_peer" ;;
		tests/flow_rss.py) echo "$B/tests/test_doca_flow_rss" ;;
		tests/eth_testpmd.py) echo "$B/thread/eth_kernels_1 $B/thread/eth_kernels_32" ;;
		tests/fuzz.sh | tests/models.sh | tests/consumers/rdma_core*.sh) echo build-tests ;;
		esac
	done
	exit
fi

# ---- one test ----

dir=$B/test-results # NAME.out, NAME.time (elapsed, user, system, name), NAME.result (passed, failed, skipped)

result() { # name, exit status: prints its line, stores its result
	local passed=0 failed=0 skipped=0
	case $2 in
	0) passed=1; echo "PASS $1" ;;
	77) skipped=1; echo "SKIP $1" ;;
	78) skipped=1; echo "SKIP $1 (this machine does not allow it)" ;;
	*) failed=1; echo "FAIL $1 (exit $2)" ;;
	esac
	# CI installs all that the tests need, so that a skipped test is an error there.
	if [ "${CI:-}" = true ] && [ "$2" = 77 ]; then skipped=0 failed=1; echo "FAIL $1 (skipped in CI)"; fi
	echo "$passed $failed $skipped" >"$dir/${1//\//.}.result"
}

# run-unit.sh counts tests, of which a program has several; its last line has the numbers.
unit_result() { # name, exit status
	local numbers
	numbers=$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$dir/$1.out")
	[ -n "$numbers" ] || { cat "$dir/$1.out"; result "$1" 1; return; }
	sed '$d' "$dir/$1.out"
	[ "$2" = 0 ] || [[ $numbers != *" 0 "* ]] || { result "$1" "$2"; return; }
	echo "$numbers" >"$dir/$1.result"
}

# A time limit in seconds; the long forms have more.
limit() { tests/limit.sh "$1${LONG:+0}" "${@:2}"; }

keep_evidence() { # of the test of one()
	mkdir -p "$B/failed"
	mv "$SOFTNIC_EVIDENCE" "$failed"
	tail -c 4M "$file.out" >"$failed/output"
	[ ! -e "$B/test-output/$name.log" ] || tail -c 4M "$B/test-output/$name.log" >"$failed/output"
	echo "evidence of $name: $failed"
}

run() { # name
	case $1 in
	test_*) LIMIT=${LIMIT:-480} tests/run-unit.sh "$B/tests/$1" ;;
	thread/*) GDAKI_TEST_TIMEOUT=300 tests/run-one.sh "$B/$1" ;;
	tests/consumers/pyverbs.sh) limit 300 "$1" --pcap "$B/captures" ;;
	tests/captures.sh) limit 300 "$1" "$B/captures" ;;
	tests/models.sh) limit 300 "$1" short ;;
	tests/model/run.sh) limit 1200 "$1" replay ;;
	tests/eth_testpmd.py | tests/rebuild.sh | tests/cuda_versions.sh | tests/fuzz.sh | tests/sanity.sh | tests/projects.sh | tests/install.sh | \
		tests/link.sh | tests/plugin.sh | tests/docs.py)
		limit 600 "$1" ;;
	tests/gpu/compile.sh | tests/bench/compile.sh | tests/footprint.sh | tests/aarch64.sh) limit 1500 "$1" ;;
	tests/consumers/rdma_core_current.sh) limit 900 "$1" ;;
	tests/consumers/ucx_host.sh) limit 1200 "$1" "$GDAKI_UCX" ;;
	tests/consumers/ucx_gdaki.sh) limit 300 "$1" "$GDAKI_UCX" ;;
	tests/consumers/nccl*.sh) limit 900 "$1" "$GDAKI_NCCL" ;;
	tests/consumers/nvshmem_host.sh) limit 300 "$1" "$GDAKI_NVSHMEM" ;;
	tests/consumers/doca_samples.sh | tests/consumers/eth_samples.sh | tests/consumers/packet_processing.sh)
		limit 300 "$1" "$GDAKI_DOCA_SAMPLES" ;;
	tests/consumers/nixl.sh | tests/consumers/nixl_cpu.sh)
		read -ra checkouts <<<"$GDAKI_NIXL"
		limit 300 "$1" "${checkouts[@]}"
		;;
	tests/consumers/nixl_rdma.sh)
		read -ra checkouts <<<"$GDAKI_NIXL_RDMA"
		limit 300 "$1" "${checkouts[@]}"
		;;
	tests/consumers/holoscan.sh) limit 300 "$1" "$GDAKI_HOLOSCAN" ;;
	tests/consumers/holohub.sh) limit 300 "$1" "$GDAKI_HOLOHUB" ;;
	tests/consumers/aerial.sh | tests/consumers/aerial_send.sh | tests/consumers/aerial_recv.sh) limit 300 "$1" "$GDAKI_AERIAL" ;;
	tests/consumers/dpdk.sh) limit 300 "$1" "$GDAKI_DPDK" ;;
	tests/consumers/peer.sh) limit 300 "$1" "$GDAKI_PEER" ;;
	tests/consumers/host.sh)
		read -ra checkouts <<<"$GDAKI_HOST_USERS"
		limit 300 "$1" "${checkouts[@]}"
		;;
	*) limit 300 "$1" ;;
	esac
}

# The NICs of a test write their evidence to a file system in memory, because slow stores to a disk
# would stop them. It is kept in $B/failed if the test fails.
one() { # name
	local name=$1 file=$dir/${1//\//.} failed=$B/failed/${1//\//.} rc
	local TIMEFORMAT="%R %U %S $name"
	SOFTNIC_EVIDENCE=$(mktemp -d -p /dev/shm gdaki.XXXXXX 2>/dev/null || mktemp -d)
	export SOFTNIC_EVIDENCE
	chmod 1777 "$SOFTNIC_EVIDENCE" # some tests run programs as another user
	trap 'rm -rf "$SOFTNIC_EVIDENCE"' EXIT
	rm -rf "$failed"
	{ time run "$name" >"$file.out" 2>&1; } 2>"$file.time"
	rc=$?
	{
		flock 9
		case $name in
		test_*) unit_result "$name" $rc ;;
		*) cat "$file.out"; result "$name" $rc ;;
		esac
		[ "$(cut -d' ' -f2 "$file.result")" = 0 ] || keep_evidence
	} 9>"$dir/lock"
	rm -rf "$SOFTNIC_EVIDENCE"
	[ "$name" != tests/consumers/pyverbs.sh ] || [ $rc != 0 ] || one tests/captures.sh
}

# ---- all of them ----

in_parallel() { # number, names, words before the command
	# shellcheck disable=SC2016 # bash -c expands it
	[ -z "$2" ] || "${@:3}" xargs -d '\n' -P "$1" -I{} bash -c 'one "$1"' _ {} <<<"$2"
}

rm -rf "$dir" "$B/captures"
mkdir -p "$dir"
export -f run limit one result unit_result keep_evidence
export dir
start=$SECONDS
in_parallel "$(nproc)" "$untimed" nice -n "${NICE:-19}" &
if [ "$jobs" = 1 ]; then
	in_parallel 1 "$alone"
else
	in_parallel 1 "$alone" &
	jobs=$((jobs - 1))
fi
in_parallel "$jobs" "$timed"
wait

[ -n "$T" ] || echo "slowest (elapsed, CPU seconds):"
tail -q -n 1 "$dir"/*.time >"$dir/times"
[ -n "$T" ] || sort -rn "$dir/times" | awk 'NR <= 10 { printf "  %7.1f %7.1f  %s\n", $1, $2 + $3, $4 }'
# build.times has the lines of the shell's times after the build: the shell, then its children.
build=$(sed -n '2s/\([0-9]*\)m\([0-9]*\).*s \([0-9]*\)m\([0-9]*\).*/\1*60+\2+\3*60+\4/p' "$B/build.times" 2>/dev/null)
rm -f "$B/build.times"
awk -v elapsed=$((SECONDS - start)) -v build=$((${build:-0})) '
	{ cpu += $2 + $3 }
	END {
		printf "%d programs and scripts: %d s elapsed, %d s of CPU time", NR, elapsed, cpu
		printf build ? "; the build: %d s of CPU time\n" : "\n", build
	}' "$dir/times"
for name in $alone $timed $untimed tests/captures.sh; do
	f=$dir/${name//\//.}.result
	[ -e "$f" ] || [ "$name" = tests/captures.sh ] || { echo "$name did not end"; echo "0 1 0" >"$f"; }
	[ ! -e "$f" ] || [ "$(cut -d' ' -f2 "$f")" = 0 ] || echo "failed: $name"
done
cat "$dir"/*.result | awk '{ p += $1; f += $2; s += $3 }
	END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }'
