/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Bandwidth of puts with signals: after each put, the NIC adds 1 to a flag in the server's memory.
 * The server checks the data and the flags. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_put_signal_bw",
		.summary = "Bandwidth of puts with signals: after each put, the NIC adds "
			   "1 to the server's flag.",
		.kind = EX_BANDWIDTH,
		.signals = true,
		.handlers = EX_HANDLERS,
		.host_threads = 4,
		.gpu_threads = 512,
		.gpu_blocks = 4,
		.iters = 2048,
	};

	return ex_main(argc, argv, &program);
}
