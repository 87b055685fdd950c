/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Constants, enumerations and formats of the NIC that host and device code share. Names and values
 * are those of DOCA GPUNetIO open 3.0, except names that begin with GDK_ or gdk_.
 *
 * Fields of type __be16, __be32 and __be64 are big-endian in memory. "PRM" is the programmer's
 * reference manual of the NIC.
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

#define DOCA_GPUNETIO_VERSION_MAJOR 3 /**< version of the API: major */
#define DOCA_GPUNETIO_VERSION_MINOR 0 /**< version of the API: minor */
#define DOCA_GPUNETIO_VERSION_PATCH 0 /**< version of the API: patch */

#define DOCA_GPUNETIO_VERSION_MAJOR_SHIFT 16 /**< position of major in a version */
#define DOCA_GPUNETIO_VERSION_MINOR_SHIFT 8  /**< position of minor in a version */
#define DOCA_GPUNETIO_VERSION_PATCH_SHIFT 0  /**< position of patch in a version */

/**
 * Version of the API that this header belongs to, as one number: major << 16 | minor << 8 | patch.
 */
#define DOCA_GPUNETIO_VERSION \
	((DOCA_GPUNETIO_VERSION_MAJOR << DOCA_GPUNETIO_VERSION_MAJOR_SHIFT) | \
	 (DOCA_GPUNETIO_VERSION_MINOR << DOCA_GPUNETIO_VERSION_MINOR_SHIFT) | \
	 (DOCA_GPUNETIO_VERSION_PATCH << DOCA_GPUNETIO_VERSION_PATCH_SHIFT))

/**
 * Version that device code was compiled with: pass it to
 * doca_gpu_verbs_check_device_code_compatibility().
 */
#define DOCA_GPUNETIO_DEVICE_CODE_VERSION DOCA_GPUNETIO_VERSION
/**
 * Version that host code was compiled with: pass it to
 * doca_gpu_verbs_check_host_code_compatibility().
 */
#define DOCA_GPUNETIO_HOST_CODE_VERSION DOCA_GPUNETIO_VERSION

/** Major number of DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION. */
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MAJOR 2
/** Minor number of DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION. */
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MINOR 0
/** Patch number of DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION. */
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_PATCH 0
/** Version of the oldest device code that works with this library. */
#define DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION \
	((DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MAJOR \
	  << DOCA_GPUNETIO_VERSION_MAJOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_MINOR \
	  << DOCA_GPUNETIO_VERSION_MINOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION_PATCH \
	  << DOCA_GPUNETIO_VERSION_PATCH_SHIFT))

/** Major number of DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION. */
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MAJOR 0
/** Minor number of DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION. */
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MINOR 2
/** Patch number of DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION. */
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_PATCH 0
/** Version of the oldest host code that works with this library. */
#define DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION \
	((DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MAJOR << DOCA_GPUNETIO_VERSION_MAJOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_MINOR << DOCA_GPUNETIO_VERSION_MINOR_SHIFT) | \
	 (DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION_PATCH << DOCA_GPUNETIO_VERSION_PATCH_SHIFT))

#ifndef TYPEOF
#ifdef __GNUC__
/** The type of an expression, in C and in C++. */
#define TYPEOF(x) __typeof__(x)
#else
#define TYPEOF(x) decltype(x)
#endif
#endif

/**
 * Accesses an lvalue as volatile: the compiler neither splits the access nor merges it with
 * another.
 */
#define DOCA_GPUNETIO_VOLATILE(x) (*(volatile TYPEOF(x) *)&(x))

#ifndef ACCESS_ONCE
/** As DOCA_GPUNETIO_VOLATILE. */
#define ACCESS_ONCE(x) (*(volatile TYPEOF(x) *)&(x))
#endif

#ifndef READ_ONCE
/** Reads x with one access. */
#define READ_ONCE(x) ACCESS_ONCE(x)
#endif

#ifndef WRITE_ONCE
/** Stores v to x with one access. */
#define WRITE_ONCE(x, v) (ACCESS_ONCE(x) = (v))
#endif

#define DOCA_GPUNETIO_VERBS_WARP_SIZE	   32	      /**< threads of a warp */
#define DOCA_GPUNETIO_VERBS_WARP_FULL_MASK 0xffffffff /**< lane mask of a whole warp */

