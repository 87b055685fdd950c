/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA GPUNetIO device API, several QPs at once: submission to all in one call,
 * and operations that a companion QP counts. DOCA's template spellings of
 * gdk/counter_dev.h.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH
#define DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH

#include "../device/doca_gpunetio_dev_verbs_onesided.cuh"
#include "../device/gdk/counter_dev.h"

/* ---- submission ---- */

template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_multi_qps_no_dbr(struct doca_gpu_dev_verbs_qp **qps,
							  uint64_t *prod_indices, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps, resource_sharing_mode,
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR, code_opt);
}

template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_multi_qps(struct doca_gpu_dev_verbs_qp **qps,
						   uint64_t *prod_indices, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps, resource_sharing_mode,
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB, code_opt);
}

template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_proxy_multi_qps(struct doca_gpu_dev_verbs_qp **qps,
						      uint64_t *prod_indices)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps, resource_sharing_mode,
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY, 0);
}

/* AUTO: each QP's own handler. */
template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_HANDLER>
GDK_FN void doca_gpu_dev_verbs_submit_multi_qps(struct doca_gpu_dev_verbs_qp **qps,
						uint64_t *prod_indices, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps, resource_sharing_mode, nic_handler, code_opt);
}

/* ---- operations that count; they return 0 or the negative errno of a QP ---- */

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_counter(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr raddr,
					  struct doca_gpu_dev_verbs_addr laddr, size_t size,
					  struct doca_gpu_dev_verbs_qp *companion_qp,
					  struct doca_gpu_dev_verbs_addr counter_raddr,
					  struct doca_gpu_dev_verbs_addr counter_laddr,
					  uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_put_counter(qp, raddr, laddr, size, &counter, &ticket, resource_sharing_mode,
			       nic_handler, GDK_THREAD, code_opt);
}

template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_p_counter(struct doca_gpu_dev_verbs_qp *qp,
					struct doca_gpu_dev_verbs_addr raddr, T value,
					struct doca_gpu_dev_verbs_qp *companion_qp,
					struct doca_gpu_dev_verbs_addr counter_raddr,
					struct doca_gpu_dev_verbs_addr counter_laddr,
					uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_p_counter(qp, raddr, &value, sizeof(T), &counter, &ticket, resource_sharing_mode,
			     nic_handler, GDK_THREAD, code_opt);
}

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_put_signal_counter(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
	struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	struct doca_gpu_dev_verbs_qp *companion_qp, struct doca_gpu_dev_verbs_addr counter_raddr,
	struct doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_put_signal_counter(qp, sig_op, raddr, laddr, size, sig_raddr, sig_laddr, sig_val,
				      &counter, &ticket, resource_sharing_mode, nic_handler,
				      GDK_THREAD, code_opt);
}

template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_signal_counter(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	struct doca_gpu_dev_verbs_qp *companion_qp, struct doca_gpu_dev_verbs_addr counter_raddr,
	struct doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_signal_counter(qp, sig_op, sig_raddr, sig_laddr, sig_val, &counter, &ticket,
				  resource_sharing_mode, nic_handler, GDK_THREAD, code_opt);
}

template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER>
GDK_FN int doca_gpu_dev_verbs_get_counter(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr raddr,
					  struct doca_gpu_dev_verbs_addr laddr, size_t size,
					  struct doca_gpu_dev_verbs_qp *companion_qp,
					  struct doca_gpu_dev_verbs_addr counter_raddr,
					  struct doca_gpu_dev_verbs_addr counter_laddr,
					  uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_get_counter(qp, raddr, laddr, size, &counter, &ticket, resource_sharing_mode,
			       nic_handler, GDK_THREAD, code_opt);
}

#endif
