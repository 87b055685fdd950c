/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The keywords and built-in functions of CUDA C++ for g++, so that the kernels of the examples and
 * of the tests also run on CPU threads. Each lane is a CPU thread. All blocks of a grid run
 * concurrently, or one after the other if gdk_grid::blocks_in_turn is set. GDK_WARP
 * (1 or 32) is the width of a warp. Under nvcc this header only includes CUDA's
 * runtime and defines GDK_LAUNCH.
 *
 * The process has only one copy of a __shared__ variable, so a kernel that uses one
 * needs blocks_in_turn.
 */
#ifndef GDK_CUDA_SHIM_H
#define GDK_CUDA_SHIM_H

#ifdef __CUDACC__

#include <cuda_runtime.h>

/* kernel: a function name or a function pointer. */
#define GDK_LAUNCH(kernel, blocks, threads, stream, ...) \
	kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__)

#else

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "device/gdk/platform.h"
#include "device/gdk/platform_warp.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__	static
#define __forceinline__ inline __attribute__((__always_inline__))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((__aligned__(n)))

struct dim3 {
	unsigned int x, y, z;

	constexpr dim3(unsigned int a = 1, unsigned int b = 1, unsigned int c = 1)
	    : x(a), y(b), z(c)
	{
	}
	unsigned int count() const
	{
		return x * y * z;
	}
	/* Coordinates of linear index i; x varies fastest. */
	dim3 at(unsigned int i) const
	{
		return dim3(i % x, i / x % y, i / x / y);
	}
};

inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = GDK_WARP;

/* ---- grids ---- */

/* A running grid. wait() and the destructor wait until the grid ends. The threads begin when all
 * threads exist. If the system refuses one, none of them executes the kernel, and failed() is true
 * when the grid has ended. */
class gdk_grid
{
public:
	inline static bool blocks_in_turn = false;

	gdk_grid(dim3 grid, dim3 block, std::function<void()> kernel)
	    : blocks(grid), threads(block), body(kernel), runner([this] { run(); })
	{
	}
	~gdk_grid()
	{
		wait();
	}
	bool done() const
	{
		return ended.load();
	}
	bool failed() const
	{
		return refused.load();
	}
	void wait()
	{
		if (runner.joinable())
			runner.join();
	}

private:
	enum gate_state { CLOSED, OPEN, CANCELLED };

	struct cta {
		gdk_host_block block;
		std::vector<gdk_host_warp> warps;
		std::vector<std::thread> threads;
		bool initialized = false;
	};

	/* Returns whether the thread shall execute the kernel. */
	bool pass_gate()
	{
		std::unique_lock<std::mutex> held(lock);

		moved.wait(held, [this] { return gate != CLOSED; });
		return gate == OPEN;
	}
	void move_gate(gate_state to)
	{
		std::lock_guard<std::mutex> held(lock);

		gate = to;
		moved.notify_all();
	}
	void lane(cta *c, unsigned int b, unsigned int t)
	{
		if (!pass_gate())
			return;
		gridDim = blocks;
		blockDim = threads;
		blockIdx = blocks.at(b);
		threadIdx = threads.at(t);
		gdk_host_enter(&c->block, t);
		body();
		gdk_host_leave();
	}
	bool start(cta *c, unsigned int b)
	{
		const unsigned int n = threads.count();

		c->warps.resize((n + GDK_HOST_LANES - 1) / GDK_HOST_LANES);
		gdk_host_block_init(&c->block, c->warps.data(), n, b + 1);
		c->initialized = true;
		try {
			for (unsigned int t = 0; t < n; t++)
				c->threads.emplace_back([=] { lane(c, b, t); });
		} catch (const std::system_error &) {
			return false;
		}
		return true;
	}
	static void finish(cta *c)
	{
		if (!c->initialized)
			return;
		for (auto &t : c->threads)
			t.join();
		c->threads.clear();
		gdk_host_block_fini(&c->block);
		c->initialized = false;
	}
	void run()
	{
		const unsigned int n = blocks.count();
		std::vector<cta> ctas(n);
		bool good = true;

		for (unsigned int b = 0; good && b < n; b++) {
			move_gate(CLOSED);
			good = start(&ctas[b], b);
			if (blocks_in_turn) {
				move_gate(good ? OPEN : CANCELLED);
				finish(&ctas[b]);
			}
		}
		move_gate(good ? OPEN : CANCELLED);
		for (unsigned int b = 0; b < n; b++)
			finish(&ctas[b]);
		refused.store(!good);
		ended.store(true);
	}

