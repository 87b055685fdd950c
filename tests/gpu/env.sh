#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts on machines with a GPU but without network. The including script runs
# at the top of the repository and sets DIR, a temporary folder. use_debs unpacks the packages
# .gpu-deps/*.deb (from fetch-deps) into DIR and sets up the environment so that compilers and
# programs use those libraries that the machine lacks. Nothing is installed.

TRIPLET=$(uname -m)-linux-gnu

system_lib() { # SONAME: prints the path where the loader finds it
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

# Removes copies of libraries that the system has, so that no library is loaded twice, and
# redirects the link that the compiler uses (lib*.so) to the system's library.
prefer_system_libs() {
	for lib in "$1"/lib*.so.*; do
		[ -z "$(system_lib "$(basename "$lib")")" ] || rm -f "$lib"
	done
	for link in "$1"/lib*.so; do
		[ -e "$link" ] || ln -sf "$(ldconfig -p | awk -v name="$(basename "$link")." \
			'index($1, name) == 1 { print $NF; exit }')" "$link"
	done
}

use_debs() {
	for deb in .gpu-deps/*.deb; do
		[ -e "$deb" ] || return 0
		dpkg -x "$deb" "$DIR/deps" || exit 1
	done
	libs="$DIR/deps/usr/lib/$TRIPLET"
	[ ! -d "$DIR/deps/lib/$TRIPLET" ] || mv "$DIR/deps/lib/$TRIPLET"/* "$libs"
	prefer_system_libs "$libs"
	headers="$DIR/deps/usr/include"
	export CPATH="$headers:$headers/$TRIPLET${CPATH:+:$CPATH}"
	export LIBRARY_PATH="$libs${LIBRARY_PATH:+:$LIBRARY_PATH}"
	export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
