#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The checks of the examples find wrong data: builds kernels with one fault each (a message that is
# missing, too short, too long or in the wrong place, a wrong signal) and runs server and client.
# Both must fail. LONG: all faults, otherwise five.
set -u
cd "$(dirname "$0")/.." || exit 2
B="${B:-build}"
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
bad=0 runs=0
. tests/lib/port.sh
link=$(make -s --no-print-directory B="$B" NVCC= link-line)

build() { # name of the program, sed expression that adds the fault to its kernel
	local dir=examples/$1
	sed -E "$2" "$dir/$1_kernel.cu" >"$tmp/kernel.cu"
	if cmp -s "$tmp/kernel.cu" "$dir/$1_kernel.cu"; then
		echo "example_faults.sh: $1: the expression changes nothing: $2"
		return 1
	fi
	local objects=() sdk=()
	mapfile -t objects < <(printf '%s\n' "$B/obj/$dir"/*.o | grep -v _kernel.o)
	[[ $1 != gpunetio_rdma_* ]] || sdk=("$B"/lib/libgdaki_{rdma,doca}.a)
	# shellcheck disable=SC2086 # $link is a list of options
	g++ -x c++ -std=c++17 -D_GNU_SOURCE -pthread -include tests/lib/fewer_inlined.h ${sdk:+"-I$B/include-doca"} -I"$B/include" -Iexamples/common "-I$dir" \
		-c -o "$tmp/kernel.o" "$tmp/kernel.cu" &&
		g++ -pthread -o "$tmp/program" "${objects[@]}" "$tmp/kernel.o" "$B"/obj/examples/common/*.o "${sdk[@]}" $link -ljson-c
}

faulty() { # program, expression, text that a side must print, options
	local name=gpunetio_verbs_$1 expression=$2 text=$3 rc server_rc
	[[ $1 != rdma_* ]] || name=gpunetio_$1
	shift 3
	next_port
	runs=$((runs + 1))
	build "$name" "$expression" || { bad=1; return; }
	tests/limit.sh 60 "$B/bin/softnic-run" -- "$tmp/program" -P $port -w 20 >"$tmp/server" 2>&1 &
	server=$!
	tests/limit.sh 60 "$B/bin/softnic-run" -- "$tmp/program" -P $port -w 20 -c 127.0.0.1 "$@" >"$tmp/client" 2>&1
	rc=$?
	wait $server
	server_rc=$?
	server=
	[ $rc = 1 ] && [ $server_rc = 1 ] && grep -qF -- "$text" "$tmp/server" "$tmp/client" && return
	echo "example_faults.sh: $name with $expression: exit $rc, server $server_rc, expected 1, 1 and \"$text\""
	sed 's/^/    server: /' "$tmp/server"
	sed 's/^/    client: /' "$tmp/client"
	bad=1
}

few=(-i 64 -n 4)
faulty put_bw 's/job.size, &ticket/job.size + (job.first + i == 19), \&ticket/' 'byte 0 after the data of' "${few[@]}"
faulty get_bw 's/^(\s*)rc = doca_gpu_dev_verbs_get</\1if (job.first + i != 9) rc = doca_gpu_dev_verbs_get</' \
	'an operation was not executed' -s 1048576 -i 128
faulty put_signal_bw 's/(ex_old_flag\(q, thread\)), 1,/\1, 1 + (job.first + i == 19),/' \
	'is 21, expected 20' "${few[@]}"
faulty twosided_bw 's/data_addr \+ slot, q.key, job.size\)/data_addr + slot, q.key, job.size - (wqe_idx == 9))/' \
	'Validation failed: byte' "${few[@]}"
faulty rdma_client_server_write 's/from, 0, rw->size,/from, 0, rw->size - (i == 9),/' 'byte 1023 of buffer 9 is 0x00' -i 64

if [ -n "${LONG:-}" ]; then
	data='Validation failed: byte'
	old='an operation was not executed'
	faulty put_bw 's/job.size, &ticket/job.size - (job.first + i == 9), \&ticket/' "$data" "${few[@]}"
	faulty put_bw 's/ex_remote\(q, slot\)/ex_remote(q, slot - (job.first + i == 9 ? job.size : 0))/' "$data" "${few[@]}"
	faulty put_signal_bw 's/(ex_old_flag\(q, thread\)), 1,/\1, job.first + i != 9,/' "$old" "${few[@]}"
	faulty put_signal_bw 's/ex_peer_flag\(q, thread\)/ex_peer_flag(q, thread ^ (thread == 0 \&\& job.first + i == 9))/' "$old" "${few[@]}"
	faulty put_counter_bw 's/(ex_old_flag\(q, thread\)), 1\)/\1, 1 + (job.first + i == 19))/' 'is 21, expected 20' "${few[@]}"
	faulty put_counter_bw 's/ex_remote\(q, slot\)/ex_remote(q, slot + (job.first + i == 9 ? job.size : 0))/' "$data" "${few[@]}"
	faulty get_bw 's/job.size, dump/job.size - (job.first + i == 9), dump/' "$data" "${few[@]}"
	faulty get_bw 's/ex_local\(q, slot\)/ex_local(q, slot + (job.first + i == 9 ? job.size : 0))/' "$data" "${few[@]}"
	faulty write_bw 's/q.peer_addr \+ slot/q.peer_addr + slot + (wqe_idx == 9 ? job.size : 0)/' "$data" "${few[@]}"
	faulty write_bw 's/q.key, job.size\)/q.key, job.size - (wqe_idx == 9))/' "$data" "${few[@]}"
	faulty twosided_bw 's/mark_wqes_ready<MODE, RQ>\(q.qp, wqe_idx, wqe_idx\)/mark_wqes_ready<MODE, RQ>(q.qp, wqe_idx, wqe_idx - (wqe_idx == 9))/' \
		'receiver-not-ready retries exceeded' "${few[@]}"
	rdma=rdma_client_server_write
	faulty $rdma 's/from, 0, rw->size,/from, i == 9, rw->size,/' 'byte 0 of buffer 9' -i 64
	faulty $rdma 's/rw_imm\(buf\)/rw_imm(i == 9 ? buf - 1 : buf)/' 'wrong immediate value' -i 64
	faulty $rdma 's/rw_imm\(buf\)/rw_imm((buf + 64) % 256)/' 'connection 0 (expected 1)' -i 64
	faulty write_lat 's/q.key, job.size\)/q.key, job.size + (wqe_idx == 9))/' "$data" "${few[@]}"
	faulty put_signal_lat 's/job.size, ex_peer/iter == 67 ? 8 : job.size, ex_peer/' "$data" "${few[@]}"
	faulty put_counter_lat 's/job.size, q.companion/iter == 67 ? 8 : job.size, q.companion/' "$data" "${few[@]}"
fi
[ $bad != 0 ] || echo "example_faults.sh: both sides found $runs faults"
exit $bad
