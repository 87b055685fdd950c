/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The firmware commands that create the objects of DOCA GPUNetIO open: completion queues, queue
 * pairs with their transitions, shared receive queues; and their umems and UARs. The table of an
 * object has every field of its command, as a function of the attributes that the caller gave.
 * If no other source is named, fields and values are those of mlx5_ifc.h of Linux 6.12 and of
 * DPDK 22.11 (drivers/common/mlx5/mlx5_devx_cmds.c). test_doca_boxes.c has the objects of
 * Ethernet queues.
 */
#include <endian.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../qp/verbs/qp.h"
#include "doca_gpunetio_host.h"
#include "host/gdaki.h"
#include "../lib/nic.h"
#include "box_rig.h"

#define MEM_BYTES   (1u << 18)
#define RING_AT	    8192u
#define DBREC_AT    64u
#define LOCAL_WRITE 1u /* IBV_ACCESS_LOCAL_WRITE */
#define A(name)	    DOCA_VERBS_QP_ATTR_##name
#define OK(call)    cr_assert_eq(call, DOCA_SUCCESS, "line %d: %s", __LINE__, #call)

static struct nic nic;
static uint32_t pdn, eqn;
static uint8_t *mem;
static doca_verbs_umem_t *umem;
static doca_verbs_uar_t *uar;
static doca_verbs_cq_t *send_cq, *receive_cq;

static doca_verbs_cq_t *cq_of(uint32_t size)
{
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;

	OK(doca_verbs_cq_attr_create(&attr));
	OK(doca_verbs_cq_attr_set_cq_size(attr, size));
	OK(doca_verbs_cq_create(nic.dev, attr, &cq));
	OK(doca_verbs_cq_attr_destroy(attr));
	return cq;
}

static void open_all(void)
{
	struct mlx5dv_pd pd = { 0 };
	struct mlx5dv_obj obj = { 0 };

	nic = nic_open();
	obj.pd.in = nic.pd;
	obj.pd.out = &pd;
	cr_assert(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD));
	pdn = pd.pdn;
	cr_assert(!mlx5dv_devx_query_eqn(nic.ctx, 0, &eqn));
	cr_assert(mem = aligned_alloc(4096, MEM_BYTES));
	memset(mem, 0, MEM_BYTES);
	OK(doca_verbs_umem_create(nic.dev, NULL, mem, MEM_BYTES, LOCAL_WRITE, -1, 0, &umem));
	OK(doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, &uar));
	send_cq = cq_of(64);
	receive_cq = cq_of(128);
	box_clear();
}

/* Criterion does not count assertions of a teardown. */
static void close_all(void)
{
	if (doca_verbs_cq_destroy(send_cq) || doca_verbs_cq_destroy(receive_cq) ||
	    doca_verbs_uar_destroy(uar) || doca_verbs_umem_destroy(umem) ||
	    doca_verbs_dev_close(nic.dev))
		abort();
	free(mem);
	ibv_dealloc_pd(nic.pd);
	ibv_close_device(nic.ctx);
}

TestSuite(boxes, .init = open_all, .fini = close_all);

static size_t pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* ---- umems and UARs ---- */

Test(boxes, umem)
{
	doca_verbs_umem_t *u;

	OK(doca_verbs_umem_create(nic.dev, NULL, mem + 4096, 8192, IBV_ACCESS_REMOTE_READ, -1, 0,
				  &u));
	UMEM(mem + 4096, 8192, 4, false);
	OK(doca_verbs_umem_destroy(u));
	/* 0 is no dmabuf, so the registration is refused. */
	cr_expect_neq(doca_verbs_umem_create(nic.dev, NULL, mem, 4096, LOCAL_WRITE, 0, 12288, &u),
		      DOCA_SUCCESS);
	UMEM((void *)12288, 4096, LOCAL_WRITE, true);
	cr_expect_eq(boxes.umem[1].dmabuf_fd, 0);
}

