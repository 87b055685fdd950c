/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A stand-in for libcuda.so.1: two GPUs, 0000:8a:00.0 and 0000:8b:00.0, whose memory is
 * memfds mapped at multiples of 2 MiB. It counts the objects that a program holds and
 * returns some errors of a real driver (a call without a context, memory registered
 * twice), so that tests notice leaks and missing contexts. Tests find the standin_cuda_*
 * functions at the end with dlsym. Compiled with CUDA_OLD, it lacks cuStreamDestroy_v2().
 * Environment:
 *
 * STANDIN_CUDA_FAIL=n    the nth call fails (a few functions are not counted)
 * STANDIN_CUDA_IOMEM=1   registration accepts the IOMEMORY flag; =2: every registration
 *                        fails; =3: registration of shared mappings, such as doorbell
 *                        registers, fails; otherwise: registration with that flag fails
 * STANDIN_CUDA_NO_REG=n  registration of shared mappings fails while GPU n is current
 * STANDIN_CUDA_DMABUF=0  the GPUs report that they do not support dmabufs; =1 (default):
 *                        an export rejects the flag for the PCIe mapping type
 *                        (CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE); =2: it accepts
 *                        this flag; =3: as 2, and no process can map the descriptors, as
 *                        with NVIDIA's driver
 * STANDIN_CUDA_SKEW=n    memory begins n bytes behind the start of a page
 * STANDIN_CUDA_POINTERS=1  cuPointerGetAttribute() works
 */
#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NUM_GPUS 2
#define ALIGN	 (2ul << 20)
#define EXPORT	 __attribute__((visibility("default")))

enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NO_DEVICE = 100,
	INVALID_CONTEXT = 201,
	ALREADY_REGISTERED = 712,
	NOT_REGISTERED = 713,
	NOT_FOUND = 500,
	NOT_SUPPORTED = 801,
};

struct block {
	char *addr;
	size_t size;
	int fd; /* -1: registered host memory */
	int device;
	char *map;
	size_t map_len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* tree of struct block, ordered by address, without overlaps */
static int primary_refs[NUM_GPUS], streams, stacked;
static long calls, fail_at = -1;
static int dmabuf_flags = -1;
static long copies; /* number of copies to and from GPUs */
static int live_blocks;
static size_t gpu_bytes;
static __thread int stack[16], depth;
static char contexts[NUM_GPUS];

static long number(const char *name, long otherwise)
{
	const char *env = getenv(name);

	return env && *env ? atol(env) : otherwise;
}

/* Counts a call. Returns true if it is the one that must fail. */
static bool planned(void)
{
	bool hit;

	pthread_mutex_lock(&lock);
	if (fail_at < 0)
		fail_at = number("STANDIN_CUDA_FAIL", 0);
	hit = ++calls == fail_at;
	pthread_mutex_unlock(&lock);
	return hit;
}

static int call(bool needs_context)
{
	if (planned())
		return OUT_OF_MEMORY;
	return needs_context && !depth ? INVALID_CONTEXT : OK;
}

#define CALL(needs_context) \
	do { \
		int ret_ = call(needs_context); \
		if (ret_) \
			return ret_; \
	} while (0)

static int by_place(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->addr + x->size <= y->addr ? -1 : x->addr >= y->addr + y->size;
}

static struct block *find(const char *addr)
{
	struct block point = { .addr = (char *)addr, .size = 1 };
	struct block **at = tfind(&point, &blocks, by_place);

