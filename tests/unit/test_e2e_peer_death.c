/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The peer process is killed, or stopped for longer than all retries of the queue pair
 * take. A put to a killed peer ends with an error, which the log explains, long before its
 * timeout. A put to a stopped peer completes when the peer continues.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "../lib/capture.h"
#include "../lib/e2e.h"

#define BYTES	       4096u
#define RETRY_EXCEEDED 0x15

static struct e2e_peer peer;
static struct e2e_buf src;
static struct e2e_nic nic;
static struct e2e_qp qp;

static doca_gpu_dev_verbs_ticket_t put(uint8_t value)
{
	doca_gpu_dev_verbs_ticket_t t;

	memset(src.mem, value, BYTES);
	cr_assert_eq(gdk_put(qp.dev, e2e_addr((void *)peer.addr, peer.rkey),
			     e2e_addr(src.mem, src.mr->lkey), BYTES, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	return t;
}

/* Connects to a peer that answers a first put. */
static void begin(struct e2e_path path)
{
	e2e_peer_start(&peer, BYTES);
	e2e_open(&nic);
	e2e_qp_open(&nic, &qp, E2E_DB, 64);
	e2e_buf_open(&nic, &src, BYTES, IBV_ACCESS_LOCAL_WRITE);
	e2e_peer_connect(&peer, &nic.gid, qp.qpn);
	cr_assert_eq(e2e_connect(&nic, qp.hl->qp, &peer.gid, peer.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_wait(&qp, put(0x42)), 0);
	cr_assert_eq(memcmp(peer.mem, src.mem, BYTES), 0);
}

static void end(void)
{
	e2e_qp_close(&qp);
	e2e_buf_close(&src);
	e2e_close(&nic);
}

Test(e2e_peer_death, waiter_ends_with_retry_exceeded)
{
	/* The ACK timeout is 4.096 us << 24 = 69 s: only the end of the process ends the wait. */
	struct e2e_path path = { .ack_timeout = 24, .retry_cnt = 7 };
	struct doca_gpu_verbs_qp_error_info info;
	char expected[80];
	const char *log;

	begin(path);
	kill(peer.pid, SIGSTOP); /* the put must not be complete when the peer ends */
	capture_begin();
	put(0x43);
	e2e_peer_kill(&peer);
	e2e_peer_end(&peer);
	cr_expect_eq(e2e_wait(&qp, put(0x44)), -EIO);
	log = capture_end();
	snprintf(expected, sizeof(expected), " (pid %d) has ended or closed its NIC: failing",
		 (int)peer.pid);
	cr_expect(strstr(log, expected), "expected \"%s\": %s", expected, log);
	cr_assert_eq(doca_gpu_verbs_query_last_error(qp.hl->qp_gverbs, &info), DOCA_SUCCESS);
	cr_expect(info.has_error);
	cr_expect_eq(info.syndrome, RETRY_EXCEEDED, "syndrome 0x%x", info.syndrome);
	end();
}

/* The retries take 66 ms. */
Test(e2e_peer_death, stopped_peer_takes_the_data_later)
{
	struct e2e_path path = { .ack_timeout = 12, .retry_cnt = 3 };
	const struct timespec stop = { 0, 500000000 };
	doca_gpu_dev_verbs_ticket_t t;

	begin(path);
	kill(peer.pid, SIGSTOP);
	t = put(0x43);
	nanosleep(&stop, NULL);
	kill(peer.pid, SIGCONT);
	cr_assert_eq(e2e_wait(&qp, t), 0);
	cr_assert_eq(memcmp(peer.mem, src.mem, BYTES), 0);
	end();
	e2e_peer_end(&peer);
}
