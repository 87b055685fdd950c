# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions that list the repository's files, for the checks of sources. The caller's
# working directory is the top of the tree.

# Prints the sorted names of the files that git tracks or would add. Without .git (in a
# source archive) it prints all files except those that .gitignore names.
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

# Reads file names and prints those of the scripts in one language: names that match the
# first pattern, and names without a suffix if the second pattern matches the interpreter
# in the file's first line. Example: scripts_of '\.py$' python <names
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
