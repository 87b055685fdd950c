#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles UCX's device endpoint (src/uct/ib/mlx5/gdaki/gdaki.cuh of a checkout of openucx/ucx,
# 2026-03 or later) unchanged with gdaki's headers instead of its submodule gpunetio, and
# runs it on the software NIC with CPU threads and, if there is one, a GPU.
# usage: ucx_gdaki.sh CHECKOUT
# shellcheck disable=SC2034 # name, inc and driver are read by the included script
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
name=ucx_gdaki.sh
src=${1:-}
[ -f "$src/src/uct/ib/mlx5/gdaki/gdaki.cuh" ] || {
	echo "ucx_gdaki.sh: no checkout of openucx/ucx given"
	exit 77
}
src=$(cd "$src/src" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/consumers/device.sh

mkdir -p "$tmp/stage/uct/ib/mlx5/gdaki"
ln -s "$src/ucs" "$tmp/stage/ucs"
ln -s "$src/uct/api" "$tmp/stage/uct/api"
for f in "$src"/uct/ib/mlx5/gdaki/*.cuh "$src"/uct/ib/mlx5/gdaki/*.h; do
	ln -s "$f" "$tmp/stage/uct/ib/mlx5/gdaki/"
done
ln -s "$(readlink -f "$B/include")" "$tmp/stage/uct/ib/mlx5/gdaki/gpunetio"
inc=(-I"$tmp/stage")
driver=tests/consumers/ucx_gdaki_driver.cu
consume 2 2,--dbrec-only -- -DHAVE_CONFIG_H -DHAVE_GDA
exit $bad
