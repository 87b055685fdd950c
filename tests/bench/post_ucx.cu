/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The second peer of the posting benchmark: the device endpoint of UCX (gdaki.cuh from
 * a checkout of openucx/ucx, with its own copy of DOCA's headers), with one QP, at
 * thread level, with UCX's flow control, against the same consumer. UCX signals only
 * some WQEs, uses a collapsed CQ, and rings once per 128 messages unless NODELAY is
 * set.
 */
#include "post_rig.cuh"

#include "post_run.cuh"

#include <uct/api/device/uct_device_impl.h>

#define SIGNAL_MASK 127u
#define DELAY	    0
#define NODELAY	    UCT_DEVICE_FLAG_NODELAY

static size_t kit_skew(void)
{
	return 0;
}

static size_t kit_state_size(uint32_t)
{
	return 0;
}

static void kit_fill(struct post_rig *r, uint32_t i)
{
	const size_t at = (size_t)i * POST_QP_STRIDE;
	uct_rc_gdaki_dev_ep_t *ep = (uct_rc_gdaki_dev_ep_t *)(r->image + at);

	static_assert(sizeof(*ep) + sizeof(ep->qps[0]) <= POST_QP_STRIDE, "one endpoint, one QP");
	ep->sq_wqe_daddr = r->rings + (size_t)i * r->shape.depth * 64;
	ep->sq_wqe_num = (uint16_t)r->shape.depth;
	ep->sq_fc_mask = SIGNAL_MASK;
	memset(ep->qps[0].cq_buff, 0xff, sizeof(ep->qps[0].cq_buff));
	ep->qps[0].sq_num = 0x100 + i;
	ep->qps[0].qpn_ds = htobe32((0x100 + i) << 8);
	ep->qps[0].sq_db = (uint64_t *)(r->regs + (size_t)i * POST_REG_STRIDE);
}

static void kit_watch(const struct post_rig *r, uint32_t i, struct post_watch *w)
{
	const size_t at = (size_t)i * POST_QP_STRIDE + offsetof(uct_rc_gdaki_dev_ep_t, qps);
	const uct_rc_gdaki_dev_qp_t *q = (const uct_rc_gdaki_dev_qp_t *)(r->image + at);

	w->want.qpn = q->sq_num;
	w->want.signal_mask = SIGNAL_MASK;
	w->collapsed = 1;
	w->ring = (const uint4 *)(r->rings + (size_t)i * r->shape.depth * 64);
	w->cq = r->qps + at + offsetof(uct_rc_gdaki_dev_qp_t, cq_buff);
	w->reg = q->sq_db;
}

static uint64_t kit_reserved(const uint8_t *qp)
{
	return ((const uct_rc_gdaki_dev_ep_t *)qp)->qps[0].sq_rsvd_index;
}

template <uint64_t FLAGS>
__global__ void post_puts(uint8_t *qps, uint32_t n, uint32_t iters, uint32_t every,
			  struct post_clock *clock)
{
	const size_t at = (size_t)(blockIdx.x % n) * POST_QP_STRIDE;
	const uct_device_ep_h ep = (uct_device_ep_h)(qps + at);
	const uint32_t stride = gridDim.x / n * blockDim.x;
	uint64_t k = blockIdx.x / n * blockDim.x + threadIdx.x;
	uct_device_mem_elem_t mem;

	mem.ib_md_mem_element.lkey = POST_LKEY;
	mem.ib_md_mem_element.rkey = POST_RKEY;
	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&clock->start_ns, post_now());
	for (uint32_t i = 0; i < iters; i++, k += stride)
		while (uct_rc_mlx5_gda_ep_put<UCS_DEVICE_LEVEL_THREAD>(
			       ep, &mem, &mem, (const void *)(POST_LADDR + k * POST_STEP),
			       POST_RADDR + k * POST_STEP, 4096, 0, FLAGS,
			       nullptr) == UCS_ERR_NO_RESOURCE)
			;
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMax((unsigned long long *)&clock->end_ns, post_now());
}

/* Without NODELAY, the last messages are rung only if the number of messages is a multiple
 * of 128, so `granule` makes it one. */
template <uint64_t FLAGS>
static struct post_row row(const char *name, uint32_t blocks, uint32_t threads)
{
	const uint32_t common = std::min(128u, blocks * threads & -(blocks * threads));
	struct post_row r = {};

	r.name = name;
	r.checked = post_puts<FLAGS>;
	r.handler = POST_DB;
	r.shape = { blocks, threads, 1, blocks == 1 ? 4096u : 32768u };
	r.bytes = 4096;
	r.every = 1;
	r.granule = FLAGS == NODELAY ? 1 : 128 / common;
	return r;
}

/* A row has the name of the row of post.cu's table that does the same work, if one does. */
static std::vector<struct post_row> table(void)
{
	return {
		row<NODELAY>("exclusive, 1 thread, doorbell each", 1, 1),
		row<DELAY>("exclusive, 1 thread, no doorbell (a)", 1, 1),
		row<DELAY>("GPU-shared, 1 warp, thread scope", 1, 32),
		row<NODELAY>("GPU-shared, 1 warp, thread scope, doorbell each", 1, 32),
		row<DELAY>("GPU-shared, 132x32 threads", 132, 32),
		row<NODELAY>("GPU-shared, 132x32 threads, doorbell each", 132, 32),
		row<DELAY>("GPU-shared, 132x256 threads", 132, 256),
	};
}

int main(int argc, char **argv)
{
	return run_main(argc, argv, table, table);
}
