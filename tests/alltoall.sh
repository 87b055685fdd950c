#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# gpunetio_verbs_alltoall, started by mpirun, with a software NIC for each rank: 2 and 4 ranks (with
# LONG set 32, too), with signals and with counters. No NIC may see a wrong use. A byte that a rank
# changes, a rank that is killed and a rank that stops are reported with the number of the rank, and
# the job ends with an error. Exits with 77 without Open MPI.
set -u
cd "$(dirname "$0")/.." || exit 2
B="${B:-build}"
program=$B/bin/gpunetio_verbs_alltoall
if ! command -v mpirun >/dev/null || [ ! -x "$program" ]; then
	echo "alltoall.sh: skipped: needs openmpi-bin and libopenmpi-dev (make deps)"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0 runs=0 most=4
# Root in a container, more ranks than processors. MPI uses shared memory, not the NIC under test,
# and copies once more instead of reading the memory of other processes, which containers forbid.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
	OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader \
	OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm=isolated TMPDIR=$tmp

complain() {
	echo "alltoall.sh: $1; output:"
	cat "$tmp/out"
	bad=1
}

run() { # ranks, options of the program
	local ranks=$1
	shift
	runs=$((runs + 1))
	timeout -k 5 "${LIMIT:-100}" mpirun -n "$ranks" "$B/bin/softnic-run" --strict -- "$program" "$@" \
		>"$tmp/out" 2>&1
}

good() { # ranks, options
	local ranks=$1
	run "$@" || { complain "$*: exit status $?"; return; }
	grep -qx 'All ranks received all blocks correctly.*' "$tmp/out" || complain "$*: no verdict"
	[ "$(grep -c '^ *[0-9]\+  ' "$tmp/out")" = "$ranks" ] || complain "$*: not $ranks lines of ranks"
}

faulty() { # text that must be reported, most seconds, ranks, options
	local text=$1 limit=$2 start=$SECONDS
	shift 2
	! run "$@" || complain "$*: succeeds"
	grep -q "$text" "$tmp/out" || complain "$*: does not report '$text'"
	[ $((SECONDS - start)) -le "$limit" ] || complain "$*: took $((SECONDS - start)) s"
}

for ranks in 2 4; do
	for handler in 1 2; do
		good $ranks -p $handler -i 40
		good $ranks -p $handler -i 40 --counter
	done
done
good 2 -p 10 -i 20 -s 1 -t 3
good 3 -p 2 -i 30 -s 70001 -t 2 -k 7 -n --csv "$tmp/csv" --json "$tmp/json"

# One line for each rank and the total; the blocks and bytes of the options.
python3 - "$tmp/csv" "$tmp/json" <<'CHECK' || complain "the CSV and JSON files are wrong"
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
other = json.load(open(sys.argv[2]))["rows"]
assert [r["rank"] for r in rows] == ["0", "1", "2", "total"], rows
assert [int(r["messages"]) for r in rows] == [60, 60, 60, 180]
for r, o in zip(rows, other):
    assert {k: str(v) for k, v in o.items()}.keys() == r.keys()
    assert o["rank"] == r["rank"] and o["messages"] == int(r["messages"])
    assert int(r["bytes"]) == 70001 and int(r["wrong"]) == 0
    assert abs(float(r["gbps"]) - 8e-9 * int(r["messages"]) * 70001 / float(r["seconds"])) < 1e-6
CHECK

faulty 'rank 0 received wrong data: byte 4095 of the block from rank 1 in iteration ' 20 \
	3 -p 2 -i 40 --fault wrong:1
# mpirun ends the job when a rank dies. With the setting it leaves that to the other ranks.
faulty '^  Process name: .*,1\]$' 40 3 -p 2 -i 40 --fault kill:1
OMPI_MCA_orte_abort_on_non_zero_status=0 \
	faulty 'the queue pair to rank 1 failed: transport retries exceeded' 40 3 -p 2 -i 40 --fault kill:1
faulty 'no progress for 3 s (-w): nothing arrives from rank 1 ' 40 3 -p 1 -i 40 -w 3 --fault hang:1
faulty 'at least 2 ranks are needed' 20 1
faulty 'rank 1 has other options or another version: -s 128' 20 1 -s 64 : \
	-n 1 "$B/bin/softnic-run" -- "$program" -s 128
faulty 'this rank: -s 4096 -t 1 -i 20 -k 1\( --counter\)\?, ' 20 1 -i 20 --counter : \
	-n 1 "$B/bin/softnic-run" -- "$program" -i 20
grep -q -- '-k 1 --counter, ' "$tmp/out" || complain "--counter of one rank: is not named"
faulty 'invalid --fault: there is no rank 2' 20 2 -i 20 --fault wrong:2
if [ -n "${LONG:-}" ]; then
	most=32
	LIMIT=400 good $most -i 20
fi
[ $bad != 0 ] || echo "alltoall.sh: $runs runs of 2 to $most ranks"
exit $bad
