#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installs and uninstalls files; core/install/install.mk calls it.
#
# usage: install.sh install <LIST    or    install.sh add <LIST    or    install.sh uninstall
#   Lines of LIST are "MODE FOLDER FILE...". MODE is the mode of the copies in FOLDER, or "link":
#   then FOLDER gets relative links to the installed FILEs. X.in becomes X; the sed script SUBST
#   replaces its variables.
# Environment: DESTDIR, PREFIX, LIBDIR, INCLUDEDIR, SUBST
#
# LIBDIR/gdaki/installed.txt lists the installed files, and the folders that were created for them
# (with a slash at the end), relative to PREFIX if they are below it. "install" removes the files of
# an earlier installation that LIST lacks; "add" keeps them. Uninstalling removes what is listed;
# folders only if they are empty. The list then contains what could not be removed.
set -eu
list=$DESTDIR$LIBDIR/gdaki/installed.txt
new='' complete='' # complete: the new list replaces the old one

record() {
	case $1 in
	"$PREFIX/") new="$new./
" ;;
	*) new="$new${1#"$PREFIX/"}
" ;;
	esac
}

fail() { # message
	echo "install.sh: $1" >&2
	exit 1
}

check_writable() { # folder to be created or filled
	at=$DESTDIR$1
	while [ ! -e "$at" ]; do at=$(dirname "$at"); done
	[ -w "$at" ] || fail "no permission to write to $at: use sudo, or PREFIX=DIR with a folder of your own"
}

make_folder() {
	[ ! -d "$DESTDIR$1" ] || return 0
	make_folder "$(dirname "$1")"
	install -d -m 755 "$DESTDIR$1"
	record "$1/"
}

# The listed paths, from the last to the first in the alphabet, so that a folder follows its contents.
# Absolute paths stay; others get PREFIX. './' is PREFIX itself.
listed() {
	[ ! -f "$list" ] || sed "/^\//!s|^|$PREFIX/|; s|/\./$|/|" "$list" | LC_ALL=C sort -r
}

put_list() { # from standard input
	awk 'NF && !seen[$0]++' >"$list.new"
	chmod 644 "$list.new"
	mv "$list.new" "$list"
}

# Also after an error, so that an incomplete installation can be uninstalled.
write_list() {
	[ -d "${list%/*}" ] || return 0
	old=
	[ -n "$complete" ] || old=$(cat "$list" 2>/dev/null) || :
	printf '%s\n%s' "$old" "$new" | put_list
}

remove() { # path; fails, with the reason, if a file remains
	case $1 in
	*/) rmdir "$DESTDIR$1" 2>/dev/null || : ;;
	*) rm -f "$DESTDIR$1" ;;
	esac
}

# Removes what an earlier installation installed and this one did not.
remove_stale() {
	written=$new new=
	while read -r path; do
		[ -n "$path" ] || continue
		entry=${path#"$PREFIX/"}
		case "
$written" in
		*"
$entry
"*) continue ;;
		esac
		remove "$path" || :
		if [ -e "$DESTDIR$path" ] || [ -L "$DESTDIR$path" ]; then record "$path"; fi
	done <<-END
		$(listed)
	END
	new=$written$new complete=1
}

install_line() { # mode, folder, files...
	mode=$1 folder=${2%/.}
	shift 2
	[ $# != 0 ] || return 0
	make_folder "$folder"
	copies=
	for file; do
		name=${file##*/}
		to=$folder/${name%.in}
		[ ! -d "$DESTDIR$to" ] || [ -L "$DESTDIR$to" ] ||
			fail "$DESTDIR$to is a folder, so the file of that name cannot be installed"
		record "$to"
		case $mode:$name in
		link:*)
			ln -sfnT "$(realpath -ms --relative-to="$folder" "$file")" "$DESTDIR$to" ;;
		*.in)
			rm -f "$DESTDIR$to"
			sed "$SUBST" "$file" >"$DESTDIR$to"
			chmod "$mode" "$DESTDIR$to" ;;
		*)
			copies="$copies $file" ;;
		esac
	done
	# One process for all of them. Paths contain no spaces.
	# shellcheck disable=SC2086 # a list of files
	[ -z "$copies" ] || install -m "$mode" -t "$DESTDIR$folder" $copies
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
install | add)
	for folder in "$PREFIX/bin" "$LIBDIR/gdaki" "$INCLUDEDIR/gdaki"; do
		check_writable "$folder"
	done
	mkdir -p "$DESTDIR/"
	trap write_list EXIT
	trap 'exit 1' HUP INT TERM
	make_folder "$LIBDIR/gdaki"
	record "$LIBDIR/gdaki/installed.txt"
	while read -r line; do
		# shellcheck disable=SC2086 # a list of words
		install_line $line
	done
	[ "$1" = add ] || remove_stale
	echo "installed gdaki: headers in $DESTDIR$INCLUDEDIR/gdaki, libraries in $DESTDIR$LIBDIR" ;;
uninstall)
	[ -f "$list" ] || {
		echo "install.sh: $list not found: no gdaki is installed with this PREFIX, DESTDIR and LIBDIR" >&2
		exit 1
	}
	check_writable "$LIBDIR/gdaki"
	for path in $(listed); do # folders fail as long as they have files
		[ "$DESTDIR$path" = "$list" ] || remove "$path" || record "$path"
	done
	if [ -n "$new" ]; then
		for path in $(listed); do
			[ "$DESTDIR$path" != "$list" ] || record "$path"
			case $path in */) [ ! -d "$DESTDIR$path" ] || record "$path" ;; esac
		done
		printf '%s' "$new" | put_list
		fail "some files remain, $list lists them: repeat \`make uninstall\` after removing the cause"
	fi
	folders=$(listed | grep '/$') || :
	rm "$list"
	for path in $folders; do remove "$path"; done
	echo "uninstalled gdaki from $DESTDIR$PREFIX" ;;
esac
report_old_layout
