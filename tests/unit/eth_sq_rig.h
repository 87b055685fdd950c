/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Rig of the tests of Ethernet send queues: one SQ in the engine without its thread, WQEs
 * written as bytes, a clock that the test sets, and the frames that the SQ sends. The
 * linker replaces the wire and the device clock by the functions here (--wrap).
 */
#ifndef ETH_SQ_RIG_H
#define ETH_SQ_RIG_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "../softnic/eth.h"
#include "engine_fake.h"

#define MEM_SIZE  (1u << 19)
#define CE_ERROR  0x00
#define CE_FIRST  0x04
#define CE_ALWAYS 0x08
#define L3	  0x40
#define L4	  0x80
#define SENT_MAX  512

int __wrap_sn_eth_transmit(struct sn_eng *e, struct sn_frame *f);
struct sn_frame *__wrap_sn_frame_get(struct sn_eng *e);
void __wrap_sn_frame_put(struct sn_eng *e, struct sn_frame *f);
uint64_t __wrap_sn_clock_stamp(struct sn_eng *e, bool real_time);
int __wrap_sn_gpu_read(uint64_t va, void *dst, size_t len);
int __wrap_sn_gpu_read_ahead(uint64_t va, void *dst, size_t len, size_t room);

static struct fake_qp a;
static struct sn_eth eth;
static uint8_t *mem;
static uint32_t lkey;
static struct sn_frame *sent[SENT_MAX];
static unsigned nsent, nframes;	       /* frames sent; frames allocated and not freed */
static unsigned accept_max = SENT_MAX; /* frames that the wire takes before it is full */
static int wire_error;		       /* what sn_eth_transmit() returns, if not 0 */
static bool no_frames;
/* reads of GPU memory, which is host memory here, and the longest announced range */
static struct {
	unsigned reads, ahead;
	size_t room;
} gpu;
static uint64_t clock_ns = 1000000000, stamp_free = 5000000000ull,
		stamp_real = 1700000000ull << 32 | 900000000;

int __wrap_sn_eth_transmit(struct sn_eng *e, struct sn_frame *f)
{
	(void)e;
	if (wire_error)
		return wire_error;
	if (nsent >= accept_max)
		return 0;
	sent[nsent++] = f;
	return 1;
}

struct sn_frame *__wrap_sn_frame_get(struct sn_eng *e)
{
	struct sn_frame *f = no_frames ? NULL : malloc(sizeof(*f));

	(void)e;
	if (f) {
		memset(f, 0xa5, sizeof(*f));
		nframes++;
	}
	return f;
}

void __wrap_sn_frame_put(struct sn_eng *e, struct sn_frame *f)
{
	(void)e;
	nframes--;
	free(f);
}

uint64_t __wrap_sn_clock_stamp(struct sn_eng *e, bool real_time)
{
	(void)e;
	return real_time ? stamp_real : stamp_free;
}

int __wrap_sn_gpu_read(uint64_t va, void *dst, size_t len)
{
	gpu.reads++;
	memcpy(dst, (void *)(uintptr_t)va, len);
	return 0;
}

int __wrap_sn_gpu_read_ahead(uint64_t va, void *dst, size_t len, size_t room)
{
	gpu.ahead++;
	if (room > gpu.room)
		gpu.room = room;
	memcpy(dst, (void *)(uintptr_t)va, len);
	return 0;
}

static inline uint64_t test_clock(void)
{
	return clock_ns;
}

static inline void pass(unsigned n)
{
	while (n--) {
		sn_dev->eng->now = clock_ns += 1000;
		sn_eng_pass(sn_dev->eng);
	}
}

static inline void sq_rig(void)
{
	char ip[32];

	fake_ip(ip, 1);
	sn_clock = test_clock;
	fake_open_still(ip);
	sn_dev->cfg.eth_mtu = 1500;
	sn_dev->cfg.wait_on_time = true;
	mem = aligned_alloc(4096, MEM_SIZE);
	for (unsigned i = 0; i < MEM_SIZE; i++)
		mem[i] = i * 2654435761u >> 13;
	lkey = fake_mr(mem, MEM_SIZE, 0x1);
	fake_qp_init_as(&a, SN_QPT_SQ, 0x101, 1);
	eth = (struct sn_eth){ .empw = true, .flush_in_error = true };
	a.qp.eth = &eth;
	a.qp.rq_wqes = 0;
	fake_modify(&a, SN_QPS_RTS);
}

