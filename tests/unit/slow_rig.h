/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Two QPs of one engine and a simulated wire between them, on a virtual clock that
 * the test advances: no thread and no sleep, so every run is the same. Each
 * direction of the wire has a delay. At its end, packets enter a queue of limited
 * length and are received one per service time; packets that find the queue full
 * are lost.
 */
#ifndef SLOW_RIG_H
#define SLOW_RIG_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine_fake.h"

#define SLOW_ROOM  (4u << 20) /* bytes of memory on each side */
#define SLOW_AHEAD 40u	      /* limit of outstanding messages, and of posted receives */
#define SLOW_WIRE  5000u      /* delay of the wire, ns */
#define SLOW_STEP  50000u     /* ns between passes when no packet is due */
#define SLOW_ACK   0x11u

struct slow_way {
	unsigned cap;			  /* length of the queue in packets; 0: unlimited */
	uint64_t service;		  /* ns per packet */
	uint64_t free_at;		  /* time at which the first queued packet is received */
	struct sn_pkt *wire, **wire_tail; /* packets in flight, with the arrival time in `due` */
	struct sn_pkt *queue, **queue_tail;
	unsigned queued;
	uint64_t packets, acks, lost; /* packets sent, acknowledgements among them, packets lost */
	/* 1: lose the next packet, 2: the one after it, ...; 0: lose none */
	unsigned drop;
	unsigned lose; /* number of packets to lose, from the next one on */
};

struct slow_run {
	uint8_t ops[8];
	unsigned nops, n; /* message i uses ops[i % nops] */
	uint32_t len;	  /* bytes per message, except atomics, which have 8 */
	uint32_t posted, done, receives, rnext, rdone;
	/* expected values of the words that fetch-and-add and compare-and-swap modify */
	uint64_t added, swapped;
	bool failed;
	uint8_t synd;
};

static struct fake_qp a, b;
static struct slow_way slow[2]; /* [0]: from a to b, [1]: from b to a */
static uint64_t slow_time;
static uint8_t *near, *far;
static uint32_t near_key, far_key;

static inline uint64_t slow_clock(void)
{
	return slow_time;
}

static inline void slow_open(unsigned mtu_code, unsigned reads)
{
	char ip[32];

	fake_ip(ip, 1);
	slow_time = 1000000000ull;
	sn_clock = slow_clock;
	fake_open_still(ip);
	memset(&sn_dev->stats, 0, sizeof(sn_dev->stats));
	near = calloc(1, SLOW_ROOM);
	far = calloc(1, SLOW_ROOM);
	near_key = fake_mr(near, SLOW_ROOM, 0xf);
	far_key = fake_mr(far, SLOW_ROOM, 0xf);
	fake_qp_init(&a, 0x101, 1);
	fake_qp_init(&b, 0x102, 1);
	a.qp.ack_timeout = b.qp.ack_timeout = 14; /* timeout of 67 ms */
	fake_connect(&a, ip, 0x102);
	fake_connect(&b, ip, 0x101);
	a.qp.path_mtu = b.qp.path_mtu = mtu_code;
	a.qp.eng->mtu = b.qp.eng->mtu = 128u << mtu_code;
	a.qp.max_rd_atomic = a.qp.max_dest_rd_atomic = reads;
	b.qp.max_rd_atomic = b.qp.max_dest_rd_atomic = reads;
	for (int i = 0; i < 2; i++) {
		slow[i] = (struct slow_way){ 0 };
		slow[i].wire_tail = &slow[i].wire;
		slow[i].queue_tail = &slow[i].queue;
	}
}

static inline void slow_forget(struct sn_pkt *p)
{
	struct sn_pkt *next;

	for (; p; p = next) {
		next = p->next;
		sn_pkt_put(sn_dev->eng, p);
	}
}

static inline void slow_close(void)
{
	for (int i = 0; i < 2; i++) {
		slow_forget(slow[i].wire);
		slow_forget(slow[i].queue);
	}
	fake_qp_fini(&a);
	fake_qp_fini(&b);
	fake_mr_drop(near_key);
	fake_mr_drop(far_key);
	fake_close();
	free(near);
	free(far);
}

/* ---- the wire ---- */

static inline void slow_put(struct sn_pkt ***tail, struct sn_pkt *p)
{
	p->next = NULL;
	**tail = p;
	*tail = &p->next;
}

static inline struct sn_pkt *slow_take(struct sn_pkt **head, struct sn_pkt ***tail)
{
	struct sn_pkt *p = *head;

	*head = p->next;
	if (!*head)
		*tail = head;
	return p;
}

/* Moves the packets that the engine has sent to the wire, except those to be lost. */
static inline void slow_collect(struct sn_eng *e)
{
	struct slow_way *w;
	struct sn_pkt *p;

	while (e->local_head) {
		p = slow_take(&e->local_head, &e->local_tail);
		e->nlocal--;
		w = &slow[(sn_get32(p->data + 4) & 0xffffff) == a.qp.qpn];
		w->packets++;
		w->acks += p->data[0] == SLOW_ACK;
		if ((w->drop && !--w->drop) || (w->lose && w->lose--)) {
			w->lost++;
			sn_pkt_put(e, p);
			continue;
		}
		p->due = slow_time + SLOW_WIRE;
		slow_put(&w->wire_tail, p);
	}
}

static inline void slow_arrive(struct sn_eng *e, struct slow_way *w)
{
	struct sn_pkt *p = slow_take(&w->wire, &w->wire_tail);

	if (w->cap && w->queued >= w->cap) {
		w->lost++;
		sn_pkt_put(e, p);
		return;
	}
	if (!w->queued++)
		w->free_at = slow_time + w->service;
	slow_put(&w->queue_tail, p);
}

