/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receive queues. The work queue is a ring of receive WQEs of one data segment, one for each packet
 * slot. They are written once, when the context starts; kernels only advance the DBREC. Kernels get
 * a struct in GPU memory, which they also change; the queue, the CQ and the DBRECs are in a slab
 * unit, in memory of the kind that the caller chose.
 */
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "qp/eth/eth.h"
#include "qp/export/export.h"

#include "doca_eth_rxq_gpu_data_path.h"
#include "doca_eth_txq_gpu_data_path.h"
#include "gdk_sdk_eth_rxq_dev.h"

#define WQE_BYTES   16u /* one data segment */
#define CQE_BYTES   64u
#define SLOT_ALIGN  64u
#define SLOT_MAX    16384u
#define DBREC_BYTES 64u /* DBRECs of queue and CQ are in lines of their own */
#define CQ_DBREC_AT 0u
#define DBREC_AT    DBREC_BYTES
#define MCST_SLOTS  64u

/* The RXQs that have a number, for flow rules. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_eth_rxq *numbered; /* protected by lock */

static struct doca_eth_rxq *to_rxq(struct doca_ctx *ctx)
{
	return GDK_CONTAINER_OF(ctx, struct doca_eth_rxq, ctx);
}

/* ---- start and stop ---- */

static doca_error_t check_settings(const struct doca_eth_rxq *rxq)
{
	const struct doca_ctx *ctx = &rxq->ctx;
	const char *why = NULL;

	if (!ctx->gpu)
		why = "no GPU is set: call doca_ctx_set_datapath_on_gpu()";
	else if (!rxq->mmap)
		why = "it has no buffer: call doca_eth_rxq_set_pkt_buf()";
	if (!why)
		return DOCA_SUCCESS;
	gdk_err("RXQ of %u packets: cannot start it: %s", rxq->num, why);
	return DOCA_ERROR_BAD_STATE;
}

/* The CQ begins on a page behind the ring. */
static size_t cq_at(const struct doca_eth_rxq *rxq)
{
	return gdk_align_up((size_t)rxq->num * WQE_BYTES, (size_t)sysconf(_SC_PAGESIZE));
}

static doca_error_t create_memory(struct doca_eth_rxq *rxq)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct gdk_slab_kind kind = {
		.gpu = rxq->ctx.gpu,
		.dev = rxq->ctx.dev,
		.mem = rxq->mem,
		.ways = GDK_UMEM_TRY_DMABUF | GDK_UMEM_TRY_PEER,
		.pages = gdk_align_up(cq_at(rxq) + (size_t)rxq->num * CQE_BYTES, page),
		.lines = GDK_SLAB_LINE,
		.format_cq = gdk_cq_format_image,
		.cq_at = cq_at(rxq),
		.cqe_num = rxq->num,
	};

	return gdk_slab_get(&kind, &rxq->unit);
}

