/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs UCX's device endpoint (gdaki.cuh, unchanged from a checkout) on gdaki's device
 * headers. The endpoint has UCX's own layout, with one-entry CQs and DBRECs inside;
 * gdaki's host library creates its queues. Threads, warps and blocks post puts and
 * atomic adds. The host checks data, sums and completions, and that a write to memory
 * which is not registered ends with an error.
 * usage: ucx_gdaki_driver [-g GPU] [-n ROUNDS] [-p HANDLER]
 * HANDLER is ignored, because GPU threads always ring UCX's doorbells.
 */
#include <string.h>

#include "launch.h"

#include <uct/api/device/uct_device_impl.h>

#define CHANNELS   3 /* queue pairs of one endpoint; the last one is for errors */
#define BROKEN	   (CHANNELS - 1)
#define DEPTH	   256 /* more than the 128 messages that share a doorbell */
#define GROUPS_MAX 256
#define REGION	   256
#define PUT_LEN	   200
#define PUTS	   3

struct job {
	uct_device_ep_t *ep;
	const uct_device_mem_elem_t *mem; /* keys of both sides */
	uct_device_completion_t *comps;	  /* one per group */
	uint32_t *failures;
	uint8_t *src;
	uint64_t dst, sum; /* addresses for the NIC */
	unsigned int rounds;
};

template <ucs_device_level_t level>
__device__ static ucs_status_t put(const job &j, unsigned int group, unsigned int channel,
				   uint64_t dst)
{
	ucs_status_t status;

	do /* until the queue has a free slot */
		status = uct_rc_mlx5_gda_ep_put<level>(j.ep, j.mem, j.mem, j.src + group * REGION,
						       dst, PUT_LEN, channel, 0, nullptr);
	while (status == UCS_ERR_NO_RESOURCE);
	return status;
}

/* Posts an atomic add with a doorbell and waits for it. Returns the result of this add and of
 * all operations posted before it. */
template <ucs_device_level_t level>
__device__ static ucs_status_t add(const job &j, unsigned int group, unsigned int channel)
{
	uct_device_completion_t *comp = &j.comps[group];
	ucs_status_t status;

	do
		status = uct_rc_mlx5_gda_ep_atomic_add<level>(
			j.ep, j.mem, group + 1, j.sum, channel, UCT_DEVICE_FLAG_NODELAY, comp);
	while (status == UCS_ERR_NO_RESOURCE);
	while (status == UCS_INPROGRESS)
		status = uct_rc_mlx5_gda_ep_check_completion<level>(j.ep, comp);
	return status;
}

/* Run by a single thread, by all lanes of a warp or by all threads of a block. */
template <ucs_device_level_t level> __device__ static void work(const job &j, unsigned int group)
{
	const unsigned int channel = group % BROKEN;
	uint32_t bad = 0;

	for (unsigned int round = 0; round < j.rounds; round++) {
		for (unsigned int i = 0; i < PUTS; i++)
			bad += put<level>(j, group, channel, j.dst + group * REGION) !=
			       UCS_INPROGRESS;
		bad += add<level>(j, group, channel) != UCS_OK;
		uct_dev_sync<level>();
	}
	if (bad)
		j.failures[group] = bad;
}

