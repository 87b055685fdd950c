#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Runs NIXL's backend GPUNETIO without a GPU: builds the unchanged plugin of NIXL 1.4.0 with kernels
# that CPU threads run (cudart_cpu.h), and transfers between two processes on the software NIC with
# nixl_transfer.py: pool and attached streams, RoCE and InfiniBand, with packet loss.
# usage: nixl_cpu.sh NIXL WHEEL ABSEIL	(as for nixl.sh; WHEEL for this Python)
# Exit status 77: one of the three or numpy is missing, or the wheel is for another Python.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
name=nixl_cpu.sh
. tests/consumers/nixl_inputs.sh
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh
[[ $wheel == *-$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')-* ]] ||
	skip "the wheel is for another version of Python"
python3 -c 'import numpy' 2>/dev/null || skip "NIXL's Python API needs numpy"

bad=0
mkdir -p "$tmp/cuda/cuda" "$tmp/plugin"
unpack_wheel

# ---- build ----
cuda_headers "$tmp/cuda"
: >"$tmp/cuda/cuda/atomic"
cp "$tmp/cuda/cuda.h" "$tmp/cudart.cpp"
tests/consumers/cpu_launch.py "$plugin/gpunetio_kernels.cu" >"$tmp/kernels.cpp" || exit 1
inc+=("-I$tmp/cuda")
build=(g++ -std=c++20 -O1 -fPIC -w -pthread -DDOCA_ALLOW_EXPERIMENTAL_API "${inc[@]}")
compile() { # message, command...
	"${@:2}" >"$tmp/log" 2>&1 && return
	echo "nixl_cpu.sh: $1"
	grep error "$tmp/log" | head -n 12
	exit 1
}
for f in "$plugin"/*.cpp "$plugin"/verbs/*.cpp "$tmp/kernels.cpp"; do
	printf '%q ' "${build[@]}" -c -o "$tmp/o/$(basename "$f").o" "$f"
	echo
done >"$tmp/commands"
compile "the plugin does not compile" xargs -a "$tmp/commands" -d '\n' -P "$(nproc)" -I{} sh -c '{}'
compile "cudart_cpu.h does not compile" "${build[@]}" -shared -Wl,-soname,libcudart.so.13 \
	-o "$tmp/libcudart.so.13" "$tmp/cudart.cpp"
compile "nixl_preload.cpp does not compile" "${build[@]}" -shared -o "$tmp/preload.so" \
	tests/consumers/nixl_preload.cpp -ldl
compile "the plugin does not link" g++ -shared -Wl,--no-undefined "-Wl,-rpath-link,$tmp/wheel/nixl_cu13.libs" \
	-o "$tmp/plugin/libplugin_GPUNETIO.so" "$tmp"/o/*.o "-L$B/lib" -lgdaki_doca -lgdaki "-L$libs" -lnixl_build \
	-lserdes -lnixl_common "$tmp/libcudart.so.13" -lmlx5 -libverbs -lnuma -ldl -lpthread

# ---- run ----
export LD_LIBRARY_PATH=$tmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NIXL_PLUGIN_DIR=$tmp/plugin
side() { # role, address, the peer's address, options of softnic-run --, options of the program
	local nic=()
	local where=("${@:1:3}")
	shift 3
	while [ "$1" != -- ]; do
		nic+=("$1")
		shift
	done
	shift
	NIXL_ADDRESS=${where[1]} LD_PRELOAD=$tmp/preload.so timeout -k 5 100 "$B/bin/softnic-run" --strict \
		--ip "${where[1]}" "${nic[@]}" -- python3 tests/consumers/nixl_transfer.py "${where[@]}" \
		--wheel "$tmp/wheel" --limit 90 "$@" >"$tmp/${where[0]}" 2>&1
}
pair() { # name, as for side
	local label=$1 rc
	shift
	side target 127.0.0.2 127.0.0.3 "$@" &
	side initiator 127.0.0.3 127.0.0.2 "$@"
	rc=$?
	wait $!
	rc="$rc $?"
	if [ "$rc" = "0 0" ] && grep -q '^ok ' "$tmp/initiator" && grep -q '^ok ' "$tmp/target"; then
		echo "nixl_cpu.sh: $label: $(sed -n 's/^ok *//p' "$tmp/initiator")"
		return
	fi
	echo "nixl_cpu.sh: $label: exit status $rc (initiator, target)"
	tail -n 12 "$tmp/initiator" "$tmp/target"
	bad=1
}
# Without queue pairs, which NIXL does not destroy, it must close the NIC and the GPU.
if side alone 127.0.0.2 127.0.0.3 -- && ! grep 'gdaki ERR' "$tmp/alone"; then
	echo "nixl_cpu.sh: an agent without a peer was closed, twice"
else
	echo "nixl_cpu.sh: an agent without a peer:"
	tail -n 12 "$tmp/alone"
	bad=1
fi
small=(--descs 64 --largest "${LARGEST:-65536}" --repeat 1)
pair "pool, RoCE, loss" --loss 0.001 -- "${small[@]}"
NIXL_ATTACH=1 pair "attached, InfiniBand" --link-layer infiniband -- "${small[@]}"
exit $bad
