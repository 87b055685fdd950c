# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts that run kernels of another project on Ethernet queues, with a driver of
# tests/consumers. The including script runs at the top of the repository, includes cpu_cuda.sh and
# sets name (its own, for messages), B, NVCC, cuda (CUDA's folder) and objects (a folder).
# shellcheck disable=SC2154 # the including script's variables
# shellcheck disable=SC2034 # the including script reads checkout

# shellcheck disable=SC2034 # env.sh reads it
DIR=$objects
# shellcheck source=tests/gpu/env.sh
. tests/gpu/env.sh
use_debs

# Sets checkout to a folder with the given paths, if it is a git directory without a work tree.
work_tree() { # checkout, commit, paths
	[ -f "$1/HEAD" ] && [ -d "$1/objects" ] || return 0
	mkdir "$objects/tree"
	git -C "$1" archive "$2" "${@:3}" 2>/dev/null | tar -x -C "$objects/tree" 2>/dev/null
	checkout=$objects/tree
}

# Compiles a file of kernels and C++ files, with the options in the arrays defs and inc and the standard
# $std: into $objects/cpu/driver for CPU threads, and with nvcc into $objects/gpu/driver.
build_both() { # file of kernels, C++ files...
	local f kernels=$1 part libs=("$B"/lib/libgdaki_{flow,eth,doca}.a "$B/lib/libgdaki.a" -lmlx5 -libverbs -lnuma -ldl -lpthread)
	local all=("-std=$std" -O2 -w "${defs[@]}")
	local lib=(-Iexamples/common "-I$B/include-doca" "-I$B/include")
	shift
	mkdir -p "$objects/cpu" "$objects/gpu"
	cuda_headers "$objects/cuda"
	if [ -z "${GPU_ONLY:-}" ]; then
		tests/consumers/cpu_launch.py "$kernels" >"$objects/kernels.cpp" || bad=1
		for f in "$objects/kernels.cpp" "$@"; do
			try_compile g++ "${all[@]}" -pthread -DGDK_WARP=32 "-I$objects/cuda" "-I$(dirname "$kernels")" "${inc[@]}" "${lib[@]}" \
				-c -o "$objects/cpu/$(basename "$f").o" "$f"
		done
	fi
	if [ -n "$NVCC" ]; then
		arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
		try_compile "$NVCC" "${all[@]}" "-arch=sm_${arch:-90}" "${inc[@]}" "${lib[@]}" -c -o "$objects/gpu/kernels.o" "$kernels"
		for f; do
			try_compile g++ "${all[@]}" "${inc[@]}" "${lib[@]}" "-I$cuda/include" -c -o "$objects/gpu/$(basename "$f").o" "$f"
		done
	else
		echo "$name: no nvcc: not compiled for a GPU"
	fi
	[ "$bad" = 0 ] || exit 1
	for part in cpu gpu; do
		[ -n "$(ls "$objects/$part")" ] || continue
		# CUDA has a libcuda.so to link with for machines without a driver.
		[ $part = cpu ] || libs+=("-L$cuda/lib64" -lcudart "-L$(dirname "$(find "$cuda/" -name libcuda.so | head -n 1)")" -lcuda)
		g++ -o "$objects/$part/driver" "$objects/$part"/*.o "${libs[@]}" >"$objects/err" 2>&1 ||
			{ echo "$name: the driver does not link"; head -n 5 "$objects/err"; exit 1; }
	done
	echo "$name: compiled${NVCC:+, also by nvcc}"
}

# Runs the drivers on the software NIC, with options of softnic-run in the array nic.
run_both() {
	local part gpu
	for part in cpu gpu; do
		[ -x "$objects/$part/driver" ] || continue
		gpu=host
		[ $part = cpu ] || gpu=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0 2>/dev/null)
		[ -n "$gpu" ] || { echo "$name: no GPU: not run on one"; continue; }
		# shellcheck disable=SC2016 # the shell that softnic-run starts has the variable
		CUDA_MODULE_LOADING=EAGER timeout -k 5 200 "$B/bin/softnic-run" --strict --stats "${nic[@]}" -- sh -c \
			'exec "$0" "$(ls "$SOFTNIC_SYSFS/bus/pci/devices" | head -n 1)" "$1"' "$objects/$part/driver" "$gpu" \
			>"$objects/out" 2>&1 || { echo "$name: GPU $gpu: exit status $?"; head -n 20 "$objects/out"; bad=1; continue; }
		echo "$name: GPU $gpu: $(sed -n 's/^ok: //p' "$objects/out")"
	done
}
