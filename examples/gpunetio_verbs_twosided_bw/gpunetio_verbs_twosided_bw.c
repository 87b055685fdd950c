/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Bandwidth of sends: the server's threads post receives and wait for them, the client's threads
 * send. The server checks the data. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_twosided_bw",
		.summary = "Bandwidth of sends: threads of the server post the receives and wait "
			   "for them.",
		.kind = EX_BANDWIDTH,
		.receives = true,
		.one_block = true,
		.handlers = EX_HANDLERS & ~EX_HANDLER_BF,
		.host_threads = 4,
		.gpu_threads = 256,
		.gpu_blocks = 1,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
