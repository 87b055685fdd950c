/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The doorbell rung by the thread that posts: the doorbell record in memory and
 * the 8-byte register store. Who may ring, and up to where, is qp_dev.h's.
 */
#ifndef GDK_GPU_SM_DEV_H
#define GDK_GPU_SM_DEV_H

#include "debug_dev.h"

/* 16 bits of the producer index, big-endian. */
GDK_FN uint32_t gdk_dbrec_value(uint64_t pi) { return gdk_bswap32((uint32_t)(pi & 0xffff)); }

/* The first eight bytes of a control segment: {index << 8, qpn << 8}, each a
 * big-endian word; the next index with size 0. */
GDK_FN uint64_t gdk_db_value(uint32_t qpn8_be, uint64_t pi)
{
	return (uint64_t)qpn8_be << 32 | gdk_bswap32((uint32_t)(pi & 0xffff) << 8);
}

GDK_FN uint64_t *gdk_db_reg(const struct doca_gpu_dev_verbs_qp *qp)
{
	return (uint64_t *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, sq_db));
}

/* Where ring, DBREC, register and first observer are, known at export. */
GDK_FN int gdk_nic_scope(const struct gdk_qp_state *st)
{
	return gdk_ldc32(&st->flags) & GDK_QPF_SYS_SCOPE ? GDK_SCOPE_SYS : GDK_SCOPE_GPU;
}

GDK_FN uint32_t *gdk_dbrec(const struct doca_gpu_dev_verbs_qp *qp)
{
	return (uint32_t *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, sq_dbrec));
}

GDK_FN void gdk_dbrec_store(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi)
{
	gdk_st32(gdk_dbrec(qp), gdk_dbrec_value(pi), GDK_SCOPE_SYS);
}

GDK_FN uint64_t gdk_db_of(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi)
{
	return gdk_db_value(gdk_ldc32(GDK_QP_AT(qp, sq_num_shift8_be)), pi);
}

GDK_FN void gdk_db_store(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi)
{
	gdk_mmio_st64(gdk_db_reg(qp), gdk_db_of(qp, pi));
}

GDK_FN int gdk_opt_async(uint32_t code_opt)
{
	return GDK_ASYNC_STORE &&
	       code_opt & DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE;
}

/* For those who order and ring by themselves: WQEs, then the record; the NIC may
 * read either at any time after. */
GDK_FN void gdk_update_dbr(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, uint32_t code_opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	if (gdk_debug_refuses_below(qp, pi))
		return;
	if (gdk_opt_async(code_opt)) {
		gdk_st32_async(gdk_dbrec(qp), gdk_dbrec_value(pi));
	} else {
		gdk_fence_rel(gdk_nic_scope(st));
		gdk_dbrec_store(qp, pi);
	}
	gdk_red_add64(&st->bare_records, 1, GDK_SCOPE_GPU);
}

/* Record (or WQEs), then the register. The index is noted as rung first:
 * completions are understood relative to it. */
GDK_FN void gdk_ring_db(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, uint32_t code_opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	if (gdk_debug_refuses_below(qp, pi))
		return;
	gdk_red_max64(&st->rung, pi, GDK_SCOPE_GPU);
	if (gdk_opt_async(code_opt)) {
		gdk_mmio_st64_async(gdk_db_reg(qp), gdk_db_of(qp, pi));
	} else {
		gdk_fence_rel(gdk_nic_scope(st));
		gdk_db_store(qp, pi);
	}
	gdk_red_add64(&st->doorbells, 1, GDK_SCOPE_GPU);
	gdk_red_add64(&st->bare_rings, 1, GDK_SCOPE_GPU);
}

#endif
