/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The functions of CUDA's runtime and driver that NVIDIA's examples and samples call, for kernels
 * that g++ compiles and CPU threads run (cuda_shim.h). All memory is host memory, and the only GPU
 * is "host". Replaces cuda.h and cuda_runtime_api.h. A C source gets the declarations; an object of
 * a C++ source that includes this file contains the functions.
 */
#ifndef CONSUMERS_CUDART_CPU_H
#define CONSUMERS_CUDART_CPU_H

#define CUDA_VERSION	       13000
#define cudaStreamNonBlocking  1
#define CU_EVENT_BLOCKING_SYNC 1

typedef enum cudaError {
	cudaSuccess = 0,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInvalidDevice = 101
} cudaError_t;
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
enum { CUDA_SUCCESS = 0 };
typedef int CUresult;
typedef struct CUevent_st *CUevent;
typedef CUevent cudaEvent_t;
typedef struct CUctx_st *CUcontext;
struct cudaDeviceProp {
	int major, minor;
};

#ifndef __cplusplus

#include <stddef.h>
#include <stdlib.h> /* as cuda_runtime.h does */

typedef struct CUstream_st *cudaStream_t;

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *name);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaFree(void *mem);
cudaError_t cudaMemset(void *dst, int byte, size_t len);
cudaError_t cudaMemsetAsync(void *dst, int byte, size_t len, cudaStream_t stream);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t len, enum cudaMemcpyKind kind);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventRecord(CUevent event, cudaStream_t stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to);
CUresult cuEventDestroy(CUevent event);

#else

#include <stdlib.h>

#include "../../examples/common/cuda_shim.h"

#include <chrono>
#include <set>
#include <string_view>

#include "common/doca_gpunetio_verbs_def.h"

/* A kernel that polls memory lets other CPU threads run. */
#undef DOCA_GPUNETIO_VOLATILE
#ifdef CUDART_CPU_BLOCK_LOAD
/* For kernels in which whole blocks load, as the condition of a loop, what the host stores: all
 * threads load the same value. CUDART_CPU_BLOCK_LOAD is the text of the expression. Only one block
 * may do so at a time. */
template <typename T> struct cudart_block_load {
	T *word;

	operator T() const
	{
		static T value;

		__syncthreads();
		if (!threadIdx.x)
			value = *(volatile T *)word;
		__syncthreads();
		return value;
	}
	T operator=(T v) const
	{
		return *(volatile T *)word = v;
	}
};
template <bool Block, typename T> decltype(auto) cudart_access(T &word)
{
	gdk_host_yield();
	if constexpr (Block)
		return cudart_block_load<T>{ &word };
	else
		return (volatile T &)word;
}
#define DOCA_GPUNETIO_VOLATILE(x) (cudart_access<std::string_view(#x) == CUDART_CPU_BLOCK_LOAD>(x))
#elif !defined(CUDART_CPU_ONE_LOAD)
#define DOCA_GPUNETIO_VOLATILE(x) (*(gdk_host_yield(), (volatile __typeof__(x) *)&(x)))
#else
/* For kernels in which whole warps compare a word with a constant, as the condition of a loop, and
 * one thread or the CPU stores it: the lanes of a warp load the same value, as on a GPU. */
template <typename T> struct cudart_one_load {
	T *word;

	operator T() const
	{
		gdk_host_yield();
		return *(volatile T *)word;
	}
	bool operator==(int v) const
	{
		return __shfl_sync(~0u, T(*this), 0) == T(v);
	}
	T operator=(const cudart_one_load &other) const
	{
		return *this = T(other);
	}
	T operator=(T v) const
	{
		return *(volatile T *)word = v;
	}
};
#define DOCA_GPUNETIO_VOLATILE(x) (cudart_one_load<__typeof__(x)>{ &(x) })
#endif

/* In the object, also if no C++ code calls the function. */
#define CUDART_FN extern "C" inline __attribute__((__used__))

/* The default stream, 0. */
inline CUstream_st cudart_default;
#undef GDK_LAUNCH
#define GDK_LAUNCH(kernel, blocks, threads, stream, ...) \
	gdk_launch_on((stream) ? (stream) : &cudart_default, blocks, CUDART_CPU_BLOCK(threads), \
		      kernel __VA_OPT__(, ) __VA_ARGS__)

/* CUDART_CPU_THREADS: the most threads of a block, for kernels that run with any number. */
#ifdef CUDART_CPU_THREADS
#define CUDART_CPU_BLOCK(threads) ((threads) < CUDART_CPU_THREADS ? (threads) : CUDART_CPU_THREADS)
#else
#define CUDART_CPU_BLOCK(threads) threads
#endif

struct CUevent_st {
	std::chrono::steady_clock::time_point time;
};

CUDART_FN cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *name)
{
	*device = 0;
	return strcmp(name, "host") ? cudaErrorInvalidDevice : cudaSuccess;
}

CUDART_FN cudaError_t cudaDeviceGetPCIBusId(char *name, int len, int)
{
	snprintf(name, (size_t)len, "host");
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaSetDevice(int)
{
	return cudaSuccess;
}

/* The compute capability is 9.0, or CUDART_CPU_MAJOR.0. */
CUDART_FN cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int)
{
	const char *major = getenv("CUDART_CPU_MAJOR");

	prop->major = major ? atoi(major) : 9;
	prop->minor = 0;
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaMalloc(void **mem, size_t len)
{
	*mem = aligned_alloc(4096, (len + 4095) & ~(size_t)4095);
	return *mem ? cudaSuccess : cudaErrorMemoryAllocation;
}

CUDART_FN cudaError_t cudaFree(void *mem)
{
	free(mem);
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaMemset(void *dst, int byte, size_t len)
{
	memset(dst, byte, len);
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaMemsetAsync(void *dst, int byte, size_t len, cudaStream_t)
{
	memset(dst, byte, len);
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaMemcpy(void *dst, const void *src, size_t len, enum cudaMemcpyKind)
{
	memcpy(dst, src, len);
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaGetLastError()
{
	return cudaSuccess;
}

CUDART_FN const char *cudaGetErrorString(cudaError_t)
{
	return "error";
}

/* All streams, for cudaDeviceSynchronize(). */
inline std::set<cudaStream_t> cudart_streams;

CUDART_FN cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int)
{
	*stream = new CUstream_st;
	cudart_streams.insert(*stream);
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	stream = stream ? stream : &cudart_default;
	if (stream->grid)
		stream->grid->wait();
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaDeviceSynchronize(void)
{
	for (cudaStream_t stream : cudart_streams)
		cudaStreamSynchronize(stream);
	return cudaSuccess;
}

CUDART_FN cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	cudart_streams.erase(stream);
	delete stream;
	return cudaSuccess;
}

CUDART_FN CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = nullptr;
	return CUDA_SUCCESS;
}

CUDART_FN CUresult cuGetErrorString(CUresult, const char **text)
{
	*text = "error";
	return CUDA_SUCCESS;
}

CUDART_FN CUresult cuEventCreate(CUevent *event, unsigned int)
{
	*event = new CUevent_st;
	return 0;
}

/* Waits for the stream, so that the time of the event is known when the call returns. */
CUDART_FN CUresult cuEventRecord(CUevent event, cudaStream_t stream)
{
	cudaStreamSynchronize(stream);
	event->time = std::chrono::steady_clock::now();
	return 0;
}

CUDART_FN CUresult cuEventSynchronize(CUevent)
{
	return 0;
}

CUDART_FN CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	*ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
	return 0;
}

CUDART_FN CUresult cuEventDestroy(CUevent event)
{
	delete event;
	return 0;
}

#endif
#endif