/* Flags and first choice of UARs of an object that gets none from the caller. */
Test(boxes, uar)
{
	doca_verbs_uar_t *u;
	uint32_t id;

	OK(doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &u));
	OK(doca_verbs_uar_id_get(u, &id));
	cr_expect_eq(id, u->devx->page_id);
	OK(doca_verbs_uar_destroy(u));
	(void)doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, &u);
	OK(doca_verbs_uar_destroy(u));
	box_refused_uars = 1u << 2;
	cr_expect_neq(doca_verbs_uar_create(nic.dev,
					    DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED, &u),
		      DOCA_SUCCESS);
	UARS(UAR_NC, UAR_BF, UAR_DEDICATED);
}

static void hl_uars(doca_gpu_t *gpu, enum doca_gpu_dev_verbs_nic_handler handler, uint32_t refused)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .gpu_dev = gpu,
						       .net_dev = nic.dev,
						       .sq_nwqe = 64,
						       .nic_handler = handler };
	struct doca_gpu_verbs_qp_hl *hl;

	box_clear();
	box_refused_uars = refused;
	OK(doca_gpu_verbs_create_qp_hl(&attr, &hl));
	OK(doca_gpu_verbs_destroy_qp_hl(hl));
}

/* A BlueFlame register is only used for its handler, or if there is no other kind. */
Test(boxes, uars_of_high_level_qps)
{
	doca_gpu_t *gpu;

	OK(doca_gpu_create("host", &gpu));
	hl_uars(gpu, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF, 0);
	UARS(UAR_BF);
	hl_uars(gpu, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB, 0);
	UARS(UAR_DEDICATED);
	hl_uars(gpu, DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY, 1u << 2 | 1u << UAR_NC);
	UARS(UAR_DEDICATED, UAR_NC, UAR_BF);
	OK(doca_gpu_destroy(gpu));
}

/* ---- completion queues ---- */

/* Expects the last CREATE_CQ. The entry size is 0: 64 bytes. */
static void expect_cq(const doca_verbs_cq_t *cq, uint32_t log_size, uint64_t cc, uint64_t oi,
		      uint32_t uar_id, uint64_t ring_at)
{
	BOX(0x400, 0x110, F(0, PRM_CREATE_CQ_UMEM_OFFSET, ring_at),
	    F(0, PRM_CREATE_CQ_UMEM_ID, cq->umem->devx->umem_id), F(0, PRM_CREATE_CQ_UMEM_VALID, 1),
	    F(0x10, PRM_CQC_CC, cc), F(0x10, PRM_CQC_OI, oi),
	    F(0x10, PRM_CQC_LOG_CQ_SIZE, log_size), F(0x10, PRM_CQC_UAR_PAGE, uar_id),
	    F(0x10, PRM_CQC_C_EQN, eqn), F(0x10, PRM_CQC_DBR_UMEM_VALID, 1),
	    F(0x10, PRM_CQC_DBR_UMEM_ID, cq->umem->devx->umem_id),
	    /* The DBREC is behind the entries. */
	    F(0x10, PRM_CQC_DBR_ADDR, ring_at + (64ull << log_size)));
}

Test(boxes, cq_with_memory_of_the_library)
{
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;

	OK(doca_verbs_cq_attr_create(&attr));
	OK(doca_verbs_cq_attr_set_cq_size(attr, 33));
	OK(doca_verbs_cq_attr_set_cq_collapsed(attr, 1));
	OK(doca_verbs_cq_create(nic.dev, attr, &cq));
	expect_cq(cq, 6, 1, 0, cq->uar->devx->page_id, 0);
	UMEM(cq->buf, pages(64 * 64 + 8), LOCAL_WRITE, false);
	UARS(UAR_NC);
	OK(doca_verbs_cq_destroy(cq));
	box_clear();
	box_refused_uars = 1u << UAR_NC;
	OK(doca_verbs_cq_create(nic.dev, attr, &cq));
	UARS(UAR_NC, UAR_BF);
	OK(doca_verbs_cq_destroy(cq));
	OK(doca_verbs_cq_attr_destroy(attr));
}

