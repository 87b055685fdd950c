/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * CQEs as text, for GPU threads (gdk_print_cqe) and for the host (gdk_dump_cqe of host/gdaki.h).
 * dump_dev.h composes the text of WQEs with functions of this file. Each field is printed as "name
 * value", with its name in doca_gpunetio_verbs_def.h; numbers that begin with 0x are hexadecimal.
 * The functions of this file do not change a queue.
 */
#ifndef GDK_CQE_TEXT_DEV_H
#define GDK_CQE_TEXT_DEV_H

#include "device/gdk/platform.h"

/* GDK_DEBUG_PRINT prints one dump. A program may define it before it includes this file. Each dump
 * is one call, so that the output of other threads does not come between its lines. */
#ifndef GDK_DEBUG_PRINT
#define GDK_DEBUG_PRINT(text) printf("%s", (text))
#endif
#define GDK_TEXT_MAX 1024 /* most bytes of one dump; longer text is cut */

/* ---- text ---- */

/* As in snprintf, len also counts the bytes that did not fit. The text always ends with a 0
 * byte. */
struct gdk_text {
	char *buf;
	size_t size, len;
};

GDK_SLOW_FN void gdk_text_start(struct gdk_text *t, char *buf, size_t size)
{
	t->buf = buf;
	t->size = size;
	t->len = 0;
	if (size)
		buf[0] = 0;
}

GDK_SLOW_FN void gdk_text_char(struct gdk_text *t, char c)
{
	if (t->len + 1 < t->size) {
		t->buf[t->len] = c;
		t->buf[t->len + 1] = 0;
	}
	t->len++;
}

GDK_SLOW_FN void gdk_text_add(struct gdk_text *t, const char *s)
{
	while (*s)
		gdk_text_char(t, *s++);
}

GDK_SLOW_FN void gdk_text_dec(struct gdk_text *t, uint64_t v)
{
	uint64_t unit = 1;

	while (v / unit > 9)
		unit *= 10;
	for (; unit; unit /= 10)
		gdk_text_char(t, (char)('0' + v / unit % 10));
}

/* Adds v in hexadecimal, with at least `digits` digits and without 0x. */
GDK_SLOW_FN void gdk_text_digits(struct gdk_text *t, uint64_t v, int digits)
{
	while (digits < 16 && v >> 4 * digits)
		digits++;
	while (digits--)
		gdk_text_char(t, (char)("0123456789abcdef"[v >> 4 * digits & 15]));
}

GDK_SLOW_FN void gdk_text_hex(struct gdk_text *t, uint64_t v)
{
	gdk_text_add(t, "0x");
	gdk_text_digits(t, v, 1);
}

GDK_SLOW_FN void gdk_text_field(struct gdk_text *t, const char *name, uint64_t v)
{
	gdk_text_add(t, name);
	gdk_text_hex(t, v);
}

GDK_SLOW_FN void gdk_text_count(struct gdk_text *t, const char *name, uint64_t v)
{
	gdk_text_add(t, name);
	gdk_text_dec(t, v);
}

/* ---- names ---- */

GDK_SLOW_FN const char *gdk_opcode_name(uint32_t opcode)
{
	switch (opcode) {
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP:
		return "NOP";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_INVAL:
		return "SEND_INVAL";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE:
		return "RDMA_WRITE";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM:
		return "RDMA_WRITE_IMM";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND:
		return "SEND";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_IMM:
		return "SEND_IMM";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT:
		return "WAIT";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ:
		return "RDMA_READ";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS:
		return "ATOMIC_CS";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA:
		return "ATOMIC_FA";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS:
		return "ATOMIC_MASKED_CS";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA:
		return "ATOMIC_MASKED_FA";
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP:
		return "DUMP";
	case GDK_OPCODE_MMO:
		return "MMO";
	default:
		return "?";
	}
}

GDK_SLOW_FN const char *gdk_cqe_opcode_name(uint32_t opcode)
{
	switch (opcode) {
	case DOCA_GPUNETIO_IB_MLX5_CQE_REQ:
		return "REQ";
	case DOCA_GPUNETIO_IB_MLX5_CQE_RESP_WR_IMM:
		return "RESP_WR_IMM";
	case DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND:
		return "RESP_SEND";
	case DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_IMM:
		return "RESP_SEND_IMM";
	case DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_INV:
		return "RESP_SEND_INV";
	case DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR:
		return "REQ_ERR";
	case DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR:
		return "RESP_ERR";
	case DOCA_GPUNETIO_IB_MLX5_CQE_INVALID:
		return "INVALID";
	default:
		return "?";
	}
}

/* Returns the text of a syndrome of an error CQE (PRM, "Completion with error"). */
GDK_SLOW_FN const char *gdk_syndrome_name(uint32_t syndrome)
{
	switch (syndrome) {
	case 0x01:
		return "local length error";
	case 0x02:
		return "local QP operation error";
	case 0x04:
		return "local protection error";
	case 0x05:
		return "flushed after an error";
	case 0x06:
		return "memory window bind error";
	case 0x10:
		return "bad response";
	case 0x11:
		return "local access error";
	case 0x12:
		return "remote invalid request";
	case 0x13:
		return "remote access error";
	case 0x14:
		return "remote operation error";
	case 0x15:
		return "transport retries exceeded";
	case 0x16:
		return "receiver-not-ready retries exceeded";
	case 0x22:
		return "aborted by the remote side";
	default:
		return "?";
	}
}

