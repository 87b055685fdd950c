/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The cases of the GPU test of Ethernet queues. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "eth_host.h"

/* Longest time, in the fastest try, from the host's abort to the return of the last thread. CPU
 * threads may wait for a processor. */
#define ABORT_LIMIT_NS (small_form ? 5000000000ull : 1000000ull)
#define ABORT_TRIES    (small_form ? 1 : 5)
#define ABORT_BOUND_NS 20000000000ull

#define MODE(name)  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_##name
#define SCOPE(name) DOCA_GPUNETIO_ETH_EXEC_SCOPE_##name
#define BY(name)    DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name

static struct et_case *out, *out_end;
static bool small_form;
/* A warp and a block are one thread. */
#if defined(GDK_WARP) && GDK_WARP == 1
static const bool one_lane = true;
#else
static const bool one_lane;
#endif

/* ---- packets ---- */

static int check_status(const int *status, uint32_t threads, const char *what)
{
	for (uint32_t i = 0; i < threads; i++)
		if (status[i])
			return et_complain("thread %u of the %s returned %d", i, what, status[i]);
	return 0;
}

/* Every packet arrived once. If not, the complaint has the number of packets that did not arrive,
 * and of those that arrived more than once, each with the first of them. */
static int check_seen(const uint32_t *seen, uint32_t num)
{
	uint32_t missing = 0, doubled = 0, first_missing = 0, first_doubled = 0, i;

	for (i = num; i-- > 0;) {
		if (!seen[i]) {
			missing++;
			first_missing = i;
		} else if (seen[i] > 1) {
			doubled++;
			first_doubled = i;
		}
	}
	if (!missing && !doubled)
		return 0;
	return et_complain(
		"of %u packets, %u did not arrive (the first is %u), %u arrived more than "
		"once (%u)",
		num, missing, first_missing, doubled, first_doubled);
}

static int check_packets(const struct et_queues *q, const struct et_job *job)
{
	const uint32_t num = et_packets(job);
	uint32_t *seen = malloc(num * sizeof(*seen));
	struct et_result r;
	int rc;

	ET_REQUIRE(seen && !et_gpu_copy(seen, q->seen, num * sizeof(*seen)));
	ET_REQUIRE(!et_gpu_copy(&r, q->result, sizeof(r)));
	rc = check_seen(seen, num);
	free(seen);
	if (r.wrong)
		rc = et_complain("%u packets differ, one is %u", r.wrong, r.first_wrong);
	return rc;
}

static int check_counters(const struct et_queues *q, const struct et_job *job)
{
	const uint64_t num = et_packets(job);
	struct gdk_eth_txq_counters tx;
	struct gdk_eth_rxq_counters rx;

	ET_REQUIRE(!gdk_eth_txq_get_counters(q->txq, &tx) &&
		   !gdk_eth_rxq_get_counters(q->rxq, &rx));
	if (tx.status || tx.completed != tx.reserved || !tx.doorbells ||
	    (job->how != ET_MULTI && tx.reserved != job->first_tx + num))
		return et_complain("send queue: status %d, %llu slots reserved, %llu complete, "
				   "%llu doorbells",
				   tx.status, (unsigned long long)tx.reserved,
				   (unsigned long long)tx.completed,
				   (unsigned long long)tx.doorbells);
	if (rx.status || rx.packets != job->first_rx + num || rx.out_of_buffer)
		return et_complain("receive queue: status %d, %llu packets, %llu without a slot",
				   rx.status, (unsigned long long)rx.packets,
				   (unsigned long long)rx.out_of_buffer);
	return 0;
}

