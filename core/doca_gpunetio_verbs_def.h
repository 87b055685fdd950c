/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Constants, enumerations and NIC formats that host and device code share, with
 * the names and values of DOCA GPUNetIO open 3.0. Compiles as C11, C++11 and
 * CUDA. Fields of type __be16, __be32 and __be64 are big-endian in memory.
 */
#ifndef DOCA_GPUNETIO_VERBS_DEF_H
#define DOCA_GPUNETIO_VERBS_DEF_H

#include <limits.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Versions are one number: major << 16 | minor << 8 | patch. */
#define DOCA_GPUNETIO_VERSION_MAJOR 3
#define DOCA_GPUNETIO_VERSION_MINOR 0
#define DOCA_GPUNETIO_VERSION_PATCH 0

#define DOCA_GPUNETIO_VERSION_MAJOR_SHIFT 16
#define DOCA_GPUNETIO_VERSION_MINOR_SHIFT 8
#define DOCA_GPUNETIO_VERSION_PATCH_SHIFT 0

#define DOCA_GPUNETIO_VERSION \
	((DOCA_GPUNETIO_VERSION_MAJOR << DOCA_GPUNETIO_VERSION_MAJOR_SHIFT) | \
	 (DOCA_GPUNETIO_VERSION_MINOR << DOCA_GPUNETIO_VERSION_MINOR_SHIFT) | \
	 (DOCA_GPUNETIO_VERSION_PATCH << DOCA_GPUNETIO_VERSION_PATCH_SHIFT))

/* What the including program was compiled with: pass these to the two
 * doca_gpu_verbs_check_*_code_compatibility functions. */
#define DOCA_GPUNETIO_DEVICE_CODE_VERSION DOCA_GPUNETIO_VERSION
#define DOCA_GPUNETIO_HOST_CODE_VERSION	  DOCA_GPUNETIO_VERSION

/* The oldest device code that this library can export QPs to. */
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MAJOR 2
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MINOR 0
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_PATCH 0
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION \
	((DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MAJOR \
	  << DOCA_GPUNETIO_VERSION_MAJOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MINOR \
	  << DOCA_GPUNETIO_VERSION_MINOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_PATCH \
	  << DOCA_GPUNETIO_VERSION_PATCH_SHIFT))

/* The oldest host code that this library serves. */
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MAJOR 0
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MINOR 2
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_PATCH 0
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION \
	((DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MAJOR << DOCA_GPUNETIO_VERSION_MAJOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MINOR << DOCA_GPUNETIO_VERSION_MINOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_PATCH << DOCA_GPUNETIO_VERSION_PATCH_SHIFT))

/* The type of an expression, in C and in C++. */
#ifndef TYPEOF
#ifdef __GNUC__
#define TYPEOF(x) __typeof__(x)
#else
#define TYPEOF(x) decltype(x)
#endif
#endif

/* An lvalue seen through a volatile type: one access, neither split nor merged. */
#define DOCA_GPUNETIO_VOLATILE(x) (*(volatile TYPEOF(x) *)&(x))

#ifndef ACCESS_ONCE
#define ACCESS_ONCE(x) (*(volatile TYPEOF(x) *)&(x))
#endif

#ifndef READ_ONCE
#define READ_ONCE(x) ACCESS_ONCE(x)
#endif

#ifndef WRITE_ONCE
#define WRITE_ONCE(x, v) (ACCESS_ONCE(x) = (v))
#endif

/* Threads of a warp, and the mask that names them all. */
#define DOCA_GPUNETIO_VERBS_WARP_SIZE	   32
#define DOCA_GPUNETIO_VERBS_WARP_FULL_MASK 0xffffffff

/* Alignment, in bytes, of memory that a NIC and a GPU share: a GPU page. */
#define DOCA_GPUNETIO_VERBS_PAGE_SIZE 65536

/* A CQ's consumer index counts modulo 2^24, a QP's producer index modulo 2^16. */
#define DOCA_GPUNETIO_VERBS_CQE_CI_MASK 0xFFFFFF
#define DOCA_GPUNETIO_VERBS_WQE_PI_MASK 0xFFFF

/* A WQE slot (WQEBB) has 1 << 6 = 64 bytes. */
#define DOCA_GPUNETIO_IB_MLX5_WQE_SQ_SHIFT 6

/* 1: memory keys are given to the device functions in big-endian order. */
#define DOCA_GPUNETIO_VERBS_MKEY_SWAPPED 1

/* Define to 1 before inclusion to get assertions in the device code. */
#ifndef DOCA_GPUNETIO_VERBS_ENABLE_DEBUG
#define DOCA_GPUNETIO_VERBS_ENABLE_DEBUG 0
#endif

