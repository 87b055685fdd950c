/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One queue pair of the NIC's engine for a fuzzer, connected to itself or to a peer
 * that the fuzzer plays, with memory regions in the arena. At the end, memory to which
 * no key gives write access must be unchanged.
 */
#ifndef FUZZ_RIG_H
#define FUZZ_RIG_H

#include "../unit/engine_fake.h"
#include "stage.h"

#define RIG_QPN	   0x55u
#define RIG_QKEY   0x11u
#define RIG_REGION 8192u /* bytes of each region; the same amount of unregistered memory follows */

enum rig_region { RIG_ALL, RIG_LOCAL, RIG_READ_ONLY, RIG_REGIONS };

struct fuzz_rig {
	struct fake_qp q;
	struct sn_srq srq;
	uint8_t *srq_ring;
	uint32_t *srq_dbr;
	uint32_t srq_pi;
	struct in6_addr peer;
	bool to_self, has_srq;
};

extern uint32_t rig_key[RIG_REGIONS];

void rig_setup(void); /* call once */
/* Sets up the queue pair as the first bytes of the input select. */
void rig_start(struct fuzz_rig *r, struct fuzz_in *in);
void rig_end(struct fuzz_rig *r);
uint8_t *rig_memory(enum rig_region region);
void rig_restore(void); /* undoes the changes of memory regions */

/* Changes the queue pair's state; the input selects how. */
void rig_state(struct fuzz_rig *r, struct fuzz_in *in);
/* Makes one action of the local program, which the input selects: consumes CQEs; arms,
 * moderates or resizes a CQ; writes a DBREC; changes sq_psn; shortens or invalidates a
 * memory region. */
void rig_program(struct fuzz_rig *r, struct fuzz_in *in);
/* Posts a receive WQE; the input selects its entries. raw: fills it with bytes of the input. */
void rig_recv(struct fuzz_rig *r, struct fuzz_in *in, bool raw);
/* Runs one input: at most `steps` steps, each of which consumes a part of it. */
void rig_input(const uint8_t *data, size_t size, int steps,
	       void (*step)(struct fuzz_rig *r, struct fuzz_in *in));

#endif
