/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What queues.c and run.c share. */
#ifndef ETHERNET_QUEUES_H
#define ETHERNET_QUEUES_H

struct et_options;
struct et_queues;
struct ex_grid_ops;

/* common/error.c. Its header, common.h, has the headers of DOCA GPUNetIO open. */
int ex_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

const struct ex_grid_ops *et_grid(const struct et_queues *q);
const struct et_options *et_options(const struct et_queues *q);
int *et_status(const struct et_queues *q); /* of ET_THREADS_MAX threads, GPU address */
void et_hung(struct et_queues *q);	   /* et_close() then frees nothing */

#endif
