/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: one-sided puts from many threads on shared queue pairs. The client's threads (of a GPU,
 * or of the CPU with -g host) write into the server's memory, and the server checks every byte. The
 * kernel is in gpunetio_verbs_put_bw_kernel.cu; everything else is common to the examples.
 */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_put_bw",
		.summary = "One-sided puts from many threads on shared queue pairs: the client "
			   "writes into the server's\nmemory, and the server checks every byte.",
		.kind = EX_BANDWIDTH,
		.handlers = EX_HANDLERS,
		.host_threads = 4,
		.gpu_threads = 512,
		.gpu_blocks = 4,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
