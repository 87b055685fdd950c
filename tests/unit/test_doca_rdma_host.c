/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host side of the RDMA library: options, states, descriptions of connections, callbacks, the
 * connection manager that does not exist, each allocation and each verbs call that fails.
 */
#include <criterion/criterion.h>
#include <endian.h>

#include "../lib/rdma_rig.h"
#include "../lib/standin.h"
#include "doca_base_rig.h"
#include "doca_uar.h"

static struct doca_dev *dev;
static struct doca_gpu *gpu;

static void open_all(void)
{
	dev = rig_open();
	OK(doca_gpu_create("host", &gpu));
}

static void open_cuda(void)
{
	standin_cuda();
	dev = rig_open();
	OK(doca_gpu_create("8a:00.0", &gpu));
}

static void close_all(void)
{
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS, "an RDMA object leaks GPU memory");
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
}

TestSuite(doca_rdma_host, .init = open_all, .fini = close_all, .timeout = 100);
TestSuite(doca_rdma_cuda, .init = open_cuda, .fini = close_all, .timeout = 100);

static struct doca_rdma *create(void)
{
	struct doca_rdma *rdma;

	OK(doca_rdma_create(dev, &rdma));
	OK(doca_ctx_set_datapath_on_gpu(doca_rdma_as_ctx(rdma), gpu));
	return rdma;
}

static void destroy(struct doca_rdma *rdma)
{
	OK(doca_ctx_stop(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_destroy(rdma));
}

Test(doca_rdma_host, options_are_checked)
{
	struct doca_rdma *rdma = create();

	REFUSED(DOCA_ERROR_INVALID_VALUE, "rdma NULL", doca_rdma_set_permissions(NULL, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dev NULL", doca_rdma_create(NULL, &rdma));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "permissions 0x80000000",
		doca_rdma_set_permissions(rdma, 0x80000000));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "send_queue_size 0",
		doca_rdma_set_send_queue_size(rdma, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "send_queue_size 32769",
		doca_rdma_set_send_queue_size(rdma, 32769));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "recv_queue_size 0",
		doca_rdma_set_recv_queue_size(rdma, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "recv_queue_size 40000",
		doca_rdma_set_recv_queue_size(rdma, 40000));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "gid_index 256", doca_rdma_set_gid_index(rdma, 256));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "max_num_connections 0",
		doca_rdma_set_max_num_connections(rdma, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "max_num_connections 4097",
		doca_rdma_set_max_num_connections(rdma, 4097));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "nic_handler 6",
		gdk_rdma_set_nic_handler(rdma, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF));
	OK(doca_rdma_set_gid_index(rdma, 200));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "has no GID 200", doca_ctx_start(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_set_gid_index(rdma, 7));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "GID 7 of port 1 is empty",
		doca_ctx_start(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_set_gid_index(rdma, 0));
	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	destroy(rdma);
}

Test(doca_rdma_host, calls_in_a_wrong_state_are_refused)
{
	struct doca_rdma_connection *conn;
	struct doca_gpu_dev_rdma *handle;
	struct doca_rdma *rdma, *cpu;
	const void *details;
	size_t len;

	OK(doca_rdma_create(dev, &cpu));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "doca_ctx_set_datapath_on_gpu",
		doca_ctx_start(doca_rdma_as_ctx(cpu)));
	OK(doca_rdma_destroy(cpu));
	rdma = create();
	REFUSED(DOCA_ERROR_BAD_STATE, "does not run", doca_rdma_get_gpu_handle(rdma, &handle));
	REFUSED(DOCA_ERROR_BAD_STATE, "does not run",
		doca_rdma_export(rdma, &details, &len, &conn));
	REFUSED(DOCA_ERROR_BAD_STATE, "does not run", gdk_rdma_abort(rdma));
	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	REFUSED(DOCA_ERROR_BAD_STATE, "is running", doca_rdma_set_send_queue_size(rdma, 8));
	REFUSED(DOCA_ERROR_BAD_STATE, "is running",
		gdk_rdma_set_nic_handler(rdma, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO));
	REFUSED(DOCA_ERROR_BAD_STATE, "is running", doca_rdma_destroy(rdma));
	REFUSED(DOCA_ERROR_IN_USE, "", doca_dev_close(dev));
	OK(doca_rdma_export(rdma, &details, &len, &conn));
	REFUSED(DOCA_ERROR_FULL, "doca_rdma_set_max_num_connections",
		doca_rdma_export(rdma, &details, &len, &conn));
	REFUSED(DOCA_ERROR_BAD_STATE, "is not connected", doca_rdma_connection_disconnect(conn));
	OK(doca_rdma_connect(rdma, details, len, conn));
	REFUSED(DOCA_ERROR_BAD_STATE, "is connected", doca_rdma_connect(rdma, details, len, conn));
	destroy(rdma);
}

