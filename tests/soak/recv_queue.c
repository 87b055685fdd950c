/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Drives a receive queue as known applications do, between two queue pairs of one process. Run it
 * on a wire that loses, duplicates and reorders packets (tests/recv_queue.sh).
 *
 *   nixl      RC. Writes 4096 receives once and submits them without a reservation. Polls the CQ by
 *             itself, and submits one old slot again for each message. Each message must arrive
 *             once, in order, with its length and content. Now and then the receiver stops until
 *             all of its receives are used, so that the sender must wait for a receive.
 *   holoscan  UC. Posts 64 receives without a buffer for writes with immediate. Each thread waits
 *             for its tickets, reads the immediate value, and submits the slot 64 further with CTA
 *             sharing. A message must arrive at most once, in order, with its content.
 *
 * With UC each message has at least three packets. A responder of the InfiniBand specification
 * executes a message again if all its packets arrive again in order, because UC has no duplicates.
 * The wire can duplicate each packet and delays a packet by one at most, so that this can only
 * happen to messages of one or two packets.
 *
 * usage: recv_queue nixl|holoscan [-n RECEIVES] [-s SEED] [-t THREADS of holoscan]
 */
#include <dlfcn.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>

#include "../lib/recv_rig.h"
#include "../softnic/softnic.h"

#define CTA	    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define DEPTH	    4096u  /* receives of nixl */
#define ROOM	    2048u  /* bytes of a receive of nixl */
#define PAUSE	    10000u /* messages between two pauses of the receiver */
#define FRAMES	    64u	   /* receives of holoscan */
#define FRAME_ROOM  4096u
#define PLACES	    256u /* where the writes of holoscan land in turn */
#define IN_FLIGHT   32u
#define LOST_NS	    2000000ull
#define WAIT_NS	    60000000000ull /* a virtual machine may be stopped for seconds */
#define MAX_THREADS 8u

#define DIE(...) \
	do { \
		fprintf(stderr, "recv_queue: "); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		exit(1); \
	} while (0)

static struct recv_rig r;
static uint64_t receives = 10000, seed = 1, sent;
static uint32_t threads = 1;

/* ---- length and content of message n ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ull + b * 0xbf58476d1ce4e5b9ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 31;
}

static uint32_t length_of(uint64_t n, uint32_t least, uint32_t most)
{
	const uint64_t h = mix(seed, n);

	/* Three of four messages are short. */
	return least + (uint32_t)(h >> 8) % (h & 3 ? (most - least) / 16 + 1 : most - least + 1);
}

static void fill(uint8_t *p, uint64_t n, uint32_t len)
{
	uint64_t x = mix(seed ^ 0x5eed, n);
	uint32_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(p + i, &x, 8);
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	}
	memcpy(p + i, &x, len - i);
}

static void check_content(const uint8_t *p, uint64_t n, uint32_t len)
{
	uint8_t want[FRAME_ROOM];
	uint32_t i;

	fill(want, n, len);
	if (!memcmp(want, p, len))
		return;
	for (i = 0; want[i] == p[i]; i++)
		;
	DIE("message %" PRIu64 ": byte %u of %u is 0x%02x (expected 0x%02x)", n, i, len, p[i],
	    want[i]);
}

static const struct doca_gpunetio_ib_mlx5_cqe64 *cqe_of(uint64_t index)
{
	const struct doca_gpu_dev_verbs_cq *cq = gdk_qp_cq_rq(r.b.dev);

	return (const void *)(cq->cqe_daddr + (index & cq->cqe_mask) * 64);
}

static void expect_no_cqe(uint64_t index)
{
	if (recv_poll_by_hand(gdk_qp_cq_rq(r.b.dev), index) != EBUSY)
		DIE("a completion without a message: receive %" PRIu64, index);
}

static struct gdk_how how(gdk_mode_t mode)
{
	return gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
}

static void set_wait_limit(void)
{
	E2E_REQUIRE(!gdk_verbs_qp_set_wait_limit(r.a.ex, WAIT_NS));
	E2E_REQUIRE(!gdk_verbs_qp_set_wait_limit(r.b.ex, WAIT_NS));
}

/* ---- nixl ---- */

static uint32_t nixl_length(uint64_t n)
{
	return length_of(n, 0, ROOM);
}

static void *nixl_send(void *arg)
{
	doca_gpu_dev_verbs_ticket_t ticket[IN_FLIGHT];
	uint64_t n;
	int rc;

	for (n = 0; n < receives + IN_FLIGHT; n++) {
		const size_t at = n % IN_FLIGHT * ROOM;

		rc = n < IN_FLIGHT ? 0 : gdk_wait(r.a.dev, ticket[n % IN_FLIGHT], E2E_MODE);
		if (rc)
			DIE("message %" PRIu64 " was not sent: %d", n - IN_FLIGHT, rc);
		if (n >= receives)
			continue;
		fill(r.a.buf.mem + at, n, nixl_length(n));
		rc = gdk_send(r.a.dev, recv_at(&r.a, at), nixl_length(n), &ticket[n % IN_FLIGHT],
			      how(E2E_MODE));
		if (rc)
			DIE("posting message %" PRIu64 " failed: %d", n, rc);
	}
	return arg;
}

