#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks every state of the publish-and-ring protocol with spin. The protocol must hold in all
# scenarios, and spin must find a counter-example for each broken variant in its scenario.
# `run.sh replay` also repeats each counter-example with the device code (replay.c): the code
# must survive it, and the code with the same part broken by sed must fail.
# `run.sh trace WORD SCENARIO` prints the memory accesses of a counter-example.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v spin >/dev/null || exit 77
B=$(realpath "${B:-build}") CC=${CC:-gcc}
here=$PWD/tests/model
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Each line: the word that breaks the model, the scenario, what is broken (sc: sequentially
# consistent), and the sed script that breaks the same in the code. The model does not read
# where the token is parked before it publishes; variants of that, which begin with -, break
# the code only.
broken=$(sed 's/ *| */|/g' <<'END'
NO_POST_SC       | 6 | put: no sc fence before publishing | /and wanted, then left/{n;s/_sc/_rel/}
NO_WANT_SC       | 3 | submit: no sc fence between wanted and left | /wanted, then left: see/{n;s/gdk_fence_sc(scope);//}
NO_LEAVE_SC      | 3 | leave: no sc fence between left and wanted | /there: wanted, then left/{n;s/gdk_fence_sc(scope);//}
NO_SECOND_LOOK   | 3 | leave: wanted is not read again | s/return gdk_ld64(&st->wanted, scope) <= r .*/return 1;/
NO_LOOK_AT_LEFT  | 6 | put: left is not read | /gdk_post_in(/,/^}/s/if (left . written)/if (0)/
NO_MARK_REL      | 5 | publish: no release fence between WQEs and ready bits | /WQEs, then ready bits[.]/{n;s/gdk_fence_rel(scope);//}
NO_RANGE_REL     | 3 | publish: no release fence between the words of a range | /if (n > first)/{n;s/gdk_fence_rel(scope);/;/}
FIRST_FIRST      | 3 | publish: the first word of a range is written first | s/for (at = first;/const int held = gdk_publish_word(q, from, first, scope);\n&/;s/return gdk_publish_word(q, from, first, scope)/return held/
TAKE_WITHOUT_RMW | 1 | publish: the token is read after the RMW, not by it | s/old &= bits <</old = gdk_ld64(word, scope);\n&/
NO_MARK_ACQ      | 9 | publish: no sc fence after the token was found | /The token was taken from/{n;s/gdk_fence_sc(scope);//}
NO_POST_ACQ      | 8 | put: no acquire fence before the words after its own are read | /two laps old look alike/{n;s/gdk_fence_acq(scope);//}
NO_TAKE_ACQ      | 4 | take: no acquire fence after left was taken | /gdk_take_left(/,/^}/{s/gdk_rmw_xchg32/gdk_rmw_relaxed_xchg32/;s/gdk_fence_..*(scope);//}
NO_AGAIN_ACQ     | 5 | leave: no acquire fence after left was taken again | /gdk_leave(struct/,/^}/s/gdk_rmw_xchg32/gdk_rmw_relaxed_xchg32/
NO_LEAVE_REL     | 4 | leave: no release fence before left is stored | /then left: the next holder/{n;s/gdk_fence_rel(scope);//};/gdk_take_left(/,/^}/s/gdk_fence_sc(scope);//
NO_LOOK_AGAIN    | 3 | scan: a word in which a range may continue is not read again | s/if (i == start .*/if (1)/
NO_SCAN_ACQ      | 3 | scan: no acquire fence before that second read | /if (i == start/,/gdk_is_ready/s/gdk_fence_acq(scope);//
NO_SERVE_ACQ     | 3 | ring: no acquire fence between ready bits and DBREC | /Here: bits, fence, ring/{n;s/gdk_fence_acq(scope);//}
NO_RECORD_REL    | 1 | ring: no release fence between WQEs and DBREC | /WQEs, rung, then record/{n;s/gdk_fence_rel(gdk_sq_scope(q));//}
NO_RING_REL      | 3 | ring: no release fence between DBREC and doorbell register | /a NIC that lost a doorbell/{n;s/gdk_fence_rel(.*);/;/}
PARK_BLIND       | 3 | park: the old value is not checked | /gdk_park(const/,/^}/s/if (gdk_word_says(q, r, \(.*\))) {/(void)\1; if (0) {/
-HELD_REL        | 2 | put at the parked token: no fence between WQEs and DBREC | /WQEs and rung, then record or/{n;s/gdk_fence_rel(nic);//}
-HELD_SLOTS      | 2 | put at the parked token: others' slots are not checked | /gdk_post_held(/,/^}/s/^\tgdk_serve(.*//
-PARKED_FIRST    | 2 | park: the position is stored before the token is parked | /gdk_park(const/,/^}/s/^{/&\n\tgdk_st64(\&q->st->parked, r, scope);/;s/\(return\|old =\) gdk_rmw_or64(held->next/gdk_st64(\&q->st->parked, to + 1, scope);\n&/
-POST_ORDER      | 2 | put: no fence between the token that it found and its DBREC | /here the token, then ours/{n;s/gdk_fence_load_store(scope);//}
-RECORD_SEEN     | 2 | put: does not wait for the previous holder's DBREC | /gdk_await_record(const/,/^}/s/return;/return;\n\treturn;/
-HELD_TOKEN_CTA  | 2 | put at the parked token, in a block: no fence between DBREC and token | /Record, then token; there/{n;s/scope == GDK_SCOPE_CTA/0/}
-HELD_OLD_CTA    | 2 | put at the parked token, in a block: the old value is not checked | /gdk_post_held(/,/^}/s/if (.*gdk_word_says(q, to + 1, old))) {/if (1) {/
-HELD_LATE_NO_DBR| 8 | put at the parked token: ready bits after the only fence | /^\tgdk_publish_held(q, held/d;/WQEs and rung, then record or/{n;s/$/ gdk_publish_held(q, held, from, to, few, scope);/}
-HELD_ACQ        | 8 | put at the parked token: no fence before more words are read | /two laps old look alike[.]/{n;s/gdk_fence_acq(scope);//}
-HELD_AGAIN      | 8 | put at the parked token: the token is not taken | s/ - GDK_TOKEN(gdk_word_pos(q, from));/;/;s/ - odd - (1u << pos));/ - odd);/
END
)

check() { # folder, scenario, word or nothing; prints pan's error
	mkdir "$1" && cd "$1" && cp "$here"/{views,scenarios}.h . &&
		spin -a -DSCENARIO="$2" ${3:+-D$3} "$here/ring.pml" >log 2>&1 &&
		$CC -DSCENARIO="$2" "-O$([ "$3" ] && echo 0 || echo 2)" -w -I. -DSAFETY -DHC4 \
			-DVECTORSZ=4096 -o pan pan.c >>log 2>&1 || { cat log; return 2; }
	./pan -m20000 -w24 >pan.log 2>&1
	grep -q 'errors: 0' pan.log && ! grep -q 'not completed\|too small' pan.log && return 0
	sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.log | grep . || { tail -n 5 pan.log; return 2; }
	TRACE=1 ./pan -r ring.pml.trail 2>/dev/null | grep '^@' >trace
	return 1
}

replay() { # headers, scenario, program, doorbell, sharing
	$CC -std=gnu11 -D_GNU_SOURCE -w -O1 -DSCENARIO="$2" -DDOORBELL="${4:-GPU_SM_DB}" \
		-DSHARE="${5:-GPU}" -I"$1" -o "$3" "$here/replay.c"
}

# Copies the staged headers, with platform_weak.h for accesses to memory, and applies sed.
headers() { # folder, sed script or nothing
	cp -rL "$B/include" "$1" && mv "$1/device/gdk/platform_cpu.h" "$1/device/gdk/real_cpu.h" &&
		cp "$here/platform_weak.h" "$1/device/gdk/platform_cpu.h" || return 1
	[ "$2" ] || return 0
	sed -i.as_is "$2" "$1"/device/gdk/{ring,qp}_dev.h
	! (cmp -s "$1/device/gdk/ring_dev.h"{,.as_is} && cmp -s "$1/device/gdk/qp_dev.h"{,.as_is})
}

correct() { # scenario
	local said h
	said=$(check "$tmp/$1" "$1" "") || { echo "FAIL scenario $1: $said"; return 1; }
	[ "$code" ] || { echo "scenario $1: holds"; return 0; }
	for h in 'GPU_SM_DB GPU' 'GPU_SM_NO_DBR GPU' 'GPU_SM_DB CTA'; do
		# shellcheck disable=SC2086 # h is two words
		replay "$tmp/include" "$1" "$tmp/replay$1" $h && said=$("$tmp/replay$1" 20000) ||
			{ echo "FAIL scenario $1, $h, code in 20000 random orders: ${said:-}"; return 1; }
	done
	echo "scenario $1: holds; the code too, in 20000 random orders"
}

one_broken() { # word, scenario, what is broken, sed script
	local d="$tmp/$1" said did
	case $1 in -*) only_code "$@"; return ;; esac
	said=$(check "$d" "$2" "$1")
	[ $? = 1 ] || { echo "FAIL $1: no counter-example in scenario $2: $said"; return 1; }
	said="$3: counter-example found ($said)"
	[ "$code" ] || { echo "$said"; return 0; }
	headers "$d/include" "$4" || { echo "FAIL $1: sed changes no line of the code"; return 1; }
	replay "$tmp/include" "$2" "$d/as_is" && replay "$d/include" "$2" "$d/broken" ||
		{ echo "FAIL $1: does not compile"; return 1; }
	did=$("$d/as_is" <"$d/trace") || { echo "FAIL $1: the correct code fails on the trace: $did"; return 1; }
	if did=$("$d/broken" <"$d/trace"); then
		did="in a random order: $("$d/broken" 200000)" &&
			{ echo "FAIL $1: the broken code passes: $did"; return 1; }
	fi
	echo "$said; broken code: $did"
}

only_code() { # arguments of one_broken
	local d="$tmp/$1" did h
	[ "$code" ] || return 0
	case $1 in *DBR) h=GPU_SM_NO_DBR ;; *CTA) h='GPU_SM_DB CTA' ;; *) h=GPU_SM_DB ;; esac
	# shellcheck disable=SC2086 # h is two words
	mkdir "$d" && headers "$d/include" "$4" && replay "$d/include" "$2" "$d/broken" $h ||
		{ echo "FAIL $1: sed changes no line of the code, or it does not compile"; return 1; }
	did=$("$d/broken" 200000) && { echo "FAIL $1: the broken code passes: $did"; return 1; }
	echo "$3: broken code, in a random order: $did"
}

if [ "${1:-}" = trace ]; then
	check "$tmp/t" "$3" "$2"
	cat "$tmp/t/trace"
	exit 0
fi
code=
[ "${1:-}" != replay ] || { code=1; headers "$tmp/include" "" || exit 1; }
export -f check replay headers correct one_broken only_code
export tmp here B CC code

# Runs on all processors; the scenarios that take longest start first.
{
	printf 'correct|%s\n' 9 4 2 1 5 7 8 6 3
	echo "one_broken|${broken//$'\n'/$'\n'one_broken|}"
} | xargs -d '\n' -P "$(nproc)" -I{} bash -c 'IFS="|" read -r f a b c d <<<"$1"; $f "$a" "$b" "$c" "$d"' _ {}
