/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Structures that the host fills and GPU threads use, with the sizes and offsets of DOCA GPUNetIO
 * open 3.0, which are asserted below.
 *
 * The library (arrays, flat lists) and applications copy these structs. Therefore the mutable
 * state that GPU threads share is not in them, apart from sq_rsvd_index, gdk_plain_end and indices
 * that only programs read: gdk_state, in bytes that DOCA reserves, points to it.
 */
#ifndef DOCA_GPUNETIO_VERBS_DEV_H
#define DOCA_GPUNETIO_VERBS_DEV_H

#include "common/doca_gpunetio_verbs_def.h"

#ifdef __cplusplus
#define GDK_STATIC_ASSERT(cond, text) static_assert(cond, text)
extern "C" {
#else
/** Fails the compilation with text if cond does not hold. */
#define GDK_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/** Fails the compilation if a type has another size in bytes. */
#define GDK_ASSERT_SIZE(type, size) GDK_STATIC_ASSERT(sizeof(type) == (size), "size of " #type)
/** Fails the compilation if a member has another offset in bytes. */
#define GDK_ASSERT_OFFSET(type, member, offset) \
	GDK_STATIC_ASSERT(offsetof(type, member) == (offset), "offset of " #member " in " #type)

/** Ticket of an operation: the index of its last WQE. The wait functions take it. */
typedef uint64_t doca_gpu_dev_verbs_ticket_t;

/** An address in registered memory, and its key. */
struct doca_gpu_dev_verbs_addr {
	uint64_t addr; /**< address */
	__be32 key;    /**< lkey or rkey, big-endian (DOCA_GPUNETIO_VERBS_MKEY_SWAPPED) */
};

/** Operands of a masked fetch-and-add on 4 bytes. All fields are big-endian in the WQE. */
typedef struct {
	uint32_t add_data;	 /**< value to add */
	uint32_t field_boundary; /**< a set bit stops the carry at this position */
	uint64_t reserved;	 /**< 0 */
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_32_masked_fa_seg_t;

/** Operands of a masked fetch-and-add on 8 bytes, big-endian in the WQE. */
typedef struct {
	uint64_t add_data;	 /**< value to add */
	uint64_t field_boundary; /**< a set bit stops the carry at this position */
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_64_masked_fa_seg_t;

/** Operands of a masked compare-and-swap on 4 bytes, big-endian in the WQE. */
typedef struct {
	uint32_t swap_data;    /**< value to store */
	uint32_t compare_data; /**< value to compare with */
	uint32_t swap_mask;    /**< bits that are stored */
	uint32_t compare_mask; /**< bits that are compared */
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_32_masked_cs_seg_t;

/**
 * Operands of a masked compare-and-swap on 8 bytes, big-endian. The WQE has two of them: first the
 * values, then the masks.
 */
typedef struct {
	uint64_t swap;	  /**< value to store, or mask of the bits that are stored */
	uint64_t compare; /**< value to compare with, or mask of the bits that are compared */
} __attribute__((__packed__)) doca_gpu_dev_verbs_atomic_64_masked_cs_seg_t;

/** One slot of 64 bytes, with the layouts that it can have. */
struct doca_gpu_dev_verbs_wqe {
	union {
		/** inline data that continues from the slot before */
		struct {
			uint8_t inl_data[64]; /**< inline data */
		};

		/** data segments that continue from the slot before */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg0; /**< first data segment */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg1; /**< second data segment */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg2; /**< third data segment */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg dseg3; /**< fourth data segment */
		};

		/** RDMA write and read */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg rw_cseg;  /**< control */
			struct doca_gpunetio_ib_mlx5_wqe_raddr_seg rw_rseg; /**< remote address */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg
				rw_dseg0; /**< first data segment */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg
				rw_dseg1; /**< second data segment */
		};

		/** atomics */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg at_cseg;  /**< control */
			struct doca_gpunetio_ib_mlx5_wqe_raddr_seg at_rseg; /**< remote address */
			struct doca_gpunetio_ib_mlx5_wqe_atomic_seg at_seg; /**< operands */
			/** buffer for the old value */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg at_dseg;
		};

		/** send */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg snd_cseg; /**< control */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg
				snd_dseg0; /**< first data segment */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg
				snd_dseg1; /**< second data segment */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg
				snd_dseg2; /**< third data segment */
		};

		/** WAIT */
		struct {
			struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg wait_cseg; /**< control */
			struct doca_gpunetio_ib_mlx5_wqe_wait_seg wait_dseg; /**< WAIT segment */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg padding0;  /**< not used */
			struct doca_gpunetio_ib_mlx5_wqe_data_seg padding1;  /**< not used */
		};
	};
} __attribute__((__aligned__(8)));

struct gdk_qp_state; /* the shared mutable state of an exported QP, device/gdk/state.h */

/** The CQ of an exported QP, for GPU threads. Addresses are GPU addresses. */
struct doca_gpu_dev_verbs_cq {
	uint8_t *cqe_daddr;   /**< entry 0 */
	uint32_t cq_num;      /**< CQ number */
	uint32_t cqe_num;     /**< number of entries, a power of two */
	__be32 *dbrec;	      /**< DBREC; word 0 is the consumer index */
	uint64_t cqe_ci;      /**< CQEs below it were polled, or consumed by cq_update_dbrec() */
	uint32_t cqe_mask;    /**< cqe_num - 1 */
	uint8_t cqe_size;     /**< bytes of an entry */
	uint8_t reserved1[3]; /**< reserved */
	uint64_t cqe_rsvd;    /**< producer index of the CQ at the export or at the last reset */
	enum doca_gpu_dev_verbs_mem_type mem_type; /**< memory of the entries */
	union {
		uint8_t reserved2[12]; /**< reserved */
		struct {
			uint32_t gdk_pad;		/**< aligns the pointer to 8 bytes */
			struct gdk_qp_state *gdk_state; /**< state of the QP that completes here */
		} __attribute__((__packed__));
	};
} __attribute__((__aligned__(8))) __attribute__((__packed__));

/** The device struct of an exported QP, for GPU threads. Addresses are GPU addresses. */
struct doca_gpu_dev_verbs_qp {
	uint64_t sq_rsvd_index;	       /**< number of slots reserved; applications may read it */
	uint64_t sq_ready_index;       /**< not used: each slot has a ready bit */
	uint64_t sq_wqe_pi;	       /**< index of the last doca_gpu_dev_verbs_submit*() */
	uint32_t sq_num;	       /**< QP number */
	uint32_t sq_num_shift8;	       /**< QP number << 8 */
	uint32_t sq_num_shift8_be;     /**< QP number << 8, big-endian: second word of a doorbell */
	uint32_t sq_num_shift8_be_1ds; /**< qpn_ds of a WQE of 1 segment */
	uint32_t sq_num_shift8_be_2ds; /**< qpn_ds of a WQE of 2 segments */
	uint32_t sq_num_shift8_be_3ds; /**< qpn_ds of a WQE of 3 segments */
	uint32_t sq_num_shift8_be_4ds; /**< qpn_ds of a WQE of 4 segments */
	uint32_t sq_num_shift8_be_5ds; /**< qpn_ds of a WQE of 5 segments */
	int sq_lock;		       /**< not used */
	uint16_t sq_wqe_num;	       /**< number of slots, a power of two, at most 32768 */
	uint16_t sq_wqe_mask;	       /**< sq_wqe_num - 1 */
	uint8_t *sq_wqe_daddr;	       /**< slot 0 */
	__be32 *sq_dbrec;	       /**< send word of the DBREC */
	uint64_t *sq_db;	       /**< doorbell register, or counter of the CPU proxy */
	union {
		uint8_t reserved1[8];		/**< reserved */
		struct gdk_qp_state *gdk_state; /**< shared mutable state */
	};
	union {
		uint8_t reserved2[64]; /**< reserved */
		/** the receive queue; all zero but need_mcst if it is not exported */
		struct {
			uint64_t rq_wqe_pi;    /**< producer index of the last submit */
			uint8_t *rq_wqe_daddr; /**< receive WQE 0 */
			/** the receive queue as a device struct of its own: its sq_* members and
			 * cq_sq describe the receive queue (device/gdk/recv_dev.h) */
			struct doca_gpu_dev_verbs_qp *gdk_rq;
			uint32_t rq_wqe_num;  /**< number of receive WQEs, a power of two */
			uint32_t rq_wqe_mask; /**< rq_wqe_num - 1 */
			uint8_t gdk_rq_shift; /**< log2 of the bytes of a receive WQE */
			/** 1: the GPU needs a DUMP WQE to see data that the NIC wrote */
			uint8_t need_mcst;
			uint8_t reserved4[6]; /**< reserved */
			/** exclusive use posts slots below it without a look at the state block */
			uint64_t gdk_plain_end;
			uint8_t reserved5[16]; /**< reserved */
		} __attribute__((__packed__));
	};

	struct doca_gpu_dev_verbs_cq cq_sq; /**< CQ of the send queue */
	union {
		uint8_t reserved3[64];		    /**< reserved */
		struct doca_gpu_dev_verbs_cq cq_rq; /**< CQ of the receive queue */
	};

	enum doca_gpu_dev_verbs_nic_handler nic_handler; /**< doorbell handler of the export */
	enum doca_gpu_dev_verbs_mem_type mem_type;	 /**< memory of the slots */
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
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, rq_wqe_pi, 96);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, reserved4, 130);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, gdk_plain_end, 136);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, cq_sq, 160);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, reserved3, 224);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, cq_rq, 224);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, nic_handler, 288);
GDK_ASSERT_OFFSET(struct doca_gpu_dev_verbs_qp, mem_type, 292);

#ifdef __cplusplus
}
#endif

#endif
