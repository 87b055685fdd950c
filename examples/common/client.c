/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The client: for each message size, launches the kernel until all messages are sent, or the time
 * is over, or Ctrl-C was pressed at one of the sides. Then the server checks the data, and the
 * result is reported.
 *
 * The kernel is launched for a part of the iterations at a time, called a chunk, so that each
 * launch takes about CHUNK_S.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "session.h"

#define CHUNK_S	     0.25
#define CHUNK_GROWTH 16		   /* at most, from a chunk to the next one */
#define CHUNK_FIRST  16		   /* iterations, before the rate is known */
#define WINDOW_BYTES (64ull << 20) /* if all messages fit, each one has its own place */
#define WINDOW_MAX   (1u << 16)
#define SAMPLES_MAX  (1ull << 24) /* then every second one is dropped */
#define SWEEP_MAX    (1u << 20)

struct samples { /* of one message size, every `stride`-th */
	uint32_t *ticks;
	uint64_t num, seen, stride;
	uint32_t min, max;
};

struct size_run { /* one message size */
	struct ex_session *s;
	uint64_t iters; /* iterations of each thread that were measured */
	double seconds;
	struct ex_totals before;
	struct samples samples;
	uint32_t longest;   /* iterations of the longest chunk */
	double ns_per_tick; /* measured in that chunk: in a short one, the clock is too coarse */
};

static struct size_run *now_running; /* for the progress line */

/* ---- sizes ---- */

static uint32_t next_size(const struct ex_options *opt, uint32_t size)
{
	uint32_t max = opt->size_given ? opt->size : SWEEP_MAX;

	if (!opt->sweep)
		return size ? 0 : opt->size;
	size = !size ? 1 : size == 1 ? 64 : 2 * size;
	return size <= max ? size : 0;
}

static struct ex_shape shape_of(const struct ex_session *s, uint32_t size)
{
	const struct ex_options *opt = &s->opt;
	uint64_t slots = WINDOW_BYTES / opt->queues / ((uint64_t)opt->threads * size);
	uint64_t iters = opt->warmup + (uint64_t)opt->iters / opt->threads;

	if (opt->duration_s || iters > WINDOW_MAX)
		iters = WINDOW_MAX;
	if (s->program->pingpong) /* the next message is sent after the previous one has arrived */
		slots = 1;
	slots = slots < 1 ? 1 : slots < iters ? slots : iters;
	return (struct ex_shape){ .threads = opt->threads,
				  .size = size,
				  .window = (uint32_t)slots };
}

size_t ex_drive_data(const struct ex_session *s)
{
	size_t most = 0;

	for (uint32_t size = 0; (size = next_size(&s->opt, size));) {
		struct ex_shape shape = shape_of(s, size);
		size_t bytes = (size_t)shape.threads * shape.window * size;

		most = bytes > most ? bytes : most;
	}
	return most;
}

/* ---- samples ---- */

/* Drops every second sample. */
static void thin_out(struct samples *v)
{
	for (uint64_t i = 0; i < v->num / 2; i++)
		v->ticks[i] = v->ticks[2 * i];
	v->num /= 2;
	v->stride *= 2;
}

/* The first iteration of a launch includes the start of the kernels, so it does not count, unless
 * it is the only one of all launches. */
static void add_samples(struct samples *v, const uint32_t *ticks, uint32_t num)
{
	for (uint32_t i = num > 1 || v->seen; i < num; i++) {
		v->min = ticks[i] < v->min ? ticks[i] : v->min;
		v->max = ticks[i] > v->max ? ticks[i] : v->max;
		if (v->seen++ % v->stride)
			continue;
		if (v->num == SAMPLES_MAX)
			thin_out(v);
		v->ticks[v->num++] = ticks[i];
	}
}

static int alloc_samples(struct ex_session *s, struct samples *v)
{
	*v = (struct samples){ .stride = 1, .min = UINT32_MAX };
	if (s->program->kind != EX_LATENCY)
		return 0;
	v->ticks = malloc(SAMPLES_MAX * sizeof(*v->ticks)); /* untouched pages cost nothing */
	return v->ticks ? 0 : ex_error("out of memory");
}

/* ---- chunks ---- */

