/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Builders of send WQEs in mlx5 format for device code. A WQE consists of 16-byte segments. Each
 * segment is stored as a whole, so its reserved bytes are zero even if the slot contained another
 * WQE before. post_dev.h reserves slots and rings the doorbell.
 */
#ifndef GDK_WQE_H
#define GDK_WQE_H

#include "device/gdk/status_dev.h"

/* The two bits of fm_ce_se (control segment) that request a CQE, and their value "always". */
#define GDK_CE_MASK   (3u << 2)
#define GDK_CE_ALWAYS ((uint32_t)DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE)

GDK_FN void *gdk_seg(struct doca_gpu_dev_verbs_wqe *wqe, unsigned int i)
{
	return wqe->inl_data + 16 * i;
}

/*
 * Returns `flags`, the fm_ce_se of a WQE, with a CQE requested if one is needed. Slots become free
 * only by CQEs, so unsignalled WQEs must not fill the ring: the WQE that contains the last slot of
 * either half of the ring is always signalled. If a WQE has several slots or generates no CQE, the
 * function sets `uneven` in the state block before the WQE is published. If the WQE has several
 * slots, it also sets `long_wqe`.
 */
GDK_FN uint32_t gdk_wqe_signal(const struct doca_gpu_dev_verbs_qp *qp, uint16_t idx, uint32_t slots,
			       uint32_t flags)
{
	const uint32_t half = gdk_ldc16(GDK_QP_AT(qp, sq_wqe_mask)) >> 1;
	struct gdk_qp_state *st;

	if (slots == 1 && flags & 2u << 2)
		return flags;
	if (!(flags & 2u << 2) && half - (idx & half) < slots)
		flags = (flags & ~GDK_CE_MASK) | GDK_CE_ALWAYS;
	if (slots == 1 && flags & 2u << 2)
		return flags;
	st = gdk_state_of_qp(qp);
	if (slots > 1)
		gdk_st32(&st->long_wqe, 1, GDK_SCOPE_GPU);
	gdk_st32(&st->uneven, 1, GDK_SCOPE_GPU);
	return flags;
}

/* Where a WQE is written, and the content of its control segment. */
struct gdk_wqe_at {
	struct doca_gpu_dev_verbs_wqe *wqe;
	uint32_t idx;	/* index of the slot; only the low 16 bits are used */
	uint32_t op;	/* opcode, with the opcode modifier in the top byte */
	uint32_t flags; /* fm_ce_se */
	uint32_t imm_be;
};

GDK_FN struct gdk_wqe_at gdk_wqe_at(struct doca_gpu_dev_verbs_wqe *wqe, uint16_t idx, uint32_t op,
				    uint32_t flags)
{
	const struct gdk_wqe_at at = { wqe, idx, op, flags, 0 };

	return at;
}

struct gdk_mem {
	uint64_t addr;
	gdk_key_t key;
};

GDK_FN struct gdk_mem gdk_mem(uint64_t addr, gdk_key_t key)
{
	const struct gdk_mem m = { addr, key };

	return m;
}

/* Writes the control segment. ds is the number of segments of the WQE. */
GDK_FN void gdk_seg_ctrl(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at, uint32_t ds)
{
	const uint32_t qpn8 = gdk_ldc32(GDK_QP_AT(qp, sq_num_shift8));
	const uint32_t idx = at.idx & 0xffff;
	const uint32_t flags = gdk_wqe_signal(qp, (uint16_t)idx, (ds + 3) / 4, at.flags);

	gdk_st_wqe16(gdk_seg(at.wqe, 0),
		     gdk_pack(gdk_bswap32(at.op | idx << 8), gdk_bswap32(qpn8 | ds)),
		     gdk_pack(flags << 24, at.imm_be));
}

GDK_FN void gdk_seg_raddr(struct doca_gpu_dev_verbs_wqe *wqe, unsigned int i, uint64_t raddr,
			  gdk_key_t rkey)
{
	gdk_st_wqe16(gdk_seg(wqe, i), gdk_bswap64(raddr), gdk_pack(rkey.be, 0));
}

GDK_FN void gdk_seg_data(struct doca_gpu_dev_verbs_wqe *wqe, unsigned int i, uint64_t laddr,
			 gdk_key_t lkey, uint32_t bytes)
{
	gdk_st_wqe16(gdk_seg(wqe, i), gdk_pack(gdk_bswap32(bytes & 0x7fffffffu), lkey.be),
		     gdk_bswap64(laddr));
}

