# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# For scripts that build NIXL's plugin, with the arguments NIXL WHEEL ABSEIL. The including script
# sets name (its own, for messages) and B. Sets nixl, wheel, absl, plugin (the folder of the
# plugin's sources), tmp (a temporary folder with the unpacked wheel in $tmp/wheel), libs (NIXL's
# libraries in it) and the array inc (options for the headers except those of CUDA). Exits with 77 if
# an argument is missing.
# shellcheck shell=bash disable=SC2154 # name and B are the including script's
# shellcheck disable=SC2034 # the including script reads the variables

skip() {
	echo "$name: $1"
	exit 77
}
nixl=${1:-} wheel=${2:-} absl=${3:-}
plugin=$nixl/src/plugins/gpunetio
[ -f "$plugin/gpunetio_plugin.cpp" ] || skip "no checkout of ai-dynamo/nixl given"
[[ -f $wheel && $wheel == *nixl_cu13-1.4.0-*.whl ]] || skip "no wheel nixl-cu13 1.4.0 given"
[ -f "$absl/absl/base/config.h" ] || skip "no checkout of abseil/abseil-cpp given"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/wheel" "$tmp/o"
libs=$tmp/wheel/.nixl_cu13.mesonpy.libs
inc=("-I$B/include-doca" "-I$B/include" "-I$absl" "-I$plugin")
for d in src/api/cpp src/api/cpp/backend src/infra src/core src/core/telemetry src/utils src/utils/serdes; do
	inc+=("-I$nixl/$d")
done

unpack_wheel() {
	python3 -m zipfile -e "$wheel" "$tmp/wheel" || { echo "$name: cannot unpack $wheel"; exit 1; }
}
