#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installs and uninstalls files; core/install.mk calls it.
#
# usage: install.sh install <LIST    or    install.sh uninstall
#   Lines of LIST are "MODE FOLDER FILE...". MODE is the mode of the copies in FOLDER, or "link":
#   then FOLDER gets relative links to the installed FILEs. X.in becomes X; the sed script SUBST
#   replaces its variables.
# Environment: DESTDIR, PREFIX, LIBDIR, INCLUDEDIR, SUBST
#
# LIBDIR/gdaki/installed.txt lists the installed files, and the folders that were created for them
# (with a slash at the end), relative to PREFIX if they are below it. Installing again adds to the
# list. Uninstalling removes what it lists; folders only if they are empty.
set -eu
list=$DESTDIR$LIBDIR/gdaki/installed.txt
new=

record() {
	case $1 in
	"$PREFIX/") new="$new./
" ;;
	*) new="$new${1#"$PREFIX/"}
" ;;
	esac
}

make_folder() {
	[ ! -d "$DESTDIR$1" ] || return 0
	make_folder "$(dirname "$1")"
	install -d -m 755 "$DESTDIR$1"
	record "$1/"
}

# Also after an error, so that an incomplete installation can be uninstalled.
write_list() {
	[ -d "${list%/*}" ] || return 0
	old=$(cat "$list" 2>/dev/null) || :
	printf '%s\n%s' "$old" "$new" | awk 'NF && !seen[$0]++' >"$list.new"
	chmod 644 "$list.new"
	mv "$list.new" "$list"
}

install_line() { # mode, folder, files...
	mode=$1 folder=${2%/.}
	shift 2
	[ $# != 0 ] || return 0
	make_folder "$folder"
	for file; do
		name=${file##*/}
		to=$folder/${name%.in}
		record "$to"
		case $mode:$name in
		link:*)
			ln -sfn "$(realpath -ms --relative-to="$folder" "$file")" "$DESTDIR$to" ;;
		*.in)
			rm -f "$DESTDIR$to"
			sed "$SUBST" "$file" >"$DESTDIR$to"
			chmod "$mode" "$DESTDIR$to" ;;
		*)
			install -m "$mode" "$file" "$DESTDIR$to" ;;
		esac
	done
}

# The release 0.1.0 of 2026-11-22 installed the headers directly in INCLUDEDIR and GPU code in
# LIBDIR.
report_old_layout() {
	for old in "$INCLUDEDIR/host/gdk_version.h" "$INCLUDEDIR/host/gdaki.h" "$LIBDIR/libput_bw_cuda.so"; do
		[ ! -e "$DESTDIR$old" ] || {
			echo "note: $DESTDIR$old belongs to an older gdaki, whose files are neither used nor removed"
			return
		}
	done
}

case $1 in
install)
	mkdir -p "$DESTDIR/"
	trap write_list EXIT
	trap 'exit 1' HUP INT TERM
	make_folder "$LIBDIR/gdaki"
	record "$LIBDIR/gdaki/installed.txt"
	while read -r line; do
		# shellcheck disable=SC2086 # a list of words
		install_line $line
	done
	echo "installed gdaki: headers in $DESTDIR$INCLUDEDIR/gdaki, libraries in $DESTDIR$LIBDIR" ;;
uninstall)
	[ -f "$list" ] || {
		echo "install.sh: $list not found: no gdaki is installed with this PREFIX, DESTDIR and LIBDIR" >&2
		exit 1
	}
	# From the last to the first in the alphabet, so that a folder follows its contents. Absolute
	# paths stay; others get PREFIX. './' is PREFIX itself.
	paths=$(sed "/^\//!s|^|$PREFIX/|; s|/\./$|/|" "$list" | LC_ALL=C sort -r)
	rm "$list"
	while read -r path; do
		case $path in
		*/) rmdir "$DESTDIR$path" 2>/dev/null || : ;;
		*) rm -f "$DESTDIR$path" ;;
		esac
	done <<-END
		$paths
	END
	echo "uninstalled gdaki from $DESTDIR$PREFIX" ;;
esac
report_old_layout
