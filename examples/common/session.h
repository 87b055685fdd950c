/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One run of a program, for the files that implement it: session.c (client), serve.c (server),
 * setup.c (queue pairs and memory), data.c (payload), launch.c (kernel).
 */
#ifndef EXAMPLES_SESSION_H
#define EXAMPLES_SESSION_H

#include "exchange.h"
#include "grid.h"
#include "pattern.h"
#include "program.h"

struct ex_memory {	 /* pinned host memory */
	void *gpu, *cpu; /* its address for threads, and for this program */
};

struct ex_session {
	const struct ex_program *program;
	struct ex_options opt; /* server: queues, blocks and threads are those of the client */
	struct ex_endpoint ep;
	struct ex_conn conn;
	const struct ex_grid_ops *grid;			/* NULL: not opened */
	struct ex_peer *peers;				/* of each queue pair */
	struct ex_memory queues, status, samples, tick; /* see struct ex_job */
	struct ex_job job;
	struct ex_shape shape;
	bool stop; /* Ctrl-C at one of the sides: end after the chunk */
	bool hung; /* the kernel did not end: its memory must not be freed */
	bool has_pending;
	struct ex_msg pending; /* message that arrived while a kernel ran */
};

/* setup.c: both sides, after the hello. data: bytes of data of each queue pair. */
int ex_setup(struct ex_session *s, size_t data);
void ex_teardown(struct ex_session *s);
/* Number of messages after which a thread waits. */
uint32_t ex_batch(const struct ex_session *s);
/* Bytes of the whole payload; at most EX_PAYLOAD_MAX. */
uint64_t ex_payload_bytes(const struct ex_program *p, const struct ex_options *opt, size_t data);
#define EX_PAYLOAD_MAX (4ull << 30)

/* data.c: before and after the transfer of one message size. ex_data_check() returns 0, or prints
 * what is wrong and returns -1. iters: messages of each thread. */
int ex_data_prepare(struct ex_session *s);
int ex_data_check(struct ex_session *s, uint64_t iters);

#define EX_CHUNK_MAX (1u << 18) /* iterations of one launch: the samples have this size */

/* launch.c: ex_launch() starts the kernel for the next iterations. ex_await() waits until it ends,
 * at most until there is no progress for the time limit; tick is called several times per second.
 * Both return 0 or, after a message, -1. */
int ex_launch(struct ex_session *s, uint32_t iters);
int ex_await(struct ex_session *s, void (*tick)(struct ex_session *s));
/* Aborts the queue pairs and waits until the kernel has ended, or sets s->hung. Returns -1. */
int ex_end_kernel(struct ex_session *s);
double ex_now_s(void);
struct ex_totals {
	uint64_t doorbells, dbrec_updates, work; /* work: changes with any progress */
};
int ex_count(struct ex_session *s, struct ex_totals *t); /* all queue pairs together */

/* serve.c, client.c */
int ex_serve(struct ex_session *s);
int ex_drive(struct ex_session *s);
size_t ex_drive_data(const struct ex_session *s); /* bytes of data that ex_drive() needs */

#endif