Test(boxes, cq_with_memory_and_uar_of_the_caller)
{
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;

	OK(doca_verbs_cq_attr_create(&attr));
	OK(doca_verbs_cq_attr_set_cq_size(attr, 2048));
	OK(doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN));
	OK(doca_verbs_cq_attr_set_external_umem(attr, umem, RING_AT));
	OK(doca_verbs_cq_attr_set_external_uar(attr, uar));
	OK(doca_verbs_cq_attr_set_cq_context(attr, &nic));
	OK(doca_verbs_cq_create(nic.dev, attr, &cq));
	OK(doca_verbs_cq_attr_destroy(attr));
	expect_cq(cq, 11, 0, 1, uar->devx->page_id, RING_AT);
	cr_expect_eq(cq->umem, umem);
	cr_expect_eq(cq->context, &nic);
	cr_expect(!boxes.num_umems && !boxes.num_uars);
	OK(doca_verbs_cq_destroy(cq));
}

/* ---- shared receive queues ---- */

static struct doca_verbs_srq *srq_of(uint32_t wr, uint32_t sges, enum doca_verbs_srq_type type,
				     doca_verbs_umem_t *in)
{
	struct doca_verbs_srq_init_attr *attr;
	struct doca_verbs_srq *srq;
	doca_verbs_umem_t *got;
	uint64_t offset;

	OK(doca_verbs_srq_init_attr_create(&attr));
	OK(doca_verbs_srq_init_attr_set_pd(attr, nic.pd));
	OK(doca_verbs_srq_init_attr_set_srq_wr(attr, wr));
	OK(doca_verbs_srq_init_attr_set_receive_max_sges(attr, sges));
	OK(doca_verbs_srq_init_attr_set_type(attr, type));
	OK(doca_verbs_srq_init_attr_set_external_umem(attr, in, RING_AT));
	cr_expect_eq(doca_verbs_srq_init_attr_get_pd(attr), nic.pd);
	cr_expect_eq(doca_verbs_srq_init_attr_get_srq_wr(attr), wr);
	cr_expect_eq(doca_verbs_srq_init_attr_get_receive_max_sges(attr), sges);
	cr_expect_eq(doca_verbs_srq_init_attr_get_type(attr), type);
	OK(doca_verbs_srq_init_attr_get_external_umem(attr, &got, &offset));
	cr_expect(got == in && offset == RING_AT);
	OK(doca_verbs_srq_create(nic.ctx, attr, &srq));
	OK(doca_verbs_srq_init_attr_destroy(attr));
	return srq;
}

/* Expects the last CREATE_RMP, and that queries return the place of the queue. */
static void expect_srq(struct doca_verbs_srq *srq, bool cyclic, uint32_t log_num,
		       uint32_t log_stride, uint32_t umem_id, uint8_t *start, uint64_t ring_at)
{
	const uint64_t dbrec_at = ring_at + (1ull << (log_num + log_stride));
	uint32_t num, stride;
	void *buf;

	BOX(0x90c, 0x110, F(0x20, PRM_RMPC_STATE, 1 /* ready */),
	    F(0x20, PRM_RMPC_BASIC_CYCLIC_RCV_WQE, cyclic), F(0x50, PRM_WQ_TYPE, cyclic),
	    F(0x50, PRM_WQ_END_PADDING_MODE, 1 /* to a cache line */), F(0x50, PRM_WQ_PD, pdn),
	    F(0x50, PRM_WQ_LOG_STRIDE, log_stride), F(0x50, PRM_WQ_LOG_SZ, log_num),
	    F(0x50, PRM_WQ_UMEM_VALID, 1), F(0x50, PRM_WQ_UMEM_ID, umem_id),
	    F(0x50, PRM_WQ_UMEM_OFFSET, ring_at), F(0x50, PRM_WQ_DBR_UMEM_VALID, 1),
	    F(0x50, PRM_WQ_DBR_UMEM_ID, umem_id), F(0x50, PRM_WQ_DBR_ADDR, dbrec_at));
	doca_verbs_srq_get_wq(srq, &buf, &num, &stride);
	cr_expect_eq(buf, start + ring_at);
	cr_expect(num == 1u << log_num && stride == 1u << log_stride);
	cr_expect_eq(doca_verbs_srq_get_dbr_addr(srq), start + dbrec_at);
}