int et_run_packets(const struct et_case *c)
{
	struct et_queues q;
	struct et_job job;
	int rc;

	et_open(&q, c, &job);
	et_env.packets += et_packets(&job);
	if (c->in_turn)
		rc = et_launch(&job, true, false) || et_wait(&q) || et_launch(&job, false, true);
	else
		rc = et_launch(&job, true, true);
	rc = rc || et_wait(&q) || check_status(et_env.sent, job.blocks * job.threads, "sender") ||
	     check_status(et_env.got, job.rx_threads, "receiver") || check_packets(&q, &job) ||
	     check_counters(&q, &job);
	et_close(&q);
	return rc ? -1 : 0;
}

/* ---- least values, without a packet ---- */

int et_run_least(const struct et_case *c)
{
	struct et_queues q;
	struct et_job job;
	int rc = 0;

	et_open(&q, c, &job);
	for (job.threads = 1; job.threads <= c->threads && !rc; job.threads += c->rounds) {
		rc = et_launch(&job, true, false) || et_wait(&q) ||
		     check_status(et_env.sent, job.blocks * job.threads, "kernel");
		if (rc)
			printf("      blocks of %u threads\n", job.threads);
	}
	et_close(&q);
	return rc ? -1 : 0;
}

/* ---- aborts ---- */

static uint32_t count_ended(const int *status, uint32_t threads)
{
	uint32_t i, n = 0;

	for (i = 0; i < threads; i++)
		n += __atomic_load_n(&status[i], __ATOMIC_ACQUIRE) != ET_RUNNING;
	return n;
}

/* Measures the time from the abort to the return of the last thread. */
static int time_abort(struct et_queues *q, const struct et_job *job, bool send, uint64_t *ns)
{
	const uint32_t threads = send ? job->blocks * job->threads : job->rx_threads;
	const int *status = send ? et_env.sent : et_env.got;
	const struct timespec settle = { 0, 20000000 };
	uint64_t start, now;
	uint32_t i, early;

	nanosleep(&settle, NULL);
	early = count_ended(status, threads);
	start = et_now_ns();
	ET_REQUIRE(!(send ? gdk_eth_txq_abort(q->txq) : gdk_eth_rxq_abort(q->rxq)));
	do {
		now = et_now_ns();
	} while (count_ended(status, threads) < threads && now - start < ABORT_BOUND_NS);
	*ns = now - start;
	if (et_wait(q))
		return -1;
	if (early)
		return et_complain("%u threads returned before the abort", early);
	for (i = 0; i < threads; i++)
		if (status[i] != -ECANCELED)
			return et_complain("thread %u returned %d", i, status[i]);
	return 0;
}

/* Opens new queues for each try. */
int et_run_abort(const struct et_case *c)
{
	const bool send = c->how == ET_HOLE;
	uint64_t ns = 0, best = UINT64_MAX, worst = 0;
	struct et_queues q;
	struct et_job job;
	int i, rc = 0;

	for (i = 0; i < ABORT_TRIES && !rc; i++) {
		et_open(&q, c, &job);
		job.limit_ns = UINT64_MAX;
		rc = et_launch(&job, send, !send) || time_abort(&q, &job, send, &ns);
		et_close(&q);
		best = ns < best ? ns : best;
		worst = ns > worst ? ns : worst;
	}
	if (rc)
		return -1;
	printf("      %u threads ended %.0f to %.0f us after the abort\n",
	       send ? c->blocks * c->threads : c->rx_threads, (double)best / 1e3,
	       (double)worst / 1e3);
	/* The best try, because the host's scheduler may delay any one of them. */
	return best > ABORT_LIMIT_NS
		       ? et_complain("the fastest abort took %llu ns", (unsigned long long)best)
		       : 0;
}

/* ---- the cases ---- */

static void add(const char *name, struct et_case c)
{
	ET_REQUIRE(out < out_end);
	snprintf(c.name, sizeof(c.name), "%s", name);
	*out++ = c;
}

