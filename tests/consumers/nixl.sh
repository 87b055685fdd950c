#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Builds the GPUNETIO plugin of NIXL 1.4.0 and NIXL's test of it from an unchanged checkout, against
# gdaki's archives, the libraries of the wheel nixl-cu13 1.4.0 and the headers of Abseil 20250814.1.
# Checks that gdaki's archives define every function of DOCA that the plugin calls, that none of them
# only returns an error (error_only.py), and that the plugin exports none of them. If this Python can
# load the wheel, NIXL must find the plugin and report its parameters.
# usage: nixl.sh NIXL WHEEL ABSEIL
#	NIXL: checkout of ai-dynamo/nixl, tag v1.4.0; WHEEL: the file
#	nixl_cu13-1.4.0-*.whl; ABSEIL: checkout of abseil/abseil-cpp, tag 20250814.1
#   OUT        folder that gets libplugin_GPUNETIO.so and nixl_gpunetio_stream_test
#   CUDA_HOME  folder of CUDA (/usr/local/cuda);  CUDA_ARCH: architectures (sm_90)
# Exit status 77: one of the three is missing, or nvcc.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda} arch=${CUDA_ARCH:-sm_90}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
nixl=${1:-} wheel=${2:-} absl=${3:-}
plugin=$nixl/src/plugins/gpunetio
. tests/lib/checkout.sh

skip() {
	echo "nixl.sh: $1"
	exit 77
}
[ -f "$plugin/gpunetio_plugin.cpp" ] || skip "no checkout of ai-dynamo/nixl given"
[[ -f $wheel && $wheel == *nixl_cu13-1.4.0-*.whl ]] || skip "no wheel nixl-cu13 1.4.0 given"
[ -f "$absl/absl/base/config.h" ] || skip "no checkout of abseil/abseil-cpp given"
[ -n "$NVCC" ] || skip "nvcc not found"
[ "$(sed -n 's/^#define ABSL_LTS_RELEASE_\(VERSION\|PATCH_LEVEL\) //p' "$absl/absl/base/config.h" | paste -sd.)" = \
	20250814.1 ] || skip "$absl: not Abseil 20250814.1, which the wheel contains"
tree=$(checkout_tree "$nixl" src/plugins/gpunetio)
[ "$tree" = f1d10f4673f63cb3998dea10f4bf686fb8957563 ] ||
	skip "$nixl: the plugin is not that of v1.4.0 (tree $tree)"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
out=${OUT:-$tmp/out}
bad=0
start=$SECONDS
fail() {
	echo "nixl.sh: $1"
	[ ! -s "$tmp/err" ] || head -n 20 "$tmp/err" | sed 's/^/    /'
	bad=1
}

changed=$(git -C "$nixl" status --porcelain -- src test 2>/dev/null)
[ -z "$changed" ] || { fail "the checkout was changed: $changed"; exit 1; }
echo "nixl: commit $(checkout_commit "$nixl"), plugin $tree"
echo "nixl: tree of src $(checkout_tree "$nixl" src), of test $(checkout_tree "$nixl" test)"
echo "abseil: commit $(checkout_commit "$absl"), tree of absl $(checkout_tree "$absl" absl)"
sha256sum "$wheel" | sed "s|^|wheel: |"
mkdir -p "$out" "$tmp/o" "$tmp/wheel"
python3 -m zipfile -e "$wheel" "$tmp/wheel" || { fail "cannot unpack the wheel"; exit 1; }
libs=$tmp/wheel/.nixl_cu13.mesonpy.libs

# ---- compile ----
inc=("-I$B/include-doca" "-I$B/include" "-I$absl" "-I$cuda/include" "-I$plugin")
for d in src/api/cpp src/api/cpp/backend src/infra src/core src/core/telemetry src/utils src/utils/serdes; do
	inc+=("-I$nixl/$d")
