/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The whole NIC for a fuzzer, without the interposed libc: one open of the device,
 * closed at the end of each input, and calls of its ioctl whose buffers are as long
 * as their attributes say, so that AddressSanitizer sees what is read or written
 * beyond.
 */
#ifndef FUZZ_NIC_H
#define FUZZ_NIC_H

#include "../softnic/front.h"
#include "stage.h"

#define NIC_ATTRS 20u
#define NIC_FDS	  16u
#define NIC_DATA  0x1100u /* bytes of one attribute that a call holds */
/* The arena: at its end pages that cannot be written. */
#define NIC_READ_ONLY (FUZZ_ARENA + FUZZ_ARENA_LEN - 65536)

struct fuzz_nic {
	int fd;
	struct sn_ctx *ctx;
	int fds[NIC_FDS]; /* given to the program: event files; the first are of other kinds */
	unsigned nfds;
	/* made at the start */
	uint64_t pd, umem, uar, cq, srq, qp; /* handles */
	uint32_t pdn, umem_id, uar_id, cqn, rmpn, qpn, lkey;
};

enum fuzz_attr_kind { FUZZ_VALUE, FUZZ_IN, FUZZ_OUT, FUZZ_FD_OUT };

struct fuzz_attr {
	uint16_t id, len, flags;
	enum fuzz_attr_kind kind;
	uint64_t value;		/* FUZZ_VALUE: as it is; otherwise, unless 0, instead of a buffer */
	uint8_t data[NIC_DATA]; /* FUZZ_IN: what the buffer begins with; FUZZ_OUT: what came back */
};

struct fuzz_call {
	uint16_t object, method;
	unsigned n;
	struct fuzz_attr a[NIC_ATTRS];
};

/* bits of how a device is set up */
enum {
	NIC_INFINIBAND = 1,
	NIC_DMABUF = 2,
	NIC_LAG = 4,
	NIC_TRACE = 8,
	NIC_FEW = 16,
	NIC_LARGE_PAGES = 32,
	NIC_NO_CD = 64,
	NIC_EVENTS = 128,
};

void nic_setup(void); /* once */
void nic_open(struct fuzz_nic *n, uint8_t how);
void nic_close(struct fuzz_nic *n);
/* A PD, a umem of the arena, a register page, a CQ, an RMP and a QP by DEVX, a region. */
void nic_make_objects(struct fuzz_nic *n);

void call_start(struct fuzz_call *c, uint16_t object, uint16_t method);
struct fuzz_attr *call_value(struct fuzz_call *c, uint16_t id, uint16_t len, uint64_t value);
struct fuzz_attr *call_in(struct fuzz_call *c, uint16_t id, const void *data, uint16_t len);
struct fuzz_attr *call_out(struct fuzz_call *c, uint16_t id, uint16_t len);
/* The ioctl: 0 or -errno. What came out is in each attribute's value and data. */
long nic_call(struct fuzz_nic *n, struct fuzz_call *c);

/* ---- boxes.c: a command that a NIC with these objects takes ---- */
/* Fills the box of the largest length, zeroed; returns the command's own length. */
size_t box_fill(const struct fuzz_nic *n, uint16_t opcode, uint32_t number, uint8_t *box);
#define BOX_MAX 0x200u

#endif
