/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The life of many queue pairs while a kernel runs; spin_life.h describes it. */
#include "spin_life.h"

#include <string.h>
#include <unistd.h>

#include "../../core/gpu/gpu.h"

#define DEPTH	 64u
#define CQ_BYTES 8192u
#define BYTES	 65536u

struct by_hand {
	doca_verbs_uar_t *uar;
	void *ring, *cqes, *dbr;
	doca_verbs_umem_t *ring_umem, *cq_umem, *dbr_umem;
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *qp;
	struct doca_gpu_verbs_qp *exported;
};

struct memory {
	void *gpu, *cpu;
	struct ibv_mr *mr;
	enum doca_gpu_mem_type type;
};

struct life {
	bool is_by_hand;
	struct e2e_qp hl;
	struct by_hand hand;
	struct memory mem[2];
};

static const struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
static spin_step_fn step;
static unsigned int at;

#define STEP(call) (step(#call, at), (call))

/* ---- memory ---- */

static void memory_open(struct e2e_nic *nic, struct memory *m, enum doca_gpu_mem_type type)
{
	void *nic_addr;
	int fd = -1;

	m->type = type;
	E2E_REQUIRE(!STEP(doca_gpu_mem_alloc(nic->gpu, BYTES, 4096, type, &m->gpu, &m->cpu)));
	nic_addr = type == DOCA_GPU_MEM_TYPE_CPU_GPU ? m->cpu : m->gpu;
	if (type == DOCA_GPU_MEM_TYPE_GPU && !STEP(gdk_gpu_dmabuf_fd(nic->gpu, m->gpu, BYTES, &fd)))
		m->mr = STEP(
			ibv_reg_dmabuf_mr(nic->pd, 0, BYTES, (uintptr_t)m->gpu, fd, E2E_REMOTE));
	if (fd >= 0)
		close(fd);
	if (!m->mr)
		m->mr = STEP(ibv_reg_mr(nic->pd, nic_addr, BYTES, E2E_REMOTE));
	E2E_REQUIRE(m->mr);
}

static void memory_close(struct e2e_nic *nic, struct memory *m)
{
	E2E_REQUIRE(!STEP(ibv_dereg_mr(m->mr)));
	E2E_REQUIRE(!STEP(doca_gpu_mem_free(nic->gpu, m->gpu)));
	m->mr = NULL;
}

/* ---- a QP made by hand, with rings and a UAR of its own, as NIXL does ---- */

static void piece_open(struct e2e_nic *nic, size_t bytes, void **mem, doca_verbs_umem_t **umem)
{
	E2E_REQUIRE(
		!STEP(doca_gpu_mem_alloc(nic->gpu, bytes, 4096, DOCA_GPU_MEM_TYPE_GPU, mem, NULL)));
	E2E_REQUIRE(!STEP(gdk_gpu_fill(nic->gpu, *mem, 0, bytes)));
	E2E_REQUIRE(!STEP(doca_verbs_umem_create(nic->dev, nic->gpu, *mem, bytes,
						 IBV_ACCESS_LOCAL_WRITE,
						 (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, umem)));
}

static void piece_close(struct e2e_nic *nic, void *mem, doca_verbs_umem_t *umem)
{
	E2E_REQUIRE(!STEP(doca_verbs_umem_destroy(umem)));
	E2E_REQUIRE(!STEP(doca_gpu_mem_free(nic->gpu, mem)));
}

static void hand_create(struct e2e_nic *nic, struct by_hand *h)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_cq_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_cq_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_cq_attr_set_cq_size(attr, DEPTH));
	E2E_REQUIRE(!doca_verbs_cq_attr_set_external_umem(attr, h->cq_umem, 0));
	E2E_REQUIRE(!doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN));
	E2E_REQUIRE(!STEP(doca_verbs_cq_create(nic->dev, attr, &h->cq)));
	E2E_REQUIRE(!doca_verbs_cq_attr_destroy(attr));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_create(&init));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_cq(init, h->cq));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_receive_cq(init, h->cq));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_sq_wr(init, DEPTH));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_max_sges(init, 1));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_external_umem(init, h->ring_umem, 0));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_external_umem_dbr(init, h->dbr_umem, 0));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_external_uar(init, h->uar));
	E2E_REQUIRE(!STEP(doca_verbs_qp_create(nic->dev, init, &h->qp)));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_destroy(init));
}

