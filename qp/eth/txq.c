/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Send queues: creation, settings, and what kernels and the program ask of a running queue. A queue
 * is built and destroyed in txq_start.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/log/log.h"
#include "qp/eth/txq.h"

static const struct gdk_ctx_ops ops = {
	.what = "TXQ",
	.on_gpu = true,
	.start = gdk_eth_txq_start,
	.stop = gdk_eth_txq_stop,
	.progress = gdk_eth_txq_progress,
};

bool gdk_eth_txq_runs(const struct doca_eth_txq *txq, const char *func)
{
	if (txq->ctx.state == GDK_CTX_STATE_RUNNING)
		return true;
	gdk_err("%s: the TXQ does not run; call doca_ctx_start() first", func);
	return false;
}

/* ---- creation ---- */

doca_error_t doca_eth_txq_create(struct doca_dev *dev, uint32_t max_burst_size,
				 struct doca_eth_txq **eth_txq)
{
	struct doca_eth_txq *txq;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_RANGE(max_burst_size, 1, GDK_ETH_DEPTH_MAX);
	GDK_CHECK_PTR(eth_txq);
	if (!gdk_dev_is_open(dev, __func__))
		return DOCA_ERROR_INVALID_VALUE;
	txq = calloc(1, sizeof(*txq));
	if (!txq) {
		gdk_err("no memory for a TXQ");
		return DOCA_ERROR_NO_MEMORY;
	}
	gdk_ctx_init(&txq->ctx, &ops, dev);
	txq->num = (uint32_t)gdk_roundup_pow2(max_burst_size);
	if (txq->num < GDK_ETH_TXQ_MIN)
		txq->num = GDK_ETH_TXQ_MIN;
	txq->mem = gdk_queue_mem_type();
	*eth_txq = txq;
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_destroy(struct doca_eth_txq *eth_txq)
{
	doca_error_t err;

	GDK_CHECK_PTR(eth_txq);
	err = gdk_ctx_fini(&eth_txq->ctx);
	if (!err)
		free(eth_txq);
	return err;
}

struct doca_ctx *doca_eth_txq_as_doca_ctx(struct doca_eth_txq *eth_txq)
{
	GDK_CHECK_PTR_OR(NULL, eth_txq);
	return &eth_txq->ctx;
}

/* ---- settings ---- */

/* A function that changes settings: checks, and that the context is idle, then the change. */
#define SETTING(check, change) \
	doca_error_t err; \
\
	GDK_CHECK_PTR(eth_txq); \
	check; \
	err = gdk_ctx_must_be_idle(&eth_txq->ctx, __func__); \
	if (err) \
		return err; \
	change; \
	return DOCA_SUCCESS

doca_error_t doca_eth_txq_set_l3_chksum_offload(struct doca_eth_txq *eth_txq,
						uint8_t enable_l3_chksum_offload)
{
	SETTING(GDK_CHECK_RANGE(enable_l3_chksum_offload, 0, 1),
		eth_txq->l3 = enable_l3_chksum_offload);
}

doca_error_t doca_eth_txq_set_l4_chksum_offload(struct doca_eth_txq *eth_txq,
						uint8_t enable_l4_chksum_offload)
{
	SETTING(GDK_CHECK_RANGE(enable_l4_chksum_offload, 0, 1),
		eth_txq->l4 = enable_l4_chksum_offload);
}

doca_error_t doca_eth_txq_set_wait_on_time_offload(struct doca_eth_txq *eth_txq)
{
	SETTING(, eth_txq->wait_on_time = true);
}

doca_error_t doca_eth_txq_gpu_set_sq_mem_type(struct doca_eth_txq *eth_txq,
					      enum doca_gpu_mem_type mem_type)
{
	SETTING(GDK_CHECK_ENUM(mem_type, DOCA_GPU_MEM_TYPE_CPU_GPU), eth_txq->mem = mem_type);
}

doca_error_t doca_eth_txq_gpu_set_uar_on_cpu(struct doca_eth_txq *eth_txq)
{
	SETTING(, eth_txq->want = DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY);
}

doca_error_t doca_eth_txq_gpu_set_completion_on_gpu(struct doca_eth_txq *eth_txq)
{
	SETTING(, eth_txq->gpu_completion = true);
}

doca_error_t
doca_eth_txq_gpu_event_error_send_packet_register(struct doca_eth_txq *eth_txq,
						  doca_eth_txq_gpu_event_error_send_packet_cb_t cb,
						  union doca_data user_data)
{
	SETTING(GDK_CHECK_PTR(cb), eth_txq->on_error = cb; eth_txq->error_data = user_data);
}

doca_error_t doca_eth_txq_gpu_event_notify_send_packet_register(
	struct doca_eth_txq *eth_txq, doca_eth_txq_gpu_event_notify_send_packet_cb_t cb,
	union doca_data user_data)
{
	SETTING(GDK_CHECK_PTR(cb), eth_txq->on_notify = cb; eth_txq->notify_data = user_data);
}

doca_error_t gdk_eth_txq_set_nic_handler(struct doca_eth_txq *eth_txq,
					 enum doca_gpu_dev_verbs_nic_handler nic_handler)
{
	doca_error_t err;

