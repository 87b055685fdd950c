#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks every state of the publish-and-ring protocol with spin (ring.pml). The protocol must hold
# in all scenarios, and spin must find a counter-example for each broken variant in its scenario.
# `run.sh replay` also runs the device code itself, with that of receives, of shared receive queues
# and of the RDMA library, in random orders in a weak memory (replay.c), as it is, and with each
# fence and each ordered access removed, weakened, or with a narrower scope, and with a narrower
# scope of each other access: a run must then fail.
# MORE=1 also checks the larger scenarios, and code that is wrong in other ways. LONG=1 makes more
# runs and checks all scenarios, which needs 4 GB of memory.
# `run.sh trace WORD SCENARIO.HANDLER` prints the memory accesses of a counter-example.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v spin >/dev/null || exit 77
B=$(realpath "${B:-build}") CC=${CC:-gcc}
here=$PWD/tests/model
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Each line: the word that breaks the model, scenario.handler (ring.pml), what is broken (sc:
# sequentially consistent).
broken=$(sed 's/ *| */|/g' <<'END'
NO_POST_SC       | 6.0 | put: no sc fence before publishing
NO_WANT_SC       | 3.0 | submit: no sc fence between wanted and left
NO_LEAVE_SC      | 3.0 | leave: no sc fence between left and wanted
NO_SECOND_LOOK   | 3.0 | leave: wanted is not read again
NO_LOOK_AT_LEFT  | 6.0 | put: left is not read
NO_MARK_REL      | 5.0 | publish: no release fence between WQEs and ready bits
NO_RANGE_REL     | 3.0 | publish: no release fence between the words of a range
FIRST_FIRST      | 3.0 | publish: the first word of a range is written first
TAKE_WITHOUT_RMW | 1.0 | publish: the token is read after the RMW, not by it
NO_MARK_ACQ      | 9.0 | publish: no sc fence after the token was found
NO_POST_ACQ      | 8.0 | put: no acquire fence before the words after its own are read
NO_TAKE_ACQ      | 4.0 | take: no acquire fence after left was taken
NO_AGAIN_ACQ     | 5.0 | leave: no acquire fence after left was taken again
NO_LEAVE_REL     | 4.0 | leave: no release fence before left is stored
NO_LOOK_AGAIN    | 3.0 | scan: a word in which a range may continue is not read again
NO_SCAN_ACQ      | 3.0 | scan: no acquire fence before that second read
NO_SERVE_ACQ     | 3.0 | ring: no acquire fence between ready bits and DBREC
NO_RECORD_REL    | 1.0 | ring: no release fence between WQEs and DBREC
NO_RING_REL      | 3.0 | ring: no release fence between DBREC and doorbell register
PARK_BLIND       | 3.0 | park: the old value is not checked
NO_SECOND_LOOK   | 10.0 | offer: wanted is not read again
NO_TAKE_ACQ      | 10.0 | offer: no acquire fence after left was taken
NO_AWAIT         | 2.0 | hand over: the DBREC is not polled
NO_RESERVE_ORDER | 2.0 | put: nothing orders parked before the DBREC
NO_HAND_ORDER    | 2.1 | hand over: nothing orders the token before the DBREC
NO_HAND_REL      | 1.0 | hand over: no release fence between WQEs and DBREC
NO_HAND_REL      | 1.3 | hand over: no release fence between WQEs and register
NO_BLOCK_REL     | 2.1 | hand over: no release fence between DBREC and token in a block
NO_HAND_RING_REL | 1.0 | hand over: no release fence between DBREC and register
NO_HAND_RING_REL | 1.2 | hand over: as above, before the token
NO_PASS_REL      | 2.4 | hand over: no release fence between counter and token
NO_PASS_REL      | 2.5 | ring: no release fence between BlueFlame register and token
HAND_BLIND       | 2.0 | hand over: the old value is not checked
END
)

# Fences and accesses that no run misses if they alone are removed: file, function, call, why.
spare=$(sed 's/ *| */|/g' <<'END'
token_dev.h | gdk_take | gdk_rmw_xchg32 | the fence after it does the same: see pairs
token_dev.h | gdk_take | gdk_fence_sc | the exchange does the same: see pairs
wait_dev.h | gdk_fold | gdk_fence_acq(GDK_SCOPE_GPU) | for a rung that is 65536 above the CQE's slot
wait_dev.h | gdk_look | gdk_ld64_acq(&st->rung | as below: the index is below completed otherwise
wait_dev.h | gdk_look | gdk_ld64_acq(&st->cqe_ci | for 32768 slots: CQEs of two laps before have the same index
by_hand_dev.h | gdk_ring_db | gdk_nic_fence#1 | after gdk_update_dbr(), whose fence does the same
wait_dev.h | gdk_cq_consume | gdk_st32_rel | for overruns of the CQ, which this NIC does not have
post_dev.h | gdk_own_reserve | gdk_fence_load_store | one thread: orders for the compiler only
by_hand_dev.h | gdk_bf_begin | gdk_fence_sc | gdk_submit(), which follows, repeats it
own_dev.h | gdk_own_ring | gdk_fence_sc | for lanes that ring at once: tests/unit/test_lanes_dev.c
op_dev.h | gdk_own_single | gdk_fence_load_store | one thread: orders for the compiler only
op_dev.h | gdk_op_run | gdk_fence_load_store | one thread: orders for the compiler only
op_dev.h | gdk_shared_single | gdk_fence_load_store | a wait for a free slot ends with an acquire fence
status_dev.h | gdk_state_end | gdk_rmw_cas32 | no other data depend on the status
END
)
# Fences that may have a narrower scope: file, function, call, why.
narrow=$(sed 's/ *| */|/g' <<'END'
wait_dev.h | gdk_shared_slow | gdk_fence_acq(GDK_SCOPE_SYS) | pairs with a thread of the GPU
END
)
# Accesses whose scope no run needs: file, function, call, why.
unscoped=$(sed 's/ *| */|/g' <<'END'
own_dev.h | gdk_own_ring | gdk_ | exclusive use: one thread
ring_dev.h | gdk_ring | gdk_red_max64 | exclusive use: one thread
ring_dev.h | gdk_ring | gdk_red_add64 | exclusive use: one thread
wait_dev.h | gdk_own_completed | gdk_ | exclusive use: one thread
wait_dev.h | gdk_own_slow | gdk_ld64x2 | exclusive use: the scope is for the status, which the host stores
post_dev.h | gdk_plain_set | gdk_ | exclusive use: one thread
post_dev.h | gdk_own_make_plain | gdk_ | exclusive use: one thread
post_dev.h | gdk_post_begin | gdk_ | no queue pair ends
by_hand_dev.h | gdk_reserve | gdk_ | no reservation is too large
wait_dev.h | gdk_note_error | gdk_ | no WQE fails
wait_time_dev.h | gdk_wait_check | gdk_ | there is no watch word
wait_time_dev.h | gdk_wait_end | gdk_ | no wait ends with an error
wait_time_dev.h | gdk_wait_turn | gdk_ld32(&st->poll_ns | all CQEs are in GPU memory
wait_time_dev.h | gdk_wait_turn | gdk_st32(&st->poll_ns | all CQEs are in GPU memory
wait_time_dev.h | gdk_wait_turn | gdk_ld64(&st->rung | all CQEs are in GPU memory
wait_dev.h | gdk_poll_cq | gdk_ | not called: finds the index for gdk_poll_cq_at()
wait_dev.h | gdk_cq_consume | gdk_ | not called: one thread reads the CQ
by_hand_dev.h | gdk_vouch | gdk_ | not called
by_hand_dev.h | gdk_note_doorbell | gdk_ | one thread rings by hand
by_hand_dev.h | gdk_update_dbr | gdk_red_inc64 | one thread rings by hand
by_hand_dev.h | gdk_ring_db | gdk_red_max64 | one thread rings by hand
by_hand_dev.h | gdk_wqe_end | gdk_ | one thread rings by hand
by_hand_dev.h | gdk_bf_by_hand | gdk_ | one thread rings by hand
by_hand_dev.h | gdk_ring_proxy | gdk_red_max64(&st->rung | one thread rings by hand
onesided_dev.h | gdk_flush | gdk_ | not called
recv_dev.h | gdk_rq_update_dbr | gdk_ | not called
recv_dev.h | gdk_cqe_bytes | gdk_ | not called
recv_dev.h | gdk_cqe_imm | gdk_ | not called
recv_dev.h | gdk_cqe_is_inline | gdk_ | not called
recv_dev.h | gdk_cqe_inl_data | gdk_ | not called
gdk_rdma_send_dev.h | gdk_rdma_check_unwritten | gdk_ | of the debug build
gdk_rdma_send_dev.h | gdk_rdma_conn_qp | gdk_ | the connection is established
gdk_rdma_send_dev.h | gdk_rdma_wait_all | gdk_ld32(&c->reported | no wait fails
gdk_rdma_send_dev.h | gdk_rdma_wait_all | gdk_st32(&c->reported | no wait fails
gdk_rdma_recv_dev.h | gdk_rdma_conn_of | gdk_ld64(&map | the host has stored the map before
gdk_rdma_recv_dev.h | gdk_rdma_idle | gdk_ld64(& | there is no connection that could fail
END
)
# Code that is wrong although each fence is there: header, what is wrong, its change.
wrong=$(sed 's/ *| */|/g' <<'END'
recv | the dump is posted before the wait | s/err = gdk_wait(rq,.*/err = gdk_recv_dump(qp, daddr, mcst, mode), mcst = 0; &/
recv | a submit does not wait for rung | s/polls == GDK_DBREC_POLLS/1/
recv | no dump | s/return gdk_recv_dump(qp, daddr, mcst, mode);/return 0;/
recv | a submit does not wait for slots before it | s/gdk_shared_slow(st, pi, 0, 0, GDK_RING . GDK_WANT)/(gdk_ring(st, pi, 0, 0, 0), 0)/
srq | an old rung is taken for the new one | s/return gdk_is_ready(st, depth, idx).*/return idx;/
srq | a slot is posted again for the wrong lap | s/? idx : idx + depth/? idx + depth : idx/
srq | slots behind the slot are forgotten | s/end > idx ? end : idx + 1/idx + 1/
gdk_rdma_send | a weak writer does not wait for its slot | s/full = (uint32_t).*/full = 0;/
gdk_rdma_send | a masked position is taken as it is | s/return end + ((position - .*/return position;/
gdk_rdma_recv | a receive overwrites one that is in use | s/return -ENOBUFS;/(void)0;/
gdk_rdma_recv | two threads read CQEs at a time | s/if (.*gdk_rmw_cas32.*/if (0)/
END
)
# Functions in which two of these cover for each other: without both, a run must fail.
pairs='gdk_take gdk_rmw_xchg32 gdk_fence_sc'

# Prints which checker runs a scenario: those of a checker differ in their programs only.
checker_of() { # scenario
	case $1 in 7) echo 7 ;; 8 | 9) echo 8 ;; 10 | 11) echo 10 ;; *) echo 1 ;; esac
}

# Compiles a checker without optimization, which takes longer than it saves in a short run. It uses
# the hash of hash.h. For broken models there are checkers that run the last thread first
# (REVERSE): it finds most counter-examples in 0.01 s instead of 5 s.
checker() { # checker, and R for REVERSE
	local which=-DSCENARIO=${1%R} how="-O0 -w -I. -DSAFETY -DHC4 -DVECTORSZ=4096"
	[ -z "${LONG:-}" ] || how=${how/-O0/-O1}
	[[ $1 != *R ]] || how+=" -DREVERSE"
	# shellcheck disable=SC2015,SC2086 # several options
	mkdir "$tmp/$1" && cd "$tmp/$1" && cp "$here"/{views,scenarios}.h . &&
		spin -a "$which" "$here/ring.pml" >log 2>&1 &&
		{
			echo '#include <stddef.h>'
			echo 'void hash_state(unsigned char *, int);'
			sed 's/hasher = d_[a-z]*;/hasher = hash_state;/' pan.c
			cat "$here/hash.h"
		} >checker.c && grep -q 'hasher = hash_state;' checker.c &&
		$CC "$which" $how -o pan checker.c >>log 2>&1 ||
		{ echo "FAIL the checker does not compile"; cat log; return 1; }
}

# A checker uses huge pages, as it reads a large table at random.
check() { # folder, scenario.handler, word or nothing; prints pan's error
	local pan
	pan=$tmp/$(checker_of "${2%.*}")
	case $3 in '' | NO_HAND_R*) ;; *) pan+=R ;; esac
	mkdir "$1" && cd "$1" || return 2
	export SCENARIO=${2%.*} HANDLER=${2#*.} BROKEN=${3:-NOTHING}
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 \
		"$pan/pan" -m20000 "-w$([ "$3" ] && echo 20 || echo 24)" >pan.log 2>&1
	grep -q 'errors: 0' pan.log && ! grep -q 'not completed\|too small' pan.log && return 0
	sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.log | grep . || { tail -n 5 pan.log; return 2; }
	TRACE=1 "$pan/pan" -r ring.pml.trail 2>/dev/null | grep '^@' >trace
	return 1
}

correct() { # scenario.handler
	local said
	said=$(check "$tmp/$1" "$1" "") || { echo "FAIL scenario $1: $said"; return 1; }
	echo "scenario $1: holds"
}

one_broken() { # word, scenario, what is broken
	local said
	said=$(check "$tmp/$1.$2" "$2" "$1")
	[ $? = 1 ] || { echo "FAIL $1: no counter-example in scenario $2: $said"; return 1; }
	echo "$3: counter-example found ($said)"
}

program() { # folder of headers, definition, program
	# shellcheck disable=SC2086 # several definitions
	$CC -std=gnu11 -D_GNU_SOURCE -U_FORTIFY_SOURCE -w -Wno-psabi -O1 -march=native -D$2 -I"$1" -o "$3" \
		"$here/replay.c" 2>"$3.log" || { echo "FAIL replay.c does not compile"; cat "$3.log"; return 1; }
}

# Compiles replay.c with the staged headers, for a send queue (replay1), for receives (replay2), for a
# shared receive queue (replay3), and for connections (replay4) and receives (replay5) of the RDMA
# library. platform_weak.h has the accesses to memory.
code() {
	local h="$tmp/include" sends
	cp -rL "$B/include" "$h" && cp -L "$B"/include-doca/gdk_{sdk_shape,rdma_{send,recv}_dev}.h "$h" && mv "$h/device/gdk/platform_cpu.h" "$h/device/gdk/real_cpu.h" &&
		cp "$here/platform_weak.h" "$h/device/gdk/platform_cpu.h" &&
		"$here/sites.py" "$h" >"$tmp/sites" || exit 1
	program "$h" QUEUES=1 "$tmp/replay1" &
	sends=$!
	program "$h" QUEUES=2 "$tmp/replay2" && program "$h" SRQ=1 "$tmp/replay3" &&
		program "$h" RDMA=1 "$tmp/replay4" && program "$h" "RDMA=1 -DSRQ=1" "$tmp/replay5" &&
		wait $sends || exit 1
}

as_it_is() { # program, rounds
	local said
	said=$("$tmp/$1" "$2") || { echo "FAIL the code ($1), in random orders: $said"; return 1; }
	echo "the code ($1): no error in $2 rounds of all scenarios and configurations"
}

weakened() { # program and rounds, sites, how (replay.c), what
	local said
	said=$("$tmp/${1% *}" "${1#* }" "$2" "$3") && { echo "FAIL $4 ($3): passes"; return 1; }
	echo "$4 ($3): $said"
}

wrong_code() { # header without _dev.h, what is wrong, change of that header
	local said h file=device/gdk/$1_dev.h def
	case $1 in
	recv) def=QUEUES=2 ;;
	srq) def=SRQ=1 ;;
	gdk_rdma_send) def=RDMA=1 file=$1_dev.h ;;
	*) def="RDMA=1 -DSRQ=1" file=$1_dev.h ;;
	esac
	h=$(mktemp -d "$tmp/XXXXXX")
	cp -r "$tmp/include" "$h" && sed -i "$3" "$h/include/$file" || return 1
	! cmp -s {"$tmp","$h"}/include/"$file" || { echo "FAIL $2: nothing changed"; return 1; }
	program "$h/include" "$def" "$h/replay" || return 1
	said=$("$h/replay" 1000) && { echo "FAIL $1: $2: passes"; return 1; }
	echo "$1: $2: $said"
}

missing() { # function and call
	echo "FAIL a list of sites that are not weakened names what does not exist: $1"
	return 1
}

# Prints the sites whose function and call are these: the call by its beginning, and #N: the Nth.
sites() { # function, call
	awk -F '\t' -v f="$1" -v c="${2%#*}" '$4 == f && index($5, c) == 1 { print $1 }' "$tmp/sites" |
		if [[ $2 = *#* ]]; then sed -n "${2#*#}p"; else cat; fi
}

# Prints how a site is weakened: removed, with a weaker order, with a narrower scope.
ways() { # call, order or scope
	case "$2 $1" in
	scope*) echo n ;;
	*gdk_fence_sc*) echo d w n ;;
	*load_store* | *gdk_bf_settle*) echo d ;;
	*) echo d n ;;
	esac
}

excused() { # list; prints the sites of its lines
	local fn c
	while IFS='|' read -r _ fn c _; do
		sites "$fn" "$c" | grep . || echo "missing $fn: $c"
	done <<<"$1"
}

# Prints the commands for xargs: each site in each way.
mutants() {
	local n f l fn c kind how a b word order scope wide which
	order=$(excused "$spare") scope=$(excused "$unscoped") wide=$(excused "$narrow")
	sed -n 's/^missing/missing|/p' <<<"$order"$'\n'"$scope"$'\n'"$wide"
	while IFS=$'\t' read -r n f l fn c kind; do
		! grep -qx "$n" <<<"${!kind}" || continue
		case $f in
		recv_dev.h) which=replay2 ;;
		srq_dev.h) which=replay3 ;;
		gdk_rdma_send_dev.h) which=replay4 ;;
		gdk_rdma_recv_dev.h) which=replay5 ;;
		*) which=replay1 ;;
		esac
		for how in $(ways "$c" "$kind"); do
			! { [ "$how" = n ] && grep -qx "$n" <<<"$wide"; } || continue
			echo "weakened|$which $((rounds * 10))|$n|$how|$f:$l $fn: $c"
		done
	done <"$tmp/sites"
	while read -r fn a b; do
		word=$(sites "$fn" "$a"),$(sites "$fn" "$b")
		echo "weakened|replay1 $((rounds * 10))|$word|d|$fn: $a and $b"
	done <<<"$pairs"
}