Test(boxes, srq)
{
	struct doca_verbs_srq *srq;

	srq = srq_of(20, 1, DOCA_VERBS_SRQ_TYPE_LINKED_LIST, NULL);
	expect_srq(srq, false, 5, 5, srq->own_devx->umem_id, srq->own_mem, 0);
	UMEM(srq->own_mem, pages(32 * 32 + 8), LOCAL_WRITE, false);
	OK(doca_verbs_srq_destroy(srq));
	box_clear();
	srq = srq_of(100, 4, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS, umem);
	expect_srq(srq, true, 7, 6, umem->devx->umem_id, mem, RING_AT);
	cr_expect_eq(boxes.num_umems, 0);
	OK(doca_verbs_srq_destroy(srq));
}

/* ---- queue pairs ---- */

/* Attributes and what follows from them. RQ types: 0 own queue, 1 SRQ, 3 none. */
static const struct kind {
	const char *name;
	uint32_t sq_wr, sges, inline_bytes, rq_wr, rq_sges;
	bool srq, uc, no_dbr, cqe_inline, copy_engine, external;
	uint8_t master;
	uint32_t user_index;
	/* expected */
	uint32_t log_sq, rq_type, log_rq, log_stride, ring_bytes;
} kinds[] = {
	{ "both queues", 60, 1, 0, 100, 1, .master = 1, .user_index = 0xabcdef, .log_sq = 6,
	  .log_rq = 7, .ring_bytes = 64 * 64 + 128 * 16 },
	{ "send queue, long WQEs", 64, 3, 200, 0, 0, .user_index = 0x10, .log_sq = 8, .rq_type = 3,
	  .ring_bytes = 256 * 64 },
	{ "no DBREC", 16, 1, 0, 0, 0, .no_dbr = true, .log_sq = 4, .rq_type = 3,
	  .ring_bytes = 16 * 64 },
	{ "receive queue, long WQEs", 0, 0, 0, 16, 3, .log_rq = 4, .log_stride = 2,
	  .ring_bytes = 16 * 64 },
	{ "SRQ", 16, 1, 0, 7, 1, .srq = true, .log_sq = 4, .rq_type = 1, .ring_bytes = 16 * 64 },
	{ "UC, data in CQEs", 16, 1, 0, 4, 1, .uc = true, .cqe_inline = true, .log_sq = 4,
	  .log_rq = 2, .ring_bytes = 16 * 64 + 4 * 16 },
	{ "copy engine", 16, 1, 0, 0, 0, .copy_engine = true, .log_sq = 4, .rq_type = 3,
	  .ring_bytes = 16 * 64 },
	{ "memory and UAR of the caller", 128, 1, 0, 64, 2, .external = true, .log_sq = 7,
	  .log_rq = 6, .log_stride = 1 },
};