static inline void slow_serve(struct sn_eng *e, struct slow_way *w)
{
	struct sn_pkt *p = slow_take(&w->queue, &w->queue_tail);

	w->queued--;
	w->free_at += w->service;
	sn_wire_receive(e, p);
	sn_pkt_put(e, p);
}

/* Advances the clock to the next event, handles it, and runs the engine. */
static inline void slow_step(void)
{
	struct sn_eng *e = sn_dev->eng;
	uint64_t next = slow_time + SLOW_STEP;

	for (int i = 0; i < 2; i++) {
		if (slow[i].wire && slow[i].wire->due < next)
			next = slow[i].wire->due;
		if (slow[i].queue && slow[i].free_at < next)
			next = slow[i].free_at;
	}
	slow_time = next;
	e->now = slow_time;
	for (int i = 0; i < 2; i++) {
		while (slow[i].queue && slow[i].free_at <= slow_time)
			slow_serve(e, &slow[i]);
		while (slow[i].wire && slow[i].wire->due <= slow_time)
			slow_arrive(e, &slow[i]);
	}
	for (int i = 0; i < 4; i++) { /* the engine fetches and sends in separate passes */
		sn_eng_pass(e);
		slow_collect(e);
	}
}

/* ---- messages ---- */

static inline uint8_t slow_byte(uint32_t i, uint32_t k)
{
	return (uint8_t)((i * 2654435761u + k * 40503u) >> 7);
}

static inline uint8_t slow_op(const struct slow_run *r, uint32_t i)
{
	return r->ops[i % r->nops];
}

static inline bool slow_atomic(uint8_t op)
{
	return op == SN_OP_CS || op == SN_OP_FA;
}

static inline bool slow_receives(uint8_t op)
{
	return op == SN_OP_SEND || op == SN_OP_SEND_IMM || op == SN_OP_WRITE_IMM;
}

/* Offset of the data of message i. Places are reused in turn; the atomics' words follow them. */
static inline uint32_t slow_place(const struct slow_run *r, uint32_t i)
{
	uint32_t size = (r->len + 63) & ~63u, places = (SLOW_ROOM - 4096) / size;

	return i % places * size;
}

static inline void slow_fill(uint8_t *p, uint32_t i, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		p[k] = slow_byte(i, k);
}

static inline void slow_post(struct slow_run *r)
{
	uint32_t i = r->posted++, at = slow_place(r, i), words = SLOW_ROOM - 4096;
	uint8_t op = slow_op(r, i);
	struct fake_wqe w = { .opcode = op,
			      .fm = 0x08,
			      .raddr = (uintptr_t)far + at,
			      .rkey = far_key,
			      .imm = htobe32(i),
			      .nsge = 1,
			      .sge = { { near + at, slow_atomic(op) ? 8 : r->len, near_key } } };

	if (slow_atomic(op)) {
		w.raddr = (uintptr_t)far + words + (op == SN_OP_FA ? 0 : 8);
		w.compare = i;
		w.swap = op == SN_OP_FA ? i + 1 : 0;
	} else {
		slow_fill(op == SN_OP_READ ? far + at : near + at, i, r->len);
		memset(op == SN_OP_READ ? near + at : far + at, 0, r->len);
	}
	if (op == SN_OP_CS) {
		w.compare = r->swapped;
		w.swap = r->swapped = i + 1;
	}
	fake_post(&a, &w);
}

static inline void slow_check(struct slow_run *r, uint32_t i)
{
	uint32_t at = slow_place(r, i);
	uint8_t op = slow_op(r, i);
	uint64_t old;

	if (slow_atomic(op)) {
		memcpy(&old, near + at, 8);
		if (op == SN_OP_FA) {
			cr_assert_eq(old, r->added, "message %u: atomic returned %lu, expected %lu",
				     i, old, r->added);
			r->added += i + 1;
		}
		return;
	}
	for (uint32_t k = 0; k < r->len; k++)
		if ((op == SN_OP_READ ? near : far)[at + k] != slow_byte(i, k))
			cr_assert_fail("message %u, opcode 0x%02x: wrong byte at %u of %u", i, op,
				       k, r->len);
}

static inline void slow_receive(struct slow_run *r)
{
	while (r->receives - r->rdone < SLOW_AHEAD && r->rnext < r->n) {
		uint32_t i = r->rnext++;

		if (!slow_receives(slow_op(r, i)))
			continue;
		fake_recv(&b, far + slow_place(r, i), r->len, far_key);
		r->receives++;
	}
}

static inline void slow_poll(struct slow_run *r)
{
	uint8_t cqe[64];

	while (fake_poll(&b, true, cqe, 0)) {
		r->failed |= cqe[63] >> 4 >= 13;
		r->rdone++;
	}
	while (!r->failed && fake_poll(&a, false, cqe, 0)) {
		if (cqe[63] >> 4 == 13) {
			r->failed = true;
			r->synd = cqe[55];
			return;
		}
		slow_check(r, r->done);
		r->done++;
	}
}

/*
 * Runs until all messages are complete, one fails, or `limit` ns have passed.
 * Returns the elapsed virtual time.
 */
static inline uint64_t slow_go(struct slow_run *r, uint64_t limit)
{
	uint64_t start = slow_time;

	while (r->done < r->n && !r->failed && slow_time - start < limit) {
		slow_receive(r);
		while (r->posted < r->n && r->posted - r->done < SLOW_AHEAD)
			slow_post(r);
		slow_step();
		slow_poll(r);
	}
	return slow_time - start;
}

#endif
