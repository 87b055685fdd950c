/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The server: prepares its memory for each message size that the client starts, launches the kernel
 * if the program needs one here, and checks what arrived when the client has finished. On Ctrl-C it
 * stops the client, and checks what arrived until then.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session.h"

#define GRACE_S 10 /* more than the time limit of the client, whose message is more precise */

struct server {
	struct ex_session *s;
	uint32_t validated; /* message sizes */
	bool stop_sent, ended;
	uint64_t messages; /* of this size, in kernels that have ended */
	double seconds;	   /* duration of these kernels */
};

static int send_type(struct ex_session *s, enum ex_msg_type type)
{
	struct ex_msg m = { .type = type };

	return ex_msg_send(&s->conn, &m);
}

static void no_tick(struct ex_session *s)
{
	(void)s;
}

/* Waits for the kernel that was launched last, if there is one. */
static int finish_kernel(struct server *v)
{
	struct ex_session *s = v->s;

	if (!s->job.iters)
		return 0;
	if (ex_await(s, no_tick))
		return -1;
	v->messages += (uint64_t)s->job.iters * s->job.threads * s->job.num_queues;
	v->seconds += s->grid->seconds();
	s->job.iters = 0;
	return 0;
}

/* Waits for the next message of the client. On Ctrl-C, sends STOP once. The wait also ends if the
 * kernel fails: the client waits for its answers. */
static int next_message(struct server *v, struct ex_msg *m)
{
	struct ex_session *s = v->s;
	const struct timespec nap = { .tv_nsec = 1000000 };
	double end = ex_now_s() + s->opt.timeout_s + GRACE_S;
	int rc = s->has_pending;

	if (rc)
		*m = s->pending;
	s->has_pending = false;
	while (!rc) {
		if (ex_waits_end())
			return ex_error("interrupted");
		if (ex_interrupted() && !v->stop_sent) {
			v->stop_sent = true;
			if (send_type(s, EX_MSG_STOP))
				return -1;
		}
		if (s->job.iters && s->grid->done() && finish_kernel(v))
			return -1;
		rc = ex_msg_poll(&s->conn, m);
		if (!rc && ex_now_s() > end)
			return ex_error("timed out: no message of the client at %s for %u s (-w)",
					s->conn.where, s->opt.timeout_s);
		if (!rc)
			nanosleep(&nap, NULL);
	}
	return rc < 0 ? -1 : 0;
}

static int start_size(struct server *v, const struct ex_msg *m)
{
	struct ex_session *s = v->s;
	const struct ex_area *a = &s->ep.area;
	size_t data = (s->program->pingpong ? a->recv : a->flags) - EX_AREA_GUARD;

	s->shape = (struct ex_shape){ .threads = s->opt.threads,
				      .size = m->arg[0],
				      .window = m->arg[1] };
	if (s->job.iters || !m->arg[0] || !m->arg[1] ||
	    (uint64_t)m->arg[0] * m->arg[1] > data / s->opt.threads)
		return ex_error("the client requests an invalid transfer");
	s->job.size = m->arg[0];
	s->job.window = m->arg[1];
	s->job.first = 0;
	s->job.iters = 0;
	v->messages = 0;
	v->seconds = 0;
	if (ex_data_prepare(s))
		return -1;
	return send_type(s, EX_MSG_READY);
}

static int launch(struct server *v, const struct ex_msg *m)
{
	struct ex_session *s = v->s;

	if (finish_kernel(v))
		return -1;
	if (!ex_server_launches(s->program) || !s->job.window || m->num != s->job.first ||
	    !m->arg[0] || m->arg[0] > EX_CHUNK_MAX || !m->arg[1])
		return ex_error("the client requests an invalid launch");
	s->job.batch = m->arg[1];
	if (ex_launch(s, m->arg[0]))
		return -1;
	return send_type(s, EX_MSG_LAUNCHED);
}

/* The rate includes the warm-up, and the time until the client's kernels began. */
static void print_rate(const struct server *v)
{
	if (v->s->program->receives && v->seconds > 0)
		printf("%u bytes: %" PRIu64 " messages received, %.4g M/s\n", v->s->job.size,
		       v->messages, 1e-6 * (double)v->messages / v->seconds);
}

static int validate(struct server *v, const struct ex_msg *done)
{
	struct ex_msg verdict = { .type = EX_MSG_VERDICT };
	int rc;

	if (finish_kernel(v))
		return -1;
	rc = ex_data_check(v->s, done->num);
	if (!rc)
		print_rate(v);
	verdict.arg[0] = !rc;
	if (rc)
		snprintf(verdict.text, sizeof(verdict.text), "%s", ex_last_error());
	v->validated += !rc;
	if (ex_msg_send(&v->s->conn, &verdict))
		return -1;
	v->s->conn.peer_failed |= rc != 0; /* the client knows the error */
	return rc;
}

static int handle(struct server *v, const struct ex_msg *m)
{
	switch (m->type) {
	case EX_MSG_START:
		return start_size(v, m);
	case EX_MSG_CHUNK:
		return launch(v, m);
	case EX_MSG_PROGRESS:
		return 0;
	case EX_MSG_DONE:
		return validate(v, m);
	case EX_MSG_END:
		v->ended = true;
		return 0;
	default:
		return ex_error("unexpected message %u of the client", m->type);
	}
}

int ex_serve(struct ex_session *s)
{
	struct server v = { .s = s };

	while (!v.ended) {
		struct ex_msg m;

		if (next_message(&v, &m) || handle(&v, &m))
			return -1;
	}
	if (!v.validated)
		return ex_error("interrupted before the first message");
	if (s->program->reads)
		printf("Validation successful! Data read correctly by client.\n");
	else
		printf("Validation successful! Data received correctly from client.\n");
	return 0;
}
