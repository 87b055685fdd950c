/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends messages between two processes over plain verbs and checks every byte and every
 * completion, in particular while packets are lost. Operation, size, place and content of
 * message n of queue pair q follow from the seed, so that both sides know them.
 *
 *   WRITE       is read back by the READ that follows it, including the guard bytes around it
 *   READ        is checked by the client
 *   WRITE_IMM   is checked by the server, which knows the next number and content
 *   SEND        is checked by the server in the receive buffers that it posted
 *   FETCH_ADD   must return the number of earlier additions to the queue pair's word; if n is
 *               a multiple of 3, it adds to a word that all queue pairs share, which must not
 *               decrease and must hold the number of these additions at the end
 *   CMP_SWAP    increments a word of the queue pair, and must return the value that the
 *               previous CMP_SWAP stored
 *
 * Each completion must arrive once, and in posting order for each queue pair. Some WRITEs are
 * unsignaled: the next completion then also completes them.
 *
 * usage: soak [options]             the server
 *        soak [options] ADDRESS     the client, with the server's address
 *   -p PORT (18600)  -n MESSAGES per run (100000)  -q QUEUE PAIRS (4)  -s SEED (1)
 *   -w MESSAGES in flight per queue pair (16)  -t seconds without progress (60)
 */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

/* ---- set-up ---- */

static void exchange(struct run *r)
{
	size_t n;
	ssize_t got;

	if (write(r->sock, &r->self, sizeof(r->self)) != sizeof(r->self))
		DIE("sending our address to the peer failed: %s", strerror(errno));
	for (n = 0; n < sizeof(r->peer); n += got) {
		got = read(r->sock, (char *)&r->peer + n, sizeof(r->peer) - n);
		if (got <= 0)
			DIE("the peer closed the connection");
	}
}

static void join(struct run *r, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = host ? 0 : AI_PASSIVE },
			*ai;
	int fd, one = 1, tries;

	if (getaddrinfo(host, port, &hints, &ai))
		DIE("address \"%s\" cannot be resolved", host);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (!host) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
			DIE("port %s: %s", port, strerror(errno));
		r->sock = accept(fd, NULL, NULL);
		close(fd);
	} else {
		for (tries = 0; connect(fd, ai->ai_addr, ai->ai_addrlen); tries++) {
			if (tries == 100)
				DIE("%s: %s", host, strerror(errno));
			usleep(100000);
		}
		r->sock = fd;
	}
	freeaddrinfo(ai);
}

static void find_gid(struct run *r)
{
	struct ibv_gid_entry e;

	for (r->gid_index = 0; !ibv_query_gid_ex(r->ctx, 1, r->gid_index, &e, 0); r->gid_index++)
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[10] == 0xff) {
			r->self.gid = e.gid;
			return;
		}
	DIE("no RoCE v2 GID of an IPv4 address");
}

static void open_nic(struct run *r)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = MAX_WINDOW,
						  .max_recv_wr = RECVS,
						  .max_send_sge = 2,
						  .max_recv_sge = 2,
						  .max_inline_data = INLINE } };
	unsigned q;

	if (!list || !list[0] || !(r->ctx = ibv_open_device(list[0])))
		DIE("no NIC found, or it cannot be opened");
	ibv_free_device_list(list);
	r->pd = ibv_alloc_pd(r->ctx);
	r->cq = ibv_create_cq(r->ctx, (int)(r->qps * (MAX_WINDOW + RECVS)), NULL, NULL, 0);
	r->mem = aligned_alloc(4096, (total(r) + 4095) & ~4095ull);
	if (!r->pd || !r->cq || !r->mem)
		DIE("creating PD, CQ or memory failed: %s", strerror(errno));
	if (!r->server) {
		r->shadow = malloc(area(r));
		if (!r->shadow)
			DIE("no memory");
		memset(r->shadow, GUARD_BYTE, area(r));
	}
	memset(r->mem, GUARD_BYTE, words(r));
	memset(r->mem + words(r), 0, 4096);
	r->mr = ibv_reg_mr(r->pd, r->mem, total(r), access);
	init.send_cq = init.recv_cq = r->cq;
	for (q = 0; q < r->qps; q++) {
		r->qp[q] = ibv_create_qp(r->pd, &init);
		if (!r->qp[q])
			DIE("creating queue pair %u failed: %s", q, strerror(errno));
		r->self.qpn[q] = r->qp[q]->qp_num;
	}
	if (!r->mr)
		DIE("registering memory failed: %s", strerror(errno));
	r->self.base = (uintptr_t)r->mem;
	r->self.rkey = r->mr->rkey;
	find_gid(r);
}

