/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the rows of the posting benchmark: one timed run against the consumer, the length
 * of a run, the statistics over several runs, the command line. Prints one line of
 * tab-separated fields per row, for post.sh.
 */
#ifndef POST_RUN_CUH
#define POST_RUN_CUH

#include <algorithm>
#include <vector>

#include "post_micro.cuh"

#define RUNS	    4  /* runs of a row of the matrix, all at place 0 */
#define PLACES	    15 /* places (see rig_place()) for a row of the table, one run at each */
#define PLACES_SLOW 5  /* places for a row whose runs are long */
#define RUN_LONG_NS 5e7

/* Number of the consumer's blocks per QP. Each block of 1024 threads fills a multiprocessor.
 * With few QPs, several blocks (a cluster) serve one QP, because each QP can receive more
 * WQEs. With many QPs, one block serves nic_parts() QPs. */
static uint32_t nic_blocks(uint32_t qps)
{
	return qps == 1 ? 8 : qps <= 4 ? 4 : 1;
}

static uint32_t nic_parts(uint32_t qps)
{
	return qps > 32 ? POST_PARTS : 1;
}

static uint32_t nic_grid(uint32_t qps)
{
	return nic_blocks(qps) * qps / nic_parts(qps);
}

static void launch_nic(struct post_rig *r)
{
	const uint32_t blocks = nic_blocks(r->shape.qps), parts = nic_parts(r->shape.qps);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute cluster = {};

	cluster.id = cudaLaunchAttributeClusterDimension;
	cluster.val.clusterDim = { blocks, 1, 1 };
	config.gridDim = nic_grid(r->shape.qps);
	config.blockDim = 1024;
	config.stream = r->nic;
	config.attrs = &cluster;
	config.numAttrs = 1;
	CK(cudaLaunchKernelEx(&config, r->consume, (const struct post_watch *)r->watches, r->seen,
			      r->up, (uint64_t)POST_NIC_LIMIT_NS, blocks, parts));
}

static void rig_start_nic(struct post_rig *r, const char *what)
{
	const uint32_t blocks = nic_grid(r->shape.qps);
	const double end = seconds() + POST_HANG_S;
	uint32_t i = 0;

	memset((void *)r->up, 0, POST_UP * sizeof(*r->up));
	launch_nic(r);
	while (i < blocks) {
		if (r->up[i])
			i++;
		else if (seconds() > end) {
			printf("HANG\t%s: the consumer did not start\n", what);
			fflush(stdout);
			_exit(3);
		}
	}
}

struct post_result {
	double ns;
	uint64_t verified, mismatches, bad, late;
	uint64_t nic_start_ns; /* start of the last block of the consumer */
};

/* Adds up the consumer's results. Every message of every QP must have been seen
 * exactly once. *end_ns becomes the time at which the consumer finished the last QP, if
 * that is later. */
