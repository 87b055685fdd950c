/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The functions of CUDA's runtime and driver that NVIDIA's examples call, for kernels that g++
 * compiles and CPU threads run (cuda_shim.h). All memory is host memory, and the only GPU is
 * "host". Replaces cuda.h and cuda_runtime_api.h.
 */
#ifndef CONSUMERS_CUDART_CPU_H
#define CONSUMERS_CUDART_CPU_H

#include "../../examples/common/cuda_shim.h"

#include <chrono>

#define cudaStreamNonBlocking  1
#define CU_EVENT_BLOCKING_SYNC 1

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidDevice = 101 };
typedef int CUresult;
typedef struct CUevent_st {
	std::chrono::steady_clock::time_point time;
} * CUevent;

inline cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *name)
{
	*device = 0;
	return strcmp(name, "host") ? cudaErrorInvalidDevice : cudaSuccess;
}

inline cudaError_t cudaSetDevice(int)
{
	return cudaSuccess;
}

inline cudaError_t cudaFree(void *)
{
	return cudaSuccess;
}

inline cudaError_t cudaMemset(void *dst, int byte, size_t len)
{
	memset(dst, byte, len);
	return cudaSuccess;
}

inline cudaError_t cudaGetLastError()
{
	return cudaSuccess;
}

inline const char *cudaGetErrorString(cudaError_t)
{
	return "error";
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int)
{
	*stream = new CUstream_st;
	return cudaSuccess;
}

inline cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	if (stream->grid)
		stream->grid->wait();
	return cudaSuccess;
}

inline cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	delete stream;
	return cudaSuccess;
}

inline CUresult cuEventCreate(CUevent *event, unsigned int)
{
	*event = new CUevent_st;
	return 0;
}

/* Waits for the stream, so that the time of the event is known when the call returns. */
inline CUresult cuEventRecord(CUevent event, cudaStream_t stream)
{
	cudaStreamSynchronize(stream);
	event->time = std::chrono::steady_clock::now();
	return 0;
}

inline CUresult cuEventSynchronize(CUevent)
{
	return 0;
}

inline CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	*ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
	return 0;
}

inline CUresult cuEventDestroy(CUevent event)
{
	delete event;
	return 0;
}

#endif