static void must(int err, const char *what)
{
	if (err)
		DIE("%s: %s", what, strerror(err));
}

static void post_recv(struct run *r, unsigned q, uint64_t k)
{
	struct ibv_sge sge = { .addr = (uintptr_t)r->mem + slot(q, k),
			       .length = BIG,
			       .lkey = r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = k, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(ibv_post_recv(r->qp[q], &wr, &bad), "post a receive");
}

static void connect_qp(struct run *r, unsigned q)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };
	unsigned k;

	must(ibv_modify_qp(r->qp[q], &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	for (k = 0; r->server && k < RECVS; k++)
		post_recv(r, q, k);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(IBV_MTU_256 + q % 5),
		.dest_qp_num = r->peer.qpn[q],
		.rq_psn = 0xfffff0 + q, /* close to the wrap-around */
		.max_dest_rd_atomic = MAX_RD,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = r->peer.gid,
				      .sgid_index = (uint8_t)r->gid_index,
				      .hop_limit = 64 } },
	};
	must(ibv_modify_qp(r->qp[q], &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .sq_psn = 0xfffff0 + q,
				  .timeout = ACK_TIMEOUT,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = MAX_RD };
	must(ibv_modify_qp(r->qp[q], &a,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

/* ---- progress ---- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Waits for completions; ends the program if none arrives for r->patience seconds. */
static int wait_wc(struct run *r, struct ibv_wc *wc, int n)
{
	struct timespec nap = { 0, 20000 };
	double end = now() + r->patience;
	int got, spins = 0;

	while (!(got = ibv_poll_cq(r->cq, n, wc)))
		if (++spins > 50) {
			nanosleep(&nap, NULL);
			if (now() > end)
				DIE("%s: no completion for %u s", r->server ? "server" : "client",
				    r->patience);
		}
	if (got < 0)
		DIE("polling the CQ failed");
	return got;
}

static unsigned qp_of(const struct run *r, uint32_t qpn)
{
	unsigned q;

	for (q = 0; q < r->qps; q++)
		if (r->qp[q]->qp_num == qpn)
			return q;
	DIE("completion of unknown queue pair 0x%x", qpn);
}

/* ---- client ---- */

static uint32_t read_back(const struct message *m)
{
	return m->op == READ ? m->len + 2 * GUARD : m->len;
}

static void post(struct run *r, unsigned q)
{
	uint64_t n = r->posted[q]++, at = slot(q, n);
	struct message m = message(r, q, n);
	uint32_t len = read_back(&m), first = m.op < FETCH_ADD ? len / 3 : 0;
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)r->mem + at, .length = first, .lkey = r->mr->lkey },
		{ .addr = (uintptr_t)r->mem + at + first,
		  .length = len - first,
		  .lkey = r->mr->lkey },
	};
	struct ibv_send_wr wr = { .wr_id = n << 8 | q,
				  .sg_list = first ? sge : sge + 1,
				  .num_sge = first ? 2 : len != 0,
				  .send_flags = m.quiet ? 0 : IBV_SEND_SIGNALED,
				  .imm_data = htobe32((uint32_t)n) },
			   *bad;

	wr.wr.rdma.rkey = r->peer.rkey;
	switch (m.op) {
	case WRITE:
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = r->peer.base + landing(r, q, m.number) + GUARD;
		break;
	case READ:
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = r->peer.base + landing(r, q, m.number);
		memset(r->mem + at, 0, len);
		break;
	case WRITE_IMM:
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.rdma.remote_addr = r->peer.base + imm_place(r, q, r->taken[q]++);
		break;
	case SEND:
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		r->taken[q]++;
		break;
	default:
		wr.opcode = m.op == FETCH_ADD ? IBV_WR_ATOMIC_FETCH_AND_ADD
					      : IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.rkey = r->peer.rkey;
		wr.wr.atomic.compare_add = m.op == FETCH_ADD ? 1 : r->swaps[q];
		wr.wr.atomic.swap = r->swaps[q] + 1;
		r->swaps[q] += m.op == CMP_SWAP;
		wr.wr.atomic.remote_addr = r->peer.base + words(r) + 16 + 16 * q +
					   (m.op == CMP_SWAP ? 8 : 0);
		/* if n is a multiple of 3, add to the word that all queue pairs share */
		if (m.op == FETCH_ADD && n % 3 == 0)
			wr.wr.atomic.remote_addr = r->peer.base + words(r);
		memset(r->mem + at, 0xee, 8);
	}
	if (m.op == WRITE || m.op == WRITE_IMM || m.op == SEND) {
		fill(r, q, &m, r->mem + at);
		if (len <= INLINE && n % 5 == 0)
			wr.send_flags |= IBV_SEND_INLINE;
	}
	must(ibv_post_send(r->qp[q], &wr, &bad), "post");
}