/** Bytes of a GPU page: the alignment of GPU memory that is registered with a NIC. */
#define DOCA_GPUNETIO_VERBS_PAGE_SIZE 65536

#define DOCA_GPUNETIO_VERBS_CQE_CI_MASK 0xFFFFFF /**< mask of a CQ's consumer index, 24 bits */
#define DOCA_GPUNETIO_VERBS_WQE_PI_MASK 0xFFFF	 /**< mask of a QP's producer index, 16 bits */

/** log2 of the size of a slot, which is 64 bytes. */
#define DOCA_GPUNETIO_IB_MLX5_WQE_SQ_SHIFT 6

/** 1: DOCA's device functions take memory keys in big-endian order. */
#define DOCA_GPUNETIO_VERBS_MKEY_SWAPPED 1

#ifndef DOCA_GPUNETIO_VERBS_ENABLE_DEBUG
/** Define it as 1 before the first include to enable DOCA_GPUNETIO_VERBS_ASSERT(). The device code
 * of gdaki does not use this macro; it has checks of its own (GDK_DEBUG). */
#define DOCA_GPUNETIO_VERBS_ENABLE_DEBUG 0
#endif

#if DOCA_GPUNETIO_VERBS_ENABLE_DEBUG == 1
#include <assert.h>
#define DOCA_GPUNETIO_VERBS_ASSERT(x) assert(x)
#else
/** Assertion of the device code; empty unless DOCA_GPUNETIO_VERBS_ENABLE_DEBUG is 1. */
#define DOCA_GPUNETIO_VERBS_ASSERT(x) \
	do { \
	} while (0)
#endif

/** Maximum inline payload of an RDMA write WQE of one slot, in bytes. */
#define DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE 28

/** Bit position of the opcode in the last byte of a CQE. Bit 0 of that byte is the owner bit. */
#define DOCA_GPUNETIO_VERBS_MLX5_CQE_OPCODE_SHIFT 4

#define DOCA_GPUNETIO_VERBS_CQE_SIZE 64 /**< bytes of a CQE */

/** Bit position of the WQE index in the first word of a control segment. */
#define DOCA_GPUNETIO_VERBS_WQE_IDX_SHIFT 8

/** log2 of DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE. */
#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT 30

/** Maximum number of bytes that one WQE can transfer: 1 GiB. */
#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE (1ULL << DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT)

/** Opmod in the first word of the control segment of an extended (masked) atomic on 4 bytes. */
#define DOCA_GPUNETIO_4_BYTE_ATOMIC_EXT_OPMOD 0x08000000
/** Opmod in the first word of the control segment of an extended (masked) atomic on 8 bytes. */
#define DOCA_GPUNETIO_8_BYTE_ATOMIC_EXT_OPMOD 0x09000000

/** Opcodes of WQEs (PRM, "WQE opcodes"). */
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

/** Field ce of a control segment: when the WQE generates a CQE. */
enum {
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ON_CQE_ERROR = 0x0,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ON_FIRST_CQE_ERROR = 0x1,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_ALWAYS = 0x2,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CE_CQE_AND_EQE = 0x3,
};

/** Field fm of a control segment: which earlier WQEs must be complete before this one starts. */
enum {
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_NO_FENCE = 0x0,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_INITIATOR_SMALL_FENCE = 0x1,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_FENCE = 0x2,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_STRONG_ORDERING = 0x3,
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_FENCE_AND_INITIATOR_SMALL_FENCE = 0x4,
	/** not a value of the field; not used by this library */
	DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FM_CUSTOM = 0x100,
};

/**
 * Bits of the fm_ce_se byte of a control segment: fm << 5 | ce << 2 | solicited << 1. Combine them
 * with bitwise or.
 */
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

/** Indices of the two words of a QP's DBREC. */
enum {
	DOCA_GPUNETIO_IB_MLX5_RCV_DBR = 0, /**< receive counter */
	DOCA_GPUNETIO_IB_MLX5_SND_DBR = 1, /**< send counter */
};

/** Where the memory of a queue is. */
enum doca_gpu_dev_verbs_mem_type {
	DOCA_GPUNETIO_VERBS_MEM_TYPE_AUTO = 0,	    /**< not used by this library */
	DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST = 1,	    /**< host memory */
	DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU = 2,	    /**< GPU memory */
	DOCA_GPUNETIO_VERBS_MEM_TYPE_MAX = INT_MAX, /**< makes the type as wide as int */
};

