#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Tests the software NIC and gdaki with another version of rdma-core than the distribution's.
# BUILD is a folder in which rdma-core was built with
#   cmake -DIN_PLACE=1 -DNO_MAN_PAGES=1 SOURCES && make
# Runs its example programs and Python tests, and, with its libraries, perftest, gdaki's unit
# tests and gpunetio_verbs_put_bw in two processes.
# usage: rdma_core.sh BUILD [short]	short: part of the Python and unit tests, no perftest
set -u
cd "$(dirname "$0")/../.." || exit 2
export B=${B:-build}
run=$B/bin/softnic-run
name=rdma_core.sh
build=${1:-}
[ -e "$build/lib/libibverbs.so.1" ] && [ -x "$build/bin/ibv_rc_pingpong" ] || {
	echo "rdma_core.sh: no build of rdma-core given"
	exit 77
}
build=$(cd "$build" && pwd)
src=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LD_LIBRARY_PATH=$build/lib PATH=$build/bin:$PATH
echo "rdma_core.sh: rdma-core $(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' "$src/CMakeLists.txt") of $build"
form=${2:-long}
set --
. tests/lib/pair.sh
# The tests of the short form: features that newer versions add or implement differently, for
# example dedicated UARs.
python_tests=(test_mlx5_devx test_mlx5_devx_async_events test_mlx5_cq test_mlx5_uar test_cq test_mr test_srq)
unit_tests=(uar uar_shared umem e2e_handlers verbs_events)
ldd "$B/tests/test_export" | grep -q "libmlx5.so.1 => $build/lib/" ||
	complain "the programs do not load the libraries of $build"

if [ "$form" = short ]; then
	units=("${unit_tests[@]/#/$B/tests/test_}")
else
	python_tests=() units=()
	tests/consumers/perftest.sh || [ $? = 77 ] || bad=1
fi
tests/verbs.sh || bad=1
PYTHONPATH=$build/python PYVERBS_TESTS=$src/tests tests/consumers/pyverbs.sh "${python_tests[@]}" || bad=1
tests/run-unit.sh "${units[@]}" >"$tmp/unit" || complain "unit tests" unit
echo "$name: unit tests: $(tail -n 1 "$tmp/unit")"
# pair() appends the server's address to the client's command, which sh passes on with -c.
for handler in 1 2 6; do
	pair "put_bw -p $handler" sh -c 'exec "$0" -g host -d mlx5_0 -p "$1" -P "$2" ${3:+-c "$3"}' \
		"$B/bin/gpunetio_verbs_put_bw" $handler PORT || continue
	echo "$name: put_bw -p $handler: $(grep -h -o 'Validation.*' "$tmp/server")"
	grep -q 'Validation successful' "$tmp/server" || complain "put_bw -p $handler: wrong data" server
done
exit $bad
