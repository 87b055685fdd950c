#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks the captures that other tests wrote to FOLDER: tshark must find no malformed
# packet in them, and icrc_check.py no wrong ICRC.
# usage: captures.sh FOLDER
set -u
cd "$(dirname "$0")/.." || exit 2
for tool in tshark mergecap; do
	command -v $tool >/dev/null || { echo "captures.sh: $tool not found (package tshark)"; exit 77; }
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

files=() packets=0
for f in "$1"/*; do
	[ "$(stat -c %s "$f")" -gt 24 ] || continue # only the file header: no packets
	files+=("$f")
	sum=$(python3 tests/icrc_check.py "$f" 2>&1)
	[[ $sum == *' 0 wrong ICRC'* ]] || { echo "captures.sh: $f: $sum"; exit 1; }
	packets=$((packets + $(sed -n 's/^\([0-9]*\) RoCEv2 packets.*/\1/p' <<<"$sum")))
done
[ "$packets" -gt 1000 ] || { echo "captures.sh: only $packets packets in ${#files[@]} files"; exit 1; }

# Disable the protocols that tshark detects heuristically from the payload: random payload
# of the tests matches some of them and is then reported as malformed.
guesses=(rpcordma iser smb_direct smc lnet infiniband.eoib)
mergecap -w "$tmp/all.pcap" "${files[@]}" || exit 1
tshark "${guesses[@]/#/--disable-protocol=}" -r "$tmp/all.pcap" -Y _ws.malformed >"$tmp/bad" 2>"$tmp/err" ||
	{ cat "$tmp/err"; exit 1; }
[ ! -s "$tmp/bad" ] || { echo "captures.sh: malformed packets:"; head -n 10 "$tmp/bad"; exit 1; }
echo "captures.sh: $packets packets of ${#files[@]} runs: none malformed, no wrong ICRC"
