/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The main program of the examples that have a server and a client: opens the device, connects to
 * the peer, and runs the part of this side (client.c, serve.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "session.h"

static int meet(struct ex_session *s)
{
	if (s->opt.server ? ex_connect(&s->conn, &s->opt) : ex_accept(&s->conn, &s->opt))
		return -1;
	return ex_hello(&s->conn, s->program->name);
}

/* Checks the memory that the options need before anything is opened. */
static int plan(const struct ex_session *s, size_t *data)
{
	*data = s->opt.server ? ex_drive_data(s) : 0;
	if (ex_payload_bytes(s->program, &s->opt, *data) > EX_PAYLOAD_MAX)
		return ex_error("-q %u queue pairs, -t %u threads and -s %u bytes need too much "
				"memory (at most %" PRIu64 " MiB)",
				s->opt.queues, s->opt.threads, s->opt.size,
				(uint64_t)EX_PAYLOAD_MAX >> 20);
	return 0;
}

/* The client's part, between the two functions of the program. */
static int drive(struct ex_session *s)
{
	const struct ex_program *p = s->program;
	int rc, ended;

	if (p->begin && p->begin(&s->ep))
		return -1;
	rc = ex_drive(s);
	ended = p->end ? p->end(&s->ep, &s->opt) : 0;
	return rc ? rc : ended;
}

static int run(struct ex_session *s)
{
	size_t data;

	if (plan(s, &data) || ex_device_open(&s->ep, &s->opt) || meet(s) || ex_setup(s, data))
		return -1;
	ex_set_patience(2); /* the first Ctrl-C ends the transfer, not the waits */
	return s->opt.server ? drive(s) : ex_serve(s);
}

int ex_main(int argc, char **argv, const struct ex_program *program)
{
	struct ex_session s = { .program = program, .conn = { .sock = -1 } };
	int rc = ex_options_parse(&s.opt, program, argc, argv);

	if (rc >= 0)
		return rc;
	setvbuf(stdout, NULL, _IOLBF,
		0); /* each line is written at once, even if the process is killed later */
	ex_catch_signals();
	rc = run(&s);
	if (rc)
		ex_msg_failed(&s.conn);
	if (s.hung)
		_Exit(EXIT_FAILURE); /* its threads still use the memory of the process */
	ex_teardown(&s);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