__global__ void by_threads(job j)
{
	work<UCS_DEVICE_LEVEL_THREAD>(j, blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void by_warps(job j)
{
	work<UCS_DEVICE_LEVEL_WARP>(j, (blockIdx.x * blockDim.x + threadIdx.x) / LAUNCH_WARP);
}

__global__ void by_blocks(job j)
{
	work<UCS_DEVICE_LEVEL_BLOCK>(j, blockIdx.x);
}

/* One thread writes to an address that is not registered. Stores 1 in failures[0] if UCX
 * reports the error. */
__global__ void refused(job j)
{
	ucs_status_t status = put<UCS_DEVICE_LEVEL_THREAD>(j, 0, BROKEN, j.dst - (1 << 30));

	if (status == UCS_INPROGRESS)
		status = add<UCS_DEVICE_LEVEL_THREAD>(j, 0, BROKEN);
	j.failures[0] = status == UCS_ERR_IO_ERROR;
}

/* ---- the host part of UCX's transport ---- */

/* Layout of an endpoint as in UCX: the structs of the queue pairs, then the send rings. */
#define RINGS_AT   4096
#define RING_BYTES (DEPTH << DOCA_GPUNETIO_IB_MLX5_WQE_SQ_SHIFT)
#define PLACE(channel, member) \
	(offsetof(uct_rc_gdaki_dev_ep_t, qps) + (channel) * sizeof(uct_rc_gdaki_dev_qp_t) + \
	 offsetof(uct_rc_gdaki_dev_qp_t, member))

struct channel {
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *qp;
	struct doca_gpu_verbs_qp_hl *far_end;
};

/* Memory, besides the endpoint, that kernels read and write. */
struct tables {
	uct_device_mem_elem_t mem;
	uct_device_completion_t comps[GROUPS_MAX];
	uint32_t failures[GROUPS_MAX];
};

struct world {
	struct rig rig;
	/* dst: regions, then the sum, then old values of atomics */
	struct rig_mem ep, src, dst, shared;
	doca_verbs_umem_t *umem;
	doca_verbs_uar_t *uar;
	uint64_t *register_gpu;
	struct channel channels[CHANNELS];
	struct tables *tables;
	struct job job;
};

#define SUM_AT (GROUPS_MAX * REGION)

static void create_cq(struct world *w, struct channel *c, unsigned int i)
{
	doca_verbs_cq_attr_t *attr;

	RIG_MUST(!doca_verbs_cq_attr_create(&attr));
	RIG_MUST(!doca_verbs_cq_attr_set_cq_size(attr, 1));
	RIG_MUST(!doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN));
	RIG_MUST(!doca_verbs_cq_attr_set_cq_collapsed(attr, 1));
	RIG_MUST(!doca_verbs_cq_attr_set_external_umem(attr, w->umem, PLACE(i, cq_buff)));
	RIG_MUST(!doca_verbs_cq_attr_set_external_uar(attr, w->uar));
	RIG_MUST(!doca_verbs_cq_create(w->rig.dev, attr, &c->cq));
	RIG_MUST(!doca_verbs_cq_attr_destroy(attr));
}

static void create_qp(struct world *w, struct channel *c, unsigned int i)
{
	doca_verbs_qp_init_attr_t *attr;

	RIG_MUST(!doca_verbs_qp_init_attr_create(&attr));
	RIG_MUST(!doca_verbs_qp_init_attr_set_pd(attr, w->rig.dev));
	RIG_MUST(!doca_verbs_qp_init_attr_set_qp_type(attr, DOCA_VERBS_QP_TYPE_RC));
	RIG_MUST(!doca_verbs_qp_init_attr_set_send_cq(attr, c->cq));
	RIG_MUST(!doca_verbs_qp_init_attr_set_receive_cq(attr, c->cq));
	RIG_MUST(!doca_verbs_qp_init_attr_set_sq_wr(attr, DEPTH));
	RIG_MUST(!doca_verbs_qp_init_attr_set_send_max_sges(attr, 1));
	RIG_MUST(!doca_verbs_qp_init_attr_set_external_umem(attr, w->umem,
							    RINGS_AT + i * RING_BYTES));
	RIG_MUST(!doca_verbs_qp_init_attr_set_external_umem_dbr(attr, w->umem, PLACE(i, qp_dbrec)));
	RIG_MUST(!doca_verbs_qp_init_attr_set_external_uar(attr, w->uar));
	RIG_MUST(!doca_verbs_qp_create(w->rig.dev, attr, &c->qp));
	RIG_MUST(!doca_verbs_qp_init_attr_destroy(attr));
}

static struct doca_gpu_verbs_qp_hl *open_far_end(struct world *w)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr;
	struct doca_gpu_verbs_qp_hl *qp;

	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = w->rig.gpu;
	attr.net_dev = w->rig.dev;
	attr.ibpd = w->rig.pd;
	attr.sq_nwqe = 64;
	RIG_MUST(!doca_gpu_verbs_create_qp_hl(&attr, &qp));
	return qp;
}

static void open_channel(struct world *w, unsigned int i)
{
	uct_rc_gdaki_dev_qp_t *qp = &((uct_rc_gdaki_dev_ep_t *)w->ep.cpu)->qps[i];
	struct channel *c = &w->channels[i];
	uint32_t entries, receives, bytes;
	void *ring, *receive_ring;

	create_cq(w, c, i);
	create_qp(w, c, i);
	RIG_MUST(!doca_verbs_qp_get_wq(c->qp, &ring, &entries, &receive_ring, &receives, &bytes));
	RIG_MUST(entries == DEPTH && ring == w->ep.cpu + RINGS_AT + i * RING_BYTES);
	RIG_MUST(!doca_verbs_qp_get_qpn(c->qp, &qp->sq_num));
	c->far_end = open_far_end(w);
	rig_connect(&w->rig, c->qp, c->far_end->qp);
	qp->sq_db = w->register_gpu;
	qp->qpn_ds = htobe32(qp->sq_num << DOCA_GPUNETIO_VERBS_WQE_IDX_SHIFT);
	memset(qp->cq_buff, 0xff, sizeof(qp->cq_buff)); /* UCX's value for an empty CQ */
}

