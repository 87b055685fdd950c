/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The debug build (-DGDK_DEBUG) checks every send WQE before its doorbell. A WQE that is certainly
 * wrong is not rung: a printed line names the field, and the QP ends with -EINVAL. Without
 * GDK_DEBUG none of this is compiled.
 *
 * Only the NIC can check addresses and keys. A key that is probably in the byte order of the CPU is
 * reported by a printed line, once for each QP (gdk_debug_key()).
 */
#ifndef GDK_DEBUG_DEV_H
#define GDK_DEBUG_DEV_H

#include "device/gdk/dump_dev.h"
#include "device/gdk/status_dev.h"

#define GDK_DEBUG_MAX_BYTES DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE /* most bytes of a message */

#ifdef GDK_DEBUG
#define GDK_CHECKS_WQES 1

/* The WQE that is being checked. After the first wrong field, err is the status that has ended the
 * QP, and the other members are not used any more. */
struct gdk_debug {
	struct gdk_qp_state *st;
	uint32_t qpn;
	uint64_t idx;
	struct gdk_wqe_view view;
	struct gdk_wqe_ctrl ctrl;
	struct gdk_wqe_shape shape;
	int err;
};

GDK_SLOW_FN void gdk_debug_line(struct gdk_text *t, const struct gdk_debug *d, const char *field,
				uint64_t found)
{
	gdk_text_field(t, "gdaki: QP ", d->qpn);
	gdk_text_count(t, " WQE ", d->idx);
	gdk_text_add(t, ": ");
	gdk_text_add(t, field);
	gdk_text_field(t, " is ", found);
}

/* Prints a line about a wrong field, and the WQE, and ends the QP. The line states the expected
 * values: low to high, or the text `what` if it is not NULL. */
GDK_SLOW_FN void gdk_debug_refuse(struct gdk_debug *d, const char *field, uint64_t found,
				  uint64_t low, uint64_t high, const char *what)
{
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	gdk_text_start(&t, buf, sizeof(buf));
	gdk_debug_line(&t, d, field, found);
	gdk_text_add(&t, ", expected ");
	if (what)
		gdk_text_add(&t, what);
	else
		gdk_text_hex(&t, low);
	if (high > low)
		gdk_text_field(&t, " to ", high);
	gdk_text_add(&t, "; not rung\n");
	gdk_text_wqe(&t, &d->view);
	GDK_DEBUG_PRINT(buf);
	gdk_red_min64(&d->st->error_wqe, d->idx, GDK_SCOPE_GPU);
	d->err = gdk_state_end(d->st, -EINVAL);
}

GDK_FN void gdk_debug_range(struct gdk_debug *d, const char *field, uint64_t found, uint64_t low,
			    uint64_t high)
{
	if (!d->err && (found < low || found > high))
		gdk_debug_refuse(d, field, found, low, high, NULL);
}

/*
 * A key is index << 8 | variant, as the NIC reads it. NICs assign low indices first, so the high
 * byte is usually 0; the variant is usually not 0. So a key whose high byte is not 0, and whose low
 * byte is 0, most likely has its bytes reversed. It could also be a correct key, with an index of
 * 65536 or above, so it is only reported, and the NIC decides.
 */
GDK_SLOW_FN void gdk_debug_key(const struct gdk_debug *d, const char *field, uint32_t key)
{
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	if (d->err || key & 0xff || !(key >> 24) ||
	    gdk_rmw_xchg32(&d->st->key_noted, 1, GDK_SCOPE_GPU))
		return;
	gdk_text_start(&t, buf, sizeof(buf));
	gdk_debug_line(&t, d, field, key);
	gdk_text_field(&t, ", in the wrong byte order if it should be ", gdk_bswap32(key));
	gdk_text_add(&t, "\n");
	GDK_DEBUG_PRINT(buf);
}

GDK_FN void gdk_debug_ctrl(struct gdk_debug *d, uint64_t to)
{
	const struct gdk_wqe_ctrl *c = &d->ctrl;
	const int masked = c->opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS ||
			   c->opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA;
	const uint32_t copy = c->opcode == GDK_OPCODE_MMO ? GDK_OPMOD_MMO_DMA : 0;

	gdk_debug_range(d, "wqe_index", c->index, d->idx & 0xffff, d->idx & 0xffff);
	gdk_debug_range(d, "qpn", c->qpn, d->qpn, d->qpn);
	if (!d->err && !d->shape.fixed)
		gdk_debug_refuse(d, "opcode", c->opcode, 0, 0, "one that a GPU posts");
	if (d->view.ethernet && c->opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT)
		gdk_debug_range(d, "opmod", c->opmod, 2, 2);
	else
		gdk_debug_range(d, "opmod", c->opmod, masked ? 8 : copy, masked ? 9 : copy);
	gdk_debug_range(d, "ds", c->ds, d->shape.ds_min, d->shape.ds_max);
	gdk_debug_range(d, "slots", (c->ds + 3) / 4, 1, to - d->idx);
	gdk_debug_range(d, "reserved of qpn_ds", c->reserved, 0, 0);
	gdk_debug_range(d, "signature", c->signature, 0, 0);
	gdk_debug_range(d, "dci_stream_channel_id", c->dci, 0, 0);
	gdk_debug_range(d, "reserved of fm_ce_se", c->fm_ce_se & 0x11, 0, 0);
	gdk_debug_range(d, "fm", c->fm_ce_se >> 5, 0,
			DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_FENCE_AND_INITIATOR_SMALL_FENCE);
}

