#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Tests every card model of the software NIC: the output of ibv_devinfo, the end-to-end tests,
# the example with each doorbell handler, and libmlx5's own data path. Only cx8 has queue pairs
# without DBREC. The other models must refuse handler 10; tests that need it are skipped and
# counted.
# usage: models.sh [short]	(short: per model two test programs, one handler, no verbs programs)
set -u
cd "$(dirname "$0")/.." || exit 2
export B=${B:-build} BOUND=30
run=$B/bin/softnic-run
. examples/pair.sh
short=${1:-} bad=0 passed=0 skipped=0

complain() { # text, file to show
	echo "models.sh: $1"
	[ -z "${2:-}" ] || tail -n 80 "$2" | sed 's/^/    /'
	bad=1
}

has() { # model, option: prints the option's value in the list, if the model has one
	sed -n "/^$1\$/,/^[^ ]/s/^  --$2  *\([^ ]*\) .*/\1/p" "$DIR/list"
}

devinfo() { # model
	timeout 30 "$run" -- ibv_devinfo >"$DIR/info" 2>&1 || complain "$1: ibv_devinfo fails" "$DIR/info"
	grep -q "vendor_part_id:[[:space:]]*$(($(has "$1" pci-device)))\$" "$DIR/info" &&
		grep -q "fw_ver:[[:space:]]*$(has "$1" fw-ver)\$" "$DIR/info" ||
		complain "$1: ibv_devinfo shows another card" "$DIR/info"
}

unit() { # model, test programs
	tests/run-unit.sh "${@:2}" >"$DIR/unit" 2>&1 || complain "$1: tests fail" "$DIR/unit"
	read -r p s < <(sed -n 's/^\([0-9]*\) passed, [0-9]* failed, \([0-9]*\) skipped$/\1 \2/p' "$DIR/unit")
	passed=$((passed + ${p:-0})) skipped=$((skipped + ${s:-0}))
}

put_bw() { # model, handlers
	for p in "${@:2}"; do
		if [ "$p" = 10 ] && [ "$1" != cx8 ]; then
			! run_pair "$1.$p" "-g host" "-g host -p 10" &&
				grep -q 'does not support DBREC-less QPs' "$DIR/client.$1.$p" ||
				complain "$1: handler 10 is not refused" "$DIR/client.$1.$p"
			skipped=$((skipped + 1))
			continue
		fi
		run_pair "$1.$p" "-g host" "-g host -p $p -i 512 -s 2048" || {
			complain "$1: put_bw -p $p fails"
			pair_show "$1.$p"
		}
		passed=$((passed + 1))
	done
}

"$run" --list-models >"$DIR/list"
models=$(grep -x '[a-z0-9]*' "$DIR/list")
[ "$(wc -w <<<"$models")" = 5 ] || complain "--list-models lists $models"
"$run" --model nonesuch -- true 2>"$DIR/err"
[ $? = 2 ] && grep -q "invalid --model \"nonesuch\" (expected one of cx5, cx6dx, cx7, cx8, bf3)" "$DIR/err" ||
	complain "an unknown model is not refused" "$DIR/err"
[ "$("$run" --model cx5 --no-dbr 1 --pci-device 0x1019 -- ibv_devinfo | sed -n 's/.*part_id:\s*//p')" = 4121 ] ||
	complain "an option does not override the model"

# All options of a card at once are accepted; invalid values are refused.
"$run" --cd 0 --ts-format real --lag 2:inactive --lag-init2 0 --query-lag 0 --vf --events 0x20 --qp-max 9 \
	--cq-behind 1 --fw-ver 1.2.3 -- ibv_devinfo >"$DIR/info" 2>&1 && grep -q 'fw_ver:.*1\.2\.0003$\|fw_ver:.*1\.2\.3$' "$DIR/info" ||
	complain "options of a card are refused" "$DIR/info"
for o in "--ts-format none" "--lag 2:none" "--lag x"; do
	# shellcheck disable=SC2086 # an option and its value
	"$run" $o -- true 2>"$DIR/err" && complain "$o is not refused"
done

for m in $models; do
	export SOFTNIC_MODEL=$m
	devinfo "$m"
	if [ "$short" = short ]; then
		unit "$m" "$B"/tests/test_e2e_{errors,handlers}
		put_bw "$m" 2 10
		continue
	fi
	unit "$m" "$B"/tests/test_{e2e_*,reset,qp_modify,fabric}
	put_bw "$m" 0 1 2 6 10
	tests/verbs.sh >"$DIR/verbs" 2>&1 || complain "$m: verbs.sh fails" "$DIR/verbs"
done
echo "models.sh: $(wc -w <<<"$models") models, $passed passed, $skipped skipped"
exit $bad
