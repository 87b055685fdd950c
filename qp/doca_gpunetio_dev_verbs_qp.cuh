/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA GPUNetIO device API, send queues: DOCA's template spellings of
 * gdk/qp_dev.h, gdk/wqe.h and the doorbells. Fence scopes given by the caller
 * only add to the scope that the QP's memory needs.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_QP_CUH
#define DOCA_GPUNETIO_DEV_VERBS_QP_CUH

#include "../device/doca_gpunetio_dev_verbs_cq.cuh"
#include "../device/gdk/onesided_dev.h"

#define GDK_TEMPLATE_MODE \
	enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode = \
		DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define GDK_TEMPLATE_SCOPE \
	enum doca_gpu_dev_verbs_sync_scope sync_scope = DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU
#define GDK_TEMPLATE_QP_TYPE enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ
#define GDK_TEMPLATE_HANDLER \
	enum doca_gpu_dev_verbs_nic_handler nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define GDK_CODE_OPT uint32_t code_opt = DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT

/* What the caller asks for beyond the QP's own scope. */
template <enum doca_gpu_dev_verbs_sync_scope sync_scope> GDK_FN void gdk_extra_fence()
{
	if (sync_scope == DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS)
		gdk_fence_rel(GDK_SCOPE_SYS);
}

/* ---- slots ---- */

GDK_FN void doca_gpu_dev_verbs_store_wqe_seg(uint64_t *ptr, uint64_t *val)
{
	gdk_st_wqe16(ptr, val[0], val[1]);
}

GDK_FN struct doca_gpu_dev_verbs_wqe *
doca_gpu_dev_verbs_get_wqe_ptr(struct doca_gpu_dev_verbs_qp *qp, uint16_t wqe_idx)
{
	return gdk_get_wqe_ptr(qp, wqe_idx);
}

/* Returns the first index also when the QP has ended; see gdk_qp_status. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE>
GDK_FN uint64_t doca_gpu_dev_verbs_reserve_wq_slots(struct doca_gpu_dev_verbs_qp *qp,
						    uint32_t count, GDK_CODE_OPT)
{
	uint64_t idx;

	(void)gdk_reserve(qp, count, resource_sharing_mode, code_opt, &idx);
	return idx;
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE,
	  enum doca_gpu_dev_verbs_qp_ready_mode ready_mode =
		  DOCA_GPUNETIO_VERBS_READY_MODE_ATOMIC_CAS>
GDK_FN void doca_gpu_dev_verbs_mark_wqes_ready(struct doca_gpu_dev_verbs_qp *qp,
					       uint64_t from_wqe_idx, uint64_t to_wqe_idx)
{
	gdk_mark_ready(qp, from_wqe_idx, to_wqe_idx, resource_sharing_mode,
		       DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO);
}

/* For an index of the caller's own: its holder moves it on when it has come to
 * from_wqe_idx. Bounded: -ETIMEDOUT after a minute, and the index stays. */
template <GDK_TEMPLATE_MODE,
	  enum doca_gpu_dev_verbs_qp_ready_mode ready_mode = DOCA_GPUNETIO_VERBS_READY_MODE_DEFAULT>
GDK_FN int doca_gpu_dev_common_mark_wqes_ready(uint64_t &ready_index, uint64_t from_wqe_idx,
					       uint64_t to_wqe_idx)
{
	return gdk_index_advance(&ready_index, from_wqe_idx, to_wqe_idx + 1,
				 gdk_mode_scope(resource_sharing_mode));
}

/* For a slot that was reserved without the check. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE>
GDK_FN int doca_gpu_dev_verbs_wait_until_slot_available(struct doca_gpu_dev_verbs_qp *qp,
							uint64_t wqe_idx)
{
	return gdk_wait_slot(qp, wqe_idx, resource_sharing_mode);
}

/* ---- doorbells ---- */

GDK_FN __be32 doca_gpu_dev_verbs_prepare_dbr(uint32_t prod_index)
{
	return gdk_dbrec_value(prod_index);
}

