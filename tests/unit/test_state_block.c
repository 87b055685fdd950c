/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf */
/*
 * What an export writes for threads: every byte of the state block and of the device struct of a
 * send queue, a receive queue and an SRQ, on the host GPU and on the stand-in CUDA GPU, for each
 * handler and each kind of memory. A wrong flag has no effect on CPU threads, but a GPU would fence
 * at the wrong scope. test_doca_boxes.c has the structs of Ethernet queues.
 */
#include "../lib/e2e.h"

#include <endian.h>
#include <string.h>

#include "../../qp/export/export.h"
#include "device/gdk/state.h"
#include "../lib/standin.h"

#define MODE(name)  DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name
#define IN_HOST	    DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST
#define IN_GPU	    DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU
#define DEPTH	    64u
#define RQ_NUM	    32u
#define BLOCK_BYTES (sizeof(struct gdk_qp_state) + DEPTH / GDK_WORD_SLOTS * sizeof(uint64_t))

/* The flags of a state block (core/include/device/gdk/state.h). */
#define SYS	   0x1u
#define COLLAPSED  0x2u
#define HOST_EXEC  0x4u
#define BLUEFLAME  0x8u
#define HOST_LOOKS 0x10u
#define RUNG_READ  0x20u
#define RECV	   0x40u

static struct e2e_nic nic;

struct row {
	enum doca_gpu_dev_verbs_nic_handler handler;
	enum doca_gpu_verbs_send_dbr_mode_ext mode;
	bool collapsed, on_host;
	uint32_t sq_flags, rq_flags; /* expected; rq_flags 0: no receive queue */
};

static void open_gpu(const char *gpu, const char *queue_mem)
{
	setenv("STANDIN_CUDA_IOMEM", "1", 1);
	setenv("GDAKI_QUEUE_MEM", queue_mem, 1);
	standin_cuda();
	e2e_open_on(&nic, gpu);
}

/* ---- comparison ---- */

static void expect_bytes(const char *what, const void *got, const void *want, size_t len)
{
	const uint32_t *g = got, *w = want;
	size_t i;

	for (i = 0; i < len / 4; i++)
		cr_expect_eq(g[i], w[i], "%s: word at byte %zu is 0x%x, expected 0x%x", what, i * 4,
			     g[i], w[i]);
}

/* Expects the device struct at `at` in GPU memory, and its new state block of `depth` slots. */
static void expect_queue(const char *what, const void *at, struct doca_gpu_dev_verbs_qp want,
			 uint32_t depth, uint32_t flags)
{
	uint64_t block[BLOCK_BYTES / 8] = { 0 }, image[BLOCK_BYTES / 8] = { 0 };
	struct gdk_qp_state *st = (struct gdk_qp_state *)image, *got = (void *)block;
	const size_t len = sizeof(*st) + depth / GDK_WORD_SLOTS * sizeof(uint64_t);
	struct doca_gpu_dev_verbs_qp dev;

	E2E_REQUIRE(!gdk_gpu_read(nic.gpu, &dev, at, sizeof(dev)));
	E2E_REQUIRE(!gdk_gpu_read(nic.gpu, block, dev.gdk_state, len));
	want.gdk_state = dev.gdk_state;
	want.sq_db = dev.sq_db;
	want.sq_wqe_num = (uint16_t)depth;
	want.sq_wqe_mask = (uint16_t)(depth - 1);
	expect_bytes(what, &dev, &want, sizeof(dev));
	st->flags = flags;
	st->depth = depth;
	st->wait_limit_ns = 60000000000;
	st->watch = got->watch;
	st->ring = (uintptr_t)want.sq_wqe_daddr;
	st->reg = (uintptr_t)want.sq_db;
	st->dbrec = (uintptr_t)want.sq_dbrec;
	st->cq_ring = (uintptr_t)want.cq_sq.cqe_daddr;
	st->cq_num = flags & COLLAPSED ? 1 : want.cq_sq.cqe_num;
	st->qpn8_be = want.sq_num_shift8_be;
	st->handler = want.nic_handler;
	st->error_wqe = st->error_ci = UINT64_MAX;
	image[sizeof(*st) / 8] = 1ull << 32; /* the token is parked at slot 0 */
	expect_bytes(what, block, image, len);
}

static struct doca_gpu_dev_verbs_cq cq_of(const doca_verbs_cq_t *cq, void *ring, void *dbrec,
					  uint32_t num, bool on_host, void *state)
{
	return (struct doca_gpu_dev_verbs_cq){
		.cqe_daddr = ring,
		.cq_num = cq->cqn,
		.cqe_num = num,
		.dbrec = dbrec,
		.cqe_mask = num - 1,
		.cqe_size = 64,
		.mem_type = on_host ? IN_HOST : IN_GPU,
		.gdk_state = state,
	};
}

