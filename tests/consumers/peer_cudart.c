/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The few functions of the CUDA runtime that NVIDIA's gpunetio calls, on top of the
 * stand-in driver of tests/standin, whose GPU memory the CPU can access.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

/* for copies and memsets, because the stand-in rejects the NULL stream */
static __thread CUstream stream;

/* Makes the device's primary context current at a thread's first call, as the runtime does. */
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

static cudaError_t runtime_error(CUresult rc)
{
	/* these errors have the same numbers in the runtime as in the driver */
	return (cudaError_t)rc;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bdf)
{
	need_context();
	return runtime_error(cuDeviceGetByPCIBusId(device, bdf));
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
		memset(*ptr, 0, size); /* zeroed, as the real driver does with reused memory */
	return runtime_error(rc);
}

cudaError_t cudaFree(void *ptr)
{
	need_context();
	return ptr ? runtime_error(cuMemFree((CUdeviceptr)ptr)) : cudaSuccess;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t len, enum cudaMemcpyKind kind)
{
	CUresult rc;

	(void)kind; /* any direction is the same here, because the CPU can access all addresses */
	need_context();
	rc = cuMemcpyHtoDAsync((CUdeviceptr)dst, src, len, stream);
	return runtime_error(rc ? rc : cuStreamSynchronize(stream));
}

cudaError_t cudaMemset(void *dst, int byte, size_t len)
{
	CUresult rc;

	need_context();
	rc = cuMemsetD8Async((CUdeviceptr)dst, (unsigned char)byte, len, stream);
	return runtime_error(rc ? rc : cuStreamSynchronize(stream));
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	need_context();
	return runtime_error(cuMemHostRegister(ptr, size, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
	return runtime_error(cuMemHostUnregister(ptr));
}

cudaError_t cudaHostGetDevicePointer(void **dev, void *host, unsigned int flags)
{
	return runtime_error(cuMemHostGetDevicePointer((CUdeviceptr *)dev, host, flags));
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
