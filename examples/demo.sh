#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the example once per doorbell handler: a client and a server process, each on a
# software NIC, move data, and the server checks every byte. Prints a table of the results.
# If a handler fails, lists it and exits with 1.
#
# B: build folder (build). DEMO_ARGS: options of the client (-i 16384 -s 2048).

. "$(dirname "$0")/pair.sh"

HANDLERS="0 1 2 6 10"
FIELDS="handler_requested handler messages bytes gbps mmsgs doorbells dbrec_updates reason"
WIDTHS="%-13s %-13s %8s %6s %6.3f %8.3f %9s %6s %s"

failed=
for p in $HANDLERS; do
	if run_pair "$p" "-g host" "-g host -p $p ${DEMO_ARGS:--i 16384 -s 2048}"; then
		printf -- '-p %-2s  server: %s\n' "$p" "$(grep '^Validation' "$DIR/server.$p")"
	else
		failed="$failed -p $p"
		printf -- '-p %-2s  FAILED\n' "$p"
		pair_show "$p"
	fi
done

# shellcheck disable=SC2059 # the format is computed
printf "\n$(echo "$WIDTHS" | sed 's/\.3f/s/g; s/ /  /g')\n" requested chosen messages bytes Gb/s Mmsg/s \
	doorbells DBRECs reason
for p in $HANDLERS; do
	pair_fields "$p" "$FIELDS" "$WIDTHS"
done
if [ -n "$failed" ]; then
	printf '\ndemo FAILED:%s\n' "$failed"
	exit 1
fi
