/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receive queues at their limits: in memory that was used before, of one and two WQEs, and with
 * wrong arguments.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../lib/capture.h"
#include "../lib/recv_rig.h"
#include "device/gdk/srq_dev.h"

#define CTA   DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define NO_FD ((int)DOCA_VERBS_DMABUF_INVALID_FD)

static const struct doca_gpu_dev_verbs_addr nothing;
static const gdk_mode_t modes[] = { E2E_EXCL, CTA, E2E_MODE };
static struct recv_rig r;

static struct gdk_how how(gdk_mode_t mode)
{
	return gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
}

static int wait_recv(uint64_t ticket, gdk_mode_t mode, struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	return gdk_recv_wait(r.b.dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED, mode,
			     cqe);
}

/* ---- memory that was used before ---- */

/* Allocated GPU memory has the contents of its last use. Here three WQEs were posted to a DBREC at
 * offset dbrec. */
static void *used_memory(struct e2e_nic *nic, size_t bytes, size_t dbrec, doca_verbs_umem_t **umem)
{
	const uint32_t posted[2] = { htobe32(3), htobe32(3) };
	uint8_t *mem = aligned_alloc(4096, bytes);

	cr_assert(mem);
	memset(mem, 0xff, bytes);
	memcpy(mem + dbrec, posted, sizeof(posted));
	cr_assert_eq(doca_verbs_umem_create(nic->dev, nic->gpu, mem, bytes, IBV_ACCESS_LOCAL_WRITE,
					    NO_FD, 0, umem),
		     DOCA_SUCCESS);
	return mem;
}

static doca_verbs_umem_t *used_umem;

static void use_umem(doca_verbs_qp_init_attr_t *init)
{
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_external_umem(init, used_umem, 0));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_external_umem_dbr(init, used_umem, 65536));
}

Test(recv_edges, a_queue_pair_in_used_memory_begins_without_receives)
{
	uint64_t sent, ticket;
	uint32_t *dbrec;
	void *mem;

	e2e_open(&r.nic);
	mem = used_memory(&r.nic, 131072, 65536, &used_umem);
	dbrec = (uint32_t *)((uint8_t *)mem + 65536);
	recv_end_open(&r.nic, &r.a, (struct recv_rig_how){ .handler = E2E_DB }, NULL);
	recv_end_open(&r.nic, &r.b, (struct recv_rig_how){ .handler = E2E_DB }, use_umem);
	cr_expect_eq(dbrec[0], 0, "receives");
	cr_expect_eq(dbrec[1], 0, "sends");
	cr_expect_eq(dbrec[2], 0xffffffff, "the memory behind the DBREC is not cleared");
	recv_rig_connect(&r);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, how(E2E_MODE)), 0);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_MODE), -EIO, "receiver not ready");
	cr_assert_eq(gdk_qp_status(r.b.dev), 0);
	cr_assert_eq(gdk_poll_one_cq_at(gdk_qp_cq_rq(r.b.dev), 0, E2E_MODE), EBUSY);
	cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &ticket, how(E2E_MODE)), 0);
	cr_assert_eq(dbrec[0], htobe32(1));
	recv_end_close(&r.a);
	recv_end_close(&r.b);
	cr_assert_eq(doca_verbs_umem_destroy(used_umem), DOCA_SUCCESS);
	free(mem);
	e2e_close(&r.nic);
}

Test(recv_edges, a_shared_receive_queue_in_used_memory_begins_without_receives)
{
	struct doca_verbs_srq_init_attr *attr;
	struct doca_verbs_srq *srq;
	struct e2e_nic nic;
	uint32_t *dbrec;
	void *mem;

	e2e_open(&nic);
	mem = used_memory(&nic, 65536, 4096 + 256, &used_umem);
	E2E_REQUIRE(!doca_verbs_srq_init_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_srq_wr(attr, 16));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_type(attr, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_pd(attr, nic.pd));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_external_umem(attr, used_umem, 4096));
	E2E_REQUIRE(!doca_verbs_srq_create(nic.ctx, attr, &srq));
	dbrec = doca_verbs_srq_get_dbr_addr(srq);
	cr_assert_eq(dbrec, (uint32_t *)((uint8_t *)mem + 4096 + 256));
	cr_expect_eq(dbrec[0], 0);
	cr_expect_eq(dbrec[2], 0xffffffff, "the memory behind the DBREC is not cleared");
	E2E_REQUIRE(!doca_verbs_srq_init_attr_destroy(attr));
	E2E_REQUIRE(!doca_verbs_srq_destroy(srq));
	E2E_REQUIRE(!doca_verbs_umem_destroy(used_umem));
	free(mem);
	e2e_close(&nic);
}

/* ---- rings of one and two WQEs ---- */

