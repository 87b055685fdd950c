/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures the duration of each put on a queue pair that all threads of the GPU share, and
 * prints the longest and the 99.9th percentile. Completions cost the posting threads
 * nothing: a kernel raises the state's `completed` to `rung`. The peer has no such state;
 * there, a kernel writes the CQEs of all WQEs that the DBREC shows. The peer's rows post
 * fewer WQEs, because its rate is lower. tests/bench/post.sh builds and runs it.
 */
#define POST_HANG_S 12

#include <algorithm>
#include <vector>

#include "post_doca.cuh"

#include "post_hist.h"
#include "post_time.cuh"

#define TAIL_DEPTH 32768u
#define TAIL_RUNS  3

struct tail_out {
	unsigned long long count[POST_HIST_BUCKETS]; /* of puts, by cycles */
	unsigned long long longest;		     /* cycles */
	unsigned int errors;			     /* puts that returned an error */
};

struct tail_row {
	const char *name;
	uint32_t blocks, threads;
	uint32_t puts, peer_puts; /* of each thread */
	uint32_t gap_ns;	  /* between two puts of a thread */
	double target_us;	  /* longest put */
};

static const struct tail_row rows[] = {
	{ "2 x 1", 2, 1, 100000, 100000, 0, 100 },
	{ "4 x 1", 4, 1, 100000, 50000, 0, 100 },
	{ "16 x 1", 16, 1, 50000, 10000, 0, 100 },
	{ "130 x 1", 130, 1, 20000, 1000, 0, 100 },
	{ "16 x 1, 1 us between puts", 16, 1, 20000, 10000, 1000, 100 },
	{ "130 x 32, 10 us between puts", 130, 32, 2000, 50, 10000, 250 },
	{ "130 x 32", 130, 32, 20000, 50, 0, 250 },
};

#ifdef GDK_QP_STATE_H
#define TAIL_OURS 1
/* Raises `completed` to `rung` until *stop is set. */
__global__ void tail_complete(const struct post_watch *, struct gdk_qp_state *st,
			      volatile uint32_t *stop)
{
	if (threadIdx.x)
		return;
	while (!*stop)
		for (int i = 0; i < 16; i++) {
			const uint64_t rung = *(const volatile uint64_t *)&st->rung;

			*(volatile uint64_t *)&st->completed = rung;
		}
}

/* Returns the number of doorbells, or -1 if the QP has ended with an error. */
static int64_t doorbells_of(const struct post_rig *r)
{
	struct gdk_qp_state st;

	CK(cudaMemcpy(&st, r->states, sizeof(st), cudaMemcpyDeviceToHost));
	return st.status ? -1 : (int64_t)st.doorbells;
}
#else
#define TAIL_OURS 0
struct gdk_qp_state;

/* Writes the CQEs of all WQEs that the DBREC shows until *stop is set. */
__global__ void tail_complete(const struct post_watch *watch, struct gdk_qp_state *,
			      volatile uint32_t *stop)
{
	__shared__ uint64_t recorded;
	__shared__ uint32_t stopped;
	uint64_t done = 0;

	for (;;) {
		if (threadIdx.x == 0) {
			recorded = post_recorded(watch, done);
			stopped = *stop;
		}
		__syncthreads();
		const uint64_t to = recorded;

		if (stopped)
			return;
		post_complete(watch, done, to, threadIdx.x, blockDim.x);
		done = to;
		__syncthreads();
	}
}

static int64_t doorbells_of(const struct post_rig *)
{
	return 0;
}
#endif

__global__ void tail_post(QP *qp, uint32_t puts, long long gap, struct tail_out *out,
			  struct post_clock *clock)
{
	__shared__ unsigned int count[POST_HIST_BUCKETS];
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned long long longest = 0;
	struct doca_gpu_dev_verbs_addr r, l;
	doca_gpu_dev_verbs_ticket_t ticket;
	int errors = 0;

