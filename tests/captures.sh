#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Captures that other tests left, a file each: tshark finds no malformed packet in
# any of them, icrc_check.py no wrong ICRC.
# usage: captures.sh FOLDER
set -u
cd "$(dirname "$0")/.." || exit 2
command -v tshark >/dev/null && command -v mergecap >/dev/null || { echo "captures.sh: no tshark here"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

files=() packets=0
for f in "$1"/*; do
	[ "$(stat -c %s "$f")" -gt 24 ] || continue # a header alone: nothing was sent
	files+=("$f")
	sum=$(python3 tests/icrc_check.py "$f" 2>&1)
	[[ $sum == *' 0 wrong ICRC'* ]] || { echo "captures.sh: $f: $sum"; exit 1; }
	packets=$((packets + $(sed -n 's/^\([0-9]*\) RoCEv2 packets.*/\1/p' <<<"$sum")))
done
[ "$packets" -gt 1000 ] || { echo "captures.sh: only $packets packets in ${#files[@]} files"; exit 1; }

# Protocols that tshark guesses at from payload, in one case from none at all.
guesses=(rpcordma iser smb_direct smc lnet infiniband.eoib)
mergecap -w "$tmp/all.pcap" "${files[@]}" || exit 1
tshark "${guesses[@]/#/--disable-protocol=}" -r "$tmp/all.pcap" -Y _ws.malformed >"$tmp/bad" 2>"$tmp/err" ||
	{ cat "$tmp/err"; exit 1; }
[ ! -s "$tmp/bad" ] || { echo "captures.sh: malformed:"; head -n 10 "$tmp/bad"; exit 1; }
echo "captures.sh: $packets packets of ${#files[@]} runs: none malformed, no wrong ICRC"
