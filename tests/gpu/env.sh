#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# To be sourced, at the top of the repository, with DIR naming a temporary folder:
# use_debs makes the libraries usable that the machine lacks. They come from
# .gpu-deps/*.deb (fetch-deps fills it) and are unpacked into DIR; nothing is
# installed.

TRIPLET=$(uname -m)-linux-gnu

system_lib() { # SONAME: the path where the loader finds it, if it does
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

# The system's own libraries win, so that no library is loaded twice: a copy from
# the packages goes away, and the compiler's name for it then leads to the system's.
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
