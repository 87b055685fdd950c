#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs rdma-core's unmodified Python tests (package python3-pyverbs) on the software NIC and
# compares the outcomes with pyverbs.list. Other versions than the list's may have other tests.
# usage: pyverbs.sh [--pcap FOLDER] [module[.Class[.test]]...]
#   PYVERBS_LOG: file that receives the outcome and the traceback of every test
#   PYVERBS_TESTS: folder of the tests of another rdma-core version (see rdma_core.sh)
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
run=$B/bin/softnic-run
python=/usr/bin/python3 # has the distribution's Python packages
docs=${PYVERBS_TESTS:-/usr/share/doc/rdma-core/tests}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
options=(--list tests/consumers/pyverbs.list --log "${PYVERBS_LOG:-$tmp/log}" --dev mlx5_0)

if [ "${1:-}" = --pcap ]; then
	mkdir -p "$2"
	options+=(--pcap "$2")
	shift 2
fi
listed=$(sed -n 's/.*tests of rdma-core \([0-9]*\).*/\1/p' tests/consumers/pyverbs.list)
version=$(dpkg-query -W -f '${Version}' python3-pyverbs 2>/dev/null)
[ -z "${PYVERBS_TESTS:-}" ] ||
	version=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' "$PYVERBS_TESTS/../CMakeLists.txt")
version=${version%%.*}
options+=(--listed "$listed" --version "${version:-0}")
if [ ! -f "$docs/run_tests.py" ]; then # container images omit /usr/share/doc
	(cd "$tmp" && apt-get -qq download python3-pyverbs && dpkg -x ./*.deb .) >/dev/null 2>&1
	docs=$tmp$docs
fi
"$python" -c 'import pyverbs, scapy' 2>/dev/null && [ -f "$docs/run_tests.py" ] || {
	echo "pyverbs.sh: rdma-core's Python tests not found (packages python3-pyverbs, python3-scapy)"
	exit 77
}
mkdir "$tmp/tests"
cp "$docs"/*.py* "$tmp/tests/"
gunzip -q "$tmp"/tests/*.gz 2>/dev/null
# Newer versions of the tests get the net interface from the rdma tool, which queries the
# kernel and finds no device. This replacement returns an empty list, after which the tests
# read sysfs as older versions do.
mkdir "$tmp/bin"
printf '#!/bin/sh\necho "[]"\n' >"$tmp/bin/rdma"
chmod +x "$tmp/bin/rdma"
export PATH=$tmp/bin:$PATH

gid=$(timeout 30 "$run" -- ibv_devinfo -v | sed -n 's/.*GID\[ *\([0-9]*\)\]:.*::ffff:.*RoCE v2.*/\1/p' | head -n 1)
# one test registers more memory than the copy engine accepts
timeout 280 "$run" --dma-max 21 -- "$python" tests/consumers/run_pyverbs.py "${options[@]}" --gid "${gid:-1}" \
	"$tmp/tests" "$@"