/* Writes the receive WQEs and the DBREC, which offers all slots. */
static doca_error_t write_ring(struct doca_eth_rxq *rxq, uint32_t lkey, uint64_t buf)
{
	struct doca_gpunetio_ib_mlx5_wqe_data_seg *ring = calloc(rxq->num, sizeof(*ring));
	const uint32_t dbrec = htobe32(rxq->num & 0xffff);
	doca_error_t err;
	uint32_t i;

	if (!ring) {
		gdk_err("no memory to initialize a RXQ of %u packets", rxq->num);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (i = 0; i < rxq->num; i++) {
		ring[i].byte_count = htobe32(rxq->stride);
		ring[i].lkey = htobe32(lkey);
		ring[i].addr = htobe64(buf + (uint64_t)i * rxq->stride);
	}
	err = gdk_gpu_write(rxq->ctx.gpu, rxq->unit.pages, ring, rxq->num * sizeof(*ring));
	free(ring);
	if (err)
		return err;
	return gdk_gpu_write(rxq->ctx.gpu, (uint8_t *)rxq->unit.lines + DBREC_AT, &dbrec,
			     sizeof(dbrec));
}

/* Creates the send queue on which kernels wait until packets are visible. */
static doca_error_t create_mcst(struct doca_eth_rxq *rxq)
{
	struct doca_ctx *ctx;
	doca_error_t err;

	if (!rxq->mcst)
		return DOCA_SUCCESS;
	err = doca_eth_txq_create(rxq->ctx.dev, MCST_SLOTS, &rxq->dump);
	if (err) {
		rxq->dump = NULL;
		return err;
	}
	ctx = doca_eth_txq_as_doca_ctx(rxq->dump);
	err = doca_eth_txq_gpu_set_completion_on_gpu(rxq->dump) ?:
	      doca_eth_txq_gpu_set_sq_mem_type(rxq->dump, rxq->mem) ?:
	      doca_ctx_set_datapath_on_gpu(ctx, rxq->ctx.gpu) ?:
	      doca_ctx_start(ctx);
	if (!err)
		return DOCA_SUCCESS;
	(void)doca_eth_txq_destroy(rxq->dump);
	rxq->dump = NULL;
	return err;
}

static doca_error_t destroy_mcst(struct doca_eth_rxq *rxq)
{
	doca_error_t err = DOCA_SUCCESS;

	if (!rxq->dump)
		return DOCA_SUCCESS;
	err = doca_ctx_stop(doca_eth_txq_as_doca_ctx(rxq->dump));
	if (err)
		return err;
	(void)doca_eth_txq_destroy(rxq->dump);
	rxq->dump = NULL;
	return DOCA_SUCCESS;
}

/* Creates the struct that kernels get. */
static doca_error_t create_state(struct doca_eth_rxq *rxq, uint32_t lkey, uint64_t buf,
				 uint32_t ts_format)
{
	struct doca_gpu_eth_txq *dump = NULL;
	struct doca_gpu_eth_rxq image = {
		.pkts = buf,
		.cqes = (uintptr_t)rxq->unit.pages + cq_at(rxq),
		.dbrec = (uintptr_t)rxq->unit.lines + DBREC_AT,
		.num = rxq->num,
		.stride = rxq->stride,
		.mkey = htobe32(lkey),
		.flags = ts_format == GDK_TS_FORMAT_REAL_TIME ? GDK_ETH_RXF_REAL_TIME : 0,
		.error_packet = UINT64_MAX,
	};
	void *cpu = NULL;
	doca_error_t err = DOCA_SUCCESS;

	if (rxq->dump)
		err = doca_eth_txq_get_gpu_handle(rxq->dump, &dump);
	if (err)
		return err;
	image.mcst = (uintptr_t)dump;
	err = doca_gpu_mem_alloc(rxq->ctx.gpu, sizeof(image), GDK_STATE_LINE, DOCA_GPU_MEM_TYPE_GPU,
				 &rxq->state, &cpu);
	if (err) {
		rxq->state = NULL;
		return err;
	}
	return gdk_gpu_write(rxq->ctx.gpu, rxq->state, &image, sizeof(image));
}

static doca_error_t create_queue(struct doca_eth_rxq *rxq, uint32_t ts_format)
{
	const uint8_t *lines = rxq->unit.lines;
	const struct gdk_eth_wq wq = {
		.dev = rxq->ctx.dev,
		.cqn = rxq->cq->cqn,
		.num = rxq->num,
		.stride = WQE_BYTES,
		.umem = rxq->unit.umem,
		.umem_dbr = rxq->unit.umem,
		.ring = rxq->unit.pages,
		.dbrec = lines + DBREC_AT,
		.counters = rxq->counters.number,
		.ts_format = ts_format,
	};

	return gdk_eth_create_rq(&wq, &rxq->rq);
}

/* Destroys what exists, in reverse order. Stops at the first error: the NIC may still use the
 * rest. */
static doca_error_t destroy_parts(struct doca_eth_rxq *rxq)
{
	struct doca_dev *dev = rxq->ctx.dev;
	doca_error_t err = gdk_eth_destroy_obj(dev, &rxq->rq);

	if (!err)
		err = gdk_eth_destroy_obj(dev, &rxq->counters);
	if (!err && rxq->cq)
		err = doca_verbs_cq_destroy(rxq->cq);
	if (err)
		return err;
	rxq->cq = NULL;
	if (rxq->state)
		err = doca_gpu_mem_free(rxq->ctx.gpu, rxq->state);
	if (err)
		return err;
	rxq->state = NULL;
	err = destroy_mcst(rxq);
	if (err)
		return err;
	if (rxq->unit.umem)
		gdk_slab_put(rxq->unit.umem, rxq->unit.pages);
	rxq->unit.umem = NULL;
	return DOCA_SUCCESS;
}

static doca_error_t create_parts(struct doca_eth_rxq *rxq, uint32_t lkey, uint64_t buf)
{
	struct doca_dev *dev = rxq->ctx.dev;
	struct gdk_eth_caps caps;
	doca_error_t err = gdk_eth_need_caps(dev, &caps);
	uint32_t ts;

	if (err)
		return err;
	ts = gdk_eth_ts_format(caps.rq_ts);
	err = create_memory(rxq);
	if (err)
		return err;
	err = write_ring(rxq, lkey, buf);
	if (!err)
		err = create_mcst(rxq);
	if (!err)
		err = create_state(rxq, lkey, buf, ts);
	if (!err)
		err = gdk_eth_create_cq(dev, &rxq->unit, rxq->num,
					(uint8_t *)rxq->unit.pages + cq_at(rxq),
					(uint8_t *)rxq->unit.lines + CQ_DBREC_AT, &rxq->cq);
	if (!err)
		err = gdk_eth_create_counters(dev, &rxq->counters);
	return err ? err : create_queue(rxq, ts);
}

static doca_error_t start(struct doca_ctx *ctx)
{
	struct doca_eth_rxq *rxq = to_rxq(ctx);
	doca_error_t err = check_settings(rxq);
	const size_t bytes = (size_t)rxq->num * rxq->stride;
	uint32_t lkey;
	size_t len;
	void *addr;

	if (err)
		return err;
	gdk_mmap_range(rxq->mmap, &addr, &len);
	addr = (uint8_t *)addr + rxq->offset;
	err = gdk_mmap_check(rxq->mmap, addr, bytes, "doca_ctx_start");
	if (!err)
		err = doca_mmap_get_mkey(rxq->mmap, ctx->dev, &lkey);
	if (err)
		return err;
	err = create_parts(rxq, lkey, (uintptr_t)addr);
	if (err) {
		(void)destroy_parts(rxq);
		return err;
	}
	gdk_mmap_hold(rxq->mmap);
	atomic_fetch_add(&ctx->dev->users, 1);
	atomic_fetch_add(&ctx->gpu->users, 1);
	return DOCA_SUCCESS;
}

/* Takes a RXQ out of the list of those with a number. */
static void forget_number(struct doca_eth_rxq *rxq)
{
	struct doca_eth_rxq **at;

	pthread_mutex_lock(&lock);
	for (at = &numbered; *at && *at != rxq; at = &(*at)->next)
		;
	if (*at)
		*at = rxq->next;
	pthread_mutex_unlock(&lock);
}

static doca_error_t stop(struct doca_ctx *ctx)
{
	struct doca_eth_rxq *rxq = to_rxq(ctx);
	const int rules = atomic_load(&rxq->rules);
	doca_error_t err;

	if (rules) {
		gdk_err("RQ 0x%x: cannot stop it: %d flow rules or tables send packets to it; "
			"remove them first",
			rxq->rq.number, rules);
		return DOCA_ERROR_IN_USE;
	}
	err = destroy_parts(rxq);
	if (err)
		return err;
	forget_number(rxq);
	gdk_mmap_release(rxq->mmap);
	atomic_fetch_sub(&ctx->gpu->users, 1);
	atomic_fetch_sub(&ctx->dev->users, 1);
	return DOCA_SUCCESS;
}

static const struct gdk_ctx_ops ops = {
	.what = "RXQ",
	.on_gpu = true,
	.start = start,
	.stop = stop,
};

bool gdk_eth_rxq_runs(const struct doca_eth_rxq *rxq, const char *func)
{
	if (rxq->ctx.state == GDK_CTX_STATE_RUNNING)
		return true;
	gdk_err("%s: the RXQ does not run; call doca_ctx_start() first", func);
	return false;
}

/* ---- flow rules ---- */

struct doca_eth_rxq *gdk_eth_rxq_find(const struct doca_dev *dev, uint16_t queue_id)
{
	struct doca_eth_rxq *rxq;

	pthread_mutex_lock(&lock);
	for (rxq = numbered; rxq; rxq = rxq->next)
		if (rxq->ctx.dev == dev && rxq->queue_id == queue_id)
			break;
	pthread_mutex_unlock(&lock);
	return rxq;
}

void gdk_eth_rxq_hold(struct doca_eth_rxq *rxq)
{
	atomic_fetch_add(&rxq->rules, 1);
}

void gdk_eth_rxq_release(struct doca_eth_rxq *rxq)
{
	atomic_fetch_sub(&rxq->rules, 1);
}

doca_error_t doca_eth_rxq_apply_queue_id(struct doca_eth_rxq *eth_rxq, uint16_t queue_id)
{
	struct doca_eth_rxq *other;

	GDK_CHECK_PTR(eth_rxq);
	if (!gdk_eth_rxq_runs(eth_rxq, __func__))
		return DOCA_ERROR_BAD_STATE;
	other = gdk_eth_rxq_find(eth_rxq->ctx.dev, queue_id);
	if (other && other != eth_rxq) {
		gdk_err("RQ 0x%x: queue_id %u is that of RQ 0x%x already", eth_rxq->rq.number,
			queue_id, other->rq.number);
		return DOCA_ERROR_ALREADY_EXIST;
	}
	forget_number(eth_rxq);
	pthread_mutex_lock(&lock);
	eth_rxq->queue_id = queue_id;
	eth_rxq->next = numbered;
	numbered = eth_rxq;
	pthread_mutex_unlock(&lock);
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_get_hw_queue_num(const struct doca_eth_rxq *eth_rxq,
					   uint32_t *hw_queue_num)
{
	GDK_CHECK_PTR(eth_rxq);
	GDK_CHECK_PTR(hw_queue_num);
	if (!gdk_eth_rxq_runs(eth_rxq, __func__))
		return DOCA_ERROR_BAD_STATE;
	*hw_queue_num = eth_rxq->rq.number;
	return DOCA_SUCCESS;
}

/* ---- creation and settings ---- */

/* Rounds the sizes of a queue up. NVIDIA's gpu_packet_processing requests 65536 slots. */
static doca_error_t round_sizes(uint32_t max_burst_size, uint32_t max_packet_size, uint32_t *num,
				uint32_t *stride)
{
	GDK_CHECK_RANGE(max_burst_size, 1, 2 * GDK_ETH_DEPTH_MAX);
	GDK_CHECK_RANGE(max_packet_size, 1, SLOT_MAX);
	*num = (uint32_t)gdk_roundup_pow2(max_burst_size);
	if (*num > GDK_ETH_DEPTH_MAX) {
		gdk_info("RXQ of %u packets: a queue has at most %u slots, using %u",
			 max_burst_size, GDK_ETH_DEPTH_MAX, GDK_ETH_DEPTH_MAX);
		*num = GDK_ETH_DEPTH_MAX;
	}
	*stride = (uint32_t)gdk_align_up(max_packet_size, SLOT_ALIGN);
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_create(struct doca_dev *dev, uint32_t max_burst_size,
				 uint32_t max_packet_size, struct doca_eth_rxq **eth_rxq)
{
	struct doca_eth_rxq *rxq;
	uint32_t num, stride;
	doca_error_t err;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(eth_rxq);
	if (!gdk_dev_is_open(dev, __func__))
		return DOCA_ERROR_INVALID_VALUE;
	err = round_sizes(max_burst_size, max_packet_size, &num, &stride);
	if (err)
		return err;
	rxq = calloc(1, sizeof(*rxq));
	if (!rxq) {
		gdk_err("no memory for a RXQ");
		return DOCA_ERROR_NO_MEMORY;
	}
	gdk_ctx_init(&rxq->ctx, &ops, dev);
	rxq->num = num;
	rxq->stride = stride;
	rxq->mem = gdk_queue_mem_type();
	*eth_rxq = rxq;
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_destroy(struct doca_eth_rxq *eth_rxq)
{
	doca_error_t err;

	GDK_CHECK_PTR(eth_rxq);
	err = gdk_ctx_fini(&eth_rxq->ctx);
	if (!err)
		free(eth_rxq);
	return err;
}

struct doca_ctx *doca_eth_rxq_as_doca_ctx(struct doca_eth_rxq *eth_rxq)
{
	GDK_CHECK_PTR_OR(NULL, eth_rxq);
	return &eth_rxq->ctx;
}

static doca_error_t check_type(enum doca_eth_rxq_type type)
{
	GDK_CHECK_ENUM(type, DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL);
	if (type == DOCA_ETH_RXQ_TYPE_CYCLIC)
		return DOCA_SUCCESS;
	gdk_err("a RXQ of type MANAGED_MEMPOOL, which the CPU receives from, is not supported: use "
		"DOCA_ETH_RXQ_TYPE_CYCLIC");
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_eth_rxq_set_type(struct doca_eth_rxq *eth_rxq, enum doca_eth_rxq_type type)
{
	doca_error_t err;

	GDK_CHECK_PTR(eth_rxq);
	err = gdk_ctx_must_be_idle(&eth_rxq->ctx, __func__);
	return err ? err : check_type(type);
}

doca_error_t doca_eth_rxq_estimate_packet_buf_size(enum doca_eth_rxq_type type, uint32_t rate,
						   uint32_t pkt_max_process_time,
						   uint32_t max_packet_size,
						   uint32_t max_burst_size,
						   uint8_t log_max_lro_pkt_sz, uint16_t head_size,
						   uint16_t tail_size, uint32_t *buf_size)
{
	uint32_t num, stride;
	doca_error_t err;

	(void)rate;
	(void)pkt_max_process_time;
	(void)log_max_lro_pkt_sz;
	(void)head_size;
	(void)tail_size;
	GDK_CHECK_PTR(buf_size);
	err = check_type(type);
	if (!err)
		err = round_sizes(max_burst_size, max_packet_size, &num, &stride);
	if (!err)
		*buf_size = num * stride; /* at most 2^29 */
	return err;
}

doca_error_t doca_eth_rxq_set_pkt_buf(struct doca_eth_rxq *eth_rxq, struct doca_mmap *mmap,
				      uint32_t mmap_offset, uint32_t mmap_len)
{
	doca_error_t err;
	size_t len;
	void *addr;

	GDK_CHECK_PTR(eth_rxq);
	GDK_CHECK_PTR(mmap);
	GDK_CHECK_ARG(mmap_offset % SLOT_ALIGN == 0, "mmap_offset %u (expected a multiple of %u)",
		      mmap_offset, SLOT_ALIGN);
	GDK_CHECK_ARG(mmap_len >= (uint64_t)eth_rxq->num * eth_rxq->stride,
		      "mmap_len %u (expected at least %llu: %u packets of %u bytes)", mmap_len,
		      (unsigned long long)eth_rxq->num * eth_rxq->stride, eth_rxq->num,
		      eth_rxq->stride);
	err = gdk_ctx_must_be_idle(&eth_rxq->ctx, __func__);
	if (err)
		return err;
	gdk_mmap_range(mmap, &addr, &len);
	err = gdk_mmap_check(mmap, (uint8_t *)addr + mmap_offset, mmap_len, __func__);
	if (err)
		return err;
	eth_rxq->mmap = mmap;
	eth_rxq->offset = mmap_offset;
	return DOCA_SUCCESS;
}

/* ---- kernels ---- */

doca_error_t doca_eth_rxq_get_gpu_handle(const struct doca_eth_rxq *eth_rxq,
					 struct doca_gpu_eth_rxq **gpu_eth_rxq)
{
	GDK_CHECK_PTR(eth_rxq);
	GDK_CHECK_PTR(gpu_eth_rxq);
	if (!gdk_eth_rxq_runs(eth_rxq, __func__))
		return DOCA_ERROR_BAD_STATE;
	*gpu_eth_rxq = eth_rxq->state;
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_gpu_set_rq_mem_type(struct doca_eth_rxq *eth_rxq,
					      enum doca_gpu_mem_type mem_type)
{
	doca_error_t err;

	GDK_CHECK_PTR(eth_rxq);
	GDK_CHECK_ENUM(mem_type, DOCA_GPU_MEM_TYPE_CPU_GPU);
	err = gdk_ctx_must_be_idle(&eth_rxq->ctx, __func__);
	if (!err)
		eth_rxq->mem = mem_type;
	return err;
}

doca_error_t doca_eth_rxq_gpu_enable_mcst_qp(struct doca_eth_rxq *eth_rxq)
{
	doca_error_t err;

	GDK_CHECK_PTR(eth_rxq);
	err = gdk_ctx_must_be_idle(&eth_rxq->ctx, __func__);
	if (!err)
		eth_rxq->mcst = true;
	return err;
}

doca_error_t gdk_eth_rxq_get_counters(const struct doca_eth_rxq *eth_rxq,
				      struct gdk_eth_rxq_counters *counters)
{
	struct doca_gpu_eth_rxq state;
	uint32_t out_of_buffer = 0;
	doca_error_t err;

	GDK_CHECK_PTR(eth_rxq);
	GDK_CHECK_PTR(counters);
	if (!gdk_eth_rxq_runs(eth_rxq, __func__))
		return DOCA_ERROR_BAD_STATE;
	err = gdk_gpu_read(eth_rxq->ctx.gpu, &state, eth_rxq->state, sizeof(state));
	if (!err)
		err = gdk_eth_query_counters(eth_rxq->ctx.dev, &eth_rxq->counters, &out_of_buffer);
	if (err)
		return err;
	*counters = (struct gdk_eth_rxq_counters){
		.packets = state.next,
		.dbrecs = state.dbrecs,
		.out_of_buffer = out_of_buffer,
		.status = state.status,
		.error_packet = state.error_packet,
	};
	return DOCA_SUCCESS;
}

doca_error_t gdk_eth_rxq_abort(struct doca_eth_rxq *eth_rxq)
{
	const uint32_t one = 1;
	uint32_t *at, *cpu;

	GDK_CHECK_PTR(eth_rxq);
	if (!gdk_eth_rxq_runs(eth_rxq, __func__))
		return DOCA_ERROR_BAD_STATE;
	at = (void *)((uint8_t *)eth_rxq->state + offsetof(struct doca_gpu_eth_rxq, abort_word));
	cpu = gdk_gpu_cpu_ptr(eth_rxq->ctx.gpu, at);
	if (!cpu)
		return gdk_gpu_write(eth_rxq->ctx.gpu, at, &one, sizeof(one));
	__atomic_store_n(cpu, one, __ATOMIC_SEQ_CST);
	return DOCA_SUCCESS;
}
