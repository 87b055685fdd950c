/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Implements engine_fake.h: the functions for object lookup and events that the
 * engine calls, and the application's side of a QP (post WQEs and receives, poll
 * CQEs).
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "engine_fake.h"

#define MAX_OBJ 64

struct sn_dev *sn_dev;
unsigned fake_events, fake_async;
static struct sn_dev device;
static struct sn_qp *qps[MAX_OBJ];
static struct sn_cq *cqs[MAX_OBJ];
static struct sn_mr mrs[MAX_OBJ];
static uint32_t next_key = 0x1234;

struct sn_qp *sn_find_qp(struct sn_dev *dev, uint32_t qpn)
{
	(void)dev;
	for (int i = 0; i < MAX_OBJ; i++)
		if (qps[i] && qps[i]->qpn == qpn)
			return qps[i];
	return NULL;
}

struct sn_cq *sn_find_cq(struct sn_dev *dev, uint32_t cqn)
{
	(void)dev;
	for (int i = 0; i < MAX_OBJ; i++)
		if (cqs[i] && cqs[i]->cqn == cqn)
			return cqs[i];
	return NULL;
}

struct sn_mr *sn_find_mr(struct sn_dev *dev, uint32_t key)
{
	(void)dev;
	for (int i = 0; i < MAX_OBJ; i++)
		if (mrs[i].lkey && mrs[i].lkey == key)
			return &mrs[i];
	return NULL;
}

void sn_event_completion(struct sn_dev *dev, struct sn_cq *cq)
{
	(void)dev, (void)cq;
	fake_events++;
}

void sn_event_async_qp(struct sn_dev *dev, struct sn_qp *qp, int type)
{
	(void)dev, (void)qp, (void)type;
	fake_async++;
}

void sn_event_async_srq(struct sn_dev *dev, struct sn_srq *srq, int type)
{
	(void)dev;
	(void)type;
	srq->async_events++;
}

void sn_event_async_cq(struct sn_dev *dev, struct sn_cq *cq, int type)
{
	(void)dev, (void)cq, (void)type;
	fake_async++;
}

void sn_violation(uint64_t *counter, const char *fmt, ...)
{
	(void)fmt;
	++*counter;
}

/* Converts IPv4 text to an IPv4-mapped address. */
static void set_ip(struct in6_addr *ip, const char *text)
{
	ip->s6_addr[10] = ip->s6_addr[11] = 0xff;
	inet_pton(AF_INET, text, ip->s6_addr + 12);
}

static void open_with(const char *ip, int (*start)(struct sn_dev *dev))
{
	sn_dev = &device;
	pthread_mutex_init(&device.lock, NULL);
	set_ip(&device.cfg.ip, ip);
	device.cfg.mtu = device.cfg.mtu ? device.cfg.mtu : 4096;
	device.cfg.cd = true;
	pthread_mutex_lock(&device.lock);
	if (start(&device))
		abort();
	pthread_mutex_unlock(&device.lock);
}

void fake_ip(char ip[16], unsigned host)
{
	unsigned n = (unsigned)getpid() << 3 | host;

	snprintf(ip, 16, "127.%u.%u.%u", n >> 16 & 0xff, n >> 8 & 0xff, n & 0xff);
}

void fake_open(const char *ip)
{
	open_with(ip, sn_eng_start);
}

void fake_open_still(const char *ip)
{
	open_with(ip, sn_eng_create);
}

void fake_close(void)
{
	sn_eng_stop(&device);
}

static void add(void **table, void *obj)
{
	int i = 0;

	while (table[i])
		i++;
	table[i] = obj;
}

static void drop(void **table, void *obj)
{
	int i = 0;

	while (table[i] != obj)
		i++;
	table[i] = NULL;
}

static void *ring_alloc(size_t size, int fill)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~4095ull);

	memset(p, fill, size);
	return p;
}

static void cq_init(struct sn_cq *cq, uint32_t cqn, void *buf, uint32_t *dbr)
{
	cq->cqn = cqn;
	cq->buf = (uintptr_t)buf;
	cq->dbr = (uintptr_t)dbr;
	cq->log_size = 6;
	cq->cqe_size = 64;
	add((void **)cqs, cq);
	sn_eng_cq_add(&device, cq);
}

