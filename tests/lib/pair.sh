# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# For scripts that run two-sided programs of others on the software NIC. The
# script sets name (its own, for messages), run (softnic-run) and tmp (a folder);
# nic are more options of softnic-run.
# --pcap FOLDER as its first argument: what each NIC sent and received goes there.
# shellcheck shell=bash disable=SC2154
bad=0
pcap=
nic=()
if [ "${1:-}" = --pcap ]; then
	pcap=$2
	mkdir -p "$pcap"
	shift 2
fi

complain() { # text, file of $tmp to show
	echo "$name: $1"
	[ -z "${2:-}" ] || tail -n 15 "$tmp/$2" | sed 's/^/    /'
	bad=1
}

# A listening TCP port is in state 0A in the kernel's table.
listens() { # port
	grep -q -i ":$(printf %04X "$1") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

on_nic() { # file name of the capture without .pcap, command...
	local as=$1
	shift
	timeout 40 "$run" --strict "${nic[@]}" ${pcap:+--pcap "$pcap/$as.pcap"} -- "$@"
}

# Runs the command as a server and, once that listens, as its client; both must
# end with 0 and without a violation. Their output is in $tmp/server and client.
pair() { # label, command...; PORT among the words is the port
	local label=$1 port rc server i as
	shift
	as=$(tr -cs 'A-Za-z0-9_\n' - <<<"$label")
	port=$((20000 + RANDOM % 10000))
	while listens $port; do port=$((port + 1)); done
	on_nic "$as.server" "${@/#PORT/$port}" >"$tmp/server" 2>&1 &
	server=$!
	for ((i = 0; i < 300; i++)); do
		listens $port && break
		kill -0 $server 2>/dev/null || break
		sleep 0.05
	done
	on_nic "$as.client" "${@/#PORT/$port}" 127.0.0.1 >"$tmp/client" 2>&1
	rc=$?
	[ $rc = 0 ] || complain "$label: the client ends with $rc" client
	wait $server
	i=$?
	[ $i = 0 ] || complain "$label: the server ends with $i" server
	[ $rc = 0 ] && [ $i = 0 ]
}