/** DBREC mode of an exported QP: whether the send word of its DBREC is written. */
enum doca_gpu_verbs_send_dbr_mode_ext {
	DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR = 0, /**< with each doorbell */
	DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW = 1, /**< never: the NIC does not read it */
	/** GPU threads ring without writing it; a CPU thread writes it and rings again */
	DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED = 2,
};

/** Queue of a QP that a device function uses. */
enum doca_gpu_dev_verbs_qp_type {
	DOCA_GPUNETIO_VERBS_QP_SQ = 0, /**< send queue */
	DOCA_GPUNETIO_VERBS_QP_RQ = 1, /**< receive queue */
};

/** Scope of a device function: the threads that execute it together. */
enum doca_gpu_dev_verbs_exec_scope {
	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD = 0, /**< one thread */
	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP,	   /**< all threads of a warp */
};
/** Scope: all threads of a thread block. DOCA has no name for it. */
#define GDK_EXEC_SCOPE_BLOCK ((enum doca_gpu_dev_verbs_exec_scope)2)

/** Scope of a fence: the observers for which it orders memory accesses. */
enum doca_gpu_dev_verbs_sync_scope {
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS = 0,	      /**< GPU, CPU and devices */
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU = 1,	      /**< all threads of the GPU */
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_CTA = 2,	      /**< one thread block */
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_THREAD = 3,    /**< the calling thread: no fence */
	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_MAX = INT_MAX, /**< makes the type as wide as int */
};

/** Sharing mode: the threads that may use a QP or CQ at the same time. */
enum doca_gpu_dev_verbs_resource_sharing_mode {
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE = 0, /**< one thread */
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA = 1,	 /**< the threads of one block */
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU = 2,	 /**< all threads of the GPU */
	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_MAX =
		INT_MAX, /**< makes the type as wide as int */
};

/** Bits of handler values. */
enum {
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_CPU_PROXY = 1 << 0, /**< a CPU thread rings */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM = 1 << 1,	 /**< a GPU thread rings */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_BF = 1 << 2, /**< rings with a whole WQE (BlueFlame) */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_NO_DBR = 1 << 3, /**< GPU threads write no DBREC */
};

/** Doorbell handler: the thread that rings the doorbell, and how. */
enum doca_gpu_dev_verbs_nic_handler {
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO = 0, /**< the library chooses */
	/** a CPU thread rings; GPU threads raise a counter that it polls */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY = DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_CPU_PROXY,
	/** a GPU thread writes the DBREC and stores 8 bytes to the doorbell register */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB = DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM,
	/** a GPU thread or warp writes the DBREC and stores the 64 bytes of the WQE to the UAR */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF = DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM |
						    DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_BF,
	/**
	 * a GPU thread stores 8 bytes to the doorbell register; the QP has no DBREC, or a CPU
	 * thread writes it
	 */
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR =
		DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_GPU_SM |
		DOCA_GPUNETIO_VERBS_NIC_HANDLER_FLAG_NO_DBR,
	DOCA_GPUNETIO_VERBS_NIC_HANDLER_TYPE_MAX, /**< greater than every handler */
};

/** Options of the functions that post; bits. */
enum doca_gpu_dev_verbs_gpu_code_opt {
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT = 0, /**< no option */
	/** the store of DBREC or register may be an asynchronous store with release */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE = (1 << 0),
	/** do not wait for free slots: the caller knows that there are enough */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK = (1 << 1),
	/** publish but do not ring; a later submission rings */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING = (1 << 2),
	/** no effect: with CPU_PROXY every submission raises the counter of the CPU proxy */
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_CPU_PROXY_UPDATE_PI = (1 << 3),
	DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_MAX = INT_MAX, /**< makes the type as wide as int */
};

/** Operation of a signal on the 64-bit word of the peer. */
enum doca_gpu_dev_verbs_signal_op {
	DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD = 0, /**< atomic add */
	GDK_SIGNAL_OP_SET = 1,		       /**< inline write of 8 bytes; not in DOCA */
};

/** Whether a DUMP WQE follows an operation. Not used; exists for source compatibility. */
enum doca_gpu_dev_verbs_dump_mode {
	DOCA_GPUNETIO_VERBS_DUMP = 0,	   /**< yes */
	DOCA_GPUNETIO_VERBS_NODUMP = 1,	   /**< no */
	DOCA_GPUNETIO_VERBS_DUMP_AUTO = 2, /**< if the GPU needs it */
};