/* By address, for users that keep queue pairs in a structure of their own: no
 * order but what the scope of the fence before a register store gives. */
GDK_FN void doca_gpu_dev_common_update_dbr(uint32_t *dbrec, uint32_t prod_index)
{
	gdk_st32(dbrec, gdk_dbrec_value(prod_index), GDK_SCOPE_SYS);
}

GDK_FN __be64 doca_gpu_dev_common_prepare_db(uint32_t qpn_ds, uint64_t prod_index)
{
	return gdk_db_value(qpn_ds, prod_index);
}

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

template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_common_ring_db(uint64_t *db_ptr, uint32_t qpn_ds, uint64_t prod_index,
					GDK_CODE_OPT)
{
	doca_gpu_dev_common_write_db<sync_scope>(
		db_ptr, doca_gpu_dev_common_prepare_db(qpn_ds, prod_index), code_opt);
}

template <GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_update_dbr(struct doca_gpu_dev_verbs_qp *qp, uint32_t prod_index,
					  GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_update_dbr(qp, prod_index, code_opt);
}

template <GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_priv_gpu_dev_verbs_update_dbr(struct doca_gpu_dev_verbs_qp *qp,
					       uint32_t prod_index)
{
	gdk_update_dbr(qp, prod_index, 0);
}

GDK_FN __be64 doca_gpu_dev_verbs_prepare_db(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index)
{
	return gdk_db_value(gdk_ldc32(GDK_QP_AT(qp, sq_num_shift8_be)), prod_index);
}

template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_ring_db(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
				       GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_ring_db(qp, prod_index, code_opt);
}

/* wqe_ptr in shared memory on a GPU: one copy of 64 bytes. */
template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_ring_bf(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_wqe *wqe_ptr)
{
	gdk_extra_fence<sync_scope>();
	gdk_ring_bf(qp, wqe_ptr);
}

/* All lanes of a warp call. */
template <GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_ring_bf_warp(struct doca_gpu_dev_verbs_qp *qp,
					    struct doca_gpu_dev_verbs_wqe *wqe_ptr)
{
	gdk_extra_fence<sync_scope>();
	gdk_ring_bf_warp(qp, wqe_ptr);
}