static doca_verbs_qp_t *qp_of(const struct kind *k, struct doca_verbs_srq *srq)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_t *qp;

	OK(doca_verbs_qp_init_attr_create(&init));
	OK(doca_verbs_qp_init_attr_set_send_cq(init, send_cq));
	OK(doca_verbs_qp_init_attr_set_receive_cq(init, receive_cq));
	OK(doca_verbs_qp_init_attr_set_qp_type(init, k->uc ? DOCA_VERBS_QP_TYPE_UC
							   : DOCA_VERBS_QP_TYPE_RC));
	OK(doca_verbs_qp_init_attr_set_sq_wr(init, k->sq_wr));
	OK(doca_verbs_qp_init_attr_set_rq_wr(init, k->rq_wr));
	OK(doca_verbs_qp_init_attr_set_send_max_sges(init, k->sges));
	OK(doca_verbs_qp_init_attr_set_receive_max_sges(init, k->rq_sges));
	OK(doca_verbs_qp_init_attr_set_max_inline_data(init, k->inline_bytes));
	OK(doca_verbs_qp_init_attr_set_user_index(init, k->user_index));
	OK(doca_verbs_qp_init_attr_set_core_direct_master(init, k->master));
	OK(doca_verbs_qp_init_attr_set_cqe_inline(init, k->cqe_inline));
	OK(gdk_verbs_qp_init_attr_set_copy_engine(init, k->copy_engine));
	if (k->srq)
		OK(doca_verbs_qp_init_attr_set_srq(init, srq));
	if (k->no_dbr)
		OK(doca_verbs_qp_init_attr_set_send_dbr_mode(
			init, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT));
	if (k->external) {
		OK(doca_verbs_qp_init_attr_set_external_umem(init, umem, RING_AT));
		OK(doca_verbs_qp_init_attr_set_external_umem_dbr(init, umem, DBREC_AT));
		OK(doca_verbs_qp_init_attr_set_external_uar(init, uar));
	}
	OK(doca_verbs_qp_create(nic.dev, init, &qp));
	OK(doca_verbs_qp_init_attr_destroy(init));
	return qp;
}

/* The QPC begins at byte 0x18, its extension at byte 0x110. */
static void expect_qp(const struct kind *k, const doca_verbs_qp_t *qp, uint32_t srqn)
{
	const uint32_t umem_id = qp->umem->devx->umem_id;
	const bool ext = k->copy_engine && nic.dev->caps.copy_engine == GDK_COPY_PERMITTED;
	const bool has_rq = k->srq || k->rq_wr;

	BOX(0x500, ext ? 0x1d0 : 0x110, F(0, PRM_CREATE_QP_QPC_EXT, ext),
	    F(0x110, PRM_QPC_EXT_MMO, ext), F(0, PRM_CREATE_QP_WQ_UMEM_ID, umem_id),
	    F(0, PRM_CREATE_QP_WQ_UMEM_VALID, 1),
	    F(0, PRM_CREATE_QP_WQ_UMEM_OFFSET, k->external ? RING_AT : 0),
	    F(0x18, PRM_QPC_ST, k->uc), F(0x18, PRM_QPC_PM_STATE, 3 /* migrated */),
	    F(0x18, PRM_QPC_PD, pdn), F(0x18, PRM_QPC_LOG_RQ_SIZE, k->log_rq),
	    F(0x18, PRM_QPC_LOG_RQ_STRIDE, k->log_stride), F(0x18, PRM_QPC_NO_SQ, !k->sq_wr),
	    F(0x18, PRM_QPC_LOG_SQ_SIZE, k->log_sq),
	    F(0x18, PRM_QPC_TS_FORMAT, 0 /* free running */),
	    F(0x18, PRM_QPC_UAR_PAGE, qp->uar->devx->page_id),
	    /* 1: NO_DBR_EXT of DOCA GPUNetIO open 3.0 */
	    F(0x18, PRM_QPC_SEND_DBR_MODE, k->no_dbr), F(0x18, PRM_QPC_USER_INDEX, k->user_index),
	    F(0x18, PRM_QPC_CQN_SND, k->sq_wr ? send_cq->cqn : 0),
	    F(0x18, PRM_QPC_CD_MASTER, k->master),
	    F(0x18, PRM_QPC_CQN_RCV, has_rq ? receive_cq->cqn : 0),
	    F(0x18, PRM_QPC_DBR_ADDR, k->external ? DBREC_AT : (k->ring_bytes + 63) / 64 * 64),
	    F(0x18, PRM_QPC_RQ_TYPE, k->rq_type), F(0x18, PRM_QPC_SRQN_RMPN_XRQN, srqn),
	    F(0x18, PRM_QPC_CS_RES, k->cqe_inline), F(0x18, PRM_QPC_DBR_UMEM_VALID, 1),
	    F(0x18, PRM_QPC_DBR_UMEM_ID, umem_id));
}

