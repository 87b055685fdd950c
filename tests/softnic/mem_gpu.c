/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC's access to GPU memory: copies by the CUDA driver on a stream of the NIC,
 * which runs them in order. A driver call costs microseconds, so payload is copied
 * in few calls.
 *
 * Writes go to a staging buffer first. A write that continues the previous one in
 * memory and in the same memory region extends its copy. Any other write begins a
 * new copy, ordered after the previous one. The bytes of one copy arrive in unknown
 * order, so a word (of a CQE, an atomic, a flag) is a copy of its own. The driver
 * refuses a copy across two allocations, so no copy leaves a region. sn_mem_settle()
 * waits once for all copies. The NIC calls it before it writes host memory, sends
 * packets or raises a completion event, and at the end of a pass.
 *
 * Payload to be sent may be read ahead, as far as the caller plans to send in this
 * pass. Only planned reads use this data, and only within the pass, until a write
 * overlaps it or the response to the next READ begins. DBRECs, work queues and
 * operands of atomics are always read from memory.
 */
#include <dlfcn.h>
#include <errno.h>

#include "eng.h"

#define MAX_GPUS	       16
#define CU_ATTR_MEMORY_TYPE    2
#define CU_ATTR_IS_MANAGED     8
#define CU_ATTR_DEVICE_ORDINAL 9
#define CU_MEMORYTYPE_DEVICE   2u
#define CU_STREAM_NON_BLOCKING 1u
#define CU_HOST_PORTABLE       1u
#define WRITE_STAGE	       (1u << 20)
#define READ_STAGE	       (1u << 19)
/* log2 of the bytes of a block, the unit of `near`; memory of two GPUs is never in one block */
#define GPU_BLOCK_LOG	 21
#define NEAR		 64u
#define LINE		 64u
#define WORD		 8u
#define CU_DEINITIALIZED 4 /* CUDA_ERROR_DEINITIALIZED: the process exits */

struct cuda {
	int (*pointer_attr)(void *data, int attr, uint64_t ptr);
	int (*ctx_set)(void *ctx);
	int (*ctx_get)(void **ctx);
	int (*ctx_retain)(void **ctx, int dev);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_sync)(void *stream);
	int (*htod)(uint64_t dst, const void *src, size_t n, void *stream);
	int (*dtoh)(void *dst, uint64_t src, size_t n, void *stream);
	int (*host_alloc)(void **mem, size_t n, unsigned flags);
};

/* The copy to a GPU that the next write may extend. region: address of the memory region that it
 * must not leave; 0: it is not a copy to a memory region. */
struct extent {
	uint64_t va, region;
	size_t at, len; /* place in the staging buffer; len 0: none */
};

static struct cuda cu;
static bool cu_ready;
static struct {
	void *ctx, *stream;
} gpus[MAX_GPUS];
static uint8_t *write_stage, *read_stage; /* pinned host memory */
static size_t stage_used;
static int written = -1; /* the GPU with unsettled writes; -1: none */
static struct extent last;
static struct {
	uint64_t va;
	size_t len;
} ahead; /* the memory that read_stage holds */
static struct {
	uint64_t block;
	int dev;
} near[NEAR]; /* cache of gpu_of(); block 0: unused entry */

/* Uses only a driver that the program has loaded; never loads one. */
static bool cuda_find(void)
{
	void *lib;

	if (cu_ready)
		return true;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (!lib)
		return false;
	*(void **)&cu.pointer_attr = dlsym(lib, "cuPointerGetAttribute");
	*(void **)&cu.ctx_set = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&cu.ctx_get = dlsym(lib, "cuCtxGetCurrent");
	*(void **)&cu.ctx_retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&cu.stream_create = dlsym(lib, "cuStreamCreate");
	*(void **)&cu.stream_sync = dlsym(lib, "cuStreamSynchronize");
	*(void **)&cu.htod = dlsym(lib, "cuMemcpyHtoDAsync_v2");
	*(void **)&cu.dtoh = dlsym(lib, "cuMemcpyDtoHAsync_v2");
	*(void **)&cu.host_alloc = dlsym(lib, "cuMemHostAlloc");
	cu_ready = cu.host_alloc && cu.pointer_attr && cu.ctx_set && cu.ctx_get && cu.ctx_retain &&
		   cu.stream_create && cu.stream_sync && cu.htod && cu.dtoh;
	return cu_ready;
}

