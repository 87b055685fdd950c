/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Completion queues: CQEs of 64 bytes (the second half of a 128-byte entry), overrun,
 * resizing, arming and events. The ownership bit alternates with each lap. The last
 * word is stored last. Release: a program that sees it must also see the rest of the
 * CQE and the payload; pairs with the acquire in the program's poll. A collapsed CQ
 * has only entry 0 and cannot overrun.
 *
 * Short received data may be in the CQE: at offset 0 of its 64 bytes, or, if 64 bytes are
 * permitted, in the first half of a 128-byte entry. A bit of the last byte tells which
 * (MLX5_INLINE_SCATTER_32 and _64 in mlx5dv.h of rdma-core); libmlx5 reads the data there
 * (handle_responder() in providers/mlx5/cq.c). Guesses: with 64 bytes permitted, up to 32 bytes
 * are in the first half, too; a message of 0 bytes sets no bit.
 */
#include <errno.h>
#include <stdlib.h>

#include "eng.h"
#include "eth.h"

#define CI_MASK	      0xffffffu
#define ARM_SOLICITED (1u << 24)
#define INLINE_32     0x04 /* in the last byte */
#define INLINE_64     0x08

static uint32_t dbr_load(const struct sn_cq_eng *c, unsigned word)
{
	uint64_t at = c->cq->dbr + 4 * word;
	uint32_t v = 0;

	if (c->dbr_gpu)
		sn_mem_read(true, at, &v, 4);
	else
		v = __atomic_load_n((uint32_t *)(uintptr_t)at, __ATOMIC_ACQUIRE);
	return v;
}

static void fail(struct sn_eng *e, struct sn_cq *cq, uint8_t syndrome)
{
	cq->error = syndrome;
	sn_event_async_cq(e->dev, cq, SN_ASYNC_CQ_ERR);
}

/*
 * Compares the indices modulo twice the CQ's size. Drivers need not store all 24 bits of the
 * consumer index: DPDK counts the completions of a send queue with 16 bits.
 */
static bool overrun(struct sn_eng *e, struct sn_cq *cq)
{
	struct sn_cq_eng *c = cq->eng;
	uint32_t size = 1u << cq->log_size, mask = 2 * size - 1;

	if (cq->oi || cq->cc || !cq->dbr)
		return false;
	if (((cq->pi - c->ci) & mask) >= size)
		c->ci = be32toh(dbr_load(c, 0)) & CI_MASK;
	if (((cq->pi - c->ci) & mask) < size)
		return false;
	sn_violation(&e->dev->stats.cq_overrun,
		     "dropping completion: CQ 0x%x overrun, all %u entries are unread", cq->cqn,
		     size);
	fail(e, cq, SN_CQ_OVERRUN);
	return true;
}

/* The fields of a received frame. The flow tag takes the place of the QP number. */
static void fill_eth(uint8_t cqe[64], const struct sn_cqe_eth *eth)
{
	sn_put32(cqe + 12, eth->hash);
	cqe[16] = eth->hash_type;
	cqe[20] = eth->csum >> 8;
	cqe[21] = (uint8_t)eth->csum;
	sn_put32(cqe + 28, (uint32_t)eth->type << 16 | eth->vlan);
	sn_put32(cqe + 56, eth->flow_tag & 0xffffff);
}

