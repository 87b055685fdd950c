/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The raw packet queue pair of the responder, by libibverbs alone: receives frames for its
 * MAC and broadcasts, and sends the answers. Ends after a time, or at SIGTERM or SIGINT, and
 * prints what it counted.
 *
 * usage: responder ADDRESS [SECONDS]
 *   ADDRESS: own IPv4 address; the MAC is that of the port
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../lib/raw_port.h"
#include "responder.h"

#define SLOTS	   256u
#define RECEIVE(i) ((i)*FRAME_MAX)
#define SEND(i)	   ((SLOTS + (i)) * FRAME_MAX)

struct port {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_flow *flows[2];
	uint8_t *memory;
	uint32_t sent, done;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "responder: %s: %m\n", what);
	exit(1);
}

static void post_receive(struct port *p, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)p->memory + RECEIVE(slot), FRAME_MAX, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(p->qp, &wr, &bad))
		die("ibv_post_recv");
}

static void post_send(struct port *p, uint32_t len, bool hw)
{
	struct ibv_sge sge = { (uintptr_t)p->memory + SEND(p->sent % SLOTS), len, p->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = SLOTS,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED | (hw ? IBV_SEND_IP_CSUM : 0) },
			   *bad;

	if (ibv_post_send(p->qp, &wr, &bad))
		die("ibv_post_send");
	p->sent++;
}

static void modify(struct port *p, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	if (ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | mask))
		die("ibv_modify_qp");
}

static void open_device(struct port *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("no RDMA device");
	p->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	p->pd = p->ctx ? ibv_alloc_pd(p->ctx) : NULL;
	p->cq = p->pd ? ibv_create_cq(p->ctx, 4 * SLOTS, NULL, NULL, 0) : NULL;
	if (!p->cq)
		die("cannot open the device");
	p->memory = aligned_alloc(4096, 2 * SLOTS * FRAME_MAX);
	p->mr = ibv_reg_mr(p->pd, p->memory, 2 * SLOTS * FRAME_MAX, IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		die("ibv_reg_mr");
}

static void open_queues(struct port *p)
{
	static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct ibv_qp_init_attr init = { .send_cq = p->cq,
					 .recv_cq = p->cq,
					 .cap = { .max_send_wr = SLOTS,
						  .max_recv_wr = SLOTS,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_RAW_PACKET };
	uint8_t mac[6];
	uint32_t i;

	p->qp = ibv_create_qp(p->pd, &init);
	if (!p->qp)
		die("ibv_create_qp");
	modify(p, IBV_QPS_INIT, IBV_QP_PORT);
	for (i = 0; i < SLOTS; i++)
		post_receive(p, i);
	modify(p, IBV_QPS_RTR, 0);
	modify(p, IBV_QPS_RTS, 0);
	if (raw_port_mac(p->ctx, mac))
		die("ibv_query_gid");
	p->flows[0] = raw_flow_try(p->qp, mac);
	p->flows[1] = raw_flow_try(p->qp, all);
	if (!p->flows[0] || !p->flows[1])
		die("ibv_create_flow");
}

static void close_port(struct port *p)
{
	if (ibv_destroy_flow(p->flows[0]) || ibv_destroy_flow(p->flows[1]) ||
	    ibv_destroy_qp(p->qp) || ibv_destroy_cq(p->cq) || ibv_dereg_mr(p->mr) ||
	    ibv_dealloc_pd(p->pd) || ibv_close_device(p->ctx))
		die("destroy");
	free(p->memory);
}

static void take(struct port *p, struct answerer *a, const struct ibv_wc *wc)
{
	bool hw;
	uint32_t len;

	if (wc->status) {
		fprintf(stderr, "responder: completion: %s\n", ibv_wc_status_str(wc->status));
		exit(1);
	}
	if (wc->wr_id == SLOTS) {
		p->done++;
		return;
	}
	/* Without a free slot the answer is lost; the peer asks again. */
	if (p->sent - p->done < SLOTS) {
		len = answer(a, p->memory + RECEIVE(wc->wr_id), wc->byte_len,
			     p->memory + SEND(p->sent % SLOTS), &hw);
		if (len)
			post_send(p, len, hw);
	}
	post_receive(p, (uint32_t)wc->wr_id);
}

static void serve(struct port *p, struct answerer *a, time_t seconds)
{
	const struct timespec nap = { 0, 20000 };
	time_t end = time(NULL) + seconds;
	struct ibv_wc wc[16];
	int i, n;

	while (!stop && time(NULL) < end) {
		n = ibv_poll_cq(p->cq, 16, wc);
		for (i = 0; i < n; i++)
			take(p, a, &wc[i]);
		if (!n)
			nanosleep(&nap, NULL);
	}
}

int main(int argc, char **argv)
{
	struct answerer a = { .counts = { 0 } };
	const struct counts *c = &a.counts;
	struct port p = { 0 };

	if (argc < 2 || inet_pton(AF_INET, argv[1], a.host.ip) != 1) {
		fprintf(stderr, "usage: responder ADDRESS [SECONDS]\n");
		return 2;
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	open_device(&p);
	if (raw_port_mac(p.ctx, a.host.mac))
		die("ibv_query_gid");
	open_queues(&p);
	printf("responder: ready\n");
	fflush(stdout);
	serve(&p, &a, argc > 2 ? atol(argv[2]) : 60);
	close_port(&p);
	printf("responder: %" PRIu64 " frames, %" PRIu64 " ARP, %" PRIu64 " pings, %" PRIu64
	       " datagrams, %" PRIu64 " TCP segments, %" PRIu64 " wrong checksums\n",
	       c->frames, c->arp, c->pings, c->datagrams, c->segments, c->bad_sums);
	printf("responder: TCP %" PRIu64 " bytes, CRC %08x, %s\n", a.tcp.bytes, a.tcp.crc,
	       a.tcp.finished ? "closed" : "open");
	return 0;
}