GDK_FN void gdk_wqe_nop(const struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe,
			uint16_t idx, uint32_t flags)
{
	gdk_seg_ctrl(qp, gdk_wqe_at(wqe, idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP, flags), 1);
}

/* Writes an RDMA write, RDMA write with immediate, or RDMA read, depending on at.op. */
GDK_FN void gdk_wqe_rdma(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
			 struct gdk_mem remote, struct gdk_mem local, uint32_t bytes)
{
	gdk_seg_ctrl(qp, at, 3);
	gdk_seg_raddr(at.wqe, 1, remote.addr, remote.key);
	gdk_seg_data(at.wqe, 2, local.addr, local.key, bytes);
}

/* As gdk_wqe_rdma(), with two local data segments. */
GDK_FN void gdk_wqe_rdma2(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
			  struct gdk_mem remote, struct gdk_mem local0, uint32_t bytes0,
			  struct gdk_mem local1, uint32_t bytes1)
{
	gdk_seg_ctrl(qp, at, 4);
	gdk_seg_raddr(at.wqe, 1, remote.addr, remote.key);
	gdk_seg_data(at.wqe, 2, local0.addr, local0.key, bytes0);
	gdk_seg_data(at.wqe, 3, local1.addr, local1.key, bytes1);
}

GDK_FN uint32_t gdk_write_inl_ds(uint32_t bytes)
{
	return bytes > 12 ? 4 : 3;
}

/* Writes the control segment and the remote address segment of an inline write of at most 28 bytes.
 * at.op is RDMA_WRITE. */
GDK_FN void gdk_wqe_write_inl_header(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
				     struct gdk_mem remote, uint32_t bytes)
{
	gdk_seg_ctrl(qp, at, gdk_write_inl_ds(bytes));
	gdk_seg_raddr(at.wqe, 1, remote.addr, remote.key);
}

/* Returns 4 bytes of a payload from offset `at` on, as a little-endian word. The payload has
 * `bytes` bytes; bytes behind its end are 0. src needs no alignment. */
GDK_FN uint32_t gdk_load_bytes(const uint8_t *src, uint32_t at, uint32_t bytes)
{
	uint32_t v = 0, i;

	for (i = 0; i < 4 && at + i < bytes; i++)
		v |= (uint32_t)src[at + i] << 8 * i;
	return v;
}

/* Content of segment 2 of an inline write and, for more than 12 bytes, of segment 3. */
struct gdk_inl_segs {
	uint64_t w[4];
};

GDK_FN struct gdk_inl_segs gdk_inl_segs_of(const void *data, uint32_t bytes)
{
	const uint8_t *src = (const uint8_t *)data;
	struct gdk_inl_segs s;

	s.w[0] = gdk_pack(gdk_bswap32(bytes | 0x80000000u), gdk_load_bytes(src, 0, bytes));
	s.w[1] = gdk_pack(gdk_load_bytes(src, 4, bytes), gdk_load_bytes(src, 8, bytes));
	s.w[2] = gdk_pack(gdk_load_bytes(src, 12, bytes), gdk_load_bytes(src, 16, bytes));
	s.w[3] = gdk_pack(gdk_load_bytes(src, 20, bytes), gdk_load_bytes(src, 24, bytes));
	return s;
}

GDK_FN void gdk_segs_inl(struct doca_gpu_dev_verbs_wqe *wqe, struct gdk_inl_segs s, uint32_t bytes)
{
	gdk_st_wqe16(gdk_seg(wqe, 2), s.w[0], s.w[1]);
	if (bytes > 12)
		gdk_st_wqe16(gdk_seg(wqe, 3), s.w[2], s.w[3]);
}

GDK_FN void gdk_wqe_write_inl_data(struct doca_gpu_dev_verbs_wqe *wqe, const void *data,
				   uint32_t bytes)
{
	gdk_segs_inl(wqe, gdk_inl_segs_of(data, bytes), bytes);
}

GDK_FN void gdk_wqe_write_inl(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
			      struct gdk_mem remote, const void *data, uint32_t bytes)
{
	gdk_wqe_write_inl_header(qp, at, remote, bytes);
	gdk_wqe_write_inl_data(at.wqe, data, bytes);
}

/* Writes an 8-byte atomic, depending on at.op: a fetch-and-add, which adds compare_add, or a
 * compare-and-swap, which compares with compare_add. */