static void fill(uint8_t cqe[64], const struct sn_cq *cq, const struct sn_qp *qp,
		 const struct sn_cqe_args *a, uint64_t now)
{
	memset(cqe, 0, 64);
	sn_put32(cqe + 32, qp->uidx);
	sn_put32(cqe + 56, (uint32_t)a->wqe_opcode << 24 | qp->qpn);
	cqe[60] = a->counter >> 8;
	cqe[61] = a->counter;
	cqe[63] = a->opcode << 4 | a->solicited << 1 | (cq->pi >> cq->log_size & 1);
	if (a->opcode >= SN_CQE_REQ_ERR) {
		cqe[54] = a->vendor;
		cqe[55] = a->synd;
		return;
	}
	cqe[22] = a->slid >> 8;
	cqe[23] = a->slid;
	sn_put32(cqe + 24, a->flags_rqpn);
	memcpy(cqe + 36, &a->imm, 4);
	sn_put32(cqe + 44, a->byte_cnt);
	sn_put64(cqe + 48, now);
	if (a->eth)
		fill_eth(cqe, a->eth);
	if (!a->inl)
		return;
	cqe[63] |= a->inl_room == 32 ? INLINE_32 : INLINE_64;
	if (a->inl_room == 32)
		memcpy(cqe, a->inl, a->inl_len);
}

static uint64_t stamp(struct sn_eng *e, const struct sn_qp *qp)
{
	return sn_clock_stamp(e, sn_clock_real(e->dev, qp));
}

static void set_due(struct sn_eng *e, struct sn_cq *cq, uint64_t due)
{
	e->ndue += (due != 0) - (cq->eng->due != 0);
	cq->eng->due = due;
}

static void fire(struct sn_eng *e, struct sn_cq *cq)
{
	set_due(e, cq, 0);
	cq->armed = false;
	cq->notified = cq->pi;
	sn_mem_settle();
	sn_event_completion(e->dev, cq);
}

static void notify(struct sn_eng *e, struct sn_cq *cq, bool solicited)
{
	if (!cq->armed || (cq->armed_solicited && !solicited))
		return;
	if (!cq->mod_count || !cq->mod_period || cq->pi - cq->notified >= cq->mod_count)
		fire(e, cq);
	else if (!cq->eng->due)
		set_due(e, cq, e->now + cq->mod_period * 1000ull);
}

/* Sends the delayed events that are due. */
void sn_cq_due(struct sn_eng *e)
{
	struct sn_cq_eng *c;

	for (c = e->ndue ? e->cqs : NULL; c; c = c->next)
		if (c->due && e->now >= c->due)
			fire(e, c->cq);
}

/* Changes the moderation. If an event is delayed, sends it now. */
void sn_eng_cq_moderate(struct sn_dev *dev, struct sn_cq *cq, uint16_t count, uint16_t period)
{
	cq->mod_count = count;
	cq->mod_period = period;
	if (cq->eng && cq->eng->due)
		fire(dev->eng, cq);
}

/* Writes one CQE. Returns false if the CQ is in error or now goes to error, by an overrun or
 * because its memory cannot be written. */
static bool put(struct sn_eng *e, struct sn_cq *cq, const struct sn_qp *qp,
		const struct sn_cqe_args *a)
{
	uint64_t slot = cq->cc ? 0 : cq->pi & ((1u << cq->log_size) - 1);
	uint64_t at = cq->buf + slot * cq->cqe_size + (cq->cqe_size == 128 ? 64 : 0);
	uint8_t cqe[64];
	uint32_t last;

	if (cq->error || !cq->eng || overrun(e, cq))
		return false;
	fill(cqe, cq, qp, a, stamp(e, qp));
	memcpy(&last, cqe + 60, 4);
	if ((a->inl && a->inl_room == 64 &&
	     sn_mem_write(cq->eng->gpu, at - 64, a->inl, a->inl_len)) ||
	    sn_mem_write(cq->eng->gpu, at, cqe, 60)) {
		fail(e, cq, SN_CQ_ACCESS);
		return false;
	}
	if (cq->eng->gpu)
		sn_mem_write(true, at + 60, &last, 4);
	else
		__atomic_store_n((uint32_t *)(uintptr_t)(at + 60), last, __ATOMIC_RELEASE);
	cq->pi++;
	return true;
}