/* Checks the segment after the control segment in an Ethernet send queue. In a send this is the
 * Ethernet segment; it must have no inline header and an MSS of 0. In a WAIT it contains the time
 * to wait for, and the code of the condition, which must be 5. */
GDK_FN void gdk_debug_eth(struct gdk_debug *d)
{
	const struct gdk_wqe_view *v = &d->view;

	switch (d->ctrl.opcode) {
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT:
		gdk_debug_range(d, "condition of wait", gdk_view_word(v, 1, 0), 5, 5);
		gdk_debug_range(d, "lkey of wait", gdk_view_word(v, 1, 1), 0, 0);
		gdk_debug_range(d, "va of wait", gdk_view_long(v, 1, 1), 0, 0);
		break;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND:
	case GDK_OPCODE_EMPW:
		gdk_debug_range(d, "reserved of eth", gdk_view_word(v, 1, 0), 0, 0);
		gdk_debug_range(d, "cs_flags and mss", gdk_view_word(v, 1, 1) & ~0xc0000000u, 0, 0);
		gdk_debug_range(d, "inline header", gdk_view_word(v, 1, 3), 0, 0);
		break;
	}
}

/* Checks the segments between the control segment and the data. */
GDK_FN void gdk_debug_fixed(struct gdk_debug *d)
{
	const struct gdk_wqe_view *v = &d->view;

	if (v->ethernet) {
		gdk_debug_eth(d);
		return;
	}
	if (d->shape.raddr) {
		gdk_debug_range(d, "reserved of raddr", gdk_view_word(v, 1, 3), 0, 0);
		if (d->ctrl.ds > 2)
			gdk_debug_key(d, "rkey", gdk_view_word(v, 1, 2));
	}
	if (d->ctrl.opcode == GDK_OPCODE_MMO) {
		gdk_debug_range(d, "control of result", gdk_view_word(v, 1, 0), 0, 0);
		gdk_debug_key(d, "lkey of result", gdk_view_word(v, 1, 1));
	}
	if (d->ctrl.opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT) {
		gdk_debug_range(d, "resv of wait", gdk_view_long(v, 1, 0), 0, 0);
		gdk_debug_range(d, "qpn_cqn", gdk_view_word(v, 1, 3), 0, 0xffffff);
	}
	if (d->ctrl.opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA && d->shape.bytes == 4)
		gdk_debug_range(d, "reserved of atomic", gdk_view_long(v, 2, 1), 0, 0);
}

/* Checks the source and the destination of a copy. A copy has up to 2 GiB; a byte_count of 0 means
 * 2 GiB. */
GDK_FN void gdk_debug_copy(struct gdk_debug *d)
{
	const uint32_t bytes = gdk_view_word(&d->view, 2, 0);

	gdk_debug_range(d, "byte_count", bytes, 0, 0x7fffffff);
	gdk_debug_range(d, "byte_count of destination", gdk_view_word(&d->view, 3, 0), bytes,
			bytes);
	gdk_debug_key(d, "lkey", gdk_view_word(&d->view, 2, 1));
	gdk_debug_key(d, "lkey", gdk_view_word(&d->view, 3, 1));
}

/* Returns the smallest correct byte_count of a data segment. An Ethernet frame has a header of 14
 * bytes. */
GDK_FN uint32_t gdk_debug_least(const struct gdk_debug *d)
{
	return d->view.ethernet && d->ctrl.opcode != DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP ? 14 : 1;
}

/* Checks the data segments. Each must have at least gdk_debug_least() bytes; for the NIC a
 * byte_count of 0 means 2 GiB. All together may have at most 1 GiB. Inline data must be the only
 * data, and must end the WQE. */
GDK_FN void gdk_debug_data(struct gdk_debug *d)
{
	const uint32_t inl = (uint32_t)DOCA_GPUNETIO_IB_MLX5_INLINE_SEG;
	uint32_t seg = d->shape.fixed, bytes;
	uint64_t total = 0;

	for (; seg < d->ctrl.ds && !d->err; seg++, total += bytes) {
		bytes = gdk_view_word(&d->view, seg, 0);
		if (bytes & inl && d->shape.inl && !total) {
			bytes &= ~inl;
			gdk_debug_range(d, "byte_count of inline data", bytes, 1, 62 * 16);
			seg += (bytes + 4 + 15) / 16 - 1;
			gdk_debug_range(d, "ds", d->ctrl.ds, seg + 1, seg + 1);
		} else {
			gdk_debug_range(d, "byte_count", bytes, gdk_debug_least(d),
					GDK_DEBUG_MAX_BYTES);
			gdk_debug_key(d, "lkey", gdk_view_word(&d->view, seg, 1));
		}
	}
	if (d->shape.bytes)
		gdk_debug_range(d, "byte_count", total, d->shape.bytes, d->shape.bytes);
	gdk_debug_range(d, "byte_count in all", total, 0, GDK_DEBUG_MAX_BYTES);
}

