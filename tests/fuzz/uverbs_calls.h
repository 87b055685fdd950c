/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Valid calls of the verbs ioctl. fuzz_uverbs.c makes them in the order that its input
 * selects, with some attributes changed. */
#ifndef FUZZ_UVERBS_CALLS_H
#define FUZZ_UVERBS_CALLS_H

#include "nic.h"

/* State of the simulated program: the newest handle of each kind, and descriptors. */
enum uv_kind {
	UV_PD,
	UV_MR,
	UV_UMEM,
	UV_UAR,
	UV_CQ,
	UV_QP,
	UV_SRQ,
	UV_AH,
	UV_DEVX,
	UV_RAW,
	UV_WQ,
	UV_TABLE,
	UV_MATCHER,
	UV_FLOW,
	UV_COUNTERS,
	UV_TIR,
	UV_FLOW_COUNTER,
	UV_KINDS
};
enum uv_fd { UV_EVENTFD, UV_MEMORY, UV_ASYNC, UV_CHANNEL, UV_EVENTS, UV_OUTPUTS, UV_FDS };

struct uv_program {
	struct fuzz_nic *nic;
	struct fuzz_in *in;
	uint64_t handle[UV_KINDS];
	int fd[UV_FDS];
};

/* A handle or descriptor selected by the input; a 0 byte selects the newest one of the kind. */
uint64_t uv_handle(struct uv_program *p, enum uv_kind kind);
uint64_t uv_fd(struct uv_program *p, enum uv_fd kind);

/* Prepares call number `which`, modulo the number of calls. */
void uv_prepare(struct uv_program *p, struct fuzz_call *c, unsigned which);
/* Stores the handles and descriptors that a successful call created. */
void uv_keep(struct uv_program *p, const struct fuzz_call *c, unsigned which);

#endif