/* Posts one receive in one of four ways. */
static void post_by(unsigned int way, uint64_t idx, gdk_mode_t mode)
{
	const gdk_key_t key = gdk_key(r.b.buf.mr->lkey);
	const uint64_t addr = (uintptr_t)r.b.buf.mem;
	uint64_t got = idx;

	switch (way) {
	case 0:
		cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &got, how(mode)), 0);
		break;
	case 1:
		gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, idx), addr, key, 64);
		cr_assert_eq(gdk_rq_submit(r.b.dev, idx + 1, how(mode)), 0);
		break;
	case 2:
		gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, idx), addr, key, 64);
		gdk_rq_update_dbr(r.b.dev, (uint32_t)idx + 1);
		break;
	default:
		cr_assert_eq(gdk_rq_reserve(r.b.dev, 1, mode, 0, &got), 0);
		gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, got), addr, key, 64);
		gdk_rq_mark_ready(r.b.dev, got, got, mode);
		cr_assert_eq(gdk_rq_submit(r.b.dev, got + 1, how(mode)), 0);
	}
	cr_assert_eq(got, idx);
}

static void tiny(uint32_t rq_wr, gdk_mode_t mode, uint64_t messages)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = rq_wr, .sges = 4 });
	cr_assert_eq(r.b.dev->rq_wqe_num, rq_wr);
	for (uint64_t i = 0; i < messages; i++) {
		/* The update of the DBREC takes the slots as shared by all threads. */
		unsigned int way = (unsigned int)(i * 7 / 3 % (mode == E2E_EXCL ? 2 : 4));

		post_by(way, i, mode);
		cr_assert_eq(recv_dbrec(&r.b), (i + 1) & 0xffff, "mode %d, receive %lu, way %u",
			     mode, i, way);
		memcpy(r.a.buf.mem, &i, sizeof(i));
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, how(E2E_EXCL)), 0);
		cr_assert_eq(wait_recv(i, mode, &cqe), 0, "mode %d, receive %lu, way %u", mode, i,
			     way);
		cr_assert_eq(be16toh(cqe->wqe_counter), i & 0xffff);
		cr_assert_eq(memcmp(r.b.buf.mem, &i, sizeof(i)), 0);
		cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
	}
	/* Nothing is above a whole ring. */
	cr_assert_eq(gdk_rq_submit(r.b.dev, messages + rq_wr + 1, how(mode)), -EINVAL);
	cr_assert_eq(gdk_qp_status(r.b.dev), 0);
	recv_rig_close(&r);
}

Test(recv_edges, rings_of_one_and_two_receives)
{
	for (uint32_t rq_wr = 1; rq_wr <= 2; rq_wr++)
		for (unsigned int m = 0; m < 3; m++)
			tiny(rq_wr, modes[m], 1000);
}

/* A doorbell of sends covers at most 16384 slots; a submit of receives offers the whole ring. */
Test(recv_edges, a_ring_of_32768_receives_is_offered_at_once)
{
	const uint32_t depth = 32768;
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent, n;

	for (unsigned int m = 0; m < 3; m++) {
		recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = depth });
		for (n = 0; n < depth; n++)
			gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, n), (uintptr_t)r.b.buf.mem,
				     gdk_key(r.b.buf.mr->lkey), 64);
		cr_assert_eq(gdk_rq_submit(r.b.dev, depth, how(modes[m])), 0);
		cr_assert_eq(recv_dbrec(&r.b), depth, "mode %d", modes[m]);
		cr_assert_eq(gdk_rq_submit(r.b.dev, depth + 1, how(modes[m])), 0,
			     "the caller vouches for slot 0, although no receive is complete");
		for (n = 0; n < 3; n++) {
			cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, how(E2E_EXCL)),
				     0);
			cr_assert_eq(wait_recv(n, modes[m], &cqe), 0);
			cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
		}
		recv_rig_close(&r);
	}
}

/* ---- wrong arguments ---- */

/* None of them ends the queue pair or offers a receive. */
Test(recv_edges, wrong_indices_are_refused)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t idx, sent;

	for (unsigned int m = 0; m < 3; m++) {
		recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 8 });
		cr_assert_eq(gdk_rq_reserve(r.b.dev, 0, modes[m], 0, &idx), -EINVAL);
		cr_assert_eq(gdk_rq_reserve(r.b.dev, 9, modes[m], 0, &idx), -EINVAL);
		cr_assert_eq(gdk_rq_reserve(r.b.dev, UINT32_MAX, modes[m], 0, &idx), -EINVAL);
		cr_assert_eq(gdk_rq_submit(r.b.dev, 9, how(modes[m])), -EINVAL);
		cr_assert_eq(gdk_rq_submit(r.b.dev, UINT64_MAX, how(modes[m])), -EINVAL);
		cr_assert_eq(gdk_rq_submit(r.b.dev, 0, how(modes[m])), 0);
		gdk_rq_update_dbr(r.b.dev, 9);
		gdk_rq_update_dbr(r.b.dev, UINT32_MAX);
		gdk_rq_mark_ready(r.b.dev, 1, 0, modes[m]);
		cr_assert_eq(recv_dbrec(&r.b), 0, "mode %d", modes[m]);
		cr_assert_eq(gdk_qp_status(r.b.dev), 0);
		for (idx = 0; idx < 20; idx++) {
			post_by(0, idx, modes[m]);
			cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, how(E2E_EXCL)),
				     0);
			cr_assert_eq(wait_recv(idx, modes[m], &cqe), 0);
			cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
		}
		recv_rig_close(&r);
	}
}