static void hand_open(struct e2e_nic *nic, struct by_hand *h)
{
	static const enum doca_verbs_uar_allocation_type types[] = {
		DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED,
		DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE,
	};
	struct doca_gpu_dev_verbs_qp *dev;
	uint32_t qpn;

	if (STEP(doca_verbs_uar_create(nic->dev, types[0], &h->uar)))
		E2E_REQUIRE(!STEP(doca_verbs_uar_create(nic->dev, types[1], &h->uar)));
	piece_open(nic, CQ_BYTES, &h->cqes, &h->cq_umem);
	piece_open(nic, DEPTH * 64, &h->ring, &h->ring_umem);
	piece_open(nic, 4096, &h->dbr, &h->dbr_umem);
	hand_create(nic, h);
	E2E_REQUIRE(!STEP(doca_gpu_verbs_export_qp(nic->gpu, h->qp, E2E_DB, h->ring, h->cq,
						   DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
						   &h->exported)));
	E2E_REQUIRE(!STEP(doca_gpu_verbs_get_qp_dev(h->exported, &dev)));
	E2E_REQUIRE(!doca_verbs_qp_get_qpn(h->qp, &qpn));
	E2E_REQUIRE(!STEP(e2e_connect(nic, h->qp, &nic->gid, qpn, path)));
}

static void hand_close(struct e2e_nic *nic, struct by_hand *h)
{
	E2E_REQUIRE(!STEP(doca_gpu_verbs_unexport_qp(nic->gpu, h->exported)));
	E2E_REQUIRE(!STEP(doca_verbs_qp_destroy(h->qp)));
	E2E_REQUIRE(!STEP(doca_verbs_cq_destroy(h->cq)));
	E2E_REQUIRE(!STEP(doca_verbs_uar_destroy(h->uar)));
	piece_close(nic, h->cqes, h->cq_umem);
	piece_close(nic, h->ring, h->ring_umem);
	piece_close(nic, h->dbr, h->dbr_umem);
}

/* ---- all ---- */

static void life_open(struct e2e_nic *nic, struct life *l)
{
	static const enum doca_gpu_dev_verbs_nic_handler handlers[] = { E2E_DB, E2E_BF, E2E_NO_DBR,
									E2E_PROXY };
	const enum doca_gpu_dev_verbs_nic_handler handler = handlers[at % 4];
	doca_error_t err;

	memset(l, 0, sizeof(*l));
	l->is_by_hand = at % 3 == 2;
	if (l->is_by_hand) {
		hand_open(nic, &l->hand);
	} else {
		err = STEP(e2e_qp_try(nic, &l->hl, handler, DEPTH, at % 2));
		if (err == DOCA_ERROR_NOT_SUPPORTED) /* for example without DBREC */
			err = STEP(e2e_qp_try(nic, &l->hl, E2E_DB, DEPTH, at % 2));
		E2E_REQUIRE(!err);
		E2E_REQUIRE(!STEP(e2e_connect(nic, l->hl.hl->qp, &nic->gid, l->hl.qpn, path)));
		STEP(e2e_qp_reset(&l->hl));
	}
	memory_open(nic, &l->mem[0], DOCA_GPU_MEM_TYPE_GPU);
	memory_open(nic, &l->mem[1], DOCA_GPU_MEM_TYPE_CPU_GPU);
}

static void life_close(struct e2e_nic *nic, struct life *l)
{
	memory_close(nic, &l->mem[0]);
	memory_close(nic, &l->mem[1]);
	if (l->is_by_hand)
		hand_close(nic, &l->hand);
	else
		STEP(e2e_qp_close(&l->hl));
}

void spin_life_run(struct e2e_nic *nic, spin_step_fn on_step)
{
	struct life *all = calloc(SPIN_LIFE_QPS, sizeof(*all));

	E2E_REQUIRE(all);
	step = on_step;
	for (int round = 0; round < 2; round++) {
		for (at = 0; at < SPIN_LIFE_QPS; at++)
			life_open(nic, &all[at]);
		for (at = 0; at < SPIN_LIFE_QPS; at++)
			life_close(nic, &all[at]);
	}
	free(all);
}
