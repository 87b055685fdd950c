/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* CQEs: their addresses, whether they have arrived, and what they report. wait_dev.h waits for
 * CQEs, and has the completion state of a QP. */
#ifndef GDK_CQ_DEV_H
#define GDK_CQ_DEV_H

#include "device/gdk/platform.h"

#define GDK_CQE_OPCODE_ERR DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR
#define GDK_SYNDROME_FLUSH 0x05u

/* Three fields of a CQE: wqe_counter, opcode and owner bit. They are in one 32-bit word, so one
 * load reads values that belong together. */
struct gdk_cqe_tail {
	uint16_t counter;
	uint8_t opcode, owner;
};

/* Returns the address of the last word of a CQ entry, which has the fields of struct gdk_cqe_tail.
 * entry: must be less than the number of entries. */
GDK_FN const uint32_t *gdk_cqe_word(const struct gdk_qp_state *st, uint64_t entry)
{
	return (const uint32_t *)(uintptr_t)(gdk_ldc64(&st->cq_ring) + entry * 64 + 60);
}

GDK_FN struct gdk_cqe_tail gdk_cqe_tail_of(uint32_t word)
{
	struct gdk_cqe_tail t;

	t.counter = gdk_bswap16((uint16_t)word);
	t.opcode = (uint8_t)(word >> 28);
	t.owner = (uint8_t)(word >> 24 & 1);
	return t;
}

GDK_FN int gdk_cqe_is_error(const struct gdk_cqe_tail *t)
{
	return t->opcode == GDK_CQE_OPCODE_ERR || t->opcode == DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR;
}

/*
 * Returns whether the CQE with absolute index `at`, counted from the creation of the CQ, has
 * arrived. Stores its fields in *t. The owner bit distinguishes the CQE from that of the lap
 * before, but not from that of two laps before. So the caller must know that the CQE of the lap
 * before has arrived. This holds for the CQE of a slot that was rung, because the slot was reserved
 * after the CQE of the lap before had arrived.
 */
GDK_FN int gdk_cqe_arrived(const struct gdk_qp_state *st, uint64_t at, struct gdk_cqe_tail *t)
{
	const uint32_t num = gdk_ldc32(&st->cq_num);

	*t = gdk_cqe_tail_of(gdk_ld32(gdk_cqe_word(st, at & (num - 1)), GDK_SCOPE_SYS));
	return t->opcode != DOCA_GPUNETIO_IB_MLX5_CQE_INVALID && t->owner == !!(at & num);
}

/*
 * Extends the 16-bit counter of a CQE to the index of its slot: the highest index below `rung` that
 * has these low 16 bits. `rung` must be loaded after the CQE; then it is above the index of the
 * slot. It must also be at most 65536 above that index. Returns 1, or 0 if there is no such index.
 */
GDK_FN int gdk_counter_extend(uint64_t rung, uint16_t counter, uint64_t *index)
{
	const uint16_t back = (uint16_t)((uint16_t)(rung - 1) - counter);

	*index = rung - 1 - back;
	return rung > back;
}

/* Returns the number of slots of the completed WQE at `index`. The function loads this number from
 * the control segment, which does not change until `completed` passes `index`. */
GDK_FN uint32_t gdk_wqe_slots(const struct gdk_qp_state *st, uint64_t index)
{
	uint64_t at;
	uint32_t ds;

	if (!gdk_ld32(&st->long_wqe, GDK_SCOPE_GPU))
		return 1;
	at = gdk_ldc64(&st->ring) + (index & (gdk_ldc32(&st->depth) - 1)) * 64;
	ds = gdk_bswap32(gdk_ld32((const uint32_t *)(uintptr_t)(at + 4), GDK_SCOPE_GPU)) & 0x3f;
	return ds > 4 ? (ds + 3) / 4 : 1;
}

/* Returns 1 if entry 0 of a collapsed CQ now has the CQE of a flush, which follows another error.
 * The caller may have read the opcode of that first error, before the flush overwrote it. */
GDK_FN int gdk_cqe_is_flush(const struct gdk_qp_state *st)
{
	const uint64_t base = gdk_ldc64(&st->cq_ring);

	return gdk_ld32((const uint32_t *)(uintptr_t)(base + 52), GDK_SCOPE_SYS) >> 24 ==
	       GDK_SYNDROME_FLUSH;
}

/* For a QP that has ended: returns the index of the WQE that failed, or of the first WQE that is
 * not complete if the failed one is not known (abort, time limit, a flush in a collapsed CQ). Every
 * CQE from the first failed WQE on is an error. `error_ci` may be the index of a later error CQE,
 * so the loop steps back while the CQE before is an error as well. */
GDK_FN uint64_t gdk_state_error_wqe(const struct gdk_qp_state *st)
{
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	uint64_t index = gdk_ld64(&st->error_wqe, GDK_SCOPE_GPU);
	uint64_t at = gdk_ld64(&st->error_ci, GDK_SCOPE_GPU);
	struct gdk_cqe_tail t;

	if (index == GDK_NO_WQE ||
	    (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED && gdk_cqe_is_flush(st)))
		return gdk_ld64(&st->completed, GDK_SCOPE_GPU);
	if (at == GDK_NO_WQE || gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED)
		return index;
	while (at > gdk_ldc64(&st->cq_rsvd) && gdk_cqe_arrived(st, --at, &t) &&
	       gdk_cqe_is_error(&t))
		(void)gdk_counter_extend(rung, t.counter, &index);
	return index;
}

#endif
