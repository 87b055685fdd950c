/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * After the peer process is killed, a wait for a put to it must end with an error in
 * bounded time, and the CQE must report that the retry count was exceeded.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../lib/e2e.h"

#define BYTES	       4096u
#define RETRY_EXCEEDED 0x15

Test(e2e_peer_death, waiter_ends_with_retry_exceeded)
{
	/* The ACK timeout is 4.096 us << 16 = 0.27 s, and each packet is sent up to 8 times: the
	 * peer answers in time even if other processes use both processors. */
	struct e2e_path path = { .ack_timeout = 16, .retry_cnt = 7 };
	struct doca_gpu_verbs_qp_error_info info;
	doca_gpu_dev_verbs_ticket_t t;
	struct e2e_peer peer;
	struct e2e_buf src;
	struct e2e_nic nic;
	struct e2e_qp qp;
	uint64_t start;

	e2e_peer_start(&peer, BYTES);
	e2e_open(&nic);
	e2e_qp_open(&nic, &qp, E2E_DB, 64);
	e2e_buf_open(&nic, &src, BYTES, IBV_ACCESS_LOCAL_WRITE);
	memset(src.mem, 0x42, BYTES);
	e2e_peer_connect(&peer, &nic.gid, qp.qpn);
	cr_assert_eq(e2e_connect(&nic, qp.hl->qp, &peer.gid, peer.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(gdk_put(qp.dev, e2e_addr((void *)peer.addr, peer.rkey),
			     e2e_addr(src.mem, src.mr->lkey), BYTES, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&qp, t), 0);
	cr_assert_eq(memcmp(peer.mem, src.mem, BYTES), 0);

	e2e_peer_kill(&peer);
	e2e_peer_end(&peer);
	start = e2e_now_ns();
	cr_assert_eq(gdk_put(qp.dev, e2e_addr((void *)peer.addr, peer.rkey),
			     e2e_addr(src.mem, src.mr->lkey), BYTES, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_expect_eq(e2e_wait(&qp, t), -EIO);
	cr_expect_lt(e2e_now_ns() - start, 5000000000ull);
	cr_assert_eq(doca_gpu_verbs_query_last_error(qp.hl->qp_gverbs, &info), DOCA_SUCCESS);
	cr_expect(info.has_error);
	cr_expect_eq(info.syndrome, RETRY_EXCEEDED, "syndrome 0x%x", info.syndrome);
	e2e_qp_close(&qp);
	e2e_buf_close(&src);
	e2e_close(&nic);
}
