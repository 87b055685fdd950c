/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Device API, send queues: slots, WQEs and doorbells. The functions have the names and signatures
 * of DOCA GPUNetIO and call plain functions in gdk/by_hand_dev.h and gdk/wqe.h; some are templates.
 *
 * To post with these functions: reserve slots, write the WQEs with functions *_prepare_*, mark the
 * slots ready, and submit the index after the last slot. doca_gpunetio_dev_verbs_onesided.cuh does
 * all of this.
 *
 * - An index counts slots from the export or the last reset. A producer index (prod_index) is the
 *   index after the last slot.
 * - resource_sharing_mode: which threads post to the QP at the same time. Calls on a QP that can
 *   overlap must have the same value.
 * - qp_type: the send queue, or the receive queue if it is exported (gdk_verbs_export_qp_rq()).
 * - nic_handler: AUTO uses the handler of the export. Any other value must be equal to that
 *   handler; it saves a branch.
 * - sync_scope: SYS adds a release fence at system scope. The fences that the memory of the QP
 *   needs are executed with any value.
 * - code_opt: bits of enum doca_gpu_dev_verbs_gpu_code_opt.
 * - Addresses are those of registered memory, in CPU byte order. Keys are big-endian
 *   (DOCA_GPUNETIO_VERBS_MKEY_SWAPPED).
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_QP_CUH
#define DOCA_GPUNETIO_DEV_VERBS_QP_CUH

#include "device/doca_gpunetio_dev_verbs_cq.cuh"
#include "device/gdk/onesided_dev.h"
#include "device/gdk/recv_dev.h"

/** Template parameter: sharing mode, GPU by default. */
#define GDK_TEMPLATE_MODE \
	enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode = \
		DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
/** Template parameter: scope of an additional fence. */
#define GDK_TEMPLATE_SCOPE \
	enum doca_gpu_dev_verbs_sync_scope sync_scope = DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU
/** Template parameter: queue of the QP. */
#define GDK_TEMPLATE_QP_TYPE enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ
/** Template parameter: doorbell handler, that of the export by default. */
#define GDK_TEMPLATE_HANDLER \
	enum doca_gpu_dev_verbs_nic_handler nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
/** Last parameter of a function that posts: options. */
#define GDK_CODE_OPT uint32_t code_opt = DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT

/** Executes a release fence at system scope if sync_scope is SYS. */
template <enum doca_gpu_dev_verbs_sync_scope sync_scope> GDK_FN void gdk_extra_fence()
{
	if (sync_scope == DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS)
		gdk_fence_rel(GDK_SCOPE_SYS);
}

/** Stores the index that a submit was called for. Callers that count WQEs by themselves read it at
 * the start of a kernel as the index of the next WQE. */
