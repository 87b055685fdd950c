/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Host code that the test programs of this folder share, which run kernels of other projects:
 * options, GPU, NIC, memory and connections. rig.h describes the functions.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/e2e.h"

#define RIG_ACCESS  (E2E_REMOTE | IBV_ACCESS_REMOTE_ATOMIC)
#define RIG_WAIT_NS 20000000000ull

void rig_die(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	exit(1);
}

void rig_open(struct rig *r, int argc, char **argv)
{
	struct e2e_nic *nic = calloc(1, sizeof(*nic));
	int c;

	RIG_MUST(nic);
	*r = (struct rig){ .gpu_name = "host", .rounds = 4, .nic = nic };
	while ((c = getopt(argc, argv, "g:p:n:")) != -1)
		switch (c) {
		case 'g':
			r->gpu_name = optarg;
			break;
		case 'p':
			r->handler = (enum doca_gpu_dev_verbs_nic_handler)atoi(optarg);
			break;
		case 'n':
			r->rounds = (unsigned int)atoi(optarg);
			break;
		default:
			exit(2);
		}
	e2e_open_on(nic, r->gpu_name);
	r->gpu = nic->gpu;
	r->dev = nic->dev;
	r->pd = nic->pd;
}

void rig_close(struct rig *r)
{
	e2e_close(r->nic);
	free(r->nic);
}

void rig_mem_open(struct rig *r, struct rig_mem *m, size_t len, bool zero_based)
{
	void *cpu, *gpu;

	m->len = (len + 4095) & ~(size_t)4095;
	RIG_MUST(!doca_gpu_mem_alloc(r->gpu, m->len, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &gpu, &cpu));
	memset(cpu, 0, m->len);
	m->cpu = cpu;
	m->gpu = gpu;
	m->mr = ibv_reg_mr_iova(r->pd, cpu, m->len, zero_based ? 0 : (uintptr_t)gpu, RIG_ACCESS);
	RIG_MUST(m->mr);
	m->lkey_be = htobe32(m->mr->lkey);
	m->rkey_be = htobe32(m->mr->rkey);
}

void rig_mem_close(struct rig *r, struct rig_mem *m)
{
	RIG_MUST(!ibv_dereg_mr(m->mr));
	RIG_MUST(!doca_gpu_mem_free(r->gpu, m->gpu));
}

void rig_connect(struct rig *r, doca_verbs_qp_t *a, doca_verbs_qp_t *b)
{
	const struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	struct e2e_nic *nic = r->nic;
	uint32_t a_qpn, b_qpn;

	RIG_MUST(!doca_verbs_qp_get_qpn(a, &a_qpn) && !doca_verbs_qp_get_qpn(b, &b_qpn));
	RIG_MUST(!e2e_connect(nic, a, &nic->gid, b_qpn, path));
	RIG_MUST(!e2e_connect(nic, b, &nic->gid, a_qpn, path));
}

uint8_t rig_pattern(uint64_t i, uint32_t seed)
{
	return e2e_pattern(i, seed);
}

bool rig_becomes(const volatile uint64_t *word, uint64_t want)
{
	const struct timespec nap = { 0, 100000 };
	const uint64_t end = e2e_now_ns() + RIG_WAIT_NS;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != want && e2e_now_ns() < end)
		nanosleep(&nap, NULL);
	return *word == want;
}