static struct doca_gpu_dev_verbs_qp number_of(uint32_t qpn)
{
	return (struct doca_gpu_dev_verbs_qp){
		.sq_num = qpn,
		.sq_num_shift8 = qpn << 8,
		.sq_num_shift8_be = htobe32(qpn << 8),
	};
}

/* ---- queue pairs ---- */

/* The receive queue: its struct describes it as if it were a send queue, whose register is a word
 * that is not read. It is rung by GPU threads, whatever the handler of the queue pair is. */
static void expect_rq(const struct row *row, const struct doca_gpu_verbs_qp_hl *hl,
		      struct doca_gpu_dev_verbs_qp *sq, bool on_host)
{
	struct doca_gpu_dev_verbs_qp want = number_of(hl->qp->qpn);
	const doca_verbs_cq_t *cq = hl->qp->recv_cq;
	struct doca_gpu_dev_verbs_qp dev;

	E2E_REQUIRE(!gdk_gpu_read(nic.gpu, &dev, sq->gdk_rq, sizeof(dev)));
	want.sq_wqe_daddr = hl->qp_umem_gpu_ptr;
	want.sq_dbrec = hl->qp_umem_dbr_gpu_ptr;
	want.nic_handler = E2E_DB;
	want.mem_type = on_host ? IN_HOST : IN_GPU;
	want.cq_sq = cq_of(cq, cq->buf, cq->dbrec, RQ_NUM, on_host, dev.gdk_state);
	cr_expect_eq((uint8_t *)dev.sq_db,
		     (uint8_t *)sq->gdk_rq + offsetof(struct doca_gpu_dev_verbs_qp, reserved3));
	expect_queue("receive queue", sq->gdk_rq, want, RQ_NUM, row->rq_flags);
	sq->rq_wqe_daddr = hl->qp_umem_gpu_ptr;
	sq->rq_wqe_num = RQ_NUM;
	sq->rq_wqe_mask = RQ_NUM - 1;
	sq->gdk_rq_shift = 5; /* 2 segments of 16 bytes */
	sq->cq_rq = want.cq_sq;
}

static void expect_qp(const struct row *row, struct doca_gpu_verbs_qp_hl *hl, bool mem_on_host)
{
	struct doca_gpu_dev_verbs_qp want = number_of(hl->qp->qpn), dev, *at;
	const uint32_t n8 = hl->qp->qpn << 8;

	E2E_REQUIRE(!doca_gpu_verbs_get_qp_dev(hl->qp_gverbs, &at));
	E2E_REQUIRE(!gdk_gpu_read(nic.gpu, &dev, at, sizeof(dev)));
	want.sq_num_shift8_be_1ds = htobe32(n8 | 1);
	want.sq_num_shift8_be_2ds = htobe32(n8 | 2);
	want.sq_num_shift8_be_3ds = htobe32(n8 | 3);
	want.sq_num_shift8_be_4ds = htobe32(n8 | 4);
	want.sq_num_shift8_be_5ds = htobe32(n8 | 5);
	want.sq_wqe_daddr = (uint8_t *)hl->qp_umem_gpu_ptr + (row->rq_flags ? RQ_NUM * 32 : 0);
	want.sq_dbrec = (uint32_t *)hl->qp_umem_dbr_gpu_ptr + 1;
	want.cq_sq = cq_of(hl->cq_sq, hl->cq_sq_umem_gpu_ptr, hl->cq_sq->dbrec, DEPTH, mem_on_host,
			   dev.gdk_state);
	want.nic_handler = row->handler;
	want.mem_type = mem_on_host ? IN_HOST : IN_GPU;
	want.need_mcst = !gdk_gpu_is_host(nic.gpu); /* the stand-in is older than Hopper */
	if (row->rq_flags) {
		want.gdk_rq = dev.gdk_rq;
		expect_rq(row, hl, &want, mem_on_host);
	}
	expect_queue("send queue", at, want, DEPTH, row->sq_flags);
	cr_expect_eq(hl->qp_gverbs->cpu_proxy,
		     row->handler == E2E_PROXY || row->mode == MODE(NO_DBR_SW_EMULATED));
}