GDK_FN void gdk_wqe_atomic(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
			   struct gdk_mem remote, struct gdk_mem local, uint32_t bytes,
			   uint64_t compare_add, uint64_t swap)
{
	const int add = at.op == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA;

	gdk_seg_ctrl(qp, at, 4);
	gdk_seg_raddr(at.wqe, 1, remote.addr, remote.key);
	gdk_st_wqe16(gdk_seg(at.wqe, 2), gdk_bswap64(add ? compare_add : swap),
		     add ? 0 : gdk_bswap64(compare_add));
	gdk_seg_data(at.wqe, 3, local.addr, local.key, bytes);
}

/* Operands of a masked atomic, in CPU byte order. */
struct gdk_atomic_ext {
	uint64_t add, boundary;				 /* of a masked fetch-and-add */
	uint64_t swap, compare, swap_mask, compare_mask; /* of a masked compare-and-swap */
};

/*
 * Writes a masked atomic of 4 or 8 bytes. An 8-byte compare-and-swap has five segments, so it needs
 * two slots. wqe1 is the slot after at.wqe, and may be at the start of the ring.
 */
GDK_FN void gdk_wqe_atomic_ext(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_wqe_at at,
			       struct doca_gpu_dev_verbs_wqe *wqe1, struct gdk_mem remote,
			       struct gdk_mem local, uint32_t bytes,
			       const struct gdk_atomic_ext *arg)
{
	const int wide = bytes == 8, cas = at.op == DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS;
	struct doca_gpu_dev_verbs_wqe *wqe = at.wqe;

	at.op |= wide ? (uint32_t)DOCA_GPUNETIO_8_BYTE_ATOMIC_EXT_OPMOD
		      : (uint32_t)DOCA_GPUNETIO_4_BYTE_ATOMIC_EXT_OPMOD;
	gdk_seg_ctrl(qp, at, wide && cas ? 5 : 4);
	gdk_seg_raddr(wqe, 1, remote.addr, remote.key);
	if (!cas && wide) {
		gdk_st_wqe16(gdk_seg(wqe, 2), gdk_bswap64(arg->add), gdk_bswap64(arg->boundary));
	} else if (!cas) {
		gdk_st_wqe16(gdk_seg(wqe, 2),
			     gdk_pack(gdk_bswap32((uint32_t)arg->add),
				      gdk_bswap32((uint32_t)arg->boundary)),
			     0);
	} else if (!wide) {
		gdk_st_wqe16(gdk_seg(wqe, 2),
			     gdk_pack(gdk_bswap32((uint32_t)arg->swap),
				      gdk_bswap32((uint32_t)arg->compare)),
			     gdk_pack(gdk_bswap32((uint32_t)arg->swap_mask),
				      gdk_bswap32((uint32_t)arg->compare_mask)));
	} else {
		gdk_st_wqe16(gdk_seg(wqe, 2), gdk_bswap64(arg->swap), gdk_bswap64(arg->compare));
		gdk_st_wqe16(gdk_seg(wqe, 3), gdk_bswap64(arg->swap_mask),
			     gdk_bswap64(arg->compare_mask));
		gdk_seg_data(wqe1, 0, local.addr, local.key, bytes);
		return;
	}
	gdk_seg_data(wqe, 3, local.addr, local.key, bytes);
}

GDK_FN void gdk_seg_wait(struct doca_gpu_dev_verbs_wqe *wqe, uint32_t max_index, uint32_t qpn_cqn)
{
	gdk_st_wqe16(gdk_seg(wqe, 1), 0, gdk_pack(gdk_bswap32(max_index), gdk_bswap32(qpn_cqn)));
}

/* Writes a WAIT: the NIC executes no later WQE of the queue until the CQ (or QP) with number
 * qpn_cqn has reached max_index. */
GDK_FN void gdk_wqe_wait(const struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe,
			 uint16_t idx, uint32_t flags, uint32_t max_index, uint32_t qpn_cqn)
{
	gdk_seg_ctrl(qp, gdk_wqe_at(wqe, idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT, flags), 2);
	gdk_seg_wait(wqe, max_index, qpn_cqn);
}

GDK_FN void gdk_wqe_dump(const struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe,
			 uint16_t idx, uint32_t flags, uint64_t laddr, gdk_key_t lkey,
			 uint32_t bytes)
{
	gdk_seg_ctrl(qp, gdk_wqe_at(wqe, idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP, flags), 2);
	gdk_seg_data(wqe, 1, laddr, lkey, bytes);
}

/* ---- signalled WQEs of one slot; the queue's fields are loaded once for many WQEs ---- */

