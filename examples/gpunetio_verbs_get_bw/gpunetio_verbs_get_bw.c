/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Bandwidth of one-sided gets: the client's threads read the server's memory, and the client
 * checks the data. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_get_bw",
		.summary = "Bandwidth of one-sided gets: the client's threads read the "
			   "server's memory.",
		.kind = EX_BANDWIDTH,
		.reads = true,
		.handlers = EX_HANDLERS,
		.host_threads = 4,
		.gpu_threads = 512,
		.gpu_blocks = 4,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
