/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures the CPU proxy: the time of a pass over idle and over rung queue pairs, the
 * latency from the store to a doorbell counter until the register is written, and
 * bytes per queue pair. With NVIDIA's library as a shared object (PEER.so, which proxy.sh
 * builds), the program also measures that library's progress call, over as many queue
 * pairs. The doorbell registers are plain memory.
 * usage: proxy [PEER.so]
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../../doorbell/cpu_proxy.h"
#include "../lib/e2e.h"
#include "bench.h"

#define QPS_MAX		   4096u
#define IDLE_PASSES	   2000u
#define BUSY_PASSES	   200u
#define RINGS		   2000u
#define PEER_COUNTER_BYTES 32768u

typedef doca_error_t (*progress_fn)(struct doca_gpu_verbs_qp *qp, bool *progressed);

static struct {
	struct e2e_nic nic;
	struct e2e_qp qp[QPS_MAX];
	uint64_t reg[QPS_MAX];
	struct gdk_scan scan;
	/* QPs of the peer, whose struct has the same layout as ours */
	struct doca_gpu_verbs_qp *peer[QPS_MAX];
	progress_fn peer_progress;
	uint64_t raised;
} b;

/* ---- the two proxies, each over n queue pairs ---- */

struct proxy {
	const char *name;
	void (*pass)(unsigned int n);
	uint64_t *(*counter)(unsigned int i);
};

static void our_pass(unsigned int n)
{
	(void)n;
	gdk_scan_pass(&b.scan);
}

static uint64_t *our_counter(unsigned int i)
{
	return b.qp[i].hl->qp_gverbs->cpu_db;
}

static void peer_pass(unsigned int n)
{
	bool progressed;

	for (unsigned int i = 0; i < n; i++)
		b.peer_progress(b.peer[i], &progressed);
}

static uint64_t *peer_counter(unsigned int i)
{
	return b.peer[i]->cpu_db;
}

static const struct proxy proxies[] = {
	{ "gdaki", our_pass, our_counter },
	{ "peer", peer_pass, peer_counter },
};

/* Microseconds per pass. busy: every queue pair is rung before each pass. */
static double pass_us(const struct proxy *p, unsigned int n, bool busy)
{
	const unsigned int passes = busy ? BUSY_PASSES : IDLE_PASSES;
	double took = 0, start;

	p->pass(n);
	for (unsigned int k = 0; k < passes; k++) {
		b.raised += busy;
		for (unsigned int i = 0; busy && i < n; i++)
			*p->counter(i) = b.raised;
		start = seconds();
		p->pass(n);
		if (!busy) /* read the clock only once for all idle passes */
			for (; ++k < passes;)
				p->pass(n);
		took += seconds() - start;
	}
	return took / passes * 1e6;
}

/* ---- doorbell latency: a thread runs passes, this thread rings and waits ---- */

struct ringer {
	const struct proxy *proxy;
	unsigned int n;
	atomic_bool stop;
};

static void *keep_passing(void *arg)
{
	struct ringer *r = arg;

	while (!atomic_load_explicit(&r->stop, memory_order_relaxed))
		r->proxy->pass(r->n);
	return NULL;
}

/* Baseline without a proxy: a store that another thread answers, which takes two
 * transfers of a cache line between cores, as every doorbell does in this benchmark. */
static void *keep_answering(void *arg)
{
	struct ringer *r = arg;
	volatile uint64_t *from = &b.reg[0], *to = &b.reg[8];

	while (!atomic_load_explicit(&r->stop, memory_order_relaxed))
		*to = *from;
	return NULL;
}

/* Median in ns of n latencies in seconds. */
static double median_of(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2] * 1e9;
}

static double latency_ns(const struct proxy *p, unsigned int n)
{
	struct ringer r = { .proxy = p, .n = n };
	static double took[RINGS];
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, p ? keep_passing : keep_answering, &r));
	for (unsigned int k = 0; k < RINGS; k++) {
		const unsigned int i = p ? k * 61 % n : 0;
		volatile uint64_t *counter = p ? p->counter(i) : &b.reg[0];
		volatile uint64_t *reg = p ? &b.reg[i] : &b.reg[8];
		const uint64_t before = *reg;
		const double start = seconds();

		*counter = ++b.raised;
		while (*reg == before)
			;
		took[k] = seconds() - start;
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	return median_of(took, RINGS);
}

/* ---- queue pairs ---- */

static void peer_open(unsigned int from, unsigned int n)
{
	for (unsigned int i = from; i < n; i++) {
		struct doca_gpu_verbs_qp *qp = calloc(1, sizeof(*qp));

		REQUIRE(qp && (qp->cpu_db = calloc(1, PEER_COUNTER_BYTES)));
		qp->cpu_proxy = true;
		qp->sq_db = &b.reg[i];
		qp->sq_dbrec = b.qp[i].hl->qp_gverbs->sq_dbrec;
		qp->sq_num_shift8_be = i << 8;
		b.peer[i] = qp;
	}
}

/* Opens queue pairs, adds them to the set that the proxy polls, and returns the bytes that
 * the set takes per queue pair. */
static double open_qps(unsigned int from, unsigned int n)
{
	size_t before;

	for (unsigned int i = from; i < n; i++) {
		e2e_qp_open(&b.nic, &b.qp[i], E2E_PROXY, 16);
		b.qp[i].hl->qp_gverbs->sq_db = &b.reg[i];
	}
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (unsigned int i = from; i < n; i++)
		REQUIRE(!gdk_scan_add(&b.scan, gdk_to_db_qp(b.qp[i].hl->qp_gverbs)));
	return (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / (n - from);
}

static void measure(unsigned int n, unsigned int kinds)
{
	struct series idle[2] = { 0 }, busy[2] = { 0 }, late[2] = { 0 }, bare = { 0 };

	for (int run = 0; run < RUNS; run++) {
		for (unsigned int k = 0; k < kinds; k++) {
			series_add(&idle[k], pass_us(&proxies[k], n, false));
			series_add(&busy[k], pass_us(&proxies[k], n, true));
			series_add(&late[k], latency_ns(&proxies[k], n));
		}
		series_add(&bare, latency_ns(NULL, n));
	}
	for (unsigned int k = 0; k < kinds; k++)
		printf("%-6s %5u %10.3f %10.2f %9.0f %9.0f\n", proxies[k].name, n, median(&idle[k]),
		       median(&busy[k]), median(&late[k]), median(&bare));
}

int main(int argc, char **argv)
{
	static const unsigned int sizes[] = { 64, 1024, QPS_MAX };
	double set_bytes = 0;
	unsigned int n = 0;
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (argc > 1 && !so)
		fprintf(stderr, "%s\n", dlerror());
	REQUIRE(argc < 2 || so);
	e2e_open(&b.nic);
	printf("%-6s %5s %10s %10s %9s %9s\n", "proxy", "QPs", "idle us", "all us", "ring ns",
	       "bare ns");
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); n = sizes[i++]) {
		set_bytes = open_qps(n, sizes[i]);
		if (so)
			*(void **)&b.peer_progress = dlsym(so, "doca_gpu_verbs_cpu_proxy_progress");
		REQUIRE(!so || b.peer_progress);
		peer_open(n, so ? sizes[i] : 0);
		measure(sizes[i], so ? 2 : 1);
		b.peer_progress = NULL;
	}
	printf("bytes per QP: counter 8, set %.0f, export %zu\n", set_bytes,
	       sizeof(struct gdk_proxied));
	if (so)
		printf("bytes per QP, peer: counter %u\n", PEER_COUNTER_BYTES);
	return 0;
}
