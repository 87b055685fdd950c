#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks the form of all files of the repository: licence lines, no blanks at the end of
# lines, no notes about unfinished work, at most 100 columns and 600 lines in C sources, no
# compiler extensions of the platform outside the platform headers, at most 7 parameters of a
# function of the product, and only the expected files at the top level.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT

complain() {
	echo "style.sh: $1"
	head -n 20 "$tmp" | sed 's/^/    /'
	bad=1
}

. tests/lib/files.sh
files=$(list_files)
code=$(grep -E '\.(c|h|cu|cuh|cpp|cc|def)$' <<<"$files")
text=$(grep -E '\.(c|h|cu|cuh|cpp|cc|def|sh|py|txt|mk)$|^Makefile$|^\.ci/run$' <<<"$files")

# shellcheck disable=SC2086 # lists of file names
{
	for f in $text; do
		head -n 3 "$f" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' &&
			head -n 4 "$f" | grep -q 'Copyright (c) gdaki authors' || echo "$f"
	done >"$tmp"
	[ ! -s "$tmp" ] || complain "no licence lines"

	grep -n -w -E 'TO''DO|FIX''ME|XX''X|HA''CK|st''ub|st''ubs|not yet impl''emented' $text /dev/null >"$tmp" &&
		complain "notes about unfinished work"

	grep -n -P '[ \t]+$' $text /dev/null >"$tmp" && complain "blanks at the end of a line"
	for f in $code; do
		expand "$f" | awk -v f="$f" 'length > 100 { print f ":" NR ": " length " columns" }'
	done >"$tmp"
	[ ! -s "$tmp" ] || complain "longer than 100 columns"
	wc -l $code | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines" }' >"$tmp"
	[ ! -s "$tmp" ] || complain "longer than 600 lines"

	product=$(grep -E '^(core|umem|uar|cq|qp|doorbell)/' <<<"$code")
	grep -n -i -E '\bissue #?[0-9]+\b|softnic' $product /dev/null >"$tmp" &&
		complain "the product mentions its tests or its history"
	grep -n -E '__attribute__\(\(constructor' $product /dev/null >"$tmp" && complain "a constructor"
	grep -n '__CUDACC__' $product /dev/null | grep -v '/platform' >"$tmp" &&
		complain "__CUDACC__ outside the platform header"
	# doorbell/mmio.h has the host's barrier before a register store, gdk_sdk_shape.h names of symbols.
	grep -n -E '\basm\b|__asm__' $product /dev/null | grep -v -E '/platform|doorbell/mmio.h|gdk_sdk_shape.h' >"$tmp" &&
		complain "inline assembly outside the platform header"
	# A syndrome tells a user which check refused the command.
	cat tests/softnic/*.c | tr '\n' ' ' | grep -o -E 'sn_cmd_fail\([^;"]*' |
		sed -n -E 's/.* ([0-9]\w*),\s*$/\1/p' | while read -r n; do printf '%#x\n' "$n"; done |
		sort | uniq -d >"$tmp"
	[ ! -s "$tmp" ] || complain "syndromes that two refusals of the software NIC share"
	tests/lib/params.py $product >"$tmp"
	[ ! -s "$tmp" ] || complain "more than 7 parameters"
}

# The check of parameters finds what it looks for, and nothing else.
cat >"$tmp" <<'EOF'
GDK_FN int most(int a, int b, int c, int d, int e, int f, void (*g)(int, int));
GDK_FN int
many(int a, int b, int c, /* d */ int e, int f, int g,
     void (*h)(int), int i)
{
	few(a, b, c, e, f, g, h, i);
}
int doca_many(int a, int b, int c, int d, int e, int f, int g, int h);
EOF
found=$(tests/lib/params.py "$tmp")
if [ "$found" != "$tmp:3: many has 8 parameters" ]; then
	printf '%s\n' "$found" >"$tmp"
	complain "params.py finds other functions than those with too many parameters"
fi

allowed='^(Makefile|README\.md|LICENSE|CONTRIBUTING\.md|CHANGELOG\.md|\.ci|\.clang-format|\.editorconfig|\.git-blame-ignore-revs|\.gitignore|\.gitattributes|core|umem|uar|cq|qp|doorbell|tests|examples)$'
cut -d/ -f1 <<<"$files" | sort -u | grep -v -E "$allowed" >"$tmp" && complain "unexpected file at the top level"
exit $bad
