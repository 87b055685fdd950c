/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: threads of a GPU answer ICMP echo requests (ping) and UDP echo requests; with -g host,
 * threads of the CPU. The CPU sends the requests by a raw packet queue pair and checks each reply:
 * in the same process, or with -r and -c in two. With -D, the threads answer any host.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exchange.h"
#include "echo.h"

#define QUIET_MS 2000  /* without a reply after all requests: those that are missing are lost */
#define NAP_NS	 20000 /* between two polls of a client */

static const struct et_program program = {
	.name = "gpunetio_echo",
	.about =
		"Threads answer ICMP and UDP echo requests. The sender of the requests checks each "
		"byte of\nthe replies.",
	.letters = "gntpisbfmcrPaDw",
	.what = "requests of each kind",
};

struct echo {
	struct et_options opt;
	struct et_queues *q;
	struct et_pair *pair;  /* with -r or -c */
	struct et_raw *raw;    /* without -r: sends requests */
	struct et_flow asked;  /* flow of the requests */
	struct et_flow answer; /* flow of the replies */
	struct ec_job job, *arg;
	uint8_t *seen; /* of each request: 1 if its reply came */
	uint32_t sent, got[EC_KINDS], wrong;
	struct et_quiet quiet;
	bool told; /* step() has ended the kernel */
	uint32_t address;
	int64_t end_ms; /* -D: time at which the kernel stops */
};

static uint32_t num_requests(const struct echo *e)
{
	return EC_KINDS * e->opt.packets;
}

/* ---- requests ---- */

/* Requests of even numbers are ICMP, the others UDP, of different sizes. */
static uint32_t size_of(const struct echo *e, uint32_t number)
{
	return ET_BYTES_MIN + number * 37 % (e->opt.size - ET_BYTES_MIN + 1);
}

static void write_message(const struct echo *e, uint8_t *frame, uint32_t number, bool reply)
{
	const struct et_flow *flow = reply ? &e->answer : &e->asked;
	const uint32_t bytes = size_of(e, number);

	et_write(frame, flow, bytes, number, true);
	if (number % EC_KINDS == EC_ICMP)
		ec_icmp_headers(frame, flow, bytes, number, reply ? EC_REPLY : EC_REQUEST);
}

static void check_reply(struct echo *e, const uint8_t *frame, uint32_t bytes)
{
	uint32_t number = bytes < ET_BYTES_MIN ? UINT32_MAX : et_get32(frame + ET_HEAD);
	uint8_t right[ET_BYTES_MAX];

	if (number >= e->sent || bytes != size_of(e, number) || e->seen[number]) {
		e->wrong++;
		return;
	}
	write_message(e, right, number, true);
	if (memcmp(frame, right, bytes)) {
		e->wrong++;
		return;
	}
	e->seen[number] = 1;
	e->got[number % EC_KINDS]++;
}

/* Sends requests and checks replies. Returns 1 when there is no more to do, 0 before. */
static int ask(struct echo *e)
{
	const uint32_t replies = e->got[EC_ICMP] + e->got[EC_UDP] + e->wrong;
	const uint8_t *reply;
	uint8_t *frame;
	uint32_t bytes;
	int rc;

	while ((rc = et_raw_poll(e->raw, &reply, &bytes)) == 1) {
		check_reply(e, reply, bytes);
		if (et_raw_return(e->raw))
			return -1;
	}
	while (!rc && e->sent < num_requests(e) && e->sent < replies + e->opt.in_flight &&
	       (frame = et_raw_frame(e->raw))) {
		write_message(e, frame, e->sent, false);
		rc = et_raw_send(e->raw, size_of(e, e->sent++));
	}
	if (rc < 0)
		return -1;
	if (e->got[EC_ICMP] + e->got[EC_UDP] == num_requests(e))
		return 1;
	return et_is_quiet(&e->quiet, e->sent + replies, QUIET_MS);
}

/* ---- the side that answers ---- */

static int stop(struct echo *e)
{
	static const uint32_t one = 1;

	return et_copy(e->q, &e->arg->stop, &one, sizeof(one));
}

/* While the kernel runs. */
static int step(void *arg)
{
	struct echo *e = arg;
	int rc;

	if (e->told)
		return 0;
	if (e->end_ms)
		rc = ex_interrupted() || ex_now_ms() > e->end_ms;
	else
		rc = e->raw ? ask(e) : et_pair_is_done(e->pair);
	if (rc == 1)
		e->told = true;
	return rc == 1 ? stop(e) : rc;
}

static int open_queues(struct echo *e)
{
	struct et_memory none;

	return et_open_rxq(e->q, false, &e->job.rxq) || et_steer(e->q, e->address, 0) ||
			       et_open_txq(e->q, ET_PLAIN, 0, &e->job.txq, &none) ||
			       et_alloc(e->q, sizeof(*e->arg), &e->arg)
		       ? -1
		       : 0;
}

