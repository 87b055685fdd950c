/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The Ethernet port of the NIC's engine for a fuzzer: a send queue, two receive queues, TIRs,
 * flow rules, and frames that the input describes. Memory regions are those of rig.h. At the
 * end, memory that no posted receive WQE names must be unchanged, and the counters must add up.
 */
#ifndef FUZZ_ETH_RIG_H
#define FUZZ_ETH_RIG_H

#include "../softnic/eth.h"
#include "rig.h"

#define ETH_RQS	   2u
#define ETH_TIRS   4u
#define ETH_RULES  8u
#define ETH_SQN	   0x60u
#define ETH_RQN	   0x61u /* and the next one */
#define ETH_ROOM   9600u /* bytes of the longest frame that eth_frame() makes */
#define ETH_REGION (2 * RIG_REGION)

struct eth_rig {
	struct fake_qp sq, rq[ETH_RQS];
	struct sn_eth eth[1 + ETH_RQS];
	struct sn_counter_set set;
	struct sn_flow_counter counter;
	struct sn_flow_count count;
	struct sn_rqt rqt;
	struct sn_qp *table[4];
	struct sn_tir tir[ETH_TIRS]; /* one for each RQ, then two for the table */
	struct sn_rule rule[ETH_RULES];
	unsigned nrules;
	struct sn_stats before; /* counters of the device when the input began */
	uint64_t datagrams;	/* VXLAN packets with a frame that the NIC sent */
	uint64_t arrived;	/* frames that reached the receive path from outside */
};

extern struct eth_rig eth_rig;
/* Called at the end of an input, after the port was closed, to set eth_rig.arrived; may be NULL. */
extern void (*eth_rig_account)(void);

/* Runs one input: at most `steps` steps, each of which consumes a part of it. */
void eth_input(const uint8_t *data, size_t size, int steps, void (*step)(struct fuzz_in *in));
/* What fuzzers have in common: posts receive WQEs, consumes CQEs, changes rules, TIRs, states,
 * memory regions and DBRECs, as the input selects. */
void eth_program(struct fuzz_in *in);
void eth_recv(struct fuzz_in *in);
void eth_rule(struct fuzz_in *in);

/* Makes a frame as the input describes; returns its length, which may be 0. */
uint32_t eth_frame(struct fuzz_in *in, uint8_t frame[ETH_ROOM]);
/* Stores bytes in a region as the program would. */
void eth_store(enum rig_region region, uint32_t off, const void *bytes, uint32_t len);
/* A counter of the device, since the input began. */
#define ETH_COUNT(name) (sn_dev->stats.name - eth_rig.before.name)
/* Aborts with a message unless the condition holds. */
#define ETH_CHECK(holds, ...) \
	do { \
		if (!(holds)) \
			eth_fail(__VA_ARGS__); \
	} while (0)
void eth_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