Test(boxes, qp)
{
	struct doca_verbs_srq *srq = srq_of(8, 1, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS, NULL);
	doca_verbs_qp_t *qp;
	const struct kind *k;

	cr_assert(nic.dev->caps.cd && nic.dev->caps.cqe_inline && nic.dev->caps.copy_engine);
	for (k = kinds; k < kinds + GDK_ARRAY_SIZE(kinds); k++) {
		if (k->no_dbr && !nic.dev->caps.send_dbr_mode_no_dbr_ext)
			continue;
		fprintf(stderr, "QP: %s\n", k->name);
		box_clear();
		qp = qp_of(k, srq);
		expect_qp(k, qp, k->srq ? srq->srqn : 0);
		cr_expect_eq(boxes.num_umems + boxes.num_uars, k->external ? 0 : 2);
		if (!k->external)
			UMEM(qp->own_mem, pages((k->ring_bytes + 63) / 64 * 64 + 8), LOCAL_WRITE,
			     false);
		cr_expect(k->external ? qp->umem == umem && qp->uar == uar : !boxes.uar[0]);
		OK(doca_verbs_qp_destroy(qp));
	}
	box_clear();
	box_refused_uars = 1u << UAR_BF;
	qp = qp_of(&kinds[0], NULL);
	UARS(UAR_BF, UAR_NC);
	OK(doca_verbs_qp_destroy(qp));
	OK(doca_verbs_srq_destroy(srq));
}

/* ---- transitions ---- */

/* The QPC begins at byte 0x18, its address path at byte 0x30. */
static void move(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr, enum doca_verbs_qp_state to,
		 int mask)
{
	OK(doca_verbs_qp_attr_set_next_state(attr, to));
	OK(doca_verbs_qp_modify(qp, attr, mask | A(NEXT_STATE)));
}

static void set_rights(doca_verbs_qp_attr_t *attr)
{
	OK(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	OK(doca_verbs_qp_attr_set_allow_remote_read(attr, 1));
	OK(doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC));
}

static void set_numbers(doca_verbs_qp_attr_t *attr)
{
	OK(doca_verbs_qp_attr_set_pkey_index(attr, 0));
	OK(doca_verbs_qp_attr_set_port_num(attr, 1));
	OK(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES));
	OK(doca_verbs_qp_attr_set_rq_psn(attr, 0x123456));
	OK(doca_verbs_qp_attr_set_sq_psn(attr, 0xabcdef));
	OK(doca_verbs_qp_attr_set_dest_qp_num(attr, 0xfedcba));
	OK(doca_verbs_qp_attr_set_min_rnr_timer(attr, 0x15));
	OK(doca_verbs_qp_attr_set_max_dest_rd_atomic(attr, 16));
	OK(doca_verbs_qp_attr_set_max_rd_atomic(attr, 8));
	OK(doca_verbs_qp_attr_set_ack_timeout(attr, 0x13));
	OK(doca_verbs_qp_attr_set_retry_cnt(attr, 5));
	OK(doca_verbs_qp_attr_set_rnr_retry(attr, 6));
	OK(gdk_verbs_qp_attr_set_log_ack_req_freq(attr, 3));
}

/* A path to the NIC itself, with a RoCE v2 GID. */
static union ibv_gid set_path(doca_verbs_qp_attr_t *attr, uint8_t *sgid_index)
{
	doca_verbs_ah_attr_t *ah;
	struct doca_verbs_gid to;
	struct ibv_gid_entry e;
	uint32_t i = 0;