static void open_endpoint(struct world *w)
{
	uct_rc_gdaki_dev_ep_t *ep = (uct_rc_gdaki_dev_ep_t *)w->ep.cpu;
	void *reg;

	RIG_MUST(!doca_verbs_umem_create(w->rig.dev, NULL, w->ep.cpu, w->ep.len,
					 IBV_ACCESS_LOCAL_WRITE, (int)DOCA_VERBS_DMABUF_INVALID_FD,
					 0, &w->umem));
	RIG_MUST(!doca_verbs_uar_create(w->rig.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE,
					&w->uar));
	RIG_MUST(!doca_verbs_uar_reg_addr_get(w->uar, &reg));
	RIG_MUST(!doca_gpu_verbs_export_uar((uint64_t *)reg, &w->register_gpu));
	for (unsigned int i = 0; i < CHANNELS; i++)
		open_channel(w, i);
	ep->super.uct_tl_id = UCT_DEVICE_TL_RC_MLX5_GDA;
	ep->atomic_va = w->dst.gpu + SUM_AT + 8;
	ep->atomic_lkey = w->dst.lkey_be;
	ep->sq_wqe_daddr = w->ep.gpu + RINGS_AT;
	ep->sq_wqe_num = DEPTH;
	ep->sq_fc_mask = DEPTH / 2 - 1;
	ep->channel_mask = 3;
}

static void world_open(struct world *w, int argc, char **argv)
{
	rig_open(&w->rig, argc, argv);
	launch_open(&w->rig);
	rig_mem_open(&w->rig, &w->ep, RINGS_AT + CHANNELS * RING_BYTES, false);
	rig_mem_open(&w->rig, &w->src, GROUPS_MAX * REGION, false);
	rig_mem_open(&w->rig, &w->dst, SUM_AT + 4096, false);
	rig_mem_open(&w->rig, &w->shared, sizeof(struct tables), false);
	for (size_t i = 0; i < w->src.len; i++)
		w->src.cpu[i] = rig_pattern(i, 2);
	open_endpoint(w);
	w->tables = (struct tables *)w->shared.cpu;
	/* One element for both sides: lkey of the source, rkey of the destination. */
	w->tables->mem.ib_md_mem_element.lkey = w->src.lkey_be;
	w->tables->mem.ib_md_mem_element.rkey = w->dst.rkey_be;
	w->job.ep = &((uct_rc_gdaki_dev_ep_t *)w->ep.gpu)->super;
	w->job.mem = &((struct tables *)w->shared.gpu)->mem;
	w->job.comps = ((struct tables *)w->shared.gpu)->comps;
	w->job.failures = ((struct tables *)w->shared.gpu)->failures;
	w->job.src = w->src.gpu;
	w->job.dst = (uintptr_t)w->dst.gpu;
	w->job.sum = w->job.dst + SUM_AT;
	w->job.rounds = w->rig.rounds;
}

static void world_close(struct world *w)
{
	for (struct channel &c : w->channels) {
		RIG_MUST(!doca_verbs_qp_destroy(c.qp));
		RIG_MUST(!doca_verbs_cq_destroy(c.cq));
		RIG_MUST(!doca_gpu_verbs_destroy_qp_hl(c.far_end));
	}
	RIG_MUST(!doca_gpu_verbs_unexport_uar(w->register_gpu));
	RIG_MUST(!doca_verbs_uar_destroy(w->uar));
	RIG_MUST(!doca_verbs_umem_destroy(w->umem));
	for (struct rig_mem *m : { &w->ep, &w->src, &w->dst, &w->shared })
		rig_mem_close(&w->rig, m);
	rig_close(&w->rig);
}

static void check(const struct world *w, unsigned int groups)
{
	const uint64_t sum = (uint64_t)groups * (groups + 1) / 2 * w->rig.rounds;

	for (unsigned int g = 0; g < groups; g++) {
		RIG_MUST(!w->tables->failures[g]);
		RIG_MUST(!memcmp(w->dst.cpu + g * REGION, w->src.cpu + g * REGION, PUT_LEN));
		RIG_MUST(!w->dst.cpu[g * REGION + PUT_LEN]);
	}
	RIG_MUST(*(uint64_t *)(w->dst.cpu + SUM_AT) == sum);
}

static void run(struct world *w, void (*kernel)(job), const char *by, unsigned int blocks,
		unsigned int threads, unsigned int groups)
{
	printf("%u x %u, by %s\n", blocks, threads, by);
	fflush(stdout);
	memset(w->dst.cpu, 0, w->dst.len);
	memset(w->tables->failures, 0, sizeof(w->tables->failures));
	RUN(kernel, blocks, threads, w->job);
	check(w, groups);
}

int main(int argc, char **argv)
{
	const unsigned int blocks = LAUNCH_BLOCKS, threads = LAUNCH_BLOCK;
	static struct world w;

	world_open(&w, argc, argv);
	run(&w, by_threads, "threads", 1, 1, 1);
	run(&w, by_threads, "threads", blocks, threads, blocks * threads);
	run(&w, by_warps, "warps", blocks, threads, blocks * threads / LAUNCH_WARP);
	run(&w, by_blocks, "blocks", blocks, threads, blocks);
	RUN(refused, 1, 1, w.job);
	RIG_MUST(w.tables->failures[0] == 1);
	printf("data, sums, completions and the error are right\n");
	world_close(&w);
	return 0;
}
