/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends or receives numbered Ethernet frames of random sizes by a raw packet queue pair. The
 * number and the seed determine the content, so that the receiver checks each byte.
 *
 * usage: eth_peer send MAC FRAMES MAX_BYTES SEED
 *        eth_peer receive FRAMES MAX_BYTES SEED [PAUSE_US [SLOTS [QUIET_S]]]
 *   receive: ends QUIET_S (30) after the last frame, or when it has FRAMES frames and 100 ms passed
 *   PAUSE_US: waits after each frame, so that receive buffers run out; SLOTS: receive WQEs (512)
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "../lib/raw_port.h"

#define HEAD	  14u /* addresses and EtherType */
#define MIN_FRAME 64u
#define MAX_FRAME 9200u
#define SLOTS_MAX 1024u
#define SEND_MAX  64u
#define FIRST_S	  60 /* the first frame must arrive within this time */
#define SEND_S	  60 /* each frame must be sent within this time: the receiver may be stopped */

struct port {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint8_t mac[6];
	uint32_t slots, size;
	uint64_t seed;
};

static void die(const char *what)
{
	fprintf(stderr, "eth_peer: %s: %m\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- content ---- */

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 33) * 0xff51afd7ed558ccdull;
	v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53ull;
	return v ^ v >> 33;
}

static uint32_t length_of(const struct port *p, uint64_t number)
{
	return MIN_FRAME + (uint32_t)(mix(number ^ p->seed << 40) % (p->size - MIN_FRAME + 1));
}

/* Fills the frame after its header with its number and bytes that depend on it. */
static void fill(const struct port *p, uint8_t *frame, uint64_t number, uint32_t len)
{
	uint64_t word = mix(number + p->seed);
	uint32_t i;

	memcpy(frame + HEAD, &number, 8);
	for (i = HEAD + 8; i < len; i++) {
		if ((i & 7) == 0)
			word = mix(word);
		frame[i] = (uint8_t)(word >> 8 * (i & 7));
	}
}

static bool is_whole(const struct port *p, const uint8_t *frame, uint32_t len, uint64_t *number)
{
	uint8_t want[MAX_FRAME];

	memcpy(number, frame + HEAD, 8);
	if (len < MIN_FRAME || len != length_of(p, *number))
		return false;
	fill(p, want, *number, len);
	return !memcmp(frame + HEAD, want + HEAD, len - HEAD);
}

/* ---- the queue pair ---- */

static void modify(struct port *p, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	if (ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | mask))
		die("ibv_modify_qp");
}

static void open_port(struct port *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = SEND_MAX,
						  .max_recv_wr = p->slots,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_RAW_PACKET };
	size_t bytes = (size_t)(p->slots > SEND_MAX ? p->slots : SEND_MAX) * MAX_FRAME;

	p->ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!p->ctx || raw_port_mac(p->ctx, p->mac))
		die("no RDMA device");
	ibv_free_device_list(list);
	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq(p->ctx, 2 * SLOTS_MAX, NULL, NULL, 0);
	p->memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	p->mr = p->pd ? ibv_reg_mr(p->pd, p->memory, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
	init.send_cq = init.recv_cq = p->cq;
	p->qp = p->mr && p->cq ? ibv_create_qp(p->pd, &init) : NULL;
	if (!p->qp)
		die("cannot create the queue pair");
	modify(p, IBV_QPS_INIT, IBV_QP_PORT);
	modify(p, IBV_QPS_RTR, 0);
	modify(p, IBV_QPS_RTS, 0);
}

static void close_port(struct port *p)
{
	if (ibv_destroy_qp(p->qp) || ibv_destroy_cq(p->cq) || ibv_dereg_mr(p->mr) ||
	    ibv_dealloc_pd(p->pd) || ibv_close_device(p->ctx))
		die("destroy");
	free(p->memory);
}

static void check(const struct ibv_wc *wc)
{
	if (!wc->status)
		return;
	fprintf(stderr, "eth_peer: completion: %s\n", ibv_wc_status_str(wc->status));
	exit(1);
}

/* ---- send ---- */

