/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Cases of test_failinject.c: each creates one object (device, memory, attributes,
 * queue) or runs one operation, while the rig of lib/faults.h makes one call fail.
 * Also holds the objects that the cases use.
 */
#ifndef FAILINJECT_VERBS_H
#define FAILINJECT_VERBS_H

#include "../../core/gpu/gpu.h"
#include "../lib/faults.h"
#include "../lib/nic.h"

#define BDF	  "8A:00.0"
#define NO_FD	  ((int)DOCA_VERBS_DMABUF_INVALID_FD)
#define MEM_BYTES 65536u

static struct {
	struct e2e_nic nic;
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr, *got;
	doca_verbs_qp_init_attr_t *got_init;
	doca_verbs_umem_t *umem;
	doca_verbs_uar_t *uar;
	struct doca_gpu_verbs_qp_hl *db, *proxy; /* exported QPs that the cases use */
	struct doca_gpu_verbs_qp_hl *bare;	 /* not exported */
	struct doca_gpu_verbs_qp_hl *rq;	 /* with a receive queue */
	struct doca_gpu_verbs_qp_hl *bare_rq;	 /* the same, not exported */
	int memfd;
	uint8_t mem[MEM_BYTES] __attribute__((aligned(4096)));
} f;

/* ---- attributes ---- */

