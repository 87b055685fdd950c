#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs gpunetio_verbs_service_many_qps on the software NIC: one proxy service rings for all queue
# pairs, while they are removed from it and added again. All data arrive. LONG=1 uses 256 queue pairs
# and 4 threads of the service.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
program=$B/bin/gpunetio_verbs_service_many_qps
tmp=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
bad=0
. tests/lib/port.sh

complain() { # what, file
	echo "service_many_qps.sh: $1"
	tail -n 8 "$tmp/$2" | sed 's/^/    /'
	bad=1
}

run() { # threads of the service, queue pairs, options of the client
	local threads=$1 queues=$2
	shift 2
	next_port
	tests/limit.sh 100 "$B/bin/softnic-run" --strict -- "$program" -P "$port" >"$tmp/server" 2>&1 &
	server=$!
	DOCA_GPUNETIO_LOG=3 GDAKI_PROXY_THREADS=$threads tests/limit.sh 100 "$B/bin/softnic-run" --strict -- "$program" \
		-P "$port" -c 127.0.0.1 -q "$queues" "$@" >"$tmp/client" 2>"$tmp/errors" ||
		complain "the client fails" errors
	wait $server || complain "the server fails" server
	server=
	grep -q '^Validation successful' "$tmp/server" || complain "the server does not find the data" server
	[ ! -s "$tmp/errors" ] || complain "the client prints errors" errors
	# The last two lines: counters of the service, and the number of removals.
	awk -v threads="$threads" -v queues="$queues" '
		/^Service: / { seen = $2 == threads && $4 == queues && $7 >= queues && $9 > 0 }
		/^Queue pairs removed and added again: / { moved = $(NF - 1) > 0 }
		/^ +[0-9]+ +[0-9]+ / { rate = $4 > 0 }
		END { exit !(seen && moved && rate) }' "$tmp/client" || complain "the statistics are wrong" client
}

run 1 8 -i 64
run 3 40 -D 1
[ -z "${LONG:-}" ] || run 4 256 -D 10
"$program" -p 2 >"$tmp/errors" 2>&1 && complain "handler 2 is accepted" errors
grep -q "^error: .*-p" "$tmp/errors" || complain "the refusal of handler 2 does not name the option" errors
exit $bad
