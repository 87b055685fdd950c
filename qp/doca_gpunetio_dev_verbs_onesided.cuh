/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA GPUNetIO device API, one-sided operations: DOCA's template spellings of
 * gdk/onesided_dev.h. Posting returns nothing, as in DOCA: what ended the QP is
 * returned by the wait, which returns int here, or by the gdk_ form.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH
#define DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH

#include "doca_gpunetio_dev_verbs_qp.cuh"
#include "gdk/onesided_dev.h"

#define GDK_TEMPLATE_EXEC                               \
	enum doca_gpu_dev_verbs_exec_scope exec_scope = \
		DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define GDK_TEMPLATE_MCST \
	enum doca_gpu_dev_verbs_mcst_mode mcst_mode = DOCA_GPUNETIO_VERBS_MCST_DISABLED
#define GDK_ONLY_THREAD(exec_scope)                                             \
	static_assert((exec_scope) == DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, \
		      "this operation is posted by one thread at a time")

/* ---- put ---- */

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN void doca_gpu_dev_verbs_put_thread(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr raddr,
					  struct doca_gpu_dev_verbs_addr laddr, size_t size,
					  doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	(void)gdk_put(qp, raddr, laddr, size, out_ticket, resource_sharing_mode, nic_handler,
		      DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN void doca_gpu_dev_verbs_put_warp(struct doca_gpu_dev_verbs_qp *qp,
					struct doca_gpu_dev_verbs_addr raddr,
					struct doca_gpu_dev_verbs_addr laddr, size_t size,
					doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	(void)gdk_put(qp, raddr, laddr, size, out_ticket, resource_sharing_mode, nic_handler,
		      DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN void doca_gpu_dev_verbs_put(struct doca_gpu_dev_verbs_qp *qp,
				   struct doca_gpu_dev_verbs_addr raddr,
				   struct doca_gpu_dev_verbs_addr laddr, size_t size,
				   doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	(void)gdk_put(qp, raddr, laddr, size, out_ticket, resource_sharing_mode, nic_handler,
		      exec_scope, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN void doca_gpu_dev_verbs_put(struct doca_gpu_dev_verbs_qp *qp,
				   struct doca_gpu_dev_verbs_addr raddr,
				   struct doca_gpu_dev_verbs_addr laddr, size_t size, GDK_CODE_OPT)
{
	uint64_t ticket;

	doca_gpu_dev_verbs_put<resource_sharing_mode, nic_handler, exec_scope>(
		qp, raddr, laddr, size, &ticket, code_opt);
}

/* ---- put inline ---- */

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN void doca_gpu_dev_verbs_p_thread(struct doca_gpu_dev_verbs_qp *qp,
					struct doca_gpu_dev_verbs_addr raddr, T value,
					doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	static_assert(sizeof(T) <= DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE, "too long for a WQE");
	(void)gdk_put_inline(qp, raddr, &value, (uint32_t)sizeof(T), out_ticket,
			     resource_sharing_mode, nic_handler, code_opt);
}

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN void doca_gpu_dev_verbs_p(struct doca_gpu_dev_verbs_qp *qp,
				 struct doca_gpu_dev_verbs_addr raddr, T value,
				 doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	GDK_ONLY_THREAD(exec_scope);
	doca_gpu_dev_verbs_p_thread<T, resource_sharing_mode, nic_handler>(qp, raddr, value,
									   out_ticket, code_opt);
}

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN void doca_gpu_dev_verbs_p(struct doca_gpu_dev_verbs_qp *qp,
				 struct doca_gpu_dev_verbs_addr raddr, T value, GDK_CODE_OPT)
{
	uint64_t ticket;

	doca_gpu_dev_verbs_p<T, resource_sharing_mode, nic_handler, exec_scope>(qp, raddr, value,
										&ticket, code_opt);
}

/* ---- signal ---- */

template <enum doca_gpu_dev_verbs_signal_op sig_op, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN void doca_gpu_dev_verbs_put_signal_thread(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
	struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	static_assert(sig_op == DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, "signals add");
	(void)gdk_put_signal(qp, raddr, laddr, size, sig_raddr, sig_laddr, sig_val, out_ticket,
			     resource_sharing_mode, nic_handler, code_opt);
}

template <enum doca_gpu_dev_verbs_signal_op sig_op, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER,
	  GDK_TEMPLATE_EXEC>
GDK_FN void doca_gpu_dev_verbs_put_signal(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
	struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	GDK_ONLY_THREAD(exec_scope);
	doca_gpu_dev_verbs_put_signal_thread<sig_op, resource_sharing_mode, nic_handler>(
		qp, raddr, laddr, size, sig_raddr, sig_laddr, sig_val, out_ticket, code_opt);
}

template <enum doca_gpu_dev_verbs_signal_op sig_op, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER,
	  GDK_TEMPLATE_EXEC>
GDK_FN void doca_gpu_dev_verbs_put_signal(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
	struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val, GDK_CODE_OPT)
{
	uint64_t ticket;

	doca_gpu_dev_verbs_put_signal<sig_op, resource_sharing_mode, nic_handler, exec_scope>(
		qp, raddr, laddr, size, sig_raddr, sig_laddr, sig_val, &ticket, code_opt);
}

template <enum doca_gpu_dev_verbs_signal_op sig_op, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN void doca_gpu_dev_verbs_signal_thread(struct doca_gpu_dev_verbs_qp *qp,
					     struct doca_gpu_dev_verbs_addr sig_raddr,
					     struct doca_gpu_dev_verbs_addr sig_laddr,
					     uint64_t sig_val,
					     doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	static_assert(sig_op == DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, "signals add");
	(void)gdk_signal_add(qp, sig_raddr, sig_laddr, sig_val, out_ticket, resource_sharing_mode,
			     nic_handler, code_opt);
}

template <enum doca_gpu_dev_verbs_signal_op sig_op, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER,
	  GDK_TEMPLATE_EXEC>
GDK_FN void doca_gpu_dev_verbs_signal(struct doca_gpu_dev_verbs_qp *qp,
				      struct doca_gpu_dev_verbs_addr sig_raddr,
				      struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
				      doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	GDK_ONLY_THREAD(exec_scope);
	doca_gpu_dev_verbs_signal_thread<sig_op, resource_sharing_mode, nic_handler>(
		qp, sig_raddr, sig_laddr, sig_val, out_ticket, code_opt);
}

/* ---- get ---- */

/* With mcst_mode a dump of daddr follows, and the ticket is the dump's. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST,
	  enum doca_gpu_dev_verbs_blocking_mode blocking_mode =
		  DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED>
GDK_FN void doca_gpu_dev_verbs_get_thread(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr raddr,
					  struct doca_gpu_dev_verbs_addr laddr, size_t size,
					  struct doca_gpu_dev_verbs_addr daddr,
					  doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	const bool dump = mcst_mode == DOCA_GPUNETIO_VERBS_MCST_ENABLED;
	int err = gdk_get(qp, raddr, laddr, size, out_ticket, resource_sharing_mode, nic_handler,
			  dump ? code_opt | GDK_OPT_SKIP_DB : code_opt);

	if (!err && dump)
		err = gdk_dump(qp, daddr, 1, out_ticket, resource_sharing_mode, nic_handler,
			       code_opt);
	if (!err && blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED)
		(void)gdk_wait(qp, *out_ticket, resource_sharing_mode);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC, GDK_TEMPLATE_MCST,
	  enum doca_gpu_dev_verbs_blocking_mode blocking_mode =
		  DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED>
GDK_FN void doca_gpu_dev_verbs_get(struct doca_gpu_dev_verbs_qp *qp,
				   struct doca_gpu_dev_verbs_addr raddr,
				   struct doca_gpu_dev_verbs_addr laddr, size_t size,
				   struct doca_gpu_dev_verbs_addr daddr,
				   doca_gpu_dev_verbs_ticket_t *out_ticket, GDK_CODE_OPT)
{
	GDK_ONLY_THREAD(exec_scope);
	doca_gpu_dev_verbs_get_thread<resource_sharing_mode, nic_handler, mcst_mode,
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

/* A dump posted now completes after every read posted before. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_MCST>
GDK_FN int doca_gpu_dev_verbs_get_wait(struct doca_gpu_dev_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_addr daddr,
				       doca_gpu_dev_verbs_ticket_t ticket)
{
	int err;

	if (mcst_mode == DOCA_GPUNETIO_VERBS_MCST_ENABLED) {
		err = gdk_dump(qp, daddr, 1, &ticket, resource_sharing_mode, nic_handler, 0);
		if (err)
			return err;
	}
	return gdk_wait(qp, ticket, resource_sharing_mode);
}

#endif
