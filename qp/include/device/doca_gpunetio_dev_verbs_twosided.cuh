/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Device API, two-sided operations: sends, and receives on an exported receive queue
 * (gdk_verbs_export_qp_rq()). The functions are templates that call plain functions in
 * gdk/send_dev.h and gdk/recv_dev.h.
 *
 * Each function that posts or waits returns 0 or the negative errno that ended the QP, or
 * -EOPNOTSUPP if the receive queue is not exported. resource_sharing_mode, nic_handler, exec_scope,
 * code_opt and out_ticket: see doca_gpunetio_dev_verbs_onesided.cuh. Receives do not use a handler:
 * their doorbell is a word in memory.
 *
 * reserve_wq_slots, mark_wqes_ready, submit, update_dbr, wait_until_slot_available, wait and the
 * functions that poll a CQ take the receive queue as template argument DOCA_GPUNETIO_VERBS_QP_RQ.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH
#define DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH

#include "device/doca_gpunetio_dev_verbs_onesided.cuh"
#include "device/gdk/recv_dev.h"
#include "device/gdk/send_dev.h"

/** Type of the segments of a receive WQE; gdaki-doca has that of libmlx5. */
#ifndef GDK_RECV_SEG
#define GDK_RECV_SEG doca_gpunetio_ib_mlx5_wqe_data_seg
#endif

/** The CQE at an address of any type that has the size of a CQE. */
template <typename cqe_t> GDK_FN struct doca_gpunetio_ib_mlx5_cqe64 *gdk_cqe64_of(cqe_t *cqe)
{
	static_assert(sizeof(cqe_t) == DOCA_GPUNETIO_VERBS_CQE_SIZE, "not a CQE");
	return (struct doca_gpunetio_ib_mlx5_cqe64 *)cqe;
}

/* ---- send ---- */

/** Sends size bytes, at most 1 GiB (otherwise -EINVAL). The remote side needs a receive. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_send(struct doca_gpu_dev_verbs_qp *qp,
				   struct doca_gpu_dev_verbs_addr laddr, size_t size,
				   doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_send(qp, laddr, size, out_ticket,
			gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/**
 * Writes a send WQE without data. opcode is SEND, or SEND_IMM with an immediate value, which is
 * big-endian.
 */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_send(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						const uint16_t wqe_idx, const uint32_t opcode,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint32_t immediate)
{
	struct gdk_wqe_at at = gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags);

	at.imm_be = immediate;
	gdk_seg_ctrl(qp, at, 1);
}

/** As above, with bytes0 bytes at laddr0. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_send(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						const uint16_t wqe_idx, const uint32_t opcode,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint32_t immediate, const uint64_t laddr0,
						const uint32_t lkey0, const uint32_t bytes0)
{
	struct gdk_wqe_at at = gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags);
	const struct gdk_mem local = gdk_mem(laddr0, gdk_key_doca(lkey0));

	at.imm_be = immediate;
	gdk_wqe_send(qp, at, &local, &bytes0, 1);
}

/** As above, with data in two pieces of memory. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_send(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						const uint16_t wqe_idx, const uint32_t opcode,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint32_t immediate, const uint64_t laddr0,
						const uint32_t lkey0, const uint32_t bytes0,
						const uint64_t laddr1, const uint32_t lkey1,
						const uint32_t bytes1)
{
	struct gdk_wqe_at at = gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags);
	const struct gdk_mem local[2] = { gdk_mem(laddr0, gdk_key_doca(lkey0)),
					  gdk_mem(laddr1, gdk_key_doca(lkey1)) };
	const uint32_t bytes[2] = { bytes0, bytes1 };

	at.imm_be = immediate;
	gdk_wqe_send(qp, at, local, bytes, 2);
}

/** As above, with data in three pieces of memory. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_send(struct doca_gpu_dev_verbs_qp *qp,
						struct doca_gpu_dev_verbs_wqe *wqe_ptr,
						const uint16_t wqe_idx, const uint32_t opcode,
						enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
						const uint32_t immediate, const uint64_t laddr0,
						const uint32_t lkey0, const uint32_t bytes0,
						const uint64_t laddr1, const uint32_t lkey1,
						const uint32_t bytes1, const uint64_t laddr2,
						const uint32_t lkey2, const uint32_t bytes2)
{
	struct gdk_wqe_at at = gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags);
	const struct gdk_mem local[3] = { gdk_mem(laddr0, gdk_key_doca(lkey0)),
					  gdk_mem(laddr1, gdk_key_doca(lkey1)),
					  gdk_mem(laddr2, gdk_key_doca(lkey2)) };
	const uint32_t bytes[3] = { bytes0, bytes1, bytes2 };

	at.imm_be = immediate;
	gdk_wqe_send(qp, at, local, bytes, 3);
}

/** Writes a send WQE that carries its data: at most 44 bytes at laddr are copied into the WQE. */
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_send_inl(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe_ptr,
	const uint16_t wqe_idx, const uint32_t opcode,
	enum doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags, const uint32_t immediate,
	const uint64_t laddr, const uint32_t bytes)
{
	struct gdk_wqe_at at = gdk_wqe_at(wqe_ptr, wqe_idx, opcode, (uint32_t)ctrl_flags);

	at.imm_be = immediate;
	gdk_wqe_send_inl(qp, at, (const void *)(uintptr_t)laddr, bytes);
}

/* ---- receive ---- */

/** Returns the CQ of a QP's receive queue. */
GDK_FN struct doca_gpu_dev_verbs_cq *
doca_gpu_dev_verbs_qp_get_cq_rq(struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_qp_cq_rq(qp);
}