static void post_frame(struct port *p, const uint8_t to[6], uint64_t number)
{
	uint8_t *frame = p->memory + (number % SEND_MAX) * MAX_FRAME;
	struct ibv_sge sge = { (uintptr_t)frame, length_of(p, number), p->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	memcpy(frame, to, 6);
	memcpy(frame + 6, p->mac, 6);
	frame[12] = 0x88; /* EtherType for local experiments */
	frame[13] = 0xb6;
	fill(p, frame, number, sge.length);
	if (ibv_post_send(p->qp, &wr, &bad))
		die("ibv_post_send");
}

static int send_frames(struct port *p, const char *mac, uint64_t frames)
{
	uint64_t sent = 0, done = 0, last = now_ns();
	unsigned b[6], i;
	struct ibv_wc wc;
	uint8_t to[6];

	if (sscanf(mac, "%2x:%2x:%2x:%2x:%2x:%2x", b, b + 1, b + 2, b + 3, b + 4, b + 5) != 6)
		die("invalid MAC");
	for (i = 0; i < 6; i++)
		to[i] = (uint8_t)b[i];
	while (done < frames && now_ns() - last < SEND_S * 1000000000ull) {
		while (sent < frames && sent - done < SEND_MAX)
			post_frame(p, to, sent++);
		while (ibv_poll_cq(p->cq, 1, &wc) > 0) {
			check(&wc);
			done++;
			last = now_ns();
		}
	}
	printf("eth_peer: sent %" PRIu64 "\n", done);
	return done != frames;
}

/* ---- receive ---- */

static void post_slot(struct port *p, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)p->memory + slot * (uint64_t)MAX_FRAME, MAX_FRAME,
			       p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(p->qp, &wr, &bad))
		die("ibv_post_recv");
}

struct tally {
	uint64_t received, wrong, twice, late, highest;
	uint64_t frames;
	uint8_t *seen;
};

static void tally_frame(struct port *p, struct tally *t, const uint8_t *frame, uint32_t len)
{
	uint64_t number;

	t->received++;
	if (!is_whole(p, frame, len, &number) || number >= t->frames) {
		t->wrong++;
		return;
	}
	t->twice += t->seen[number];
	t->late += number < t->highest;
	t->seen[number] = 1;
	if (number > t->highest)
		t->highest = number;
}

static int receive_frames(struct port *p, uint64_t frames, long pause_us, uint64_t quiet_s)
{
	const struct timespec nap = { 0, pause_us * 1000 }, idle = { 0, 10000 };
	struct tally t = { .frames = frames, .seen = calloc(frames, 1) };
	uint64_t last = now_ns(), limit;
	struct ibv_flow *flow;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < p->slots; i++)
		post_slot(p, i);
	flow = raw_flow_try(p->qp, p->mac);
	if (!flow)
		die("ibv_create_flow");
	printf("eth_peer: MAC %02x:%02x:%02x:%02x:%02x:%02x\n", p->mac[0], p->mac[1], p->mac[2],
	       p->mac[3], p->mac[4], p->mac[5]);
	fflush(stdout);
	do {
		if (ibv_poll_cq(p->cq, 1, &wc) > 0) {
			check(&wc);
			tally_frame(p, &t, p->memory + wc.wr_id * MAX_FRAME, wc.byte_len);
			if (t.received == 1)
				puts("eth_peer: the first frame arrived"), fflush(stdout);
			if (pause_us)
				nanosleep(&nap, NULL);
			post_slot(p, (uint32_t)wc.wr_id);
			last = now_ns();
		} else {
			nanosleep(&idle, NULL);
		}
		limit = !t.received		 ? FIRST_S * 1000000000ull
			: t.received >= t.frames ? 100000000u
						 : quiet_s * 1000000000ull;
	} while (now_ns() - last < limit);
	if (ibv_destroy_flow(flow))
		die("ibv_destroy_flow");
	printf("eth_peer: received %" PRIu64 " wrong %" PRIu64 " twice %" PRIu64 " late %" PRIu64
	       "\n",
	       t.received, t.wrong, t.twice, t.late);
	free(t.seen);
	return t.wrong != 0;
}

int main(int argc, char **argv)
{
	bool sends = argc == 6 && !strcmp(argv[1], "send");
	struct port p = { .slots = 1 };
	uint64_t frames;
	int rc;

	if (!sends && (argc < 5 || argc > 8 || strcmp(argv[1], "receive"))) {
		fprintf(stderr, "usage: eth_peer send MAC FRAMES MAX_BYTES SEED\n"
				"       eth_peer receive FRAMES MAX_BYTES SEED [PAUSE_US [SLOTS "
				"[QUIET_S]]]\n");
		return 2;
	}
	argv += sends;
	frames = strtoull(argv[2], NULL, 10);
	p.size = (uint32_t)strtoul(argv[3], NULL, 10);
	p.seed = strtoull(argv[4], NULL, 10);
	if (!sends)
		p.slots = argc > 6 ? (uint32_t)strtoul(argv[6], NULL, 10) : 512;
	if (p.size < MIN_FRAME || p.size > MAX_FRAME || !p.slots || p.slots > SLOTS_MAX)
		return 2;
	open_port(&p);
	rc = sends ? send_frames(&p, argv[1], frames)
		   : receive_frames(&p, frames, argc > 5 ? atol(argv[5]) : 0,
				    argc > 7 ? strtoul(argv[7], NULL, 10) : 30);
	close_port(&p);
	return rc;
}