template <GDK_TEMPLATE_MODE> GDK_FN void gdk_store_pi(struct doca_gpu_dev_verbs_qp *qp, uint64_t pi)
{
	if (resource_sharing_mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		gdk_st64(&qp->sq_wqe_pi, pi, GDK_SCOPE_THREAD);
	else
		gdk_red_max64(&qp->sq_wqe_pi, pi, GDK_SCOPE_GPU);
}

/* ---- slots ---- */

/** Stores one segment, 16 aligned bytes, of a WQE. */
GDK_FN void doca_gpu_dev_verbs_store_wqe_seg(uint64_t *ptr, uint64_t *val)
{
	gdk_st_wqe16(ptr, val[0], val[1]);
}

/** Returns the address of the slot with index wqe_idx modulo the number of slots. */
GDK_FN struct doca_gpu_dev_verbs_wqe *
doca_gpu_dev_verbs_get_wqe_ptr(struct doca_gpu_dev_verbs_qp *qp, uint16_t wqe_idx)
{
	return gdk_get_wqe_ptr(qp, wqe_idx);
}

/**
 * Reserves count slots (1 to the number of slots of the ring) and returns the index of the first
 * one. Waits for free slots unless SKIP_AVAILABILITY_CHECK is set. Slots become free by CQEs: if
 * count is more than half of the ring, the last WQE before the first slot must generate one. If an
 * error or an abort has ended the QP, the function also returns an index, but the caller must not
 * write the slots: gdk_qp_status() returns the error.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE>
GDK_FN uint64_t doca_gpu_dev_verbs_reserve_wq_slots(struct doca_gpu_dev_verbs_qp *qp,
						    uint32_t count, GDK_CODE_OPT)
{
	uint64_t idx;

	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ) {
		(void)gdk_rq_reserve(qp, count, resource_sharing_mode, code_opt, &idx);
		return idx;
	}
	(void)gdk_reserve(qp, count, resource_sharing_mode, code_opt, &idx);
	return idx;
}

/**
 * Publishes the slots from_wqe_idx to to_wqe_idx (inclusive), whose WQEs are written. ready_mode
 * has no effect.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE,
	  enum doca_gpu_dev_verbs_qp_ready_mode ready_mode =
		  DOCA_GPUNETIO_VERBS_READY_MODE_ATOMIC_CAS>
GDK_FN void doca_gpu_dev_verbs_mark_wqes_ready(struct doca_gpu_dev_verbs_qp *qp,
					       uint64_t from_wqe_idx, uint64_t to_wqe_idx)
{
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ)
		gdk_rq_mark_ready(qp, from_wqe_idx, to_wqe_idx, resource_sharing_mode);
	else
		gdk_mark_ready(qp, from_wqe_idx, to_wqe_idx, resource_sharing_mode,
			       DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO);
}

/**
 * Advances an index of the caller: waits until ready_index is from_wqe_idx (not in exclusive mode),
 * then stores to_wqe_idx + 1 with release order. Returns 0. After 60 seconds of waiting it returns
 * -ETIMEDOUT and does not change the index.
 */
template <GDK_TEMPLATE_MODE,
	  enum doca_gpu_dev_verbs_qp_ready_mode ready_mode = DOCA_GPUNETIO_VERBS_READY_MODE_DEFAULT>
GDK_FN int doca_gpu_dev_common_mark_wqes_ready(uint64_t &ready_index, uint64_t from_wqe_idx,
					       uint64_t to_wqe_idx)
{
	return gdk_index_advance(&ready_index, from_wqe_idx, to_wqe_idx + 1,
				 gdk_mode_scope(resource_sharing_mode));
}

/**
 * Waits until the caller may write slot wqe_idx, which was reserved with SKIP_AVAILABILITY_CHECK.
 * Returns 0 or the negative errno that ended the QP.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE>
GDK_FN int doca_gpu_dev_verbs_wait_until_slot_available(struct doca_gpu_dev_verbs_qp *qp,
							uint64_t wqe_idx)
{
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ)
		return gdk_rq_wait_slot(qp, wqe_idx, resource_sharing_mode);
	return gdk_wait_slot(qp, wqe_idx, resource_sharing_mode);
}

/* ---- doorbells ---- */

/** Returns the DBREC word of a producer index: its low 16 bits, big-endian. */
GDK_FN __be32 doca_gpu_dev_verbs_prepare_dbr(uint32_t prod_index)
{
	return gdk_dbrec_value(prod_index);
}

/**
 * Stores a producer index to the DBREC word at dbrec, at system scope, without ordering. For
 * callers that store the addresses of QPs in structures of their own.
 */
GDK_FN void doca_gpu_dev_common_update_dbr(uint32_t *dbrec, uint32_t prod_index)
{
	gdk_st32(dbrec, gdk_dbrec_value(prod_index), GDK_SCOPE_SYS);
}

/**
 * Returns the 8 bytes that a doorbell stores to the register. qpn_ds is the QP number << 8,
 * big-endian.
 */
GDK_FN __be64 doca_gpu_dev_common_prepare_db(uint32_t qpn_ds, uint64_t prod_index)
{
	return gdk_db_value(qpn_ds, prod_index);
}

/**
 * Stores 8 bytes to the doorbell register at db_ptr, after a release fence of sync_scope. With
 * ASYNC_STORE_RELEASE it uses a store with release order at system scope instead, on GPUs that have
 * one.
 */
template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_common_write_db(uint64_t *db_ptr, uint64_t db_val, GDK_CODE_OPT)
{
	if (code_opt & DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE) {
		gdk_mmio_st64_async(db_ptr, db_val);
	} else {
		doca_gpu_dev_verbs_fence_release<sync_scope>();
		gdk_mmio_st64(db_ptr, db_val);
	}
}

/** doca_gpu_dev_common_prepare_db() and doca_gpu_dev_common_write_db() in one call. */
template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_common_ring_db(uint64_t *db_ptr, uint32_t qpn_ds, uint64_t prod_index,
					GDK_CODE_OPT)
{
	doca_gpu_dev_common_write_db<sync_scope>(
		db_ptr, doca_gpu_dev_common_prepare_db(qpn_ds, prod_index), code_opt);
}

/**
 * Stores a producer index to the DBREC, ordered after the WQEs that the thread wrote before. For
 * callers that write DBREC and doorbell register themselves. For the receive queue it is the same
 * as doca_gpu_dev_verbs_submit().
 */
template <GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_update_dbr(struct doca_gpu_dev_verbs_qp *qp, uint32_t prod_index,
					  GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ)
		gdk_rq_update_dbr(qp, prod_index);
	else
		gdk_update_dbr(qp, prod_index, code_opt);
}

