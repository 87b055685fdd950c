/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Verbs functions of the SDK's interface on the software NIC: two QPs in external umems, connected
 * and exported to the GPU "host", move data; the order in which objects are destroyed.
 */
#include "doca_rig.h"
#include "device/gdk/recv_dev.h"
#include "device/gdk/send_dev.h"

/* Puts 1 KiB n times from the first half of a buffer to the second half. proxy: this thread also
 * rings, so it does not wait inside of the device functions. */
static void put_and_check(struct nic *n, struct side *s, bool proxy)
{
	const unsigned int num = 3 * DEPTH;
	doca_gpu_dev_verbs_ticket_t ticket;
	struct doca_gpu_dev_verbs_addr from, to;
	uint8_t *mem = aligned_alloc(4096, 2 * BYTES);
	struct ibv_mr *mr = ibv_reg_mr(n->pd, mem, 2 * BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	unsigned int i, k;

	cr_assert(mr);
	for (i = 0; i < num; i++) {
		size_t at = (i % 4) * 1024;

		memset(mem, 0, 2 * BYTES);
		for (k = 0; k < 1024; k++)
			mem[at + k] = (uint8_t)(i * 7 + k);
		from = gdk_addr((uintptr_t)mem + at, gdk_key(mr->lkey));
		to = gdk_addr((uintptr_t)mem + BYTES + at, gdk_key(mr->rkey));
		cr_assert_eq(gdk_put(s->device, to, from, 1024, &ticket,
				     gdk_how(DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
					     GDK_AUTO, GDK_THREAD, 0)),
			     0);
		if (proxy)
			OK(doca_gpu_verbs_cpu_proxy_progress(s->exported));
		cr_assert_eq(
			gdk_wait(s->device, ticket, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU),
			0);
		cr_assert_arr_eq(mem, mem + BYTES, BYTES, "put %u: wrong data", i);
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	free(mem);
}

static void move_data(enum gdk_uar_allocation_type type,
		      enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct nic n = nic_open();
	struct side a, b;

	side_open(&n, &a, type);
	side_open(&n, &b, type);
	cr_assert_neq(doca_verbs_qp_get_qpn(a.qp), doca_verbs_qp_get_qpn(b.qp));
	connect_to(&n, a.qp, b.qp);
	connect_to(&n, b.qp, a.qp);
	side_export(&n, &a, handler);
	put_and_check(&n, &a, handler == H(CPU_PROXY));
	side_close(&n, &a);
	side_close(&n, &b);
	nic_close(&n);
}

Test(doca_verbs, auto_handler_moves_data, .timeout = 60)
{
	move_data(DOCA_UAR_ALLOCATION_TYPE_NONCACHE, H(AUTO));
}

Test(doca_verbs, gpu_threads_ring_the_doorbell, .timeout = 60)
{
	move_data(DOCA_UAR_ALLOCATION_TYPE_NONCACHE, H(GPU_SM_DB));
}

Test(doca_verbs, gpu_threads_use_blueflame, .timeout = 60)
{
	move_data(DOCA_UAR_ALLOCATION_TYPE_BLUEFLAME, H(GPU_SM_BF));
}

Test(doca_verbs, a_cpu_thread_rings_the_doorbell, .timeout = 60)
{
	move_data(DOCA_UAR_ALLOCATION_TYPE_NONCACHE, H(CPU_PROXY));
}

/* NVIDIA's samples place the DBREC in memory of calloc() for a CPU proxy, and Holoscan all queues
 * in memory of kind CPU_GPU. */
Test(doca_verbs, queues_in_host_memory, .timeout = 60)
{
	struct nic n = nic_open();
	void *dbrec = calloc(4096, 1);
	struct side a = { .type = DOCA_VERBS_QP_TYPE_RC };

	OK(doca_uar_create(n.dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &a.uar));
	a.cq = cq_open(&n, &a, &a.cq_mem);
	a.cq_rq = cq_open(&n, &a, &a.cq_rq_mem);
	OK(doca_gpu_mem_alloc(n.gpu, QP_BYTES, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &a.qp_mem.mem,
			      &a.qp_mem.mem));
	OK(doca_umem_create(n.dev, a.qp_mem.mem, QP_BYTES, FLAGS, &a.qp_mem.umem));
	OK(doca_umem_create(n.dev, dbrec, 4096, FLAGS, &a.dbr_mem.umem));
	side_qp_open(&n, &a, qp_attr(&n, &a));
	connect_to(&n, a.qp, a.qp);
	side_export(&n, &a, H(CPU_PROXY));
	put_and_check(&n, &a, true);
	a.dbr_mem.mem = NULL;
	side_close(&n, &a);
	free(dbrec);
	nic_close(&n);
}

/* A QP without DBREC is exported as such, without an argument that says so. */
Test(doca_verbs, qp_without_dbrec, .timeout = 60)
{
	struct nic n = nic_open();
	struct doca_verbs_qp_init_attr *attr;
	struct doca_verbs_device_attr *device;
	struct side a;
	doca_error_t has;

	OK(doca_verbs_query_device(n.context, &device));
	OK(doca_verbs_device_attr_get_is_send_dbr_mode_supported(
		device, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID));
	has = doca_verbs_device_attr_get_is_send_dbr_mode_supported(
		device, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
	OK(doca_verbs_device_attr_free(device));
	if (has != DOCA_SUCCESS) {
		cr_assert_eq(has, DOCA_ERROR_NOT_SUPPORTED);
		nic_close(&n);
		cr_skip_test("the device has no queue pairs without DBREC");
	}
	attr = side_prepare(&n, &a, DOCA_VERBS_QP_TYPE_RC, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	OK(doca_verbs_qp_init_attr_set_send_dbr_mode(attr, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT));
	side_qp_open(&n, &a, attr);
	connect_to(&n, a.qp, a.qp);
	side_export(&n, &a, H(AUTO));
	put_and_check(&n, &a, false);
	side_close(&n, &a);
	nic_close(&n);
}

/* Creates a UC QP as Holoscan does. */
static void uc_open(struct nic *n, struct side *s)
{
	struct doca_verbs_qp_init_attr *attr;

	attr = side_prepare(n, s, DOCA_VERBS_QP_TYPE_UC, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	OK(doca_verbs_qp_init_attr_set_sq_sig_all(attr, 0));
	side_qp_open(n, s, attr);
}

/* Connects a UC QP with the attributes that Holoscan sets. */
static void uc_connect(struct nic *n, struct doca_verbs_qp *qp, struct doca_verbs_qp *peer)
{
	const int init = A(NEXT_STATE) | A(ALLOW_REMOTE_WRITE) | A(PKEY_INDEX) | A(PORT_NUM);
	const int rtr = A(NEXT_STATE) | A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR);
	struct doca_verbs_ah_attr *ah = path_to(n);
	struct doca_verbs_qp_attr *attr;

	OK(doca_verbs_qp_attr_create(&attr));
	set_values(n, attr);
	OK(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	OK(doca_verbs_qp_attr_set_dest_qp_num(attr, doca_verbs_qp_get_qpn(peer)));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_INIT));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "of a UC QP does not allow ALLOW_REMOTE_READ",
		doca_verbs_qp_modify(qp, attr, init | A(ALLOW_REMOTE_READ)));
	OK(doca_verbs_qp_modify(qp, attr, init));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTR));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "of a UC QP does not allow MIN_RNR_TIMER",
		doca_verbs_qp_modify(qp, attr, rtr | A(MIN_RNR_TIMER)));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "needs PATH_MTU",
		doca_verbs_qp_modify(qp, attr, rtr & ~A(PATH_MTU)));
	OK(doca_verbs_qp_modify(qp, attr, rtr));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS));
	OK(doca_verbs_qp_modify(qp, attr, A(NEXT_STATE) | A(SQ_PSN)));
	OK(doca_verbs_qp_attr_destroy(attr));
	OK(doca_verbs_ah_attr_destroy(ah));
}