	return at ? *at : NULL;
}

static int add(struct block block)
{
	struct block *kept = malloc(sizeof(*kept)), **at = NULL;

	if (!kept)
		return OUT_OF_MEMORY;
	*kept = block;
	pthread_mutex_lock(&lock);
	at = tsearch(kept, &blocks, by_place);
	if (at && *at == kept) {
		live_blocks++;
		gpu_bytes += block.fd < 0 ? 0 : block.size;
	}
	pthread_mutex_unlock(&lock);
	if (at && *at == kept)
		return OK;
	free(kept);
	return at ? ALREADY_REGISTERED : OUT_OF_MEMORY;
}

/* Removes the block that starts at addr from the tree. registered: it must be registered
 * host memory; otherwise it must be GPU memory. */
static int take(const char *addr, bool registered, struct block *taken)
{
	struct block *block;
	int ret = registered ? NOT_REGISTERED : INVALID_VALUE;

	pthread_mutex_lock(&lock);
	block = find(addr);
	if (block && block->addr == addr && (block->fd < 0) == registered) {
		tdelete(block, &blocks, by_place);
		*taken = *block;
		free(block);
		live_blocks--;
		gpu_bytes -= registered ? 0 : taken->size;
		ret = OK;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "cuda_device.h"
#include "cuda_record.h"
#include "cuda_spin.h"

EXPORT int cuInit(unsigned int flags)
{
	(void)flags;
	return call(false);
}

EXPORT int cuGetErrorName(int error, const char **name)
{
	*name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_STANDIN";
	return OK;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
	CALL(false);
	__sync_fetch_and_add(&primary_refs[device], 1);
	*context = &contexts[device];
	return OK;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	int ret = call(false);

	if (primary_refs[device] == 1)
		WAITS(); /* the last reference: destroys the context */
	__sync_fetch_and_sub(&primary_refs[device], 1);
	return ret;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
	int device = (int)((char *)context - contexts);

	CALL(false);
	if (device < 0 || device >= NUM_GPUS || primary_refs[device] <= 0 || depth == 16)
		return INVALID_CONTEXT;
	stack[depth++] = device;
	__sync_fetch_and_add(&stacked, 1);
	return OK;
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
	if (!depth)
		return INVALID_CONTEXT;
	depth--;
	if (context)
		*context = &contexts[stack[depth]];
	__sync_fetch_and_sub(&stacked, 1);
	return OK;
}

EXPORT int cuCtxGetDevice(int *device)
{
	if (!depth)
		return INVALID_CONTEXT;
	*device = stack[depth - 1];
	return OK;
}

EXPORT int cuMemAlloc_v2(unsigned long long *ptr, size_t size)
{
	size_t skew = (size_t)number("STANDIN_CUDA_SKEW", 0);
	struct block block = { .size = size, .map_len = size + skew + ALIGN };
	int ret;

	CALL(true);
	block.device = stack[depth - 1];
	if (!size || size > 1ul << 34)
		return OUT_OF_MEMORY;
	block.fd = memfd_create("standin-gpu", MFD_CLOEXEC);
	if (block.fd < 0)
		return OUT_OF_MEMORY;
	block.map = mmap(NULL, block.map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	block.addr = (char *)(((unsigned long)block.map + ALIGN - 1) & ~(ALIGN - 1));
	if (ftruncate(block.fd, (off_t)((size + skew + 4095) & ~4095ul)) ||
	    mmap(block.addr, size + skew, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block.fd,
		 0) == MAP_FAILED)
		return OUT_OF_MEMORY;
	block.addr += skew;
	memset(block.addr, 0xa5, size); /* fresh GPU memory is not zero */
	ret = add(block);
	*ptr = (unsigned long)block.addr;
	return ret;
}

EXPORT int cuMemFree_v2(unsigned long long ptr)
{
	struct block block;
	int ret = call(true);

	if (ret == INVALID_CONTEXT)
		return ret;
	WAITS();
	if (take((char *)(unsigned long)ptr, false, &block))
		return INVALID_VALUE;
	munmap(block.map, block.map_len);
	close(block.fd);
	return ret;
}

static bool is_shared(const void *ptr)
{
	unsigned long from, to, at = (unsigned long)ptr;
	char line[512], kind = 'p';
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx %*3c%c", &from, &to, &kind) == 3 && from <= at &&
			at < to;
	if (f)
		fclose(f);
	return found && kind == 's';
}

EXPORT int cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	long iomem = number("STANDIN_CUDA_IOMEM", 0);

	CALL(true);
	if (iomem == 2 || (flags & 4 && iomem != 1) ||
	    ((iomem == 3 || number("STANDIN_CUDA_NO_REG", -1) == stack[depth - 1]) &&
	     is_shared(ptr)))
		return INVALID_VALUE;
	return add((struct block){ .addr = ptr, .size = size, .fd = -1 });
}

EXPORT int cuMemHostUnregister(void *ptr)
{
	struct block block;
	int ret = call(true);

	if (ret == INVALID_CONTEXT)
		return ret;
	WAITS();
	return take(ptr, true, &block) ? NOT_REGISTERED : ret;
}

EXPORT int cuMemHostGetDevicePointer_v2(unsigned long long *ptr, void *host, unsigned int flags)
{
	bool known;

	(void)flags;
	CALL(true);
	pthread_mutex_lock(&lock);
	known = find(host);
	pthread_mutex_unlock(&lock);
	if (!known)
		return INVALID_VALUE;
	*ptr = (unsigned long)host;
	return OK;
}

/*
 * A copy to a GPU is delayed until a stream is synchronized or the next copy or memset
 * begins. Until then the caller must not change the source, nor expect the data at the
 * destination.
 */
static struct {
	char *dst;
	const char *src;
	size_t len;
} late;

static void arrive(void)
{
	if (late.len)
		memcpy(late.dst, late.src, late.len);
	late.len = 0;
}

EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long dst, const void *src, size_t len, void *stream)
{
	CALL(true);
	if (!stream)
		return INVALID_VALUE; /* the NULL stream would wait for a kernel that polls */
	pthread_mutex_lock(&lock);
	arrive();
	copies++;
	record(dst, len);
	late.dst = (char *)(unsigned long)dst;
	late.src = src;
	late.len = len;
	pthread_mutex_unlock(&lock);
	return OK;
}

EXPORT int cuMemcpyDtoHAsync_v2(void *dst, unsigned long long src, size_t len, void *stream)
{
	CALL(true);
	if (!stream)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	arrive();
	copies++;
	memcpy(dst, (void *)(unsigned long)src, len);
	pthread_mutex_unlock(&lock);
	return OK;
}

EXPORT int cuMemsetD8Async(unsigned long long dst, unsigned char byte, size_t len, void *stream)
{
	CALL(true);
	WAITS(); /* a kernel, which gets no multiprocessor */
	if (!stream)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	arrive();
	pthread_mutex_unlock(&lock);
	memset((void *)(unsigned long)dst, byte, len);
	return OK;
}

EXPORT int cuStreamCreate(void **stream, unsigned int flags)
{
	CALL(true);
	if (flags != 1)
		return INVALID_VALUE;
	__sync_fetch_and_add(&streams, 1);
	*stream = &streams;
	return OK;
}

/* Waits for 7 us, about the time that cuStreamSynchronize() takes with a real driver. */
static void linger(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 7000);
}

/* If the call fails, the delayed copy is lost. */
EXPORT int cuStreamSynchronize(void *stream)
{
	int ret = call(true);

	if (!ret)
		linger();
	pthread_mutex_lock(&lock);
	if (ret)
		late.len = 0;
	arrive();
	pthread_mutex_unlock(&lock);
	return ret ? ret : stream ? OK : INVALID_VALUE;
}

EXPORT int cuCtxSetCurrent(void *context)
{
	if (context)
		stack[depth ? depth - 1 : 0] = (int)((char *)context - contexts);
	depth = !context ? 0 : depth ? depth : 1;
	return OK;
}

EXPORT int cuCtxGetCurrent(void **context)
{
	*context = depth ? &contexts[stack[depth - 1]] : NULL;
	return OK;
}

EXPORT int cuMemHostAlloc(void **mem, size_t size, unsigned int flags)
{
	(void)flags;
	CALL(true);
	*mem = calloc(1, size);
	return *mem ? OK : OUT_OF_MEMORY;
}

/* Knows the attributes 2 (memory type) and 9 (device); others are 0. Works only if
 * STANDIN_CUDA_POINTERS is set, because the NIC then copies through the driver. */
EXPORT int cuPointerGetAttribute(void *value, int attribute, unsigned long long ptr)
{
	struct block *block;

	if (!number("STANDIN_CUDA_POINTERS", 0))
		return NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	block = find((char *)(unsigned long)ptr);
	pthread_mutex_unlock(&lock);
	if (!block)
		return INVALID_VALUE;
	*(int *)value = attribute == 9	 ? block->device
			: attribute != 2 ? 0
			: block->fd >= 0 ? 2
					 : 1;
	return OK;
}

#ifndef CUDA_OLD
EXPORT int cuStreamDestroy_v2(void *stream)
{
	int ret = call(true);

	(void)stream;
	__sync_fetch_and_sub(&streams, 1);
	return ret;
}
#endif

EXPORT int cuPointerSetAttribute(const void *value, int attribute, unsigned long long ptr)
{
	CALL(true);
	(void)value;
	return attribute == 6 && find((char *)(unsigned long)ptr) ? OK : INVALID_VALUE;
}

/* Replaces fd with a descriptor of another inode that cannot be mapped. */
static int unmappable(int fd)
{
	int ends[2];

	close(fd);
	if (pipe(ends))
		return -1;
	close(ends[1]);
	return ends[0];
}

/* A dmabuf is the block's memfd, so the exported range must start where the block starts.
 * The software NIC recognizes a dmabuf of the PCIe mapping type by its file position, which
 * programs do not use. */
#define PCIE_MARK 0x50434965

static int pcie_typed(int fd)
{
	char path[64];
	int typed;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	typed = open(path, O_RDWR | O_CLOEXEC);
	if (typed >= 0)
		lseek(typed, PCIE_MARK, SEEK_SET);
	return typed;
}

EXPORT int cuMemGetHandleForAddressRange(void *handle, unsigned long long ptr, size_t size,
					 int type, unsigned long long flags)
{
	struct block *block;
	int fd;

	CALL(true);
	if (type != 1 || (ptr | size) & 4095 ||
	    (flags && (flags != 1 || number("STANDIN_CUDA_DMABUF", 1) < 2)))
		return INVALID_VALUE;
	dmabuf_flags = (int)flags;
	pthread_mutex_lock(&lock);
	block = find((char *)(unsigned long)ptr);
	fd = block && block->fd >= 0 && block->addr == (char *)(unsigned long)ptr &&
			     size <= ((block->size + 4095) & ~4095ul)
		     ? flags ? pcie_typed(block->fd) : dup(block->fd)
		     : -1;
	pthread_mutex_unlock(&lock);
	if (fd >= 0 && number("STANDIN_CUDA_DMABUF", 1) == 3)
		fd = unmappable(fd);
	if (fd < 0)
		return NOT_SUPPORTED;
	*(int *)handle = fd;
	return OK;
}

/* Looks up functions like libcudart does, by the name without a version suffix. Knows
 * only some of the functions. */
EXPORT int cuGetProcAddress_v2(const char *name, void **fn, int version, unsigned long long flags,
			       int *status);
EXPORT int cuGetProcAddress(const char *name, void **fn, int version, unsigned long long flags)
{
	CALL(false);
	(void)flags;
	*fn = NULL;
	if (!strcmp(name, "cuMemHostRegister"))
		*fn = (void *)cuMemHostRegister_v2;
	else if (!strcmp(name, "cuMemGetHandleForAddressRange"))
		*fn = (void *)cuMemGetHandleForAddressRange;
	else if (!strcmp(name, "cuGetProcAddress"))
		*fn = version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
	return *fn ? OK : NOT_FOUND;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **fn, int version, unsigned long long flags,
			       int *status)
{
	int ret = cuGetProcAddress(name, fn, version, flags);

	*status = ret ? 1 : 0;
	return ret;
}

#define GET(fn, type, value) \
	EXPORT type fn(void) \
	{ \
		return value; \
	}
/* Number of objects that a program must release. */
GET(standin_cuda_live, int, live_blocks + primary_refs[0] + primary_refs[1] + streams + stacked)
/* Bytes of GPU memory that are allocated. */
GET(standin_cuda_bytes, size_t, gpu_bytes)
/* Flags of the last export of a dmabuf; -1: there was none. */
GET(standin_cuda_dmabuf_flags, int, dmabuf_flags)
GET(standin_cuda_calls, long, calls)
GET(standin_cuda_copies, long, copies)

/* Makes the nth call from now fail; n = 0: no call fails. */
EXPORT void standin_cuda_fail_at(long n)
{
	pthread_mutex_lock(&lock);
	fail_at = n ? calls + n : 0;
	pthread_mutex_unlock(&lock);
}

/* Returns whether the selected call has failed. */
EXPORT int standin_cuda_failed(void)
{
	return fail_at > 0 && calls >= fail_at;
}
