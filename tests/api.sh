#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks that every public host function of DOCA GPUNetIO open 3.0.0 (api_names.txt) is
# declared in a public header and defined exactly once in the archives, and that every
# device function (device_names.txt, and for the DOCA SDK device_names_sdk.txt: name, number of
# overloads) is in the .cuh headers.
# gpu/compile.sh checks the types of their arguments.
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
		echo "api.sh: a public header declares $name, but no archive defines it"
		bad=1
	fi
done

# Every function that creates, opens, exports, changes or queries an object must have a
# case in unit/test_failinject.c, which injects each possible failure. The macros there
# take names without _create.
makes='_(create|open|alloc|export|modify|query|watch|abort|get_error|get_counters)(_|$)'
makes="$makes|get_qp_dev|_dmabuf_fd|_monitor_|_reset_|_set_wait_limit|qp_dump"
ours=$(grep -h -o -E '\b(doca|gdk)_[a-z0-9_A-Z]+\(' "$B"/include/host/*.h | tr -d '(' | sort -u)
while read -r name; do
	if ! grep -q -w -E "$name|${name%_create}" tests/unit/{failinject_verbs.h,test_failinject.c}; then
		echo "api.sh: no failure is injected into $name"
		bad=1
	fi
done < <(grep -E "$makes" <<<"$ours")

# Definitions start at the first column, calls do not.
device=$(cat "$B"/include/device/*.cuh | grep -E '^((template <typename [a-z_]*> )?GDK_FN|doca_)' | grep -o -E '\b(doca_gpu_dev|doca_priv_gpu_dev)_[a-z0-9_]+\(' |
	sort | uniq -c)
while read -r name count; do
	have=$(awk -v n="$name(" '$2 == n { print $1 }' <<<"$device")
	if [ "${have:-0}" -lt "$count" ]; then
		echo "api.sh: $name: ${have:-0} device functions of that name, expected $count"
		bad=1
	fi
done < <(grep -h -v '^#' tests/device_names.txt tests/device_names_sdk.txt)
[ $bad != 0 ] || echo "api.sh: all $(wc -w <<<"$wanted") host and" \
	"$(grep -c -v '^#' tests/device_names.txt) device functions of DOCA are present"
exit $bad
