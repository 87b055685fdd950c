#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Builds NVIDIA's gpunetio_verbs samples, gpunetio_dma_memcpy and gpunetio_rdma_client_server_write
# (NVIDIA-DOCA/doca-samples, tag 3.3.0), hosts and kernels unchanged, with gdaki-doca, and runs server
# and client of each on the software NIC. The SDK's parser of arguments, which gdaki does not have, is
# replaced by doca_argp/doca_argp.c.
#
# g++ compiles the kernels for CPU threads (GPU "host", cudart_cpu.h). If nvcc is installed, it
# compiles them too, and they also run on a GPU if there is one.
#
# The bandwidth samples compare all data and print a verdict. In a latency sample, each side waits
# for the exact value of the other side in each iteration. Each run must end with exit status 0 on
# both sides, print 10 sizes and print the verdict. The RDMA sample prints the start of each part of
# its four buffers and the immediate values and connections of its receives; all must be right.
# gpunetio_dma_memcpy is one process: it prints the text that the CPU copied to the GPU and the text
# that the kernel copied back.
#
# usage: doca_samples.sh CHECKOUT	(a work tree, or a git directory without one)
#   CUDA_HOME  CUDA's folder (/usr/local/cuda)
#   SAMPLES    names without gpunetio_verbs_ or gpunetio_ (all)
#   LONG       also runs the samples with their default numbers of threads and iterations
#   GPU_ONLY   does not run them on CPU threads
# Exit status 77: no such checkout was given.
set -u
# The samples listen on TCP port 2000: a network namespace of their own keeps others away.
if [ -z "${GDAKI_SAMPLES_NETNS:-}" ] && command -v ip >/dev/null && unshare -n true 2>/dev/null; then
	GDAKI_SAMPLES_NETNS=1 exec unshare -n "$0" "$@"
fi
[ -z "${GDAKI_SAMPLES_NETNS:-}" ] || ip link set lo up
checkout=$(cd "${1:-/nonexistent}" 2>/dev/null && pwd)
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
cuda=${CUDA_HOME:-/usr/local/cuda}
NVCC=${NVCC-$(command -v "$cuda/bin/nvcc")}
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
# shellcheck source=tests/lib/checkout.sh
. tests/lib/checkout.sh
# shellcheck source=tests/lib/cpu_cuda.sh
. tests/lib/cpu_cuda.sh
commit=$(checkout_commit "${checkout:-/nonexistent}")
if [ -f "$checkout/HEAD" ] && [ -d "$checkout/objects" ]; then
	git -C "$checkout" archive HEAD samples | tar -x -C "$tmp"
	checkout=$tmp
fi
src=$checkout/samples
[ -f "$src/doca_gpunetio/verbs_common.h" ] || {
	echo "doca_samples.sh: no checkout of NVIDIA-DOCA/doca-samples given"
	exit 77
}
grep -q doca_gpu_verbs_create_qp_hl "$src/doca_gpunetio/verbs_common.h" || {
	echo "doca_samples.sh: the checkout is older than 3.3.0"
	exit 77
}
# shellcheck disable=SC2034 # env.sh reads it
DIR=$tmp
# shellcheck source=tests/gpu/env.sh
. tests/gpu/env.sh
use_debs
samples=${SAMPLES:-put_bw get_bw write_bw put_signal_bw put_counter_bw twosided_bw write_lat put_signal_lat put_counter_lat
	dma_memcpy rdma_client_server_write}
read -ra parts < <(sed -n 's/^SDK_PARTS := //p' Makefile)
libs=("${parts[@]/#/$B/lib/libgdaki_}")
libs=("${libs[@]/%/.a}" "$B/lib/libgdaki_doca.a" "$B/lib/libgdaki.a")
bad=0
declare -A failed runs

complain() { # sample, what, file of which to print the end
	echo "doca_samples.sh: $1: $2"
	[ -z "${3:-}" ] || tail -n 12 "$3" | sed 's/^/    /'
	failed[$1]=1
	bad=1
}

# ---- build ----

