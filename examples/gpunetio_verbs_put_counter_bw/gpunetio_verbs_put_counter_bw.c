/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Bandwidth of puts with counters: when a put is complete, a companion queue pair adds 1 to a flag
 * in the server's memory. The server checks the data and the flags. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_put_counter_bw",
		.summary = "Bandwidth of puts that a companion queue pair counts in the "
			   "server's memory.",
		.kind = EX_BANDWIDTH,
		.signals = true,
		.counter = true,
		.handlers = EX_HANDLERS & ~EX_HANDLER_BF, /* not for companions */
		.host_threads = 4,
		.gpu_threads = 512,
		.gpu_blocks = 4,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
