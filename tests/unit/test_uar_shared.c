/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --page-size 64k --strict */
/*
 * A kernel with 64 KiB pages puts sixteen UARs into one mapping. In these tests, 20 UARs
 * of a type exist at once, and a QP without DBREC rings through each of them.
 */
#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>

#include "../../uar/uar.h"
#include "../lib/e2e.h"
#include "../lib/standin.h"

#define PAGES 20
#define BYTES 256u

/* A QP without DBREC, connected to itself. */
struct end {
	doca_verbs_uar_t *uar;
	void *mem; /* CQ at 0, ring at 8192, DBREC (not used for sends) at 12288 */
	doca_verbs_umem_t *umem;
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *qp;
	struct doca_gpu_verbs_qp *exported;
	struct doca_gpu_dev_verbs_qp *dev;
};

static struct e2e_nic nic;
static struct e2e_buf src, dst;
static struct end ends[PAGES];

static void end_create(struct end *e, enum doca_verbs_qp_send_dbr_mode mode)
{
	const struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_cq_attr_t *attr;
	uint32_t qpn;
	void *cpu;

	cr_assert_eq(
		doca_gpu_mem_alloc(nic.gpu, 16384, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &e->mem, &cpu),
		DOCA_SUCCESS);
	memset(cpu, 0, 16384);
	cr_assert_eq(doca_verbs_umem_create(nic.dev, nic.gpu, e->mem, 16384, IBV_ACCESS_LOCAL_WRITE,
					    -1, 0, &e->umem),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, 64);
	doca_verbs_cq_attr_set_external_umem(attr, e->umem, 0);
	doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &e->cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_set_send_cq(init, e->cq);
	doca_verbs_qp_init_attr_set_receive_cq(init, e->cq);
	doca_verbs_qp_init_attr_set_sq_wr(init, 64);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_external_umem(init, e->umem, 8192);
	doca_verbs_qp_init_attr_set_external_umem_dbr(init, e->umem, 12288);
	doca_verbs_qp_init_attr_set_external_uar(init, e->uar);
	doca_verbs_qp_init_attr_set_send_dbr_mode(init, mode);
	cr_assert_eq(doca_verbs_qp_create(nic.dev, init, &e->qp), DOCA_SUCCESS);
	doca_verbs_cq_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
	cr_assert_eq(doca_verbs_qp_get_qpn(e->qp, &qpn), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, e->qp, &nic.gid, qpn, path), DOCA_SUCCESS);
}

static void end_open(struct end *e)
{
	end_create(e, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, e->qp, E2E_NO_DBR, e->mem, e->cq,
					      DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW,
					      &e->exported),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(e->exported, &e->dev), DOCA_SUCCESS);
}

static void end_close(struct end *e)
{
	cr_expect_eq(doca_gpu_verbs_unexport_qp(nic.gpu, e->exported), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_destroy(e->qp), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_cq_destroy(e->cq), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_umem_destroy(e->umem), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(nic.gpu, e->mem), DOCA_SUCCESS);
}

/*
 * One put per QP, complete before the next starts, so that another QP's doorbell
 * cannot recover a lost one.
 */
