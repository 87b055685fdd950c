/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: threads of a GPU send Ethernet packets; with -g host, threads of the CPU. Alone, the
 * packets go to the same port, and the CPU receives and checks them; with -c, they go to
 * gpunetio_simple_receive -r on another host.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exchange.h"
#include "simple_send.h"

#define NAP_NS	 20000 /* between two polls of the receive queue */
#define QUIET_MS 500   /* without a packet: those that are missing are lost */
#define PAIR	 "gpunetio_simple_send/receive" /* name for the TCP connection */

static const struct et_program program = {
	.name = "gpunetio_simple_send",
	.about = "Threads send numbered UDP packets. The receiver checks each byte, and an account "
		 "of all\npackets is printed.",
	.letters = "gnetpisfMcPw",
};

struct sender {
	struct et_options opt;
	struct et_queues *q;
	struct doca_gpu_eth_rxq *rxq; /* without -c */
	struct et_pair *pair;	      /* with -c */
	struct et_memory frames;
	struct ss_job job, *arg;
	struct et_account account;
	double seconds; /* of all kernels; negative: unknown */
};

/* ---- opening ---- */

/* The packets of a launch are those in flight: a multiple of the threads. */
static int check_options(struct et_options *opt)
{
	if (et_choose_threads(opt, false))
		return -1;
	if (opt->multi && opt->scope != ET_WARP)
		return ex_error("invalid -M, --multi with -e %u (expected -e 1: a warp fills the "
				"WQEs)",
				opt->scope);
	if (opt->packets % opt->threads)
		return ex_error(
			"invalid -i, --iterations %u (expected a multiple of -t, --threads: "
			"%u)",
			opt->packets, opt->threads);
	if (opt->in_flight < opt->threads)
		return ex_error("invalid -f, --in-flight %u (expected at least -t, --threads: %u)",
				opt->in_flight, opt->threads);
	opt->slots = 2 * opt->in_flight < 64 ? 64 : 2 * opt->in_flight;
	return 0;
}

static int open_receiver(struct sender *s, uint8_t mac[6])
{
	memcpy(mac, et_mac(s->q), 6);
	if (s->opt.server)
		return et_pair_open(&s->pair, &s->opt, PAIR, et_mac(s->q), mac);
	return et_open_rxq(s->q, true, &s->rxq) || et_steer(s->q, ET_RECEIVER_IP, ET_PORT) ? -1 : 0;
}

/* The receive queue of another process may be shorter. Half of its slots may wait for their
 * release. */
static int fit_in_flight(struct sender *s)
{
	if (s->opt.in_flight > s->opt.slots / 2)
		s->opt.in_flight = s->opt.slots / 2;
	if (s->opt.in_flight >= s->opt.threads)
		return 0;
	return ex_error("the receiver has %u slots, too few for %u threads: give it -b %u, or this "
			"program a smaller -t",
			s->opt.slots, s->opt.threads, 2 * s->opt.threads);
}

static int open_all(struct sender *s)
{
	struct et_flow *flow = &s->job.flow;

	*flow = (struct et_flow){ .src_ip = ET_SENDER_IP,
				  .dst_ip = ET_RECEIVER_IP,
				  .src_port = ET_PORT,
				  .dst_port = ET_PORT };
	if (et_open(&s->q, &s->opt) || open_receiver(s, flow->dst_mac) || fit_in_flight(s))
		return -1;
	memcpy(flow->src_mac, et_mac(s->q), 6);
	s->account.seen = calloc(s->opt.packets, sizeof(*s->account.seen));
	if (!s->account.seen)
		return ex_error("no memory");
	if (et_open_txq(s->q, ET_SUMS, s->opt.in_flight, &s->job.txq, &s->frames) ||
	    et_alloc(s->q, sizeof(*s->arg), &s->arg))
		return -1;
	s->job.frames = s->frames.mem;
	s->job.key = s->frames.key;
	s->job.size = s->opt.size;
	s->job.scope = s->opt.scope;
	s->job.multi = s->opt.multi;
	printf("GPU %s, NIC %s: %u threads send %u packets of %u bytes, handler %s\n", s->opt.gpu,
	       et_device(s->q), s->opt.threads, s->opt.packets, s->opt.size,
	       gdk_handler_name((enum doca_gpu_dev_verbs_nic_handler)et_handler(s->q)));
	return s->pair ? et_pair_await_ready(s->pair) : 0;
}

/* ---- the run ---- */

/* While the kernel runs. */
static int step(void *arg)
{
	struct sender *s = arg;

	return s->pair ? 0 : ss_check(s->rxq, &s->job.flow, s->opt.size, &s->account);
}

/* Waits until the packets that were sent have come. Those that do not come are lost. */
static int await_packets(struct sender *s)
{
	const struct timespec nap = { 0, NAP_NS };
	const struct et_account *a = &s->account;
	struct et_quiet quiet = { 0 };
	uint64_t known;
	struct et_counts c;

	if (s->pair)
		return et_pair_await(s->pair, a->sent);
	do {
		if (step(s) || et_counts(s->q, &c))
			return -1;
		known = c.packets + c.out_of_buffer;
		if (known < a->sent)
			nanosleep(&nap, NULL);
	} while (known < a->sent && !et_is_quiet(&quiet, known, QUIET_MS) && !ex_waits_end());
	return 0;
}

static int run(struct sender *s)
{
	const uint32_t threads = s->opt.threads, most = s->opt.in_flight / threads;
	uint32_t left;
	double seconds;

	for (left = s->opt.packets / threads; left; left -= s->job.each) {
		s->job.each = left < most ? left : most;
		s->job.first = s->account.sent;
		s->account.sent += s->job.each * threads;
		if (et_launch(s->q, threads, s->arg, &s->job, sizeof(s->job)) ||
		    et_wait(s->q, step, s, s->arg, &s->job, sizeof(s->job)) || await_packets(s))
			return -1;
		seconds = et_seconds(s->q);
		s->seconds = s->seconds < 0 || seconds < 0 ? -1 : s->seconds + seconds;
	}
	return 0;
}

static int report(struct sender *s)
{
	struct et_account *a = &s->account;
	struct et_counts c;

	if (et_counts(s->q, &c))
		return -1;
	a->out_of_buffer = c.out_of_buffer;
	if (s->pair && (et_pair_tell_done(s->pair) || et_pair_take_account(s->pair, a)))
		return -1;
	a->bytes = (uint64_t)a->sent * s->opt.size;
	a->doorbells = c.doorbells;
	a->dbrecs = c.dbrecs;
	a->seconds = s->seconds;
	return et_account_print(a, a->sent);
}

int main(int argc, char **argv)
{
	struct sender s = { .opt = { .gpu = "host",
				     .packets = 4096,
				     .size = 256,
				     .in_flight = 512,
				     .tcp_port = 5000,
				     .timeout_s = 30 } };
	int rc = et_options_parse(&program, &s.opt, argc, argv);

	if (rc >= 0)
		return rc;
	if (check_options(&s.opt))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0); /* each line is written at once */
	ex_catch_signals();
	rc = open_all(&s) || run(&s) ? -1 : report(&s);
	if (rc)
		et_pair_failed(s.pair);
	et_pair_close(s.pair);
	et_close(s.q);
	free(s.account.seen);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