#if DOCA_GPUNETIO_VERBS_ENABLE_DEBUG == 1
#include <assert.h>
#define DOCA_GPUNETIO_VERBS_ASSERT(x) assert(x)
#else
#define DOCA_GPUNETIO_VERBS_ASSERT(x) \
	do { \
	} while (0)
#endif

/* Bytes of payload that a one-slot RDMA write carries inline. */
#define DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE 28

/* The opcode is the high half of a CQE's last byte, the owner its bit 0. */
#define DOCA_GPUNETIO_VERBS_MLX5_CQE_OPCODE_SHIFT 4

#define DOCA_GPUNETIO_VERBS_CQE_SIZE 64

/* Where the WQE index stands in the first word of a control segment. */
#define DOCA_GPUNETIO_VERBS_WQE_IDX_SHIFT 8

/* The longest RDMA of one WQE: 1 GiB. */
#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT 30

#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE (1ULL << DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT)

/* The opmod byte, in place in the control segment's first word, of an extended
 * (masked) atomic on 4 and on 8 bytes. */
#define DOCA_GPUNETIO_4_BYTE_ATOMIC_EXT_OPMOD 0x08000000
#define DOCA_GPUNETIO_8_BYTE_ATOMIC_EXT_OPMOD 0x09000000

/* Opcodes of WQEs (PRM, "WQE opcodes"). */
enum {
	DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP = 0x00,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_INVAL = 0x01,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE = 0x08,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM = 0x09,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND = 0x0a,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_IMM = 0x0b,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_TSO = 0x0e,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ = 0x10,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS = 0x11,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA = 0x12,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS = 0x14,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA = 0x15,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_FMR = 0x19,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_LOCAL_INVAL = 0x1b,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT = 0x0f,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_CONFIG_CMD = 0x1f,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_SET_PSV = 0x20,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP = 0x23,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_UMR = 0x25,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_TAG_MATCHING = 0x28,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_FLOW_TBL_ACCESS = 0x2c,
	DOCA_GPUNETIO_IB_MLX5_OPCODE_MMO = 0x2F,
};

/* Field ce of a control segment: when the WQE makes a CQE. */
enum {
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ON_CQE_ERROR = 0x0,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ON_FIRST_CQE_ERROR = 0x1,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ALWAYS = 0x2,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_AND_EQE = 0x3,
};

/* Field fm of a control segment: what the WQE waits for before it starts. */
enum {
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_NO_FENCE = 0x0,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_INITIATOR_SMALL_FENCE = 0x1,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_FENCE = 0x2,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_STRONG_ORDERING = 0x3,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_FENCE_AND_INITIATOR_SMALL_FENCE = 0x4,
	/* no value of the field: the caller supplies one */
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_CUSTOM = 0x100,
};

/* The fm_ce_se byte of a control segment: fm << 5 | ce << 2 | solicited << 1.
 * Values can be combined with bitwise or. */
enum doca_gpu_dev_verbs_wqe_ctrl_flags {
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ALWAYS
						   << 2,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_ERROR_UPDATE =
		DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ON_CQE_ERROR << 2,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_FIRST_CQE_ERROR =
		DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ON_FIRST_CQE_ERROR << 2,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_SOLICITED = 1 << 1,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FENCE = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_FENCE << 5,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE =
		DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_INITIATOR_SMALL_FENCE << 5,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_STRONG_ORDERING =
		DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_STRONG_ORDERING << 5,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE_FENCE =
		DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ALWAYS << 2 |
		DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_FENCE << 5,
};

/* Words of a QP's doorbell record. */
enum {
	DOCA_GPUNETIO_IB_MLX5_RCV_DBR = 0,
	DOCA_GPUNETIO_IB_MLX5_SND_DBR = 1,
};

/* Where a queue's memory is. */
enum doca_gpu_dev_verbs_mem_type {
	DOCA_GPUNETIO_VERBS_MEM_TYPE_AUTO = 0, /* found out from the address */
	DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST = 1,
	DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU = 2,
	DOCA_GPUNETIO_VERBS_MEM_TYPE_MAX = INT_MAX,
};

/* Whether a QP's send doorbell record is kept. */
enum doca_gpu_verbs_send_dbr_mode_ext {
	DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR = 0, /* written before each doorbell */
	DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW = 1, /* the NIC does without it */
	/* the GPU only rings; a CPU thread writes the record and rings again */
	DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED = 2,
};

/* Which queue of a QP a device function works on. */
enum doca_gpu_dev_verbs_qp_type {
	DOCA_GPUNETIO_VERBS_QP_SQ = 0,
};

/* Who calls a device function: one thread, or a whole warp together. */
enum doca_gpu_dev_verbs_exec_scope {
	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD = 0,
	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP,
};
/* A whole thread block together; DOCA has no name for it. */
#define GDK_EXEC_SCOPE_BLOCK ((enum doca_gpu_dev_verbs_exec_scope)2)

