/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Sends: messages that consume a receive WQE of the remote side. Programs post sends and wait for
 * them as for one-sided operations (onesided_dev.h). */
#ifndef GDK_SEND_DEV_H
#define GDK_SEND_DEV_H

#include "device/gdk/onesided_dev.h"

#define GDK_SEND_INLINE 44u /* most bytes of data inside a send WQE of one slot */
#define GDK_SEND_SEGS	3u  /* most data segments of a send WQE of one slot */

/* ---- WQEs ---- */

/* Writes a send WQE with n data segments, 0 to GDK_SEND_SEGS. at.op is SEND or SEND_IMM. Segments
 * of 0 bytes are left out, because for the NIC a length of 0 means 2 GiB. */
GDK_FN void gdk_wqe_send(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
			 const struct gdk_mem *local, const uint32_t *bytes, uint32_t n)
{
	uint32_t i, ds = 1;

	for (i = 0; i < n; i++)
		if (bytes[i])
			gdk_seg_data(at.wqe, ds++, local[i].addr, local[i].key, bytes[i]);
	gdk_seg_ctrl(qp, at, ds);
}

/* Writes a send WQE that contains up to GDK_SEND_INLINE bytes of data. `data` needs no
 * alignment. */
GDK_FN void gdk_wqe_send_inl(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
			     const void *data, uint32_t bytes)
{
	const uint8_t *src = (const uint8_t *)data;
	uint32_t i, word[4], at_byte = 0, segs = (bytes + 4 + 15) / 16;

	if (!bytes)
		segs = 0;
	GDK_LOOP
	for (i = 0; i < segs; i++) {
		word[0] = i ? gdk_load_bytes(src, at_byte, bytes)
			    : gdk_bswap32(bytes | (uint32_t)DOCA_GPUNETIO_IB_MLX5_INLINE_SEG);
		at_byte += i ? 4 : 0;
		word[1] = gdk_load_bytes(src, at_byte, bytes);
		word[2] = gdk_load_bytes(src, at_byte + 4, bytes);
		word[3] = gdk_load_bytes(src, at_byte + 8, bytes);
		at_byte += 12;
		gdk_st_wqe16(gdk_seg(at.wqe, i + 1), gdk_pack(word[0], word[1]),
			     gdk_pack(word[2], word[3]));
	}
	gdk_seg_ctrl(qp, at, segs + 1);
}

/* ---- operations ---- */

GDK_FN int gdk_send_op(struct doca_gpu_dev_verbs_qp *qp, enum gdk_move_kind kind,
		       struct doca_gpu_dev_verbs_addr laddr, size_t size, __be32 imm,
		       doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct gdk_op op = { gdk_move_of(kind, laddr, laddr, size), gdk_tail_none() };

	*ticket = 0;
	if (size > GDK_CHUNK)
		return -EINVAL;
	op.move.imm_be = imm;
	return gdk_op_run(qp, &op, ticket, how);
}

/*
 * Sends a message of up to 1 GiB. If size is 0, the message has no data, and laddr is not used.
 * Returns 0, -EINVAL if size is too large (nothing is posted), or the status that ended the QP. In
 * a warp or block either all threads pass valid sizes, or none does.
 */
GDK_FN int gdk_send(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr laddr,
		    size_t size, doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	return gdk_send_op(qp, GDK_MOVE_SEND, laddr, size, 0, ticket, how);
}

/* As gdk_send(), with the immediate value `imm`, big-endian, which the remote side finds in the
 * CQE. */
GDK_FN int gdk_send_imm(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr laddr,
			size_t size, __be32 imm, doca_gpu_dev_verbs_ticket_t *ticket,
			struct gdk_how how)
{
	return gdk_send_op(qp, GDK_MOVE_SEND_IMM, laddr, size, imm, ticket, how);
}

#endif
