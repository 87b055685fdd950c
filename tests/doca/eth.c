/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls each function of Ethernet queues in the SDK's interface once, with NULL or 0. It must
 * compile as C and as C++; run, it checks that each call refuses NULL.
 */
#include <doca_eth_rxq.h>
#include <doca_eth_rxq_gpu_data_path.h>
#include <doca_eth_txq.h>
#include <doca_eth_txq_gpu_data_path.h>
#include <doca_log.h>
#include <stdio.h>

static int refused(doca_error_t err)
{
	return err == DOCA_ERROR_INVALID_VALUE;
}

static int rxq(void)
{
	struct doca_eth_rxq *q = NULL;

	return refused(doca_eth_rxq_create(NULL, 1, 1, &q)) +
	       (doca_eth_rxq_as_doca_ctx(NULL) == NULL) +
	       refused(doca_eth_rxq_set_type(NULL, DOCA_ETH_RXQ_TYPE_CYCLIC)) +
	       refused(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, 1, 1,
							     0, 0, 0, NULL)) +
	       refused(doca_eth_rxq_set_pkt_buf(NULL, NULL, 0, 0)) +
	       refused(doca_eth_rxq_apply_queue_id(NULL, 0)) +
	       refused(doca_eth_rxq_get_hw_queue_num(NULL, NULL)) +
	       refused(doca_eth_rxq_get_gpu_handle(NULL, NULL)) +
	       refused(doca_eth_rxq_gpu_set_rq_mem_type(NULL, DOCA_GPU_MEM_TYPE_GPU)) +
	       refused(doca_eth_rxq_gpu_enable_mcst_qp(NULL)) +
	       refused(gdk_eth_rxq_get_counters(NULL, NULL)) + refused(gdk_eth_rxq_abort(NULL)) +
	       refused(doca_eth_rxq_destroy(NULL));
}

static void on_error(struct doca_eth_txq_gpu_event_error_send_packet *ev, union doca_data data)
{
	uint16_t position;

	(void)data;
	(void)doca_eth_txq_gpu_event_error_send_packet_get_position(ev, &position);
}

static void on_notify(struct doca_eth_txq_gpu_event_notify_send_packet *ev, union doca_data data)
{
	uint64_t stamp;
	uint16_t position;

	(void)data;
	(void)doca_eth_txq_gpu_event_notify_send_packet_get_position(ev, &position);
	(void)doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(ev, &stamp);
}

static int txq_settings(void)
{
	const enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO;
	union doca_data data;

	data.u64 = 0;
	return refused(doca_eth_txq_set_l3_chksum_offload(NULL, 1)) +
	       refused(doca_eth_txq_set_l4_chksum_offload(NULL, 1)) +
	       refused(doca_eth_txq_set_wait_on_time_offload(NULL)) +
	       refused(doca_eth_txq_gpu_set_sq_mem_type(NULL, DOCA_GPU_MEM_TYPE_GPU)) +
	       refused(doca_eth_txq_gpu_set_uar_on_cpu(NULL)) +
	       refused(doca_eth_txq_gpu_set_completion_on_gpu(NULL)) +
	       refused(doca_eth_txq_gpu_event_error_send_packet_register(NULL, on_error, data)) +
	       refused(doca_eth_txq_gpu_event_notify_send_packet_register(NULL, on_notify, data)) +
	       refused(gdk_eth_txq_set_nic_handler(NULL, handler));
}

static int txq(void)
{
	enum doca_gpu_dev_verbs_nic_handler handler;
	enum doca_eth_wait_on_time_type type;
	struct doca_eth_txq *q = NULL;

	return refused(doca_eth_txq_create(NULL, 1, &q)) +
	       (doca_eth_txq_as_doca_ctx(NULL) == NULL) +
	       refused(doca_eth_txq_cap_get_wait_on_time_offload_supported(NULL, &type)) +
	       refused(doca_eth_txq_calculate_timestamp(NULL, 0, NULL)) +
	       refused(doca_eth_txq_apply_queue_id(NULL, 0)) +
	       refused(doca_eth_txq_get_gpu_handle(NULL, NULL)) +
	       refused(doca_eth_txq_gpu_cpu_proxy_progress(NULL)) +
	       refused(gdk_eth_txq_get_nic_handler(NULL, &handler, NULL, 0)) +
	       refused(gdk_eth_txq_get_counters(NULL, NULL)) + refused(gdk_eth_txq_abort(NULL)) +
	       refused(gdk_eth_txq_set_wait_limit(NULL, 0)) + refused(doca_eth_txq_destroy(NULL));
}

int main(void)
{
	struct doca_log_backend *log;
	FILE *none = fopen("/dev/null", "w");
	int n;

	if (!none || doca_log_backend_create_with_file_sdk(none, &log))
		return 1;
	n = rxq() + txq_settings() + txq();
	printf("%d calls refused\n", n);
	return n == 34 ? 0 : 1;
}