/* How far a fence reaches. */
enum doca_gpu_dev_verbs_sync_scope {
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS = 0, /* CPU and devices too */
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU = 1,
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_CTA = 2, /* one thread block */
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_THREAD = 3,
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_MAX = INT_MAX,
};

/* Which threads may use a QP or CQ at the same time. */
enum doca_gpu_dev_verbs_resource_sharing_mode {
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE = 0, /* one thread */
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA = 1,	 /* one thread block */
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU = 2,	 /* all threads of the GPU */
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_MAX = INT_MAX,
};

/* The bits that handler values are made of. */
enum {
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_CPU_PROXY = 1 << 0,
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM = 1 << 1,
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_BF = 1 << 2,
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_NO_DBR = 1 << 3,
};

/* Who rings the NIC's doorbell, and how. */
enum doca_gpu_dev_verbs_nic_handler {
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO = 0, /* the library chooses, and says why */
	/* a CPU thread, from a counter that the GPU raises */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY = DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_CPU_PROXY,
	/* a GPU thread, with an 8-byte store to the register */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB = DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM,
	/* a GPU thread or warp, storing the WQE itself to the register */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF = DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM |
						    DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_BF,
	/* as GPU_SM_DB, without a doorbell record */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR =
		DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM |
		DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_NO_DBR,
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_TYPE_MAX,
};

/* Options of the posting functions; bits. */
enum doca_gpu_dev_verbs_gpu_code_opt {
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT = 0,
	/* the record may be stored with an asynchronous release */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE = (1 << 0),
	/* the caller knows that free slots are left */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK = (1 << 1),
	/* publish only; a later submission rings */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING = (1 << 2),
	/* with CPU_PROXY, raise the producer index */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_CPU_PROXY_UPDATE_PI = (1 << 3),
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_MAX = INT_MAX,
};

/* What a signal does to the peer's 64-bit word. */
enum doca_gpu_dev_verbs_signal_op {
	DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD = 0,
	GDK_SIGNAL_OP_SET = 1, /* not in DOCA: an inline write of 8 bytes */
};

enum doca_gpu_dev_verbs_dump_mode {
	DOCA_GPUNETIO_VERBS_DUMP = 0,
	DOCA_GPUNETIO_VERBS_NODUMP = 1,
	DOCA_GPUNETIO_VERBS_DUMP_AUTO = 2,
};

enum doca_gpu_dev_verbs_blocking_mode {
	DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED = 0,
	DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED = 1,
};

/* Whether a get posts a DUMP WQE behind it: GPUs before Hopper may need one to
 * see what the NIC wrote. */
enum doca_gpu_dev_verbs_mcst_mode {
	DOCA_GPUNETIO_VERBS_MCST_DISABLED = 0,
	DOCA_GPUNETIO_VERBS_MCST_ENABLED = 1,
};

/* Lengths of WQEs in 16-byte segments. */
enum {
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_RDMA_WRITE_INL_MIN = 3,
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_RDMA_WRITE_INL_MAX = 4,
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_ATOMIC_FA_CAS = 4,
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_WAIT = 2,
};

/* In byte_count: data follows in the WQE (CPU order). */
enum {
	DOCA_GPUNETIO_IB_MLX5_INLINE_SEG = 0x80000000,
};

/* CQE opcodes, and the mask of the owner bit (PRM, "Completion queue entry"). */
enum {
	DOCA_GPUNETIO_IB_MLX5_CQE_OWNER_MASK = 1,
	DOCA_GPUNETIO_IB_MLX5_CQE_REQ = 0,
	DOCA_GPUNETIO_IB_MLX5_CQE_RESP_WR_IMM = 1,
	DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND = 2,
	DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_IMM = 3,
	DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_INV = 4,
	DOCA_GPUNETIO_IB_MLX5_CQE_RESIZE_CQ = 5,
	DOCA_GPUNETIO_IB_MLX5_CQE_NO_PACKET = 6,
	DOCA_GPUNETIO_IB_MLX5_CQE_SIG_ERR = 12,
	DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR = 13,
	DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR = 14,
	DOCA_GPUNETIO_IB_MLX5_CQE_INVALID = 15,
};

/* Bytes that an extended atomic works on. */
enum doca_gpu_dev_verbs_atomic_ext_bytes {
	DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_4 = 4,
	DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_8 = 8,
};

/* How a low-level user wants WQEs to be marked ready. Publication is per slot
 * here, so all modes do the same; the names are kept for source compatibility. */
enum doca_gpu_dev_verbs_qp_ready_mode {
	DOCA_GPUNETIO_VERBS_READY_MODE_DEFAULT = 0,
	DOCA_GPUNETIO_VERBS_READY_MODE_ATOMIC_CAS = 1,
	DOCA_GPUNETIO_VERBS_READY_MODE_LD_ST = 2,
};

