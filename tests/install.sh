#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installs into an empty folder and builds a program against what landed there,
# with nothing but the installed headers, archives and gdaki.pc.
set -eu
B="${B:-build}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

make --no-print-directory B="$B" PREFIX=/usr DESTDIR="$dir" install >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
for f in lib/libgdaki_core.a lib/libgdaki_db_none.a include/doca_gpunetio_host.h \
	include/host/doca_verbs.h include/common/doca_gpunetio_verbs_dev.h \
	include/device/doca_gpunetio_dev_verbs_qp.cuh lib/pkgconfig/gdaki.pc; do
	[ -f "$dir/usr/$f" ] || { echo "install.sh: $f was not installed"; exit 1; }
done
cat >"$dir/p.c" <<'C'
#include <doca_gpunetio_host.h>
int main(void)
{
	doca_gpu_t *gpu;

	if (doca_gpu_create("host", &gpu))
		return 1;
	return doca_gpu_destroy(gpu) != DOCA_SUCCESS;
}
C
libs=$(sed -n 's/^Libs: //p' "$dir/usr/lib/pkgconfig/gdaki.pc" | sed "s|\${libdir}|$dir/usr/lib|")
# shellcheck disable=SC2086
"${CC:-gcc}" -std=c11 -Wall -Werror -I"$dir/usr/include" -o "$dir/p" "$dir/p.c" $libs
"$dir/p"
