#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the host side of UCX's GPU transport rc_gda (src/uct/ib/mlx5/gdaki/gdaki.c) on the
# software NIC. gdaki.c is compiled unchanged, with a driver program of ours that creates,
# connects and uses its channels. UCX's libraries are built once in $B/ucx-host, by UCX's own
# configure and make in a copy of the checkout (needs autoconf, automake and libtool; 2 minutes
# of CPU time). They are built without CUDA, because UCX's CUDA modules need a driver and NVML;
# the driver program replaces these modules. Of CUDA only the headers are needed; a stand-in
# replaces its driver.
# usage: ucx_host.sh CHECKOUT	a checkout of openucx/ucx with gdaki.c (tested with 2026-08)
#   CUDA_HOME: folder of the CUDA headers (/usr/local/cuda)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
name=ucx_host.sh
cuda=${CUDA_HOME:-/usr/local/cuda}
src=${1:-}
[ -f "$src/src/uct/ib/mlx5/gdaki/gdaki.c" ] || { echo "$name: no checkout of openucx/ucx given"; exit 77; }
[ -f "$cuda/include/cuda.h" ] || { echo "$name: no CUDA headers in $cuda"; exit 77; }
for p in autoreconf automake libtoolize; do
	command -v $p >/dev/null || { echo "$name: $p not found"; exit 77; }
done
src=$(cd "$src" && pwd)
mkdir -p "$B/ucx-host"
dir=$(cd "$B/ucx-host" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

build() {
	rm -rf "$dir/copy" "$dir/build"
	mkdir "$dir/copy" "$dir/build"
	tar -C "$src" --exclude=.git -cf - . | tar -C "$dir/copy" -xf - &&
		(cd "$dir/copy" && ./autogen.sh) >"$dir/log" 2>&1 &&
		(cd "$dir/build" && ../copy/configure --without-cuda --without-rocm --without-ze --without-xpmem \
			--without-knem --without-rdmacm --without-fuse3 --without-java --without-go \
			--disable-doxygen-doc --disable-dependency-tracking CFLAGS=-O0) >>"$dir/log" 2>&1 || return
	for part in ucm ucs uct; do
		nice make -s -j"$(nproc)" -C "$dir/build/src/$part" >>"$dir/log" 2>&1 || return
	done
	echo "$src" >"$dir/complete"
}
if [ "$(cat "$dir/complete" 2>/dev/null)" != "$src" ]; then
	build || { echo "$name: UCX does not build"; tail -n 20 "$dir/log" | sed 's/^/    /'; exit 1; }
fi

# Types of NVML that gdaki.c's headers use. gdaki's headers replace the submodule gpunetio.
mkdir -p "$tmp/as"
ln -s "$(readlink -f "$B/include")" "$tmp/as/gpunetio"
cat >"$tmp/as/nvml.h" <<'END'
typedef void *nvmlDevice_t;
typedef struct { unsigned int domain, bus, device; } nvmlPciInfo_t;
typedef struct { unsigned int fieldId; } nvmlFieldValue_t;
END
inc=(-I"$dir/build" -I"$dir/build/src" -I"$src/src" -I"$src/src/uct/ib/mlx5/gdaki" -I"$tmp/as" -I"$cuda/include")
for f in "$src/src/uct/ib/mlx5/gdaki/gdaki.c" tests/consumers/ucx_host_driver.c; do
	gcc -std=gnu11 -O1 -w -D_GNU_SOURCE -DHAVE_CONFIG_H -DCPU_FLAGS= -DHAVE_GDA=1 "${inc[@]}" -c \
		-o "$tmp/$(basename "$f").o" "$f" 2>"$tmp/log" || {
		echo "$name: $(basename "$f") does not compile"
		sed -n 's/.*error: /    /p' "$tmp/log" | head -n 20
		exit 1
	}
done
libs=()
for lib in ucs/libucs uct/libuct uct/ib/libuct_ib uct/ib/mlx5/libuct_ib_mlx5; do
	libs+=("$(ls "$dir/build/src/$(dirname "$lib")/.libs/$(basename "$lib").so")")
done
path=$(printf '%s:' "$dir"/build/src/{ucm,ucs,uct,uct/ib,uct/ib/mlx5}/.libs)
gcc -pthread -rdynamic -o "$tmp/driver" "$tmp"/*.o "${libs[@]}" -Wl,-rpath-link,"${path%:}" \
	-L"$B/standin" -l:libcuda.so.1 -libverbs -lmlx5 || exit 1

bad=0
# With --dbrec-only the NIC reads the DBRECs and ignores the doorbells' values.
while read -r mode how; do
	# shellcheck disable=SC2086 # no argument if how is empty
	env LD_LIBRARY_PATH="$path$B/standin" STANDIN_CUDA_IOMEM=1 UCX_MODULES=^cuda UCX_IB_GID_INDEX=3 \
		UCX_RC_GDA_NUM_CHANNELS=4 UCX_RC_GDA_EP_ALLOC_MODE=$mode UCX_RC_GDA_NUM_PRE_ALLOC_EPS=4 \
		timeout 60 "$B/bin/softnic-run" --strict $how -- "$tmp/driver" >"$tmp/out" 2>&1 </dev/null
	rc=$?
	[ $rc = 0 ] || {
		echo "$name: $mode $how: exit status $rc"
		tail -n 15 "$tmp/out"
		bad=1
	}
	grep -E 'data right$' "$tmp/out" | sed "s/^/$name: ${mode}${how:+ $how}: /"
done <<-END
	pool
	direct
	direct --dbrec-only
END
exit $bad