void fake_qp_init(struct fake_qp *q, uint32_t qpn, uint32_t page)
{
	fake_qp_init_as(q, SN_QPT_RC, qpn, page);
}

void fake_qp_init_as(struct fake_qp *q, enum sn_qp_type type, uint32_t qpn, uint32_t page)
{
	memset(q, 0, sizeof(*q));
	pthread_mutex_lock(&device.lock);
	if (!device.uars[page].page)
		device.uars[page].page = ring_alloc(4096, 0);
	device.uars[page].used = true;
	q->uar = device.uars[page].page;
	q->sq = ring_alloc(FAKE_DEPTH * 64, 0xee);
	q->rq = ring_alloc(FAKE_DEPTH * FAKE_STRIDE, 0);
	q->scqe = ring_alloc(64 * 64, 0xf1);
	q->rcqe = ring_alloc(64 * 64, 0xf1);
	q->dbr = ring_alloc(64, 0);
	cq_init(&q->scq, qpn * 2, q->scqe, q->dbr + 2);
	cq_init(&q->rcq, qpn * 2 + 1, q->rcqe, q->dbr + 4);
	q->qp = (struct sn_qp){ .type = type,
				.qpn = qpn,
				.pdn = 7,
				.sq_buf = (uintptr_t)q->sq,
				.rq_buf = (uintptr_t)q->rq,
				.sq_wqebbs = FAKE_DEPTH,
				.rq_wqes = FAKE_DEPTH,
				.rq_stride = FAKE_STRIDE,
				.dbr = (uintptr_t)q->dbr,
				.uar = page,
				.uidx = 0x55,
				.scq = &q->scq,
				.rcq = &q->rcq };
	add((void **)qps, &q->qp);
	if (sn_eng_qp_add(&device, &q->qp))
		abort();
	pthread_mutex_unlock(&device.lock);
}

void fake_qp_fini(struct fake_qp *q)
{
	pthread_mutex_lock(&device.lock);
	sn_eng_qp_remove(&device, &q->qp);
	sn_eng_cq_remove(&device, &q->scq);
	sn_eng_cq_remove(&device, &q->rcq);
	drop((void **)qps, &q->qp);
	drop((void **)cqs, &q->scq);
	drop((void **)cqs, &q->rcq);
	pthread_mutex_unlock(&device.lock);
	free(q->sq);
	free(q->rq);
	free(q->scqe);
	free(q->rcqe);
	free(q->dbr);
}

void fake_modify(struct fake_qp *q, enum sn_qp_state to)
{
	enum sn_qp_state from;

	pthread_mutex_lock(&device.lock);
	from = q->qp.state;
	q->qp.state = to;
	sn_eng_qp_state(&device, &q->qp, from);
	pthread_mutex_unlock(&device.lock);
}

void fake_connect(struct fake_qp *q, const char *ip, uint32_t dest)
{
	set_ip(&q->qp.way.ip, ip);
	q->qp.dest_qpn = dest;
	q->qp.path_mtu = 3;	 /* 1024 */
	q->qp.sq_psn = 0xfffff0; /* wraps after 16 packets */
	q->qp.rq_psn = 0xfffff0;
	q->qp.retry_cnt = q->qp.rnr_retry = 7;
	q->qp.ack_timeout = q->qp.ack_timeout ? q->qp.ack_timeout : 12;
	q->qp.min_rnr_timer = 1;
	q->qp.max_rd_atomic = q->qp.max_dest_rd_atomic = 4;
	q->qp.remote_write = q->qp.remote_read = q->qp.remote_atomic = true;
	fake_modify(q, SN_QPS_INIT);
	fake_modify(q, SN_QPS_RTR);
	fake_modify(q, SN_QPS_RTS);
}

uint32_t fake_mr(void *va, uint64_t len, uint32_t access)
{
	uint32_t key;
	int i = 0;

	pthread_mutex_lock(&device.lock);
	while (mrs[i].lkey)
		i++;
	key = next_key += 0x101;
	mrs[i] = (struct sn_mr){ .lkey = key,
				 .rkey = key,
				 .pdn = 7,
				 .access = access,
				 .va = (uintptr_t)va,
				 .iova = (uintptr_t)va,
				 .len = len };
	pthread_mutex_unlock(&device.lock);
	return key;
}