static void nixl_poll(uint64_t index)
{
	const uint64_t until = e2e_now_ns() + WAIT_NS;
	int rc;

	while ((rc = recv_poll_by_hand(gdk_qp_cq_rq(r.b.dev), index)) == EBUSY) {
		if (e2e_now_ns() > until)
			DIE("message %" PRIu64 " is missing", index);
		sched_yield();
	}
	if (rc)
		DIE("receive %" PRIu64 " failed, syndrome 0x%02x", index,
		    ((const struct doca_gpunetio_ib_mlx5_err_cqe_ex *)cqe_of(index))->syndrome);
}

static void nixl_receive(uint64_t n)
{
	const struct doca_gpunetio_ib_mlx5_cqe64 *cqe = cqe_of(n);
	int rc;

	if (n % PAUSE == PAUSE - 1 && n + DEPTH <= receives)
		nixl_poll(n + DEPTH - 1);
	nixl_poll(n);
	if (cqe->op_own >> 4 != DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND ||
	    be16toh(cqe->wqe_counter) != (uint16_t)n || gdk_cqe_bytes(cqe) != nixl_length(n))
		DIE("completion %" PRIu64 ": op_own 0x%02x, receive %u, %u bytes (expected receive "
		    "%u, %u bytes)",
		    n, cqe->op_own, be16toh(cqe->wqe_counter), gdk_cqe_bytes(cqe), (uint16_t)n,
		    nixl_length(n));
	check_content(r.b.buf.mem + n % DEPTH * ROOM, n, nixl_length(n));
	rc = gdk_rq_submit(r.b.dev, r.b.dev->rq_wqe_pi + 1, how(E2E_MODE));
	if (rc || r.b.dev->rq_wqe_pi != DEPTH + n + 1)
		DIE("submitting slot %" PRIu64 " again: %d, index %" PRIu64, n, rc,
		    r.b.dev->rq_wqe_pi);
}

static void nixl(void)
{
	struct gdk_qp_recv_counters c;
	pthread_t sender;
	uint64_t n;

	recv_rig_create(
		&r,
		(struct recv_rig_how){ .handler = E2E_DB, .rq_wr = DEPTH, .bytes = DEPTH * ROOM },
		NULL);
	set_wait_limit();
	recv_rig_connect_rnr(&r, 7);
	for (n = 0; n < DEPTH; n++)
		gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, n),
			     (uintptr_t)r.b.buf.mem + n * ROOM, gdk_key(r.b.buf.mr->lkey), ROOM);
	E2E_REQUIRE(!gdk_rq_submit(r.b.dev, DEPTH, how(E2E_MODE)));
	E2E_REQUIRE(!pthread_create(&sender, NULL, nixl_send, NULL));
	for (n = 0; n < receives; n++)
		nixl_receive(n);
	pthread_join(sender, NULL);
	expect_no_cqe(receives);
	E2E_REQUIRE(!gdk_verbs_qp_get_recv_counters(r.b.ex, &c));
	if (c.posted != DEPTH + receives || c.status)
		DIE("%" PRIu64 " receives posted, status %d", c.posted, c.status);
	sent = receives;
}

/* ---- holoscan ---- */

static uint32_t *imms;			  /* immediate value of each completion */
static uint64_t next_ticket[MAX_THREADS]; /* of each thread */

static uint32_t frame_length(uint64_t n)
{
	return length_of(n, 2049, 4000);
}