	for (uint32_t i = threadIdx.x; i < POST_HIST_BUCKETS; i += blockDim.x)
		count[i] = 0;
	__syncthreads();
	r.addr = POST_RADDR + (uint64_t)thread * POST_STEP;
	r.key = POST_RKEY;
	l.addr = POST_LADDR + (uint64_t)thread * POST_STEP;
	l.key = POST_LKEY;
	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&clock->start_ns, post_now());
	for (uint32_t i = 0; i < puts; i++) {
		long long start = clock64();

		errors += STATUS((doca_gpu_dev_verbs_put<GPU, DB, THREAD>(qp, r, l, 64,
									  &ticket))) != 0;
		const unsigned long long took = (unsigned long long)(clock64() - start);

		atomicAdd(&count[post_hist_bucket(took < UINT32_MAX ? (uint32_t)took : UINT32_MAX)],
			  1);
		longest = took > longest ? took : longest;
		if (gap)
			for (start = clock64(); clock64() - start < gap;)
				;
	}
	atomicMax(&out->longest, longest);
	atomicAdd(&out->errors, (unsigned int)errors);
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMax((unsigned long long *)&clock->end_ns, post_now());
	for (uint32_t i = threadIdx.x; i < POST_HIST_BUCKETS; i += blockDim.x)
		if (count[i])
			atomicAdd(&out->count[i], (unsigned long long)count[i]);
}

/* Sums over the runs of a row. */
struct tail_result {
	uint64_t count[POST_HIST_BUCKETS];
	double longest_us, rate;
	std::vector<double> ms; /* total time of each run */
	int64_t doorbells;	/* of the last run */
	uint64_t puts, wrong;
};

static void take_results(struct tail_result *res, const struct post_rig *rig,
			 const struct tail_out *dev, uint64_t puts)
{
	static struct tail_out out;
	struct post_clock clock;
	uint64_t counted = 0;

	CK(cudaMemcpy(&out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(&clock, rig->clock, sizeof(clock), cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < POST_HIST_BUCKETS; i++) {
		res->count[i] += out.count[i];
		counted += out.count[i];
	}
	res->longest_us = std::max(res->longest_us, (double)out.longest / res->rate / 1e3);
	res->ms.push_back((double)(clock.end_ns - clock.start_ns) / 1e6);
	res->doorbells = doorbells_of(rig);
	res->puts += puts;
	res->wrong += out.errors + (counted != puts) + (res->doorbells < 0) +
		      rig_end(rig, puts, 1, 1);
}

static void run_once(struct tail_result *res, struct post_rig *rig, const struct tail_row *w)
{
	const uint32_t puts = TAIL_OURS ? w->puts : w->peer_puts;
	const uint64_t all = (uint64_t)w->blocks * w->threads * puts;
	struct tail_out *out;

	rig_reset(rig, all);
	CK(cudaMalloc(&out, sizeof(*out)));
	CK(cudaMemset(out, 0, sizeof(*out)));
	CK(cudaDeviceSynchronize());
	rig->up[0] = 0;
	tail_complete<<<1, TAIL_OURS ? 32 : 1024, 0, rig->nic>>>(
		rig->watches, (struct gdk_qp_state *)rig->states, rig->up);
	CK(cudaGetLastError());
	tail_post<<<w->blocks, w->threads, 0, rig->post>>>(
		(QP *)rig->qps, puts, (long long)(w->gap_ns * res->rate), out, rig->clock);
	CK(cudaGetLastError());
	rig_sync(rig->post, w->name);
	rig->up[0] = 1;
	rig_sync(rig->nic, w->name);
	take_results(res, rig, out, all);
	CK(cudaFree(out));
}

static void run_row(size_t number, const struct tail_row *w)
{
	const struct post_options o = {};
	struct tail_result res = {};
	struct post_row base = {};
	struct post_rig rig;

	base.shape = { w->blocks, w->threads, 1, TAIL_DEPTH };
	base.handler = POST_DB;
	res.rate = time_rate();
	for (uint32_t run = 0; run < TAIL_RUNS; run++) {
		rig_open(&rig, &o, &base, run);
		run_once(&res, &rig, w);
		rig_close(&rig);
	}
	std::sort(res.ms.begin(), res.ms.end());
	printf("tail\t%zu\t%s\t%llu\t%.2f\t%.2f\t%.3f\t%lld\t%.0f\t%llu\n", number, w->name,
	       (unsigned long long)res.puts / TAIL_RUNS, res.longest_us,
	       post_hist_percentile(res.count, 0.999) / res.rate / 1e3, res.ms[TAIL_RUNS / 2],
	       (long long)res.doorbells, w->target_us, (unsigned long long)res.wrong);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	time_open();
	for (size_t i = (size_t)time_first(argc, argv); i < sizeof(rows) / sizeof(rows[0]); i++)
		run_row(i, &rows[i]);
	return 0;
}
