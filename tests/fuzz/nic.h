/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The whole NIC for a fuzzer, without the interposed libc: the device is opened and
 * closed for each input. Calls of its ioctl use buffers of exactly the attributes'
 * sizes, so that AddressSanitizer detects accesses beyond them.
 */
#ifndef FUZZ_NIC_H
#define FUZZ_NIC_H

#include "../softnic/front.h"
#include "stage.h"

#define NIC_ATTRS 20u
#define NIC_FDS	  16u
#define NIC_DATA  0x1100u /* largest number of bytes that one attribute holds */
/* Read-only pages at the end of the arena. */
#define NIC_READ_ONLY (FUZZ_ARENA + FUZZ_ARENA_LEN - 65536)

/* Objects of raw Ethernet, in the order in which they are created */
enum fuzz_eth {
	FUZZ_TD,
	FUZZ_TIS,
	FUZZ_SQ,
	FUZZ_COUNTERS,
	FUZZ_RQ,
	FUZZ_RQT,
	FUZZ_TIR,
	FUZZ_FLOW_COUNTER,
	FUZZ_ETH
};

struct fuzz_nic {
	int fd;
	struct sn_ctx *ctx;
	/* descriptors that the program got; the first two are an eventfd and an async event file */
	int fds[NIC_FDS];
	unsigned nfds;
	/* handles, then numbers and key, of the objects that nic_make_objects() created */
	uint64_t pd, umem, uar, cq, srq, qp; /* handles */
	uint32_t pdn, umem_id, uar_id, cqn, rmpn, qpn, lkey;
	/* objects of raw Ethernet that nic_make_ethernet() created */
	struct {
		uint16_t opcode; /* of the command that created it */
		uint64_t handle;
		uint32_t number;
	} eth[FUZZ_ETH];
};

enum fuzz_attr_kind { FUZZ_VALUE, FUZZ_IN, FUZZ_OUT, FUZZ_FD_OUT };

struct fuzz_attr {
	uint16_t id, len, flags;
	enum fuzz_attr_kind kind;
	/* FUZZ_VALUE: the value; otherwise, unless 0, an address to use instead of a buffer */
	uint64_t value;
	uint8_t data[NIC_DATA]; /* FUZZ_IN: initial bytes of the buffer; FUZZ_OUT: output */
};

struct fuzz_call {
	uint16_t object, method;
	unsigned n;
	struct fuzz_attr a[NIC_ATTRS];
};

/* Bits that select the device's configuration. */
enum {
	NIC_INFINIBAND = 1,
	NIC_DMABUF = 2,
	NIC_LAG = 4,
	NIC_TRACE = 8,
	NIC_FEW = 16, /* at most 3 QPs, at most one of them without DBREC */
	NIC_LARGE_PAGES = 32,
	NIC_NO_CD = 64, /* no core direct */
	NIC_EVENTS = 128,
};

void nic_setup(void); /* call once */
void nic_open(struct fuzz_nic *n, uint8_t how);
void nic_close(struct fuzz_nic *n);
/* Creates a PD, a memory region, a umem of the arena, a UAR page and, with DEVX, a CQ,
 * an RMP and a QP. */
void nic_make_objects(struct fuzz_nic *n);
/* Creates one object of raw Ethernet of each kind, after nic_make_objects(). */
void nic_make_ethernet(struct fuzz_nic *n);

void call_start(struct fuzz_call *c, uint16_t object, uint16_t method);
struct fuzz_attr *call_value(struct fuzz_call *c, uint16_t id, uint16_t len, uint64_t value);
struct fuzz_attr *call_in(struct fuzz_call *c, uint16_t id, const void *data, uint16_t len);
struct fuzz_attr *call_out(struct fuzz_call *c, uint16_t id, uint16_t len);
/* Calls the ioctl; returns 0 or -errno. Output is stored in each attribute's value and data. */
long nic_call(struct fuzz_nic *n, struct fuzz_call *c);

/* ---- boxes.c: valid commands for a NIC with these objects ---- */
/* Fills in the zeroed box, which has BOX_MAX bytes. Returns the length of the command. */
size_t box_fill(const struct fuzz_nic *n, uint16_t opcode, uint32_t number, uint8_t *box);
#define BOX_MAX 0x200u
/* boxes_eth.c: the same for the commands of raw Ethernet; 0: it is another command */
size_t box_eth(const struct fuzz_nic *n, uint16_t opcode, uint32_t number, uint8_t *box);

#endif
