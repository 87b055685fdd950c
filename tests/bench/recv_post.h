/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The threads that the benchmark of receives measures, on a GPU or on the CPU. */
#ifndef RECV_POST_H
#define RECV_POST_H

#include "recv_nic.h"

#define RECV_MODE(name) DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_##name

RECV_FN struct doca_gpu_dev_verbs_addr recv_addr(uint64_t addr)
{
	struct doca_gpu_dev_verbs_addr a;

	a.addr = addr;
	a.key = RECV_LKEY;
	return a;
}

/*
 * Whether a CQE is that of receive `ticket`, or, if other threads complete whole laps of the ring
 * before this thread reads it, that of a later lap. A CQE has the low 16 bits of its index. begun:
 * as in struct recv_job; the CQE is then the newest one below *begun that has these bits, so that
 * the thread may stop for longer than it takes to complete 32768 receives.
 */
RECV_FN int recv_is_cqe(const struct doca_gpu_dev_verbs_qp *qp, uint64_t ticket,
			const uint64_t *begun, const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	const uint32_t word = gdk_ld32((const uint32_t *)(const void *)((const char *)cqe + 60),
				       GDK_SCOPE_SYS);
	const uint16_t low = (uint16_t)(post_swap32(word) >> 16);
	int64_t later = (int16_t)(low - (uint16_t)ticket);
	uint64_t last;

	if (begun) {
		gdk_fence_acq(GDK_SCOPE_GPU); /* the CQE, then *begun, which rose before it */
		last = gdk_ld64(begun, GDK_SCOPE_GPU) - 1;
		later = (int64_t)(last - (uint16_t)((uint16_t)last - low) - ticket);
	}
	return later >= 0 && !((uint32_t)later & (gdk_ldc32(&qp->rq_wqe_num) - 1));
}

/* Whether the NIC is about to write the CQE of receive `ticket`, so that a wait may have returned
 * after a later CQE of the same round. Waits until the CQE is written. */
RECV_FN int recv_follows(const struct doca_gpu_dev_verbs_qp *qp, uint64_t ticket,
			 const uint64_t *begun, const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	const uint64_t start = gdk_now_ns();
	uint32_t spins = 0;

	if (!begun || gdk_ld64(begun, GDK_SCOPE_GPU) <= ticket)
		return 0;
	while (!recv_is_cqe(qp, ticket, begun, cqe)) {
		if (gdk_now_ns() - start > RECV_WAIT_NS)
			return 0;
		gdk_relax(spins++);
	}
	gdk_fence_acq(GDK_SCOPE_GPU);
	return 1;
}

/* Waits for a receive and checks its CQE. begun: as in struct recv_job, or NULL if the CQEs are
 * written in their order. */
RECV_FN uint32_t recv_check(struct doca_gpu_dev_verbs_qp *qp, uint64_t ticket, uint32_t bytes,
			    gdk_mode_t mode, const uint64_t *begun,
			    struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	if (gdk_recv_wait(qp, ticket, recv_addr(0), DOCA_GPUNETIO_VERBS_MCST_DISABLED, mode, cqe))
		return RECV_BAD_STATUS;
	/* Without `begun` first: its fence would be in the measured time. */
	if (!recv_is_cqe(qp, ticket, NULL, *cqe) && !recv_is_cqe(qp, ticket, begun, *cqe) &&
	    !recv_follows(qp, ticket, begun, *cqe))
		return RECV_BAD_CQE;
	return gdk_cqe_bytes(*cqe) != bytes ? RECV_BAD_CQE : 0;
}

struct recv_load {
	struct doca_gpu_dev_verbs_qp *qp;
	const uint64_t *begun; /* as in struct recv_job */
	uint32_t iters;
	uint32_t window; /* receives of one thread between its posts and its waits; 0: no waits */
};

/*
 * Thread `thread` of `threads` posts `iters` receives. The only thread of an exclusive queue pair
 * waits for the receive that it posted `window` posts ago. Any other waits for its last one.
 * A call that fails ends the QP, so that later calls return at once.
 */
