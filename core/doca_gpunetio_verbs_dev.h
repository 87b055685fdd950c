/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Structures that the host fills and GPU threads use, with the size and offsets
 * of DOCA GPUNetIO open 3.0, asserted below. They are copied freely (by multi
 * export and flat lists, and by applications), so what GPU threads share beyond
 * sq_rsvd_index lives behind gdk_state, in bytes that DOCA reserves.
 */
#ifndef DOCA_GPUNETIO_VERBS_DEV_H
#define DOCA_GPUNETIO_VERBS_DEV_H

#include "../common/doca_gpunetio_verbs_def.h"

#ifdef __cplusplus
#define GDK_STATIC_ASSERT(cond, text) static_assert(cond, text)
extern "C" {
#else
#define GDK_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

#define GDK_ASSERT_SIZE(type, size) GDK_STATIC_ASSERT(sizeof(type) == (size), "size of " #type)
#define GDK_ASSERT_OFFSET(type, member, offset) \
	GDK_STATIC_ASSERT(offsetof(type, member) == (offset), "offset of " #member " in " #type)

/* Names one posted operation; pass it to the wait functions. */
typedef uint64_t doca_gpu_dev_verbs_ticket_t;

/* An address in registered memory and its key (see ..._MKEY_SWAPPED). */
struct doca_gpu_dev_verbs_addr {
	uint64_t addr;
	__be32 key;
};

/* Operand segments of extended atomics; all fields big-endian in the WQE. */
typedef struct {
	uint32_t add_data;
	uint32_t field_boundary;
	uint64_t reserved;
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_32_masked_fa_seg_t;

typedef struct {
	uint64_t add_data;
	uint64_t field_boundary;
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_64_masked_fa_seg_t;

typedef struct {
	uint32_t swap_data;
	uint32_t compare_data;
	uint32_t swap_mask;
	uint32_t compare_mask;
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_32_masked_cs_seg_t;

/* Used twice: the data, then the masks. */
typedef struct {
	uint64_t swap;
	uint64_t compare;
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_64_masked_cs_seg_t;

/* One WQE slot of 64 bytes, by use. */
struct doca_gpu_dev_verbs_wqe {
	union {
		/* continuation of inline data */
		struct {
			uint8_t inl_data[64];
		};

		/* continuation of a list of pointers */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg0;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg1;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg2;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg3;
		};

		/* RDMA write and read */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg rw_cseg;
			struct doca_gpunetio_ib_mlx5_wqe_raddr_seg rw_rseg;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg rw_dseg0;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg rw_dseg1;
		};

		/* atomics */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg at_cseg;
			struct doca_gpunetio_ib_mlx5_wqe_raddr_seg at_rseg;
			struct doca_gpunetio_ib_mlx5_wqe_atomic_seg at_seg;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg at_dseg;
		};

		/* send */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg snd_cseg;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg snd_dseg0;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg snd_dseg1;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg snd_dseg2;
		};

		/* wait for another queue */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg wait_cseg;
			struct doca_gpunetio_ib_mlx5_wqe_wait_seg wait_dseg;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg padding0;
			struct doca_gpunetio_ib_mlx5_wqe_data_seg padding1;
		};
	};
} __attribute__((__aligned__(8)));

struct gdk_qp_state; /* qp/state.h: what the threads that share a QP share */

/* A completion queue as GPU threads see it; addresses are GPU addresses. */
struct doca_gpu_dev_verbs_cq {
	uint8_t *cqe_daddr; /* entry 0 */
	uint32_t cq_num;
	uint32_t cqe_num;  /* entries, a power of two */
	__be32 *dbrec;	   /* word 0: consumer index */
	uint64_t cqe_ci;   /* entries polled by an exclusive user */
	uint32_t cqe_mask; /* cqe_num - 1 */
	uint8_t cqe_size;  /* bytes per entry */
	uint8_t reserved1[3];
	uint64_t cqe_rsvd;
	enum doca_gpu_dev_verbs_mem_type mem_type; /* where the entries are */
	union {
		uint8_t reserved2[12];
		struct {
			uint32_t gdk_pad;		/* puts the pointer on a multiple of 8 */
			struct gdk_qp_state *gdk_state; /* that of the QP it belongs to */
		} __attribute__((__packed__));
	};
} __attribute__((__aligned__(8))) __attribute__((__packed__));

/* A queue pair as GPU threads see it; addresses are GPU addresses. */
struct doca_gpu_dev_verbs_qp {
	uint64_t sq_rsvd_index;	 /* slots handed out; read by applications */
	uint64_t sq_ready_index; /* kept for its place; publication is per slot */
	uint64_t sq_wqe_pi;	 /* index that was last rung for, exclusive use */
	uint32_t sq_num;	 /* QP number */
	uint32_t sq_num_shift8;
	uint32_t sq_num_shift8_be;     /* the doorbell's second word */
	uint32_t sq_num_shift8_be_1ds; /* qpn_ds of a WQE of 1 segment, … */
	uint32_t sq_num_shift8_be_2ds;
	uint32_t sq_num_shift8_be_3ds;
	uint32_t sq_num_shift8_be_4ds;
	uint32_t sq_num_shift8_be_5ds;
	int sq_lock;
	uint16_t sq_wqe_num;   /* slots, a power of two, at most 32768 */
	uint16_t sq_wqe_mask;  /* sq_wqe_num - 1 */
	uint8_t *sq_wqe_daddr; /* slot 0 */
	__be32 *sq_dbrec;      /* send word of the doorbell record */
	uint64_t *sq_db;       /* register, or the proxy's counter */
	union {
		uint8_t reserved1[8];
		struct gdk_qp_state *gdk_state;
	};
	uint8_t reserved2[64];

	struct doca_gpu_dev_verbs_cq cq_sq; /* where sends complete */
	uint8_t reserved3[64];

	enum doca_gpu_dev_verbs_nic_handler nic_handler;
	enum doca_gpu_dev_verbs_mem_type mem_type; /* where the slots are */
} __attribute__((__aligned__(8))) __attribute__((__packed__));

GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg, 16);
GDK_ASSERT_SIZE(struct doca_gpu_dev_verbs_wqe_ctrl_seg, 16);
GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_wqe_data_seg, 16);
GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_wqe_raddr_seg, 16);
GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_wqe_atomic_seg, 16);
GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_wqe_inl_data_seg, 4);
GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_wqe_wait_seg, 16);
GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_cqe64, 64);
GDK_ASSERT_SIZE(struct doca_gpunetio_ib_mlx5_err_cqe_ex, 64);
GDK_ASSERT_SIZE(doca_gpu_dev_verbs_atomic_32_masked_fa_seg_t, 16);
GDK_ASSERT_SIZE(doca_gpu_dev_verbs_atomic_64_masked_fa_seg_t, 16);
GDK_ASSERT_SIZE(doca_gpu_dev_verbs_atomic_32_masked_cs_seg_t, 16);
GDK_ASSERT_SIZE(doca_gpu_dev_verbs_atomic_64_masked_cs_seg_t, 16);
GDK_ASSERT_SIZE(struct doca_gpu_dev_verbs_addr, 16);
GDK_ASSERT_SIZE(struct doca_gpu_dev_verbs_wqe, 64);

GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg, fm_ce_se, 11);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg, imm, 12);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_wqe_ctrl_seg, fm_ce_se, 11);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_cqe64, byte_cnt, 44);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_cqe64, sop_drop_qpn, 56);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_cqe64, wqe_counter, 60);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_cqe64, op_own, 63);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_err_cqe_ex, hw_err_synd, 52);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_err_cqe_ex, syndrome, 55);
GDK_ASSERT_OFFSET(struct doca_gpunetio_ib_mlx5_err_cqe_ex, op_own, 63);

GDK_ASSERT_SIZE(struct doca_gpu_dev_verbs_cq, 64);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, cq_num, 8);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, dbrec, 16);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, cqe_ci, 24);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, cqe_mask, 32);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, cqe_size, 36);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, cqe_rsvd, 40);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, mem_type, 48);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, reserved2, 52);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_cq, gdk_state, 56);

GDK_ASSERT_SIZE(struct doca_gpu_dev_verbs_qp, 296);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_ready_index, 8);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_wqe_pi, 16);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_num, 24);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_num_shift8_be, 32);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_num_shift8_be_5ds, 52);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_lock, 56);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_wqe_num, 60);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_wqe_mask, 62);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_wqe_daddr, 64);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_dbrec, 72);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, sq_db, 80);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, gdk_state, 88);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, reserved2, 96);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, cq_sq, 160);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, reserved3, 224);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, nic_handler, 288);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, mem_type, 292);

#ifdef __cplusplus
}
#endif

#endif