/* Four blocks of threads that share a queue of 256 slots, each with its packets. */
static struct et_case base(void)
{
	return (struct et_case){ .run = et_run_packets,
				 .how = ET_SEND,
				 .mode = MODE(GPU),
				 .exec = SCOPE(THREAD),
				 .rx_exec = SCOPE(BLOCK),
				 .handler = BY(AUTO),
				 .blocks = small_form ? 2 : 4,
				 .threads = small_form ? 32 : 128,
				 .rounds = small_form ? 8 : 20,
				 .each = 1,
				 .notify = 7,
				 .rx_threads = small_form ? 32 : 256,
				 .depth = 256,
				 .rx_num = 8192,
				 .max_pkts = 1000,
				 .mem = DOCA_GPU_MEM_TYPE_CPU_GPU };
}

static struct et_case sends(enum et_how how, int mode, int exec)
{
	struct et_case c = base();

	c.how = how;
	c.mode = (enum doca_gpu_dev_eth_resource_sharing_mode)mode;
	c.exec = (enum doca_gpu_dev_eth_exec_scope)exec;
	if (mode != MODE(GPU))
		c.blocks = 1;
	if (mode == MODE(EXCLUSIVE) && exec != SCOPE(BLOCK))
		c.threads = 32;
	if (mode == MODE(EXCLUSIVE) && (exec == SCOPE(THREAD) || one_lane))
		c.threads = 1;
	if (mode == MODE(EXCLUSIVE))
		c.rounds = 100;
	if (how == ET_MULTI)
		c.each = ET_EACH_MAX;
	return c;
}

static void add_sends(void)
{
	add("send: thread, exclusive", sends(ET_SEND, MODE(EXCLUSIVE), SCOPE(THREAD)));
	add("send: thread, CTA-shared", sends(ET_SEND, MODE(CTA), SCOPE(THREAD)));
	add("send: thread, GPU-shared", sends(ET_SEND, MODE(GPU), SCOPE(THREAD)));
	add("send: warp, exclusive", sends(ET_SEND, MODE(EXCLUSIVE), SCOPE(WARP)));
	add("send: block, exclusive", sends(ET_SEND, MODE(EXCLUSIVE), SCOPE(BLOCK)));
	add("multi-packet: warp, exclusive", sends(ET_MULTI, MODE(EXCLUSIVE), SCOPE(WARP)));
	add("send: warp, CTA-shared", sends(ET_SEND, MODE(CTA), SCOPE(WARP)));
	add("send: warp, GPU-shared", sends(ET_SEND, MODE(GPU), SCOPE(WARP)));
	add("send: block, CTA-shared", sends(ET_SEND, MODE(CTA), SCOPE(BLOCK)));
	add("send: block, GPU-shared", sends(ET_SEND, MODE(GPU), SCOPE(BLOCK)));
	add("multi-packet: warp, CTA-shared", sends(ET_MULTI, MODE(CTA), SCOPE(WARP)));
	add("multi-packet: warp, GPU-shared", sends(ET_MULTI, MODE(GPU), SCOPE(WARP)));
	add("by hand: thread, exclusive", sends(ET_BY_HAND, MODE(EXCLUSIVE), SCOPE(THREAD)));
	add("by hand: thread, GPU-shared", sends(ET_BY_HAND, MODE(GPU), SCOPE(THREAD)));
}

/* Without CQEs on request, only the last slot of each half of the ring generates one. */
static void add_short_rings(void)
{
	struct et_case c = base();

	c.blocks = 1;
	c.depth = 64;
	c.threads = 56;
	c.notify = 0;
	add("short ring: thread", c);
	c.exec = SCOPE(BLOCK);
	add("short ring: block of 56", c);
	c.exec = SCOPE(WARP);
	c.threads = 32;
	c.how = ET_MULTI;
	c.each = 3; /* 26 slots */
	add("short ring: multi-packet", c);
}

