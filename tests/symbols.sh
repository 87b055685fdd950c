#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks the symbols of the archives. A static archive cannot hide symbols from the user's
# link, so every global must be named doca_* or gdk_*. No archive may run code before main.
# The merged archive has exactly the symbols of the separate ones, without libgdaki_db_none.a and
# those of the SDK's interface. No two archives define the same symbol, except weak ones.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
bad=0
found=0
read -ra sdk < <(echo doca "$(sed -n 's/^SDK_PARTS := //p' Makefile)") # the archives of the SDK's interface
want=$((11 + ${#sdk[@]}))

for lib in "$B"/lib/libgdaki*.a; do
	[ -f "$lib" ] || continue
	found=$((found + 1))
	names=$(nm -g --defined-only "$lib" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u)
	if [ -z "$names" ]; then
		echo "symbols.sh: $lib defines nothing"
		bad=1
	fi
	other=$(grep -v -E '^(doca|gdk)_|^__gcov|^__(asan|ubsan|tsan|odr_asan)' <<<"$names")
	if [ -n "$other" ]; then
		echo "symbols.sh: $lib defines names without our prefixes:"
		echo "    ${other//$'\n'/$'\n'    }"
		bad=1
	fi
	if objdump -h "$lib" | grep -q -E '\.(init_array|ctors|preinit_array)'; then
		echo "symbols.sh: $lib runs code before main"
		bad=1
	fi
done
if [ $found -ne $want ]; then
	echo "symbols.sh: $found archives in $B/lib, expected $want"
	bad=1
fi

symbols() { # archives: type and name of each symbol, as often as it occurs
	nm "$@" | awk 'NF == 3 { print $2, $3 } NF == 2 { print }' | sort
}
mapfile -t upper < <(printf "$B/lib/libgdaki_%s.a\n" "${sdk[@]}")
mapfile -t separate < <(printf '%s\n' "$B"/lib/libgdaki_*.a | grep -v -x -F -f <(printf '%s\n' "${upper[@]}" "$B/lib/libgdaki_db_none.a"))
differ=$(diff <(symbols "$B/lib/libgdaki.a") <(symbols "${separate[@]}")) || {
	echo "symbols.sh: libgdaki.a (<) and the separate archives (>) have different symbols:"
	head -n 8 <<<"$differ" | sed 's/^/    /'
	bad=1
}
twice=$(for lib in "${separate[@]}" "${upper[@]}"; do
	nm -g --defined-only "$lib" 2>/dev/null | awk 'NF == 3 && $2 !~ /[VW]/ { print $3 }'
done | sort | uniq -d)
if [ -n "$twice" ]; then
	echo "symbols.sh: defined more than once: ${twice//$'\n'/ }"
	bad=1
fi
exit $bad
