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

# Frames need CAP_NET_RAW (bit 13).
echo_pair() {
	pair_port=$((pair_port + 1))
	timeout -k 5 "$BOUND" "$B/bin/softnic-run" -- "$B/bin/gpunetio_echo" -g host -r -P "$pair_port" >"$DIR/server.echo" 2>&1 &
	pair_server=$!
	timeout -k 5 "$BOUND" "$B/bin/softnic-run" -- "$B/bin/gpunetio_echo" -c 127.0.0.1 -P "$pair_port" >"$DIR/client.echo" 2>&1
	pair_client_rc=$?
	[ $pair_client_rc -eq 0 ] || { sleep 1; kill "$pair_server" 2>/dev/null; }
	wait "$pair_server"
	pair_server_rc=$?
	pair_server=
	[ $pair_client_rc -eq 0 ] && [ $pair_server_rc -eq 0 ]
}

capabilities=$(sed -n 's/^CapEff:[[:blank:]]*//p' /proc/self/status)
if [ $((0x$capabilities >> 13 & 1)) -eq 0 ]; then
	printf '\nEthernet: not run, because frames need CAP_NET_RAW (root)\n'
elif echo_pair; then
	printf '\nEthernet: threads answer ICMP and UDP echo requests of a raw packet queue pair\n'
	grep -v '^GPU' "$DIR/client.echo"
else
	failed="$failed echo"
	printf '\nEthernet: FAILED\n'
	pair_show echo
fi
if [ -n "$failed" ]; then
	printf '\ndemo FAILED:%s\n' "$failed"
	exit 1
fi