/** As doca_gpu_dev_verbs_update_dbr(). For source compatibility. */
template <GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_priv_gpu_dev_verbs_update_dbr(struct doca_gpu_dev_verbs_qp *qp,
					       uint32_t prod_index)
{
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ)
		gdk_rq_update_dbr(qp, prod_index);
	else
		gdk_update_dbr(qp, prod_index, 0);
}

/** Returns the 8 bytes that a doorbell of this QP stores to the register, for a producer index. */
GDK_FN __be64 doca_gpu_dev_verbs_prepare_db(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index)
{
	return gdk_db_value(gdk_ldc32(GDK_QP_AT(qp, sq_num_shift8_be)), prod_index);
}

/** Stores a doorbell to the register, ordered after the earlier stores to WQEs and DBREC. */
template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_ring_db(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
				       GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_ring_db(qp, prod_index, code_opt);
}

/**
 * Rings by BlueFlame: copies the 64 bytes of a WQE to the UAR. On a GPU wqe_ptr must be in shared
 * memory. Does not write the DBREC.
 */
template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_ring_bf(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_wqe *wqe_ptr)
{
	gdk_extra_fence<sync_scope>();
	gdk_ring_bf(qp, wqe_ptr);
}

/**
 * As doca_gpu_dev_verbs_ring_bf(), by all lanes of a warp together; wqe_ptr may be in any memory.
 */
template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_ring_bf_warp(struct doca_gpu_dev_verbs_qp *qp,
					    struct doca_gpu_dev_verbs_wqe *wqe_ptr)
{
	gdk_extra_fence<sync_scope>();
	gdk_ring_bf_warp(qp, wqe_ptr);
}

/** Raises the counter that the CPU proxy polls to a producer index. */
template <GDK_TEMPLATE_MODE>
GDK_FN void doca_gpu_dev_verbs_ring_proxy(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_idx)
{
	gdk_ring_proxy(qp, prod_idx, resource_sharing_mode);
}

/** Begins a submit of sends. In gdaki-doca, slots above all reserved ones need neither reservation
 * nor mark, as NVIDIA's samples expect it: the caller has written them, and they are free. */
GDK_FN void gdk_submit_begin(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
			     struct gdk_how how)
{
#ifdef GDK_SDK_SHAPE
	if (!(how.opt & GDK_OPT_SKIP_DB))
		gdk_vouch(qp, prod_index, how.mode);
#else
	(void)qp;
	(void)prod_index;
	(void)how;
#endif
}

