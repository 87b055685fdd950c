/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: one-sided puts from many threads on one queue pair. The client's threads (of a
 * GPU, or of the CPU with -g host) write into the server's memory, and the server checks
 * every byte of that memory at the end. If all data is right, the client prints one
 * machine-readable line. The data path is in put_bw_host.c
 * and put_bw_kernel.cu.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "put_bw.h"

#define BATCH_MAX    16		   /* maximum number of messages after which a thread waits */
#define WINDOW_BYTES (64ull << 20) /* if all messages fit, each one has its own place */
#define PAYLOAD_MAX  (4ull << 30)
#define GRACE_S	     10		 /* seconds that the server adds to its limit for the transfer */
#define MAGIC	     0x67646b02u /* first word of the exchange; changes with its layout */

/* The client sends its result after the transfer. After DONE_OK the server checks the data and
 * replies with its own result. */
enum { DONE_OK = 1, DONE_FAILED = 2 };

static struct put_bw_shape shape_of(const struct ex_options *opt)
{
	struct put_bw_shape s = {
		.threads = opt->threads,
		.iters = opt->iters / opt->threads,
		.size = opt->size,
	};
	uint64_t slots = WINDOW_BYTES / ((uint64_t)s.threads * s.size);

	s.window = slots < 1 ? 1 : slots < s.iters ? (uint32_t)slots : s.iters;
	return s;
}

static bool shape_is_sane(const struct put_bw_shape *s)
{
	return s->threads && s->iters && s->size && s->window && s->window <= s->iters &&
	       (uint64_t)s->threads * s->window <= PAYLOAD_MAX / s->size;
}

static int send_shape(int sock, const struct put_bw_shape *s, unsigned int timeout_s)
{
	uint32_t w[] = { htobe32(MAGIC), htobe32(s->threads), htobe32(s->iters), htobe32(s->size),
			 htobe32(s->window) };

	return ex_send(sock, w, sizeof(w), timeout_s);
}

static int recv_shape(int sock, struct put_bw_shape *s, unsigned int timeout_s)
{
	uint32_t w[5];

	if (ex_recv(sock, w, sizeof(w), timeout_s))
		return -1;
	if (be32toh(w[0]) != MAGIC)
		return ex_error("the client is another program, or another version of this one");
	*s = (struct put_bw_shape){ .threads = be32toh(w[1]),
				    .iters = be32toh(w[2]),
				    .size = be32toh(w[3]),
				    .window = be32toh(w[4]) };
	return shape_is_sane(s) ? 0 : ex_error("the client requests an invalid transfer");
}

/* Calls fn on the payload. If the CPU cannot access the payload, fn works on a buffer in host
 * memory: if write is set, the buffer is copied to the payload after fn, otherwise from it before
 * fn. */
static int with_payload(struct ex_endpoint *ep, const char *gpu, const struct put_bw_shape *s,
			bool write, int (*fn)(const struct put_bw_shape *s, uint8_t *payload))
{
	size_t len = put_bw_bytes(s);
	uint8_t *copy;
	int rc = 0;

	if (ep->payload.cpu_ptr)
		return fn(s, ep->payload.cpu_ptr);
	copy = malloc(len);
	if (!copy)
		return ex_error("out of memory");
	if (!write)
		rc = put_bw_cuda_copy(gpu, copy, ep->payload.gpu_ptr, len);
	if (!rc)
		rc = fn(s, copy);
	if (!rc && write)
		rc = put_bw_cuda_copy(gpu, ep->payload.gpu_ptr, copy, len);
	free(copy);
	return rc;
}

static int prepare(struct ex_endpoint *ep, const struct ex_options *opt, int sock,
		   const struct put_bw_shape *s, struct ex_peer *peer)
{
	uint32_t ready;

	if (ex_payload_alloc(ep, put_bw_bytes(s), opt->payload_gpu) ||
	    with_payload(ep, opt->gpu, s, true, opt->server ? put_bw_fill : put_bw_poison) ||
	    ex_swap_peers(sock, &ep->local, peer, opt->timeout_s) ||
	    ex_endpoint_connect(ep, peer) || ex_send_u32(sock, MAGIC, opt->timeout_s))
		return -1;
	return ex_recv_u32(sock, &ready, opt->timeout_s); /* now both queue pairs are connected */
}

static int serve(struct ex_endpoint *ep, const struct ex_options *opt, int sock)
{
	struct put_bw_shape shape;
	struct ex_peer peer;
	uint32_t done;
	int rc;

	if (recv_shape(sock, &shape, opt->timeout_s) || prepare(ep, opt, sock, &shape, &peer) ||
	    ex_recv_u32(sock, &done, opt->timeout_s + GRACE_S))
		return -1;
	if (done != DONE_OK)
		return ex_error("the client failed; data was not validated");
	rc = with_payload(ep, opt->gpu, &shape, false, put_bw_check);
	if (!rc)
		printf("Validation successful! Data received correctly from client.\n");
	if (ex_send_u32(sock, rc ? DONE_FAILED : DONE_OK, opt->timeout_s))
		return -1;
	return rc;
}

static void abort_qp(void *arg)
{
	struct ex_endpoint *ep = arg;

	gdk_verbs_qp_abort(ep->qp->qp_gverbs);
}

