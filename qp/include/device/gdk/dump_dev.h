/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * WQEs as text, for GPU threads (gdk_print_wqe) and for the host (gdk_dump_wqe of host/gdaki.h).
 * The text has one line for each segment, in the format of cqe_text_dev.h. The functions of this
 * file do not change a queue.
 */
#ifndef GDK_DUMP_DEV_H
#define GDK_DUMP_DEV_H

#include "device/gdk/cqe_text_dev.h"
#include "device/gdk/wqe.h"

/* ---- the parts of a WQE ---- */

GDK_FN void gdk_view_ring(struct gdk_wqe_view *v, const struct gdk_qp_state *st, uint64_t idx)
{
	v->ring = (const uint8_t *)(uintptr_t)gdk_ldc64(&st->ring);
	v->first = idx * 4;
	v->mask = ((uint64_t)(gdk_ldc32(&st->depth) - 1) << 2) | 3;
	v->limit = (uint32_t)v->mask + 1;
	v->held = 0;
	v->base = 0;
	v->ethernet = gdk_ldc32(&st->flags) & GDK_QPF_ETHERNET;
}

/* Copies the first n slots, at most GDK_VIEW_SLOTS. All loads are in flight at once. If the words
 * were loaded one by one, a slot would take a dozen round trips, over PCIe if the ring is in host
 * memory. */
GDK_FN void gdk_view_hold(struct gdk_wqe_view *v, uint64_t n)
{
	uint64_t a[GDK_VIEW_SLOTS * 8];
	const uint64_t *at;
	uint32_t i;

	v->base = v->first;
	v->held = (uint32_t)(n < GDK_VIEW_SLOTS ? n : GDK_VIEW_SLOTS) * 4;
	GDK_UNROLL
	for (i = 0; i < GDK_VIEW_SLOTS * 4; i++) {
		at = (const uint64_t *)(const void *)(v->ring + ((v->first + i) & v->mask) * 16);
		if (i < v->held)
			gdk_ld64x2(at, &a[2 * i], &a[2 * i + 1], GDK_SCOPE_GPU);
	}
	GDK_UNROLL
	for (i = 0; i < GDK_VIEW_SLOTS * 8; i++)
		if (i < v->held * 2)
			v->seg[i] = a[i];
}

struct gdk_wqe_ctrl {
	uint32_t opmod, index, opcode;
	uint32_t qpn, reserved, ds; /* reserved: bits 7:6 of qpn_ds */
	uint32_t signature, dci, fm_ce_se, imm;
};

GDK_FN void gdk_view_ctrl(const struct gdk_wqe_view *v, struct gdk_wqe_ctrl *c)
{
	const uint32_t w0 = gdk_view_word(v, 0, 0), w1 = gdk_view_word(v, 0, 1);
	const uint32_t w2 = gdk_view_word(v, 0, 2);

	c->opmod = w0 >> 24;
	c->index = w0 >> 8 & 0xffff;
	c->opcode = w0 & 0xff;
	c->qpn = w1 >> 8;
	c->reserved = w1 & 0xc0;
	c->ds = w1 & 0x3f;
	c->signature = w2 >> 24;
	c->dci = w2 >> 8 & 0xffff;
	c->fm_ce_se = w2 & 0xff;
	c->imm = gdk_view_word(v, 0, 3);
}

/* Layout of the WQEs of an opcode. `fixed`, ds_min and ds_max count segments. */
struct gdk_wqe_shape {
	uint8_t fixed; /* segments before the data; 0: this type of queue has no such opcode */
	uint8_t ds_min, ds_max;
	uint8_t bytes; /* required length of the data in bytes; 0: any length */
	uint8_t raddr; /* 1: segment 1 is a remote address */
	uint8_t inl;   /* 1: the data may be inline */
};

/* Opcode of a multi-packet WQE of an Ethernet send queue (enhanced MPW: mlx5_prm.h of DPDK
 * 22.11). */
#define GDK_OPCODE_EMPW 0x29u

/* Returns the layout of a WQE in an Ethernet send queue, by opcode. A send has an Ethernet segment
 * after the control segment, and then the data of the packets. A WAIT has two segments after the
 * control segment; they contain the time to wait for. */
GDK_FN struct gdk_wqe_shape gdk_eth_shape_of(uint32_t opcode)
{
	const struct gdk_wqe_shape none = { 0, 0, 0, 0, 0, 0 }, nop = { 63, 1, 63, 0, 0, 0 },
				   send = { 2, 3, 63, 0, 0, 0 }, wait = { 3, 3, 3, 0, 0, 0 },
				   dump = { 1, 2, 2, 0, 0, 0 };

	switch (opcode) {
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP:
		return nop;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND:
	case GDK_OPCODE_EMPW:
		return send;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT:
		return wait;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP:
		return dump;
	default:
		return none;
	}
}

