/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For g++: the CUDA functions that kernels of NCCL and UCX use and our own kernels do
 * not, in addition to cuda_shim.h. Replaces cuda.h, cuda_runtime.h, cuda/atomic and
 * cooperative_groups.h.
 */
#ifndef CONSUMERS_CUDA_CPU_H
#define CONSUMERS_CUDA_CPU_H

#include "../../examples/common/cuda_shim.h"

#define CUDA_VERSION	  13000
#define NCCL_CHECK_CUDACC 1

#define LAUNCH_WARP   GDK_WARP
#define LAUNCH_BLOCKS 2
#define LAUNCH_BLOCK  (LAUNCH_WARP > 1 ? LAUNCH_WARP : 4)

struct ulong2 {
	unsigned long x, y;
};
struct ulonglong2 {
	unsigned long long x, y;
};

inline void __barrier_sync_count(unsigned int, unsigned int)
{
	__syncthreads();
}
inline unsigned int __fns(unsigned int, unsigned int, int)
{
	__builtin_trap();
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

	explicit atomic_ref(T &r) : p(&r)
	{
	}
	T load(memory_order o = memory_order_seq_cst) const
	{
		return __atomic_load_n(p, o);
	}
	void store(T v, memory_order o = memory_order_seq_cst) const
	{
		__atomic_store_n(p, v, o);
	}
	T fetch_max(T v, memory_order) const
	{
		return atomicMax(p, v);
	}
	bool compare_exchange_strong(T &expect, T v, memory_order) const
	{
		return __atomic_compare_exchange_n(p, &expect, v, false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST);
	}
};
} // namespace cuda

namespace cooperative_groups
{
struct grid_group {
	void sync()
	{
		__builtin_trap();
	} /* no kernel here synchronizes its whole grid */
};
inline grid_group this_grid()
{
	return {};
}
} // namespace cooperative_groups

/* The headers of NCCL and UCX contain PTX, which the assembler translates with these
 * macros: UCX's 16-bit byte swap ("prmt" with selector 1), and NCCL's read of the lane
 * index, which gdk_host_self holds. */
static_assert(offsetof(struct gdk_host_lane, lane) == 20, "as in mov.u32 below");
__asm__(".macro .reg a b\n.endm\n"
	".macro mov.b32 d s\n.endm\n"
	".macro prmt.b32 d s a b\n\tmovl \\s, \\d\n\tbswapl \\d\n\tshrl $16, \\d\n.endm\n"
	".macro mov.u32 d s\n"
	"\t.ifc \\s,%laneid\n\tmovl %fs:gdk_host_self@tpoff+20, \\d\n"
	"\t.else\n\t.error \"only %laneid is supported\"\n\t.endif\n"
	".endm\n");

static inline void launch_open(const struct rig *)
{
}

#define RUN(kernel, blocks, threads, ...) gdk_launch(blocks, threads, kernel, __VA_ARGS__)

#endif
