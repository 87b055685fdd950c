#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs shellcheck on every shell script and flake8 on every Python file, also on those
# without a suffix, and searches comments, messages and documents for idioms that are hard to
# understand. A finding that is intended is disabled in its line, with the reason.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0

for tool in shellcheck flake8; do
	command -v "$tool" >/dev/null || {
		echo "lint.sh: $tool not found; install the Debian package $tool" >&2
		exit 1
	}
done

. tests/lib/files.sh
files=$(list_files)
shell=$(scripts_of '\.sh$' '(bash|/sh)' <<<"$files")
python=$(scripts_of '\.py$' 'python' <<<"$files")

# Not checked: SC2016 (no expansion in single quotes), because sed, awk and child shells need
# that; SC2015 ("A && B || C" is not if-then-else), because it is used only where C must run
# unless both A and B succeed. -x: read the files that a script includes.
xargs -P "$(nproc)" -n 12 shellcheck -e SC2015,SC2016 -x -P SCRIPTDIR -P . -f gcc <<<"$shell" || bad=1
xargs flake8 --max-line-length 100 <<<"$python" || bad=1

tests/sample_comments.py --idioms || bad=1

echo "lint.sh: $(wc -l <<<"$shell") shell scripts, $(wc -l <<<"$python") Python files"
exit $bad