static inline void sq_fini(void)
{
	unsigned i;

	fake_qp_fini(&a);
	for (i = 0; i < nsent; i++)
		free(sent[i]);
	cr_expect_eq(nframes, nsent, "%u frames allocated, %u sent", nframes, nsent);
	fake_close();
}

/* ---- WQEs ---- */

static uint8_t wqe[1024];
static unsigned wqe_len;

static inline void put_bytes(const void *p, unsigned n)
{
	memcpy(wqe + wqe_len, p, n);
	wqe_len += n;
}

static inline void begin(uint8_t opcode, uint8_t fm)
{
	memset(wqe, 0, sizeof(wqe));
	sn_put32(wqe, (a.pi & 0xffff) << 8 | opcode);
	sn_put32(wqe + 4, a.qp.qpn << 8);
	wqe[11] = fm;
	wqe_len = 16;
}

/* The Ethernet segment, with an inline header of hdr_len bytes. */
static inline void eseg(uint8_t cs_flags, uint16_t mss, const void *hdr, uint16_t hdr_len)
{
	uint8_t *s = wqe + wqe_len;

	s[4] = cs_flags;
	s[6] = mss >> 8;
	s[7] = mss;
	s[12] = hdr_len >> 8;
	s[13] = hdr_len;
	if (hdr_len)
		memcpy(s + 14, hdr, hdr_len);
	wqe_len += hdr_len > 2 ? (14 + hdr_len + 15) & ~15u : 16;
}

static inline void data(const void *p, uint32_t len)
{
	uint8_t s[16];

	sn_put32(s, len);
	sn_put32(s + 4, lkey);
	sn_put64(s + 8, (uintptr_t)p);
	put_bytes(s, 16);
}

static inline void inline_data(const void *p, uint32_t len)
{
	uint8_t s[4];

	sn_put32(s, len | 0x80000000u);
	put_bytes(s, 4);
	put_bytes(p, len);
	wqe_len = (wqe_len + 15) & ~15u;
}

/* Copies the WQE to the ring. Its size is in the control segment already, or is set here. */
static inline void write_wqe(void)
{
	unsigned i;

	if (!wqe[7])
		wqe[7] = (wqe_len + 15) / 16;
	for (i = 0; i < wqe_len; i++)
		a.sq[(a.pi * 64 + i) % (FAKE_DEPTH * 64)] = wqe[i];
	a.pi += ((wqe[7] & 0x3f) + 3) / 4;
}

static inline void post(void)
{
	write_wqe();
	fake_ring(&a);
	pass(1);
}

/* A SEND of `len` bytes of memory, without inline header. */
static inline void post_send(uint8_t cs_flags, const void *p, uint32_t len)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(cs_flags, 0, NULL, 0);
	data(p, len);
	post();
}

/* ---- results ---- */

static inline void expect_cqe(uint32_t index, uint8_t opcode, uint8_t synd)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(&a, false, cqe, 0), "no CQE for WQE %u", index);
	cr_assert_eq((uint32_t)(cqe[60] << 8 | cqe[61]), index,
		     "got the CQE of WQE %u, expected %u", cqe[60] << 8 | cqe[61], index);
	cr_assert_eq(cqe[63] >> 4, synd ? 13 : 0);
	cr_assert_eq(cqe[56], opcode);
	cr_assert_eq(sn_get32(cqe + 56) & 0xffffff, a.qp.qpn);
	if (synd)
		cr_assert_eq(cqe[55], synd, "got syndrome 0x%02x, expected 0x%02x", cqe[55], synd);
}

static inline void expect_none(void)
{
	uint8_t cqe[64];

	cr_assert_not(fake_poll(&a, false, cqe, 0), "unexpected CQE of WQE %u", cqe[61]);
}