export -f checker
export tmp here CC LONG
printf '%s\n' {1,7,8,10} {1,8,10}R | xargs -P "$(nproc)" -I{} bash -c 'checker {}' || exit 1
if [ "${1:-}" = trace ]; then
	check "$tmp/t" "$3" "$2"
	cat "$tmp/t/trace"
	exit 0
fi
rounds=300
[ -z "${LONG:-}" ] || rounds=10000
[ "${1:-}" != replay ] || code
export -f checker_of check correct one_broken program as_it_is weakened wrong_code missing
export tmp here B CC

# Runs on all processors; the scenarios that take longest start first.
{
	[ -z "${LONG:-}" ] || printf 'correct|%s\n' 9.0 9.5 2.{0..4} 8.{0..4} 10.{1..5} 7.{1..3}
	[ -z "${LONG:-}${MORE:-}" ] || printf 'correct|%s\n' 10.0 4.0 5.0 2.5
	printf 'correct|%s\n' 1.0 6.0 8.5 7.{0,4} 11.{0..5} 3.0
	echo "one_broken|${broken//$'\n'/$'\n'one_broken|}"
	[ "${1:-}" != replay ] || { printf 'as_it_is|%s\n' "replay"{1..5}"|$rounds"
		[ -z "${LONG:-}${MORE:-}" ] || echo "wrong_code|${wrong//$'\n'/$'\n'wrong_code|}"
		mutants; }
} | xargs -d '\n' -P "$(nproc)" -I{} bash -c 'IFS="|" read -r f a b c d <<<"$1"; $f "$a" "$b" "$c" "$d"' _ {}