/** A submit of sends: gdk_submit_begin(), gdk_submit(). */
GDK_FN void gdk_submit_sends(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
			     struct gdk_how how)
{
	gdk_submit_begin(qp, prod_index, how);
	gdk_submit(qp, prod_index, how);
}

/** As doca_gpu_dev_verbs_submit() with handler GPU_SM_NO_DBR. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_no_dbr(struct doca_gpu_dev_verbs_qp *qp,
						uint64_t prod_index, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ) {
		(void)gdk_rq_submit(qp, prod_index,
				    gdk_how(resource_sharing_mode, GDK_DB, GDK_THREAD, code_opt));
		return;
	}
	gdk_submit_sends(qp, prod_index,
			 gdk_how(resource_sharing_mode, GDK_NO_DBR, GDK_THREAD, code_opt));
	gdk_store_pi<resource_sharing_mode>(qp, prod_index);
}

/** As doca_gpu_dev_verbs_submit() with handler GPU_SM_DB. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_submit_db(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					 GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ) {
		(void)gdk_rq_submit(qp, prod_index,
				    gdk_how(resource_sharing_mode, GDK_DB, GDK_THREAD, code_opt));
		return;
	}
	gdk_submit_sends(qp, prod_index,
			 gdk_how(resource_sharing_mode, GDK_DB, GDK_THREAD, code_opt));
	gdk_store_pi<resource_sharing_mode>(qp, prod_index);
}

/**
 * As doca_gpu_dev_verbs_submit() with handler GPU_SM_BF. smem_wqe is a copy of the last WQE; on a
 * GPU it must be in shared memory.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_bf(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					 struct doca_gpu_dev_verbs_wqe *smem_wqe, GDK_CODE_OPT)
{
	const struct gdk_how how = gdk_how(resource_sharing_mode, GDK_BF, GDK_THREAD, code_opt);

	gdk_extra_fence<sync_scope>();
	gdk_submit_begin(qp, prod_index, how);
	gdk_submit_bf(qp, prod_index, smem_wqe, how);
	gdk_store_pi<resource_sharing_mode>(qp, prod_index);
}

/**
 * As doca_gpu_dev_verbs_submit_bf(), by all lanes of a warp with the same arguments; wqe may be in
 * any memory.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_bf_warp(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					      struct doca_gpu_dev_verbs_wqe *wqe, GDK_CODE_OPT)
{
	const struct gdk_how how = gdk_how(resource_sharing_mode, GDK_BF, GDK_THREAD, code_opt);

	gdk_extra_fence<sync_scope>();
	if (gdk_lane() == 0)
		gdk_submit_begin(qp, prod_index, how);
	gdk_submit_bf_warp(qp, prod_index, wqe, how);
	if (gdk_lane() == 0)
		gdk_store_pi<resource_sharing_mode>(qp, prod_index);
}

/** As doca_gpu_dev_verbs_submit() with handler CPU_PROXY. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_proxy(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					    GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_sends(qp, prod_index,
			 gdk_how(resource_sharing_mode, GDK_PROXY, GDK_THREAD, code_opt));
	gdk_store_pi<resource_sharing_mode>(qp, prod_index);
}

/**
 * Submits all slots below a producer index: they are rung now, or when the last of them is
 * published. With SKIP_DB_RINGING the call does nothing.
 *
 * Receive queue: slots at and above the number of reserved slots need neither reservation nor mark;
 * the caller has written them, now or in an earlier lap of the ring. If prod_index is more than the
 * length of the ring above the last submit, the call does nothing.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_submit(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
				      GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ) {
		(void)gdk_rq_submit(qp, prod_index,
				    gdk_how(resource_sharing_mode, GDK_DB, GDK_THREAD, code_opt));
		return;
	}
	gdk_submit_sends(qp, prod_index,
			 gdk_how(resource_sharing_mode, nic_handler, GDK_THREAD, code_opt));
	gdk_store_pi<resource_sharing_mode>(qp, prod_index);
}

/* ---- WQEs ---- */