/** Returns the address of the receive WQE with index wqe_idx modulo the number of receive WQEs. */
GDK_FN struct GDK_RECV_SEG *doca_gpu_dev_verbs_get_rwqe_ptr(struct doca_gpu_dev_verbs_qp *qp,
							    uint64_t wqe_idx)
{
	void *seg = gdk_get_rwqe_ptr(qp, wqe_idx);

	return (struct GDK_RECV_SEG *)seg;
}

/** Writes a receive WQE with one buffer of bytes bytes. 0 bytes: without a buffer. */
template <typename seg_t>
GDK_FN void doca_gpu_dev_verbs_wqe_prepare_recv(struct doca_gpu_dev_verbs_qp *qp, seg_t *wqe_ptr,
						const uint64_t laddr, const uint32_t lkey,
						const uint32_t bytes)
{
	static_assert(sizeof(seg_t) == 16, "not a data segment");
	gdk_wqe_recv(qp, (struct doca_gpunetio_ib_mlx5_wqe_data_seg *)wqe_ptr, laddr,
		     gdk_key_doca(lkey), bytes);
}

/**
 * Posts a receive with a buffer of size bytes, at most 1 GiB (otherwise -EINVAL); 0: without a
 * buffer. out_ticket is for doca_gpu_dev_verbs_recv_wait(); it is also the index of the CQE. In
 * sharing mode EXCLUSIVE the caller has written all receives that it reserved before.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_recv(struct doca_gpu_dev_verbs_qp *qp,
				   struct doca_gpu_dev_verbs_addr laddr, size_t size,
				   doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_recv(qp, laddr, size, out_ticket,
			gdk_how(resource_sharing_mode, GDK_DB, exec_scope, code_opt));
}

/**
 * Waits until the receive of a ticket is complete and its data is visible, and stores the address
 * of its CQE in *out_cqe. With mcst_mode ENABLED the function posts a DUMP WQE to the send queue,
 * which reads one byte of registered memory at daddr.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST, typename cqe_t>
GDK_FN int doca_gpu_dev_verbs_recv_wait(struct doca_gpu_dev_verbs_qp *qp,
					struct doca_gpu_dev_verbs_addr daddr,
					doca_gpu_dev_verbs_ticket_t ticket, cqe_t **out_cqe)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	const int err = gdk_recv_wait(qp, ticket, daddr, mcst_mode, resource_sharing_mode, &cqe);

	static_assert(sizeof(cqe_t) == DOCA_GPUNETIO_VERBS_CQE_SIZE, "not a CQE");
	*out_cqe = (cqe_t *)cqe;
	return err;
}

/** As above, with the address of the ticket. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST, typename cqe_t>
GDK_FN int doca_gpu_dev_verbs_recv_wait(struct doca_gpu_dev_verbs_qp *qp,
					struct doca_gpu_dev_verbs_addr daddr,
					doca_gpu_dev_verbs_ticket_t *ticket, cqe_t **out_cqe)
{
	return doca_gpu_dev_verbs_recv_wait<resource_sharing_mode, nic_handler, mcst_mode>(
		qp, daddr, *ticket, out_cqe);
}

/** As above, for all receives that were reserved before the call. *out_cqe is the CQE of the last
 * one, or NULL if there was none. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST, typename cqe_t>
GDK_FN int doca_gpu_dev_verbs_recv_wait(struct doca_gpu_dev_verbs_qp *qp,
					struct doca_gpu_dev_verbs_addr daddr, cqe_t **out_cqe)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	const int err = gdk_recv_wait_all(qp, daddr, mcst_mode, resource_sharing_mode, &cqe);

	static_assert(sizeof(cqe_t) == DOCA_GPUNETIO_VERBS_CQE_SIZE, "not a CQE");
	*out_cqe = (cqe_t *)cqe;
	return err;
}

/* ---- CQEs ---- */

/** As doca_gpu_dev_verbs_poll_one_cq_at(); also stores the address of the CQE in *out_cqe. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE, typename cqe_t>
GDK_FN int doca_gpu_dev_verbs_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index,
					     cqe_t **out_cqe)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	const int err = gdk_poll_one_cqe_at(cq, cons_index, resource_sharing_mode, &cqe);

	static_assert(sizeof(cqe_t) == DOCA_GPUNETIO_VERBS_CQE_SIZE, "not a CQE");
	*out_cqe = (cqe_t *)cqe;
	return err;
}

/** As doca_gpu_dev_verbs_poll_cq_at(); also stores the address of the CQE in *out_cqe. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_QP_TYPE, typename cqe_t>
GDK_FN int doca_gpu_dev_verbs_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index,
					 cqe_t **out_cqe)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	const int err = gdk_poll_cqe_at(cq, cons_index, resource_sharing_mode, &cqe);

	static_assert(sizeof(cqe_t) == DOCA_GPUNETIO_VERBS_CQE_SIZE, "not a CQE");
	*out_cqe = (cqe_t *)cqe;
	return err;
}

/** Returns 1 if the data of the message is in the CQE, otherwise 0. */
template <typename cqe_t> GDK_FN int doca_gpu_dev_verbs_cqe_is_inline(cqe_t *cqe)
{
	return gdk_cqe_is_inline(gdk_cqe64_of(cqe));
}

/** Returns the number of bytes of the message. */
template <typename cqe_t> GDK_FN uint32_t doca_gpu_dev_verbs_cqe_get_bytes(cqe_t *cqe)
{
	return gdk_cqe_bytes(gdk_cqe64_of(cqe));
}

/** Returns the address of the data, if it is in the CQE. */
template <typename cqe_t> GDK_FN uint8_t *doca_gpu_dev_verbs_cqe_get_inl_data(cqe_t *cqe)
{
	return gdk_cqe_inl_data(gdk_cqe64_of(cqe));
}

#endif