/** Whether a get waits until its data has arrived. */
enum doca_gpu_dev_verbs_blocking_mode {
	DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED = 0, /**< no */
	DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED = 1,	/**< yes */
};

/**
 * Whether a get posts a DUMP WQE after its read. GPUs before Hopper can need this WQE to see the
 * data that the NIC wrote.
 */
enum doca_gpu_dev_verbs_mcst_mode {
	DOCA_GPUNETIO_VERBS_MCST_DISABLED = 0, /**< no */
	DOCA_GPUNETIO_VERBS_MCST_ENABLED = 1,  /**< yes */
};

/** Lengths of WQEs, in segments of 16 bytes. */
enum {
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_RDMA_WRITE_INL_MIN = 3,
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_RDMA_WRITE_INL_MAX = 4,
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_ATOMIC_FA_CAS = 4,
	DOCA_GPUNETIO_VERBS_WQE_SEG_CNT_WAIT = 2,
};

/** Bit of field byte_count (in CPU byte order) which means that the data is in the WQE. */
enum {
	DOCA_GPUNETIO_IB_MLX5_INLINE_SEG = 0x80000000,
};

/** CQE opcodes, and the mask of the owner bit (PRM, "Completion queue entry"). */
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

/** Operand size of an extended atomic. */
enum doca_gpu_dev_verbs_atomic_ext_bytes {
	DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_4 = 4, /**< 4 bytes */
	DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_8 = 8, /**< 8 bytes */
};

/**
 * How WQEs are marked ready. This library publishes each slot by its ready bit, so all modes have
 * the same effect. The names exist for source compatibility.
 */
enum doca_gpu_dev_verbs_qp_ready_mode {
	DOCA_GPUNETIO_VERBS_READY_MODE_DEFAULT = 0,
	DOCA_GPUNETIO_VERBS_READY_MODE_ATOMIC_CAS = 1,
	DOCA_GPUNETIO_VERBS_READY_MODE_LD_ST = 2,
};

/** Segment of a WQE: pointer to data, 16 bytes (PRM, "WQE construction"). */
struct doca_gpunetio_ib_mlx5_wqe_data_seg {
	__be32 byte_count; /**< length of the data in bytes */
	__be32 lkey;	   /**< local key */
	__be64 addr;	   /**< address of the data */
} __attribute__((__packed__));

/** Segment of a WQE: control, 16 bytes, the first one of every send WQE. */
struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg {
	__be32 opmod_idx_opcode; /**< opmod << 24 | WQE index << 8 | opcode */
	__be32 qpn_ds;		 /**< QP number << 8 | length in segments */
	union {
		struct {
			uint8_t signature;	      /**< 0 */
			__be16 dci_stream_channel_id; /**< 0 for RC */
			uint8_t fm_ce_se;	      /**< doca_gpu_dev_verbs_wqe_ctrl_flags */
		} __attribute__((__packed__));
		struct {
			__be32 signature_fm_ce_se; /**< the same four bytes as one word */
		} __attribute__((__packed__));
	} __attribute__((__packed__));
	__be32 imm; /**< immediate data, or the key to invalidate */
} __attribute__((__packed__)) __attribute__((__aligned__(4)));

/** The control segment as in DOCA GPUNetIO 1.x, which UCX uses. It is copied 8 bytes at a time. */
struct doca_gpu_dev_verbs_wqe_ctrl_seg {
	__be32 opmod_idx_opcode; /**< opmod << 24 | WQE index << 8 | opcode */
	__be32 qpn_ds;		 /**< QP number << 8 | length in segments */
	union {
		struct {
			uint8_t signature; /**< 0 */
			uint8_t rsvd[2];   /**< 0 */
			uint8_t fm_ce_se;  /**< doca_gpu_dev_verbs_wqe_ctrl_flags */
		};
		__be32 signature_fm_ce_se; /**< the same four bytes as one word */
	};
	__be32 imm; /**< immediate data, or the key to invalidate */
} __attribute__((__aligned__(8)));

/** Segment of a WQE: remote address, 16 bytes. */
struct doca_gpunetio_ib_mlx5_wqe_raddr_seg {
	__be64 raddr;	 /**< remote address */
	__be32 rkey;	 /**< remote key */
	__be32 reserved; /**< 0 */
} __attribute__((__packed__));

