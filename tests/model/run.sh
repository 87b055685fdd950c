#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Has spin look at every state of the publish-and-ring protocol: it must hold in all
# scenarios, and each of the broken ones must be refuted in the scenario named with it.
# Prints what each broken one does wrong. `run.sh trace WORD SCENARIO` prints the steps.
set -u
cd "$(dirname "$0")" || exit 2
command -v spin >/dev/null || exit 77
CC=${CC:-gcc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
here=$PWD

broken="
NO_POST_SC:6		put: no sequentially consistent fence before publishing
NO_WANT_SC:3		submit: none between wanted and left
NO_LEAVE_SC:3		leave: none between left and wanted
NO_SECOND_LOOK:3	leave: wanted is not looked at again
NO_LOOK_AT_LEFT:6	put: left is not looked at
NO_MARK_REL:5		publish: no fence between WQEs and ready bits
NO_RANGE_REL:3		publish: none between the words of a range
FIRST_FIRST:3		publish: the first word of a range first
TAKE_WITHOUT_RMW:1	publish: the token is looked for after the RMW, not by it
NO_MARK_ACQ:9		publish: no fence after the token was found
NO_POST_ACQ:8		put: none before the words after the own ones are read
NO_TAKE_ACQ:4		take: none after left was taken
NO_AGAIN_ACQ:5		leave: none after left was taken again
NO_LEAVE_REL:4		leave: none before left is stored
NO_LOOK_AGAIN:3		scan: no second look at a word that a range may go on in
NO_SCAN_ACQ:3		scan: no fence before that
NO_SERVE_ACQ:3		ring: none between ready bits and record
NO_RECORD_REL:1		ring: none between WQEs and record
NO_RING_REL:3		ring: none between record and register
PARK_BLIND:3		park: the old value is not looked at
"

check() { # scenario, word or nothing; output: what pan says
	local d
	d=$(mktemp -d "$tmp/XXXXXX") && cd "$d" && cp "$here/views.h" . &&
		spin -a -DSCENARIO="$1" ${2:+-D$2} "$here/ring.pml" >log 2>&1 &&
		$CC -O$([ "${2:-}" ] && echo 0 || echo 2) -w -I. -DSAFETY -DHC4 -DVECTORSZ=4096 -o pan pan.c >>log 2>&1 || { cat log; return 2; }
	./pan -m20000 -w24 >pan.log 2>&1
	grep -q 'errors: 0' pan.log && ! grep -q 'not completed\|too small' pan.log && return 0
	sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.log | grep . || { tail -n 5 pan.log; return 2; }
	return 1
}

if [ "${1:-}" = trace ]; then
	check "$3" "$2"
	cd "$tmp"/* && ./pan -r ring.pml.trail 2>&1 || exit 0
fi

one() { # scenario, word, what it leaves out
	local said rc
	said=$(check "$1" "$2"); rc=$?
	if [ -z "$2" ] && [ $rc = 0 ]; then echo "holds in scenario $1"
	elif [ -n "$2" ] && [ $rc = 1 ]; then echo "refuted in scenario $1: $3: $said"
	else echo "FAIL scenario $1 ${2:-correct}: ${said:-holds}"; return 1; fi
}
export -f one check
export tmp here CC

# The long ones first, on all processors.
{
	for s in 9 4 2 1 5 7 8 6 3; do printf '%s\t\t\n' $s; done
	grep : <<<"$broken" | sed 's/^\([A-Z_]*\):\([0-9]\)\t*\(.*\)/\2\t\1\t\3/'
} | xargs -d '\n' -P "$(nproc)" -I{} bash -c 'IFS=$'"'\\x1f'"' read -r s w what <<<"$(tr "\t" "\037" <<<"$1")"; one "$s" "$w" "$what"' _ {}
