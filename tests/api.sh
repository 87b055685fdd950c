#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Every public host function of DOCA GPUNetIO open 3.0.0 (api_names.txt) is
# declared in a public header and defined, once, in the archives.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
bad=0
defined=$(nm -g --defined-only "$B"/lib/libgdaki_*.a 2>/dev/null | awk '$2 == "T" { print $3 }' | sort)
tokens=$(cat "$B"/include/host/*.h | grep -o -E '\bdoca_[a-z0-9_A-Z]+\(' | tr -d '(' | sort -u)
wanted=$(grep -v '^#' tests/api_names.txt)

for name in $wanted; do
	n=$(grep -c -x "$name" <<<"$defined")
	if [ "$n" -ne 1 ]; then
		echo "api.sh: $name is defined $n times in the archives"
		bad=1
	fi
	if ! grep -q -x "$name" <<<"$tokens"; then
		echo "api.sh: $name is declared in no public header"
		bad=1
	fi
done
for name in $tokens; do
	if ! grep -q -x "$name" <<<"$defined"; then
		echo "api.sh: a public header declares $name, no archive defines it"
		bad=1
	fi
done
[ $bad != 0 ] || echo "api.sh: $(wc -w <<<"$wanted") functions of the peer are all there"
exit $bad