compile() { # sample, command
	"${@:2}" >"$tmp/err" 2>&1 || {
		complain "$1" "${*: -1} does not compile"
		grep -E 'error|undefined' "$tmp/err" | head -n 12 | sed 's/^/    /'
	}
}

# dma_memcpy polls a variable that is not volatile until the copy has changed it. An optimizing compiler
# loads it once only.
host() { # sample, folder of the objects, sources
	local opt=-O1
	[ "$1" != dma_memcpy ] || opt=-O0
	for file in "${@:3}"; do
		compile "$1" gcc -std=gnu11 $opt -g -D_GNU_SOURCE -DDOCA_ALLOW_EXPERIMENTAL_API \
			-Werror=implicit-function-declaration -Werror=incompatible-pointer-types -Werror=int-conversion \
			"${inc[@]}" -c -o "$2/$(basename "$file" .c).o" "$file"
	done
}

folder() { # sample: its name with the prefix
	case $1 in
	dma_* | rdma_*) echo "gpunetio_$1" ;;
	*) echo "gpunetio_verbs_$1" ;;
	esac
}

build() { # folder, folder of CUDA's headers, function that compiles a kernel, libraries of CUDA
	local s name more base dir=$src/doca_gpunetio
	base=("-I$src" "-I$dir" -Itests/consumers/doca_argp "-I$B/include-doca" "-I$B/include" "-I$2")
	inc=("${base[@]}")
	mkdir -p "$1/common"
	host common "$1/common" "$dir"/verbs_*.c tests/consumers/doca_argp/doca_argp.c
	host common "$tmp" "$src/common.c" # only the DMA and RDMA samples need it
	for s in $samples; do
		name=$(folder "$s")
		mkdir "$1/$s"
		inc=("-I$dir/$name" "${base[@]}")
		more=("$1"/common/*.o)
		[[ $s != dma_* && $s != rdma_* ]] || more=("$tmp/common.o" "$1/common/doca_argp.o")
		[[ $s != rdma_* ]] || host "$s" "$1/$s" "$dir/rdma_common.c"
		# These two allocate GPU memory that the CPU can access, which needs GDRCopy.
		if [[ $s == dma_* || $s == rdma_* ]] && [ -n "$4" ] && [ ! -e /dev/gdrdrv ]; then
			host "$s" "$1/$s" tests/consumers/no_gdrcopy.c
			more+=("-Wl,--wrap=gdk_doca_gpu_mem_alloc")
		fi
		host "$s" "$1/$s" "$dir/$name"/{host/,}*.c
		$3 "$s" "$dir/$name/device/${name}_kernel.cu" "$1/$s/kernel.o"
		# shellcheck disable=SC2086 # a list of libraries
		compile "$s" g++ -pthread -o "$1/$s/$s" "$1/$s"/*.o "${more[@]}" "${libs[@]}" \
			$4 -lmlx5 -libverbs -lnuma -ldl -lpthread
	done
	echo "doca_samples.sh: built ${samples// /, } with headers of $2"
}

# shellcheck disable=SC2317 # build calls the two functions
# A warp has 32 CPU threads: at warp scope, the kernels let lane 31 wait.
cpu_kernel() { # sample, source, object
	tests/consumers/cpu_launch.py "$2" >"$tmp/$1.cpp" || complain "$1" "a launch is not understood"
	compile "$1" g++ -std=c++17 -O2 -pthread -w -DGDK_WARP=32 -DDOCA_ALLOW_EXPERIMENTAL_API "${inc[@]}" -c -o "$3" "$tmp/$1.cpp"
}

# shellcheck disable=SC2317
gpu_kernel() { # sample, source, object
	compile "$1" "$NVCC" -std=c++17 -arch=sm_"${cap:-90}" -DDOCA_ALLOW_EXPERIMENTAL_API "${inc[@]}" -c -o "$3" "$2"
}

# ---- runs ----

listens() {
	grep -q '^ *[0-9]*: [0-9A-F]*:07D0 [0-9A-F]*:0000 0A ' /proc/net/tcp
}

start() { # folder, sample, GPU, options
	local gpu=-g
	[[ $2 != rdma_* ]] || gpu=-gpu
	exec timeout -k 5 "$limit" "$B/bin/softnic-run" -- "$1/$2/$2" -d mlx5_0 $gpu "$3" "${@:4}"
}

# The server prints "Buffer N -> offset 0: 1111 | offset 128: 1111" before and after its kernel. Two
# threads send the two parts of an odd buffer, in any order.
rdma_verdict() {
	local n parts
	for n in 0 1 2 3; do
		parts=$(sed -n "s/.*Buffer $n -> offset 0: \([0-9a-f]*\) | offset 128: \([0-9a-f]*\).*/\1 \2/p" "$tmp/server" | tail -n 1)
		case $((n % 2)):$parts in
		?:"2222 3333" | 1:"3333 2222") ;;
		*) return 1 ;;
		esac
		grep -q -E "Recv 2 ops completed with immediate values ($n and $((n + 1))|$((n + 1)) and $n)! Connections 0 and 0" "$tmp/server" || return 1
	done
	grep -q 'completed 4 RDMA commits on connection 0' "$tmp/client"
}

