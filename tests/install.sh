#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installs the library and the examples into an empty folder and builds a program with
# only the installed headers, archives and each of the two .pc files; the program opens the
# software NIC. Then checks that everything which reports gdaki's version reports the same.
set -eu
cd "$(dirname "$0")/.."
B="${B:-build}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

make --no-print-directory B="$B" PREFIX=/usr DESTDIR="$dir" install install_examples >"$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}
# A header that cannot be installed is an error.
mkdir -p "$dir/bad/usr"
touch "$dir/bad/usr/include"
! make --no-print-directory B="$B" PREFIX=/usr DESTDIR="$dir/bad" install >/dev/null 2>&1 || {
	echo "install.sh: make install succeeds without installing the headers"
	exit 1
}
for f in lib/libgdaki_core.a lib/libgdaki_db_none.a include/doca_gpunetio_host.h \
	include/host/doca_verbs.h include/common/doca_gpunetio_verbs_dev.h \
	include/device/doca_gpunetio_dev_verbs_qp.cuh lib/pkgconfig/gdaki.pc \
	share/man/man7/gdaki.7; do
	[ -f "$dir/usr/$f" ] || { echo "install.sh: $f was not installed"; exit 1; }
done
cat >"$dir/p.c" <<'C'
#include <infiniband/verbs.h>
#include <doca_gpunetio_host.h>
#include <host/gdaki.h>
#include <stdio.h>
int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	doca_gpu_t *gpu;
	doca_dev_t *dev;

	puts(gdk_version());
	if (!pd || doca_gpu_create("host", &gpu) || doca_verbs_dev_open(pd, &dev))
		return 1;
	return doca_verbs_dev_close(dev) || doca_gpu_destroy(gpu) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(ctx);
}
C
field() { # .pc file, field
	sed -n "s/^$2[:=] *//p" "$dir/usr/lib/pkgconfig/$1.pc" |
		sed "s|\${libdir}|$dir/usr/lib|; s|\${includedir}|$dir/usr/include|"
}

version=$(sed -n 's/^#define GDK_VERSION "\(.*\)"/\1/p' "$dir/usr/include/host/gdk_version.h")
same_version() { # where it was found, the version found there
	[ "$2" = "$version" ] || {
		echo "install.sh: $1 reports version \"$2\"; gdk_version.h defines \"$version\""
		exit 1
	}
}
same_version CHANGELOG.md "$(sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -n 1)"
for pc in gdaki gdaki-static; do
	# shellcheck disable=SC2046 # each field is a list of options
	"${CC:-gcc}" -std=c11 -Wall -Werror $(field $pc Cflags) -o "$dir/p" "$dir/p.c" $(field $pc Libs)
	"$B/bin/softnic-run" -- "$dir/p" >"$dir/out" || {
		echo "install.sh: a program linked by $pc.pc fails"
		exit 1
	}
	same_version "gdk_version(), linked by $pc.pc," "$(cat "$dir/out")"
	same_version "$pc.pc" "$(field $pc Version)"
	[ "$(field $pc api_level)" = 3.0.0 ] || { echo "install.sh: $pc.pc has no api_level"; exit 1; }
done
for program in "$B/bin/softnic-run" "$dir"/usr/bin/*; do
	said=$("$program" --version) || { echo "install.sh: $program --version fails"; exit 1; }
	[ "${said% *}" = "${program##*/} (gdaki)" ] || { echo "install.sh: $program --version prints $said"; exit 1; }
	same_version "$program --version" "${said##* }"
done
