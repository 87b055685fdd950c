/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The part of cuda.c about the GPUs themselves: their number, addresses and attributes. Included
 * once, by cuda.c. */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

EXPORT int cuDeviceGetByPCIBusId(int *device, const char *bdf)
{
	CALL(false);
	if (strcmp(bdf, "0000:8a:00.0") && strcmp(bdf, "0000:8b:00.0"))
		return NO_DEVICE;
	*device = bdf[6] - 'a';
	return OK;
}

EXPORT int cuDeviceGetCount(int *count)
{
	*count = NUM_GPUS;
	return OK;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < 0 || ordinal >= NUM_GPUS ? INVALID_VALUE : OK;
}

EXPORT int cuDeviceGetPCIBusId(char *bdf, int len, int device)
{
	snprintf(bdf, (size_t)len, "0000:8%c:00.0", 'A' + device);
	return OK;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	CALL(false);
	(void)device;
	*value = attribute == 124 && number("STANDIN_CUDA_DMABUF", 1);
	return OK;
}

#endif
