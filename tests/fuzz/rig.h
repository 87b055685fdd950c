/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One queue pair of the NIC's engine for a fuzzer, connected to itself or to a
 * peer that is the fuzzer, with memory regions in the arena. What no key allows to
 * write must be as it was at the end.
 */
#ifndef FUZZ_RIG_H
#define FUZZ_RIG_H

#include "../unit/engine_fake.h"
#include "stage.h"

#define RIG_QPN	   0x55u
#define RIG_QKEY   0x11u
#define RIG_REGION 8192u /* bytes of each region, with as much unregistered memory behind */

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

void rig_setup(void); /* once */
/* The input begins with how the queue pair is set up. */
void rig_start(struct fuzz_rig *r, struct fuzz_in *in);
void rig_end(struct fuzz_rig *r);
uint8_t *rig_memory(enum rig_region region);

/* A change of the queue pair's state that the input names. */
void rig_state(struct fuzz_rig *r, struct fuzz_in *in);
/* The program reads CQEs, arms a CQ or looses a memory region. */
void rig_program(struct fuzz_rig *r, struct fuzz_in *in);
/* A receive WQE of as many entries as the input says, perhaps bytes of its own. */
void rig_recv(struct fuzz_rig *r, struct fuzz_in *in, bool raw);
/* One input: at most steps steps, each takes what it needs of it. */
void rig_input(const uint8_t *data, size_t size, int steps,
	       void (*step)(struct fuzz_rig *r, struct fuzz_in *in));

#endif
