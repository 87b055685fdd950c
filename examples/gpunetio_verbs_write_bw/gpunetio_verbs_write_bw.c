/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Bandwidth of RDMA writes, by functions at the level of WQEs: the client's threads write into the
 * server's memory, and the server checks it. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_write_bw",
		.summary = "Bandwidth of RDMA writes: each thread writes a WQE, one "
			   "rings for its block.",
		.kind = EX_BANDWIDTH,
		.one_block = true,
		.handlers = EX_HANDLERS & ~EX_HANDLER_BF,
		.host_threads = 4,
		.gpu_threads = 256,
		.gpu_blocks = 1,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
