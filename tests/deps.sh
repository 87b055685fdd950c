#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installs the missing packages of the named groups with apt-get: build (to compile the
# library and the software NIC), demo (to run them), test (the tests), fuzz (the fuzzers).
# On a system without dpkg, and without root or sudo, it lists the packages instead.
set -eu

pkgs=""
for group in "$@"; do
	case $group in
	build) # for the library and the software NIC, then for the examples
		pkgs="$pkgs gcc libc6-dev libibverbs-dev libnuma-dev zlib1g-dev"
		pkgs="$pkgs g++ libjson-c-dev" ;;
	demo) pkgs="$pkgs ibverbs-providers" ;;
	test) pkgs="$pkgs libcriterion-dev libnl-route-3-dev ibverbs-utils hwloc-nox tshark python3 binutils gdb
		python3-pyverbs python3-pytest python3-scapy iproute2 iputils-ping curl perftest ucx-utils spin
		openmpi-bin libopenmpi-dev dpdk-dev libdpdk-dev
		cmake ninja-build meson pkg-config cython3 python3-dev libnl-3-dev clang-format-14 shellcheck flake8
		doxygen gnuplot-nox mandoc man-db gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user" ;;
	fuzz) # libFuzzer's runtime must have the version of the distribution's clang
		rt=$(apt-cache depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
		pkgs="$pkgs clang libclang-rt-${rt:-14}-dev" ;;
	*) echo "deps.sh: unknown group $group" >&2; exit 2 ;;
	esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
	echo "deps.sh: no dpkg on this system; install the equivalents of these Debian packages:$pkgs" >&2
	exit 0
fi

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | head -c 9)" = installed ]
}

# The kernel headers that contain the PRM layouts (mlx5_ifc.h); any version will do.
if [ "${pkgs#* tshark }" != "$pkgs" ] && ! ls /usr/src/linux-headers-*/include/linux/mlx5/mlx5_ifc.h >/dev/null 2>&1; then
	want_headers=1
else
	want_headers=
fi

missing=""
for p in $pkgs; do
	installed "$p" || missing="$missing $p"
done
[ -n "$missing$want_headers" ] || exit 0

sudo=""
if [ "$(id -u)" != 0 ]; then
	sudo="sudo"
	if ! command -v sudo >/dev/null 2>&1; then
		echo "deps.sh: not root and no sudo; install these packages first:$missing" >&2
		exit 1
	fi
fi
echo "installing:$missing ${want_headers:+linux-headers-*-common}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt_get() {
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1 || {
		cat "$log" >&2
		echo "deps.sh: apt-get $1 failed; these packages are needed:$missing" >&2
		exit 1
	}
}
apt_get update
if [ -n "$want_headers" ]; then
	h=$(apt-cache search --names-only '^linux-headers-.*-common$' | awk '{print $1}' | grep -v -- -rt- | sort -V | tail -n 1)
	missing="$missing $h"
fi
# Newer distributions lack clang-format 14; tests/format.sh then names the remedy.
found=""
for p in $missing; do
	if [ "$p" = clang-format-14 ] && ! apt-cache show "$p" >/dev/null 2>&1; then
		continue
	fi
	found="$found $p"
done
# shellcheck disable=SC2086 # a list of package names
[ -z "$found" ] || apt_get install -y --no-install-recommends $found
