# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts that run device code of another project on gdaki. The including script
# runs at the top of the repository and sets name (its own, for messages), tmp (a folder), inc
# (an array of compiler options) and driver (a .cu file of tests/consumers). consume compiles
# the driver, which includes the other project's headers, with g++ and runs it on CPU threads
# and the software NIC. If there is nvcc, it compiles the driver with nvcc too, and if there is
# a GPU, runs it there. The arguments of consume are doorbell handlers, each with optional
# options of softnic-run ("2,--dbrec-only"), and after -- options of the compilers. Sets bad
# to 1 after a failure.
# shellcheck shell=bash
# shellcheck disable=SC2154 # the including script sets name, tmp, inc and driver
# shellcheck disable=SC2034 # the including script reads bad

# Packages that a machine with a GPU may lack (tests/gpu/fetch-deps).
if [ -d .gpu-deps ]; then
	DIR=$tmp
	. tests/gpu/env.sh
	use_debs
fi
bad=0
cxx=${CXX:-g++}

fail() { # text, log
	echo "$name: $1"
	tail -n 20 "$2" | sed 's/^/    /'
	bad=1
}

# Compiles the objects that both programs link, and sets libs to gdaki and rdma-core.
host_objects() {
	for f in tests/consumers/rig tests/lib/e2e; do
		gcc -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Werror -I"$B/include" -c \
			-o "$tmp/$(basename $f).o" $f.c || return 1
	done
	libs=$(make --no-print-directory -s link-line B="$B")
}

# Succeeds if the log has no warning about gdaki's headers or the driver. Warnings about the
# other project's headers do not count.
clean() {
	! grep -E "(gpunetio/[^ ]*|^${driver}[^ ]*) (error|warning)" "$tmp/log"
}

# Empty files replace the CUDA headers that the projects include; cuda_cpu.h defines what they
# need of CUDA, and PTX instructions as macros.
cpu_build() { # program, options
	local out=$1
	shift
	mkdir -p "$tmp/cuda_cpu/cuda"
	for h in cuda.h cuda_runtime.h cuda_fp16.h cuda_bf16.h cuda_fp8.h cooperative_groups.h \
		cuda/atomic; do
		: >"$tmp/cuda_cpu/$h"
	done
	# shellcheck disable=SC2086 # a list of libraries
	$cxx -x c++ -std=c++17 -O1 -g -Wall -Wextra -Wno-uninitialized -Wno-maybe-uninitialized \
		"$@" "${inc[@]}" -I"$B/include" -Itests/consumers -I"$tmp/cuda_cpu" \
		-c -o "$out.o" "$driver" >"$tmp/log" 2>&1 && clean &&
		$cxx -pthread -o "$out" "$out.o" "$tmp/rig.o" "$tmp/e2e.o" $libs >>"$tmp/log" 2>&1
}

gpu_build() { # program, options
	local out=$1
	shift
	"$nvcc" -std=c++17 -O3 -arch="sm_${arch:-90}" "$@" "${inc[@]}" -I"$B/include" \
		-Itests/consumers -c -o "$out.o" "$driver" >"$tmp/log" 2>&1 || return 1
	clean || return 1
	[ -n "$gpu" ] || return 0
	# shellcheck disable=SC2046 # a list of libraries
	"$nvcc" -arch="sm_${arch:-90}" -o "$out" "$out.o" "$tmp/rig.o" "$tmp/e2e.o" \
		$(make --no-print-directory -s link-line B="$B") >>"$tmp/log" 2>&1
}

run_driver() { # where (for messages), handler and options of softnic-run, program, options
	local where=$1 how=$2
	shift 2
	# shellcheck disable=SC2046 # a list of options
	timeout 100 "$B/bin/softnic-run" --strict $(cut -s -d, -f2- <<<"$how" | tr , ' ') -- \
		"$@" -p "${how%%,*}" >"$tmp/out" 2>&1 </dev/null ||
		fail "$where, handler $how: exit $?" "$tmp/out"
	grep -E 'are right$' "$tmp/out" | sed "s/^/$name: $where, handler $how: /"
}

consume() { # handlers; options of the compilers after --
	local handlers=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do handlers+=("$1"); shift; done
	shift
	nvcc=${NVCC:-$(command -v nvcc || true)}
	gpu=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0 2>/dev/null)
	arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
	host_objects || { bad=1; return; }
	for warp in 1 32; do
		if cpu_build "$tmp/on_cpu" -DGDK_WARP=$warp "$@"; then
			for h in "${handlers[@]}"; do
				run_driver "CPU threads, warps of $warp" "$h" "$tmp/on_cpu"
			done
		else
			fail "g++" "$tmp/log"
		fi
	done
	[ -n "$nvcc" ] || { echo "$name: nvcc not found"; return; }
	if ! gpu_build "$tmp/on_gpu" "$@"; then
		fail "nvcc" "$tmp/log"
	elif [ -n "$gpu" ]; then
		export CUDA_MODULE_LOADING=EAGER
		for mem in cpu_gpu gpu; do
			for h in "${handlers[@]}"; do
				GDAKI_QUEUE_MEM=$mem run_driver "GPU, queues in $mem" "$h" \
					"$tmp/on_gpu" -g "$gpu"
			done
		done
	else
		echo "$name: compiled by nvcc for sm_${arch:-90}; no GPU found"
	fi
}