static void *holoscan_receive(void *arg)
{
	const uint32_t id = (uint32_t)(uintptr_t)arg;
	struct doca_gpu_dev_verbs_cq *cq = gdk_qp_cq_rq(r.b.dev);
	uint64_t ticket;
	int rc;

	for (ticket = id; ticket < receives; ticket += threads) {
		const struct doca_gpunetio_ib_mlx5_cqe64 *cqe = cqe_of(ticket);

		rc = gdk_poll_cq_at(cq, ticket, E2E_MODE);
		if (rc)
			DIE("waiting for receive %" PRIu64 " failed: %d", ticket, rc);
		imms[ticket] = be32toh(cqe->imm_inval_pkey);
		if (cqe->op_own >> 4 != DOCA_GPUNETIO_IB_MLX5_CQE_RESP_WR_IMM ||
		    gdk_cqe_bytes(cqe) != frame_length(imms[ticket]))
			DIE("completion %" PRIu64 ": op_own 0x%02x, message %u, %u bytes", ticket,
			    cqe->op_own, imms[ticket], gdk_cqe_bytes(cqe));
		check_content(r.b.buf.mem + imms[ticket] % PLACES * FRAME_ROOM, imms[ticket],
			      frame_length(imms[ticket]));
		rc = gdk_rq_submit(r.b.dev, ticket + FRAMES + 1, how(CTA));
		if (rc)
			DIE("submitting receive %" PRIu64 " failed: %d", ticket + FRAMES, rc);
		__atomic_store_n(&next_ticket[id], ticket + threads, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* All tickets below the result are done. */
static uint64_t tickets_done(void)
{
	uint64_t least = UINT64_MAX, t;

	for (uint32_t i = 0; i < threads; i++) {
		t = __atomic_load_n(&next_ticket[i], __ATOMIC_ACQUIRE);
		least = t < least ? t : least;
	}
	return least < receives ? least : receives;
}

/*
 * Waits until at most IN_FLIGHT messages before n can be on their way. A message before the last
 * one that arrived is lost if it has not arrived. If no completion waits for a thread for a while,
 * the oldest message is taken as lost. Returns the first message that can be on its way.
 */
static uint64_t holoscan_window(uint64_t n, uint64_t base)
{
	uint64_t since = e2e_now_ns(), done;

	while ((done = tickets_done()) < receives) {
		if (done && imms[done - 1] + 1ull > base)
			base = imms[done - 1] + 1ull;
		if (n - base < IN_FLIGHT)
			break;
		if (recv_poll_by_hand(gdk_qp_cq_rq(r.b.dev), done) != EBUSY)
			since = e2e_now_ns();
		else if (e2e_now_ns() - since > LOST_NS)
			return base + 1;
		sched_yield();
	}
	return base;
}

static void holoscan_send(void)
{
	doca_gpu_dev_verbs_ticket_t ticket[IN_FLIGHT];
	uint64_t n, base = 0;
	int rc;

	for (n = 0; tickets_done() < receives; n++) {
		const size_t at = n % IN_FLIGHT * FRAME_ROOM;

		base = holoscan_window(n, base);
		rc = n < IN_FLIGHT ? 0 : gdk_wait(r.a.dev, ticket[n % IN_FLIGHT], E2E_MODE);
		if (rc)
			DIE("message %" PRIu64 " was not sent: %d", n - IN_FLIGHT, rc);
		fill(r.a.buf.mem + at, n, frame_length(n));
		rc = gdk_put_imm(r.a.dev, recv_remote(&r.b, n % PLACES * FRAME_ROOM),
				 recv_at(&r.a, at), frame_length(n), htobe32((uint32_t)n),
				 &ticket[n % IN_FLIGHT], how(E2E_MODE));
		if (rc)
			DIE("posting message %" PRIu64 " failed: %d", n, rc);
	}
	sent = n;
}

static void holoscan(void)
{
	const struct doca_gpu_dev_verbs_addr terminator = { 0, htobe32(0x100) };
	doca_gpu_dev_verbs_ticket_t ticket;
	pthread_t t[MAX_THREADS];
	uint64_t n;

	E2E_REQUIRE(imms = calloc(receives, sizeof(*imms)));
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB,
						 .rq_wr = FRAMES,
						 .uc = true,
						 .bytes = PLACES * FRAME_ROOM });
	set_wait_limit();
	for (n = 0; n < FRAMES; n++)
		E2E_REQUIRE(!gdk_recv(r.b.dev, terminator, 0, &ticket, how(E2E_MODE)) &&
			    ticket == n);
	for (n = 0; n < threads; n++) {
		next_ticket[n] = n;
		E2E_REQUIRE(!pthread_create(&t[n], NULL, holoscan_receive, (void *)(uintptr_t)n));
	}
	holoscan_send();
	for (n = 0; n < threads; n++)
		pthread_join(t[n], NULL);
	for (n = 1; n < receives; n++)
		if (imms[n] <= imms[n - 1])
			DIE("completion %" PRIu64 " is of message %u, the one before it of message "
			    "%u",
			    n, imms[n], imms[n - 1]);
	free(imms);
}

static void report(const char *what)
{
	const struct sn_stats *(*stats)(void);

	*(void **)&stats = dlsym(RTLD_DEFAULT, "sn_stats_get");
	if (!stats)
		DIE("it does not run on the software NIC (softnic-run)");
	printf("recv_queue: %s, seed %" PRIu64 ", threads %u: %" PRIu64 " receives of %" PRIu64
	       " messages, %" PRIu64 " faults, %" PRIu64 " repeated requests, %" PRIu64
	       " messages dropped, %" PRIu64 " NAKs\n",
	       what, seed, threads, receives, sent, stats()->faults_injected, stats()->dup_requests,
	       stats()->dropped_messages, stats()->naks_received);
}

int main(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "n:s:t:")) != -1) {
		if (o == 'n')
			receives = strtoull(optarg, NULL, 0);
		else if (o == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (o == 't')
			threads = (uint32_t)strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	if (optind != argc - 1 || !receives || !threads || threads > MAX_THREADS)
		DIE("usage: recv_queue [-n RECEIVES] [-s SEED] [-t THREADS] nixl|holoscan");
	if (!strcmp(argv[optind], "nixl"))
		nixl();
	else if (!strcmp(argv[optind], "holoscan"))
		holoscan();
	else
		DIE("unknown discipline \"%s\" (expected nixl or holoscan)", argv[optind]);
	report(argv[optind]);
	recv_rig_close(&r);
	return 0;
}
