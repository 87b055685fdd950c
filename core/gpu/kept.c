/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Freed memory of a CUDA GPU that is kept for the next allocation (gpu_cuda.h), so that freeing
 * does not wait for kernels. The list is short: an allocation takes the smallest block that fits
 * and is at most twice as large as needed.
 *
 * Invariant: gpu->kept_bytes == sum of the lengths of the blocks in gpu->kept <= KEPT_MAX.
 */
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu_cuda.h"
#include "core/log/log.h"

/* More than the queues of one QP: 16 MiB for 32768 receives of 512 bytes, and 2 MiB each for the
 * send queue and the two CQs. */
#define BLOCK_MAX ((size_t)32 << 20)
#define KEPT_MAX  ((size_t)1 << 30)

struct gdk_kept {
	struct gdk_kept *next;
	struct gdk_cuda_mem mem;
};

static bool fits(const struct gdk_cuda_mem *mem, bool on_host, size_t len, size_t align)
{
	size_t gap = gdk_align_up(mem->base, align) - mem->base;

	if (mem->on_host != on_host || mem->len < len || mem->len / 2 > len + align)
		return false;
	if (on_host) /* the CPU and the GPU use the block from its start */
		return !((mem->base | (uintptr_t)mem->host.addr) & (align - 1));
	return mem->len - len >= gap;
}

bool gdk_kept_take(struct doca_gpu *gpu, bool on_host, size_t len, size_t align,
		   struct gdk_cuda_mem *mem)
{
	struct gdk_kept **at, **best = NULL, *found = NULL;

	pthread_mutex_lock(&gpu->kept_lock);
	for (at = &gpu->kept; *at; at = &(*at)->next)
		if (fits(&(*at)->mem, on_host, len, align) &&
		    (!best || (*at)->mem.len < (*best)->mem.len))
			best = at;
	if (best) {
		found = *best;
		*best = found->next;
		gpu->kept_bytes -= found->mem.len;
	}
	pthread_mutex_unlock(&gpu->kept_lock);
	if (!found)
		return false;
	*mem = found->mem;
	free(found);
	if (on_host)
		memset(mem->host.addr, 0, mem->len);
	return true;
}

static void release(struct doca_gpu *gpu, const struct gdk_cuda_mem *mem)
{
	struct gdk_host_block host = mem->host;

	if (!mem->on_host) {
		gdk_cuda_judge(gpu, "cuMemFree", gdk_cu->mem_free(mem->base));
		return;
	}
	gdk_cuda_judge(gpu, "cuMemHostUnregister", gdk_cu->host_unregister(host.addr));
	gdk_host_free(&host);
}

void gdk_kept_put(struct doca_gpu *gpu, const struct gdk_cuda_mem *mem)
{
	struct gdk_kept *kept = mem->len <= BLOCK_MAX ? malloc(sizeof(*kept)) : NULL;
	bool keep = false;

	pthread_mutex_lock(&gpu->kept_lock);
	if (kept && mem->len <= KEPT_MAX - gpu->kept_bytes) {
		keep = true;
		*kept = (struct gdk_kept){ .next = gpu->kept, .mem = *mem };
		gpu->kept = kept;
		gpu->kept_bytes += mem->len;
	}
	pthread_mutex_unlock(&gpu->kept_lock);
	if (keep)
		return;
	free(kept);
	gdk_dbg("GPU %s: returning %zu bytes to CUDA, which waits for running kernels", gpu->name,
		mem->len);
	release(gpu, mem);
}

void gdk_kept_close(struct doca_gpu *gpu)
{
	struct gdk_kept *kept;

	while (gpu->kept) {
		kept = gpu->kept;
		gpu->kept = kept->next;
		release(gpu, &kept->mem);
		free(kept);
	}
	gpu->kept_bytes = 0;
}