/* A ticket that was never posted: the wait ends at its limit. */
Test(recv_edges, a_wait_for_a_receive_that_was_not_posted_has_a_limit)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	for (unsigned int m = 0; m < 3; m++) {
		recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 8 });
		cr_assert_eq(gdk_verbs_qp_set_wait_limit(r.b.ex, 1000000), DOCA_SUCCESS);
		cr_assert_eq(wait_recv(m == 1 ? UINT64_MAX : 1000000 * m, modes[m], &cqe),
			     -ETIMEDOUT, "mode %d", modes[m]);
		cr_assert_eq(gdk_qp_status(r.b.dev), -ETIMEDOUT);
		recv_rig_close(&r);
	}
}

/* ---- CQs of sends that receive, too ---- */

static void share_cq(doca_verbs_qp_init_attr_t *init)
{
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_receive_cq(init, r.a.scq));
}

Test(recv_edges, the_export_warns_if_receives_complete_to_the_send_cq)
{
	const char *log;

	e2e_open(&r.nic);
	capture_begin();
	recv_end_open(&r.nic, &r.a, (struct recv_rig_how){ .handler = E2E_DB, .no_rq = true },
		      share_cq);
	log = capture_end();
	cr_expect(strstr(log, "is also its receive CQ"), "log: %s", log);
	recv_end_close(&r.a);
	capture_begin();
	recv_end_open(&r.nic, &r.a, (struct recv_rig_how){ .handler = E2E_DB, .no_rq = true },
		      NULL);
	log = capture_end();
	cr_expect_null(strstr(log, "receive CQ"), "log: %s", log);
	recv_end_close(&r.a);
	e2e_close(&r.nic);
}

static struct doca_verbs_srq *srq_of(struct ibv_pd *pd)
{
	struct doca_verbs_srq_init_attr *attr;
	struct doca_verbs_srq *srq;

	E2E_REQUIRE(!doca_verbs_srq_init_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_srq_wr(attr, 16));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_type(attr, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_pd(attr, pd));
	E2E_REQUIRE(!doca_verbs_srq_create(pd->context, attr, &srq));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_destroy(attr));
	return srq;
}

/* A doorbell offers the slots up to the reposted one and no other; SKIP_DB leaves the slot to the
 * next doorbell. */
static void expect_offers(struct doca_gpu_dev_verbs_qp *srq, const uint32_t *dbrec, gdk_mode_t mode)
{
	struct gdk_how skip = gdk_how(mode, GDK_AUTO, GDK_THREAD, GDK_OPT_SKIP_DB);

	cr_expect_eq(gdk_srq_repost(srq, 0, how(mode)), -EINVAL, "not all slots were posted");
	cr_assert_eq(gdk_srq_submit(srq, 16, how(mode)), 0);
	cr_expect_eq(be32toh(*dbrec), 16);
	cr_assert_eq(gdk_srq_repost(srq, 0, how(mode)), 0);
	cr_expect_eq(be32toh(*dbrec), 17);
	cr_assert_eq(gdk_srq_repost(srq, 1, skip), 0);
	cr_expect_eq(be32toh(*dbrec), 17, "mode %d: offered in spite of SKIP_DB", (int)mode);
	cr_assert_eq(gdk_srq_repost(srq, 3, how(mode)), 0);
	cr_expect_eq(be32toh(*dbrec), 18, "mode %d: slot 2 is not posted", (int)mode);
	cr_assert_eq(gdk_srq_repost(srq, 2, how(mode)), 0);
	cr_expect_eq(be32toh(*dbrec), 20);
}

Test(recv_edges, reposts_to_a_shared_receive_queue_offer_in_order)
{
	struct doca_gpu_dev_verbs_qp *dev;
	struct doca_verbs_srq *srq;
	struct e2e_nic nic;
	size_t i;

	e2e_open(&nic);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		srq = srq_of(nic.pd);
		E2E_REQUIRE(!gdk_verbs_export_srq(nic.gpu, srq, &dev));
		expect_offers(dev, doca_verbs_srq_get_dbr_addr(srq), modes[i]);
		E2E_REQUIRE(!gdk_verbs_unexport_srq(srq));
		E2E_REQUIRE(!doca_verbs_srq_destroy(srq));
	}
	e2e_close(&nic);
}