Test(doca_rdma_host, a_damaged_description_is_refused)
{
	uint32_t details[12], copy[12];
	struct doca_rdma_connection *conn;
	struct doca_rdma *rdma = create();
	const void *good;
	size_t len;

	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_export(rdma, &good, &len, &conn));
	cr_assert_eq(len, sizeof(details));
	cr_expect_str_eq(good, "gdkrdma", "programs print the description as a string");
	memcpy(details, good, len);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "size is wrong",
		doca_rdma_connect(rdma, details, len - 1, conn));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "of 0 bytes", doca_rdma_connect(rdma, details, 0, conn));
	for (uint32_t i = 0; i < 8; i++) {
		memcpy(copy, details, len);
		copy[i] = 0xffffffff;
		if (i == 2)
			REFUSED(DOCA_ERROR_UNSUPPORTED_VERSION, "version 4294967295",
				doca_rdma_connect(rdma, copy, len, conn));
		else
			REFUSED(DOCA_ERROR_INVALID_VALUE, "invalid remote connection details",
				doca_rdma_connect(rdma, copy, len, conn));
	}
	OK(doca_rdma_connect(rdma, details, len, conn));
	destroy(rdma);
}

Test(doca_rdma_host, connection_manager_calls_say_what_to_do_instead)
{
	const union doca_data none = { 0 };
	struct doca_rdma_addr *addr;
	struct doca_rdma_connection *conn;
	struct doca_rdma *rdma = create();
	const void *details;
	size_t len;

	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_export(rdma, &details, &len, &conn));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "doca_rdma_connect()",
		doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.0.2.1", 1, &addr));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "doca_rdma_connect()",
		doca_rdma_connect_to_addr(rdma, NULL, none));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "doca_rdma_connect()",
		doca_rdma_start_listen_to_port(rdma, 1));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "doca_rdma_connect()",
		doca_rdma_stop_listen_to_port(rdma, 1));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "doca_rdma_connect()",
		doca_rdma_connection_accept(conn, NULL, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "addr NULL", doca_rdma_addr_destroy(NULL));
	destroy(rdma);
}

/* ---- callbacks ---- */

static struct {
	int established, failed, disconnected;
	struct doca_rdma_connection *conn;
	uint64_t conn_data, ctx_data;
	struct doca_ctx *stop;
} seen;

static void note(struct doca_rdma_connection *conn, union doca_data conn_data,
		 union doca_data ctx_data)
{
	seen.conn = conn;
	seen.conn_data = conn_data.u64;
	seen.ctx_data = ctx_data.u64;
	if (seen.stop)
		OK(doca_ctx_stop(seen.stop));
}

static void on_established(struct doca_rdma_connection *conn, union doca_data conn_data,
			   union doca_data ctx_data)
{
	seen.established++;
	note(conn, conn_data, ctx_data);
}

static void on_failure(struct doca_rdma_connection *conn, union doca_data conn_data,
		       union doca_data ctx_data)
{
	seen.failed++;
	note(conn, conn_data, ctx_data);
}

static void on_disconnection(struct doca_rdma_connection *conn, union doca_data conn_data,
			     union doca_data ctx_data)
{
	seen.disconnected++;
	note(conn, conn_data, ctx_data);
}

Test(doca_rdma_host, callbacks_report_states_of_connections)
{
	const union doca_data conn_data = { .u64 = 11 }, ctx_data = { .u64 = 22 };
	struct doca_rdma *rdma = create();
	struct doca_rdma_connection *conn[2];
	struct doca_pe *pe;
	const void *details[2];
	uint32_t index;
	size_t len;

	OK(doca_rdma_set_max_num_connections(rdma, 2));
	OK(doca_rdma_set_connection_state_callbacks(rdma, NULL, on_established, on_failure,
						    on_disconnection));
	OK(doca_pe_create(&pe));
	OK(doca_pe_connect_ctx(pe, doca_rdma_as_ctx(rdma)));
	OK(doca_ctx_set_user_data(doca_rdma_as_ctx(rdma), ctx_data));
	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	for (int i = 0; i < 2; i++)
		OK(doca_rdma_export(rdma, &details[i], &len, &conn[i]));
	OK(doca_rdma_connection_set_user_data(conn[1], conn_data));
	OK(gdk_rdma_connection_get_index(conn[1], &index));
	cr_expect_eq(index, 1);
	cr_expect_eq(doca_pe_progress(pe), 0);
	for (int i = 0; i < 2; i++)
		OK(doca_rdma_connect(rdma, details[!i], len, conn[i]));
	cr_expect_eq(seen.established, 0);
	while (doca_pe_progress(pe))
		;
	cr_expect_eq(seen.established, 2);
	cr_expect_eq(seen.conn, conn[1]);
	cr_expect_eq(seen.conn_data, 11);
	cr_expect_eq(seen.ctx_data, 22);
	OK(doca_rdma_connection_disconnect(conn[0]));
	seen.stop = doca_rdma_as_ctx(rdma);
	cr_expect_eq(doca_pe_progress(pe), 1);
	cr_expect_eq(seen.disconnected, 1);
	cr_expect_eq(seen.conn_data, 0);
	cr_expect_eq(doca_pe_progress(pe), 0, "the callback has stopped the context");
	OK(doca_rdma_destroy(rdma));
	OK(doca_pe_destroy(pe));
}