#define ATTR(name, type, prefix, ...) \
	static doca_error_t name(void) \
	{ \
		type *attr = NULL; \
		doca_error_t err = prefix##_create(__VA_ARGS__ & attr); \
\
		return FAULT_DONE(err, attr, prefix##_destroy(attr)); \
	}
#define WITH_DEV f.nic.dev,

ATTR(ah_attr, doca_verbs_ah_attr_t, doca_verbs_ah_attr, WITH_DEV)
ATTR(cq_attr, doca_verbs_cq_attr_t, doca_verbs_cq_attr)
ATTR(qp_attr, doca_verbs_qp_attr_t, doca_verbs_qp_attr)
ATTR(qp_init_attr, doca_verbs_qp_init_attr_t, doca_verbs_qp_init_attr)
ATTR(srq_init_attr, struct doca_verbs_srq_init_attr, doca_verbs_srq_init_attr)

static doca_error_t device_attr(void)
{
	struct doca_verbs_device_attr *attr = NULL;
	doca_error_t err = doca_verbs_query_device(f.nic.ctx, &attr);

	return FAULT_DONE(err, attr, doca_verbs_device_attr_free(attr));
}

/* ---- devices and memory ---- */

static doca_error_t dev(void)
{
	doca_dev_t *made = NULL;
	doca_error_t err = doca_verbs_dev_open(f.nic.pd, &made);

	return FAULT_DONE(err, made, doca_verbs_dev_close(made));
}

static doca_error_t gpu(void)
{
	doca_gpu_t *made = NULL;
	doca_error_t err = doca_gpu_create(fault_on_gpu ? BDF : "host", &made);

	return FAULT_DONE(err, made, doca_gpu_destroy(made));
}

static doca_error_t mem_of(enum doca_gpu_mem_type kind)
{
	void *ptr = NULL, *cpu = NULL;
	doca_error_t err = doca_gpu_mem_alloc(f.nic.gpu, 10000, 4096, kind, &ptr, &cpu);

	return FAULT_DONE(err, ptr, doca_gpu_mem_free(f.nic.gpu, ptr));
}

static doca_error_t mem_gpu(void)
{
	return mem_of(DOCA_GPU_MEM_TYPE_GPU);
}

static doca_error_t mem_gpu_cpu(void)
{
	return mem_of(DOCA_GPU_MEM_TYPE_GPU_CPU);
}

static doca_error_t mem_cpu_gpu(void)
{
	return mem_of(DOCA_GPU_MEM_TYPE_CPU_GPU);
}

/*
 * Allocates the first memory block of a new GPU object, so that the object's table of
 * blocks must grow. If map is set, maps host memory of the caller instead.
 */
static doca_error_t first_of(bool map)
{
	void *ptr = NULL;
	doca_gpu_t *made = NULL;
	doca_error_t err = doca_gpu_create(fault_on_gpu ? BDF : "host", &made);

	if (err)
		return fault_made(err, made);
	err = map ? gdk_gpu_map_host(made, f.mem, 4096, &ptr)
		  : doca_gpu_mem_alloc(made, 64, 0, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL);
	fault_made(err, ptr);
	if (!err)
		err = map ? gdk_gpu_unmap_host(made, f.mem) : doca_gpu_mem_free(made, ptr);
	cr_expect_eq(doca_gpu_destroy(made), DOCA_SUCCESS);
	return err;
}

static doca_error_t mem_first(void)
{
	return first_of(false);
}

static doca_error_t map_first(void)
{
	return first_of(true);
}

static doca_error_t umem_of(doca_gpu_t *of, void *at, int fd)
{
	doca_verbs_umem_t *made = NULL;
	doca_error_t err = doca_verbs_umem_create(f.nic.dev, of, at, 8192, IBV_ACCESS_LOCAL_WRITE,
						  fd, 0, &made);

	return FAULT_DONE(err, made, doca_verbs_umem_destroy(made));
}

static doca_error_t umem_host(void)
{
	return umem_of(NULL, f.mem, NO_FD);
}

static doca_error_t umem_gpu(void)
{
	return umem_of(f.nic.gpu, f.db->qp_umem_gpu_ptr, NO_FD);
}

static doca_error_t umem_dmabuf(void)
{
	return umem_of(NULL, f.mem, f.memfd);
}

static doca_error_t dmabuf_of(doca_error_t (*get)(doca_gpu_t *, void *, size_t, int *))
{
	int fd = -1;
	doca_error_t err = get(f.nic.gpu, f.db->qp_umem_gpu_ptr, 4096, &fd);

	fault_made(err, fd < 0 ? NULL : &fd);
	if (!err)
		close(fd);
	return err;
}

static doca_error_t dmabuf(void)
{
	return dmabuf_of(doca_gpu_get_dmabuf_fd);
}

static doca_error_t dmabuf_pcie(void)
{
	doca_error_t err;

	/* with value 2, the stand-in driver supports the PCIe mapping type */
	setenv("STANDIN_CUDA_DMABUF", "2", 1);
	err = dmabuf_of(gdk_gpu_get_dmabuf_fd_pcie);
	unsetenv("STANDIN_CUDA_DMABUF");
	return err;
}

/* ---- register pages ---- */

/* Uses its own context, because libmlx5 caches the UAR pages of a context. */
static doca_error_t uar_of(enum doca_verbs_uar_allocation_type type)
{
	struct nic own = nic_open();
	doca_verbs_uar_t *made = NULL;
	doca_error_t err;

	fault_start();
	err = doca_verbs_uar_create(own.dev, type, &made);
	err = FAULT_DONE(err, made, doca_verbs_uar_destroy(made));
	nic_close(&own);
	return err;
}

static doca_error_t uar_bf(void)
{
	return uar_of(DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME);
}

static doca_error_t uar_nc(void)
{
	return uar_of(DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE);
}

static doca_error_t uar_export(void)
{
	uint64_t *made = NULL;
	void *reg = NULL;
	doca_error_t err;

	cr_assert(!doca_verbs_uar_reg_addr_get(f.uar, &reg));
	err = doca_gpu_verbs_export_uar(reg, &made);
	return FAULT_DONE(err, made, doca_gpu_verbs_unexport_uar(made));
}

static doca_error_t uar_can(void)
{
	void *reg = NULL;
	bool can = false;
	doca_error_t err;

	cr_assert(!doca_verbs_uar_reg_addr_get(f.uar, &reg));
	err = doca_gpu_verbs_can_gpu_register_uar(reg, &can);
	fault_disarm();
	return err;
}

/* ---- queues ---- */

static doca_error_t cq_of(doca_verbs_umem_t *umem, doca_verbs_uar_t *uar)
{
	doca_verbs_cq_attr_t *attr = NULL;
	doca_verbs_cq_t *made = NULL;
	doca_error_t err = doca_verbs_cq_attr_create(&attr);

	if (err)
		return fault_made(err, attr);
	cr_assert(!doca_verbs_cq_attr_set_cq_size(attr, 64));
	cr_assert(!doca_verbs_cq_attr_set_external_umem(attr, umem, 0));
	cr_assert(!doca_verbs_cq_attr_set_external_uar(attr, uar));
	err = doca_verbs_cq_create(f.nic.dev, attr, &made);
	fault_made(err, made);
	cr_assert(!doca_verbs_cq_attr_destroy(attr));
	return FAULT_DONE(err, made, doca_verbs_cq_destroy(made));
}

static doca_error_t cq_own(void)
{
	return cq_of(NULL, NULL);
}

static doca_error_t cq_external(void)
{
	return cq_of(f.umem, f.uar);
}

static doca_error_t cq_in_gpu(void)
{
	return cq_of(f.bare->qp_umem, f.uar);
}

static doca_error_t srq_of(enum doca_verbs_srq_type type, doca_verbs_umem_t *umem)
{
	struct doca_verbs_srq_init_attr *attr = NULL;
	struct doca_verbs_srq *made = NULL;
	doca_error_t err = doca_verbs_srq_init_attr_create(&attr);

	if (err)
		return fault_made(err, attr);
	cr_assert(!doca_verbs_srq_init_attr_set_pd(attr, f.nic.pd));
	cr_assert(!doca_verbs_srq_init_attr_set_srq_wr(attr, 64));
	cr_assert(!doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1));
	cr_assert(!doca_verbs_srq_init_attr_set_type(attr, type));
	cr_assert(!doca_verbs_srq_init_attr_set_external_umem(attr, umem, 0));
	err = doca_verbs_srq_create(f.nic.ctx, attr, &made);
	fault_made(err, made);
	cr_assert(!doca_verbs_srq_init_attr_destroy(attr));
	return FAULT_DONE(err, made, doca_verbs_srq_destroy(made));
}

