/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Compares the software NIC's Ethernet with UDP, in one run: frames from one process to another, by
 * raw packet queue pairs and flow control (--eth-pause), and UDP packets of the same size over
 * loopback, one sendto() and one recv() for each. The receiver checks the number in each frame.
 * Prints medians of RUNS rounds with their ranges; the ratio is that of medians. For the part that
 * needs a NIC, the program starts itself again through softnic-run. Needs CAP_NET_RAW.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../lib/raw_port.h"
#include "bench.h"

#define BYTES  1500u
#define FRAMES 100000u
#define SLOTS  1024u
#define BATCH  16u
#define HEAD   14u /* addresses and EtherType */
#define TARGET 0.8

struct port {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem; /* SLOTS frames */
	uint8_t mac[6];
};

static void modify(struct port *p, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	REQUIRE(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | mask));
}

static void port_open(struct port *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = SLOTS,
						  .max_recv_wr = SLOTS,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_RAW_PACKET };

	REQUIRE(list && list[0]);
	REQUIRE(p->ctx = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	REQUIRE(!raw_port_mac(p->ctx, p->mac));
	REQUIRE(p->pd = ibv_alloc_pd(p->ctx));
	REQUIRE(!posix_memalign((void **)&p->mem, 4096, SLOTS * BYTES));
	memset(p->mem, 0, SLOTS * BYTES);
	REQUIRE(p->mr = ibv_reg_mr(p->pd, p->mem, SLOTS * BYTES, IBV_ACCESS_LOCAL_WRITE));
	REQUIRE(p->cq = ibv_create_cq(p->ctx, 2 * SLOTS, NULL, NULL, 0));
	init.send_cq = init.recv_cq = p->cq;
	REQUIRE(p->qp = ibv_create_qp(p->pd, &init));
	modify(p, IBV_QPS_INIT, IBV_QP_PORT);
	modify(p, IBV_QPS_RTR, 0);
	modify(p, IBV_QPS_RTS, 0);
}

static void port_close(struct port *p)
{
	REQUIRE(!ibv_destroy_qp(p->qp) && !ibv_destroy_cq(p->cq) && !ibv_dereg_mr(p->mr));
	REQUIRE(!ibv_dealloc_pd(p->pd) && !ibv_close_device(p->ctx));
	free(p->mem);
}

static int poll_cq(struct port *p, struct ibv_wc *wc)
{
	const int n = ibv_poll_cq(p->cq, BATCH, wc);

	REQUIRE(n >= 0);
	for (int i = 0; i < n; i++)
		REQUIRE(wc[i].status == IBV_WC_SUCCESS);
	if (!n) /* the rings hold the frames of milliseconds */
		usleep(50);
	return n;
}

/* ---- sender ---- */

/* Posts frames first to first + BATCH - 1; the last one requests a completion. */
static void post_frames(struct port *p, const uint8_t to[6], uint32_t first)
{
	struct ibv_send_wr wr[BATCH] = { 0 }, *bad;
	struct ibv_sge sge[BATCH];

	for (uint32_t i = 0; i < BATCH; i++) {
		const uint32_t number = first + i;
		uint8_t *frame = p->mem + number % SLOTS * BYTES;

		memcpy(frame, to, 6);
		memcpy(frame + 6, p->mac, 6);
		frame[12] = 0x88; /* EtherType for local experiments */
		frame[13] = 0xb6;
		memcpy(frame + HEAD, &number, 4);
		sge[i] = (struct ibv_sge){ (uintptr_t)frame, BYTES, p->mr->lkey };
		wr[i] = (struct ibv_send_wr){ .next = i + 1 < BATCH ? &wr[i + 1] : NULL,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = i + 1 < BATCH ? 0 : IBV_SEND_SIGNALED };
	}
	REQUIRE(!ibv_post_send(p->qp, wr, &bad));
}

/* Returns frames per second, until the receiver has all. */
static double send_frames(struct port *p, const uint8_t to[6], int peer)
{
	struct ibv_wc wc[BATCH];
	uint32_t sent = 0, done = 0;
	const double start = seconds();
	char turn;

	while (done < FRAMES) {
		while (sent < FRAMES && sent - done + BATCH <= SLOTS) {
			post_frames(p, to, sent);
			sent += BATCH;
		}
		done += (uint32_t)poll_cq(p, wc) * BATCH;
	}
	receive_bytes(peer, &turn, 1);
	return FRAMES / (seconds() - start);
}