/* Puts the first half of a buffer to the second half, and returns what the wait returns. */
static int put_half(struct side *s, uint8_t *mem, const struct ibv_mr *mr)
{
	const enum doca_gpu_dev_verbs_resource_sharing_mode mode =
		DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	doca_gpu_dev_verbs_ticket_t ticket;

	cr_assert_eq(gdk_put(s->device, gdk_addr((uintptr_t)mem + BYTES / 2, gdk_key(mr->rkey)),
			     gdk_addr((uintptr_t)mem, gdk_key(mr->lkey)), BYTES / 2, &ticket,
			     gdk_how(mode, GDK_AUTO, GDK_THREAD, 0)),
		     0);
	return gdk_wait(s->device, ticket, mode);
}

/* An unreliable write is complete when it was sent: the test waits for the data, and a write to a
 * QP that does not exist any more completes, too. */
Test(doca_verbs, unreliable_write_moves_data, .timeout = 60)
{
	struct nic n = nic_open();
	struct side a, b;
	struct ibv_mr *mr;
	uint8_t *mem = aligned_alloc(4096, BYTES);
	int i, waits;

	uc_open(&n, &a);
	uc_open(&n, &b);
	uc_connect(&n, a.qp, b.qp);
	uc_connect(&n, b.qp, a.qp);
	side_export(&n, &a, H(GPU_SM_DB));
	mr = ibv_reg_mr(n.pd, mem, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(mr);
	for (i = 1; i <= 100; i++) {
		memset(mem, i, BYTES / 2);
		cr_assert_eq(put_half(&a, mem, mr), 0);
		for (waits = 0; waits < 5000 && memcmp(mem, mem + BYTES / 2, BYTES / 2); waits++)
			usleep(1000);
		cr_assert_lt(waits, 5000, "write %d: the data did not arrive in 5 s", i);
	}
	side_close(&n, &b);
	cr_expect_eq(put_half(&a, mem, mr), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	free(mem);
	side_close(&n, &a);
	nic_close(&n);
}

/* ---- receives ---- */

#define EXCLUSIVE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE

/* Sends len bytes from `from` of a to a receive of b at `to`, and returns the receive's CQE. */
static struct doca_gpunetio_ib_mlx5_cqe64 *send_and_receive(struct side *a, struct side *b,
							    struct doca_gpu_dev_verbs_addr from,
							    struct doca_gpu_dev_verbs_addr to,
							    size_t len)
{
	const struct gdk_how how = gdk_how(EXCLUSIVE, GDK_AUTO, GDK_THREAD, 0);
	doca_gpu_dev_verbs_ticket_t sent, received;
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	cr_assert_eq(gdk_recv(b->device, to, BYTES, &received, how), 0);
	cr_assert_eq(gdk_send(a->device, from, len, &sent, how), 0);
	cr_assert_eq(gdk_recv_wait(b->device, received, to, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
				   EXCLUSIVE, &cqe),
		     0);
	cr_assert_eq(gdk_wait(a->device, sent, EXCLUSIVE), 0);
	cr_assert_eq(gdk_cqe_bytes(cqe), len);
	return cqe;
}

static void inline_open(struct nic *n, struct side *s)
{
	struct doca_verbs_qp_init_attr *attr;

	side_open(n, s, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	attr = qp_attr(n, s);
	OK(doca_verbs_qp_destroy(s->qp));
	OK(doca_verbs_qp_init_attr_set_cqe_inline(attr, 1));
	side_qp_open(n, s, attr);
}

/* The export with cq_rq includes the receive queue. Short messages are in the CQE of the QP that
 * was created with cqe_inline, and in the buffer of the other one. */
Test(doca_verbs, sends_and_receives, .timeout = 60)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct doca_verbs_device_attr *device;
	struct doca_gpu_dev_verbs_addr from, to;
	uint8_t *mem = aligned_alloc(4096, 2 * BYTES);
	struct nic n = nic_open();
	struct side a, b;
	struct ibv_mr *mr = ibv_reg_mr(n.pd, mem, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE);
	int i;

	cr_assert(mr);
	from = gdk_addr((uintptr_t)mem, gdk_key(mr->lkey));
	to = gdk_addr((uintptr_t)mem + BYTES, gdk_key(mr->lkey));
	OK(doca_verbs_query_device(n.context, &device));
	OK(doca_verbs_device_attr_get_is_cqe_inline_supported(device));
	OK(doca_verbs_device_attr_free(device));
	inline_open(&n, &a);
	side_open(&n, &b, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	connect_to(&n, a.qp, b.qp);
	connect_to(&n, b.qp, a.qp);
	side_export(&n, &a, H(AUTO));
	side_export(&n, &b, H(AUTO));
	for (i = 1; i <= 3 * (int)DEPTH; i++) {
		memset(mem, i, BYTES);
		memset(mem + BYTES, 0, BYTES);
		cqe = send_and_receive(&a, &b, from, to, BYTES);
		cr_assert_eq(gdk_cqe_is_inline(cqe), 0);
		cr_assert_arr_eq(mem, mem + BYTES, BYTES, "message %d: wrong data", i);
	}
	cqe = send_and_receive(&a, &b, from, to, 32);
	cr_assert_eq(gdk_cqe_is_inline(cqe), 0);
	memset(mem + BYTES, 0, BYTES);
	cqe = send_and_receive(&b, &a, from, to, 32);
	cr_assert_neq(gdk_cqe_is_inline(cqe), 0);
	cr_assert_arr_eq(gdk_cqe_inl_data(cqe), mem, 32);
	cr_assert_eq(mem[BYTES], 0, "written to the buffer, too");
	side_close(&n, &a);
	side_close(&n, &b);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	free(mem);
	nic_close(&n);
}

Test(doca_verbs, receives_need_cq_rq_at_the_export, .timeout = 60)
{
	const struct gdk_how how = gdk_how(EXCLUSIVE, GDK_AUTO, GDK_THREAD, 0);
	struct doca_gpu_dev_verbs_addr none = gdk_addr(0, gdk_key(0));
	doca_gpu_dev_verbs_ticket_t ticket;
	struct nic n = nic_open();
	struct side a;

	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	OK(doca_gpu_verbs_export_qp(n.gpu, n.dev, a.qp, H(AUTO), NULL, a.cq, NULL, &a.exported));
	OK(doca_gpu_verbs_get_qp_dev(a.exported, &a.device));
	cr_expect_eq(gdk_recv(a.device, none, 0, &ticket, how), -EOPNOTSUPP);
	side_close(&n, &a);
	nic_close(&n);
}

/* ---- asynchronous events ---- */

/* Moves a QP of libibverbs that uses an SRQ to state ERR, which raises LAST_WQE_REACHED. */
static struct ibv_qp *raise_event(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	cr_assert(qp);
	cr_assert_eq(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS),
		0);
	attr.qp_state = IBV_QPS_ERR;
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	return qp;
}

Test(doca_verbs, an_event_is_read_and_acknowledged, .timeout = 60)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct doca_verbs_async_event event = { .event_type = -1 };
	struct nic n = nic_open();
	struct ibv_cq *cq = ibv_create_cq(n.pd->context, 4, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(n.pd, &srq_init);
	doca_error_t err = DOCA_ERROR_AGAIN;
	struct ibv_qp *qp;
	int tries;

	cr_assert(cq && srq);
	cr_expect_eq(doca_verbs_get_async_event(n.context, &event), DOCA_ERROR_AGAIN);
	cr_expect_eq(event.event_type, -1, "written without an event");
	qp = raise_event(n.pd, srq, cq);
	for (tries = 0; tries < 5000 && err == DOCA_ERROR_AGAIN; tries++) {
		err = doca_verbs_get_async_event(n.context, &event);
		usleep(1000);
	}
	cr_assert_eq(err, DOCA_SUCCESS, "no event in 5 s");
	cr_expect_eq(event.event_type, (int)IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_expect_eq(event.gdk_element, (uintptr_t)qp);
	OK(doca_verbs_ack_async_event(&event));
	/* ibv_destroy_qp() waits until all events of the QP are acknowledged. */
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(doca_verbs_get_async_event(n.context, &event), DOCA_ERROR_AGAIN);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	nic_close(&n);
}

/* ---- the order of destruction ---- */

/* NVIDIA's samples destroy the protection domain and the context before they close the NIC. */
Test(doca_verbs, the_nic_is_closed_last)
{
	struct doca_verbs_context *context = open_context();
	struct doca_dev *dev, *second;
	struct doca_verbs_pd *pd;
	struct doca_uar *uar;
	struct ibv_pd *ibpd;

	OK(doca_verbs_pd_create(context, &pd));
	ibpd = doca_verbs_bridge_verbs_pd_get_ibv_pd(pd);
	OK(doca_rdma_bridge_open_dev_from_pd(ibpd, &dev));
	OK(doca_rdma_bridge_open_dev_from_pd(ibpd, &second));
	OK(doca_uar_create(dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar));
	OK(doca_verbs_pd_destroy(pd));
	OK(doca_verbs_context_destroy(context));
	OK(doca_dev_close(second));
	/* The context still exists: the kernel takes calls. */
	OK(doca_uar_destroy(uar));
	OK(doca_uar_create(dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar));
	OK(doca_uar_destroy(uar));
	OK(doca_dev_close(dev));
}

Test(doca_verbs, the_context_is_destroyed_after_the_nic)
{
	struct doca_verbs_context *context = open_context();
	struct doca_verbs_pd *pd, *other;
	struct doca_dev *dev;

	OK(doca_verbs_pd_create(context, &pd));
	OK(doca_verbs_pd_create(context, &other));
	OK(doca_rdma_bridge_open_dev_from_pd(doca_verbs_bridge_verbs_pd_get_ibv_pd(pd), &dev));
	OK(doca_verbs_pd_destroy(pd));
	REFUSED(DOCA_ERROR_IN_USE, "1 protection domains and 0 CQs still use it",
		doca_verbs_context_destroy(context));
	OK(doca_dev_close(dev));
	OK(doca_verbs_pd_destroy(other));
	OK(doca_verbs_context_destroy(context));
}

Test(doca_verbs, objects_in_use_are_not_destroyed)
{
	struct nic n = nic_open();
	struct ibv_mr *mr;
	struct side a;
	char mem[64];

	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	side_export(&n, &a, H(AUTO));
	REFUSED(DOCA_ERROR_IN_USE, "1 QPs still use it", doca_verbs_pd_destroy(n.vpd));
	REFUSED(DOCA_ERROR_IN_USE, "1 protection domains and 2 CQs still use it",
		doca_verbs_context_destroy(n.context));
	REFUSED(DOCA_ERROR_IN_USE, "still exported", doca_verbs_qp_destroy(a.qp));
	REFUSED(DOCA_ERROR_IN_USE, "queue pairs still use it", doca_verbs_cq_destroy(a.cq));
	REFUSED(DOCA_ERROR_IN_USE, "queues still use it", doca_umem_destroy(a.qp_mem.umem));
	REFUSED(DOCA_ERROR_IN_USE, "still use", doca_uar_destroy(a.uar));
	REFUSED(DOCA_ERROR_IN_USE, "still use it", doca_dev_close(n.dev));
	side_close(&n, &a);
	OK(doca_dev_close(n.dev));
	mr = ibv_reg_mr(n.pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE);
	cr_assert(mr);
	REFUSED(DOCA_ERROR_IN_USE, "memory regions", doca_verbs_pd_destroy(n.vpd));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	OK(doca_verbs_pd_destroy(n.vpd));
	OK(doca_verbs_context_destroy(n.context));
	OK(doca_gpu_destroy(n.gpu));
}