GDK_FN struct gdk_wqe_shape gdk_shape_of(uint32_t opcode, uint32_t opmod)
{
	const uint8_t wide = opmod == DOCA_GPUNETIO_8_BYTE_ATOMIC_EXT_OPMOD >> 24;
	const struct gdk_wqe_shape none = { 0, 0, 0, 0, 0, 0 }, nop = { 63, 1, 63, 0, 0, 0 },
				   send = { 1, 1, 63, 0, 0, 1 }, write = { 2, 2, 63, 0, 1, 1 },
				   read = { 2, 2, 63, 0, 1, 0 }, atomic = { 3, 4, 4, 8, 1, 0 },
				   wait = { 2, 2, 2, 0, 0, 0 }, dump = { 1, 2, 2, 0, 0, 0 },
				   copy = { 2, 4, 4, 0, 0, 0 };
	struct gdk_wqe_shape masked = { 3, 4, 4, 4, 1, 0 };

	switch (opcode) {
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP:
		return nop;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_IMM:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_INVAL:
		return send;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM:
		return write;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ:
		return read;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA:
		return atomic;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA:
		masked.bytes = wide ? 8 : 4;
		return masked;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS:
		masked.bytes = wide ? 8 : 4;
		masked.fixed = 3 + wide;
		masked.ds_min = masked.ds_max = 4 + wide;
		return masked;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT:
		return wait;
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP:
		return dump;
	case GDK_OPCODE_MMO:
		return copy;
	default:
		return none;
	}
}

/* ---- a WQE as text ---- */

GDK_SLOW_FN void gdk_text_ctrl(struct gdk_text *t, const struct gdk_wqe_ctrl *c)
{
	gdk_text_count(t, "WQE ", c->index);
	gdk_text_add(t, ": ");
	gdk_text_add(t, gdk_opcode_name(c->opcode));
	gdk_text_field(t, "\n  ctrl opmod ", c->opmod);
	gdk_text_count(t, " wqe_index ", c->index);
	gdk_text_field(t, " opcode ", c->opcode);
	gdk_text_field(t, " qpn ", c->qpn);
	gdk_text_count(t, " ds ", c->ds);
	gdk_text_field(t, " signature ", c->signature);
	gdk_text_field(t, " dci_stream_channel_id ", c->dci);
	gdk_text_count(t, " fm ", c->fm_ce_se >> 5);
	gdk_text_count(t, " ce ", c->fm_ce_se >> 2 & 3);
	gdk_text_count(t, " se ", c->fm_ce_se >> 1 & 1);
	gdk_text_field(t, " imm ", c->imm);
	gdk_text_add(t, "\n");
}

/* Prints segment seg, which contains operands of an atomic of `bytes` bytes. A masked
 * compare-and-swap of 8 bytes has two such segments; the second contains the masks. */
GDK_SLOW_FN void gdk_text_operands(struct gdk_text *t, const struct gdk_wqe_view *v, uint32_t seg,
				   uint32_t opcode, uint32_t bytes)
{
	if (opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS && bytes == 4) {
		gdk_text_field(t, "  atomic swap_data ", gdk_view_word(v, seg, 0));
		gdk_text_field(t, " compare_data ", gdk_view_word(v, seg, 1));
		gdk_text_field(t, " swap_mask ", gdk_view_word(v, seg, 2));
		gdk_text_field(t, " compare_mask ", gdk_view_word(v, seg, 3));
	} else if (opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS) {
		gdk_text_field(t, seg == 2 ? "  atomic swap " : "  atomic swap_mask ",
			       gdk_view_long(v, seg, 0));
		gdk_text_field(t, seg == 2 ? " compare " : " compare_mask ",
			       gdk_view_long(v, seg, 1));
	} else if (opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA) {
		gdk_text_field(t, "  atomic add_data ",
			       bytes == 4 ? gdk_view_word(v, seg, 0) : gdk_view_long(v, seg, 0));
		gdk_text_field(t, " field_boundary ",
			       bytes == 4 ? gdk_view_word(v, seg, 1) : gdk_view_long(v, seg, 1));
	} else {
		gdk_text_field(t, "  atomic swap_add ", gdk_view_long(v, seg, 0));
		gdk_text_field(t, " compare ", gdk_view_long(v, seg, 1));
	}
	gdk_text_add(t, "\n");
}

GDK_SLOW_FN void gdk_text_raw(struct gdk_text *t, const struct gdk_wqe_view *v, uint32_t seg)
{
	uint32_t i;

	gdk_text_add(t, "  raw");
	for (i = 0; i < 4; i++) {
		gdk_text_add(t, " ");
		gdk_text_digits(t, gdk_view_word(v, seg, i), 8);
	}
	gdk_text_add(t, "\n");
}