/* ---- segments ---- */

#define GDK_VIEW_SLOTS 4

/* The 16-byte segments of a WQE or CQE. A WQE may continue at the start of the ring. */
struct gdk_wqe_view {
	const uint8_t *ring;
	uint64_t first;	   /* index of the control segment, in segments */
	uint64_t mask;	   /* number of segments of the ring, minus 1 */
	uint32_t limit;	   /* number of segments, from `first` on, that may be read */
	uint32_t ethernet; /* not 0: the ring is an Ethernet send queue */
	uint32_t held;	   /* number of segments that seg contains, from segment `base` on */
	uint64_t base;
	uint64_t seg[GDK_VIEW_SLOTS * 8];
};

/* Returns word 0, 1, 2 or 3 of a segment, in CPU order. */
GDK_FN uint32_t gdk_view_word(const struct gdk_wqe_view *v, uint32_t seg, uint32_t word)
{
	const uint8_t *at = v->ring + ((v->first + seg) & v->mask) * 16 + word * 4;
	const uint64_t i = v->first + seg - v->base;

	if (i < v->held)
		return gdk_bswap32((uint32_t)(v->seg[i * 2 + word / 2] >> word % 2 * 32));
	return gdk_bswap32(gdk_any_ld32((const uint32_t *)(const void *)at, GDK_SCOPE_GPU));
}

/* Returns words 2 * half and 2 * half + 1 of a segment as one number. */
GDK_FN uint64_t gdk_view_long(const struct gdk_wqe_view *v, uint32_t seg, uint32_t half)
{
	return gdk_pack(gdk_view_word(v, seg, 2 * half + 1), gdk_view_word(v, seg, 2 * half));
}

/* ---- a CQE as text ---- */

GDK_SLOW_FN void gdk_text_cqe_error(struct gdk_text *t, const struct gdk_wqe_view *v)
{
	const uint32_t synd = gdk_view_word(v, 3, 1);

	gdk_text_field(t, "  syndrome ", synd & 0xff);
	gdk_text_add(t, " (");
	gdk_text_add(t, gdk_syndrome_name(synd & 0xff));
	gdk_text_field(t, ") vendor_err_synd ", synd >> 8 & 0xff);
	gdk_text_field(t, " hw_err_synd ", synd >> 24);
	gdk_text_field(t, " hw_synd_type ", synd >> 16 & 0xff);
	gdk_text_field(t, " srqn ", gdk_view_word(v, 2, 0));
	gdk_text_add(t, "\n");
}

GDK_SLOW_FN void gdk_text_cqe(struct gdk_text *t, const struct gdk_wqe_view *v)
{
	const uint32_t w = gdk_view_word(v, 3, 3), sop = gdk_view_word(v, 3, 2);
	const uint32_t opcode = w >> 4 & 15;

	gdk_text_add(t, "CQE: ");
	gdk_text_add(t, gdk_cqe_opcode_name(opcode));
	gdk_text_field(t, "\n  opcode ", opcode);
	gdk_text_count(t, " cqe_format ", w >> 2 & 3);
	gdk_text_count(t, " se ", w >> 1 & 1);
	gdk_text_count(t, " owner ", w & 1);
	gdk_text_count(t, " wqe_counter ", w >> 16);
	gdk_text_field(t, " signature ", w >> 8 & 0xff);
	gdk_text_field(t, " s_wqe_opcode ", sop >> 24);
	gdk_text_add(t, " (");
	gdk_text_add(t, gdk_opcode_name(sop >> 24));
	gdk_text_field(t, ") qpn ", sop & 0xffffff);
	gdk_text_add(t, "\n");
	if (opcode == DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR ||
	    opcode == DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR) {
		gdk_text_cqe_error(t, v);
		return;
	}
	gdk_text_count(t, "  byte_cnt ", gdk_view_word(v, 2, 3));
	gdk_text_field(t, " timestamp ", gdk_view_long(v, 3, 0));
	gdk_text_field(t, " imm_inval_pkey ", gdk_view_word(v, 2, 1));
	gdk_text_field(t, " srqn_uidx ", gdk_view_word(v, 2, 0));
	gdk_text_add(t, "\n");
}

/* ---- printing, in any build ---- */

GDK_SLOW_FN void gdk_print_cqe64(const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	struct gdk_wqe_view v;
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	v.ring = (const uint8_t *)cqe;
	v.first = 0;
	v.mask = 3;
	v.limit = 4;
	v.held = 0;
	v.base = 0;
	gdk_text_start(&t, buf, sizeof(buf));
	gdk_text_cqe(&t, &v);
	GDK_DEBUG_PRINT(buf);
}

/* Prints the CQ entry of the CQE with this index, which is counted from export or reset. */
GDK_SLOW_FN void gdk_print_cqe(const struct doca_gpu_dev_verbs_cq *cq, uint64_t index)
{
	const uint64_t at = index + gdk_ldc64(GDK_CQ_AT(cq, cqe_rsvd));
	const uint64_t base = gdk_ldc64(GDK_CQ_AT(cq, cqe_daddr));

	gdk_print_cqe64((const struct doca_gpunetio_ib_mlx5_cqe64 *)(uintptr_t)base +
			(at & (gdk_ldc32(GDK_CQ_AT(cq, cqe_num)) - 1)));
}

#endif
