/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Refers to a function that needs doorbell strategies, and to no function of a strategy. */
#include <doca_gpunetio_host.h>

int main(int argc, char **argv)
{
	struct doca_gpu_verbs_qp_hl *qp;

	(void)argv;
	return argc > 1 && doca_gpu_verbs_create_qp_hl(NULL, &qp) != DOCA_SUCCESS;
}