void fake_mr_drop(uint32_t key)
{
	pthread_mutex_lock(&device.lock);
	sn_find_mr(&device, key)->lkey = 0;
	pthread_mutex_unlock(&device.lock);
}

/* ---- the application's side ---- */

static void put_seg(struct fake_qp *q, uint32_t seg, const void *src)
{
	memcpy(q->sq + ((q->pi * 4 + seg) % (FAKE_DEPTH * 4)) * 16, src, 16);
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == SN_OP_CS || opcode == SN_OP_FA;
}

void fake_write_wqe(struct fake_qp *q, const struct fake_wqe *w)
{
	uint32_t ds = 1, i;
	uint8_t s[16] = { 0 };

	if (w->opcode == SN_OP_WRITE || w->opcode == SN_OP_WRITE_IMM || w->opcode == SN_OP_READ ||
	    is_atomic(w->opcode)) {
		sn_put64(s, w->raddr);
		sn_put32(s + 8, w->rkey);
		put_seg(q, ds++, s);
	}
	if (is_atomic(w->opcode)) {
		sn_put64(s, w->swap);
		sn_put64(s + 8, w->compare);
		put_seg(q, ds++, s);
	}
	for (i = 0; i < w->nsge; i++) {
		sn_put32(s, w->sge[i].len);
		sn_put32(s + 4, w->sge[i].lkey);
		sn_put64(s + 8, (uintptr_t)w->sge[i].addr);
		put_seg(q, ds++, s);
	}
	for (i = 0; w->inl_len && i < w->inl_len + 4; i += 16) {
		uint8_t all[256] = { 0 };

		sn_put32(all, w->inl_len | 0x80000000u);
		memcpy(all + 4, w->inl, w->inl_len);
		put_seg(q, ds++, all + i);
	}
	sn_put32(s, (q->pi & 0xffff) << 8 | w->opcode);
	sn_put32(s + 4, q->qp.qpn << 8 | ds);
	sn_put32(s + 8, w->fm);
	memcpy(s + 12, &w->imm, 4);
	put_seg(q, 0, s);
	q->pi += (ds + 3) / 4;
}

void fake_ring(struct fake_qp *q)
{
	uint8_t db[8];
	uint64_t v;

	if (!q->qp.no_dbr)
		__atomic_store_n(&q->dbr[1], htobe32(q->pi & 0xffff), __ATOMIC_RELEASE);
	sn_put32(db, (q->pi & 0xffff) << 8);
	sn_put32(db + 4, q->qp.qpn << 8);
	memcpy(&v, db, 8);
	__atomic_store_n((uint64_t *)(void *)(q->uar + 0x800), v, __ATOMIC_RELEASE);
}

void fake_post(struct fake_qp *q, const struct fake_wqe *w)
{
	fake_write_wqe(q, w);
	fake_ring(q);
}

void fake_recv(struct fake_qp *q, void *addr, uint32_t len, uint32_t lkey)
{
	uint8_t *s = q->rq + (q->rpi % FAKE_DEPTH) * FAKE_STRIDE;

	sn_put32(s, len);
	sn_put32(s + 4, lkey);
	sn_put64(s + 8, (uintptr_t)addr);
	sn_put32(s + 20, 0x100);
	q->rpi++;
	__atomic_store_n(&q->dbr[0], htobe32(q->rpi & 0xffff), __ATOMIC_RELEASE);
}

bool fake_poll(struct fake_qp *q, bool recv, uint8_t cqe[64], int ms)
{
	uint32_t *ci = recv ? &q->rci : &q->sci;
	uint8_t *at = (recv ? q->rcqe : q->scqe) + (*ci % 64) * 64;
	uint64_t end = sn_now() + ms * 1000000ull;
	struct timespec nap = { 0, 20000 };
	uint8_t own;

	for (;;) {
		own = __atomic_load_n((uint32_t *)(void *)(at + 60), __ATOMIC_ACQUIRE) >> 24;
		if (own >> 4 != 15 && (own & 1) == (*ci / 64 & 1))
			break;
		if (sn_now() >= end)
			return false;
		nanosleep(&nap, NULL);
	}
	memcpy(cqe, at, 64);
	++*ci;
	__atomic_store_n(&q->dbr[recv ? 4 : 2], htobe32(*ci & 0xffffff), __ATOMIC_RELEASE);
	return true;
}