	const dim3 blocks, threads;
	const std::function<void()> body;
	std::atomic<bool> ended{ false }, refused{ false };
	std::mutex lock; /* protects gate */
	std::condition_variable moved;
	gate_state gate = CLOSED;
	std::thread runner; /* declared last: its thread uses the members above */
};

/* Starts a grid and returns. The arguments are copied before the return, as in CUDA. */
template <typename Kernel, typename... Args>
std::unique_ptr<gdk_grid> gdk_launch_async(dim3 grid, dim3 block, Kernel kernel, Args... args)
{
	return std::make_unique<gdk_grid>(grid, block, [=] { kernel(args...); });
}

template <typename Kernel, typename... Args>
void gdk_launch(dim3 grid, dim3 block, Kernel kernel, Args... args)
{
	gdk_launch_async(grid, block, kernel, args...);
}

/* A stream holds the last grid that was launched on it. A launch waits until the previous grid of
 * the stream ends; on the NULL stream it waits until the new grid ends. */
struct CUstream_st {
	std::unique_ptr<gdk_grid> grid;
};
typedef struct CUstream_st *cudaStream_t;

template <typename Kernel, typename... Args>
void gdk_launch_on(cudaStream_t stream, dim3 grid, dim3 block, Kernel kernel, Args... args)
{
	if (stream && stream->grid)
		stream->grid->wait();

	auto g = gdk_launch_async(grid, block, kernel, args...);

	if (stream)
		stream->grid = std::move(g);
}

#define GDK_LAUNCH(kernel, blocks, threads, stream, ...) \
	gdk_launch_on(stream, blocks, threads, kernel, __VA_ARGS__)

/* ---- warps and blocks ---- */

inline uint32_t gdk_shim_mask(uint32_t mask)
{
	return mask & (UINT32_MAX >> (32 - gdk_warp_size()));
}

template <typename T> uint64_t gdk_shim_bits(T v)
{
	uint64_t bits = 0;

	static_assert(sizeof(T) <= 8, "lanes exchange up to 8 bytes");
	memcpy(&bits, &v, sizeof(v));
	return bits;
}

template <typename T> T gdk_shim_shuffle(uint32_t mask, T v, uint32_t lane)
{
	const uint64_t bits = gdk_shfl64m(gdk_shim_mask(mask), gdk_shim_bits(v), lane);
	T got;

	memcpy(&got, &bits, sizeof(got));
	return got;
}

inline void __syncthreads()
{
	gdk_host_block_sync();
}
inline int __syncthreads_or(int pred)
{
	return gdk_host_block_any(pred);
}
inline void __syncwarp(uint32_t mask = ~0u)
{
	gdk_syncwarp_mask(gdk_shim_mask(mask));
}
inline uint32_t __activemask()
{
	return gdk_activemask();
}
inline uint32_t __ballot_sync(uint32_t mask, int pred)
{
	return gdk_ballot_mask(gdk_shim_mask(mask), pred);
}
inline int __any_sync(uint32_t mask, int pred)
{
	return __ballot_sync(mask, pred) != 0;
}
inline int __all_sync(uint32_t mask, int pred)
{
	return __ballot_sync(mask, !pred) == 0;
}

template <typename T> uint32_t __match_any_sync(uint32_t mask, T v)
{
	return gdk_match64(gdk_shim_mask(mask), gdk_shim_bits(v));
}

/* The shuffles work within segments of `width` lanes. __shfl_sync() takes the lane modulo
 * width; the other shuffles return the caller's own value for a lane outside its segment. */