static void check_atomic(struct run *r, unsigned q, uint64_t n, const struct message *m,
			 const uint8_t *p, uint64_t *seen_shared, uint64_t *swapped)
{
	uint64_t old, want;

	memcpy(&old, p, 8);
	if (m->op == FETCH_ADD && n % 3 == 0) {
		if (old < seen_shared[q])
			DIE("the shared word decreased from %" PRIu64 " to %" PRIu64,
			    seen_shared[q], old);
		seen_shared[q] = old + 1;
		r->expected++;
		return;
	}
	want = m->op == FETCH_ADD ? r->adds[q]++ : swapped[q]++;
	if (old != want)
		DIE("queue pair %u message %" PRIu64 ": %s returned %" PRIu64 ", expected %" PRIu64,
		    q, n, m->op == FETCH_ADD ? "FETCH_ADD" : "CMP_SWAP", old, want);
}

static void finish(struct run *r, unsigned q, uint64_t n)
{
	static uint64_t shared[MAX_QPS], swapped[MAX_QPS];
	const uint8_t *p = r->mem + slot(q, n);
	struct message m = message(r, q, n);
	uint8_t *was;

	if (m.op == FETCH_ADD || m.op == CMP_SWAP)
		check_atomic(r, q, n, &m, p, shared, swapped);
	if (m.op != READ)
		return;
	was = r->shadow + slot(q, m.number);
	check(r, q, &m, p + GUARD);
	fill(r, q, &m, was + GUARD);
	if (memcmp(p, was, m.len + 2 * GUARD))
		DIE("queue pair %u message %" PRIu64 ": the guard bytes around it changed", q, n);
}

static void completed(struct run *r, const struct ibv_wc *wc)
{
	unsigned q = wc->wr_id & 0xff;
	uint64_t n = wc->wr_id >> 8;

	if (wc->status != IBV_WC_SUCCESS)
		DIE("queue pair %u message %" PRIu64 ": %s (vendor 0x%x)", q, n,
		    ibv_wc_status_str(wc->status), wc->vendor_err);
	for (; r->done[q] < n; r->done[q]++)
		if (!message(r, q, r->done[q]).quiet)
			DIE("queue pair %u: completion of message %" PRIu64
			    " before that of %" PRIu64,
			    q, n, r->done[q]);
	if (r->done[q] != n || message(r, q, n).quiet)
		DIE("queue pair %u: unexpected completion of message %" PRIu64, q, n);
	finish(r, q, n);
	r->done[q]++;
}

static void client(struct run *r)
{
	struct ibv_wc wc[32];
	bool busy;
	unsigned q;
	int i, n;

	do {
		for (busy = false, q = 0; q < r->qps; q++) {
			while (r->posted[q] < share(r, q) && r->posted[q] - r->done[q] < r->window)
				post(r, q);
			busy |= r->done[q] < share(r, q);
		}
		for (i = 0, n = busy ? wait_wc(r, wc, 32) : 0; i < n; i++)
			completed(r, &wc[i]);
	} while (busy);
}

/* ---- server ---- */

static bool consumes(const struct message *m)
{
	return m->op == SEND || m->op == WRITE_IMM;
}

