/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The payload of a run: prepares the memory of both sides before the transfer of a message size,
 * and checks data and flags afterwards. GPU memory that the CPU cannot access is copied.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define GUARD 0xee /* each byte after the receiver's data; those after the sender's differ */

struct part { /* bytes of the area of one queue pair */
	uint32_t queue;
	uint8_t *gpu, *cpu; /* cpu: the bytes, or a copy of them */
	size_t len;
	bool copied;
};

static size_t data_len(const struct ex_session *s)
{
	return (size_t)s->shape.threads * s->shape.window * s->shape.size;
}

/* Makes a part accessible: read it first if load is set. Release it with close_part(). */
static int open_part(struct ex_session *s, uint32_t queue, size_t offset, size_t len, bool load,
		     struct part *p)
{
	const struct ex_payload *pl = &s->ep.payload;
	size_t at = queue * s->ep.area.stride + offset;

	*p = (struct part){ .queue = queue, .gpu = pl->gpu_ptr + at, .len = len };
	if (pl->cpu_ptr) {
		p->cpu = pl->cpu_ptr + at;
		return 0;
	}
	p->copied = true;
	p->cpu = malloc(len);
	if (!p->cpu)
		return ex_error("out of memory");
	if (load && s->grid->copy(p->cpu, p->gpu, len)) {
		free(p->cpu);
		return ex_error("cannot copy the payload from GPU memory");
	}
	return 0;
}

static int close_part(struct ex_session *s, struct part *p, bool store)
{
	int rc = 0;

	if (!p->copied)
		return 0;
	if (store && s->grid->copy(p->gpu, p->cpu, p->len))
		rc = ex_error("cannot copy the payload to GPU memory");
	free(p->cpu);
	return rc;
}

static int write_data(struct ex_session *s, uint32_t queue, size_t offset, bool server,
		      enum ex_content content)
{
	struct part p;

	if (open_part(s, queue, offset, data_len(s) + EX_AREA_GUARD, false, &p))
		return -1;
	memset(p.cpu + data_len(s), content == EX_EMPTY ? GUARD : (uint8_t)~GUARD, EX_AREA_GUARD);
	ex_pattern_write(&s->shape, queue, p.cpu, server, content);
	return close_part(s, &p, true);
}

/* Sets all flags and old values to 0. */
static int clear_flags(struct ex_session *s, uint32_t queue)
{
	const struct ex_area *a = &s->ep.area;
	struct part p;

	if (open_part(s, queue, a->flags, a->stride - a->flags, false, &p))
		return -1;
	memset(p.cpu, 0, p.len);
	return close_part(s, &p, true);
}

static int prepare_queue(struct ex_session *s, uint32_t queue)
{
	const struct ex_program *prog = s->program;
	const size_t recv = s->ep.area.recv;
	const bool client = s->job.client;
	int rc = clear_flags(s, queue);

	if (rc)
		return rc;
	if (prog->reads)
		return write_data(s, queue, 0, true, client ? EX_EMPTY : EX_GET_SOURCE);
	if (client || prog->pingpong)
		rc = write_data(s, queue, 0, !client, EX_PUT_SOURCE);
	if (!rc && (!client || prog->pingpong))
		rc = write_data(s, queue, recv, client, EX_EMPTY);
	return rc;
}

int ex_data_prepare(struct ex_session *s)
{
	for (uint32_t k = 0; k < s->ep.num_queues; k++)
		if (prepare_queue(s, k))
			return -1;
	return 0;
}

static int check_flags(struct ex_session *s, uint32_t queue, uint64_t iters)
{
	struct part p;
	int rc = 0;

	if (open_part(s, queue, s->ep.area.flags, s->shape.threads * sizeof(uint64_t), true, &p))
		return -1;
	for (uint32_t t = 0; !rc && t < s->shape.threads; t++) {
		uint64_t flag;

		memcpy(&flag, p.cpu + t * sizeof(flag), sizeof(flag));
		if (flag != iters)
			rc = ex_error("Validation failed: the flag of thread %u of queue pair %u "
				      "is %" PRIu64 ", expected %" PRIu64 " (%u bytes)",
				      t, queue, flag, iters, s->shape.size);
	}
	(void)close_part(s, &p, false);
	return rc;
}

/* Finds messages that are too long, or were written after the last slot. */
static int check_guard(const struct ex_session *s, uint32_t queue, const uint8_t *bytes)
{
	for (uint32_t i = 0; i < EX_AREA_GUARD; i++)
		if (bytes[i] != GUARD)
			return ex_error("Validation failed: byte %u after the data of queue pair "
					"%u is 0x%02x, but no message goes there (%u bytes)",
					i, queue, bytes[i], s->shape.size);
	return 0;
}

static int check_queue(struct ex_session *s, uint32_t queue, uint64_t iters)
{
	const struct ex_program *prog = s->program;
	struct part p;
	int rc;

	if (open_part(s, queue, prog->reads ? 0 : s->ep.area.recv, data_len(s) + EX_AREA_GUARD,
		      true, &p))
		return -1;
	rc = ex_pattern_check(&s->shape, queue, p.cpu, s->job.client, prog->reads, iters);
	if (!rc)
		rc = check_guard(s, queue, p.cpu + data_len(s));
	(void)close_part(s, &p, false);
	if (!rc && (prog->signals || prog->counter))
		rc = check_flags(s, queue, iters);
	return rc;
}

int ex_data_check(struct ex_session *s, uint64_t iters)
{
	const bool receives = s->program->reads == s->job.client || s->program->pingpong;

	for (uint32_t k = 0; receives && k < s->ep.num_queues; k++)
		if (check_queue(s, k, iters))
			return -1;
	return 0;
}
