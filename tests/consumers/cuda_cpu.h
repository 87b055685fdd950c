/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The CUDA that kernels of NCCL and UCX are written in, for g++: a thread of the
 * GPU is a pthread and a warp of its own, a block is a barrier. Also takes the
 * place of cuda.h, cuda_runtime.h, cuda/atomic and cooperative_groups.h.
 */
#ifndef CONSUMERS_CUDA_CPU_H
#define CONSUMERS_CUDA_CPU_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <thread>
#include <vector>

#define LAUNCH_BLOCKS 2
#define LAUNCH_BLOCK 4
#define LAUNCH_WARP 1

#define CUDA_VERSION 13000
#define NCCL_CHECK_CUDACC 1
#define __device__
#define __host__
#define __global__
#define __shared__ static
#define __forceinline__ inline __attribute__((__always_inline__))

typedef struct CUstream_st *cudaStream_t;
struct ulong2 {
	unsigned long x, y;
};
struct ulonglong2 {
	unsigned long long x, y;
};
struct dim3 {
	unsigned int x, y, z;
};
static thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
static thread_local pthread_barrier_t *cuda_cpu_block;

static inline void __syncthreads() { pthread_barrier_wait(cuda_cpu_block); }
static inline void __syncwarp(unsigned int = ~0u) {}
static inline void __barrier_sync_count(unsigned int, unsigned int) { __syncthreads(); }
static inline unsigned int __activemask() { return 1; }
static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __ffs(unsigned int x) { return __builtin_ffs((int)x); }
static inline unsigned int __fns(unsigned int mask, unsigned int, int) { return mask ? 0 : ~0u; }
template <typename T> T __ldg(const T *p) { return *p; }
template <typename T> T __shfl_sync(unsigned int, T v, int, int = 32) { return v; }
template <typename T> T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
template <typename T, typename U> T atomicCAS(T *p, U want, U v)
{
	T expect = want;


	__atomic_compare_exchange_n(p, &expect, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return expect;
}

namespace cuda
{
enum thread_scope {
	thread_scope_system,
	thread_scope_device,
	thread_scope_block,
	thread_scope_thread
};
namespace std
{
enum memory_order {
	memory_order_relaxed = __ATOMIC_RELAXED,
	memory_order_acquire = __ATOMIC_ACQUIRE,
	memory_order_release = __ATOMIC_RELEASE,
	memory_order_acq_rel = __ATOMIC_ACQ_REL,
	memory_order_seq_cst = __ATOMIC_SEQ_CST
};
}
using namespace cuda::std;

template <typename T, thread_scope = thread_scope_system> struct atomic_ref {
	T *p;

	explicit atomic_ref(T &r) : p(&r) {}
	T load(memory_order o = memory_order_seq_cst) const { return __atomic_load_n(p, o); }
	void store(T v, memory_order o = memory_order_seq_cst) const { __atomic_store_n(p, v, o); }
	bool compare_exchange_strong(T &expect, T v, memory_order) const
	{
		return __atomic_compare_exchange_n(p, &expect, v, false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST);
	}
	T fetch_max(T v, memory_order) const
	{
		T old = load();

		while (old < v && !compare_exchange_strong(old, v, memory_order_seq_cst))
			;
		return old;
	}
};
}

namespace cooperative_groups
{
struct grid_group {
	void sync() { __builtin_trap(); } /* no kernel of ours spans a grid */
};
static inline grid_group this_grid() { return {}; }
}

/* The PTX in their headers, as macros of the assembler: UCX's 16-bit byte swap
 * ("prmt" with a selector of 1) and NCCL's lane of a warp that is one thread. */
__asm__(".macro .reg a b\n.endm\n"
	".macro mov.b32 d s\n.endm\n"
	".macro prmt.b32 d s a b\n\tmovl \\s, \\d\n\tbswapl \\d\n\tshrl $16, \\d\n.endm\n"
	".macro mov.u32 d s\n\txorl \\d, \\d\n.endm\n");

static inline void launch_open(const struct rig *) {}

template <typename Body> void cuda_cpu_run(unsigned int blocks, unsigned int threads, Body body)
{
	::std::vector<pthread_barrier_t> barriers(blocks);
	::std::vector<::std::thread> all;

	for (unsigned int b = 0; b < blocks; b++) {
		pthread_barrier_init(&barriers[b], NULL, threads);
		for (unsigned int t = 0; t < threads; t++)
			all.emplace_back([=, &barriers] {
				threadIdx = { t, 0, 0 };
				blockIdx = { b, 0, 0 };
				blockDim = { threads, 1, 1 };
				gridDim = { blocks, 1, 1 };
				cuda_cpu_block = &barriers[b];
				body();
			});
	}
	for (auto &t : all)
		t.join();
	for (auto &b : barriers)
		pthread_barrier_destroy(&b);
}

#define RUN(kernel, blocks, threads, ...) \
	cuda_cpu_run(blocks, threads, [&] { kernel(__VA_ARGS__); })

#endif