RECV_FN void recv_again(const struct recv_load *l, struct recv_seen *out, uint32_t thread,
			uint32_t threads, gdk_mode_t mode, gdk_exec_t scope, int waits)
{
	const struct gdk_how how = gdk_how(mode, GDK_DB, scope, 0);
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	doca_gpu_dev_verbs_ticket_t ticket = 0;
	uint64_t k = thread, wait;
	uint32_t i, bad = 0;

	for (i = 0; i < l->iters; i++, k += threads) {
		if (waits && i >= l->window) {
			wait = threads == 1 ? i - l->window : ticket;
			bad |= recv_check(l->qp, wait, recv_bytes(wait), mode, l->begun, &cqe);
		}
		if (gdk_recv(l->qp, recv_addr(RECV_LADDR + k * RECV_STEP), RECV_BYTES, &ticket,
			     how))
			bad |= RECV_BAD_STATUS;
		else if (threads == 1 && ticket != i)
			bad |= RECV_BAD_TICKET;
		if (bad & RECV_BAD_STATUS && scope == GDK_THREAD)
			break;
	}
	if (bad) {
		RECV_ADD(&out->wrong, 1);
		RECV_BITS(&out->bad, bad);
	}
}

/* ---- round trip ---- */

struct recv_side {
	struct doca_gpu_dev_verbs_qp *qp;
	uint64_t send_buf, recv_buf;
	uint32_t qpn, peer_qpn;
	uint32_t rounds;
	uint32_t *took; /* of each round trip; NULL: this side answers */
};

RECV_FN uint32_t recv_post_buffer(const struct recv_side *s, uint64_t i, gdk_mode_t mode)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	if (gdk_recv(s->qp, recv_addr(s->recv_buf + i % RECV_BUFFERS * RECV_LINE), RECV_MESSAGE,
		     &ticket, gdk_how(mode, GDK_DB, GDK_THREAD, 0)))
		return RECV_BAD_STATUS;
	return ticket != i ? RECV_BAD_TICKET : 0;
}

RECV_FN uint32_t recv_send(const struct recv_side *s, uint64_t i, gdk_mode_t mode, int imm)
{
	const uint64_t at = s->send_buf + i % RECV_BUFFERS * RECV_LINE;
	const struct gdk_how how = gdk_how(mode, GDK_DB, GDK_THREAD, 0);
	doca_gpu_dev_verbs_ticket_t ticket;
	int err;

	gdk_st64((uint64_t *)(uintptr_t)at, recv_payload(s->qpn, i), GDK_SCOPE_GPU);
	if (imm)
		err = gdk_send_imm(s->qp, recv_addr(at), RECV_MESSAGE, recv_imm(s->qpn, i), &ticket,
				   how);
	else
		err = gdk_send(s->qp, recv_addr(at), RECV_MESSAGE, &ticket, how);
	return err ? RECV_BAD_STATUS : ticket != i ? RECV_BAD_TICKET : 0;
}

RECV_FN uint32_t recv_message(const struct recv_side *s, uint64_t i,
			      const struct doca_gpunetio_ib_mlx5_cqe64 *cqe, int imm)
{
	const uint64_t *data =
		(const uint64_t *)(uintptr_t)(s->recv_buf + i % RECV_BUFFERS * RECV_LINE);
	uint32_t bad = gdk_ld64(data, GDK_SCOPE_GPU) != recv_payload(s->peer_qpn, i)
			       ? RECV_BAD_PAYLOAD
			       : 0;

	return bad | (imm && gdk_cqe_imm(cqe) != recv_imm(s->peer_qpn, i) ? RECV_BAD_CQE : 0);
}

/* One thread of each side. The receives are posted in advance, so that posting one again is not
 * in the measured time. */
RECV_FN void recv_ping(const struct recv_side *s, struct recv_seen *out, gdk_mode_t mode, int imm)
{
	struct recv_seen mine = { 0, 0, 0, 0, 0, 0, 0 };
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint32_t i, bad = 0, posted;
	uint64_t start = 0;

	for (posted = 0; posted < RECV_BUFFERS / 2; posted++)
		bad |= recv_post_buffer(s, posted, mode);
	for (i = 0; i < s->rounds && !(bad & RECV_BAD_STATUS); i++, posted++) {
		if (s->took) {
			start = RECV_CLOCK();
			bad |= recv_send(s, i, mode, imm);
		}
		bad |= recv_check(s->qp, i, RECV_MESSAGE, mode, NULL, &cqe);
		if (s->took)
			s->took[i] = (uint32_t)(RECV_CLOCK() - start);
		if (!(bad & RECV_BAD_STATUS))
			bad |= recv_message(s, i, cqe, imm);
		if (!s->took)
			bad |= recv_send(s, i, mode, imm);
		bad |= recv_post_buffer(s, posted, mode);
	}
	mine.verified = i;
	recv_wrong(&mine, bad);
	*out = mine;
}

#endif
