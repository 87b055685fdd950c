/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Builds and destroys a send queue. The SQ is exported to the GPU as a queue pair (qp/export), so
 * that slots, doorbells, completion, errors, aborts and the CPU proxy are those of queue pairs.
 * What a TXQ has in addition is in the device struct, in place of the receive CQ.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "qp/eth/txq.h"

#include "gdk_sdk_eth_txq_dev.h"

#define CQE_BYTES   64u
#define DBREC_BYTES 64u /* each DBREC is in a line of its own */
#define CQ_DBREC_AT 0u
#define DBREC_AT    DBREC_BYTES
#define CS_L3	    0x40u
#define CS_L4	    0x80u

static struct doca_eth_txq *to_txq(struct doca_ctx *ctx)
{
	return GDK_CONTAINER_OF(ctx, struct doca_eth_txq, ctx);
}

/* What the start of a queue decides first. */
struct plan {
	struct gdk_eth_caps caps;
	bool cq_on_host, dbrec_on_host; /* although the ring is in GPU memory */
};

/* ---- register, memory ---- */

static doca_error_t create_uar(struct doca_eth_txq *txq)
{
	static const enum doca_verbs_uar_allocation_type types[] = {
		DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED,
		DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE,
		DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME,
	};
	const size_t first = txq->want == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF ? 2 : 0;
	doca_error_t err = DOCA_ERROR_NOT_SUPPORTED;
	size_t i;

	for (i = first; i < GDK_ARRAY_SIZE(types) && err; i++)
		err = doca_verbs_uar_create(txq->ctx.dev, types[i], &txq->uar);
	if (err)
		txq->uar = NULL;
	return err;
}

static doca_error_t choose_handler(struct doca_eth_txq *txq, struct plan *p)
{
	const struct gdk_doorbell_ask ask = {
		.gpu = txq->ctx.gpu,
		.dev = txq->ctx.dev,
		.uar = txq->uar,
		.want = txq->want,
		.dbr_mode = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
		.dbr_mode_stated = true,
	};
	const bool in_gpu = txq->mem != DOCA_GPU_MEM_TYPE_CPU_GPU;
	doca_error_t err = gdk_choose_doorbell(&ask, &txq->decision);

	if (err)
		return err;
	p->cq_on_host = in_gpu && !txq->gpu_completion;
	p->dbrec_on_host = in_gpu && txq->decision.db->dbrec_on_host;
	return DOCA_SUCCESS;
}

