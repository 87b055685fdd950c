#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles Holoscan's gpu_roce_transceiver (a checkout of nvidia-holoscan/holoscan-sensor-bridge),
# kernels and the host files that call DOCA, unchanged with the headers of gdaki-doca, and checks
# that gdaki's archives define the functions that they call.
# usage: holoscan.sh CHECKOUT	(needs nvcc and the headers of fmt: libfmt-dev, or FMT: their folder)
#   CUDA_HOME  folder of CUDA (/usr/local/cuda);  CUDA_ARCH: architectures (sm_90)
# Exit status 77: there is no such checkout, or nvcc or fmt is missing.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda} arch=${CUDA_ARCH:-sm_90}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
. tests/lib/checkout.sh
src=${1:-}/src dir=${1:-}/src/hololink/operators/gpu_roce_transceiver
skip() {
	echo "holoscan.sh: $1"
	exit 77
}
[ -f "$dir/gpu_roce_transceiver_kernel.cu" ] ||
	skip "no checkout of nvidia-holoscan/holoscan-sensor-bridge given"
[ -n "$NVCC" ] || skip "nvcc not found"
[ -f "${FMT:-/usr/include}/fmt/chrono.h" ] || skip "no headers of fmt in ${FMT:-/usr/include} (libfmt-dev)"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
inc=(-DFMT_HEADER_ONLY "-I$B/include-doca" "-I$B/include" "-I$cuda/include" "-I$src" ${FMT:+"-I$FMT"})
try() { # source, command...
	"${@:2}" >"$tmp/err" 2>&1 && return
	echo "holoscan.sh: $1"
	grep error "$tmp/err" | head -n 12 | sed 's/^/    /'
	bad=1
}

changed=$(git -C "$1" status --porcelain -- src 2>/dev/null)
[ -z "$changed" ] || { echo "holoscan.sh: the checkout was changed: $changed"; exit 1; }
echo "holoscan: commit $(checkout_commit "$1"), tree of gpu_roce_transceiver $(checkout_tree "$1" "${dir#"$1"/}")"
for file in "$dir"/gpu_roce_transceiver{,_doca}.cpp; do
	try "$file" g++ -std=c++17 "${inc[@]}" -c -o "$tmp/$(basename "$file").o" "$file"
done
for file in "$dir"/*.cu; do
	try "$file" "$NVCC" ${CUDAHOSTCXX:+-ccbin "$CUDAHOSTCXX"} -std=c++17 "-arch=$arch" "${inc[@]}" \
		-c -o "$tmp/$(basename "$file").o" "$file"
done
nm --defined-only "$B"/lib/libgdaki.a "$B"/lib/libgdaki_doca.a 2>/dev/null | awk '{ print $NF }' | sort -u >"$tmp/defined"
nm -u "$tmp"/*.o | awk '$2 ~ /^(doca|gdk)_/ { print $2 }' | sort -u >"$tmp/called"
missing=$(comm -23 "$tmp/called" "$tmp/defined")
if [ -n "$missing" ]; then
	echo "holoscan.sh: not defined by gdaki's archives: ${missing//$'\n'/ }"
	bad=1
fi
[ $bad != 0 ] || echo "holoscan.sh: $(wc -l <"$tmp/called") functions of DOCA"
exit $bad