	GDK_CHECK_PTR(eth_txq);
	GDK_CHECK_HANDLER(nic_handler);
	err = gdk_ctx_must_be_idle(&eth_txq->ctx, __func__);
	if (err)
		return err;
	if (nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR) {
		gdk_err("handler GPU_SM_NO_DBR refused for a TXQ: the context of an Ethernet SQ "
			"has no field for the mode without DBREC; use GPU_SM_DB or CPU_PROXY");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	eth_txq->want = nic_handler;
	return DOCA_SUCCESS;
}

/* ---- a running queue ---- */

/* Checks of a function that needs a running queue. */
#define RUNNING() \
	do { \
		GDK_CHECK_PTR(eth_txq); \
		if (!gdk_eth_txq_runs(eth_txq, __func__)) \
			return DOCA_ERROR_BAD_STATE; \
	} while (0)

doca_error_t doca_eth_txq_apply_queue_id(struct doca_eth_txq *eth_txq, uint16_t queue_id)
{
	(void)queue_id;
	RUNNING();
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_get_gpu_handle(const struct doca_eth_txq *eth_txq,
					 struct doca_gpu_eth_txq **gpu_eth_txq)
{
	GDK_CHECK_PTR(gpu_eth_txq);
	RUNNING();
	*gpu_eth_txq = eth_txq->dev;
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_gpu_cpu_proxy_progress(struct doca_eth_txq *eth_txq)
{
	RUNNING();
	return doca_gpu_verbs_cpu_proxy_progress(eth_txq->exported, NULL);
}

doca_error_t gdk_eth_txq_get_nic_handler(const struct doca_eth_txq *eth_txq,
					 enum doca_gpu_dev_verbs_nic_handler *nic_handler,
					 char *reasons, size_t len)
{
	const struct gdk_candidate *c;
	size_t at = 0;
	unsigned int i;

	GDK_CHECK_PTR(nic_handler);
	RUNNING();
	*nic_handler = eth_txq->decision.chosen;
	if (reasons && len)
		reasons[0] = '\0';
	for (i = 0; reasons && i < eth_txq->decision.num_candidates && at < len; i++) {
		c = &eth_txq->decision.candidates[i];
		at += (size_t)snprintf(reasons + at, len - at, "%s%s: %s: %s", i ? "; " : "",
				       gdk_handler_name(c->handler),
				       c->usable ? "usable" : "not usable", c->reason);
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_eth_txq_get_counters(const struct doca_eth_txq *eth_txq,
				      struct gdk_eth_txq_counters *counters)
{
	struct gdk_qp_counters c;
	doca_error_t err;

	GDK_CHECK_PTR(counters);
	RUNNING();
	err = gdk_verbs_qp_get_counters(eth_txq->exported, &c);
	if (err)
		return err;
	*counters = (struct gdk_eth_txq_counters){
		.reserved = c.wqes_reserved,
		.completed = c.completions,
		.doorbells = c.doorbells,
		.dbrecs = c.dbrec_updates,
		.notified = eth_txq->events,
		.status = c.status,
		.error_wqe = c.status ? c.error_wqe : UINT64_MAX,
		.timed = eth_txq->timed,
		.early = eth_txq->early,
		.late_ns = eth_txq->late_sum,
		.late_max_ns = eth_txq->late_max,
	};
	return DOCA_SUCCESS;
}

doca_error_t gdk_eth_txq_abort(struct doca_eth_txq *eth_txq)
{
	RUNNING();
	return gdk_verbs_qp_abort(eth_txq->exported);
}

doca_error_t gdk_eth_txq_set_wait_limit(struct doca_eth_txq *eth_txq, uint64_t limit_ns)
{
	RUNNING();
	return gdk_verbs_qp_set_wait_limit(eth_txq->exported, limit_ns);
}

/* ---- sends at a given time ---- */

#define NS 1000000000ull

doca_error_t
doca_eth_txq_cap_get_wait_on_time_offload_supported(const struct doca_devinfo *devinfo,
						    enum doca_eth_wait_on_time_type *type)
{
	struct gdk_eth_caps caps;
	struct ibv_context *ctx;
	doca_error_t err;

	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(type);
	ctx = ibv_open_device(devinfo->device);
	if (!ctx) {
		gdk_err("%s: cannot open the device to query its capabilities",
			ibv_get_device_name(devinfo->device));
		return DOCA_ERROR_DRIVER;
	}
	err = gdk_eth_query_caps(ctx, &caps);
	ibv_close_device(ctx);
	if (!err)
		*type = gdk_eth_can_wait(&caps) ? DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE
						: DOCA_ETH_WAIT_ON_TIME_TYPE_NONE;
	return err;
}

doca_error_t doca_eth_txq_calculate_timestamp(struct doca_eth_txq *eth_txq, uint64_t timestamp_ns,
					      uint64_t *wait_on_time_value)
{
	GDK_CHECK_PTR(wait_on_time_value);
	GDK_CHECK_ARG(timestamp_ns / NS <= UINT32_MAX,
		      "timestamp_ns %llu (expected at most 2^32 seconds)",
		      (unsigned long long)timestamp_ns);
	RUNNING();
	if (!eth_txq->wait_on_time) {
		gdk_err("%s: the TXQ cannot wait: call doca_eth_txq_set_wait_on_time_offload() "
			"before doca_ctx_start()",
			__func__);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*wait_on_time_value = timestamp_ns / NS << 32 | timestamp_ns % NS;
	return DOCA_SUCCESS;
}