static void tick(struct ex_session *s)
{
	static double last;
	const struct size_run *r = now_running;
	struct ex_msg m = { .type = EX_MSG_PROGRESS };
	double done, gbps = 0, now = ex_now_s();

	if (now - last < 1)
		return;
	last = now;
	(void)ex_msg_send(&s->conn, &m); /* an error shows when a message is awaited */
	done = s->opt.duration_s ? r->seconds / s->opt.duration_s
				 : (double)r->iters * s->job.threads / s->opt.iters;
	if (r->seconds > 0)
		gbps = 8e-9 * (double)r->iters * s->job.threads * s->job.num_queues * s->job.size /
		       r->seconds;
	ex_report_progress(done > 1 ? 1 : done, gbps);
}

/* Lets the server launch its kernel, too. */
static int launch_server(struct ex_session *s, uint32_t iters)
{
	struct ex_msg m = { .type = EX_MSG_CHUNK, .num = s->job.first };

	m.arg[0] = iters;
	m.arg[1] = s->job.batch;
	if (ex_msg_send(&s->conn, &m))
		return -1;
	return ex_msg_recv(&s->conn, &m, EX_MSG_LAUNCHED, &s->stop, "for its kernel");
}

/* Stores the time of the kernel itself, without the launch. */
static int run_chunk(struct size_run *r, uint32_t iters, double *seconds)
{
	struct ex_session *s = r->s;
	double start;

	if (ex_server_launches(s->program) && launch_server(s, iters))
		return -1;
	start = ex_now_s();
	if (ex_launch(s, iters) || ex_await(s, tick))
		return -1;
	*seconds = s->grid->seconds();
	if (*seconds <= 0) /* unknown */
		*seconds = ex_now_s() - start;
	s->stop |= ex_interrupted();
	tick(s);
	return 0;
}

static uint32_t smallest(double a, double b, double c, double d)
{
	double m = a < b ? a : b;

	m = m < c ? m : c;
	m = m < d ? m : d;
	return m < 1 ? 1 : (uint32_t)m;
}

/* Iterations of the next chunk, after one of `iters` that took `seconds`; 0: none. */
static uint32_t next_chunk(const struct size_run *r, uint32_t iters, double seconds)
{
	const struct ex_options *opt = &r->s->opt;
	double left = (double)opt->iters / opt->threads - (double)r->iters;
	double time = CHUNK_S, rate = iters && seconds > 0 ? iters / seconds : 0;

	if (opt->duration_s) {
		left = EX_CHUNK_MAX;
		time = opt->duration_s - r->seconds;
	}
	if (r->s->stop || left <= 0 || time <= 0)
		return 0;
	if (rate <= 0)
		return smallest(CHUNK_FIRST, left, EX_CHUNK_MAX, left);
	return smallest(rate * (time < CHUNK_S ? time : CHUNK_S), left, EX_CHUNK_MAX,
			(double)CHUNK_GROWTH * iters);
}

/* Sends all messages of a size: warm-up, then what is measured. */
static int transfer(struct size_run *r)
{
	struct ex_session *s = r->s;
	uint32_t iters = s->opt.warmup < EX_CHUNK_MAX ? s->opt.warmup : EX_CHUNK_MAX;
	double seconds = 0;

	if (iters && run_chunk(r, iters, &seconds))
		return -1;
	if (ex_count(s, &r->before))
		return -1;
	while ((iters = next_chunk(r, iters, seconds))) {
		if (run_chunk(r, iters, &seconds))
			return -1;
		r->iters += iters;
		r->seconds += seconds;
		if (r->samples.ticks)
			add_samples(&r->samples, s->samples.cpu, iters);
		if (iters >= r->longest) {
			r->longest = iters;
			memcpy(&r->ns_per_tick, s->tick.cpu, sizeof(r->ns_per_tick));
		}
	}
	return 0;
}

/* ---- one size ---- */

static int begin_size(struct ex_session *s, uint32_t size)
{
	struct ex_msg m = { .type = EX_MSG_START };

	s->shape = shape_of(s, size);
	s->job.size = size;
	s->job.window = s->shape.window;
	s->job.batch = ex_batch(s);
	s->job.first = 0;
	m.arg[0] = size;
	m.arg[1] = s->shape.window;
	if (ex_msg_send(&s->conn, &m) || ex_data_prepare(s))
		return -1;
	return ex_msg_recv(&s->conn, &m, EX_MSG_READY, &s->stop, "for its memory");
}