static int serve(struct echo *e)
{
	if (open_queues(e))
		return -1;
	printf("GPU %s, NIC %s: %u threads answer, handler %s\n", e->opt.gpu, et_device(e->q),
	       e->opt.threads,
	       gdk_handler_name((enum doca_gpu_dev_verbs_nic_handler)et_handler(e->q)));
	if (e->opt.duration_s)
		e->end_ms = ex_now_ms() + e->opt.duration_s * 1000ll;
	if (et_launch(e->q, e->opt.threads, e->arg, &e->job, sizeof(e->job)))
		return -1;
	if (e->pair && et_pair_tell_ready(e->pair))
		ex_error("cannot tell the client"); /* step() fails, too, and ends the kernel */
	if (et_wait(e->q, step, e, e->arg, &e->job, sizeof(e->job)))
		return -1;
	printf("answered %" PRIu64 " ICMP and %" PRIu64 " UDP echo requests, %" PRIu64
	       " other packets\n",
	       e->job.answered[EC_ICMP], e->job.answered[EC_UDP], e->job.others);
	return e->job.others && !e->end_ms ? ex_error("packets that are no requests came") : 0;
}

/* ---- the side that asks ---- */

static int ask_all(struct echo *e)
{
	const struct timespec nap = { 0, NAP_NS };
	int rc;

	if (et_pair_await_ready(e->pair))
		return -1;
	while (!(rc = ask(e))) {
		if (ex_waits_end())
			return ex_error("interrupted");
		nanosleep(&nap, NULL);
	}
	return rc < 0 ? -1 : et_pair_tell_done(e->pair);
}

static int report(const struct echo *e)
{
	static const char *const kinds[] = { [EC_ICMP] = "ICMP echo", [EC_UDP] = "UDP echo" };
	int rc = 0, k;

	printf("%-10s %9s %8s\n", "", "requests", "replies");
	for (k = 0; k < EC_KINDS; k++) {
		printf("%-10s %9u %8u\n", kinds[k], e->opt.packets, e->got[k]);
		if (e->got[k] != e->opt.packets)
			rc = ex_error("%s: %u requests have no right reply", kinds[k],
				      e->opt.packets - e->got[k]);
	}
	if (e->wrong)
		rc = ex_error("%u replies are wrong or came twice", e->wrong);
	if (!rc)
		printf("every byte of the %u replies is right\n", num_requests(e));
	return rc;
}

/* ---- both ---- */

/* Sets the flows between the side that answers, with this address, and the one that asks. */
static void set_flows(struct echo *e, const uint8_t answers[6], const uint8_t asks[6])
{
	e->asked = (struct et_flow){ .src_ip = ET_SENDER_IP,
				     .dst_ip = e->address,
				     .src_port = ET_PORT,
				     .dst_port = EC_PORT };
	e->answer = (struct et_flow){ .src_ip = e->address,
				      .dst_ip = ET_SENDER_IP,
				      .src_port = EC_PORT,
				      .dst_port = ET_PORT };
	memcpy(e->asked.dst_mac, answers, 6);
	memcpy(e->asked.src_mac, asks, 6);
	memcpy(e->answer.dst_mac, asks, 6);
	memcpy(e->answer.src_mac, answers, 6);
}

static int open_both(struct echo *e)
{
	const bool pair = e->opt.server || e->opt.remote;
	uint8_t peer[6];

	if (et_open(&e->q, &e->opt))
		return -1;
	memcpy(peer, et_mac(e->q), 6);
	if (pair && et_pair_open(&e->pair, &e->opt, program.name, et_mac(e->q), peer))
		return -1;
	set_flows(e, peer, et_mac(e->q));
	if (e->opt.remote || e->opt.duration_s)
		return 0;
	e->seen = calloc(num_requests(e), 1);
	if (!e->seen)
		return ex_error("no memory");
	return et_raw_open(&e->raw, et_device(e->q)) || et_raw_steer(e->raw, ET_SENDER_IP) ? -1 : 0;
}

static int check_options(struct echo *e)
{
	struct et_options *opt = &e->opt;
	struct in_addr in;

	opt->scope = ET_BLOCK;
	if ((opt->server != NULL) + opt->remote + (opt->duration_s != 0) > 1)
		return ex_error("-c, -r and -D: a process either asks, or answers one process, or "
				"any host");
	if (inet_pton(AF_INET, opt->address, &in) != 1)
		return ex_error("invalid -a, --address '%s' (expected an IPv4 address)",
				opt->address);
	e->address = ntohl(in.s_addr);
	if (e->address == ET_SENDER_IP)
		return ex_error("invalid -a, --address '%s': requests come from it", opt->address);
	if (opt->packets > ET_PACKETS_MAX / EC_KINDS)
		return ex_error("invalid -i, --iterations %u (expected at most %u)", opt->packets,
				ET_PACKETS_MAX / EC_KINDS);
	return et_choose_threads(opt, false);
}

int main(int argc, char **argv)
{
	struct echo e = { .opt = { .gpu = "host",
				   .address = "198.18.0.2",
				   .packets = 256,
				   .size = 1024,
				   .slots = 256,
				   .in_flight = 64,
				   .tcp_port = 5000,
				   .timeout_s = 30 } };
	int rc = et_options_parse(&program, &e.opt, argc, argv);

	if (rc >= 0)
		return rc;
	if (check_options(&e))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0); /* each line is written at once */
	ex_catch_signals();
	if (e.opt.duration_s)
		/* The first signal ends the time. timeout(1) sends SIGTERM to the program and
		 * twice to softnic-run, which sends it on. */
		ex_set_patience(4);
	rc = open_both(&e) || (e.opt.server ? ask_all(&e) : serve(&e)) ? -1 : 0;
	if (!rc && e.raw)
		rc = report(&e);
	if (rc)
		et_pair_failed(e.pair);
	et_pair_close(e.pair);
	et_raw_close(e.raw);
	et_close(e.q);
	free(e.seen);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