verdict() { # sample: which side prints it
	case $1 in
	get_bw) grep -q 'Validation successful! Data received correctly from server' "$tmp/client" ;;
	rdma_*) rdma_verdict ;;
	*_bw) grep -qi 'validation successful! Data received correctly from client' "$tmp/server" ;;
	*) true ;;
	esac
}

# Prints what a side printed. In a latency sample, a side waits for the first byte of a message only, and
# destroys its queue pair after the last message. If packets of that message are late, the sender finds no
# peer to acknowledge them: one error, in the last size.
peer_gone() { # sample, side
	case $1 in
	*_lat) sed '/^Error CQE!$/{N;s/^Error CQE!\n\( 16384 \)/\1/}' "$tmp/$2" ;;
	*) cat "$tmp/$2" ;;
	esac
}

run() { # folder, sample, GPU, options of both sides
	local s=$2 what="$2 -g ${*:3}" i rc lines
	[ -x "$1/$s/$s" ] || return
	runs[$s]=$((${runs[$s]:-0} + 1))
	! listens || { complain "$s" "TCP port 2000 is in use"; return; }
	(start "$@") >"$tmp/server" 2>&1 &
	server=$!
	for ((i = 0; i < 300; i++)); do
		listens || ! kill -0 "$server" 2>/dev/null && break
		sleep 0.1
	done
	(start "$@" -c 127.0.0.1) >"$tmp/client" 2>&1
	rc=$?
	[ $rc = 0 ] || complain "$s" "the client of $what: exit status $rc" "$tmp/client"
	case $s in
	twosided_bw | *_lat | rdma_*) ;;
	*) kill -INT "$(pgrep -P "$server")" 2>/dev/null ;; # the child of timeout; its server waits for this
	esac
	wait "$server"
	rc=$?
	server=
	[ $rc = 0 ] || complain "$s" "the server of $what: exit status $rc" "$tmp/server"
	verdict "$s" || complain "$s" "$what prints no verdict that all data is right" "$tmp/server"
	! grep -h -E 'Error CQE|Validation error|Error: ' <(peer_gone "$s" server) <(peer_gone "$s" client) ||
		complain "$s" "$what reports an error"
	[[ $s != rdma_* ]] || return
	lines=$(grep -c -E '^ [0-9]+ ' "$tmp/client")
	[ "$lines" = 10 ] || complain "$s" "$what prints $lines sizes" "$tmp/client"
}

# Without a copy engine the sample fails: it does not permit remote writes to its memory.
run_dma() { # folder, GPU
	local out=$tmp/dma.out
	[ -x "$1/dma_memcpy/dma_memcpy" ] || return
	runs[dma_memcpy]=$((${runs[dma_memcpy]:-0} + 1))
	timeout -k 5 "$limit" "$B/bin/softnic-run" --strict --stats -- "$1/dma_memcpy/dma_memcpy" -g "$2" -n 5043:00:01.0 >"$out" 2>&1 ||
		complain dma_memcpy "exit status $?" "$out"
	grep -q 'value after the memcpy: This is a sample piece of text from CPU' "$out" &&
		grep -q 'CPU received message from GPU: This is a sample piece of text from GPU' "$out" ||
		complain dma_memcpy "the data is not copied" "$out"
	grep -q '^  dma_copies  *2$' "$out" || complain dma_memcpy "not two copies by the engine" "$out"
}