static bool stages_ready(void)
{
	void *mem;

	if (write_stage)
		return true;
	if (cu.host_alloc(&mem, WRITE_STAGE + READ_STAGE, CU_HOST_PORTABLE))
		return false;
	write_stage = mem;
	read_stage = write_stage + WRITE_STAGE;
	return true;
}

/* Returns the number of the GPU that va belongs to, and creates the GPU's stream at the first
 * call. -1: not GPU memory, managed memory, or the stream cannot be created. */
static int gpu_of(uint64_t va)
{
	unsigned type = 0, managed = 0;
	void *before = NULL;
	int dev = -1;

	if (!cuda_find() || cu.pointer_attr(&type, CU_ATTR_MEMORY_TYPE, va) ||
	    type != CU_MEMORYTYPE_DEVICE)
		return -1;
	if (!cu.pointer_attr(&managed, CU_ATTR_IS_MANAGED, va) && managed)
		return -1;
	if (cu.pointer_attr(&dev, CU_ATTR_DEVICE_ORDINAL, va) || dev < 0 || dev >= MAX_GPUS)
		return -1;
	if (gpus[dev].stream)
		return dev;
	cu.ctx_get(&before);
	if (cu.ctx_retain(&gpus[dev].ctx, dev) || cu.ctx_set(gpus[dev].ctx) || !stages_ready() ||
	    cu.stream_create(&gpus[dev].stream, CU_STREAM_NON_BLOCKING))
		gpus[dev].stream = NULL;
	cu.ctx_set(before);
	return gpus[dev].stream ? dev : -1;
}

/* As gpu_of(), but queries the driver only once per block while `near` holds it. Call it only for
 * memory that is known to be GPU memory. */
static int gpu_near(uint64_t va)
{
	uint64_t block = va >> GPU_BLOCK_LOG;
	unsigned i = block % NEAR;

	if (near[i].block != block || near[i].dev < 0) {
		near[i].dev = gpu_of(va);
		near[i].block = block;
	}
	return near[i].dev;
}

static void forget(uint64_t va)
{
	near[(va >> GPU_BLOCK_LOG) % NEAR].dev = -1;
}

static bool use_gpu(int dev)
{
	static __thread int current = -1;

	if (dev != current && cu.ctx_set(gpus[dev].ctx))
		return false;
	current = dev;
	return true;
}

/* ---- writes ---- */

static void copy_failed(int dev, int error)
{
	if (error != CU_DEINITIALIZED)
		sn_violation(&sn_dev->stats.gpu_copy_errors,
			     "copy to GPU %d failed: CUDA error %d, data lost", dev, error);
}

/* Starts the copy that `last` describes, if any; no later write extends it. Returns 0 or
 * -EFAULT. */
static int begin_copy(void)
{
	size_t len = last.len;
	int error = 0;

	last.len = 0;
	if (!len)
		return 0;
	if (use_gpu(written))
		error = cu.htod(last.va, write_stage + last.at, len, gpus[written].stream);
	else
		error = -1;
	if (!error)
		return 0;
	forget(last.va);
	copy_failed(written, error);
	return -EFAULT;
}

void sn_mem_settle(void)
{
	int dev = written, error;

	if (dev < 0)
		return;
	begin_copy();
	written = -1;
	stage_used = 0;
	error = use_gpu(dev) ? cu.stream_sync(gpus[dev].stream) : -1;
	if (error)
		copy_failed(dev, error);
}

