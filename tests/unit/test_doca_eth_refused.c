/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Each firmware command that the start of an Ethernet queue sends is refused once. The start fails,
 * the log names the command with its status, no object leaks, and the next start succeeds. A start
 * that can do without the command creates all objects. test_refused.c has the commands of other
 * objects. Also: creation without memory, and calls in the wrong state.
 */
#include "../lib/nicfail.h"
#include "eth_queue_rig.h"

static struct queues q;

TestSuite(doca_eth_refused, .timeout = 60);

/* The commands that a start cannot do without. */
static const char *const names[] = { "CREATE_SQ",
				     "MODIFY_SQ",
				     "CREATE_RQ",
				     "MODIFY_RQ",
				     "CREATE_TIS",
				     "CREATE_CQ",
				     "ALLOC_TRANSPORT_DOMAIN",
				     "ALLOC_Q_COUNTER" };
static bool seen[sizeof(names) / sizeof(names[0])];

static void note(const char *log)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		seen[i] |= strstr(log, names[i]) != NULL;
}

/* Returns how many objects the NIC has while the queue runs. */
static uint32_t objects_of_running(struct doca_ctx *ctx)
{
	uint32_t objects;

	cr_assert_eq(doca_ctx_start(ctx), DOCA_SUCCESS);
	objects = nicfail_live();
	cr_assert_eq(doca_ctx_stop(ctx), DOCA_SUCCESS);
	return objects;
}

static void refuse_all(struct doca_ctx *ctx)
{
	const uint32_t objects = nicfail_live(), running = objects_of_running(ctx);
	uint32_t n, failed = 0;
	uint64_t faults;
	doca_error_t err;
	const char *log;

	for (n = 1; n < 64; n++) {
		faults = nicfail_stats()->faults_injected;
		capture_begin();
		nicfail_next(n, 5, 0xbeef1, 0);
		err = doca_ctx_start(ctx);
		nicfail_next(0, 0, 0, 0);
		log = capture_end();
		if (!err) {
			cr_expect_eq(nicfail_live(), running, "command %u: objects are missing", n);
			cr_expect_eq(doca_ctx_stop(ctx), DOCA_SUCCESS);
		}
		cr_expect_eq(nicfail_live(), objects, "command %u: objects leak", n);
		if (faults == nicfail_stats()->faults_injected)
			break;
		if (!err)
			continue;
		failed++;
		note(log);
		cr_expect_eq(err, DOCA_ERROR_DRIVER, "command %u: error %d", n, err);
		log = strstr(log, "syndrome ");
		cr_expect(log && !strncmp(log, "syndrome 0x000beef1", 19), "command %u: %s", n,
			  log);
		cr_expect(!log || !strstr(log + 1, "syndrome "),
			  "command %u: the start goes on: %s", n, log);
	}
	cr_expect_lt(n, 64);
	cr_expect_geq(failed, 3, "%u commands were refused", failed);
}

Test(doca_eth_refused, every_command_of_a_start)
{
	struct doca_ctx *ctx;
	size_t i;

	nicfail_find();
	rig_open_dev(&q);
	rig_warm_uars(&q);
	rig_start_rxq(&q, 64);
	ctx = doca_eth_rxq_as_doca_ctx(q.rxq);
	cr_assert_eq(doca_ctx_stop(ctx), DOCA_SUCCESS);
	refuse_all(ctx);
	cr_assert_eq(doca_ctx_start(ctx), DOCA_SUCCESS);
	rig_open_txq(&q, 64, NULL);
	ctx = doca_eth_txq_as_doca_ctx(q.txq);
	cr_assert_eq(doca_ctx_stop(ctx), DOCA_SUCCESS);
	refuse_all(ctx);
	cr_assert_eq(doca_ctx_start(ctx), DOCA_SUCCESS);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect(seen[i], "%s was never refused", names[i]);
	rig_close_txq(&q);
	rig_end_rxq(&q);
	rig_close_dev(&q);
}

Test(doca_eth_refused, a_query_of_counters)
{
	struct gdk_eth_rxq_counters counters;

	nicfail_find();
	rig_open_dev(&q);
	rig_start_rxq(&q, 64);
	capture_begin();
	nicfail_next(1, 5, 0xbeef1, 0);
	cr_expect_eq(gdk_eth_rxq_get_counters(q.rxq, &counters), DOCA_ERROR_DRIVER);
	nicfail_next(0, 0, 0, 0);
	cr_expect(strstr(capture_end(), "QUERY_Q_COUNTER"));
	cr_expect_eq(gdk_eth_rxq_get_counters(q.rxq, &counters), DOCA_SUCCESS);
	rig_end_rxq(&q);
	rig_close_dev(&q);
}

static doca_error_t create_and_destroy(void)
{
	struct doca_eth_rxq *rxq;
	struct doca_eth_txq *txq;
	doca_error_t err = doca_eth_rxq_create(q.dev, 64, SLOT, &rxq);

	if (err)
		return err;
	err = doca_eth_txq_create(q.dev, 64, &txq);
	if (!err)
		cr_expect_eq(doca_eth_txq_destroy(txq), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_rxq_destroy(rxq), DOCA_SUCCESS);
	return err;
}

