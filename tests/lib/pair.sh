# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts that run client/server programs on the software NIC. The including
# script sets name (its own, for messages), run (the path of softnic-run) and tmp (a
# folder), and can add options of softnic-run to the array nic. This file sets bad: 0, or 1
# after a failure. With --pcap FOLDER as the script's first arguments, each NIC writes a
# capture of its packets to FOLDER.
# shellcheck shell=bash disable=SC2154 # name, run and tmp are the including script's
# shellcheck disable=SC2034 # bad is read by the including script
. tests/lib/port.sh
bad=0
pcap=
nic=()
if [ "${1:-}" = --pcap ]; then
	pcap=$2
	mkdir -p "$pcap"
	shift 2
fi

complain() { # text, file in $tmp of which to print the last lines (optional)
	echo "$name: $1"
	[ -z "${2:-}" ] || tail -n 15 "$tmp/$2" | sed 's/^/    /'
	bad=1
}

on_nic() { # file name of the capture without .pcap, command...
	local as=$1
	shift
	tests/limit.sh 40 "$run" --strict "${nic[@]}" ${pcap:+--pcap "$pcap/$as.pcap"} -- "$@"
}

# Runs the command as a server and, when the server listens, as its client, which gets the
# additional argument 127.0.0.1. Both must exit with 0; softnic-run --strict turns a
# violation into another status. The output is in $tmp/server and $tmp/client.
pair() { # label, command...; a word PORT is replaced by the port
	local label=$1 rc server i as
	shift
	as=$(tr -cs 'A-Za-z0-9_\n' - <<<"$label")
	next_port
	on_nic "$as.server" "${@/#PORT/$port}" >"$tmp/server" 2>&1 &
	server=$!
	await_port "$port" $server
	on_nic "$as.client" "${@/#PORT/$port}" 127.0.0.1 >"$tmp/client" 2>&1
	rc=$?
	[ $rc = 0 ] || complain "$label: exit status of the client: $rc" client
	wait $server
	i=$?
	[ $i = 0 ] || complain "$label: exit status of the server: $i" server
	[ $rc = 0 ] && [ $i = 0 ]
}
