#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compares the library's command boxes with those that DPDK builds for the same attributes:
# CREATE_CQ, CREATE_QP, CREATE_RMP, the QP transitions and queries. DPDK's
# drivers/common/mlx5/mlx5_devx_cmds.c is compiled unchanged; dpdk_shim.h replaces the rest of
# DPDK, so no build of DPDK is needed. A bit that differs without an entry in
# dpdk_explained.def is a failure.
# usage: dpdk.sh CHECKOUT	a checkout of DPDK (tested with 26.11-rc0)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
name=dpdk.sh
src=${1:-}/drivers/common/mlx5
[ -f "$src/mlx5_devx_cmds.c" ] || { echo "$name: no checkout of DPDK given"; exit 77; }
src=$(cd "$src" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir "$tmp/shim"
for h in eal_export rte_errno rte_malloc rte_eal_paging rte_compat rte_bitops rte_vect rte_byteorder \
	mlx5_autoconf mlx5_glue; do
	ln -s "$PWD/tests/consumers/dpdk_shim.h" "$tmp/shim/$h.h"
done
inc=(-I"$tmp/shim" -I"$src" -I"$B/include" -iquote .)
fail() { echo "$name: $1"; sed -n 's/.*error: /    /p' "$tmp/log" | head -n 20; exit 1; }
"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -O1 -w -include tests/consumers/dpdk_shim.h "${inc[@]}" \
	-c -o "$tmp/dpdk.o" "$src/mlx5_devx_cmds.c" 2>"$tmp/log" || fail "mlx5_devx_cmds.c does not compile"
"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Werror -isystem "$src" "${inc[@]/#-I$src/-I$tmp/shim}" \
	-c -o "$tmp/boxes.o" tests/consumers/dpdk_boxes.c 2>"$tmp/log" || fail "dpdk_boxes.c does not compile"
# shellcheck disable=SC2046 # a list of libraries
"${CC:-gcc}" -pthread -o "$tmp/boxes" "$tmp/boxes.o" "$tmp/dpdk.o" \
	$(make --no-print-directory -s link-line B="$B") 2>"$tmp/log" || { cat "$tmp/log"; exit 1; }
timeout 60 "$B/bin/softnic-run" --lag 2 -- "$tmp/boxes" >"$tmp/out" 2>&1
rc=$?
sed "s/^/$name: /" "$tmp/out"
[ $rc = 0 ] || echo "$name: exit status $rc"
exit $rc
