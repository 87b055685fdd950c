/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Latency of puts with counters: client and server put messages to each other in turn, and wait for
 * the addition that the companion queue pair of the sender does after the put. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_put_counter_lat",
		.summary = "Latency of puts that a companion queue pair counts: client "
			   "and server put in turn.",
		.kind = EX_LATENCY,
		.pingpong = true,
		.signals = true,
		.counter = true,
		.one_block = true,
		.one_thread = true,
		.handlers = EX_HANDLERS & ~EX_HANDLER_BF, /* not for companions */
		.host_threads = 1,
		.gpu_threads = 1,
		.gpu_blocks = 1,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
