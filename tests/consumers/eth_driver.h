/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Shared by the programs that run kernels of other projects on Ethernet queues: NIC, and memory
 * that CPU and GPU access. For C++. */
#ifndef CONSUMERS_ETH_DRIVER_H
#define CONSUMERS_ETH_DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <doca_dev.h>
#include <doca_error.h>
#include <doca_gpunetio.h>

#define LIMIT_S 60 /* until packets that were sent must have arrived */

#define REQUIRE(cond, ...) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			_Exit(1); \
		} \
	} while (0)

#define MUST(call) \
	do { \
		const doca_error_t must_ = (call); \
\
		REQUIRE(must_ == DOCA_SUCCESS, "%s: %s", #call, doca_error_get_name(must_)); \
	} while (0)

static inline double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static inline struct doca_dev *open_nic(const char *pci)
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t num, i;
	uint8_t equal;

	MUST(doca_devinfo_create_list(&list, &num));
	for (i = 0; i < num && !dev; i++)
		if (doca_devinfo_is_equal_pci_addr(list[i], pci, &equal) == DOCA_SUCCESS && equal)
			MUST(doca_dev_open(list[i], &dev));
	doca_devinfo_destroy_list(list);
	REQUIRE(dev, "no NIC at %s", pci);
	return dev;
}

/* Memory of the CPU that the GPU accesses: num elements of type T. */
template <typename T> struct shared_mem {
	T *cpu, *gpu;

	shared_mem(struct doca_gpu *dev, size_t num)
	{
		void *g, *c;

		MUST(doca_gpu_mem_alloc(dev, num * sizeof(T), 65536, DOCA_GPU_MEM_TYPE_CPU_GPU, &g,
					&c));
		gpu = (T *)g;
		cpu = (T *)c;
		memset(c, 0, num * sizeof(T));
	}
};

#endif
