/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Latency of puts with signals: client and server put messages to each other in turn, and wait for
 * the signal that follows the data. */
#include "program.h"

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_put_signal_lat",
		.summary = "Latency of puts with signals: client and server put to each "
			   "other in turn.",
		.kind = EX_LATENCY,
		.pingpong = true,
		.signals = true,
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
