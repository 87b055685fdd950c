/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host part that the drivers of other projects' kernels share, for C and C++: a
 * GPU ("host" or a PCI address), a NIC, memory with addresses for both CPU and GPU,
 * and connections within this process. A failed check prints the condition and ends
 * the program.
 */
#ifndef CONSUMERS_RIG_H
#define CONSUMERS_RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doca_gpunetio_host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RIG_MUST(cond) \
	do { \
		if (!(cond)) \
			rig_die(__FILE__, __LINE__, #cond); \
	} while (0)

__attribute__((noreturn)) void rig_die(const char *file, int line, const char *what);

struct rig {
	const char *gpu_name;
	enum doca_gpu_dev_verbs_nic_handler handler;
	unsigned int rounds;
	doca_gpu_t *gpu;
	doca_dev_t *dev;
	struct ibv_pd *pd;
	void *nic; /* struct e2e_nic */
};

/* Parses the options -g GPU, -p HANDLER and -n ROUNDS, and opens the GPU and the NIC. */
void rig_open(struct rig *r, int argc, char **argv);
void rig_close(struct rig *r);

/* Zeroed host memory that the GPU can address. */
struct rig_mem {
	uint8_t *cpu, *gpu;
	size_t len;
	struct ibv_mr *mr;
	uint32_t lkey_be, rkey_be;
};

/* Allocates and registers memory. In WQEs, the address of byte 0 is 0 (zero_based) or the
 * GPU's address. */
void rig_mem_open(struct rig *r, struct rig_mem *m, size_t len, bool zero_based);
void rig_mem_close(struct rig *r, struct rig_mem *m);

/* Moves both QPs from RST to RTS, connected to each other. */
void rig_connect(struct rig *r, doca_verbs_qp_t *a, doca_verbs_qp_t *b);

/* Byte i of the pattern `seed`. */
uint8_t rig_pattern(uint64_t i, uint32_t seed);

/* Waits up to 20 s until *word == want; returns whether it is. */
bool rig_becomes(const volatile uint64_t *word, uint64_t want);

#ifdef __cplusplus
}
#endif

#endif
