/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks the functions of the DOCA device API that need no queue: byte order,
 * rounding, copies, loads, stores, atomics, locks and timers. */
#ifndef GT_DEVICE_TOOLS_CUH
#define GT_DEVICE_TOOLS_CUH

#include "device_at.cuh"

#define GT_TOOLS_IS(a, b) \
	do { \
		if ((a) != (b)) \
			return -(1000000 + __LINE__); \
	} while (0)

namespace
{

__device__ static int tools_numbers(void)
{
	GT_TOOLS_IS(doca_gpu_dev_verbs_bswap16(0x1122), 0x2211);
	GT_TOOLS_IS(doca_gpu_dev_verbs_bswap32(0x11223344), 0x44332211u);
	GT_TOOLS_IS(doca_gpu_dev_verbs_bswap64(0x1122334455667788), 0x8877665544332211ull);
	GT_TOOLS_IS(doca_gpu_dev_verbs_div_ceil_aligned_pow2(4096, 12), 1u);
	GT_TOOLS_IS(doca_gpu_dev_verbs_div_ceil_aligned_pow2(4097, 12), 2u);
	GT_TOOLS_IS(doca_gpu_dev_verbs_div_ceil_aligned_pow2(UINT64_MAX, 1), 1ull << 63);
	GT_TOOLS_IS(doca_gpu_dev_verbs_div_ceil_aligned_pow2_32bits(0, 6), 0u);
	GT_TOOLS_IS(doca_gpu_dev_verbs_div_ceil_aligned_pow2_32bits(65, 6), 2u);
	GT_TOOLS_IS(doca_gpu_dev_verbs_cqe_idx_inc_mask(0xfffffe, 1), 0xffffffu);
	GT_TOOLS_IS(doca_gpu_dev_verbs_cqe_idx_inc_mask(0xffffff, 2), 1u);
	GT_TOOLS_IS(doca_gpu_dev_verbs_prepare_dbr(0x12345), 0x45230000u);
	GT_TOOLS_IS(doca_gpu_dev_common_prepare_db(0x00cdab00, 0x12345), 0x00cdab0000452300ull);
	return 0;
}

__device__ static int tools_place(void)
{
	const uint64_t start = doca_gpu_dev_verbs_query_globaltimer();

	GT_TOOLS_IS(doca_gpu_dev_verbs_get_lane_id(), threadIdx.x % (unsigned int)warpSize);
	for (uint32_t i = 0; doca_gpu_dev_verbs_query_globaltimer() < start + 1000; i++)
		GT_TOOLS_IS(i > 1u << 24, false);
	return 0;
}

/* b: 64 bytes of this thread. Copies the first 15 or 16 bytes to each offset from 16 to 31. */
__device__ static int tools_copies(uint8_t *b)
{
	for (uint32_t at = 16; at < 32; at++) {
		for (uint32_t i = 0; i < 64; i++)
			b[i] = (uint8_t)(i < 16 ? i + at : 0xee);
		if (at % 8 == 0)
			doca_gpu_dev_verbs_memcpy_aligned_data(b + at, b, 16);
		else
			doca_gpu_dev_verbs_memcpy_data(b + at, b, 15);
		GT_TOOLS_IS(doca_gpu_dev_verbs_isaligned(b + at, 8), at % 8 == 0);
		for (uint32_t i = 16; i < 64; i++)
			GT_TOOLS_IS(b[i], i < at || i >= at + (at % 8 ? 15 : 16)
						  ? 0xee
						  : (uint8_t)(i - at + at));
	}
	doca_gpu_dev_verbs_memcpy_inl_aligned_data<uint32_t>((uint32_t *)(b + 48), (uint32_t *)b,
							     12);
	for (uint32_t i = 0; i < 16; i++)
		GT_TOOLS_IS(b[48 + i], i < 12 ? b[i] : 0xee);
	return 0;
}

/* Stores visible to other threads, and loads. w: words of this thread. */
__device__ static int tools_memory(uint64_t *w)
{
	uint32_t *half = (uint32_t *)(w + 1);

	doca_gpu_dev_verbs_store_relaxed_mmio(w, 0x1122334455667788);
	doca_gpu_dev_verbs_fence_release<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
	doca_gpu_dev_verbs_async_store_release(half, 0x11223344u);
	doca_gpu_dev_verbs_async_store_release(w + 2, (uint64_t)99);
	doca_gpu_dev_verbs_store_wqe_seg(w + 4, w + 2);
	doca_gpu_dev_verbs_fence_release<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU>();
	while (doca_gpu_dev_verbs_load_relaxed_sys_global(w + 2) != 99 ||
	       doca_gpu_dev_verbs_load_relaxed_sys_global(half) != 0x11223344u)
		gdk_relax(0);
	doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
	GT_TOOLS_IS(doca_gpu_dev_verbs_load_relaxed<mode>(w), 0x1122334455667788u);
	GT_TOOLS_IS(doca_gpu_dev_verbs_load_relaxed_sys_global((uint8_t *)w + 7), 0x11);
	doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_CTA>();
	GT_TOOLS_IS(w[5], w[3]);
	return 0;
}

/* Run by all threads on the same words; the host checks the words afterwards. */
__device__ static int tools_shared(struct gt_tools *s, uint64_t thread)
{
	uint32_t old = doca_gpu_dev_verbs_atomic_add<uint32_t, mode>(&s->sum32, 3);

	GT_TOOLS_IS(old % 3, 0u);
	GT_TOOLS_IS((doca_gpu_dev_verbs_atomic_add<uint64_t, mode>(&s->sum, 5) % 5), 0u);
	doca_gpu_dev_verbs_atomic_max<uint64_t, mode, true>(&s->most, thread);
	doca_gpu_dev_verbs_atomic_max<int64_t, mode>(&s->least_negated, -(int64_t)thread);
	doca_gpu_dev_verbs_atomic_max<uint32_t, mode>(&s->most32, (uint32_t)thread);
	GT_TOOLS_IS((doca_gpu_dev_verbs_atomic_read<uint64_t, mode>(&s->most) >= thread), true);
	doca_gpu_dev_verbs_lock<mode>(&s->lock);
	*(volatile uint32_t *)&s->locked = *(volatile uint32_t *)&s->locked + 1;
	doca_gpu_dev_verbs_unlock<mode>(&s->lock);
	doca_gpu_dev_common_mark_wqes_ready<mode>(s->ready, thread, thread);
	return 0;
}

__device__ static int tools(const struct gt_job &j, uint64_t thread)
{
	uint8_t *own = j.gpu + j.src + 64 * thread;
	int err = tools_numbers();

	err = err ? err : tools_place();
	err = err ? err : tools_copies(own);
	err = err ? err : tools_memory((uint64_t *)own);
	return err ? err : tools_shared((struct gt_tools *)(j.gpu + j.counters), thread);
}

} // namespace

#endif
