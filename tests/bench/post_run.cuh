/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the rows of the posting benchmark: the length of a run, the statistics over
 * several runs, the command line. Prints one line of tab-separated fields per row, for
 * post.sh.
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
		if (w->unchecked)
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
		"%s [--matrix] [--micro] [--first ROW] [--ms MS] [--reg-gpu] [--sys]\n"
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

/* table and matrix return the rows of the two parts. */
static int run_main(int argc, char **argv, std::vector<struct post_row> (*table)(void),
		    std::vector<struct post_row> (*matrix)(void))
{
	struct post_options o = {};
	struct cudaDeviceProp prop;

	o.target_ms = 8;
	if (parse(argc, argv, &o))
		return usage(argv[0]);
	/* Load all kernels first: loading one later would wait for the consumer, which does not
	 * end. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	CK(cudaGetDeviceProperties(&prop, 0));
	CK(cudaSetDeviceFlags(cudaDeviceMapHost));
	if (prop.multiProcessorCount < 132)
		fprintf(stderr, "the GPU has %d multiprocessors; the rows are designed for 132\n",
			prop.multiProcessorCount);
	micro_spin_up();
	const std::vector<struct post_row> rows = o.matrix ? matrix() : table();
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