static size_t page_align(size_t bytes)
{
	return gdk_align_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

static size_t ring_bytes(const struct doca_eth_txq *txq)
{
	return page_align((size_t)txq->num * GDK_WQEBB_SIZE);
}

static doca_error_t create_memory(struct doca_eth_txq *txq, const struct plan *p)
{
	const size_t cq_bytes = page_align((size_t)txq->num * CQE_BYTES);
	struct gdk_slab_kind kind = {
		.gpu = txq->ctx.gpu,
		.dev = txq->ctx.dev,
		.mem = txq->mem,
		.ways = GDK_UMEM_TRY_DMABUF | GDK_UMEM_TRY_PEER,
		.pages = ring_bytes(txq) + (p->cq_on_host ? 0 : cq_bytes),
		.lines = GDK_SLAB_LINE,
		.format_cq = gdk_cq_format_image,
		.cq_at = ring_bytes(txq),
		.cqe_num = p->cq_on_host ? 0 : txq->num,
	};
	doca_error_t err = gdk_slab_get(&kind, &txq->unit);

	if (err || !(p->cq_on_host || p->dbrec_on_host))
		return err;
	kind.mem = DOCA_GPU_MEM_TYPE_CPU_GPU;
	kind.pages = p->cq_on_host ? cq_bytes : 0;
	kind.cq_at = 0;
	kind.cqe_num = p->cq_on_host ? txq->num : 0;
	return gdk_slab_get(&kind, &txq->host_unit);
}

static void put_unit(struct gdk_slab_unit *unit)
{
	if (unit->umem)
		gdk_slab_put(unit->umem,
			     unit->pages != unit->lines && unit->pages ? unit->pages : unit->lines);
	unit->umem = NULL;
}

static doca_error_t alloc_cleared(struct doca_gpu *gpu, size_t len, enum doca_gpu_mem_type type,
				  void **on_gpu, void **cpu)
{
	doca_error_t err = doca_gpu_mem_alloc(gpu, len, GDK_STATE_LINE, type, on_gpu, cpu);

	if (err)
		*on_gpu = NULL;
	return err ? err : gdk_gpu_fill(gpu, *on_gpu, 0, len);
}

static doca_error_t create_notes(struct doca_eth_txq *txq)
{
	const enum doca_gpu_mem_type type = txq->gpu_completion ? DOCA_GPU_MEM_TYPE_GPU
								: DOCA_GPU_MEM_TYPE_CPU_GPU;
	/* The second half has the times of sends, for completions on the CPU. */
	const uint32_t entries = txq->wait_on_time && !txq->gpu_completion ? 2 * txq->num
									   : txq->num;
	void *cpu = NULL, *unused = NULL;
	doca_error_t err = alloc_cleared(txq->ctx.gpu,
					 sizeof(struct gdk_eth_marks) + txq->num * sizeof(uint32_t),
					 DOCA_GPU_MEM_TYPE_GPU, &txq->marks, &unused);

	if (!err)
		err = alloc_cleared(txq->ctx.gpu, entries * sizeof(uint64_t), type, &txq->notes,
				    &cpu);
	txq->notes_cpu = txq->gpu_completion ? NULL : cpu;
	return err;
}

/* ---- objects of the NIC ---- */

static doca_error_t create_queue(struct doca_eth_txq *txq, const struct plan *p)
{
	struct gdk_slab_unit *dbr = p->dbrec_on_host ? &txq->host_unit : &txq->unit;
	struct gdk_slab_unit *cq = p->cq_on_host ? &txq->host_unit : &txq->unit;
	struct doca_dev *dev = txq->ctx.dev;
	/* Word 1 of the pair is that of the SQ. */
	struct gdk_eth_wq wq = {
		.dev = dev,
		.num = txq->num,
		.stride = GDK_WQEBB_SIZE,
		.umem = txq->unit.umem,
		.umem_dbr = dbr->umem,
		.ring = txq->unit.pages,
		.dbrec = (uint8_t *)dbr->lines + DBREC_AT,
		.uar = txq->uar->id,
		.ts_format = gdk_eth_ts_format(p->caps.sq_ts),
		.empw = p->caps.empw,
	};
	doca_error_t err;

	err = gdk_eth_create_cq(dev, cq, txq->num,
				(uint8_t *)cq->pages + (p->cq_on_host ? 0 : ring_bytes(txq)),
				(uint8_t *)cq->lines + CQ_DBREC_AT, &txq->cq);
	if (!err)
		err = gdk_eth_create_td(dev, &txq->td);
	if (!err)
		err = gdk_eth_create_tis(dev, txq->td.number, &txq->tis);
	if (err)
		return err;
	wq.cqn = txq->cq->cqn;
	wq.tisn = txq->tis.number;
	err = gdk_eth_create_sq(&wq, &txq->sq);
	if (err)
		return err;
	txq->qp = (struct doca_verbs_qp_t){
		.dev = dev,
		.qpn = txq->sq.number,
		.state = DOCA_VERBS_QP_STATE_RTS,
		.sq_num = txq->num,
		.sq_buf = txq->unit.pages,
		.dbrec = (uint32_t *)((uint8_t *)dbr->lines + DBREC_AT),
		.gpu = txq->unit.umem->gpu,
		.umem = txq->unit.umem,
		.umem_dbr = dbr->umem,
		.uar = txq->uar,
		.send_cq = txq->cq,
		.ethernet = true,
	};
	pthread_mutex_init(&txq->qp.lock, NULL);
	gdk_qp_count_uses(&txq->qp, 1);
	return DOCA_SUCCESS;
}

/* Writes the members of the device struct that queue pairs lack. */
static doca_error_t write_tx(struct doca_eth_txq *txq, const struct plan *p)
{
	struct gdk_eth_tx tx = {
		.marks = (uintptr_t)txq->marks,
		.notes = (uintptr_t)txq->notes,
		.cs = (txq->l3 ? CS_L3 : 0) | (txq->l4 ? CS_L4 : 0),
	};

	if (!txq->gpu_completion)
		tx.flags |= GDK_ETH_TXF_CPU_CQ;
	if (p->caps.empw)
		tx.flags |= GDK_ETH_TXF_EMPW;
	if (txq->wait_on_time)
		tx.flags |= GDK_ETH_TXF_WAIT;
	if (txq->real_time)
		tx.flags |= GDK_ETH_TXF_REAL_TIME;
	return gdk_gpu_write(txq->ctx.gpu, &txq->dev->tx, &tx, sizeof(tx));
}

/* WQEs have several slots, and most generate no CQE: see gdk_wqe_signal(). */
static doca_error_t write_uneven(struct doca_eth_txq *txq)
{
	const uint32_t ones[2] = { 1, 1 };
	struct gdk_qp_state *st = gdk_to_export(txq->exported)->q.state;

	_Static_assert(offsetof(struct gdk_qp_state, long_wqe) ==
			       offsetof(struct gdk_qp_state, uneven) + sizeof(uint32_t),
		       "one write sets both");
	return gdk_gpu_write(txq->ctx.gpu, &st->uneven, ones, sizeof(ones));
}

static doca_error_t export(struct doca_eth_txq *txq, const struct plan *p)
{
	const struct gdk_export_ask what = {
		.gpu = txq->ctx.gpu,
		.qp = &txq->qp,
		.cq = txq->cq,
		.handler = txq->decision.chosen,
		.mode = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
		.decision = &txq->decision,
	};
	struct doca_gpu_dev_verbs_qp *dev;
	doca_error_t err = gdk_qp_export(&what, &txq->exported);

	if (err)
		return err;
	err = doca_gpu_verbs_get_qp_dev(txq->exported, &dev);
	if (err)
		return err;
	txq->dev = (struct doca_gpu_eth_txq *)(void *)dev;
	err = write_tx(txq, p);
	return err ? err : write_uneven(txq);
}

/* ---- start and stop ---- */

static doca_error_t free_block(struct doca_gpu *gpu, void **block)
{
	doca_error_t err = *block ? doca_gpu_mem_free(gpu, *block) : DOCA_SUCCESS;

	if (!err)
		*block = NULL;
	return err;
}

/* Destroys the SQ and what it uses. Stops at the first error: the NIC may still use the rest. */
static doca_error_t destroy_queue(struct doca_eth_txq *txq)
{
	struct doca_dev *dev = txq->ctx.dev;
	const bool had_sq = txq->sq.obj != NULL;
	doca_error_t err = gdk_eth_destroy_obj(dev, &txq->sq);

	if (err)
		return err;
	if (had_sq) {
		gdk_qp_count_uses(&txq->qp, -1);
		pthread_mutex_destroy(&txq->qp.lock);
	}
	err = gdk_eth_destroy_obj(dev, &txq->tis);
	if (!err)
		err = gdk_eth_destroy_obj(dev, &txq->td);
	if (!err && txq->cq)
		err = doca_verbs_cq_destroy(txq->cq);
	if (!err)
		txq->cq = NULL;
	return err;
}

static doca_error_t destroy_parts(struct doca_eth_txq *txq)
{
	struct doca_gpu *gpu = txq->ctx.gpu;
	doca_error_t err = DOCA_SUCCESS;

	if (txq->exported)
		err = doca_gpu_verbs_unexport_qp(gpu, txq->exported);
	if (err)
		return err;
	txq->exported = NULL;
	err = destroy_queue(txq);
	if (!err)
		err = free_block(gpu, &txq->notes);
	if (!err)
		err = free_block(gpu, &txq->marks);
	if (err)
		return err;
	put_unit(&txq->host_unit);
	put_unit(&txq->unit);
	if (txq->uar)
		(void)doca_verbs_uar_destroy(txq->uar);
	txq->uar = NULL;
	return DOCA_SUCCESS;
}

static doca_error_t create_parts(struct doca_eth_txq *txq)
{
	struct plan p = { 0 };
	doca_error_t err = gdk_eth_need_caps(txq->ctx.dev, &p.caps);

	if (!err && txq->wait_on_time)
		err = gdk_eth_check_wait(txq->ctx.dev, &p.caps);
	if (!err)
		err = create_uar(txq);
	if (!err)
		err = choose_handler(txq, &p);
	if (!err)
		err = create_memory(txq, &p);
	if (!err)
		err = create_notes(txq);
	if (!err)
		err = create_queue(txq, &p);
	txq->real_time = gdk_eth_ts_format(p.caps.sq_ts) == GDK_TS_FORMAT_REAL_TIME;
	return err ? err : export(txq, &p);
}

doca_error_t gdk_eth_txq_start(struct doca_ctx *ctx)
{
	struct doca_eth_txq *txq = to_txq(ctx);
	doca_error_t err;

	if (!ctx->gpu) {
		gdk_err("TXQ of %u slots: cannot start it: no GPU is set: call "
			"doca_ctx_set_datapath_on_gpu()",
			txq->num);
		return DOCA_ERROR_BAD_STATE;
	}
	txq->cqe_ci = txq->next_wqe = txq->events = 0;
	txq->timed = txq->early = txq->late_sum = txq->late_max = 0;
	txq->failed = false;
	err = create_parts(txq);
	if (err) {
		(void)destroy_parts(txq);
		return err;
	}
	atomic_fetch_add(&ctx->dev->users, 1);
	atomic_fetch_add(&ctx->gpu->users, 1);
	return DOCA_SUCCESS;
}

doca_error_t gdk_eth_txq_stop(struct doca_ctx *ctx)
{
	doca_error_t err = destroy_parts(to_txq(ctx));

	if (err)
		return err;
	atomic_fetch_sub(&ctx->gpu->users, 1);
	atomic_fetch_sub(&ctx->dev->users, 1);
	return DOCA_SUCCESS;
}
