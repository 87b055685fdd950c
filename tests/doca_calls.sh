#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles tests/doca/calls.c, which calls each Verbs, umem and UAR function of the SDK's interface,
# as C11 and C++17 with gcc, with clang if it is installed, and as CUDA if nvcc is installed. Links
# it, so that each function has a definition. Fails if a function that doca_verbs.h, doca_umem.h,
# doca_uar.h, doca_verbs_bridge.h, doca_verbs_event.h or doca_gpunetio.h declares is not called.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
NVCC=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
inc=("-I$B/include-doca" "-I$B/include")
warn=(-Wall -Wextra -Werror)
libs=("-L$B/lib" -lgdaki_doca -lgdaki -lmlx5 -libverbs -lnuma -ldl -lpthread)

try() { # what, command...
	local what=$1
	shift
	"$@" >"$tmp/err" 2>&1 && return
	echo "doca_calls.sh: $what"
	head -n 20 "$tmp/err" | sed 's/^/    /'
	bad=1
}

cp tests/doca/calls.c "$tmp/calls.cpp"
cp tests/doca/calls.c "$tmp/calls.cu"
try "C11" gcc -std=c11 "${warn[@]}" "${inc[@]}" -o "$tmp/c" tests/doca/calls.c "${libs[@]}"
try "C++17" g++ -std=c++17 "${warn[@]}" "${inc[@]}" -o "$tmp/cpp" "$tmp/calls.cpp" "${libs[@]}"
if command -v clang >/dev/null; then
	try "C11 (clang)" clang -std=c11 "${warn[@]}" "${inc[@]}" -fsyntax-only tests/doca/calls.c
	try "C++17 (clang)" clang++ -std=c++17 "${warn[@]}" "${inc[@]}" -fsyntax-only "$tmp/calls.cpp"
fi
if [ -n "$NVCC" ]; then
	try "CUDA" "$NVCC" ${CUDAHOSTCXX:+-ccbin "$CUDAHOSTCXX"} -std=c++17 -arch=sm_90 \
		-Werror all-warnings "${inc[@]}" -o "$tmp/cu" "$tmp/calls.cu" "${libs[@]}"
else
	echo "doca_calls.sh: nvcc not found, not compiled as CUDA"
fi
# The reference to a function is the name of its symbol: of gdk_doca_ where the header binds it.
try "run" "$tmp/c"

calls=0
while read -r name; do
	calls=$((calls + 1))
	grep -q -w "$name" tests/doca/calls.c && continue
	echo "doca_calls.sh: tests/doca/calls.c does not call $name"
	bad=1
done < <(cat "$B"/include-doca/doca_{verbs,umem,uar,verbs_bridge,verbs_event,gpunetio}.h |
	grep -o -E '\bdoca_[a-z0-9_]+\(' | tr -d '(' | sort -u)
[ $bad != 0 ] || echo "doca_calls.sh: $calls functions"
exit $bad