	while (ibv_query_gid_ex(nic.ctx, 1, i, &e, 0) || e.gid_type != IBV_GID_TYPE_ROCE_V2 ||
	       e.gid.raw[0] == 0xfe)
		cr_assert_lt(++i, 32);
	*sgid_index = (uint8_t)i;
	memcpy(to.raw, e.gid.raw, sizeof(to.raw));
	OK(doca_verbs_ah_attr_create(nic.dev, &ah));
	OK(doca_verbs_ah_attr_set_gid(ah, to));
	OK(doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4));
	OK(doca_verbs_ah_attr_set_sl(ah, 5));
	OK(doca_verbs_ah_attr_set_sgid_index(ah, *sgid_index));
	OK(doca_verbs_ah_attr_set_static_rate(ah, 7));
	OK(doca_verbs_ah_attr_set_hop_limit(ah, 9));
	OK(doca_verbs_ah_attr_set_traffic_class(ah, 0xa4));
	OK(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	OK(doca_verbs_ah_attr_destroy(ah));
	return e.gid;
}

#define RGID(n) PRM(PRM_ADS_RGID_AT + 4 * (n), 31, 0)

static uint32_t gid_word(const union ibv_gid *gid, size_t i)
{
	uint32_t word;

	memcpy(&word, gid->raw + 4 * i, sizeof(word));
	return be32toh(word);
}

/* opt_param_mask: MLX5_QP_OPTPAR_* of linux/mlx5/qp.h. */
static void expect_rtr(const doca_verbs_qp_t *qp, const union ibv_gid *gid, uint8_t sgid_index)
{
	const uint8_t *got = boxes.box[boxes.num_boxes - 1].in;
	const uint64_t mac = prm_get(got + 0x30, PRM_ADS_RMAC_31_0);

	cr_expect_neq(mac, 0); /* that of the kernel */
	BOX(0x503, 0x110, F(0, PRM_MODIFY_QP_QPN, qp->qpn), F(0x18, PRM_QPC_MTU, 3),
	    F(0x18, PRM_QPC_LOG_MSG_MAX, 30), F(0x18, PRM_QPC_REMOTE_QPN, 0xfedcba),
	    F(0x18, PRM_QPC_LOG_RRA_MAX, 4), F(0x18, PRM_QPC_MIN_RNR_NAK, 0x15),
	    F(0x18, PRM_QPC_NEXT_RCV_PSN, 0x123456), F(0x30, PRM_ADS_SRC_ADDR_INDEX, sgid_index),
	    F(0x30, PRM_ADS_STAT_RATE, 7), F(0x30, PRM_ADS_HOP_LIMIT, 9),
	    F(0x30, PRM_ADS_TCLASS, 0xa4), F(0x30, RGID(0), gid_word(gid, 0)),
	    F(0x30, RGID(1), gid_word(gid, 1)), F(0x30, RGID(2), gid_word(gid, 2)),
	    F(0x30, RGID(3), gid_word(gid, 3)), F(0x30, PRM_ADS_DSCP, 0xa4 >> 2),
	    /* a hash of 14 bits, see path.c */
	    F(0x30, PRM_ADS_UDP_SPORT, gdk_path_udp_sport(qp->qpn, 0xfedcba, gid->raw, gid->raw)),
	    F(0x30, PRM_ADS_ETH_PRIO, 5),
	    F(0x30, PRM_ADS_RMAC_47_32, prm_get(got + 0x30, PRM_ADS_RMAC_47_32)),
	    F(0x30, PRM_ADS_RMAC_31_0, mac));
}

