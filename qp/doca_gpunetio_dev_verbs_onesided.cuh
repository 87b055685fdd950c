/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA GPUNetIO device API, one-sided operations: DOCA's template spellings of
 * gdk/onesided_dev.h. What returns nothing in DOCA returns here 0 or the
 * negative errno that ended the QP. The functions that DOCA has at thread scope
 * only end in an execution scope of ours, which is THREAD unless given.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH
#define DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH

#include "../device/doca_gpunetio_dev_verbs_qp.cuh"
#include "../device/gdk/onesided_dev.h"

#define GDK_TEMPLATE_EXEC \
	enum doca_gpu_dev_verbs_exec_scope exec_scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define GDK_TEMPLATE_MCST \
	enum doca_gpu_dev_verbs_mcst_mode mcst_mode = DOCA_GPUNETIO_VERBS_MCST_DISABLED
#define GDK_TEMPLATE_BLOCKING \
	enum doca_gpu_dev_verbs_blocking_mode blocking_mode = \
		DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED
#define GDK_TEMPLATE_SIGNAL enum doca_gpu_dev_verbs_signal_op sig_op
#define GDK_THREAD	    DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define GDK_WARP_SCOPE	    DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP

/* ---- put ---- */

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_thread(struct doca_gpu_dev_verbs_qp *qp,
					 struct doca_gpu_dev_verbs_addr raddr,
					 struct doca_gpu_dev_verbs_addr laddr, size_t size,
					 doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put(qp, raddr, laddr, size, out_ticket, resource_sharing_mode, nic_handler,
		       GDK_THREAD, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_warp(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr,
				       struct doca_gpu_dev_verbs_addr laddr, size_t size,
				       doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put(qp, raddr, laddr, size, out_ticket, resource_sharing_mode, nic_handler,
		       GDK_WARP_SCOPE, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put(struct doca_gpu_dev_verbs_qp *qp,
				  struct doca_gpu_dev_verbs_addr raddr,
				  struct doca_gpu_dev_verbs_addr laddr, size_t size,
				  doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put(qp, raddr, laddr, size, out_ticket, resource_sharing_mode, nic_handler,
		       exec_scope, code_opt);
}

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

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_p_thread(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr, T value,
				       doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p(qp, raddr, &value, sizeof(T), out_ticket, resource_sharing_mode, nic_handler,
		     GDK_THREAD, code_opt);
}

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_p_warp(struct doca_gpu_dev_verbs_qp *qp,
				     struct doca_gpu_dev_verbs_addr raddr, T value,
				     doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p(qp, raddr, &value, sizeof(T), out_ticket, resource_sharing_mode, nic_handler,
		     GDK_WARP_SCOPE, code_opt);
}

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p(struct doca_gpu_dev_verbs_qp *qp,
				struct doca_gpu_dev_verbs_addr raddr, T value,
				doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p(qp, raddr, &value, sizeof(T), out_ticket, resource_sharing_mode, nic_handler,
		     exec_scope, code_opt);
}

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p(struct doca_gpu_dev_verbs_qp *qp,
				struct doca_gpu_dev_verbs_addr raddr, T value, GDK_CODE_OPT)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	return doca_gpu_dev_verbs_p<T, resource_sharing_mode, nic_handler, exec_scope>(
		qp, raddr, value, &ticket, code_opt);
}

/* ---- put and signal ---- */

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_signal_thread(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
	struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put_signal(qp, sig_op, raddr, laddr, size, sig_raddr, sig_laddr, sig_val,
			      out_ticket, resource_sharing_mode, nic_handler, GDK_THREAD, code_opt);
}

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_signal_warp(struct doca_gpu_dev_verbs_qp *qp,
					      struct doca_gpu_dev_verbs_addr raddr,
					      struct doca_gpu_dev_verbs_addr laddr, size_t size,
					      struct doca_gpu_dev_verbs_addr sig_raddr,
					      struct doca_gpu_dev_verbs_addr sig_laddr,
					      uint64_t sig_val,
					      doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put_signal(qp, sig_op, raddr, laddr, size, sig_raddr, sig_laddr, sig_val,
			      out_ticket, resource_sharing_mode, nic_handler, GDK_WARP_SCOPE,
			      code_opt);
}

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put_signal(struct doca_gpu_dev_verbs_qp *qp,
					 struct doca_gpu_dev_verbs_addr raddr,
					 struct doca_gpu_dev_verbs_addr laddr, size_t size,
					 struct doca_gpu_dev_verbs_addr sig_raddr,
					 struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
					 doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_put_signal(qp, sig_op, raddr, laddr, size, sig_raddr, sig_laddr, sig_val,
			      out_ticket, resource_sharing_mode, nic_handler, exec_scope, code_opt);
}

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

template <typename T, GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER,
	  GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p_signal(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr raddr, T value,
				       struct doca_gpu_dev_verbs_addr sig_raddr,
				       struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
				       doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_p_signal(qp, sig_op, raddr, &value, sizeof(T), sig_raddr, sig_laddr, sig_val,
			    out_ticket, resource_sharing_mode, nic_handler, exec_scope, code_opt);
}

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

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_signal_thread(struct doca_gpu_dev_verbs_qp *qp,
					    struct doca_gpu_dev_verbs_addr sig_raddr,
					    struct doca_gpu_dev_verbs_addr sig_laddr,
					    uint64_t sig_val,
					    doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_signal(qp, sig_op, sig_raddr, sig_laddr, sig_val, out_ticket,
			  resource_sharing_mode, nic_handler, GDK_THREAD, code_opt);
}

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_signal_warp(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr sig_raddr,
					  struct doca_gpu_dev_verbs_addr sig_laddr,
					  uint64_t sig_val, doca_gpu_dev_verbs_ticket_t *out_ticket,
					  GDK_CODE_OPT)
{
	return gdk_signal(qp, sig_op, sig_raddr, sig_laddr, sig_val, out_ticket,
			  resource_sharing_mode, nic_handler, GDK_WARP_SCOPE, code_opt);
}

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_signal(struct doca_gpu_dev_verbs_qp *qp,
				     struct doca_gpu_dev_verbs_addr sig_raddr,
				     struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
				     doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_signal(qp, sig_op, sig_raddr, sig_laddr, sig_val, out_ticket,
			  resource_sharing_mode, nic_handler, exec_scope, code_opt);
}

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

/* With a dump, whose ticket it then is; blocking: until the data is there. */
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
					 resource_sharing_mode, nic_handler, exec_scope, code_opt)
			  : gdk_get(qp, raddr, laddr, size, out_ticket, resource_sharing_mode,
				    nic_handler, exec_scope, code_opt);

	if (!err && blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED)
		err = gdk_wait(qp, *out_ticket, resource_sharing_mode);
	return err;
}

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

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_wait(struct doca_gpu_dev_verbs_qp *qp,
				   doca_gpu_dev_verbs_ticket_t ticket)
{
	return gdk_wait(qp, ticket, resource_sharing_mode);
}

/* For all that was reserved before. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_wait(struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_flush(qp, resource_sharing_mode);
}

/* The dump of get alone, as NCCL's copy of DOCA has it. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_mcst(struct doca_gpu_dev_verbs_qp *qp,
				   struct doca_gpu_dev_verbs_addr daddr,
				   doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	return gdk_dump(qp, daddr, out_ticket, resource_sharing_mode, nic_handler, GDK_THREAD,
			code_opt);
}

/* A dump posted now completes after every read posted before. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST>
GDK_FN int doca_gpu_dev_verbs_get_wait(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr daddr,
				       doca_gpu_dev_verbs_ticket_t ticket)
{
	return mcst_mode == DOCA_GPUNETIO_VERBS_MCST_ENABLED
		       ? gdk_dump_wait(qp, daddr, ticket, resource_sharing_mode, nic_handler)
		       : gdk_wait(qp, ticket, resource_sharing_mode);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST>
GDK_FN int doca_priv_gpu_dev_verbs_get_wait(struct doca_gpu_dev_verbs_qp *qp,
					    struct doca_gpu_dev_verbs_addr daddr,
					    doca_gpu_dev_verbs_ticket_t ticket)
{
	return doca_gpu_dev_verbs_get_wait<resource_sharing_mode, nic_handler, mcst_mode>(qp, daddr,
											  ticket);
}

/* For all that was reserved before. */
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

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_fence(struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_fence(qp, resource_sharing_mode, nic_handler);
}

#endif