# All handlers and scopes of a sample. A kernel of the server takes turns with that of the client if
# both run on one GPU.
run_all() { # folder, GPU, iterations of bandwidth samples, and of those whose server has a kernel
	local s h gid=(-gid 3) # RoCE v2 with an IPv4 address
	for s in $samples; do
		case $s in
		dma_memcpy) run_dma "$1" "$2" ;;
		twosided_bw)
			for h in "-e 0" "-e 1" "-x 1" "-x 1 -e 1"; do
				# shellcheck disable=SC2086 # options
				run "$1" $s "$2" "${gid[@]}" -t 64 -i "$4" $h
			done
			;;
		*_bw)
			for h in 0 1 2 6; do
				[ "$h:$s" = 6:put_counter_bw ] || run "$1" "$s" "$2" "${gid[@]}" -t 64 -i "$3" -n $h
			done
			[ "$s" = write_bw ] || run "$1" "$s" "$2" "${gid[@]}" -t 64 -i "$3" -e 1
			;;
		rdma_*)
			run "$1" "$s" "$2" "${gid[@]}"
			run "$1" "$s" "$2" # the default GID of the library
			;;
		*_lat)
			for h in 0 1 2; do
				run "$1" "$s" "$2" "${gid[@]}" -i "$4" -n $h
			done
			# The two queue pairs of put_counter_lat ring one register: the software NIC loses a
			# doorbell that the next one overwrites, and needs 20 ms to find its WQE.
			[ "$s" = put_signal_lat ] || run "$1" "$s" "$2" "${gid[@]}" -i 4 -r 1
			;;
		esac
	done
	[[ " $samples " != *" put_bw "* ]] || run "$1" put_bw "$2" -t 64 -i "$3" # GID 0, the samples' default
}

limit=60
cuda_headers "$tmp/cuda"
if [ -z "${GPU_ONLY:-}" ]; then
	build "$tmp/cpu" "$tmp/cuda" cpu_kernel ""
	run_all "$tmp/cpu" host 128 64
fi
if [ -n "${LONG:-}" ] && [ -z "${GPU_ONLY:-}" ]; then
	limit=300
	for s in ${samples/dma_memcpy/}; do
		[[ $s == rdma_* ]] || run "$tmp/cpu" "$s" host -gid 3
	done
fi

if [ -z "$NVCC" ] || [ ! -f "$cuda/include/cuda_runtime_api.h" ]; then
	echo "doca_samples.sh: no nvcc or no headers in $cuda: not compiled for a GPU"
else
	cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 2>/dev/null | tr -d .)
	# CUDA has a libcuda.so to link with for machines without a driver.
	driver=$(find "$cuda/" -name libcuda.so -printf '-L%h ' 2>/dev/null)
	build "$tmp/gpu" "$cuda/include" gpu_kernel "$driver-L$cuda/lib64 -lcuda -lcudart"
	if [ -z "$cap" ]; then
		echo "doca_samples.sh: no GPU: not run on one"
	else
		export CUDA_MODULE_LOADING=EAGER
		run_all "$tmp/gpu" "$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0 | sed s/^0000//)" 1024 64
	fi
fi

echo "doca_samples.sh: NVIDIA-DOCA/doca-samples, commit $commit"
echo "doca_samples.sh: sha256 of the sources: $(cd "$src" && cat doca_gpunetio/{verbs,rdma}_* doca_gpunetio/gpunetio_{verbs_*,dma_memcpy,rdma_client_server_write}/{*.c,*/*} | sha256sum | cut -c 1-64)"
for s in common $samples; do
	verdict=ok
	[ "${runs[$s]:-0}" -gt 0 ] || verdict=built
	[ -z "${failed[$s]:-}" ] || verdict=FAIL
	[ "$s" = common ] && [ $verdict != FAIL ] || printf '%-5s %-24s %s runs\n' $verdict "$s" "${runs[$s]:-0}"
done
exit $bad