done
gpu=("$NVCC" ${CUDAHOSTCXX:+-ccbin "$CUDAHOSTCXX"} -std=c++20 "-arch=$arch" -Xcompiler -fPIC "${inc[@]}")
{
	for f in "$plugin"/*.cpp "$plugin"/verbs/*.cpp; do
		printf '%q ' g++ -std=c++20 -O2 -fPIC -DDOCA_ALLOW_EXPERIMENTAL_API "${inc[@]}" -c -o \
			"$tmp/o/$(basename "$f").o" "$f"
		echo
	done
	printf '%q ' "${gpu[@]}" -c -o "$tmp/o/kernels.o" "$plugin/gpunetio_kernels.cu"
	echo
	printf '%q ' "${gpu[@]}" -DHAVE_CUDA -c -o "$tmp/test.o" \
		"$nixl/test/unit/plugins/gpunetio/nixl_gpunetio_stream_test.cu"
	echo
} | xargs -d '\n' -P "$(nproc)" -I{} sh -c '{} || echo "failed: $1"' _ {} >"$tmp/log" 2>&1
if grep -q '^failed:' "$tmp/log"; then
	grep -E 'error' "$tmp/log" >"$tmp/err"
	fail "the sources do not compile"
	exit 1
fi

# ---- link ----
link=(g++ "-Wl,--no-undefined" "-Wl,-rpath-link,$tmp/wheel/nixl_cu13.libs")
driver=$(find -L "$cuda/lib64" -name libcuda.so | head -n 1) # has no functions, for linking only
nv=("-L$cuda/lib64" "-L${driver%/*}" -lcudart -lcuda)
so=$out/libplugin_GPUNETIO.so
"${link[@]}" -shared -o "$so" "$tmp"/o/*.o "-L$B/lib" -lgdaki_doca -lgdaki "-L$libs" -lnixl_build -lserdes \
	-lnixl_common "${nv[@]}" -lmlx5 -libverbs -lnuma -ldl -lpthread 2>"$tmp/err" ||
	{ fail "the plugin does not link"; exit 1; }
"${link[@]}" -o "$out/nixl_gpunetio_stream_test" "$tmp/test.o" "-L$libs" -lnixl -lnixl_build -lserdes -lstream \
	-lnixl_common -lnixl_test_utils "${nv[@]}" -ldl -lpthread 2>"$tmp/err" || fail "NIXL's test does not link"
seconds=$((SECONDS - start))
[ $seconds -lt 60 ] || echo "nixl.sh: the build took $seconds s, expected less than 60"

# ---- symbols ----
nm -u "$tmp"/o/*.o | awk '$2 ~ /^(doca|gdk)_/ { print $2 }' | sort -u >"$tmp/called"
nm --defined-only "$so" | awk '{ print $3 }' | sort -u | comm -23 "$tmp/called" - >"$tmp/err"
[ ! -s "$tmp/err" ] || fail "not defined by gdaki's archives:"
nm -D "$so" | awk '$NF ~ /^(doca|gdk)_/ { print $NF }' >"$tmp/err"
[ ! -s "$tmp/err" ] || fail "the plugin exports or imports:"
tests/consumers/error_only.py "$so" "$tmp/called" >"$tmp/err" || fail "only return an error:"
nm -D --defined-only "$so" | grep -q ' nixl_plugin_init$' || fail "nixl_plugin_init is not exported"

# ---- load, with the driver or, without one, the library that CUDA has for linking ----
mkdir "$tmp/cuda"
ldconfig -p | grep -q 'libcuda\.so\.1 ' || ln -s "$driver" "$tmp/cuda/libcuda.so.1"
LD_LIBRARY_PATH=$tmp/cuda:$cuda/lib64 NIXL_PLUGIN_DIR=$out timeout 60 \
	tests/consumers/nixl_load.py "$tmp/wheel" >"$tmp/load" 2>"$tmp/err"
case $? in
0) sed 's/^/nixl.sh: /' "$tmp/load" ;;
77) echo "nixl.sh: the wheel is for another version of Python, the plugin was not loaded" ;;
*) fail "NIXL does not load the plugin:" ;;
esac

[ $bad != 0 ] || echo "nixl.sh: $(wc -l <"$tmp/called") functions of DOCA, built in $seconds s"
exit $bad
