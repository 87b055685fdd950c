/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Compares the software NIC with the limits of the machine, in one run: memcpy and UDP
 * over loopback (sendmmsg and recvmmsg of packets as large as the NIC's, with an
 * acknowledgement for every few of them), then RDMA writes within one process and
 * between two. Prints medians of RUNS rounds with their ranges; ratios are ratios of
 * medians. For the parts that need a NIC, the program starts itself again through
 * softnic-run.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define BUFFER	     (4u << 20)
#define DEPTH	     256u
#define SIGNAL_EVERY 16u
#define PINGS	     2000u
#define INLINE	     64u

enum { SIZES = 3 };
static const size_t sizes[SIZES] = { 64, 4096, 65536 };
static const unsigned counts[SIZES] = { 60000, 15000, 1500 };

/* Result of a process with a NIC: writes per second for each size, and a latency in
 * microseconds. */
struct report {
	double rate[SIZES];
	double latency; /* loop: from post to completion; pair: round trip of a write */
};

/* ---- verbs ---- */

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem; /* BUFFER bytes to send from, then BUFFER bytes to write to */
	uint8_t gid_index;
};

/* What a side sends to its peer so that the peer can connect and write. */
struct address {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

static void side_open(struct side *s, struct address *own)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = DEPTH,
						  .max_recv_wr = 1,
						  .max_send_sge = 1,
						  .max_recv_sge = 1,
						  .max_inline_data = INLINE } };
	struct ibv_gid_entry e = { 0 };

	REQUIRE(list && list[0]);
	REQUIRE(s->ctx = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	REQUIRE(s->pd = ibv_alloc_pd(s->ctx));
	REQUIRE(!posix_memalign((void **)&s->mem, 4096, 2 * BUFFER));
	memset(s->mem, 1, 2 * BUFFER);
	REQUIRE(s->mr = ibv_reg_mr(s->pd, s->mem, 2 * BUFFER,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	REQUIRE(s->cq = ibv_create_cq(s->ctx, DEPTH, NULL, NULL, 0));
	init.send_cq = init.recv_cq = s->cq;
	REQUIRE(s->qp = ibv_create_qp(s->pd, &init));
	while (e.gid_type != IBV_GID_TYPE_ROCE_V2 || e.gid.raw[10] != 0xff)
		REQUIRE(!ibv_query_gid_ex(s->ctx, 1, s->gid_index++, &e, 0));
	s->gid_index--;
	*own = (struct address){ .gid = e.gid,
				 .qpn = s->qp->qp_num,
				 .rkey = s->mr->rkey,
				 .addr = (uintptr_t)s->mem + BUFFER };
}

static void side_connect(struct side *s, const struct address *to)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	REQUIRE(!ibv_modify_qp(
		s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = to->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = to->gid,
				      .sgid_index = s->gid_index,
				      .hop_limit = 64 } },
	};
	REQUIRE(!ibv_modify_qp(s->qp, &a,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1 };
	REQUIRE(!ibv_modify_qp(s->qp, &a,
			       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void side_close(struct side *s)
{
	REQUIRE(!ibv_destroy_qp(s->qp) && !ibv_destroy_cq(s->cq) && !ibv_dereg_mr(s->mr));
	REQUIRE(!ibv_dealloc_pd(s->pd) && !ibv_close_device(s->ctx));
	free(s->mem);
}

static void post_write(struct side *s, const struct address *to, size_t off, size_t len,
		       unsigned flags)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->mem + off,
			       .length = (uint32_t)len,
			       .lkey = s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = flags,
				  .wr.rdma = { .remote_addr = to->addr + off, .rkey = to->rkey } };
	struct ibv_send_wr *bad;

	REQUIRE(!ibv_post_send(s->qp, &wr, &bad));
}

static unsigned reap(struct side *s)
{
	struct ibv_wc wc[16];
	int i, n = ibv_poll_cq(s->cq, 16, wc);

	REQUIRE(n >= 0);
	for (i = 0; i < n; i++)
		REQUIRE(wc[i].status == IBV_WC_SUCCESS);
	if (!n)
		pause_if_crowded();
	return (unsigned)n;
}

/* Returns writes per second. All writes have completed when the function returns. */
static double writes(struct side *s, const struct address *to, size_t size, unsigned count)
{
	unsigned posted = 0, done = 0, places = BUFFER / size;
	const double start = seconds();

	count -= count % SIGNAL_EVERY;
	while (done < count) {
		while (posted < count && posted - done < DEPTH) {
			posted++;
			post_write(s, to, posted % places * size, size,
				   posted % SIGNAL_EVERY ? 0 : IBV_SEND_SIGNALED);
		}
		done += reap(s) * SIGNAL_EVERY;
	}
	return count / (seconds() - start);
}

/* ---- roles ---- */

static double completion_latency(struct side *s, const struct address *to)
{
	const double start = seconds();

	for (unsigned i = 0; i < PINGS; i++) {
		post_write(s, to, 0, 8, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
		while (!reap(s))
			;
	}
	return (seconds() - start) / PINGS * 1e6;
}

static void loop_role(int fd)
{
	struct report r;
	struct address to;
	struct side s = { 0 };
	int i;

	side_open(&s, &to);
	side_connect(&s, &to);
	for (i = 0; i < SIZES; i++) {
		writes(&s, &to, sizes[i], counts[i] / 4);
		r.rate[i] = writes(&s, &to, sizes[i], counts[i]);
	}
	r.latency = completion_latency(&s, &to);
	side_close(&s);
	send_bytes(fd, &r, sizeof(r));
}

/* Exchanges PINGS words with the peer, each by an RDMA write, and returns the microseconds
 * per round trip. first: this side writes the first word. */
static double ping_pong(struct side *s, const struct address *to, bool first)
{
	uint64_t *out = (uint64_t *)(void *)s->mem;
	volatile uint64_t *in = (volatile uint64_t *)(void *)(s->mem + BUFFER);
	const double start = seconds();

	for (uint64_t i = 1; i <= PINGS; i++) {
		if (!first)
			await_word(in, i);
		*out = i;
		post_write(s, to, 0, 8,
			   (i % SIGNAL_EVERY ? 0 : IBV_SEND_SIGNALED) | IBV_SEND_INLINE);
		if (first)
			await_word(in, i);
		if (i % SIGNAL_EVERY == 0)
			while (!reap(s))
				;
	}
	return (seconds() - start) / PINGS * 1e6;
}

/* fd[0]: socket to the other side; fd[1]: pipe for the client's report, -1 in the server. */
static void pair_role(const int fd[2])
{
	struct address own, to;
	struct report r = { 0 };
	struct side s = { 0 };
	char turn = 0;
	int i;

	side_open(&s, &own);
	send_bytes(fd[0], &own, sizeof(own));
	receive_bytes(fd[0], &to, sizeof(to));
	side_connect(&s, &to);
	send_bytes(fd[0], &turn, 1);
	receive_bytes(fd[0], &turn, 1);
	for (i = 0; fd[1] >= 0 && i < SIZES; i++) {
		writes(&s, &to, sizes[i], counts[i] / 4);
		r.rate[i] = writes(&s, &to, sizes[i], counts[i]);
	}
	memset(s.mem + BUFFER, 0, 8);
	send_bytes(fd[0], &turn, 1);
	receive_bytes(fd[0], &turn, 1);
	r.latency = ping_pong(&s, &to, fd[1] >= 0);
	send_bytes(fd[0], &turn, 1);
	receive_bytes(fd[0], &turn, 1);
	side_close(&s);
	if (fd[1] >= 0)
		send_bytes(fd[1], &r, sizeof(r));
}

/* ---- a round ---- */

static const char *const no_options[] = { NULL };

static void ended_well(pid_t pid)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
}

static struct report run_loop(void)
{
	struct report r;
	int out[2];
	pid_t pid;

	REQUIRE(!pipe(out));
	pid = start_on_nic(no_options, "loop", out[1], -1);
	close(out[1]);
	receive_bytes(out[0], &r, sizeof(r));
	close(out[0]);
	ended_well(pid);
	return r;
}

static struct report run_pair(void)
{
	int between[2], out[2];
	pid_t server, client;
	struct report r;

	REQUIRE(!pipe(out) && !socketpair(AF_UNIX, SOCK_STREAM, 0, between));
	server = start_on_nic(no_options, "pair", between[0], -1);
	client = start_on_nic(no_options, "pair", between[1], out[1]);
	close(between[0]);
	close(between[1]);
	close(out[1]);
	receive_bytes(out[0], &r, sizeof(r));
	close(out[0]);
	ended_well(client);
	ended_well(server);
	return r;
}

static double copy_rate(uint8_t *mem, size_t size)
{
	const unsigned count = 200u << 20 >> 16, places = BUFFER / 65536;
	const double start = seconds();

	for (unsigned i = 0; i < count; i++)
		for (size_t off = 0; off < 65536; off += size) {
			uint8_t *at = mem + i % places * 65536 + off;

			memcpy(at + BUFFER, at, size);
			__asm__ volatile("" ::: "memory");
		}
	return count * (65536.0 / (double)size) / (seconds() - start);
}

static struct series copies[SIZES], udp[SIZES], loop[SIZES], pair[SIZES];
static struct series udp_trip, loop_trip, pair_trip;

static void one_round(uint8_t *mem)
{
	struct report r;
	int i;

	for (i = 0; i < SIZES; i++) {
		series_add(&copies[i], copy_rate(mem, sizes[i]));
		series_add(&udp[i], udp_rate(sizes[i] < 4096 ? sizes[i] : 4096) /
					    (sizes[i] > 4096 ? (double)sizes[i] / 4096 : 1));
	}
	series_add(&udp_trip, udp_round_trip());
	r = run_loop();
	for (i = 0; i < SIZES; i++)
		series_add(&loop[i], r.rate[i]);
	series_add(&loop_trip, r.latency);
	r = run_pair();
	for (i = 0; i < SIZES; i++)
		series_add(&pair[i], r.rate[i]);
	series_add(&pair_trip, r.latency);
}

static void print_rates(const char *what, struct series *s, struct series *of, const char *name)
{
	for (int i = 0; i < SIZES; i++) {
		double rate = median(&s[i]);

		printf("%-22s %6zu  %10.0f  %10.0f to %10.0f  %8.3f", what, sizes[i], rate,
		       s[i].v[0], s[i].v[RUNS - 1], rate * (double)sizes[i] / 1e9);
		if (of)
			printf("  %.2f of %s", rate / median(&of[i]), name);
		printf("\n");
	}
}

static void print_trip(const char *what, struct series *s, bool of_udp)
{
	double us = median(s);

	printf("%-22s %6d  %10.2f  %10.2f to %10.2f  us", what, 8, us, s->v[0], s->v[RUNS - 1]);
	if (of_udp)
		printf("  %.2f of UDP round trip", us / median(&udp_trip));
	printf("\n");
}

int main(int argc, char **argv)
{
	uint8_t *mem;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(LIMIT_S); /* so that no process outlives a peer that died */
	if (argc == 4 && !strcmp(argv[1], "loop"))
		return loop_role(atoi(argv[2])), 0;
	if (argc == 4)
		return pair_role((int[]){ atoi(argv[2]), atoi(argv[3]) }), 0;
	REQUIRE(!posix_memalign((void **)&mem, 4096, 2 * BUFFER));
	memset(mem, 1, 2 * BUFFER);
	copy_rate(mem, 65536);
	for (int i = 0; i < RUNS; i++)
		one_round(mem);
	free(mem);
	printf("%ld cores\n%-22s %6s  %10s  %24s  %8s\n", sysconf(_SC_NPROCESSORS_ONLN), "",
	       "bytes", "per second", "range", "GB/s");
	print_rates("memcpy", copies, NULL, "");
	print_rates("UDP, packets of 4096", udp, NULL, "");
	print_rates("NIC, one process", loop, copies, "memcpy");
	print_rates("NIC, two processes", pair, udp, "UDP");
	print_trip("UDP round trip", &udp_trip, false);
	print_trip("NIC, post to CQE", &loop_trip, true);
	print_trip("NIC round trip", &pair_trip, true);
	return 0;
}