static void rig_judge(struct post_rig *r, struct post_result *res, uint64_t *end_ns)
{
	const uint64_t count = r->want.count, slots = rig_slots(r);
	struct post_seen seen[POST_MAX_QPS];

	CK(cudaMemcpy(seen, r->seen, r->shape.qps * sizeof(seen[0]), cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < r->shape.qps; i++) {
		const struct post_seen *s = &seen[i];

		res->verified += s->verified == slots ? count : s->verified;
		res->mismatches += s->mismatches;
		res->bad |= s->bad;
		res->late += s->late;
		if (s->verified != slots || s->sum != post_sum(count) ||
		    s->squares != post_sum_squares(count))
			res->mismatches++, res->bad |= POST_BAD_SET;
		*end_ns = s->end_ns > *end_ns ? s->end_ns : *end_ns;
		res->nic_start_ns = s->start_ns > res->nic_start_ns ? s->start_ns
								    : res->nic_start_ns;
	}
}

/* Posts iters messages per thread. The time runs until the last message is verified or,
 * without the NIC, until the last thread has posted. */
static struct post_result rig_run(struct post_rig *r, post_kernel kernel, uint32_t iters,
				  uint32_t every, int with_nic, const char *what)
{
	const uint64_t per_qp = (uint64_t)r->shape.blocks / r->shape.qps * r->shape.threads * iters;
	std::atomic<int> stop(!with_nic || r->reg_on_gpu);
	struct post_result res = {};
	struct post_clock clock;

	rig_reset(r, per_qp);
	std::thread passing(rig_pass_on, r, &stop);
	if (with_nic)
		rig_start_nic(r, what);
	kernel<<<r->shape.blocks, r->shape.threads, 0, r->post>>>(r->qps, r->shape.qps, iters,
								  every, r->clock);
	CK(cudaGetLastError());
	rig_sync(r->post, what);
	rig_sync(r->nic, what);
	stop = 1;
	passing.join();
	CK(cudaMemcpy(&clock, r->clock, sizeof(clock), cudaMemcpyDeviceToHost));
	if (with_nic)
		rig_judge(r, &res, &clock.end_ns);
	const uint64_t wrong = rig_end(r, rig_slots(r), every != 0, res.late != 0);

	res.mismatches += wrong;
	res.bad |= wrong ? POST_BAD_END : 0;
	res.ns = (double)(clock.end_ns - clock.start_ns);
	return res;
}

/* Runs the consumer alone over what the last run posted (at most one ring) and returns
 * its own limit, in million WQEs per second; 0 if a WQE is wrong. */
static double rig_capacity(struct post_rig *r)
{
	struct post_result res = {};
	uint64_t end_ns = 0;

	rig_reset_nic(r, r->want.count);
	rig_start_nic(r, "the consumer alone");
	rig_sync(r->nic, "the consumer alone");
	rig_judge(r, &res, &end_ns);
	return res.mismatches ? 0
			      : (double)res.verified * 1e3 / (double)(end_ns - res.nic_start_ns);
}

/* Returns a number of iterations such that a run takes about target_ms. The run can take up
 * to three times as long, so that it covers up to four laps of the ring. */
static uint32_t calibrate(struct post_rig *r, post_kernel kernel, const struct post_row *w, int nic,
			  double target_ms)
{
	const double per_iter = (double)r->shape.blocks / r->shape.qps * r->shape.threads;
	uint32_t iters = w->granule;

	for (int step = 0; step < 3; step++) {
		const double goal = step ? target_ms * 1e6 : 1e6;
		const double ns = std::max(
			1000.,
			rig_run(r, kernel, iters, nic || w->every == 1 ? w->every : 0, nic, w->name)
				.ns);
		double next = iters * goal / ns;

		if (ns > goal)
			break;
		next = std::min(next, iters * 1000.);
		if (step == 2)
			next = std::max(next, std::min(3. * next, 4 * r->shape.depth / per_iter));
		next = std::min(next, 4e6) / w->granule;
		iters = (uint32_t)std::max(1., next) * w->granule;
	}
	return iters;
}

struct rates {
	std::vector<double> v; /* million WQEs per second */
	uint32_t iters;
	uint64_t messages;
	struct post_result sum;
};

static double median_of(const struct rates *m)
{
	const size_t n = m->v.size();

	return n ? (m->v[(n - 1) / 2] + m->v[n / 2]) / 2 : 0;
}

static void measure(struct rates *m, struct post_rig *r, post_kernel kernel,
		    const struct post_row *w, int nic, int runs, double target_ms)
{
	const uint32_t every = nic || w->every == 1 ? w->every : 0;

	if (!m->iters)
		m->iters = calibrate(r, kernel, w, nic, target_ms);
	m->messages = (uint64_t)r->shape.blocks * r->shape.threads * m->iters;
	for (int i = 0; i <= runs; i++) {
		const struct post_result res = rig_run(r, kernel, m->iters, every, nic, w->name);

		m->sum.verified += res.verified;
		m->sum.mismatches += res.mismatches;
		m->sum.bad |= res.bad;
		m->sum.late += res.late;
		if (i) /* the first run warms up */
			m->v.push_back((double)m->messages / res.ns * 1e3);
		/* Without a consumer the rate is of minor interest: one run of a slow row is
		 * enough. */
		if (!nic && i && res.ns > 3e8)
			break;
	}
	std::sort(m->v.begin(), m->v.end());
}

static void run_row(const char *section, int number, const struct post_row *w,
		    const struct post_options *o)
{
	const int places = o->matrix ? 1 : PLACES, runs = o->matrix ? RUNS : 1;
	struct rates with = {}, without = {};
	struct post_rig rig;
	int sys_scope = 0;

	for (int place = 0; place < places; place++) {
		if (place >= PLACES_SLOW &&
		    (double)with.messages / median_of(&with) * 1e3 > RUN_LONG_NS)
			break;
		rig_open(&rig, o, w, place);
		measure(&with, &rig, w->checked, w, 1, runs, o->target_ms);
		/* Without the check for free slots, posters can overrun their own ring. The rate
		 * is printed as 0 if doorbells were lost for this reason. */
		if (w->unchecked && !o->no_free)
			measure(&without, &rig, w->unchecked, w, 0, runs, o->target_ms);
		sys_scope = rig.sys_scope;
		rig_close(&rig);
	}
	printf("%s\t%d\t%s\t%.4g\t%.3f\t%.3f\t%.3f\t%llu\t%llu\t0x%llx\t%llu\t%.3f\t%llu\t%s\n",
	       section, number, w->name, w->target, median_of(&with), with.v.front(), with.v.back(),
	       (unsigned long long)with.sum.verified, (unsigned long long)with.sum.mismatches,
	       (unsigned long long)with.sum.bad, (unsigned long long)with.sum.late,
	       without.sum.bad ? 0 : median_of(&without), (unsigned long long)with.messages,
	       sys_scope ? "sys" : "gpu");
	fflush(stdout);
}

/* Measures the speed of the consumer alone, over one ring filled by w's kernel. */
static void run_capacity(const struct post_row *w, const struct post_options *o)
{
	const uint32_t threads = w->shape.blocks / w->shape.qps * w->shape.threads;
	struct post_rig rig;
	double best = 0;

	rig_open(&rig, o, w, 0);
	for (int i = 0; i <= RUNS; i++) {
		rig_run(&rig, w->checked, w->shape.depth / threads, 1, 1, w->name);
		best = std::max(best, rig_capacity(&rig));
	}
	printf("capacity\t%u\t%.1f\n", w->shape.qps, best);
	rig_close(&rig);
}

static int usage(const char *name)
{
	fprintf(stderr,
		"%s [--matrix] [--micro] [--exclusive] [--no-free] [--first ROW] [--ms MS]\n"
		"  [--reg-gpu] [--sys]\n"
		"  --exclusive  only rows whose name begins with \"exclusive\" or \"132 QPs, 1\"\n"
		"  --no-free  do not measure rates without availability check and consumer\n"
		"  --first    first row to run (to continue after a hang)\n"
		"  --ms       duration of one run\n"
		"  --reg-gpu  register pages in GPU memory instead of pinned host memory\n"
		"  --sys      system-scope fences, as with queues in host memory (gdaki)\n",
		name);
	return 2;
}

static int parse(int argc, char **argv, struct post_options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(a, "--matrix"))
			o->matrix = 1;
		else if (!strcmp(a, "--micro"))
			o->micro = 1;
		else if (!strcmp(a, "--exclusive"))
			o->exclusive = 1;
		else if (!strcmp(a, "--no-free"))
			o->no_free = 1;
		else if (!strcmp(a, "--reg-gpu"))
			o->reg_on_gpu = 1;
		else if (!strcmp(a, "--sys"))
			o->sys_scope = 1;
		else if (!strcmp(a, "--first") && *v)
			o->first = atoi(argv[++i]);
		else if (!strcmp(a, "--ms") && atof(v) > 0)
			o->target_ms = atof(argv[++i]);
		else
			return 1;
	}
	return 0;
}

static bool is_shared(const struct post_row &w)
{
	return strncmp(w.name, "exclusive", 9) && strncmp(w.name, "132 QPs, 1 ", 11);
}

/* table and matrix return the rows of the two parts. */
static int run_main(int argc, char **argv, std::vector<struct post_row> (*table)(void),
		    std::vector<struct post_row> (*matrix)(void))
{
	struct post_options o = {};
	o.target_ms = 8;
	if (parse(argc, argv, &o))
		return usage(argv[0]);
	time_open();
	std::vector<struct post_row> rows = o.matrix ? matrix() : table();
	if (o.exclusive)
		rows.erase(std::remove_if(rows.begin(), rows.end(), is_shared), rows.end());
	if (o.micro) {
		for (const struct post_row &w : rows)
			if (w.capacity)
				run_capacity(&w, &o);
		return micro_run();
	}
	for (int i = o.first; i < (int)rows.size(); i++)
		run_row(o.matrix ? "matrix" : "table", i, &rows[i], &o);
	return 0;
}

#endif