/* Prints inline data as bytes. The data begins in segment seg, and ends before segment `end`. */
GDK_SLOW_FN void gdk_text_inline(struct gdk_text *t, const struct gdk_wqe_view *v, uint32_t seg,
				 uint32_t end, uint32_t bytes)
{
	uint32_t i, at;

	gdk_text_count(t, "  inline byte_count ", bytes);
	gdk_text_add(t, " data");
	for (i = 0; i < bytes && i < (end - seg) * 16 - 4; i++) {
		at = i + 4;
		gdk_text_add(t, " ");
		gdk_text_digits(t,
				gdk_view_word(v, seg + at / 16, at / 4 % 4) >> (24 - 8 * (at % 4)) &
					0xff,
				2);
	}
	gdk_text_add(t, "\n");
}

/* Prints the data segments from seg on, up to segment end - 1. */
GDK_SLOW_FN void gdk_text_data(struct gdk_text *t, const struct gdk_wqe_view *v, uint32_t seg,
			       uint32_t end)
{
	uint32_t bytes;

	for (; seg < end; seg++) {
		bytes = gdk_view_word(v, seg, 0);
		if (bytes & (uint32_t)DOCA_GPUNETIO_IB_MLX5_INLINE_SEG) {
			gdk_text_inline(t, v, seg, end, bytes & 0x7fffffff);
			return;
		}
		gdk_text_count(t, "  data byte_count ", bytes);
		gdk_text_field(t, " lkey ", gdk_view_word(v, seg, 1));
		gdk_text_field(t, " addr ", gdk_view_long(v, seg, 1));
		gdk_text_add(t, "\n");
	}
}

/* Prints the segments between the control segment and the data. Returns the first segment of the
 * data. */
GDK_SLOW_FN uint32_t gdk_text_fixed(struct gdk_text *t, const struct gdk_wqe_view *v,
				    const struct gdk_wqe_ctrl *c, const struct gdk_wqe_shape *s)
{
	uint32_t seg = 1;

	if (s->raddr) {
		gdk_text_field(t, "  raddr raddr ", gdk_view_long(v, seg, 0));
		gdk_text_field(t, " rkey ", gdk_view_word(v, seg, 2));
		gdk_text_add(t, "\n");
		seg++;
	}
	if (c->opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT) {
		gdk_text_count(t, "  wait max_index ", gdk_view_word(v, seg, 2));
		gdk_text_field(t, " qpn_cqn ", gdk_view_word(v, seg, 3));
		gdk_text_add(t, "\n");
		seg++;
	}
	if (c->opcode == GDK_OPCODE_MMO) {
		gdk_text_field(t, "  result control ", gdk_view_word(v, seg, 0));
		gdk_text_field(t, " lkey ", gdk_view_word(v, seg, 1));
		gdk_text_field(t, " addr ", gdk_view_long(v, seg, 1));
		gdk_text_add(t, "\n");
		seg++;
	}
	for (; seg < s->fixed; seg++)
		gdk_text_operands(t, v, seg, c->opcode, s->bytes);
	return seg;
}

/* Prints a WQE. If the size does not fit the opcode, each segment is printed word by word. */
GDK_SLOW_FN void gdk_text_wqe(struct gdk_text *t, const struct gdk_wqe_view *v)
{
	struct gdk_wqe_shape shape;
	struct gdk_wqe_ctrl c;
	uint32_t seg, end;

	gdk_view_ctrl(v, &c);
	shape = gdk_shape_of(c.opcode, c.opmod);
	if (v->ethernet)
		shape.fixed = 0; /* prints raw segments */
	gdk_text_ctrl(t, &c);
	end = c.ds < v->limit ? c.ds : v->limit;
	if (c.opcode == DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP && c.ds)
		return;
	if (shape.fixed && end == c.ds && c.ds >= shape.ds_min && c.ds <= shape.ds_max) {
		gdk_text_data(t, v, gdk_text_fixed(t, v, &c, &shape), end);
		return;
	}
	for (seg = 1; seg < (end > 4 ? end : 4); seg++)
		gdk_text_raw(t, v, seg);
}

/* ---- printing, in any build ---- */

GDK_SLOW_FN void gdk_print_wqe(const struct doca_gpu_dev_verbs_qp *qp, uint64_t idx)
{
	char buf[GDK_TEXT_MAX];
	struct gdk_wqe_view v;
	struct gdk_text t;

	gdk_view_ring(&v, gdk_state_of_qp(qp), idx);
	gdk_text_start(&t, buf, sizeof(buf));
	gdk_text_wqe(&t, &v);
	GDK_DEBUG_PRINT(buf);
}

#endif