/** Writes a NOP WQE. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_nop(struct doca_gpu_dev_verbs_qp *qp,
					       struct doca_gpu_dev_verbs_wqe *wqe_ptr,
					       const uint16_t wqe_idx,
					       enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags)
{
	gdk_wqe_nop(qp, wqe_ptr, wqe_idx, (uint32_t)ctrl_flags);
}

/**
 * Writes the WQE of an RDMA write of bytes0 bytes. opcode is RDMA_WRITE, or RDMA_WRITE_IMM for a
 * write with immediate data; immediate is big-endian.
 */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_write(struct doca_gpu_dev_verbs_qp *qp,
						 struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						 const uint16_t wqe_idx, const uint32_t opcode,
						 enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						 const uint32_t immediate, const uint64_t raddr,
						 const uint32_t rkey, const uint64_t laddr0,
						 const uint32_t lkey0, const uint32_t bytes0)
{
	struct gdk_wqe_at at = gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags);

	at.imm_be = immediate;
	gdk_wqe_rdma(qp, at, gdk_mem(raddr, gdk_key_doca(rkey)),
		     gdk_mem(laddr0, gdk_key_doca(lkey0)), bytes0);
}

/** As above, with two data segments: the payload is in two pieces of local memory. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_write(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, const uint32_t opcode,
	enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags, const uint32_t immediate,
	const uint64_t raddr, const uint32_t rkey, const uint64_t laddr0, const uint32_t lkey0,
	const uint32_t bytes0, const uint64_t laddr1, const uint32_t lkey1, const uint32_t bytes1)
{
	struct gdk_wqe_at at = gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags);

	at.imm_be = immediate;
	gdk_wqe_rdma2(qp, at, gdk_mem(raddr, gdk_key_doca(rkey)),
		      gdk_mem(laddr0, gdk_key_doca(lkey0)), bytes0,
		      gdk_mem(laddr1, gdk_key_doca(lkey1)), bytes1);
}

/**
 * Writes the control and remote address segments of an RDMA write whose payload is in the WQE.
 * bytes is its length, at most 28. doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data() writes the
 * payload.
 */
GDK_FN void doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_header(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
	const uint64_t raddr, const uint32_t rkey, const uint32_t bytes)
{
	gdk_wqe_write_inl_header(qp,
				 gdk_wqe_at(wqe_ptr, wqe_idx,
					    DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					    (uint32_t)ctrl_flags),
				 gdk_mem(raddr, gdk_key_doca(rkey)), bytes);
}

/** Writes the length and the payload of an inline RDMA write, a value of at most 28 bytes. */
template <typename T>
GDK_FN void
doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data(struct doca_gpu_dev_verbs_qp *qp,
						   struct doca_gpu_dev_verbs_wqe *wqe_ptr, T data)
{
	static_assert(sizeof(T) <= DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE, "too long for a WQE");
	(void)qp;
	gdk_wqe_write_inl_data(wqe_ptr, &data, (uint32_t)sizeof(T));
}

/**
 * Writes the WQE of an RDMA write whose payload, at most 28 bytes at laddr, is copied into the
 * WQE.
 */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_write_inl(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
	const uint64_t raddr, const uint32_t rkey, const uint64_t laddr, const uint32_t bytes)
{
	gdk_wqe_write_inl(qp,
			  gdk_wqe_at(wqe_ptr, wqe_idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
				     (uint32_t)ctrl_flags),
			  gdk_mem(raddr, gdk_key_doca(rkey)), (const void *)(uintptr_t)laddr,
			  bytes);
}