struct gdk_wqes {
	uint64_t ring;
	uint32_t mask, qpn8_be; /* mask: number of slots - 1; qpn8_be: QP number << 8, big-endian */
};

GDK_FN struct gdk_wqes gdk_wqes_of(const struct gdk_qp_state *st)
{
	struct gdk_wqes w;

	w.mask = gdk_ldc32(&st->depth) - 1;
	w.ring = gdk_ldc64(&st->ring);
	w.qpn8_be = gdk_ldc32(&st->qpn8_be);
	return w;
}

/* As gdk_wqes_of(), but loads the values from the device struct. */
GDK_FN struct gdk_wqes gdk_wqes_of_qp(const struct doca_gpu_dev_verbs_qp *qp)
{
	struct gdk_wqes w;

	w.mask = gdk_ldc16(GDK_QP_AT(qp, sq_wqe_mask));
	w.ring = gdk_ldc64(GDK_QP_AT(qp, sq_wqe_daddr));
	w.qpn8_be = gdk_ldc32(GDK_QP_AT(qp, sq_num_shift8_be));
	return w;
}

/* The values of a signalled WQE of one slot: op, ds and imm_be are for the control segment, and w
 * contains the segments after it. ds is the number of segments of the WQE. The NIC ignores the
 * bytes behind them. */
struct gdk_one {
	uint32_t op, ds, imm_be;
	uint64_t w[6];
};

GDK_FN struct gdk_one gdk_one_of(uint32_t op, uint32_t ds)
{
	const struct gdk_one one = { op, ds, 0, { 0, 0, 0, 0, 0, 0 } };

	return one;
}

GDK_FN void gdk_one_raddr(struct gdk_one *one, uint64_t raddr, gdk_key_t rkey)
{
	one->w[0] = gdk_bswap64(raddr);
	one->w[1] = gdk_pack(rkey.be, 0);
}

/* Stores a data segment in w[i] and w[i + 1]. */
GDK_FN void gdk_one_data(struct gdk_one *one, unsigned int i, uint64_t laddr, gdk_key_t lkey,
			 uint32_t bytes)
{
	one->w[i] = gdk_pack(gdk_bswap32(bytes & 0x7fffffffu), lkey.be);
	one->w[i + 1] = gdk_bswap64(laddr);
}

/* Returns a write of 1 to 28 bytes, whose data the WQE contains. */
GDK_FN struct gdk_one gdk_one_inline(uint64_t raddr, gdk_key_t rkey, const void *data,
				     uint32_t bytes)
{
	const struct gdk_inl_segs s = gdk_inl_segs_of(data, bytes);
	struct gdk_one one = gdk_one_of(DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					gdk_write_inl_ds(bytes));

	gdk_one_raddr(&one, raddr, rkey);
	one.w[2] = s.w[0];
	one.w[3] = s.w[1];
	one.w[4] = s.w[2];
	one.w[5] = s.w[3];
	return one;
}

/* Writes the WQE to slot idx. segments is the number of segments that are stored: a constant, at
 * least one->ds. opmod is the opcode modifier. */
GDK_FN void gdk_one_write_mod(const struct gdk_wqes *w, uint64_t idx, const struct gdk_one *one,
			      uint32_t segments, uint32_t opmod)
{
	const uint64_t at = w->ring + ((uint64_t)((uint32_t)idx & w->mask) << 6);
	struct doca_gpu_dev_verbs_wqe *wqe = (struct doca_gpu_dev_verbs_wqe *)(uintptr_t)at;

	gdk_st_wqe16(gdk_seg(wqe, 0),
		     gdk_pack(gdk_bswap32_24((uint32_t)idx, one->op) | opmod,
			      w->qpn8_be | one->ds << 24),
		     gdk_pack(GDK_CE_ALWAYS << 24, one->imm_be));
	if (segments > 1)
		gdk_st_wqe16(gdk_seg(wqe, 1), one->w[0], one->w[1]);
	if (segments > 2)
		gdk_st_wqe16(gdk_seg(wqe, 2), one->w[2], one->w[3]);
	if (segments > 3)
		gdk_st_wqe16(gdk_seg(wqe, 3), one->w[4], one->w[5]);
}

GDK_FN void gdk_one_write(const struct gdk_wqes *w, uint64_t idx, const struct gdk_one *one,
			  uint32_t segments)
{
	gdk_one_write_mod(w, idx, one, segments, 0);
}

#endif