/* Both sides check what they received. */
static int end_size(struct ex_session *s)
{
	struct ex_msg m = { .type = EX_MSG_DONE, .num = s->job.first };

	if (ex_msg_send(&s->conn, &m))
		return -1;
	if (ex_data_check(s, s->job.first)) {
		(void)ex_msg_recv(&s->conn, &m, EX_MSG_VERDICT, &s->stop, "for its verdict");
		return -1;
	}
	if (ex_msg_recv(&s->conn, &m, EX_MSG_VERDICT, &s->stop, "for its verdict"))
		return -1;
	if (m.arg[0])
		return 0;
	s->conn.peer_failed = true; /* it knows its error */
	return ex_error("the server received wrong data: %s", m.text);
}

static int report_size(struct size_run *r)
{
	const struct ex_session *s = r->s;
	struct samples *v = &r->samples;
	struct ex_report_row row = {
		.bytes = s->job.size,
		.messages = r->iters * s->job.threads * s->job.num_queues,
		.seconds = r->seconds,
		.ns_per_tick = r->ns_per_tick,
	};
	struct ex_totals after;

	if (!row.messages) /* interrupted during the warm-up */
		return 0;
	if (ex_count(r->s, &after))
		return -1;
	row.doorbells = after.doorbells - r->before.doorbells;
	row.dbrec_updates = after.dbrec_updates - r->before.dbrec_updates;
	if (v->stride > 1) { /* these two may have been dropped */
		v->ticks[0] = v->min;
		v->ticks[1] = v->max;
	}
	row.samples = v->ticks;
	row.num_samples = v->num;
	return ex_report_row(&row);
}

static int run_size(struct ex_session *s, uint32_t size)
{
	struct size_run r = { .s = s };
	int rc = -1;

	now_running = &r;
	if (alloc_samples(s, &r.samples))
		return -1;
	if (!begin_size(s, size) && !transfer(&r) && !end_size(s))
		rc = report_size(&r);
	free(r.samples.ticks);
	return rc;
}

/* ---- report ---- */

static const char *reason_of(const struct gdk_handler_report *r)
{
	for (unsigned int i = 0; i < r->num_candidates; i++)
		if (r->candidates[i].usable && r->candidates[i].handler == r->chosen)
			return r->candidates[i].reason;
	return "";
}

static int begin_report(struct ex_session *s)
{
	const struct ex_options *opt = &s->opt;
	const bool gpu = strcmp(opt->gpu, "host") != 0;
	uint32_t mtu = s->peers[0].mtu < s->ep.local.mtu ? s->peers[0].mtu : s->ep.local.mtu;
	struct gdk_handler_report report;
	struct ex_report_run run = {
		.program = s->program->name,
		.gpu = opt->gpu,
		.device = ibv_get_device_name(s->ep.ctx->device),
		.link_layer = s->ep.port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
									       : "InfiniBand",
		.payload = opt->payload_gpu ? "gpu" : "host",
		.queues = gpu && !opt->queues_host ? "gpu" : "host",
		.scope = opt->warp ? "warp" : "thread",
		.kind = s->program->kind,
		.queue_pairs = opt->queues,
		.blocks = opt->blocks,
		.threads = opt->threads,
		.mtu = 128u << mtu, /* enum ibv_mtu: 1 is 256 */
	};

	if (ex_check(gdk_verbs_qp_get_handler_report(s->ep.qp->qp_gverbs, &report), "report"))
		return -1;
	run.handler_requested = gdk_handler_name(report.asked);
	run.handler = gdk_handler_name(report.chosen);
	run.reason = reason_of(&report);
	return ex_report_begin(&run, opt->json, opt->csv);
}

int ex_drive(struct ex_session *s)
{
	struct ex_msg end = { .type = EX_MSG_END };
	uint32_t size = 0;
	int rc = begin_report(s);

	if (rc)
		return rc;
	while (!rc && !s->stop && (size = next_size(&s->opt, size)))
		rc = run_size(s, size);
	if (!rc)
		rc = ex_msg_send(&s->conn, &end);
	return ex_report_end() || rc ? -1 : 0;
}
