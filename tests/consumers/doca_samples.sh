#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles the host sources of NVIDIA's gpunetio_verbs samples (a checkout of
# NVIDIA-DOCA/doca-samples, tag 3.3.0) unchanged with the headers of gdaki-doca, and their kernels if
# nvcc is installed. Checks that gdaki's archives define the functions that they call. The SDK's
# parser of arguments, which gdaki does not have, is declared by doca_argp/doca_argp.h.
# usage: doca_samples.sh CHECKOUT	(CUDA_HOME: folder of the CUDA headers, /usr/local/cuda)
# Exit status 77: no such checkout was given.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
src=${1:-}/samples
[ -f "$src/doca_gpunetio/verbs_common.h" ] || {
	echo "doca_samples.sh: no checkout of NVIDIA-DOCA/doca-samples given"
	exit 77
}
grep -q doca_gpu_verbs_create_qp_hl "$src/doca_gpunetio/verbs_common.h" || {
	echo "doca_samples.sh: the checkout is older than 3.3.0"
	exit 77
}
[ -f "$cuda/include/cuda_runtime_api.h" ] || { echo "doca_samples.sh: no CUDA headers in $cuda"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0 compiled=0
inc=("-I$src" "-I$src/doca_gpunetio" -Itests/consumers/doca_argp "-I$B/include-doca" "-I$B/include" "-I$cuda/include")
try() { # source, command...
	local file=$1
	shift
	compiled=$((compiled + 1))
	"$@" >"$tmp/err" 2>&1 && return
	echo "doca_samples.sh: $file"
	grep -E 'error' "$tmp/err" | head -n 12 | sed 's/^/    /'
	bad=1
}

for file in "$src"/doca_gpunetio/verbs_*.c "$src"/doca_gpunetio/gpunetio_verbs_*/{host/,}*.c; do
	try "$file" gcc -std=gnu11 -D_GNU_SOURCE -DDOCA_ALLOW_EXPERIMENTAL_API \
		-Werror=implicit-function-declaration -Werror=incompatible-pointer-types -Werror=int-conversion \
		"${inc[@]}" -c -o "$tmp/$(basename "$file").o" "$file"
done
if [ -n "$NVCC" ]; then
	for file in "$src"/doca_gpunetio/gpunetio_verbs_*/device/*.cu; do
		try "$file" "$NVCC" -std=c++17 -arch=sm_90 -DDOCA_ALLOW_EXPERIMENTAL_API "${inc[@]}" \
			-c -o "$tmp/$(basename "$file").o" "$file"
	done
else
	echo "doca_samples.sh: nvcc not found, kernels are not compiled"
fi

# The samples define functions whose names begin with doca_, too.
symbols() { # T or U, files
	nm "${@:2}" 2>/dev/null | awk -v t="$1" 'NF > 1 && $(NF - 1) == t { print $NF }' | sort -u
}
symbols T "$B"/lib/libgdaki.a "$B"/lib/libgdaki_doca.a "$tmp"/*.o >"$tmp/defined"
missing=$(symbols U "$tmp"/*.o | grep -E '^(doca|gdk)_' | grep -v '^doca_argp_' | comm -23 - "$tmp/defined")
if [ -n "$missing" ]; then
	echo "doca_samples.sh: not defined by gdaki's archives: ${missing//$'\n'/ }"
	bad=1
fi
echo "doca_samples.sh: $compiled sources"
exit $bad