static void expect_rows(const struct row *rows, size_t n, bool mem_on_host)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = RQ_NUM, .receive_max_sges = 2 };
	struct doca_gpu_verbs_qp_hl *hl;
	const struct row *r;

	for (r = rows; r < rows + n; r++) {
		struct doca_gpu_verbs_qp_init_attr_hl attr = {
			.gpu_dev = nic.gpu,
			.net_dev = nic.dev,
			.sq_nwqe = DEPTH,
			.nic_handler = r->handler,
			.send_dbr_mode_ext = r->mode,
			.cq_collapsed = r->collapsed,
		};
		const uint32_t flags = r->on_host ? GDK_QP_HL_QUEUES_ON_HOST : 0;

		if (r->mode == MODE(NO_DBR_HW) && !e2e_has_no_dbr())
			continue;
		fprintf(stderr, "row %zu\n", (size_t)(r - rows));
		if (r->rq_flags)
			E2E_REQUIRE(!gdk_verbs_create_qp_rq_hl(&attr, &rq, flags, &hl));
		else
			E2E_REQUIRE(!gdk_verbs_create_qp_hl(&attr, flags, &hl));
		expect_qp(r, hl, mem_on_host || r->on_host);
		cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	}
}

#define ROWS(mem_on_host, ...) \
	do { \
		static const struct row rows[] = { __VA_ARGS__ }; \
\
		expect_rows(rows, GDK_ARRAY_SIZE(rows), mem_on_host); \
	} while (0)

Test(state_block, qp_on_the_host_gpu)
{
	open_gpu("host", "gpu");
	ROWS(true, { E2E_DB, MODE(VALID_DBR), false, false, SYS | HOST_EXEC, 0 },
	     { E2E_DB, MODE(VALID_DBR), true, false, SYS | HOST_EXEC | COLLAPSED, 0 },
	     { E2E_BF, MODE(VALID_DBR), false, false, SYS | HOST_EXEC | BLUEFLAME, 0 },
	     { E2E_PROXY, MODE(VALID_DBR), false, false, SYS | HOST_EXEC, SYS | HOST_EXEC | RECV },
	     { E2E_NO_DBR, MODE(NO_DBR_HW), false, false, SYS | HOST_EXEC, 0 },
	     { E2E_NO_DBR, MODE(NO_DBR_SW_EMULATED), false, false, SYS | HOST_EXEC | RUNG_READ, 0 },
	     { E2E_DB, MODE(VALID_DBR), false, false, SYS | HOST_EXEC, SYS | HOST_EXEC | RECV });
	e2e_close(&nic);
}

/* All in GPU memory: fences at system scope would only cost time. */
Test(state_block, qp_on_a_cuda_gpu)
{
	open_gpu("8a:00.0", "gpu");
	ROWS(false, { E2E_DB, MODE(VALID_DBR), false, false, 0, 0 },
	     { E2E_DB, MODE(VALID_DBR), true, false, COLLAPSED, RECV },
	     { E2E_DB, MODE(VALID_DBR), false, true, SYS | HOST_LOOKS, SYS | HOST_LOOKS | RECV },
	     { E2E_BF, MODE(VALID_DBR), false, false, BLUEFLAME, 0 },
	     { E2E_PROXY, MODE(VALID_DBR), false, false, 0, 0 },
	     { E2E_NO_DBR, MODE(NO_DBR_HW), false, false, 0, 0 });
	e2e_close(&nic);
	cr_expect_eq(standin_cuda_live(), 0);
}

static const struct gdk_doorbell *mapped; /* the strategy of the export */

/* As if the driver had mapped the page of the register as ordinary memory. The software NIC lets
 * it map every page as device memory. */
static doca_error_t attach_on_host(struct doca_gpu_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *dev)
{
	doca_error_t err = mapped->attach(qp, dev);

	gdk_to_db_qp(qp)->reg_on_host = true;
	return err;
}

/* GPU threads order a doorbell in host memory by fences at system scope. */
Test(state_block, qp_whose_register_is_host_memory)
{
	const struct row row = { E2E_DB, MODE(VALID_DBR), false, false, SYS, 0 };
	struct gdk_decision decision;
	struct gdk_export_ask ask = { .handler = E2E_DB, .mode = MODE(VALID_DBR) };
	struct gdk_doorbell on_host;
	struct e2e_qp q;

	open_gpu("8a:00.0", "gpu");
	e2e_qp_open(&nic, &q, E2E_DB, DEPTH);
	decision = gdk_to_export(q.hl->qp_gverbs)->q.decision;
	mapped = decision.db;
	on_host = *mapped;
	on_host.attach = attach_on_host;
	decision.db = &on_host;
	ask.gpu = nic.gpu;
	ask.qp = q.hl->qp;
	ask.cq = q.hl->cq_sq;
	ask.decision = &decision;
	E2E_REQUIRE(!doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs));
	E2E_REQUIRE(!gdk_qp_export(&ask, &q.hl->qp_gverbs));
	expect_qp(&row, q.hl, false);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