static void deliver(void)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	unsigned int i;

	for (i = 0; i < BYTES * PAGES; i++)
		src.mem[i] = e2e_pattern(i, 1);
	for (i = 0; i < PAGES; i++) {
		cr_assert_eq(gdk_put(ends[i].dev, e2e_addr(dst.mem + BYTES * i, dst.mr->rkey),
				     e2e_addr(src.mem + BYTES * i, src.mr->lkey), BYTES, &ticket,
				     gdk_how(E2E_MODE, E2E_AUTO,
					     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
			     0);
		cr_assert_eq(gdk_wait_for(ends[i].dev, ticket, E2E_MODE, E2E_WAIT_NS), 0,
			     "UAR %u: put not complete", i);
	}
	cr_expect_arr_eq(dst.mem, src.mem, BYTES * PAGES);
}

static void all_deliver(const char *gpu, enum doca_verbs_uar_allocation_type kind)
{
	unsigned int i;

	e2e_open_on(&nic, gpu);
	if (doca_verbs_uar_create(nic.dev, kind, &ends[0].uar) != DOCA_SUCCESS) {
		e2e_close(&nic);
		cr_skip_test("this rdma-core does not support the UAR type");
	}
	for (i = 1; i < PAGES; i++)
		cr_assert_eq(doca_verbs_uar_create(nic.dev, kind, &ends[i].uar), DOCA_SUCCESS);
	e2e_buf_open(&nic, &src, BYTES * PAGES, IBV_ACCESS_LOCAL_WRITE);
	e2e_buf_open(&nic, &dst, BYTES * PAGES, E2E_REMOTE);
	for (i = 0; i < PAGES; i++)
		end_open(&ends[i]);
	deliver();
	for (i = 0; i < PAGES; i++) {
		end_close(&ends[i]);
		cr_expect_eq(doca_verbs_uar_destroy(ends[i].uar), DOCA_SUCCESS);
	}
	e2e_buf_close(&src);
	e2e_buf_close(&dst);
	e2e_close(&nic);
}

Test(uar_shared, every_blueflame_page_rings_without_dbrec, .timeout = 60)
{
	all_deliver("host", DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME);
}

Test(uar_shared, every_dedicated_page_rings_without_dbrec, .timeout = 60)
{
	all_deliver("host", DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED);
}

/* On a CUDA GPU, each page is registered with the driver. Nothing may stay registered. */
Test(uar_shared, every_page_is_mapped_for_a_gpu, .timeout = 60)
{
	setenv("STANDIN_CUDA_IOMEM", "1", 1);
	standin_cuda();
	all_deliver("8a:00.0", DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME);
	cr_expect_eq(standin_cuda_live(), 0);
}

static doca_error_t export_end(struct end *e, enum doca_gpu_dev_verbs_nic_handler handler)
{
	return doca_gpu_verbs_export_qp(nic.gpu, e->qp, handler, e->mem, e->cq,
					DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
					&e->exported);
}

/* Two QPs that copy WQEs to one BlueFlame buffer would overwrite each other's halves. */
Test(uar_shared, only_one_queue_pair_uses_the_blueflame_buffer)
{
	struct end *a = &ends[0], *b = &ends[1];

	e2e_open(&nic);
	cr_assert_eq(
		doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, &a->uar),
		DOCA_SUCCESS);
	b->uar = a->uar;
	end_create(a, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID);
	end_create(b, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID);
	cr_assert_eq(export_end(a, E2E_BF), DOCA_SUCCESS);
	cr_expect_eq(export_end(b, E2E_BF), DOCA_ERROR_IN_USE);
	cr_assert_eq(export_end(b, E2E_DB), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, b->exported), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, a->exported), DOCA_SUCCESS);
	cr_assert_eq(export_end(b, E2E_BF), DOCA_SUCCESS);
	cr_assert_eq(export_end(a, E2E_DB), DOCA_SUCCESS);
	end_close(a);
	end_close(b);
	cr_expect_eq(doca_verbs_uar_destroy(a->uar), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* libmlx5 reports the same base_addr for all UARs of a mapping. */
Test(uar_shared, uars_of_a_mapping_share_their_base_address)
{
	struct mlx5dv_devx_uar *uar[PAGES];
	unsigned int i, moved = 0;

	e2e_open(&nic);
	for (i = 0; i < PAGES; i++) {
		cr_assert(uar[i] = mlx5dv_devx_alloc_uar(nic.ctx, MLX5DV_UAR_ALLOC_TYPE_BF));
		cr_expect_eq(((uintptr_t)uar[i]->reg_addr - (uintptr_t)uar[i]->base_addr) / 4096,
			     uar[i]->page_id - uar[0]->page_id);
		cr_expect_eq(uar[i]->base_addr, uar[0]->base_addr);
		cr_expect_eq(uar[i]->mmap_off % 65536, 0);
		moved += uar[i]->page_id != uar[0]->page_id;
	}
	cr_expect_eq(moved, PAGES - 2, "a UAR has two BlueFlame registers");
	for (i = 0; i < PAGES; i++)
		mlx5dv_devx_free_uar(uar[i]);
	e2e_close(&nic);
}
