/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The doorbell rung by the thread that posts: the doorbell record in memory and
 * the 8-byte register store. Who may ring, and up to where, is qp_dev.h's.
 */
#ifndef GDK_GPU_SM_DEV_H
#define GDK_GPU_SM_DEV_H

#include "../../device/gdk/platform.h"

/* 16 bits of the producer index, big-endian. */
GDK_FN uint32_t gdk_dbrec_value(uint64_t pi)
{
	return gdk_bswap32_16((uint32_t)pi);
}

/* The first eight bytes of a control segment: {index << 8, qpn << 8}, each a
 * big-endian word; the next index with size 0. */
GDK_FN uint64_t gdk_db_value(uint32_t qpn8_be, uint64_t pi)
{
	return (uint64_t)qpn8_be << 32 | gdk_bswap32_24((uint32_t)pi, 0);
}

/* What a ring for all below an index is, and where; complete before the fence that comes
 * between, so that nothing is left to do behind it. */
struct gdk_db {
	uint64_t *reg; /* register, or the counter of a proxy */
	uint32_t *dbrec;
	uint64_t reg_value, dbrec_value;
};

GDK_FN struct gdk_db gdk_db_at(const struct doca_gpu_dev_verbs_qp *qp, uint32_t qpn8_be,
			       uint64_t pi)
{
	struct gdk_db db;

	db.reg = (uint64_t *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, sq_db));
	db.dbrec = (uint32_t *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, sq_dbrec));
	db.reg_value = gdk_db_value(qpn8_be, pi);
	db.dbrec_value = gdk_dbrec_value(pi);
	GDK_COMPUTED(db.reg_value);
	GDK_COMPUTED(db.dbrec_value);
	return db;
}

GDK_FN struct gdk_db gdk_db_of(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi)
{
	return gdk_db_at(qp, gdk_ldc32(GDK_QP_AT(qp, sq_num_shift8_be)), pi);
}

/* Where ring, DBREC, register and first observer are, known at export. */
GDK_FN int gdk_nic_scope(const struct gdk_qp_state *st)
{
	return gdk_ldc32(&st->flags) & GDK_QPF_SYS_SCOPE ? GDK_SCOPE_SYS : GDK_SCOPE_GPU;
}

GDK_FN void gdk_dbrec_store(const struct gdk_db *db)
{
	gdk_st32(db->dbrec, (uint32_t)db->dbrec_value, GDK_SCOPE_SYS);
}

GDK_FN void gdk_db_store(const struct gdk_db *db)
{
	gdk_mmio_st64(db->reg, db->reg_value);
}

#endif
