#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Another version of rdma-core than the distribution's: its libraries, example
# programs and Python tests, from a folder that it was built in, with
#   cmake -DIN_PLACE=1 -DNO_MAN_PAGES=1 SOURCES && make
# usage: rdma_core.sh BUILD [module[.Class[.test]]...]
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${1:-}
[ -e "$build/lib/libibverbs.so.1" ] && [ -x "$build/bin/ibv_rc_pingpong" ] || {
	echo "rdma_core.sh: no build of rdma-core given"
	exit 77
}
build=$(cd "$build" && pwd)
shift
src=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
# The tests ask the rdma tool for the net interface; it speaks to the kernel, which
# has no device. With its answer for none they look in sysfs, as they did before.
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
printf '#!/bin/sh\necho "[]"\n' >"$tools/rdma"
chmod +x "$tools/rdma"
export LD_LIBRARY_PATH=$build/lib PATH=$tools:$build/bin:$PATH
echo "rdma_core.sh: rdma-core $(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' "$src/CMakeLists.txt") of $build"
bad=0
tests/verbs.sh || bad=1
PYTHONPATH=$build/python PYVERBS_TESTS=$src/tests tests/consumers/pyverbs.sh "$@" || bad=1
exit $bad
