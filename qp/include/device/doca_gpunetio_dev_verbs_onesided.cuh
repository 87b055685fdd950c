/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Device API, one-sided operations. The functions have the names of DOCA GPUNetIO: templates that
 * call plain functions in gdk/onesided_dev.h.
 *
 * Each operation (put, p, signal, get) reserves slots, writes WQEs, publishes and submits them. It
 * waits for free slots if the ring is full. It does not wait for completion, except a get with
 * blocking_mode. Each function returns 0 or the negative errno that ended the QP, also where the
 * function of DOCA returns void. After an error it posts no more WQEs.
 *
 * - resource_sharing_mode, nic_handler, code_opt: see doca_gpunetio_dev_verbs_qp.cuh.
 * - exec_scope: the threads that execute the call together. Each thread of a warp or block passes
 *   arguments of its own and gets its own operation; the group makes one reservation and rings one
 *   doorbell, unless a thread needs several WQEs for its data or the ring is too small. DOCA has
 *   some functions at thread scope only. In this library they have an exec_scope, which is THREAD
 *   by default.
 * - raddr, laddr: remote and local address, each with its key. size: number of bytes; more than
 *   1 GiB takes several WQEs.
 * - sig_op: whether the signal adds to the word or sets it (GDK_SIGNAL_OP_SET). sig_raddr: the
 *   remote word, 8 bytes, aligned to 8. sig_laddr: local memory to which the NIC writes the old
 *   value of the word; not used if sig_op is set.
 * - out_ticket: gets the ticket of the operation, also after an error.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH
#define DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH

#include "device/doca_gpunetio_dev_verbs_qp.cuh"
#include "device/gdk/onesided_dev.h"

/** Template parameter: scope of the operation, THREAD by default. */
#define GDK_TEMPLATE_EXEC \
	enum doca_gpu_dev_verbs_exec_scope exec_scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
/** Template parameter: whether a DUMP WQE follows a get. */
#define GDK_TEMPLATE_MCST \
	enum doca_gpu_dev_verbs_mcst_mode mcst_mode = DOCA_GPUNETIO_VERBS_MCST_DISABLED
/** Template parameter: whether a get waits for its data. */
#define GDK_TEMPLATE_BLOCKING \
	enum doca_gpu_dev_verbs_blocking_mode blocking_mode = \
		DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED
/** Template parameter: operation of the signal. */
#define GDK_TEMPLATE_SIGNAL enum doca_gpu_dev_verbs_signal_op sig_op
/** Scope: one thread. */
#define GDK_THREAD DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
/** Scope: a warp. */
#define GDK_WARP_SCOPE DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP

/* ---- put ---- */

/** As doca_gpu_dev_verbs_put() at thread scope. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_thread(struct doca_gpu_dev_verbs_qp *qp,
					 struct doca_gpu_dev_verbs_addr raddr,
					 struct doca_gpu_dev_verbs_addr laddr, size_t size,
					 doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put(qp, raddr, laddr, size, out_ticket,
		       gdk_how(resource_sharing_mode, nic_handler, GDK_THREAD, code_opt));
}

/** As doca_gpu_dev_verbs_put() at warp scope. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_warp(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr,
				       struct doca_gpu_dev_verbs_addr laddr, size_t size,
				       doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put(qp, raddr, laddr, size, out_ticket,
		       gdk_how(resource_sharing_mode, nic_handler, GDK_WARP_SCOPE, code_opt));
}

/**
 * Writes local memory to remote memory (RDMA write). The local memory must not change before the
 * operation is complete.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put(struct doca_gpu_dev_verbs_qp *qp,
				  struct doca_gpu_dev_verbs_addr raddr,
				  struct doca_gpu_dev_verbs_addr laddr, size_t size,
				  doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put(qp, raddr, laddr, size, out_ticket,
		       gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** As above, without a ticket. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put(struct doca_gpu_dev_verbs_qp *qp,
				  struct doca_gpu_dev_verbs_addr raddr,
				  struct doca_gpu_dev_verbs_addr laddr, size_t size, GDK_CODE_OPT)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	return doca_gpu_dev_verbs_put<resource_sharing_mode, nic_handler, exec_scope>(
		qp, raddr, laddr, size, &ticket, code_opt);
}

/* ---- p: a value of any size, carried in WQEs ---- */

