# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# TCP ports for the servers of a script. Sets port by next_port().
# shellcheck shell=bash
port=

# Succeeds if a socket listens on the port. State 0A in the kernel's table is LISTEN.
listens() { # port
	grep -q -i ":$(printf %04X "$1") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# Sets port to one on which nothing listens and which no other script gets: a script locks one of 80
# blocks of 100 ports until it and its programs have ended.
next_port() {
	local block
	while [ -z "$port" ]; do
		block=$((RANDOM % 80))
		exec {port_lock}>>"/tmp/gdaki.ports.$UID.$block" || return
		if flock -n "$port_lock"; then port=$((10000 + block * 100)); else exec {port_lock}>&-; fi
	done
	port=$((port / 100 * 100 + (port + 1) % 100))
	while listens "$port"; do port=$((port / 100 * 100 + (port + 1) % 100)); done
}

# Waits until a socket listens on the port, or the process ends.
await_port() { # port, process
	while ! listens "$1" && kill -0 "$2" 2>/dev/null; do sleep 0.05; done
}
