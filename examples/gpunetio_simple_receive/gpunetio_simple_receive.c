/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: threads of a GPU receive Ethernet packets and check them; with -g host, threads of the
 * CPU. Alone, the CPU sends the packets to the same port by a raw packet queue pair; with -r,
 * gpunetio_simple_send on another host sends them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "simple_receive.h"

#define QUIET_MS  500 /* without a packet after all were sent: those that are missing are lost */
#define IN_FLIGHT 256u
#define PAIR	  "gpunetio_simple_send/receive" /* name for the TCP connection */

static const struct et_program program = {
	.name = "gpunetio_simple_receive",
	.about = "Threads receive numbered UDP packets and check each byte. Prints an account of "
		 "all packets.",
	.letters = "gnetisbfmrPw",
};

struct receiver {
	struct et_options opt;
	struct et_queues *q;
	struct et_raw *raw;   /* without -r */
	struct et_pair *pair; /* with -r */
	struct sr_job job, *arg;
	uint32_t sent;
	bool all_sent;
	uint64_t known; /* packets received or dropped */
	struct et_quiet quiet;
};

/* ---- packets from the CPU ---- */

static int send_some(struct receiver *r)
{
	const uint32_t size = r->opt.size;
	const uint8_t *unused;
	uint8_t *frame;
	uint32_t bytes;

	if (et_raw_poll(r->raw, &unused, &bytes) < 0)
		return -1;
	while (r->sent < r->opt.packets && r->sent < r->known + r->opt.in_flight &&
	       (frame = et_raw_frame(r->raw))) {
		et_write(frame, &r->job.flow, size, r->sent, true);
		if (et_raw_send(r->raw, size))
			return -1;
		r->sent++;
	}
	r->all_sent = r->sent == r->opt.packets;
	return 0;
}

static int exchange(struct receiver *r)
{
	int rc = et_pair_progress(r->pair, r->known);

	if (!rc && !r->all_sent)
		rc = et_pair_is_done(r->pair);
	if (rc == 1)
		r->all_sent = true;
	return rc < 0 ? -1 : 0;
}

/* While the kernel runs. */
static int step(void *arg)
{
	static const uint32_t one = 1;
	struct receiver *r = arg;
	struct et_counts c;
	int64_t limit;

	if (et_counts(r->q, &c))
		return -1;
	r->known = c.packets + c.out_of_buffer;
	if (r->raw ? send_some(r) : exchange(r))
		return -1;
	limit = r->all_sent ? QUIET_MS : r->opt.timeout_s * 1000ll;
	return et_is_quiet(&r->quiet, r->known, limit)
		       ? et_copy(r->q, &r->arg->stop, &one, sizeof(one))
		       : 0;
}

/* ---- the run ---- */

static void set_flow(struct receiver *r, const uint8_t sender_mac[6])
{
	struct et_flow *flow = &r->job.flow;

	*flow = (struct et_flow){ .src_ip = ET_SENDER_IP,
				  .dst_ip = ET_RECEIVER_IP,
				  .src_port = ET_PORT,
				  .dst_port = ET_PORT };
	memcpy(flow->dst_mac, et_mac(r->q), 6);
	memcpy(flow->src_mac, sender_mac, 6);
}

static int open_sender(struct receiver *r)
{
	uint8_t mac[6];

	memcpy(mac, et_mac(r->q), 6);
	if (r->opt.remote ? et_pair_open(&r->pair, &r->opt, PAIR, et_mac(r->q), mac)
			  : et_raw_open(&r->raw, et_device(r->q)))
		return -1;
	set_flow(r, mac);
	return 0;
}

static int open_all(struct receiver *r)
{
	uint32_t *zeros;
	int rc;

	if (et_open(&r->q, &r->opt) || open_sender(r))
		return -1;
	if (et_open_rxq(r->q, false, &r->job.rxq) || et_steer(r->q, ET_RECEIVER_IP, ET_PORT) ||
	    et_alloc(r->q, sizeof(*r->arg), &r->arg) ||
	    et_alloc(r->q, r->opt.packets * sizeof(*zeros), &r->job.seen))
		return -1;
	zeros = calloc(r->opt.packets, sizeof(*zeros));
	if (!zeros)
		return ex_error("no memory");
	rc = et_copy(r->q, r->job.seen, zeros, r->opt.packets * sizeof(*zeros));
	free(zeros);
	return rc;
}

static int run(struct receiver *r)
{
	r->job.packets = r->opt.packets;
	r->job.size = r->opt.size;
	r->job.scope = r->opt.scope;
	printf("GPU %s, NIC %s: %u threads receive %u packets of %u bytes into %u slots\n",
	       r->opt.gpu, et_device(r->q), r->opt.threads, r->opt.packets, r->opt.size,
	       r->opt.slots);
	if (et_launch(r->q, r->opt.threads, r->arg, &r->job, sizeof(r->job)))
		return -1;
	if (r->pair && et_pair_tell_ready(r->pair)) {
		(void)et_abort(r->q);
		(void)et_wait(r->q, NULL, NULL, r->arg, &r->job, sizeof(r->job));
		return -1;
	}
	return et_wait(r->q, step, r, r->arg, &r->job, sizeof(r->job));
}

static int report(struct receiver *r)
{
	const struct sr_job *job = &r->job;
	struct et_counts c;
	struct et_account a = {
		.sent = r->opt.packets,
		.received = job->received,
		.bytes = job->bytes,
		.repeated = job->repeated,
		.changed = job->changed,
		.bad_sums = job->bad_sums,
		.seconds = 1e-9 * (double)(job->last_ns - job->first_ns),
	};

	if (et_counts(r->q, &c))
		return -1;
	a.out_of_buffer = c.out_of_buffer;
	a.dbrecs = c.dbrecs;
	if (r->pair && et_pair_send_account(r->pair, &a))
		return -1;
	return et_account_print(&a, c.packets);
}

int main(int argc, char **argv)
{
	struct receiver r = { .opt = { .gpu = "host",
				       .scope = ET_BLOCK,
				       .packets = 4096,
				       .size = 256,
				       .slots = 1024,
				       .tcp_port = 5000,
				       .timeout_s = 30 } };
	int rc = et_options_parse(&program, &r.opt, argc, argv);

	if (rc >= 0)
		return rc;
	if (et_choose_threads(&r.opt, true))
		return 2;
	if (!r.opt.in_flight) /* half of the slots may wait for their release */
		r.opt.in_flight = r.opt.slots / 2 < IN_FLIGHT ? r.opt.slots / 2 : IN_FLIGHT;
	setvbuf(stdout, NULL, _IOLBF, 0); /* each line is written at once */
	ex_catch_signals();
	rc = open_all(&r) || run(&r) ? -1 : report(&r);
	if (rc)
		et_pair_failed(r.pair);
	et_pair_close(r.pair);
	et_raw_close(r.raw);
	et_close(r.q);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