void sn_cqe_write(struct sn_eng *e, struct sn_cq *cq, struct sn_qp *qp, const struct sn_cqe_args *a)
{
	bool error = a->opcode >= SN_CQE_REQ_ERR;

	if (!put(e, cq, qp, a)) {
		e->cq_failed |= cq->error;
		return;
	}
	SN_COUNT(e, qp, cqes, 1);
	SN_COUNT(e, qp, error_cqes, error);
	SN_COUNT(e, qp, inline_cqes, a->inl != NULL);
	if (a->synd && a->synd != SN_SYND_FLUSH) {
		qp->last_error.synd = a->synd;
		qp->last_error.vendor = a->vendor;
		qp->last_error.counter = a->counter;
	}
	if (e->dev->cfg.trace)
		sn_trace_cqe(cq, qp, a);
	notify(e, cq, a->solicited || error);
}

int sn_eng_cq_resize(struct sn_dev *dev, struct sn_cq *cq, uint64_t buf, uint8_t log_size)
{
	const struct sn_cqe_args marker = { .opcode = SN_CQE_RESIZE };
	const struct sn_qp no_qp = { 0 };

	if (!cq->eng || !sn_mem_readable(buf, (uint64_t)cq->cqe_size << log_size))
		return -EINVAL;
	cq->eng->ci = be32toh(dbr_load(cq->eng, 0)) & CI_MASK;
	if (((cq->pi - cq->eng->ci) & CI_MASK) >= (1u << log_size) - 1 ||
	    !put(dev->eng, cq, &no_qp, &marker))
		return -EINVAL;
	cq->buf = buf;
	cq->log_size = log_size;
	return 0;
}

/* word: the first word of an arm doorbell, with serial number, command and consumer index. */
void sn_cq_arm(struct sn_eng *e, struct sn_cq *cq, uint32_t word)
{
	cq->armed = true;
	cq->eng->arm_seen = true;
	cq->armed_solicited = word & ARM_SOLICITED;
	cq->arm_ci = word & CI_MASK;
	if (cq->arm_ci != (cq->pi & CI_MASK) && cq->notified != cq->pi)
		notify(e, cq, true);
}

/*
 * Arm doorbells of all CQs share one register and overwrite each other. libmlx5 first stores
 * the same word, which has a serial number, in the DBREC, so a changed word is an arm. The
 * first arm of a CQ may not change the word. Therefore, when an arm doorbell arrived (rung), each
 * CQ with a channel that was never armed is treated as armed, too. A superfluous event is
 * harmless; a missing one makes the program hang.
 */
void sn_cq_scan_arms(struct sn_eng *e, bool rung)
{
	struct sn_cq_eng *c;
	uint32_t word;

	for (c = e->cqs; c; c = c->next) {
		if (!(c->cq->channel || c->cq->subscribed) || !c->cq->dbr)
			continue;
		word = dbr_load(c, 1);
		if (word == c->arm_word && (c->arm_seen || !rung || !c->cq->channel))
			continue;
		c->arm_word = word;
		sn_cq_arm(e, c->cq, be32toh(word));
	}
}

void sn_eng_cq_add(struct sn_dev *dev, struct sn_cq *cq)
{
	struct sn_eng *e = dev->eng;
	struct sn_cq_eng *c;

	if (!e)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->cq = cq;
	c->arm_word = cq->channel ? SN_ARM_NONE : 0;
	c->gpu = sn_mem_is_gpu(cq->buf, 64);
	c->dbr_gpu = cq->dbr && sn_mem_is_gpu(cq->dbr, 8);
	SN_LINK(&e->cqs, c, next, at);
	e->ncqs++;
	cq->eng = c;
	sn_uar_list(e);
	sn_eng_kick(dev);
}

void sn_eng_cq_remove(struct sn_dev *dev, struct sn_cq *cq)
{
	struct sn_cq_eng *c = cq->eng;

	if (!c || !dev->eng)
		return;
	SN_UNLINK(c, next, at);
	dev->eng->ncqs--;
	dev->eng->ndue -= c->due != 0;
	cq->eng = NULL;
	free(c);
}
