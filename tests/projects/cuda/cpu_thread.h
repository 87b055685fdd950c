/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* A put by a CPU thread. nvcc compiles device functions for GPUs only, so it is in a C file. */
#ifndef CPU_THREAD_H
#define CPU_THREAD_H

#include <stdint.h>

struct doca_gpu_dev_verbs_qp;

struct message {
	uint64_t from, to, len;
	uint32_t lkey, rkey; /* as ibv_reg_mr() returns them */
};

#ifdef __cplusplus
extern "C" {
#endif
int put_by_cpu(struct doca_gpu_dev_verbs_qp *qp, const struct message *message);
#ifdef __cplusplus
}
#endif

#endif