/* Segments of a WQE, 16 bytes each (PRM, "WQE construction"). */

/* Memory pointer segment. */
struct doca_gpunetio_ib_mlx5_wqe_data_seg {
	__be32 byte_count;
	__be32 lkey;
	__be64 addr;
} __attribute__((__packed__));

/* Control segment, first of every send WQE. */
struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg {
	__be32 opmod_idx_opcode; /* opmod << 24 | WQE index << 8 | opcode */
	__be32 qpn_ds;		 /* QP number << 8 | length in segments */
	union {
		struct {
			uint8_t signature;
			__be16 dci_stream_channel_id;
			uint8_t fm_ce_se; /* doca_gpu_dev_verbs_wqe_ctrl_flags */
		} __attribute__((__packed__));
		struct {
			__be32 signature_fm_ce_se; /* the same four bytes as one word */
		} __attribute__((__packed__));
	} __attribute__((__packed__));
	__be32 imm; /* immediate data, or the key to invalidate */
} __attribute__((__packed__)) __attribute__((__aligned__(4)));

/* The same in DOCA GPUNetIO 1.x, which UCX uses; it is copied 8 bytes at a time. */
struct doca_gpu_dev_verbs_wqe_ctrl_seg {
	__be32 opmod_idx_opcode;
	__be32 qpn_ds;
	union {
		struct {
			uint8_t signature;
			uint8_t rsvd[2];
			uint8_t fm_ce_se;
		};
		__be32 signature_fm_ce_se;
	};
	__be32 imm;
} __attribute__((__aligned__(8)));

/* Remote address segment. */
struct doca_gpunetio_ib_mlx5_wqe_raddr_seg {
	__be64 raddr;
	__be32 rkey;
	__be32 reserved;
} __attribute__((__packed__));

/* Operands of an 8-byte compare-and-swap or fetch-and-add. */
struct doca_gpunetio_ib_mlx5_wqe_atomic_seg {
	__be64 swap_add;
	__be64 compare;
} __attribute__((__packed__));

/* Head of inline data; big-endian, with DOCA_GPUNETIO_IB_MLX5_INLINE_SEG set. */
struct doca_gpunetio_ib_mlx5_wqe_inl_data_seg {
	uint32_t byte_count;
};

/* Waits until CQ qpn_cqn has completed max_index. */
struct doca_gpunetio_ib_mlx5_wqe_wait_seg {
	uint32_t resv[2];
	__be32 max_index;
	__be32 qpn_cqn;
} __attribute__((__packed__));

/* Tag matching: first bytes of such a CQE, and the header within it. */
struct doca_gpunetio_ib_mlx5_tm_cqe {
	__be32 success;
	__be16 hw_phase_cnt;
	uint8_t rsvd0[12];
};

struct doca_gpunetio_ib_ibv_tmh {
	uint8_t opcode;
	uint8_t reserved[3];
	__be32 app_ctx;
	__be64 tag;
};

/* Completion queue entry of 64 bytes. */
struct doca_gpunetio_ib_mlx5_cqe64 {
	union {
		struct {
			uint8_t rsvd0[2];
			__be16 wqe_id;
			uint8_t rsvd4[13];
			uint8_t ml_path;
			uint8_t rsvd20[4];
			__be16 slid;
			__be32 flags_rqpn;
			uint8_t hds_ip_ext;
			uint8_t l4_hdr_type_etc;
			__be16 vlan_info;
		};
		struct doca_gpunetio_ib_mlx5_tm_cqe tm_cqe;
		struct doca_gpunetio_ib_ibv_tmh tmh;
	};
	__be32 srqn_uidx;
	__be32 imm_inval_pkey;
	uint8_t app;
	uint8_t app_op;
	__be16 app_info;
	__be32 byte_cnt;
	__be64 timestamp;
	__be32 sop_drop_qpn; /* opcode of the WQE << 24 | QP number */
	__be16 wqe_counter;  /* index of the WQE, modulo 2^16 */
	uint8_t signature;
	uint8_t op_own; /* CQE opcode << 4 | format << 2 | solicited << 1 | owner */
};

/* Completion queue entry with opcode REQ_ERR or RESP_ERR. */
struct doca_gpunetio_ib_mlx5_err_cqe_ex {
	uint8_t rsvd0[32];
	__be32 srqn;
	uint8_t rsvd1[16];
	uint8_t hw_err_synd;
	uint8_t hw_synd_type;
	uint8_t vendor_err_synd;
	uint8_t syndrome;
	__be32 s_wqe_opcode_qpn; /* opcode of the WQE << 24 | QP number */
	__be16 wqe_counter;
	uint8_t signature;
	uint8_t op_own;
};

#ifdef __cplusplus
}
#endif

#endif
