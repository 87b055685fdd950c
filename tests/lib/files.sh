# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions that list the repository's files, for the checks of sources. The caller's
# working directory is the top of the tree.

# Prints the name of every file that git tracks or would add. Without a .git folder (a
# source archive): every file outside the folders that .gitignore names.
list_files() {
	if [ -e .git ] && git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -co --exclude-standard
	else
		find . \( -path ./build -o -path ./.gpu-deps -o -path ./.carry -o -path ./.git \) -prune -o \
			-type f -print | sed 's|^\./||' | grep -v '\.pcap$'
	fi | while read -r f; do
		[ ! -f "$f" ] || echo "$f"
	done | sort
}

# Reads file names and prints those of scripts that run by PATTERN, which matches a suffix
# or the interpreter in the first line: scripts_of '\.py$' python <names
scripts_of() { # suffix pattern, interpreter pattern
	local f line
	while read -r f; do
		line=""
		if [[ $f =~ $1 ]]; then
			echo "$f"
		elif [[ ${f##*/} != *.* ]]; then
			read -r line 2>/dev/null <"$f"
			[[ ! $line =~ ^#!.*$2 ]] || echo "$f"
		fi
	done
}