Test(state_block, qp_with_queues_and_state_in_host_memory)
{
	open_gpu("8a:00.0", "cpu_gpu");
	ROWS(true,
	     { E2E_DB, MODE(VALID_DBR), false, false, SYS | HOST_LOOKS, SYS | HOST_LOOKS | RECV },
	     { E2E_NO_DBR, MODE(NO_DBR_SW_EMULATED), false, false, SYS | HOST_LOOKS | RUNG_READ,
	       0 });
	e2e_close(&nic);
}

/* The CPU polls `rung`: in memory of GDRCopy, or in host memory although the queues are in GPU
 * memory. Waiting threads then poll the block over PCIe. */
Test(state_block, qp_with_only_the_state_in_host_memory)
{
	struct row row = { E2E_NO_DBR, MODE(NO_DBR_SW_EMULATED), false, false, RUNG_READ, 0 };
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.sq_nwqe = DEPTH,
		.nic_handler = row.handler,
		.send_dbr_mode_ext = row.mode,
	};
	struct doca_gpu_verbs_qp_hl *hl;

	standin_gdr();
	open_gpu("8a:00.0", "gpu");
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	E2E_REQUIRE(!doca_gpu_verbs_create_qp_hl(&attr, &hl));
	expect_qp(&row, hl, false);
	E2E_REQUIRE(!doca_gpu_verbs_unexport_qp(nic.gpu, hl->qp_gverbs));
	setenv("GDAKI_QUEUE_MEM", "cpu_gpu", 1);
	E2E_REQUIRE(!doca_gpu_verbs_export_qp(nic.gpu, hl->qp, row.handler, NULL, hl->cq_sq,
					      row.mode, &hl->qp_gverbs));
	row.sq_flags |= HOST_LOOKS;
	expect_qp(&row, hl, false);
	cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* ---- shared receive queues ---- */

static void expect_srq(enum doca_gpu_mem_type kind, bool on_host, uint32_t flags)
{
	struct doca_verbs_srq_init_attr *init;
	struct doca_gpu_dev_verbs_qp want = { 0 }, *srq_dev;
	struct doca_verbs_srq *srq;
	doca_verbs_umem_t *umem;
	void *mem, *cpu;

	E2E_REQUIRE(!doca_gpu_mem_alloc(nic.gpu, 65536, 65536, kind, &mem, &cpu));
	E2E_REQUIRE(!doca_verbs_umem_create(nic.dev, nic.gpu, mem, 65536, IBV_ACCESS_LOCAL_WRITE,
					    -1, 0, &umem));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_create(&init));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_pd(init, nic.pd));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_srq_wr(init, RQ_NUM));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_receive_max_sges(init, 4));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_type(init, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_external_umem(init, umem, 4096));
	E2E_REQUIRE(!doca_verbs_srq_create(nic.pd->context, init, &srq));
	E2E_REQUIRE(!gdk_verbs_export_srq(nic.gpu, srq, &srq_dev));
	want.sq_wqe_daddr = want.rq_wqe_daddr = (uint8_t *)mem + 4096;
	want.sq_dbrec = (void *)((uint8_t *)mem + 4096 + RQ_NUM * 64);
	want.rq_wqe_num = RQ_NUM;
	want.rq_wqe_mask = RQ_NUM - 1;
	want.gdk_rq_shift = 6; /* 4 segments of 16 bytes */
	want.nic_handler = E2E_DB;
	want.mem_type = on_host ? IN_HOST : IN_GPU;
	expect_queue("SRQ", srq_dev, want, RQ_NUM, flags);
	E2E_REQUIRE(!gdk_verbs_unexport_srq(srq));
	E2E_REQUIRE(!doca_verbs_srq_destroy(srq));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_destroy(init));
	E2E_REQUIRE(!doca_verbs_umem_destroy(umem));
	E2E_REQUIRE(!doca_gpu_mem_free(nic.gpu, mem));
}

Test(state_block, srq_on_the_host_gpu)
{
	open_gpu("host", "gpu");
	expect_srq(DOCA_GPU_MEM_TYPE_GPU, true, SYS | HOST_EXEC | RECV);
	e2e_close(&nic);
}

Test(state_block, srq_on_a_cuda_gpu)
{
	open_gpu("8a:00.0", "gpu");
	expect_srq(DOCA_GPU_MEM_TYPE_GPU, false, RECV);
	expect_srq(DOCA_GPU_MEM_TYPE_CPU_GPU, true, SYS | RECV);
	e2e_close(&nic);
}