/** As doca_gpu_dev_verbs_p() at thread scope. */
template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_p_thread(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr, T value,
				       doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p(qp, raddr, &value, sizeof(T), out_ticket,
		     gdk_how(resource_sharing_mode, nic_handler, GDK_THREAD, code_opt));
}

/** As doca_gpu_dev_verbs_p() at warp scope. */
template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_p_warp(struct doca_gpu_dev_verbs_qp *qp,
				     struct doca_gpu_dev_verbs_addr raddr, T value,
				     doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p(qp, raddr, &value, sizeof(T), out_ticket,
		     gdk_how(resource_sharing_mode, nic_handler, GDK_WARP_SCOPE, code_opt));
}

/**
 * Writes a value of any size to remote memory. The WQEs carry a copy of the value, at most 28 bytes
 * each, so it needs no registered memory.
 */
template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p(struct doca_gpu_dev_verbs_qp *qp,
				struct doca_gpu_dev_verbs_addr raddr, T value,
				doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p(qp, raddr, &value, sizeof(T), out_ticket,
		     gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** As above, without a ticket. */
template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p(struct doca_gpu_dev_verbs_qp *qp,
				struct doca_gpu_dev_verbs_addr raddr, T value, GDK_CODE_OPT)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	return doca_gpu_dev_verbs_p<T, resource_sharing_mode, nic_handler, exec_scope>(
		qp, raddr, value, &ticket, code_opt);
}

/* ---- put and signal ---- */

/** As doca_gpu_dev_verbs_put_signal() at thread scope. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_signal_thread(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
	struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put_signal(qp, raddr, laddr, size,
			      gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val), out_ticket,
			      gdk_how(resource_sharing_mode, nic_handler, GDK_THREAD, code_opt));
}

/** As doca_gpu_dev_verbs_put_signal() at warp scope. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_signal_warp(struct doca_gpu_dev_verbs_qp *qp,
					      struct doca_gpu_dev_verbs_addr raddr,
					      struct doca_gpu_dev_verbs_addr laddr, size_t size,
					      struct doca_gpu_dev_verbs_addr sig_raddr,
					      struct doca_gpu_dev_verbs_addr sig_laddr,
					      uint64_t sig_val,
					      doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put_signal(
		qp, raddr, laddr, size, gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val),
		out_ticket, gdk_how(resource_sharing_mode, nic_handler, GDK_WARP_SCOPE, code_opt));
}

/**
 * A put, then a signal to the same peer: a thread of the peer that sees the signal sees the data.
 */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put_signal(struct doca_gpu_dev_verbs_qp *qp,
					 struct doca_gpu_dev_verbs_addr raddr,
					 struct doca_gpu_dev_verbs_addr laddr, size_t size,
					 struct doca_gpu_dev_verbs_addr sig_raddr,
					 struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
					 doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put_signal(qp, raddr, laddr, size,
			      gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val), out_ticket,
			      gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** As above, without a ticket. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put_signal(struct doca_gpu_dev_verbs_qp *qp,
					 struct doca_gpu_dev_verbs_addr raddr,
					 struct doca_gpu_dev_verbs_addr laddr, size_t size,
					 struct doca_gpu_dev_verbs_addr sig_raddr,
					 struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
					 GDK_CODE_OPT)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	return doca_gpu_dev_verbs_put_signal<sig_op, resource_sharing_mode, nic_handler,
					     exec_scope>(qp, raddr, laddr, size, sig_raddr,
							 sig_laddr, sig_val, &ticket, code_opt);
}

/* ---- p and signal ---- */

/** As doca_gpu_dev_verbs_put_signal(), for a value that is carried in WQEs. */
template <typename T, GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER,
	  GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p_signal(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr, T value,
				       struct doca_gpu_dev_verbs_addr sig_raddr,
				       struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
				       doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p_signal(qp, raddr, &value, sizeof(T),
			    gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val), out_ticket,
			    gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** As above, without a ticket. */
template <typename T, GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER,
	  GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p_signal(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr, T value,
				       struct doca_gpu_dev_verbs_addr sig_raddr,
				       struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
				       GDK_CODE_OPT)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	return doca_gpu_dev_verbs_p_signal<T, sig_op, resource_sharing_mode, nic_handler,
					   exec_scope>(qp, raddr, value, sig_raddr, sig_laddr,
						       sig_val, &ticket, code_opt);
}

/* ---- signal ---- */

/** As doca_gpu_dev_verbs_signal() at thread scope. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_signal_thread(struct doca_gpu_dev_verbs_qp *qp,
					    struct doca_gpu_dev_verbs_addr sig_raddr,
					    struct doca_gpu_dev_verbs_addr sig_laddr,
					    uint64_t sig_val,
					    doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_signal(qp, gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val), out_ticket,
			  gdk_how(resource_sharing_mode, nic_handler, GDK_THREAD, code_opt));
}

/** As doca_gpu_dev_verbs_signal() at warp scope. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_signal_warp(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr sig_raddr,
					  struct doca_gpu_dev_verbs_addr sig_laddr,
					  uint64_t sig_val, doca_gpu_dev_verbs_ticket_t *out_ticket,
					  GDK_CODE_OPT)
{
	return gdk_signal(qp, gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val), out_ticket,
			  gdk_how(resource_sharing_mode, nic_handler, GDK_WARP_SCOPE, code_opt));
}

/** Adds to, or sets, a word of 8 bytes in remote memory. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_signal(struct doca_gpu_dev_verbs_qp *qp,
				     struct doca_gpu_dev_verbs_addr sig_raddr,
				     struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
				     doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_signal(qp, gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val), out_ticket,
			  gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** As above, without a ticket. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_signal(struct doca_gpu_dev_verbs_qp *qp,
				     struct doca_gpu_dev_verbs_addr sig_raddr,
				     struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
				     GDK_CODE_OPT)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	return doca_gpu_dev_verbs_signal<sig_op, resource_sharing_mode, nic_handler, exec_scope>(
		qp, sig_raddr, sig_laddr, sig_val, &ticket, code_opt);
}

/* ---- get ---- */

/**
 * Reads remote memory (RDMA read). With mcst_mode enabled a DUMP WQE follows, which reads one byte
 * at daddr (see doca_gpu_dev_verbs_mcst()), and the ticket is that of the DUMP; otherwise daddr is
 * not used. With blocking_mode enabled the call waits until the WQE of the ticket is complete.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC, GDK_TEMPLATE_MCST,
	  GDK_TEMPLATE_BLOCKING>
GDK_FN int doca_gpu_dev_verbs_get(struct doca_gpu_dev_verbs_qp *qp,
				  struct doca_gpu_dev_verbs_addr raddr,
				  struct doca_gpu_dev_verbs_addr laddr, size_t size,
				  struct doca_gpu_dev_verbs_addr daddr,
				  doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	int err = mcst_mode == DOCA_GPUNETIO_VERBS_MCST_ENABLED
			  ? gdk_get_dump(qp, raddr, laddr, size, daddr, out_ticket,
					 gdk_how(resource_sharing_mode, nic_handler, exec_scope,
						 code_opt))
			  : gdk_get(qp, raddr, laddr, size, out_ticket,
				    gdk_how(resource_sharing_mode, nic_handler, exec_scope,
					    code_opt));

	if (!err && blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED)
		err = gdk_wait(qp, *out_ticket, resource_sharing_mode);
	return err;
}

/** As doca_gpu_dev_verbs_get() at thread scope. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST, GDK_TEMPLATE_BLOCKING>
GDK_FN int doca_gpu_dev_verbs_get_thread(struct doca_gpu_dev_verbs_qp *qp,
					 struct doca_gpu_dev_verbs_addr raddr,
					 struct doca_gpu_dev_verbs_addr laddr, size_t size,
					 struct doca_gpu_dev_verbs_addr daddr,
					 doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return doca_gpu_dev_verbs_get<resource_sharing_mode, nic_handler, GDK_THREAD, mcst_mode,
				      blocking_mode>(qp, raddr, laddr, size, daddr, out_ticket,
						     code_opt);
}

/** As doca_gpu_dev_verbs_get() at warp scope. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST, GDK_TEMPLATE_BLOCKING>
GDK_FN int doca_gpu_dev_verbs_get_warp(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr,
				       struct doca_gpu_dev_verbs_addr laddr, size_t size,
				       struct doca_gpu_dev_verbs_addr daddr,
				       doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return doca_gpu_dev_verbs_get<resource_sharing_mode, nic_handler, GDK_WARP_SCOPE, mcst_mode,
				      blocking_mode>(qp, raddr, laddr, size, daddr, out_ticket,
						     code_opt);
}

/* ---- wait ---- */

/**
 * Waits until the operation of a ticket and all earlier operations on the QP are complete. Returns
 * 0 or the negative errno that ended the QP.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_QP_TYPE>
GDK_FN int doca_gpu_dev_verbs_wait(struct doca_gpu_dev_verbs_qp *qp,
				   doca_gpu_dev_verbs_ticket_t ticket)
{
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ)
		return gdk_rq_wait(qp, ticket, resource_sharing_mode);
	return gdk_wait(qp, ticket, resource_sharing_mode);
}

/** As above, with the address of the ticket. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_QP_TYPE, typename ticket_t>
GDK_FN int doca_gpu_dev_verbs_wait(struct doca_gpu_dev_verbs_qp *qp, ticket_t *ticket)
{
	return doca_gpu_dev_verbs_wait<resource_sharing_mode, nic_handler, qp_type>(
		qp, (doca_gpu_dev_verbs_ticket_t)*ticket);
}

/**
 * Waits until all WQEs whose slots were reserved before the call are complete. The last of them
 * must generate a CQE; all WQEs of the functions in this header do.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_QP_TYPE>
GDK_FN int doca_gpu_dev_verbs_wait(struct doca_gpu_dev_verbs_qp *qp)
{
	if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ)
		return gdk_rq_flush(qp, resource_sharing_mode);
	return gdk_flush(qp, resource_sharing_mode);
}

/**
 * Posts only the DUMP WQE of a get. When this WQE is complete, the GPU sees the data of all earlier
 * gets of this QP. daddr is one byte of registered local memory.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_mcst(struct doca_gpu_dev_verbs_qp *qp,
				   struct doca_gpu_dev_verbs_addr daddr,
				   doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_dump(qp, daddr, out_ticket,
			gdk_how(resource_sharing_mode, nic_handler, GDK_THREAD, code_opt));
}

/**
 * Waits until the operation of a ticket is complete. With mcst_mode enabled it also posts a DUMP at
 * daddr and waits for this DUMP: the GPU then sees the data of the earlier gets.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST>
GDK_FN int doca_gpu_dev_verbs_get_wait(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr daddr,
				       doca_gpu_dev_verbs_ticket_t ticket)
{
	return mcst_mode == DOCA_GPUNETIO_VERBS_MCST_ENABLED
		       ? gdk_dump_wait(qp, daddr, ticket, resource_sharing_mode, nic_handler)
		       : gdk_wait(qp, ticket, resource_sharing_mode);
}

/** As doca_gpu_dev_verbs_get_wait(). For source compatibility. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST>
GDK_FN int doca_priv_gpu_dev_verbs_get_wait(struct doca_gpu_dev_verbs_qp *qp,
					    struct doca_gpu_dev_verbs_addr daddr,
					    doca_gpu_dev_verbs_ticket_t ticket)
{
	return doca_gpu_dev_verbs_get_wait<resource_sharing_mode, nic_handler, mcst_mode>(qp, daddr,
											  ticket);
}

/** As above, for all WQEs whose slots were reserved before the call. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST>
GDK_FN int doca_gpu_dev_verbs_get_wait(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr daddr)
{
	const uint64_t end = gdk_ld64(gdk_rsvd_index(qp), gdk_mode_scope(resource_sharing_mode));

	if (end == 0)
		return gdk_qp_status(qp);
	return doca_gpu_dev_verbs_get_wait<resource_sharing_mode, nic_handler, mcst_mode>(qp, daddr,
											  end - 1);
}

/* ---- order ---- */

/**
 * Orders the operations of the calling thread on the QP: the NIC starts the WQEs that the thread
 * posts after the fence only when the gets and fetching atomics that it posted before are
 * complete. Puts need no fence among themselves. The fence is a NOP WQE; the call rings no
 * doorbell for it, the next doorbell of the QP does.
 */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_fence(struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_fence(qp, resource_sharing_mode, nic_handler);
}

#endif