/* Checks the WQE at idx; the slots below `to` are to be rung. Returns the number of slots of the
 * WQE, or the negative status that ended the QP. */
GDK_FN int gdk_debug_wqe(struct gdk_debug *d, uint64_t idx, uint64_t to)
{
	d->idx = idx;
	d->view.first = idx * 4;
	if (d->view.first - d->view.base >= d->view.held)
		gdk_view_hold(&d->view, to - idx);
	gdk_view_ctrl(&d->view, &d->ctrl);
	d->shape = d->view.ethernet ? gdk_eth_shape_of(d->ctrl.opcode)
				    : gdk_shape_of(d->ctrl.opcode, d->ctrl.opmod);
	gdk_debug_ctrl(d, to);
	if (!d->err)
		gdk_debug_fixed(d);
	if (!d->err && d->ctrl.opcode == GDK_OPCODE_MMO)
		gdk_debug_copy(d);
	else if (!d->err)
		gdk_debug_data(d);
	return d->err ? d->err : (int)(d->ctrl.ds + 3) / 4;
}

/* Returns 1 if a WQE in [from, to) is wrong and must not be rung. The QP has then ended. */
GDK_SLOW_FN int gdk_debug_refuses(struct gdk_qp_state *st, uint64_t from, uint64_t to)
{
	struct gdk_debug d;
	int slots;

	if (gdk_ldc32(&st->flags) & GDK_QPF_RECV)
		return 0; /* a receive WQE has no control segment */
	d.st = st;
	d.qpn = gdk_bswap32(gdk_ldc32(&st->qpn8_be)) >> 8;
	d.err = 0;
	gdk_view_ring(&d.view, st, from);
	for (; from < to; from += (uint32_t)slots) {
		slots = gdk_debug_wqe(&d, from, to);
		if (slots < 0)
			return 1;
	}
	return 0;
}

/* As gdk_debug_refuses(), for the slots from `rung` to `to - 1`. It is called by the functions of
 * by_hand_dev.h that store the DBREC or the register. */
GDK_SLOW_FN int gdk_debug_refuses_below(struct gdk_qp_state *st, uint64_t to)
{
	return gdk_debug_refuses(st, gdk_ld64(&st->rung, GDK_SCOPE_GPU), to);
}

/* Reports a submit of the receives below pi, which is more than a whole ring above `rung`. Prints a
 * line, and ends the receive queue and with it the QP. Returns -EINVAL. */
GDK_SLOW_FN int gdk_debug_above(struct gdk_qp_state *st, uint64_t pi)
{
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	gdk_text_start(&t, buf, sizeof(buf));
	gdk_text_field(&t, "gdaki: QP ", gdk_bswap32(gdk_ldc32(&st->qpn8_be)) >> 8);
	gdk_text_count(&t, ": submit of receives below ", pi);
	gdk_text_count(&t, ", expected at most ",
		       gdk_ld64(&st->rung, GDK_SCOPE_GPU) + gdk_ldc32(&st->depth));
	gdk_text_add(&t, "; not offered\n");
	GDK_DEBUG_PRINT(buf);
	(void)gdk_state_end(st, -EINVAL);
	return -EINVAL;
}

/* Called by each lane of an operation in WARP scope. Returns 0 for a whole warp. Otherwise the
 * slots of the missing lanes would be published unwritten: ends the QP, rank 0 prints a line, and
 * the result is the status that ended the QP. */
GDK_SLOW_FN int gdk_debug_partial(struct gdk_qp_state *st)
{
	const uint32_t lanes = gdk_popc32(gdk_ballot(1));
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	if (lanes == gdk_warp_size())
		return 0;
	if (gdk_lane() == 0) {
		gdk_text_start(&t, buf, sizeof(buf));
		gdk_text_field(&t, "gdaki: QP ", gdk_bswap32(gdk_ldc32(&st->qpn8_be)) >> 8);
		gdk_text_count(&t, ": operation in WARP scope by ", lanes);
		gdk_text_count(&t, " lanes, expected ", gdk_warp_size());
		gdk_text_add(&t, "; not posted\n");
		GDK_DEBUG_PRINT(buf);
	}
	return gdk_state_end(st, -EINVAL);
}

#else
#define GDK_CHECKS_WQES 0

GDK_FN int gdk_debug_partial(struct gdk_qp_state *st)
{
	(void)st;
	return 0;
}

GDK_FN int gdk_debug_refuses(struct gdk_qp_state *st, uint64_t from, uint64_t to)
{
	(void)st, (void)from, (void)to;
	return 0;
}

GDK_FN int gdk_debug_refuses_below(struct gdk_qp_state *st, uint64_t to)
{
	(void)st, (void)to;
	return 0;
}

GDK_FN int gdk_debug_above(struct gdk_qp_state *st, uint64_t pi)
{
	(void)st, (void)pi;
	return -EINVAL;
}

#endif

#endif