template <typename T> T __shfl_sync(uint32_t mask, T v, int lane, int width = warpSize)
{
	return gdk_shim_shuffle(mask, v,
				(gdk_lane() & -(uint32_t)width) |
					((uint32_t)lane & ((uint32_t)width - 1)));
}

template <typename T> T gdk_shim_from(uint32_t mask, T v, uint32_t lane, int width)
{
	const uint32_t own = gdk_lane();

	return gdk_shim_shuffle(mask, v, (lane ^ own) & -(uint32_t)width ? own : lane);
}
template <typename T> T __shfl_up_sync(uint32_t mask, T v, uint32_t by, int width = warpSize)
{
	return gdk_shim_from(mask, v, gdk_lane() - by, width);
}
template <typename T> T __shfl_down_sync(uint32_t mask, T v, uint32_t by, int width = warpSize)
{
	return gdk_shim_from(mask, v, gdk_lane() + by, width);
}
template <typename T> T __shfl_xor_sync(uint32_t mask, T v, int bits, int width = warpSize)
{
	return gdk_shim_from(mask, v, gdk_lane() ^ (uint32_t)bits, width);
}

/* ---- memory ---- */

inline void __threadfence_block()
{
	gdk_fence_sc(GDK_SCOPE_CTA);
}
inline void __threadfence()
{
	gdk_fence_sc(GDK_SCOPE_GPU);
}
inline void __threadfence_system()
{
	gdk_fence_sc(GDK_SCOPE_SYS);
}
template <typename T> T __ldg(const T *p)
{
	return *p;
}

/* Atomic operations are relaxed, as in CUDA. ThreadSanitizer builds use stronger orders
 * (GDK_MO_*), because ThreadSanitizer does not model fences. */
template <typename T, typename F> T gdk_shim_rmw(T *p, F change)
{
	T old, now;

	__atomic_load(p, &old, GDK_MO_LOAD);
	do {
		now = change(old);
	} while (!__atomic_compare_exchange(p, &old, &now, true, GDK_MO_RMW, GDK_MO_LOAD));
	return old;
}

#define GDK_SHIM_ATOMIC(name, expr) \
	template <typename T> T name(T *p, std::common_type_t<T> v) \
	{ \
		return gdk_shim_rmw(p, [v](T old) -> T { return (expr); }); \
	} \
	template <typename T> T name##_block(T *p, std::common_type_t<T> v) \
	{ \
		return name(p, v); \
	} \
	template <typename T> T name##_system(T *p, std::common_type_t<T> v) \
	{ \
		return name(p, v); \
	}
GDK_SHIM_ATOMIC(atomicAdd, old + v)
GDK_SHIM_ATOMIC(atomicSub, old - v)
GDK_SHIM_ATOMIC(atomicMax, old > v ? old : v)
GDK_SHIM_ATOMIC(atomicMin, old < v ? old : v)
GDK_SHIM_ATOMIC(atomicAnd, old &v)
GDK_SHIM_ATOMIC(atomicOr, old | v)
GDK_SHIM_ATOMIC(atomicXor, old ^ v)
GDK_SHIM_ATOMIC(atomicExch, ((void)old, v))

template <typename T> T atomicCAS(T *p, std::common_type_t<T> expect, std::common_type_t<T> v)
{
	__atomic_compare_exchange(p, &expect, &v, false, GDK_MO_RMW, GDK_MO_LOAD);
	return expect;
}

/* ---- bits and time ---- */

inline int __popc(unsigned int v)
{
	return __builtin_popcount(v);
}
inline int __popcll(unsigned long long v)
{
	return __builtin_popcountll(v);
}
inline int __ffs(int v)
{
	return __builtin_ffs(v);
}
inline int __ffsll(long long v)
{
	return __builtin_ffsll(v);
}
inline int __clz(int v)
{
	return v ? __builtin_clz((unsigned int)v) : 32;
}
inline int __clzll(long long v)
{
	return v ? __builtin_clzll((unsigned long long)v) : 64;
}
inline long long clock64()
{
	return (long long)gdk_now_ns();
}
inline void __nanosleep(unsigned int)
{
	gdk_relax(63);
}
inline void __trap()
{
	__builtin_trap();
}

#endif
#endif
