# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions that identify another project's checkout, which may be a folder without a repository.

# Prints the commit of a checkout.
checkout_commit() { # checkout
	local commit
	# A folder without a repository may be inside of another one.
	commit=$(git -C "$1" rev-parse HEAD 2>/dev/null) && [ -z "$(git -C "$1" rev-parse --show-prefix)" ] ||
		commit="unknown (no git repository)"
	echo "$commit"
}

# Prints the hash that git gives to a folder, computed from its files as they are now.
checkout_tree() { # checkout, folder in it
	local dir
	dir=$(mktemp -d) || return
	GIT_DIR=$dir git init -q --bare && GIT_DIR=$dir git --work-tree="$1" -C "$1" add -f "$2" &&
		GIT_DIR=$dir git write-tree --prefix="$2/"
	rm -rf "$dir"
}
