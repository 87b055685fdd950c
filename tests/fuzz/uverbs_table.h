/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The form of a call in the tables of uverbs_calls.c and uverbs_eth.c. */
#ifndef FUZZ_UVERBS_TABLE_H
#define FUZZ_UVERBS_TABLE_H

#include "uverbs_calls.h"

#define CQ_AT	(FUZZ_ARENA + 0x9000)
#define QP_AT	(FUZZ_ARENA + 0xa000)
#define SRQ_AT	(FUZZ_ARENA + 0xc000)
#define DBR_AT	(FUZZ_ARENA + 0xf000)
#define EX(cmd) (IB_USER_VERBS_CMD_FLAG_EXTENDED | (cmd))

enum attr_kind { END, VALUE, OUT, FD, FD_OUT, HANDLE, HANDLE_OUT, WRITE, UHW, CMD, TYPES, ETH };

struct attr {
	enum attr_kind kind;
	uint16_t id, len; /* OUT, VALUE, HANDLE in an array: size in bytes */
	uint64_t arg;	  /* VALUE: the value; others: the kind of handle, structure or command */
};

struct call {
	uint16_t object, method;
	struct attr a[16];
};

#define FILL(type, ...) \
	do { \
		*(struct type *)data = (struct type){ __VA_ARGS__ }; \
		return sizeof(struct type); \
	} while (0)

/* uverbs_eth.c: calls of raw Ethernet, and the structures that they pass (kind ETH) */
extern const struct call eth_calls[];
extern const unsigned eth_ncalls;
uint16_t eth_fill(struct uv_program *p, uint64_t what, void *data);
/* Returns where the output of a write command has a new handle, and its kind in *kind. Negative:
 * nowhere. */
int eth_handle_at(uint64_t what, enum uv_kind *kind);

#endif