template <GDK_TEMPLATE_MODE>
GDK_FN void doca_gpu_dev_verbs_ring_proxy(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_idx)
{
	gdk_ring_proxy(qp, prod_idx, resource_sharing_mode);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_no_dbr(struct doca_gpu_dev_verbs_qp *qp,
						uint64_t prod_index, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit(qp, prod_index, resource_sharing_mode,
		   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_submit_db(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					 GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit(qp, prod_index, resource_sharing_mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB,
		   code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_bf(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					 struct doca_gpu_dev_verbs_wqe *smem_wqe, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_bf(qp, prod_index, smem_wqe, resource_sharing_mode, code_opt);
}

/* All lanes of a warp call, with the same arguments. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_bf_warp(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					      struct doca_gpu_dev_verbs_wqe *wqe, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_bf_warp(qp, prod_index, wqe, resource_sharing_mode, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_proxy(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					    GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit(qp, prod_index, resource_sharing_mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
		   code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_QP_TYPE>
GDK_FN void doca_gpu_dev_verbs_submit(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
				      GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit(qp, prod_index, resource_sharing_mode, nic_handler, code_opt);
}

/* ---- WQEs ---- */

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_nop(struct doca_gpu_dev_verbs_qp *qp,
					       struct doca_gpu_dev_verbs_wqe *wqe_ptr,
					       const uint16_t wqe_idx,
					       enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags)
{
	gdk_wqe_nop(qp, wqe_ptr, wqe_idx, (uint32_t)ctrl_flags);
}

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_write(struct doca_gpu_dev_verbs_qp *qp,
						 struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						 const uint16_t wqe_idx, const uint32_t opcode,
						 enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						 const uint32_t immediate, const uint64_t raddr,
						 const uint32_t rkey, const uint64_t laddr0,
						 const uint32_t lkey0, const uint32_t bytes0)
{
	gdk_wqe_rdma(qp, wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags, immediate, raddr,
		     gdk_key_doca(rkey), laddr0, gdk_key_doca(lkey0), bytes0);
}

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_write(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, const uint32_t opcode,
	enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags, const uint32_t immediate,
	const uint64_t raddr, const uint32_t rkey, const uint64_t laddr0, const uint32_t lkey0,
	const uint32_t bytes0, const uint64_t laddr1, const uint32_t lkey1, const uint32_t bytes1)
{
	gdk_wqe_rdma2(qp, wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags, immediate, raddr,
		      gdk_key_doca(rkey), laddr0, gdk_key_doca(lkey0), bytes0, laddr1,
		      gdk_key_doca(lkey1), bytes1);
}

GDK_FN void doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_header(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
	const uint64_t raddr, const uint32_t rkey, const uint32_t bytes)
{
	gdk_wqe_write_inl_header(qp, wqe_ptr, wqe_idx, (uint32_t)ctrl_flags, raddr,
				 gdk_key_doca(rkey), bytes);
}

template <typename T>
GDK_FN void
doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data(struct doca_gpu_dev_verbs_qp *qp,
						   struct doca_gpu_dev_verbs_wqe *wqe_ptr, T data)
{
	static_assert(sizeof(T) <= DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE, "too long for a WQE");
	(void)qp;
	gdk_wqe_write_inl_data(wqe_ptr, &data, (uint32_t)sizeof(T));
}

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_write_inl(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
	const uint64_t raddr, const uint32_t rkey, const uint64_t laddr, const uint32_t bytes)
{
	gdk_wqe_write_inl(qp, wqe_ptr, wqe_idx, (uint32_t)ctrl_flags, raddr, gdk_key_doca(rkey),
			  (const void *)(uintptr_t)laddr, bytes);
}

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_read(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						const uint16_t wqe_idx,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint64_t raddr, const uint32_t rkey,
						const uint64_t laddr0, const uint32_t lkey0,
						const uint32_t bytes0)
{
	gdk_wqe_rdma(qp, wqe_ptr, wqe_idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ,
		     (uint32_t)ctrl_flags, 0, raddr, gdk_key_doca(rkey), laddr0,
		     gdk_key_doca(lkey0), bytes0);
}

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_read(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
	const uint64_t raddr, const uint32_t rkey, const uint64_t laddr0, const uint32_t lkey0,
	const uint32_t bytes0, const uint64_t laddr1, const uint32_t lkey1, const uint32_t bytes1)
{
	gdk_wqe_rdma2(qp, wqe_ptr, wqe_idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ,
		      (uint32_t)ctrl_flags, 0, raddr, gdk_key_doca(rkey), laddr0,
		      gdk_key_doca(lkey0), bytes0, laddr1, gdk_key_doca(lkey1), bytes1);
}

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_atomic(struct doca_gpu_dev_verbs_qp *qp,
						  struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						  const uint16_t wqe_idx, const uint32_t opcode,
						  enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						  const uint64_t raddr, const uint32_t rkey,
						  const uint64_t laddr, const uint32_t lkey,
						  const uint32_t bytes, const uint64_t compare_add,
						  const uint64_t swap_add)
{
	gdk_wqe_atomic(qp, wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags, raddr,
		       gdk_key_doca(rkey), laddr, gdk_key_doca(lkey), bytes, compare_add, swap_add);
}

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

	gdk_wqe_atomic_ext(qp, wqe_ptr0, wqe_ptr1, wqe_idx, opcode, (uint32_t)ctrl_flags, raddr,
			   gdk_key_doca(rkey), laddr, gdk_key_doca(lkey), (uint32_t)bytes, &arg);
}

GDK_FN void doca_gpu_dev_verbs_wqe_prepare_wait(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						uint16_t wqe_idx,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint32_t max_index, const uint32_t qpn_cqn)
{
	gdk_wqe_wait(qp, wqe_ptr, wqe_idx, (uint32_t)ctrl_flags, max_index, qpn_cqn);
}

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