static inline void expect_frame(unsigned i, const void *p, uint32_t len)
{
	cr_assert_gt(nsent, i, "only %u frames were sent", nsent);
	cr_assert_eq(sent[i]->len, len, "frame %u has %u bytes, expected %u", i, sent[i]->len, len);
	for (uint32_t k = 0; k < len; k++)
		cr_assert_eq(sent[i]->data[k], ((const uint8_t *)p)[k], "frame %u differs at %u", i,
			     k);
}

/* Expects an error CQE for the WQE at index, no frame, and state ERR. */
static inline void expect_refused(uint32_t index, uint8_t opcode, uint8_t synd)
{
	expect_cqe(index, opcode, synd);
	cr_assert_eq(nsent, 0, "%u frames were sent", nsent);
	cr_assert_eq(a.qp.state, SN_QPS_ERR);
}

/* ---- frames ---- */

/* Computed apart from the engine's code. */
static inline uint16_t ref_csum(uint32_t sum, const uint8_t *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Writes Ethernet, IP and TCP or UDP headers to p. Returns their length. Lengths fit `payload`
 * bytes after the headers; checksums are wrong. */
static inline uint32_t make_headers(uint8_t *p, unsigned ip, uint8_t proto, unsigned tags,
				    uint32_t payload)
{
	static const uint8_t macs[12] = { 2, 0, 0x7f, 1, 2, 3, 2, 0, 0x7f, 4, 5, 6 };
	uint32_t l4_len = proto == 6 ? 20 : 8, at = 12, total = l4_len + payload;
	uint8_t *l3;

	memset(p, 0, 128);
	memcpy(p, macs, 12);
	for (; tags--; at += 4)
		memcpy(p + at, tags ? "\x88\xa8\x60\x07" : "\x81\x00\x20\x2a", 4);
	memcpy(p + at, ip == 4 ? "\x08\x00" : "\x86\xdd", 2);
	l3 = p + at + 2;
	if (ip == 4) {
		memcpy(l3,
		       "\x45\x00\x00\x00\xff\xfe\x40\x00\x40\x00\xde\xad\x0a\x01\x02\x03\x0a\x04"
		       "\x05\x06",
		       20);
		l3[9] = proto;
		l3[2] = (total + 20) >> 8;
		l3[3] = total + 20;
	} else {
		l3[0] = 0x60;
		l3[4] = total >> 8;
		l3[5] = total;
		l3[6] = proto;
		l3[7] = 64;
		for (unsigned i = 8; i < 40; i++)
			l3[i] = i * 7;
	}
	at += 2 + (ip == 4 ? 20 : 40);
	memcpy(p + at, "\x12\x34\x56\x78", 4);
	if (proto == 6)
		memcpy(p + at + 4, "\xff\xff\xff\x00\x11\x22\x33\x44\x50\x18\x20\x00\xbe\xef", 14);
	else
		memcpy(p + at + 4, (uint8_t[]){ total >> 8, total, 0xbe, 0xef }, 4);
	return at + l4_len;
}

/* Fills in the checksums of a frame of make_headers(). */
static inline void set_csums(uint8_t *p, uint32_t len, unsigned tags, uint8_t flags)
{
	uint8_t *l3 = p + 14 + 4 * tags, *l4 = l3 + (l3[0] >> 4 == 4 ? 20 : 40), *field;
	uint8_t proto = l3[0] >> 4 == 4 ? l3[9] : l3[6];
	uint32_t n = p + len - l4;
	uint16_t sum;

	if (flags & L3 && l3[0] >> 4 == 4) {
		l3[10] = l3[11] = 0;
		sum = ~ref_csum(0, l3, 20);
		l3[10] = sum >> 8;
		l3[11] = sum;
	}
	if (!(flags & L4))
		return;
	field = l4 + (proto == 6 ? 16 : 6);
	field[0] = field[1] = 0;
	sum = l3[0] >> 4 == 4 ? ref_csum(0, l3 + 12, 8) : ref_csum(0, l3 + 8, 32);
	sum = ~ref_csum(sum + proto + n, l4, n);
	if (!sum && proto == 17)
		sum = 0xffff;
	field[0] = sum >> 8;
	field[1] = sum;
}

#endif