static const char *failure_text(int rc)
{
	switch (rc) {
	case -ENOTCONN:
		return "the queue pair was used before it was connected";
	case -EHOSTDOWN:
		return "no CPU thread rings the doorbells of the queue pair";
	default:
		return strerror(-rc);
	}
}

static void print_failure(struct ex_endpoint *ep, int rc)
{
	struct gdk_qp_error e = { 0 };

	ex_error("the puts failed: %s", failure_text(rc));
	if (gdk_verbs_qp_get_error(ep->qp->qp_gverbs, &e) == DOCA_SUCCESS && e.has_cqe)
		ex_error("WQE %u of QP 0x%x, to address 0x%" PRIx64 " by key 0x%x: %s (syndrome "
			 "0x%x, vendor 0x%x); usual cause: %s",
			 e.wqe_counter, e.qpn, e.remote_addr, e.rkey, gdk_syndrome_text(e.syndrome),
			 e.syndrome, e.vendor_err_synd, gdk_syndrome_cause(e.syndrome));
}

static int run(struct ex_endpoint *ep, const struct ex_options *opt, const struct ex_peer *peer,
	       struct put_bw_job *job)
{
	uint32_t batch = EX_QUEUE_SIZE / job->shape.threads;
	int rc;

	batch = batch > BATCH_MAX ? BATCH_MAX : batch < 1 ? 1 : batch;
	job->batch = batch < job->shape.window ? batch : job->shape.window;
	job->gpu = opt->gpu;
	job->warp = opt->warp;
	job->src = ep->payload.gpu_ptr;
	job->src_addr = ep->payload.addr;
	job->dst_addr = peer->addr;
	job->lkey_be = htobe32(ep->payload.mr->lkey);
	job->rkey_be = htobe32(peer->rkey);
	job->timeout_s = opt->timeout_s;
	job->abort = abort_qp;
	job->arg = ep;
	if (ex_check(doca_gpu_verbs_get_qp_dev(ep->qp->qp_gverbs, &job->qp), "device queue pair"))
		return -1;
	rc = strcmp(opt->gpu, "host") ? put_bw_cuda_run(job) : put_bw_host_run(job);
	if (rc < -1)
		print_failure(ep, rc);
	return rc;
}

static const char *reason_of(const struct gdk_handler_report *r)
{
	for (unsigned int i = 0; i < r->num_candidates; i++)
		if (r->candidates[i].usable && r->candidates[i].handler == r->chosen)
			return r->candidates[i].reason;
	return "";
}

/* Prints one line of key=value pairs. The reason is last because it contains spaces. */
static int print_summary(struct ex_endpoint *ep, const struct put_bw_job *job)
{
	uint64_t messages = (uint64_t)job->shape.threads * job->shape.iters;
	uint64_t bytes = messages * job->shape.size;
	struct gdk_handler_report report;
	struct gdk_qp_counters c;

	if (ex_check(gdk_verbs_qp_get_handler_report(ep->qp->qp_gverbs, &report), "report") ||
	    ex_check(gdk_verbs_qp_get_counters(ep->qp->qp_gverbs, &c), "counters"))
		return -1;
	printf("RESULT asked=%s chosen=%s messages=%" PRIu64 " bytes=%" PRIu64
	       " seconds=%.6f gbps=%.3f msgs_per_s=%.0f doorbells=%" PRIu64
	       " dbrec_updates=%" PRIu64 " reason=%s\n",
	       gdk_handler_name(report.asked), gdk_handler_name(report.chosen), messages, bytes,
	       job->seconds, 8e-9 * (double)bytes / job->seconds, (double)messages / job->seconds,
	       c.doorbells, c.dbrec_updates, reason_of(&report));
	return 0;
}

static int put(struct ex_endpoint *ep, const struct ex_options *opt, int sock)
{
	struct put_bw_job job = { .shape = shape_of(opt) };
	struct ex_peer peer;
	uint32_t verdict;
	int rc;

	if (!shape_is_sane(&job.shape))
		return ex_error("-t %u threads with -s %u bytes need too much memory", opt->threads,
				opt->size);
	if (send_shape(sock, &job.shape, opt->timeout_s) ||
	    prepare(ep, opt, sock, &job.shape, &peer))
		return -1;
	rc = run(ep, opt, &peer, &job);
	if (ex_send_u32(sock, rc ? DONE_FAILED : DONE_OK, opt->timeout_s) || rc ||
	    ex_recv_u32(sock, &verdict, opt->timeout_s))
		return -1;
	if (verdict != DONE_OK)
		return ex_error("the server received wrong data");
	return print_summary(ep, &job);
}

int main(int argc, char **argv)
{
	struct ex_options opt;
	struct ex_endpoint ep;
	int sock, rc = ex_options_parse(&opt, argc, argv);

	if (rc >= 0)
		return rc;
	setvbuf(stdout, NULL, _IOLBF,
		0); /* each line is written at once, even if the process is killed later */
	ex_catch_signals();
	if (ex_endpoint_open(&ep, &opt))
		return EXIT_FAILURE;
	sock = opt.server ? ex_tcp_connect(&opt) : ex_tcp_accept(&opt);
	rc = sock < 0 ? -1 : opt.server ? put(&ep, &opt, sock) : serve(&ep, &opt, sock);
	ex_endpoint_close(&ep);
	ex_tcp_close(sock);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