/** Writes the WQE of an RDMA read of bytes0 bytes. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_read(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						const uint16_t wqe_idx,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint64_t raddr, const uint32_t rkey,
						const uint64_t laddr0, const uint32_t lkey0,
						const uint32_t bytes0)
{
	gdk_wqe_rdma(qp,
		     gdk_wqe_at(wqe_ptr, wqe_idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ,
				(uint32_t)ctrl_flags),
		     gdk_mem(raddr, gdk_key_doca(rkey)), gdk_mem(laddr0, gdk_key_doca(lkey0)),
		     bytes0);
}

/** As above, with two data segments: the data goes to two pieces of local memory. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_read(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
	const uint64_t raddr, const uint32_t rkey, const uint64_t laddr0, const uint32_t lkey0,
	const uint32_t bytes0, const uint64_t laddr1, const uint32_t lkey1, const uint32_t bytes1)
{
	gdk_wqe_rdma2(qp,
		      gdk_wqe_at(wqe_ptr, wqe_idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ,
				 (uint32_t)ctrl_flags),
		      gdk_mem(raddr, gdk_key_doca(rkey)), gdk_mem(laddr0, gdk_key_doca(lkey0)),
		      bytes0, gdk_mem(laddr1, gdk_key_doca(lkey1)), bytes1);
}

/**
 * Writes the WQE of an atomic on 8 bytes. opcode ATOMIC_FA adds compare_add; ATOMIC_CS stores
 * swap_add if the word is compare_add. The NIC writes the old value to laddr. Operands are in CPU
 * byte order.
 */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_atomic(struct doca_gpu_dev_verbs_qp *qp,
						  struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						  const uint16_t wqe_idx, const uint32_t opcode,
						  enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						  const uint64_t raddr, const uint32_t rkey,
						  const uint64_t laddr, const uint32_t lkey,
						  const uint32_t bytes, const uint64_t compare_add,
						  const uint64_t swap_add)
{
	gdk_wqe_atomic(qp, gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags),
		       gdk_mem(raddr, gdk_key_doca(rkey)), gdk_mem(laddr, gdk_key_doca(lkey)),
		       bytes, compare_add, swap_add);
}

/**
 * Writes the WQE of a masked atomic on 4 or 8 bytes; opcode is ATOMIC_MASKED_FA or
 * ATOMIC_MASKED_CS. A compare-and-swap on 8 bytes takes two slots; wqe_ptr1 is the second one, and
 * is not used otherwise. Operands are in CPU byte order.
 */
template <enum doca_gpu_dev_verbs_atomic_ext_bytes bytes = DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_4>
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_atomic_ext(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr0,
	struct doca_gpu_dev_verbs_wqe *wqe_ptr1, const uint16_t wqe_idx, const uint32_t opcode,
	enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags, const uint64_t raddr,
	const uint32_t rkey, const uint64_t laddr, const uint32_t lkey, const uint64_t add_data,
	const uint64_t field_boundary, const uint64_t swap_data, const uint64_t compare_data,
	const uint64_t swap_mask, const uint64_t compare_mask)
{
	const struct gdk_atomic_ext arg = { add_data,	  field_boundary, swap_data,
					    compare_data, swap_mask,	  compare_mask };

	gdk_wqe_atomic_ext(qp, gdk_wqe_at(wqe_ptr0, wqe_idx, opcode, (uint32_t)ctrl_flags),
			   wqe_ptr1, gdk_mem(raddr, gdk_key_doca(rkey)),
			   gdk_mem(laddr, gdk_key_doca(lkey)), (uint32_t)bytes, &arg);
}

/**
 * Writes a WAIT WQE: the NIC executes no later WQE of the QP until CQ qpn_cqn has the CQE with
 * index max_index. The QP must have been
 * created with core_direct_master.
 */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_wait(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						uint16_t wqe_idx,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint32_t max_index, const uint32_t qpn_cqn)
{
	gdk_wqe_wait(qp, wqe_ptr, wqe_idx, (uint32_t)ctrl_flags, max_index, qpn_cqn);
}

/**
 * Writes a DUMP WQE: the NIC reads local memory at laddr after its own earlier writes, which makes
 * these writes visible to the GPU. bytes is the length of the read.
 */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_dump(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						const uint16_t wqe_idx,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint64_t laddr, const uint32_t lkey,
						const uint32_t bytes)
{
	gdk_wqe_dump(qp, wqe_ptr, wqe_idx, (uint32_t)ctrl_flags, laddr, gdk_key_doca(lkey), bytes);
}

#endif