Test(doca_eth_refused, creation_without_memory)
{
	rig_open_dev(&q);
	rig_faults(create_and_destroy, 2, 0);
	rig_close_dev(&q);
}

static void on_error(struct doca_eth_txq_gpu_event_error_send_packet *event, union doca_data data)
{
	(void)event, (void)data;
}

static void on_notify(struct doca_eth_txq_gpu_event_notify_send_packet *event, union doca_data data)
{
	(void)event, (void)data;
}

#define BAD_STATE(call) REFUSED(DOCA_ERROR_BAD_STATE, " ERR ", call)

static void settings_are_refused(struct doca_eth_txq *txq)
{
	const union doca_data data = { 0 };

	BAD_STATE(doca_eth_txq_set_l3_chksum_offload(txq, 1));
	BAD_STATE(doca_eth_txq_set_l4_chksum_offload(txq, 1));
	BAD_STATE(doca_eth_txq_set_wait_on_time_offload(txq));
	BAD_STATE(doca_eth_txq_gpu_set_sq_mem_type(txq, DOCA_GPU_MEM_TYPE_GPU));
	BAD_STATE(doca_eth_txq_gpu_set_uar_on_cpu(txq));
	BAD_STATE(doca_eth_txq_gpu_set_completion_on_gpu(txq));
	BAD_STATE(doca_eth_txq_gpu_event_error_send_packet_register(txq, on_error, data));
	BAD_STATE(doca_eth_txq_gpu_event_notify_send_packet_register(txq, on_notify, data));
	BAD_STATE(gdk_eth_txq_set_nic_handler(txq, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB));
	BAD_STATE(doca_eth_txq_destroy(txq));
}

static void uses_are_refused(struct doca_eth_txq *txq)
{
	enum doca_gpu_dev_verbs_nic_handler handler;
	struct gdk_eth_txq_counters counters;
	struct doca_gpu_eth_txq *handle;

	BAD_STATE(doca_eth_txq_apply_queue_id(txq, 1));
	BAD_STATE(doca_eth_txq_get_gpu_handle(txq, &handle));
	BAD_STATE(doca_eth_txq_gpu_cpu_proxy_progress(txq));
	BAD_STATE(gdk_eth_txq_get_nic_handler(txq, &handler, NULL, 0));
	BAD_STATE(gdk_eth_txq_get_counters(txq, &counters));
	BAD_STATE(gdk_eth_txq_abort(txq));
	BAD_STATE(gdk_eth_txq_set_wait_limit(txq, 1));
}

static void rxq_calls_are_refused(struct doca_eth_rxq *running, struct doca_eth_rxq *idle)
{
	struct gdk_eth_rxq_counters counters;
	struct doca_gpu_eth_rxq *handle;
	uint32_t num;

	BAD_STATE(doca_eth_rxq_set_type(running, DOCA_ETH_RXQ_TYPE_CYCLIC));
	BAD_STATE(doca_eth_rxq_set_pkt_buf(running, q.rx_map, 0, 64 * SLOT));
	BAD_STATE(doca_eth_rxq_gpu_set_rq_mem_type(running, DOCA_GPU_MEM_TYPE_GPU));
	BAD_STATE(doca_eth_rxq_gpu_enable_mcst_qp(running));
	BAD_STATE(doca_eth_rxq_destroy(running));
	BAD_STATE(doca_eth_rxq_apply_queue_id(idle, 1));
	BAD_STATE(doca_eth_rxq_get_hw_queue_num(idle, &num));
	BAD_STATE(doca_eth_rxq_get_gpu_handle(idle, &handle));
	BAD_STATE(gdk_eth_rxq_get_counters(idle, &counters));
	BAD_STATE(gdk_eth_rxq_abort(idle));
}

Test(doca_eth_refused, calls_of_a_receive_queue_in_the_wrong_state)
{
	struct doca_eth_rxq *idle;

	rig_open_dev(&q);
	rig_start_rxq(&q, 64);
	cr_assert_eq(doca_eth_rxq_create(q.dev, 64, SLOT, &idle), DOCA_SUCCESS);
	rxq_calls_are_refused(q.rxq, idle);
	cr_assert_eq(doca_eth_rxq_destroy(idle), DOCA_SUCCESS);
	rig_end_rxq(&q);
	rig_close_dev(&q);
}

Test(doca_eth_refused, calls_of_a_send_queue_in_the_wrong_state)
{
	struct doca_eth_txq *idle;

	rig_open_dev(&q);
	rig_open_txq(&q, 64, rig_gpu_cq);
	settings_are_refused(q.txq);
	cr_assert_eq(doca_eth_txq_create(q.dev, 64, &idle), DOCA_SUCCESS);
	uses_are_refused(idle);
	cr_assert_eq(doca_eth_txq_destroy(idle), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_txq_apply_queue_id(q.txq, 1), DOCA_SUCCESS, "the queue runs");
	rig_close_txq(&q);
	rig_close_dev(&q);
}
