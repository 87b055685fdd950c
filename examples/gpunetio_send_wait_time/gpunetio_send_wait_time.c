/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: threads of a GPU send bursts of Ethernet packets, each at a given time; with -g host,
 * threads of the CPU. The packets go to the same port, whose NIC notes when they arrive.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exchange.h"
#include "send_wait_time.h"

#define LEAD_NS 20000000ull /* from the start of the kernel to the first burst */

static const struct et_program program = {
	.name = "gpunetio_send_wait_time",
	.about = "Threads send bursts of UDP packets, each at a given time, and receive them. "
		 "Prints how late\nthe packets left and arrived. None may be early.",
	.letters = "gntpisumw",
	.what = "bursts, each with a packet of each thread",
};

struct timed {
	struct et_options opt;
	struct et_queues *q;
	struct et_memory frames;
	struct wt_job job, *arg;
	uint64_t *times; /* of the bursts, and then in the form of the NIC */
	void *on_gpu;	 /* a copy of them */
};

static uint32_t num_packets(const struct timed *t)
{
	return t->opt.packets * t->opt.threads;
}

static int check_options(struct et_options *opt)
{
	opt->scope = ET_BLOCK;
	if (et_choose_threads(opt, false))
		return -1;
	if ((uint64_t)opt->packets * opt->threads > ET_PACKETS_MAX)
		return ex_error("-i %u bursts of -t %u packets are too many (at most %u packets)",
				opt->packets, opt->threads, ET_PACKETS_MAX);
	opt->slots = 2 * ET_THREADS_MAX;
	return 0;
}

static int open_queues(struct timed *t)
{
	struct et_flow *flow = &t->job.flow;

	if (et_open(&t->q, &t->opt) || et_open_rxq(t->q, false, &t->job.rxq) ||
	    et_steer(t->q, ET_RECEIVER_IP, ET_PORT) ||
	    et_open_txq(t->q, ET_TIMED, t->opt.threads, &t->job.txq, &t->frames))
		return -1;
	*flow = (struct et_flow){ .src_ip = ET_SENDER_IP,
				  .dst_ip = ET_RECEIVER_IP,
				  .src_port = ET_PORT,
				  .dst_port = ET_PORT };
	memcpy(flow->dst_mac, et_mac(t->q), 6);
	memcpy(flow->src_mac, et_mac(t->q), 6);
	t->job.frames = t->frames.mem;
	t->job.key = t->frames.key;
	return 0;
}

static int open_job(struct timed *t)
{
	const size_t bytes = num_packets(t) * sizeof(*t->job.seen);
	void *zeros = calloc(1, bytes);
	int rc = -1;

	t->times = calloc(2 * (size_t)t->opt.packets, sizeof(*t->times));
	if (!zeros || !t->times)
		ex_error("no memory");
	else if (!et_alloc(t->q, sizeof(*t->arg), &t->arg) &&
		 !et_alloc(t->q, bytes, &t->job.seen) &&
		 !et_alloc(t->q, 2 * t->opt.packets * sizeof(*t->times), &t->on_gpu))
		rc = et_copy(t->q, t->job.seen, zeros, bytes);
	free(zeros);
	t->job.at = t->on_gpu;
	t->job.when = t->job.at + t->opt.packets;
	t->job.bursts = t->opt.packets;
	t->job.size = t->opt.size;
	t->job.quiet_ns = t->opt.timeout_s * 1000000000ull;
	return rc;
}

/* The NIC's clock must be that of the system (CLOCK_REALTIME), or close to it. */
static int plan(struct timed *t)
{
	const uint32_t n = t->opt.packets;
	struct timespec now;
	uint32_t i;

	clock_gettime(CLOCK_REALTIME, &now);
	for (i = 0; i < n; i++) {
		t->times[i] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + LEAD_NS +
			      i * t->opt.gap_us * 1000ull;
		if (et_nic_time(t->q, t->times[i], &t->times[n + i]))
			return -1;
	}
	return et_copy(t->q, t->on_gpu, t->times, 2 * n * sizeof(*t->times));
}

static int run(struct timed *t)
{
	printf("GPU %s, NIC %s: %u bursts of %u packets of %u bytes, one each %u us, handler %s\n",
	       t->opt.gpu, et_device(t->q), t->opt.packets, t->opt.threads, t->opt.size,
	       t->opt.gap_us,
	       gdk_handler_name((enum doca_gpu_dev_verbs_nic_handler)et_handler(t->q)));
	if (plan(t) || et_launch(t->q, t->opt.threads, t->arg, &t->job, sizeof(t->job)))
		return -1;
	return et_wait(t->q, NULL, NULL, t->arg, &t->job, sizeof(t->job));
}

static void print_times(const char *what, uint64_t num, uint64_t early, uint64_t mean, uint64_t max)
{
	printf("%-26s %8" PRIu64 " %6" PRIu64 " %13.3f %13.3f\n", what, num, early,
	       1e-3 * (double)mean, 1e-3 * (double)max);
}

static int report(struct timed *t)
{
	const struct wt_job *job = &t->job;
	struct et_account a = { .sent = num_packets(t),
				.received = job->received,
				.bytes = (uint64_t)num_packets(t) * t->opt.size,
				.repeated = job->repeated,
				.changed = job->changed,
				.bad_sums = job->bad_sums,
				.seconds = et_seconds(t->q) };
	const uint64_t came = job->received + job->repeated + job->changed;
	struct et_counts c;
	int rc;

	if (et_counts(t->q, &c))
		return -1;
	a.out_of_buffer = c.out_of_buffer;
	a.doorbells = c.doorbells;
	a.dbrecs = c.dbrecs;
	printf("%-26s %8s %6s %13s %13s\n", "", "number", "early", "mean late[us]", "max late[us]");
	print_times("first packet of a burst", c.timed, c.early, c.late_mean, c.late_max);
	print_times("arrival of a packet", came, job->early, came ? job->late_sum / came : 0,
		    job->late_max);
	rc = et_account_print(&a, a.sent);
	if (c.early || job->early)
		rc = ex_error("%" PRIu64 " packets left early, %" PRIu64 " arrived early", c.early,
			      job->early);
	if (c.timed != t->opt.packets)
		rc = ex_error("the NIC completed %" PRIu64 " of %u bursts", c.timed,
			      t->opt.packets);
	return rc;
}

int main(int argc, char **argv)
{
	struct timed t = { .opt = { .gpu = "host",
				    .packets = 100,
				    .size = 256,
				    .gap_us = 5000,
				    .timeout_s = 5 } };
	int rc = et_options_parse(&program, &t.opt, argc, argv);

	if (rc >= 0)
		return rc;
	if (check_options(&t.opt))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0); /* each line is written at once */
	ex_catch_signals();
	rc = open_queues(&t) || open_job(&t) || run(&t) ? -1 : report(&t);
	et_close(t.q);
	free(t.times);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