/* ---- receiver ---- */

static void post_slots(struct port *p, uint32_t first, uint32_t n)
{
	struct ibv_recv_wr wr[BATCH] = { 0 }, *bad;
	struct ibv_sge sge[BATCH];

	for (uint32_t i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)p->mem + (first + i) % SLOTS * BYTES, BYTES,
					   p->mr->lkey };
		wr[i] = (struct ibv_recv_wr){ .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = &sge[i],
					      .num_sge = 1 };
	}
	REQUIRE(!ibv_post_recv(p->qp, wr, &bad));
}

static void receive_frames(struct port *p, int peer)
{
	struct ibv_wc wc[BATCH];
	uint32_t got, number, i;
	int n;

	for (got = 0; got < FRAMES; got += (uint32_t)n) {
		n = poll_cq(p, wc);
		for (i = 0; i < (uint32_t)n; i++) {
			memcpy(&number, p->mem + (got + i) % SLOTS * BYTES + HEAD, 4);
			REQUIRE(number == got + i && wc[i].byte_len == BYTES);
		}
		if (n)
			post_slots(p, got, (uint32_t)n);
	}
	send_bytes(peer, "", 1);
}

/* ---- roles ---- */

/* peer: socket to the other process; report: pipe for the sender's rate, -1 in the receiver */
static void role(int peer, int report)
{
	struct ibv_flow *flow;
	struct port p = { 0 };
	uint8_t to[6];
	double rate;

	port_open(&p);
	if (report >= 0) {
		receive_bytes(peer, to, sizeof(to));
		rate = send_frames(&p, to, peer);
		send_bytes(report, &rate, sizeof(rate));
	} else {
		for (uint32_t i = 0; i < SLOTS; i += BATCH)
			post_slots(&p, i, BATCH);
		REQUIRE(flow = raw_flow_try(p.qp, p.mac));
		send_bytes(peer, p.mac, sizeof(p.mac));
		receive_frames(&p, peer);
		REQUIRE(!ibv_destroy_flow(flow));
	}
	port_close(&p);
}

static double pair_rate(void)
{
	static const char *const options[] = { "--strict", "--eth-pause", NULL };
	int between[2], out[2], status[2];
	pid_t pid[2];
	double rate;

	REQUIRE(!pipe(out) && !socketpair(AF_UNIX, SOCK_STREAM, 0, between));
	pid[0] = start_on_nic(options, "pair", between[0], -1);
	pid[1] = start_on_nic(options, "pair", between[1], out[1]);
	close(between[0]);
	close(between[1]);
	close(out[1]);
	receive_bytes(out[0], &rate, sizeof(rate));
	close(out[0]);
	for (int i = 0; i < 2; i++)
		REQUIRE(waitpid(pid[i], &status[i], 0) == pid[i] && status[i] == 0);
	return rate;
}

static void print(const char *what, struct series *s)
{
	const double rate = median(s);

	printf("%-34s %10.0f  %10.0f to %10.0f", what, rate, s->v[0], s->v[RUNS - 1]);
}

int main(int argc, char **argv)
{
	struct series nic = { 0 }, udp = { 0 };
	double ratio;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(LIMIT_S);
	if (argc == 4)
		return role(atoi(argv[2]), atoi(argv[3])), 0;
	for (int i = 0; i < RUNS; i++) {
		series_add(&udp, udp_loop_rate(BYTES));
		series_add(&nic, pair_rate());
	}
	printf("%ld cores, packets of %u bytes\n%-34s %10s  %24s\n", sysconf(_SC_NPROCESSORS_ONLN),
	       BYTES, "", "per second", "range");
	print("UDP, sendto() and recv()", &udp);
	print("\nEthernet frames, two processes", &nic);
	ratio = median(&nic) / median(&udp);
	printf("  %.2f of UDP, target %.1f: %s\n", ratio, TARGET,
	       ratio >= TARGET ? "met" : "below");
	return 0;
}
