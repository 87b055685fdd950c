#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles NCCL's networking by GPU threads (src/include/nccl_device of a checkout of
# NVIDIA/nccl, 2.30) unchanged with gdaki's headers instead of NCCL's copy of
# doca-gpunetio, and runs it on the software NIC with CPU threads and, if there is one, a GPU.
# usage: nccl.sh CHECKOUT
# shellcheck disable=SC2034 # name, inc and driver are read by the included script
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
name=nccl.sh
src=${1:-}
[ -f "$src/src/include/nccl_device/gin/gdaki/gin_gdaki.h" ] || {
	echo "nccl.sh: no checkout of NVIDIA/nccl given"
	exit 77
}
src=$(cd "$src/src" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/consumers/device.sh

# The layout of NCCL's own build, which generates nccl.h from nccl.h.in.
cp -rs "$src/include/nccl_device" "$tmp/stage"
mkdir "$tmp/include"
mv "$tmp/stage" "$tmp/include/nccl_device"
ln -s "$(readlink -f "$B/include")" "$tmp/include/nccl_device/gin/gdaki/doca_gpunetio"
sed -e 's/\${nccl:Major}/2/; s/\${nccl:Minor}/30/; s/\${nccl:Patch}/0/; s/\${nccl:Suffix}//' \
	-e 's/\${nccl:Version}/23000/' "$src/nccl.h.in" >"$tmp/include/nccl.h"
inc=(-I"$tmp/include")
driver=tests/consumers/nccl_driver.cu
consume 0 1 2 2,--dbrec-only 10 --
exit $bad
