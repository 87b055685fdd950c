#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks that clang-format 14 would change no C, C++ or CUDA source. Other versions
# format some constructs differently, so only version 14 is accepted.
# To format the files that you changed: clang-format-14 -i FILE...
set -u
cd "$(dirname "$0")/.." || exit 2

tool=""
for t in clang-format-14 clang-format; do
	version=$("$t" --version 2>/dev/null) || continue
	[[ $version =~ version\ 14\. ]] && tool=$t && break
done
if [ -z "$tool" ]; then
	echo "format.sh: clang-format 14 not found; install the Debian package clang-format-14," \
		"or run: pip install clang-format==14.0.6" >&2
	exit 1
fi

. tests/lib/files.sh
sources=$(list_files | grep -E '\.(c|h|cu|cuh|cpp|cc)$')
[ -n "$sources" ] || { echo "format.sh: no sources found" >&2; exit 1; }
xargs -P "$(nproc)" -n 30 "$tool" --dry-run -Werror --ferror-limit=3 <<<"$sources" || {
	echo "format.sh: run $tool -i on these files"
	exit 1
}
echo "format.sh: $(wc -l <<<"$sources") files"
