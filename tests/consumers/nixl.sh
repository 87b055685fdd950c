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
#   OUT        folder that gets libplugin_GPUNETIO.so, nixl_gpunetio_stream_test and nixl_preload.so
#   CUDA_HOME  folder of CUDA (/usr/local/cuda);  CUDA_ARCH: architectures (sm_90)
# Exit status 77: one of the three is missing, or nvcc.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda} arch=${CUDA_ARCH:-sm_90}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
name=nixl.sh
. tests/consumers/nixl_inputs.sh
[ -n "$NVCC" ] || skip "nvcc not found"
[ "$(sed -n 's/^#define ABSL_LTS_RELEASE_\(VERSION\|PATCH_LEVEL\) //p' "$absl/absl/base/config.h" | paste -sd.)" = \
	20250814.1 ] || skip "$absl: not Abseil 20250814.1, which the wheel contains"
. tests/lib/checkout.sh
tree=$(checkout_tree "$nixl" src/plugins/gpunetio)
[ "$tree" = f1d10f4673f63cb3998dea10f4bf686fb8957563 ] || skip "$nixl: the plugin is not that of v1.4.0"
out=${OUT:-$tmp/out}
bad=0
start=$SECONDS
fail() {
	echo "nixl.sh: $1"
	[ ! -s "$tmp/err" ] || head -n 20 "$tmp/err" | sed 's/^/    /'
	bad=1
}

# The hashes of v1.4.0 in the repository ai-dynamo/nixl.
for pair in src:8bb31b6e077d625d218555deaef450ce0400f31d test:cf79ab6de7b589bf33baafd83cbf7509ea16414d; do
	hash=$(checkout_tree "$nixl" "${pair%:*}")
	[ "$hash" = "${pair#*:}" ] || { fail "the checkout was changed: ${pair%:*} is $hash, v1.4.0 has ${pair#*:}"; exit 1; }
	echo "nixl: ${pair%:*} $hash, as v1.4.0"
done
echo "nixl: src/plugins/gpunetio $tree, as v1.4.0"
echo "abseil: absl $(checkout_tree "$absl" absl)"
sum=$(sha256sum "$wheel")
case ${sum%% *} in # of the wheels on PyPI for Python 3.11 and 3.12
48b8773c3dec5865bddc9573a891acc23615eaa45f4dad149d7d7c82343b5af5 | \
	3e606fbe80c39ce14899726fad0cb0fec53c6bac9f34168492692c4166b2fabb)
	echo "wheel: $sum, as on PyPI" ;;
*) echo "wheel: $sum, not compared with PyPI" ;;
esac
mkdir -p "$out"
unpack_wheel

# ---- compile ----
inc+=("-I$cuda/include")
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
g++ -std=c++20 -O2 -fPIC -shared "${inc[@]}" -o "$out/nixl_preload.so" tests/consumers/nixl_preload.cpp -ldl 2>"$tmp/err" ||
	fail "nixl_preload.cpp does not compile"
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
