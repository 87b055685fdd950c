/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The few calls of the CUDA runtime that NVIDIA's gpunetio makes, on top of the
 * stand-in driver of tests/standin, whose GPU memory the CPU can reach.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

/* For copies: the stand-in has no NULL stream. */
static __thread CUstream stream;

/* The runtime's first call of a thread makes the device's primary context current. */
static void need_context(void)
{
	static __thread int done;
	CUcontext ctx;

	if (done++)
		return;
	cuInit(0);
	cuDevicePrimaryCtxRetain(&ctx, 0);
	cuCtxPushCurrent(ctx);
	cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static cudaError_t said(CUresult rc)
{
	return (cudaError_t)rc; /* the runtime gives the driver's numbers to these */
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bdf)
{
	need_context();
	return said(cuDeviceGetByPCIBusId(device, bdf));
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	*value = attr == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
	(void)device;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **ptr, size_t size)
{
	CUresult rc;

	need_context();
	rc = cuMemAlloc((CUdeviceptr *)ptr, size);
	if (!rc)
		memset(*ptr, 0, size); /* cleared, as what the driver takes from others is */
	return said(rc);
}

cudaError_t cudaFree(void *ptr)
{
	need_context();
	return ptr ? said(cuMemFree((CUdeviceptr)ptr)) : cudaSuccess;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t len, enum cudaMemcpyKind kind)
{
	CUresult rc;

	(void)kind; /* to the GPU, or between addresses that the CPU has: all the same here */
	need_context();
	rc = cuMemcpyHtoDAsync((CUdeviceptr)dst, src, len, stream);
	return said(rc ? rc : cuStreamSynchronize(stream));
}

cudaError_t cudaMemset(void *dst, int byte, size_t len)
{
	CUresult rc;

	need_context();
	rc = cuMemsetD8Async((CUdeviceptr)dst, (unsigned char)byte, len, stream);
	return said(rc ? rc : cuStreamSynchronize(stream));
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	need_context();
	return said(cuMemHostRegister(ptr, size, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
	return said(cuMemHostUnregister(ptr));
}

cudaError_t cudaHostGetDevicePointer(void **dev, void *host, unsigned int flags)
{
	return said(cuMemHostGetDevicePointer((CUdeviceptr *)dev, host, flags));
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
	(void)error;
	return "refused by the stand-in";
}
