/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For g++: what Aerial's kernels use of CUDA in addition to cudart_cpu.h. Replaces
 * cooperative_groups.h and cuda/std/array. The kernels use shared memory, so the blocks of a grid
 * must run in turn.
 */
#ifndef AERIAL_GROUPS_CPU_H
#define AERIAL_GROUPS_CPU_H

#include <array>

#include "../cudart_cpu.h"

struct __align__(16) uint4
{
	unsigned int x, y, z, w;
};

GDK_SHIM_ATOMIC(atomicInc, old >= v ? 0 : old + 1)

inline int max(int a, int b)
{
	return a > b ? a : b;
}
inline int min(int a, int b)
{
	return a < b ? a : b;
}

struct cudaFuncAttributes {
};
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *)
{
	return cudaSuccess;
}

namespace cuda
{
namespace std
{
using ::std::array;
}
} // namespace cuda

namespace cooperative_groups
{
struct thread_block {
	unsigned int thread_rank() const
	{
		return threadIdx.x;
	}
	unsigned int size() const
	{
		return blockDim.x;
	}
};
inline thread_block this_thread_block()
{
	return {};
}

/* One thread copies; wait() is a barrier. */
inline void memcpy_async(thread_block, void *dst, const void *src, size_t len)
{
	if (!threadIdx.x)
		memcpy(dst, src, len);
}
inline void wait(thread_block)
{
	__syncthreads();
}

template <unsigned int Size> struct tile {
	unsigned int thread_rank() const
	{
		return threadIdx.x % Size;
	}
	unsigned int num_threads() const
	{
		return Size;
	}
	unsigned int meta_group_rank() const
	{
		return threadIdx.x / Size;
	}
	unsigned int meta_group_size() const
	{
		return blockDim.x / Size;
	}
};
template <unsigned int Size> tile<Size> tiled_partition(thread_block)
{
	return {};
}
} // namespace cooperative_groups

#endif