Test(boxes, transitions)
{
	doca_verbs_qp_t *qp = qp_of(&kinds[0], NULL);
	doca_verbs_qp_attr_t *attr;
	union ibv_gid gid;
	uint8_t sgid_index;
	enum doca_verbs_qp_state state;
	uint8_t out[PRM_QUERY_QP_OUT_LEN];

	OK(doca_verbs_qp_attr_create(&attr));
	set_rights(attr);
	set_numbers(attr);
	gid = set_path(attr, &sgid_index);
	move(qp, attr, DOCA_VERBS_QP_STATE_INIT,
	     A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ) |
		     A(ATOMIC_MODE));
	BOX(0x502, 0x110, F(0, PRM_MODIFY_QP_QPN, qp->qpn),
	    F(0x18, PRM_QPC_PM_STATE, 3 /* migrated */), F(0x18, PRM_QPC_ATOMIC_MODE, 1),
	    F(0x18, PRM_QPC_RRE, 1), F(0x18, PRM_QPC_RWE, 1), F(0x18, PRM_QPC_RAE, 1),
	    F(0x30, PRM_ADS_VHCA_PORT_NUM, 1));
	move(qp, attr, DOCA_VERBS_QP_STATE_INIT, A(ALLOW_REMOTE_READ) | A(PORT_NUM));
	BOX(0x50e, 0x110, F(0, PRM_MODIFY_QP_QPN, qp->qpn),
	    F(0, PRM_MODIFY_QP_OPT_PARAM_MASK, 1 << 1 /* RRE */ | 1 << 16 /* PRI_PORT */),
	    F(0x18, PRM_QPC_RRE, 1), F(0x30, PRM_ADS_VHCA_PORT_NUM, 1));
	move(qp, attr, DOCA_VERBS_QP_STATE_RTR,
	     A(AH_ATTR) | A(PATH_MTU) | A(DEST_QP_NUM) | A(RQ_PSN) | A(MIN_RNR_TIMER) |
		     A(MAX_DEST_RD_ATOMIC));
	expect_rtr(qp, &gid, sgid_index);
	move(qp, attr, DOCA_VERBS_QP_STATE_RTS,
	     A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC) |
		     A(MIN_RNR_TIMER) | GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ);
	BOX(0x504, 0x110, F(0, PRM_MODIFY_QP_QPN, qp->qpn),
	    F(0, PRM_MODIFY_QP_OPT_PARAM_MASK, 1 << 6 /* RNR_TIMEOUT */),
	    F(0x18, PRM_QPC_LOG_ACK_REQ_FREQ, 3), F(0x18, PRM_QPC_LOG_SRA_MAX, 3),
	    F(0x18, PRM_QPC_RETRY_COUNT, 5), F(0x18, PRM_QPC_RNR_RETRY, 6),
	    F(0x18, PRM_QPC_NEXT_SEND_PSN, 0xabcdef), F(0x18, PRM_QPC_MIN_RNR_NAK, 0x15),
	    F(0x30, PRM_ADS_ACK_TIMEOUT, 0x13));
	move(qp, attr, DOCA_VERBS_QP_STATE_RTS, A(ALLOW_REMOTE_WRITE) | A(ATOMIC_MODE));
	BOX(0x505, 0x110, F(0, PRM_MODIFY_QP_QPN, qp->qpn),
	    F(0, PRM_MODIFY_QP_OPT_PARAM_MASK, 1 << 3 /* RWE */ | 1 << 2 /* RAE */),
	    F(0x18, PRM_QPC_ATOMIC_MODE, 1), F(0x18, PRM_QPC_RWE, 1), F(0x18, PRM_QPC_RAE, 1));
	OK(gdk_qp_query_state(qp, out, &state));
	BOX(0x50b, 0x10, F(0, PRM_CMD_OBJECT, qp->qpn));
	move(qp, attr, DOCA_VERBS_QP_STATE_ERR, 0);
	BOX(0x507, 0x10, F(0, PRM_MODIFY_QP_QPN, qp->qpn));
	move(qp, attr, DOCA_VERBS_QP_STATE_RST, 0);
	BOX(0x50a, 0x10, F(0, PRM_MODIFY_QP_QPN, qp->qpn));
	OK(doca_verbs_qp_attr_destroy(attr));
	OK(doca_verbs_qp_destroy(qp));
}