static doca_error_t srq_list(void)
{
	return srq_of(DOCA_VERBS_SRQ_TYPE_LINKED_LIST, NULL);
}

static doca_error_t srq_ring(void)
{
	return srq_of(DOCA_VERBS_SRQ_TYPE_CONTIGUOUS, f.umem);
}

/* An SRQ that exists before the faults. */
static struct doca_verbs_srq *srq_prepare(void)
{
	struct doca_verbs_srq_init_attr *attr = NULL;
	struct doca_verbs_srq *srq = NULL;

	cr_assert(!doca_verbs_srq_init_attr_create(&attr));
	cr_assert(!doca_verbs_srq_init_attr_set_pd(attr, f.nic.pd));
	cr_assert(!doca_verbs_srq_init_attr_set_srq_wr(attr, 64));
	cr_assert(!doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1));
	cr_assert(!doca_verbs_srq_init_attr_set_type(attr, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS));
	cr_assert(!doca_verbs_srq_init_attr_set_external_umem(attr, f.umem, 0));
	cr_assert(!doca_verbs_srq_create(f.nic.ctx, attr, &srq));
	cr_assert(!doca_verbs_srq_init_attr_destroy(attr));
	fault_start();
	return srq;
}

static doca_error_t srq_exported(void)
{
	struct doca_verbs_srq *srq = srq_prepare();
	struct doca_gpu_dev_verbs_qp *made = NULL;
	doca_error_t err = gdk_verbs_export_srq(f.nic.gpu, srq, &made);

	err = FAULT_DONE(err, made, gdk_verbs_unexport_srq(srq));
	cr_assert(!doca_verbs_srq_destroy(srq));
	return err;
}

static doca_error_t qp_of(doca_verbs_umem_t *umem, doca_verbs_uar_t *uar)
{
	doca_verbs_qp_init_attr_t *attr = NULL;
	doca_verbs_qp_t *made = NULL;
	doca_error_t err = doca_verbs_qp_init_attr_create(&attr);

	if (err)
		return fault_made(err, attr);
	cr_assert(!doca_verbs_qp_init_attr_set_send_cq(attr, f.db->cq_sq));
	cr_assert(!doca_verbs_qp_init_attr_set_receive_cq(attr, f.db->cq_sq));
	cr_assert(!doca_verbs_qp_init_attr_set_sq_wr(attr, 64));
	cr_assert(!doca_verbs_qp_init_attr_set_rq_wr(attr, 64));
	cr_assert(!doca_verbs_qp_init_attr_set_send_max_sges(attr, 1));
	cr_assert(!doca_verbs_qp_init_attr_set_receive_max_sges(attr, 1));
	cr_assert(!doca_verbs_qp_init_attr_set_external_umem(attr, umem, 0));
	cr_assert(!doca_verbs_qp_init_attr_set_external_umem_dbr(attr, umem, MEM_BYTES - 64));
	cr_assert(!doca_verbs_qp_init_attr_set_external_uar(attr, uar));
	err = doca_verbs_qp_create(f.nic.dev, attr, &made);
	fault_made(err, made);
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
	return FAULT_DONE(err, made, doca_verbs_qp_destroy(made));
}

static doca_error_t qp_own(void)
{
	return qp_of(NULL, NULL);
}

static doca_error_t qp_external(void)
{
	return qp_of(f.umem, f.uar);
}

#define A(name) DOCA_VERBS_QP_ATTR_##name
#define S(name) DOCA_VERBS_QP_STATE_##name

static doca_error_t move(enum doca_verbs_qp_state to, int mask)
{
	cr_assert(!doca_verbs_qp_attr_set_next_state(f.attr, to));
	return doca_verbs_qp_modify(f.db->qp, f.attr, mask | A(NEXT_STATE));
}

static doca_error_t query(void)
{
	doca_error_t err = doca_verbs_qp_query(f.db->qp, f.got, f.got_init, NULL);

	fault_disarm();
	return err;
}

/* Moves the QP from RST to RTS with a fault armed, and then back to RST without one. */
static doca_error_t connected(void)
{
	doca_error_t err;

	err = move(S(INIT), A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) |
				    A(ALLOW_REMOTE_READ)) ?:
	      move(S(RTR), A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) |
				   A(MIN_RNR_TIMER)) ?:
	      move(S(RTS), A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY));
	fault_disarm();
	cr_expect_eq(move(S(RST), 0), DOCA_SUCCESS);
	return err;
}

#endif