static void add_receives(void)
{
	struct et_case c = base();

	c.rx_exec = SCOPE(THREAD);
	c.rx_threads = 1;
	add("receive: thread", c);
	c.rx_exec = SCOPE(WARP);
	c.rx_threads = 32;
	add("receive: warp", c);
	c.rx_exec = SCOPE(BLOCK);
	c.rx_threads = 48;
	add("receive: block of 48", c);
	c.max_pkts = 0;
	add("receive: block of 48, no limit", c);
	c.rx_threads = small_form ? 33 : 1000;
	add(small_form ? "receive: block of 33" : "receive: block of 1000", c);
}

static void add_others(void)
{
	struct et_case c = base();

	c.handler = BY(GPU_SM_DB);
	add("handler GPU_SM_DB", c);
	c.handler = BY(CPU_PROXY);
	add("handler CPU_PROXY", c);

	c = base();
	c.rounds = 2;
	c.packets_on_gpu = true;
	if (!small_form) /* CPU threads have one kind of memory */
		add("packets in GPU memory", c);
	c.mem = DOCA_GPU_MEM_TYPE_GPU;
	if (!small_form)
		add("queues and packets in GPU memory", c);

	c = base();
	c.blocks = small_form ? 2 : 132;
	c.threads = small_form ? 64 : 256;
	c.rounds = 2;
	c.depth = small_form ? 64 : 32768;
	c.rx_num = 32768;
	add(small_form ? "many threads share a queue" : "132x256 threads share a queue", c);

	/* The packets go beyond index 2^16 of the NIC, and beyond index 2^32 of the queues. */
	c = base();
	c.preset = (1ull << 32) - 65536;
	c.rounds = 66000 / (c.blocks * c.threads) + 1;
	add("beyond index 2^32, GPU-shared", c);
	c.preset = 0;
	if (!small_form)
		add("beyond index 2^16, GPU-shared", c);
	c.preset = (1ull << 32) - 65536;
	c.mode = MODE(EXCLUSIVE);
	c.blocks = c.threads = 1;
	c.rounds = 66000;
	add("beyond index 2^32, exclusive", c);
}

static void add_in_turn(void)
{
	struct et_case c = base();

	c.in_turn = true;
	c.blocks = 2;
	c.threads = small_form ? 32 : 64;
	c.rounds = 3;
	c.max_pkts = 100;
	c.rx_exec = SCOPE(THREAD);
	c.rx_threads = 1;
	add("in turn: thread", c);
	c.exec = c.rx_exec = SCOPE(WARP);
	c.rx_threads = 32;
	add("in turn: warp", c);
	c.exec = c.rx_exec = SCOPE(BLOCK);
	c.rx_threads = 48;
	add("in turn: block", c);
	c.exec = SCOPE(WARP);
	c.how = ET_MULTI;
	c.each = ET_EACH_MAX;
	add("in turn: multi-packet", c);
}

static void add_waits(void)
{
	struct et_case c = base();

	c.run = et_run_least;
	c.how = ET_LEAST;
	c.mode = MODE(EXCLUSIVE);
	c.blocks = 1;
	c.threads = small_form ? 70 : 1024;
	c.rounds = small_form ? 23 : 31; /* from one size to the next: 1, 32, 63, ... */
	add("least values of blocks of any size", c);

	c = base();
	c.run = et_run_abort;
	c.rx_threads = one_lane ? 1 : small_form ? 48 : 1000;
	add("an abort ends a block that receives", c);
	c.how = ET_HOLE;
	c.threads = small_form ? 20 : 250;
	add("an abort ends threads that send", c);
}

unsigned int et_cases(struct et_case *cases, unsigned int max, bool small)
{
	out = cases;
	out_end = cases + max;
	small_form = small;
	if (et_env.testpmd) {
		et_table(add, base(), small);
		return (unsigned int)(out - cases);
	}
	add_waits();
	add_sends();
	add_short_rings();
	add_receives();
	add_in_turn();
	add_others();
	if (!small)
		et_table(add, base(), small);
	return (unsigned int)(out - cases);
}