/** Segment of a WQE: operands of a compare-and-swap or fetch-and-add on 8 bytes. */
struct doca_gpunetio_ib_mlx5_wqe_atomic_seg {
	__be64 swap_add; /**< value to store or to add */
	__be64 compare;	 /**< value to compare with; 0 for fetch-and-add */
} __attribute__((__packed__));

/** Header of inline data in a WQE, 4 bytes. The data follows it. */
struct doca_gpunetio_ib_mlx5_wqe_inl_data_seg {
	uint32_t byte_count; /**< bytes | DOCA_GPUNETIO_IB_MLX5_INLINE_SEG, big-endian */
};

/** Segment of a WQE: WAIT, 16 bytes. The send queue stops until a CQ has the CQE of an index. */
struct doca_gpunetio_ib_mlx5_wqe_wait_seg {
	uint32_t resv[2]; /**< 0 */
	__be32 max_index; /**< index of the CQE that must exist */
	__be32 qpn_cqn;	  /**< CQ number */
} __attribute__((__packed__));

/** First bytes of a CQE of tag matching. */
struct doca_gpunetio_ib_mlx5_tm_cqe {
	__be32 success;	     /**< result of the operation */
	__be16 hw_phase_cnt; /**< phase counter of the NIC */
	uint8_t rsvd0[12];   /**< reserved */
};

/** Header of tag matching in a CQE. */
struct doca_gpunetio_ib_ibv_tmh {
	uint8_t opcode;	     /**< operation */
	uint8_t reserved[3]; /**< reserved */
	__be32 app_ctx;	     /**< value of the application */
	__be64 tag;	     /**< tag of the message */
};

/** CQE of 64 bytes (PRM, "Completion queue entry"). */
struct doca_gpunetio_ib_mlx5_cqe64 {
	union {
		struct {
			uint8_t rsvd0[2];	 /**< reserved */
			__be16 wqe_id;		 /**< WQE index, for a receive */
			uint8_t rsvd4[13];	 /**< reserved */
			uint8_t ml_path;	 /**< low bits of the LID and GRH flag */
			uint8_t rsvd20[4];	 /**< reserved */
			__be16 slid;		 /**< LID of the sender */
			__be32 flags_rqpn;	 /**< flags, and number of the remote QP */
			uint8_t hds_ip_ext;	 /**< for packet queues */
			uint8_t l4_hdr_type_etc; /**< for packet queues */
			__be16 vlan_info;	 /**< for packet queues */
		};
		struct doca_gpunetio_ib_mlx5_tm_cqe tm_cqe; /**< for tag matching */
		struct doca_gpunetio_ib_ibv_tmh tmh;	    /**< for tag matching */
	};
	__be32 srqn_uidx;      /**< SRQ number, or user index */
	__be32 imm_inval_pkey; /**< immediate data, invalidated key or partition key */
	uint8_t app;	       /**< for offloads of applications */
	uint8_t app_op;	       /**< for offloads of applications */
	__be16 app_info;       /**< for offloads of applications */
	__be32 byte_cnt;       /**< bytes of the message */
	__be64 timestamp;      /**< time stamp of the NIC */
	__be32 sop_drop_qpn;   /**< opcode of the WQE << 24 | QP number */
	__be16 wqe_counter;    /**< index of the WQE, modulo 2^16 */
	uint8_t signature;     /**< checksum, if enabled */
	uint8_t op_own;	       /**< CQE opcode << 4 | format << 2 | solicited << 1 | owner */
};

/** CQE with opcode REQ_ERR or RESP_ERR. */
struct doca_gpunetio_ib_mlx5_err_cqe_ex {
	uint8_t rsvd0[32];	 /**< reserved */
	__be32 srqn;		 /**< SRQ number */
	uint8_t rsvd1[16];	 /**< reserved */
	uint8_t hw_err_synd;	 /**< for NVIDIA's support */
	uint8_t hw_synd_type;	 /**< for NVIDIA's support */
	uint8_t vendor_err_synd; /**< for NVIDIA's support */
	uint8_t syndrome;	 /**< see gdk_syndrome_text() */
	__be32 s_wqe_opcode_qpn; /**< opcode of the WQE << 24 | QP number */
	__be16 wqe_counter;	 /**< index of the WQE, modulo 2^16 */
	uint8_t signature;	 /**< checksum, if enabled */
	uint8_t op_own;		 /**< as in doca_gpunetio_ib_mlx5_cqe64 */
};

#ifdef __cplusplus
}
#endif

#endif
