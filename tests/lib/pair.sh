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

# Succeeds if a socket listens on the port. State 0A in the kernel's table is LISTEN.
listens() { # port
	grep -q -i ":$(printf %04X "$1") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

on_nic() { # file name of the capture without .pcap, command...
	local as=$1
	shift
	timeout 40 "$run" --strict "${nic[@]}" ${pcap:+--pcap "$pcap/$as.pcap"} -- "$@"
}

# Runs the command as a server and, when the server listens, as its client, which gets the
# additional argument 127.0.0.1. Both must exit with 0; softnic-run --strict turns a
# violation into another status. The output is in $tmp/server and $tmp/client.
pair() { # label, command...; a word PORT is replaced by the port
	local label=$1 port rc server i as
	shift
	as=$(tr -cs 'A-Za-z0-9_\n' - <<<"$label")
	port=$((20000 + RANDOM % 10000))
	while listens "$port"; do port=$((port + 1)); done
	on_nic "$as.server" "${@/#PORT/$port}" >"$tmp/server" 2>&1 &
	server=$!
	for ((i = 0; i < 300; i++)); do
		listens "$port" && break
		kill -0 $server 2>/dev/null || break
		sleep 0.05
	done
	on_nic "$as.client" "${@/#PORT/$port}" 127.0.0.1 >"$tmp/client" 2>&1
	rc=$?
	[ $rc = 0 ] || complain "$label: exit status of the client: $rc" client
	wait $server
	i=$?
	[ $i = 0 ] || complain "$label: exit status of the server: $i" server
	[ $rc = 0 ] && [ $i = 0 ]
}