/* Starts the previous copy and describes a new one in `last`. Its data has the same offset within
 * a cache line in the staging buffer and in the target. */
static void open_extent(uint64_t va, uint64_t region)
{
	size_t at = ((stage_used + LINE - 1) & ~(LINE - 1ul)) + (va & (LINE - 1));

	begin_copy(); /* its error belongs to an earlier write */
	if (at >= WRITE_STAGE) {
		sn_mem_settle();
		at = va & (LINE - 1);
	}
	last = (struct extent){ va, region, at, 0 };
	stage_used = at;
}

static void stage_write(int dev, uint64_t va, const uint8_t *src, size_t len, uint64_t region)
{
	size_t n;

	for (; len; len -= n, va += n, src += n) {
		if (written >= 0 && written != dev)
			sn_mem_settle();
		if (!last.len || last.va + last.len != va || last.region != region ||
		    stage_used == WRITE_STAGE)
			open_extent(va, region);
		written = dev;
		n = WRITE_STAGE - stage_used < len ? WRITE_STAGE - stage_used : len;
		memcpy(write_stage + stage_used, src, n);
		last.len += n;
		stage_used += n;
	}
}

int sn_gpu_write(uint64_t va, const void *src, size_t len, uint64_t region)
{
	int dev = len ? gpu_near(va) : -1;

	if (dev < 0)
		return len ? -EFAULT : 0;
	if (va < ahead.va + ahead.len && ahead.va < va + len)
		ahead.len = 0;
	if (len <= WORD)
		begin_copy();
	stage_write(dev, va, src, len, region);
	return len <= WORD ? begin_copy() : 0;
}

/* ---- reads ---- */

/* Reads up to READ_STAGE bytes into read_stage. If it succeeds, all earlier writes to this GPU have
 * arrived: the stream runs copies in order. */
static int stage_read(int dev, uint64_t va, size_t len)
{
	ahead.len = 0;
	begin_copy();
	if (!use_gpu(dev) || cu.dtoh(read_stage, va, len, gpus[dev].stream) ||
	    cu.stream_sync(gpus[dev].stream)) {
		forget(va);
		return -EFAULT;
	}
	if (written == dev) {
		written = -1;
		stage_used = 0;
	}
	return 0;
}

int sn_gpu_read(uint64_t va, void *dst, size_t len)
{
	int dev = len ? gpu_near(va) : -1, rc = 0;
	size_t n;

	if (dev < 0)
		return len ? -EFAULT : 0;
	for (; len && !rc; len -= n, va += n, dst = (uint8_t *)dst + n) {
		n = len < READ_STAGE ? len : READ_STAGE;
		rc = stage_read(dev, va, n);
		if (!rc)
			memcpy(dst, read_stage, n);
	}
	return rc;
}

int sn_gpu_read_ahead(uint64_t va, void *dst, size_t len, size_t room)
{
	int dev;

	if (room > READ_STAGE)
		room = READ_STAGE;
	if (len >= room)
		return sn_gpu_read(va, dst, len);
	if (va < ahead.va || va + len > ahead.va + ahead.len) {
		dev = gpu_near(va);
		if (dev < 0 || stage_read(dev, va, room))
			return sn_gpu_read(va, dst, len); /* the region extends beyond its memory */
		ahead.va = va;
		ahead.len = room;
	}
	memcpy(dst, read_stage + (va - ahead.va), len);
	return 0;
}

void sn_gpu_fresh(void)
{
	ahead.len = 0;
}

bool sn_mem_is_gpu(uint64_t va, uint64_t len)
{
	return va && len && gpu_of(va) >= 0;
}

bool sn_mem_is_cuda(uint64_t va)
{
	unsigned type = 0;

	return va && cuda_find() && !cu.pointer_attr(&type, CU_ATTR_MEMORY_TYPE, va) && type;
}
