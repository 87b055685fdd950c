#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# `make help`: each target that it lists exists, each target without a file that is not internal is
# listed, and each variable that it lists is used by a makefile.
set -u
cd "$(dirname "$0")/.." || exit 2
internal="example-kernel libs stage remove-old standins run-demo run-tests"
make=(make --no-print-directory -s)
bad=0

complain() {
	echo "help.sh: $*"
	bad=1
}

help=$("${make[@]}" help) || { echo "help.sh: make help fails"; exit 1; }
targets=$(sed -n '/^Targets/,/^Variables/s/^  \([a-z][a-z_-]*\) .*/\1/p' <<<"$help")
variables=$(sed -n '/^Variables/,$s/^  \([A-Z][A-Z_]*\) .*/\1/p' <<<"$help")
[ "$(wc -w <<<"$targets")" -ge 15 ] || complain "few targets in make help: ${targets//$'\n'/ }"
[ "$(wc -w <<<"$variables")" -ge 12 ] || complain "few variables in make help: ${variables//$'\n'/ }"

phony=$("${make[@]}" -pq all 2>/dev/null | sed -n 's/^\.PHONY: //p' | tr ' ' '\n' | grep -v /)
for t in $targets; do
	grep -qx -- "$t" <<<"$phony" || complain "make help lists $t, which is no target"
done
for t in $phony; do
	grep -qx -- "$t" <<<"$targets" || grep -qw -- "$t" <<<"$internal" || complain "make help lacks the target $t"
done
for v in $variables; do
	grep -qE "\\$\($v\)|\\$\(if \\$\($v\)" Makefile ./*/*.mk ./*/*/*.mk || complain "no makefile uses the variable $v"
done
[ $bad = 1 ] || echo "help.sh: $(wc -w <<<"$targets") targets, $(wc -w <<<"$variables") variables"
exit $bad
