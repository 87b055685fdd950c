#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs the short form of rdma_core.sh with a current rdma-core. Downloads the source package of
# Debian's next release from the mirror that apt is configured for, with package lists in a
# folder of its own, so that the system's lists do not change. Builds it once, without
# optimization, in $B/rdma-core. To run a program with these libraries:
# LD_LIBRARY_PATH=build/rdma-core/build/lib
# usage: rdma_core_current.sh [build | long]	build: no tests; long: all of rdma_core.sh
#   RDMA_CORE_SUITE: the Debian suite (forky)
set -u
cd "$(dirname "$0")/../.." || exit 2
export B=${B:-build}
name=rdma_core_current.sh
suite=${RDMA_CORE_SUITE:-forky}
what=${1:-short}
mkdir -p "$B/rdma-core/lists/partial" "$B/rdma-core/cache/archives/partial" "$B/rdma-core/sources"
dir=$(cd "$B/rdma-core" && pwd)
start=$SECONDS

skip() { # reason, file to show
	echo "$name: $1"
	[ -z "${2:-}" ] || tail -n 5 "$2" | sed 's/^/    /'
	exit 77
}

apt() { # program, arguments...: runs apt's program with the suite's sources only
	local program=$1
	shift
	timeout 120 "$program" -q -o Dir::Etc::SourceList="$dir/suite.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o Debug::NoLocking=1 \
		-o APT::Sandbox::User=root -o Acquire::Retries=3 -o APT::Get::List-Cleanup=0 "$@"
}

fetch() {
	local mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(grep -hoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
	[ -n "$mirror" ] || skip "apt is configured without a Debian mirror"
	[ ! -f "$key" ] || key="[signed-by=$key] "
	echo "deb-src $key$mirror $suite main" >"$dir/suite.list"
	apt apt-get update >"$dir/log" 2>&1 || skip "no list of $suite's sources" "$dir/log"
	# Only the source archive, which apt verifies against the suite's signed list.
	(cd "$dir/sources" && rm -rf ./* && apt apt-get source --download-only --tar-only rdma-core) \
		>>"$dir/log" 2>&1 || skip "no sources of rdma-core in $suite" "$dir/log"
	rm -rf "$dir/src" "$dir/build"
	mkdir "$dir/src" "$dir/build"
	tar -C "$dir/src" --strip-components=1 -xf "$dir"/sources/rdma-core_*.orig.tar.* ||
		skip "the archive of rdma-core cannot be unpacked"
}

# Builds the libraries, example programs and pyverbs, with the mlx5 provider only. Cython generates
# the C files of pyverbs; clang compiles these in half of gcc's time. Cython needs half of its time
# if it does not find pythran, which it loads at each start and uses for numpy only.
compile() {
	local programs=(asyncwatch devices devinfo rc_pingpong srq_pingpong uc_pingpong ud_pingpong xsrq_pingpong)
	cmake -GNinja -DIN_PLACE=1 -DNO_MAN_PAGES=1 -DPYTHON_EXECUTABLE=/usr/bin/python3 \
		-DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='-O0 -w' -S "$dir/src" -B "$dir/build" >"$dir/log" 2>&1 || return
	! command -v clang >/dev/null ||
		sed -i '/^rule C_COMPILER__.*cpython/,/^$/s|^\( *command = \)[^ ]*|\1clang|; s| -fno-var-tracking-assignments||' \
			"$dir/build/build.ninja" "$dir/build/CMakeFiles/rules.ninja"
	mkdir -p "$dir/without" && echo 'raise ImportError("not for pyverbs")' >"$dir/without/pythran.py"
	# shellcheck disable=SC2046 # a list of files
	PYTHONPATH=$dir/without nice ninja -C "$dir/build" lib/libibverbs.so lib/libmlx5.so lib/librdmacm.so "${programs[@]/#/bin/ibv_}" \
		$(ninja -C "$dir/build" -t targets all | sed -n 's|^\(python/pyverbs/[^:]*\.so\):.*|\1|p') \
		>"$dir/log" 2>&1 || return
	find "$dir/build/etc/libibverbs.d" -name '*.driver' ! -name mlx5.driver -delete
	touch "$dir/build/complete"
}

for p in cmake ninja cython3 apt-get; do
	command -v $p >/dev/null || skip "$p not found"
done
if [ ! -e "$dir/build/complete" ]; then
	fetch
	compile || { echo "$name: rdma-core does not build"; tail -n 20 "$dir/log" | sed 's/^/    /'; exit 1; }
	echo "$name: built in $((SECONDS - start)) s"
fi
[ "$what" != build ] || { echo "$dir/build"; exit 0; }
exec tests/consumers/rdma_core.sh "$dir/build" "$what"