static void received(struct run *r, const struct ibv_wc *wc)
{
	unsigned q = qp_of(r, wc->qp_num);
	uint64_t k = r->taken[q]++;
	struct message m;

	if (wc->status != IBV_WC_SUCCESS)
		DIE("server, queue pair %u: %s", q, ibv_wc_status_str(wc->status));
	while (m = message(r, q, r->next[q]), !consumes(&m))
		r->next[q]++;
	if (wc->wr_id != k || be32toh(wc->imm_data) != (uint32_t)r->next[q] ||
	    wc->byte_len != m.len ||
	    wc->opcode != (m.op == SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM))
		DIE("server, queue pair %u: message %u of %u bytes in receive %" PRIu64
		    ", expected message %" PRIu64 " of %u bytes in receive %" PRIu64,
		    q, be32toh(wc->imm_data), wc->byte_len, wc->wr_id, r->next[q], m.len, k);
	check(r, q, &m, r->mem + (m.op == SEND ? slot(q, k) : imm_place(r, q, k)));
	r->next[q]++;
	post_recv(r, q, k + RECVS);
}

static void server(struct run *r)
{
	uint64_t want[MAX_QPS] = { 0 }, left = 0, n;
	struct message m;
	struct ibv_wc wc[32];
	unsigned q;
	int i, got;

	for (q = 0; q < r->qps; q++) {
		for (n = 0; n < share(r, q); n++) {
			m = message(r, q, n);
			want[q] += consumes(&m);
		}
		left += want[q];
	}
	for (; left; left -= got) {
		got = wait_wc(r, wc, 32);
		for (i = 0; i < got; i++)
			received(r, &wc[i]);
	}
	for (q = 0; q < r->qps; q++)
		if (r->taken[q] != want[q])
			DIE("server, queue pair %u: %" PRIu64 " receives, expected %" PRIu64, q,
			    r->taken[q], want[q]);
}

/* After all messages, the client sends the number of its additions to the shared word,
 * and the server compares it with the word. */
static void compare_sums(struct run *r)
{
	uint64_t word, other;

	if (r->server) {
		if (read(r->sock, &other, 8) != 8)
			DIE("the client closed the connection");
		memcpy(&word, r->mem + words(r), 8);
		if (word != other)
			DIE("the shared word is %" PRIu64 " after %" PRIu64 " additions", word,
			    other);
		if (write(r->sock, &word, 8) != 8)
			DIE("the client closed the connection");
	} else if (write(r->sock, &r->expected, 8) != 8 || read(r->sock, &other, 8) != 8 ||
		   other != r->expected) {
		DIE("the server did not confirm the sum");
	}
}

int main(int argc, char **argv)
{
	struct run r = { .messages = 100000, .seed = 1, .qps = 4, .window = 16, .patience = 60 };
	const char *port = "18600";
	double start;
	unsigned q;
	int o;

	while ((o = getopt(argc, argv, "p:n:q:s:w:t:")) != -1)
		switch (o) {
		case 'p':
			port = optarg;
			break;
		case 'n':
			r.messages = strtoull(optarg, NULL, 0);
			break;
		case 'q':
			r.qps = (unsigned)atoi(optarg);
			break;
		case 's':
			r.seed = strtoull(optarg, NULL, 0);
			break;
		case 'w':
			r.window = (unsigned)atoi(optarg);
			break;
		case 't':
			r.patience = (unsigned)atoi(optarg);
			break;
		default:
			return 2;
		}
	if (!r.qps || r.qps > MAX_QPS || !r.window || r.window > MAX_WINDOW)
		DIE("expected 1 to %u queue pairs (-q) and 1 to %u messages in flight (-w)",
		    MAX_QPS, MAX_WINDOW);
	r.server = optind == argc;
	open_nic(&r);
	join(&r, r.server ? NULL : argv[optind], port);
	exchange(&r);
	for (q = 0; q < r.qps; q++)
		connect_qp(&r, q);
	exchange(&r); /* returns when both sides are connected */
	start = now();
	if (r.server)
		server(&r);
	else
		client(&r);
	compare_sums(&r);
	printf("soak: %s: %" PRIu64 " messages in %.1f s, %.0f per second, all data right\n",
	       r.server ? "server" : "client", r.messages, now() - start,
	       r.messages / (now() - start));
	return 0;
}
