/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Latency of RDMA writes, by functions at the level of WQEs: client and server write messages to
 * each other in turn. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_write_lat",
		.summary = "Latency of RDMA writes: client and server write messages to "
			   "each other in turn.",
		.kind = EX_LATENCY,
		.pingpong = true,
		.one_block = true,
		.one_thread = true,
		.handlers = EX_HANDLERS,
		.host_threads = 1,
		.gpu_threads = 1,
		.gpu_blocks = 1,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
