# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts that run kernels of another project on Ethernet queues, with a driver of
# tests/consumers. The including script runs at the top of the repository and sets name (its own, for
# messages) and checkout. Sets objects to a folder that is removed at the end, and bad to 0.
# shellcheck disable=SC2154 # the including script's variables
# shellcheck disable=SC2034 # the including script reads checkout and bad

B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
bad=0
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh
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

# Writes headers that include another one.
replace_headers() { # folder, the header that they include, their names
	local h
	for h in "${@:3}"; do
		mkdir -p "$(dirname "$1/$h")"
		echo "#include \"$PWD/$2\"" >"$1/$h"
	done
}

# Compiles files of kernels (.cu) and of C++, with the options in the array options and the standard
# $std: for CPU threads into $objects/cpu/driver, with headers of $objects/cuda in place of CUDA's, and
# with nvcc into $objects/gpu/driver.
build_both() { # files
	local f part libs=("$B"/lib/libgdaki_{flow,eth,doca}.a "$B/lib/libgdaki.a" -lmlx5 -libverbs -lnuma -ldl -lpthread)
	local all=("-std=$std" -O2 -w "${options[@]}" -Iexamples/common "-I$B/include-doca" "-I$B/include")
	mkdir -p "$objects/cpu" "$objects/gpu"
	cuda_headers "$objects/cuda"
	for f; do
		[ -z "${GPU_ONLY:-}" ] || break
		if [[ $f == *.cu ]]; then
			tests/consumers/cpu_launch.py "$f" >"$objects/cpu/$(basename "$f").cpp" || bad=1
		else
			echo "#include \"$(realpath "$f")\"" >"$objects/cpu/$(basename "$f").cpp"
		fi
		try_compile g++ "-I$objects/cuda" "-I$(dirname "$f")" "${all[@]}" -pthread -DGDK_WARP=32 \
			-c -o "$objects/cpu/$(basename "$f").o" "$objects/cpu/$(basename "$f").cpp"
	done
	arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
	for f; do
		[ -n "$NVCC" ] || { echo "$name: no nvcc: not compiled for a GPU"; break; }
		if [[ $f == *.cu ]]; then
			try_compile "$NVCC" "${all[@]}" "-arch=sm_${arch:-90}" -c -o "$objects/gpu/$(basename "$f").o" "$f"
		else
			try_compile g++ "${all[@]}" "-I$cuda/include" "-I$cuda/include/cccl" -c -o "$objects/gpu/$(basename "$f").o" "$f"
		fi
	done
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