Test(doca_rdma_host, a_refused_command_fails_the_connection)
{
	struct doca_rdma *rdma = create();
	struct doca_rdma_connection *conn;
	struct doca_pe *pe;
	const void *details;
	size_t len;

	nicfail_find();
	OK(doca_rdma_set_connection_state_callbacks(rdma, NULL, on_established, on_failure, NULL));
	OK(doca_pe_create(&pe));
	OK(doca_pe_connect_ctx(pe, doca_rdma_as_ctx(rdma)));
	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_export(rdma, &details, &len, &conn));
	nicfail_next(2, 0x05, 0xbeef1, 0); /* the transition to RTR */
	REFUSED(DOCA_ERROR_DRIVER, "", doca_rdma_connect(rdma, details, len, conn));
	nicfail_next(0, 0, 0, 0);
	cr_expect_eq(doca_pe_progress(pe), 1);
	cr_expect(seen.failed == 1 && !seen.established);
	REFUSED(DOCA_ERROR_BAD_STATE, "has ended", doca_rdma_connect(rdma, details, len, conn));
	destroy(rdma);
	OK(doca_pe_destroy(pe));
}

/* ---- failures ---- */

static doca_error_t connect_two(struct doca_rdma *rdma)
{
	struct doca_rdma_connection *conn[2];
	const void *details[2];
	size_t len;
	doca_error_t err;

	err = doca_rdma_export(rdma, &details[0], &len, &conn[0]);
	if (!err)
		err = doca_rdma_export(rdma, &details[1], &len, &conn[1]);
	if (!err)
		err = doca_rdma_connect(rdma, details[1], len, conn[0]);
	if (!err)
		err = doca_rdma_connect(rdma, details[0], len, conn[1]);
	return err ? err : doca_rdma_connection_disconnect(conn[0]);
}

/* umem/slab.h, which includes headers of DOCA GPUNetIO open. Frees the queue memory that is kept
 * for the next queue pair: after a failure it may be of another kind than before. */
void gdk_slab_trim(const struct doca_gpu *of_gpu, const struct doca_dev *of_dev);

static enum doca_gpu_dev_verbs_nic_handler handler;

static doca_error_t whole_life(void)
{
	struct doca_rdma *rdma;
	doca_error_t err = doca_rdma_create(dev, &rdma), stopped;

	if (err)
		return err;
	OK(doca_rdma_set_max_num_connections(rdma, 2));
	OK(gdk_rdma_set_nic_handler(rdma, handler));
	OK(doca_ctx_set_datapath_on_gpu(doca_rdma_as_ctx(rdma), gpu));
	err = doca_ctx_start(doca_rdma_as_ctx(rdma));
	if (!err) {
		err = connect_two(rdma);
		stopped = doca_ctx_stop(doca_rdma_as_ctx(rdma));
		if (stopped) /* continues where it failed */
			OK(doca_ctx_stop(doca_rdma_as_ctx(rdma)));
		err = err ? err : stopped;
	}
	OK(doca_rdma_destroy(rdma));
	gdk_slab_trim(gpu, dev);
	return err;
}

/* If one kind of UAR fails, another is used. libmlx5 keeps a BlueFlame UAR for later. */
static void warm_up(void)
{
	struct doca_uar *uar;

	OK(doca_uar_create(dev, DOCA_UAR_ALLOCATION_TYPE_BLUEFLAME, &uar));
	OK(doca_uar_destroy(uar));
}

Test(doca_rdma_host, nothing_leaks_if_an_allocation_or_a_verbs_call_fails)
{
	warm_up();
	rig_faults_but(whole_life, 10, 10, 10);
}

Test(doca_rdma_host, nothing_leaks_if_a_firmware_command_fails)
{
	warm_up();
	rig_cmd_faults(whole_life, 10);
}

Test(doca_rdma_host, nothing_leaks_if_calls_fail_and_the_cpu_rings)
{
	handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	warm_up();
	rig_cmd_faults(whole_life, 10);
	rig_faults_but(whole_life, 10, 10, 10);
}

Test(doca_rdma_cuda, nothing_leaks_if_a_call_of_the_cuda_driver_fails)
{
	warm_up();
	rig_cuda_faults(whole_life, 10);
}
