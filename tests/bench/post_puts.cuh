/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Puts for the posting benchmark: the kernel, and the rows of its table. */
#ifndef POST_PUTS_CUH
#define POST_PUTS_CUH

#include "post_doca.cuh"

#define SPARSE 1024 /* messages per doorbell in the row "no doorbell" */

/* Types that select the operation. inl8 and inl28 select p() with an inline value of 8 or 28
 * bytes, which contains the number of the message. put4k, an empty type, selects put() of 4096
 * bytes. */
struct inl8 {
	uint32_t w[2];
};
struct inl28 {
	uint32_t w[7];
};
struct put4k {
};

template <typename T> __device__ static __forceinline__ T message(uint64_t k)
{
	T v;

#pragma unroll
	for (uint32_t i = 0; i < sizeof(v.w) / 4; i++)
		v.w[i] = post_payload(k, i);
	return v;
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T>
__device__ static __forceinline__ void post_one(QP *qp, uint64_t k, uint32_t opt)
{
	struct doca_gpu_dev_verbs_addr r, l;
	doca_gpu_dev_verbs_ticket_t ticket;

	r.addr = POST_RADDR + k * POST_STEP;
	r.key = POST_RKEY;
	l.addr = POST_LADDR + k * POST_STEP;
	l.key = POST_LKEY;
	if constexpr (sizeof(T) == 1)
		doca_gpu_dev_verbs_put<M, H, S>(qp, r, l, 4096, &ticket, opt);
	else
		doca_gpu_dev_verbs_p<T, M, H, S>(qp, r, message<T>(k), &ticket, opt);
}

/* If EVERY is true, rings after every `every` messages and after the last one (every is 0:
 * never). If EVERY is false, rings for each message. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T, uint32_t OPT, bool EVERY>
__global__ void post_puts(uint8_t *qps, uint32_t n, uint32_t iters, uint32_t every,
			  struct post_clock *clock)
{
	QP *qp = (QP *)(qps + (size_t)(blockIdx.x % n) * POST_QP_STRIDE);
	const uint32_t stride = gridDim.x / n * blockDim.x;
	uint64_t k = blockIdx.x / n * blockDim.x + threadIdx.x;

	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&clock->start_ns, post_now());
	for (uint32_t i = 1, until = every; i <= iters; i++, k += stride) {
		bool ring = !EVERY;

		/* counts down, because a division would cost as much as a WQE */
		if (EVERY && every) {
			ring = --until == 0 || i == iters;
			until = until ? until : every;
		}
		post_one<M, H, S, T>(qp, k, ring ? OPT : OPT | SKIP_DB);
	}
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMax((unsigned long long *)&clock->end_ns, post_now());
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T, bool BOTH = true, bool EVERY = false>
static struct post_row row(const char *name, struct post_shape shape, double target)
{
	struct post_row r = {};

	r.name = name;
	r.checked = post_puts<M, H, S, T, 0, EVERY>;
	if constexpr (BOTH)
		r.unchecked = post_puts<M, H, S, T, SKIP_CHECK, EVERY>;
	r.handler = H == DB ? POST_DB : H == BF ? POST_BF : H == NODBR ? POST_NO_DBR : POST_PROXY;
	r.granule = 1;
	r.shape = shape;
	r.bytes = sizeof(T) == 1 ? 4096 : (uint32_t)sizeof(T);
	r.inl = sizeof(T) != 1;
	r.every = EVERY ? SPARSE : 1;
	r.target = target;
	return r;
}

#endif
