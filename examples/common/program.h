/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What distinguishes one program from another. The main() of a program is
 * "return ex_main(argc, argv, &program);": options, exchange with the peer, launches, checks and
 * reports are common to all.
 */
#ifndef EXAMPLES_PROGRAM_H
#define EXAMPLES_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

struct ex_endpoint;
struct ex_options;

/* The handlers AUTO, CPU_PROXY, GPU_SM_DB, GPU_SM_BF and GPU_SM_NO_DBR. */
#define EX_HANDLER_BF (1u << 6)
#define EX_HANDLERS   (1u << 0 | 1u << 1 | 1u << 2 | EX_HANDLER_BF | 1u << 10)

enum ex_kind { EX_BANDWIDTH, EX_LATENCY };

struct ex_program {
	const char *name, *summary;
	enum ex_kind kind;
	bool pingpong;	   /* the server launches the kernel, too */
	bool reads;	   /* gets: the server's data is read, and the client checks it */
	bool signals;	   /* each message also adds 1 to the peer's flag of the thread; checked */
	bool counter;	   /* the companion queue pair adds 1 to the peer's flag */
	bool receives;	   /* sends: the server launches the kernel, too, and receives */
	bool one_block;	   /* all threads of a queue pair must be in one block */
	bool one_thread;   /* each queue pair has one thread and one block: no -b, -t and -e */
	uint32_t handlers; /* 1 << handler for each handler that the program supports */
	uint32_t host_threads, gpu_threads, gpu_blocks, iters; /* defaults */
	uint32_t queues;				       /* default; 0: 1 */
	/* May be NULL. The client calls begin before the first transfer and end after the last one.
	 * Both return 0 or, after a message, -1. */
	int (*begin)(struct ex_endpoint *ep);
	int (*end)(struct ex_endpoint *ep, const struct ex_options *opt);
};

/* Whether the server launches the kernel, too. */
static inline bool ex_server_launches(const struct ex_program *p)
{
	return p->pingpong || p->receives;
}

/* Returns the exit status of the program: 0 on success, 1 after an error, 2 for wrong usage. */
int ex_main(int argc, char **argv, const struct ex_program *program);

#endif
