/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Completion queues: memory layout (allocated by the library or external), accepted
 * sizes, flags, and order of destruction.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../cq/cq.h"
#include "../lib/e2e.h"

static struct e2e_nic nic;
static doca_verbs_cq_attr_t *attr;

static void open_all(void)
{
	e2e_open(&nic);
	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
}

static void close_all(void)
{
	doca_verbs_cq_attr_destroy(attr);
	e2e_close(&nic);
}

TestSuite(cq, .init = open_all, .fini = close_all);

static void check_invalid(const uint8_t *ring, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		cr_assert_eq(ring[i * 64 + 63], 0xf1, "entry %u", i);
}

Test(cq, internal_ring_is_rounded_up_and_invalid)
{
	doca_verbs_cq_t *cq;
	uint32_t num, cqn, *ci, *arm;
	uint64_t *reg;
	uint8_t size;
	void *ring;

	doca_verbs_cq_attr_set_cq_size(attr, 100);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_get_wq(cq, &ring, &num, &size), DOCA_SUCCESS);
	cr_assert_eq(num, 128);
	cr_assert_eq(size, 64);
	check_invalid(ring, num);
	cr_assert_eq(doca_verbs_cq_get_dbr_addr(cq, &reg, &ci, &arm), DOCA_SUCCESS);
	cr_assert_eq((void *)ci, (uint8_t *)ring + 128 * 64);
	cr_assert_eq(arm, ci + 1);
	cr_assert_neq(reg, NULL);
	cr_assert_eq(doca_verbs_cq_get_cqn(cq, &cqn), DOCA_SUCCESS);
	cr_assert_neq(cqn, 0);
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
}

Test(cq, external_ring_at_an_offset)
{
	void *mem = aligned_alloc(4096, 16384), *ring;
	doca_verbs_umem_t *umem;
	doca_verbs_cq_t *cq;
	uint32_t num;
	uint8_t size;

	memset(mem, 0, 16384);
	cr_assert_eq(doca_verbs_umem_create(nic.dev, nic.gpu, mem, 16384, IBV_ACCESS_LOCAL_WRITE,
					    -1, 0, &umem),
		     DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, 64);
	doca_verbs_cq_attr_set_external_umem(attr, umem, 4096);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &cq), DOCA_SUCCESS);
	doca_verbs_cq_get_wq(cq, &ring, &num, &size);
	cr_assert_eq(ring, (uint8_t *)mem + 4096);
	check_invalid(ring, 64);
	cr_assert_eq(((uint8_t *)mem)[4095], 0, "memory before the offset was written");
	cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_ERROR_IN_USE);
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	free(mem);
}

Test(cq, ring_and_dbrec_must_fit_into_the_umem)
{
	/* The ring of 64 entries takes 4096 bytes, and the DBREC 8 bytes after it. */
	static const struct {
		size_t at, size;
		doca_error_t err;
	} rows[] = {
		{ 0, 4096, DOCA_ERROR_INVALID_VALUE },
		{ 0, 4103, DOCA_ERROR_INVALID_VALUE },
		{ 0, 4104, DOCA_SUCCESS },
		{ 64, 4104, DOCA_SUCCESS },
		{ 32, 4104, DOCA_ERROR_INVALID_VALUE }, /* misaligned ring */
	};
	uint8_t *mem = aligned_alloc(4096, 8192);

	doca_verbs_cq_attr_set_cq_size(attr, 64);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		doca_verbs_umem_t *umem;
		doca_verbs_cq_t *cq = NULL;

		cr_assert_eq(doca_verbs_umem_create(nic.dev, nic.gpu, mem + rows[i].at,
						    rows[i].size, IBV_ACCESS_LOCAL_WRITE, -1, 0,
						    &umem),
			     DOCA_SUCCESS);
		doca_verbs_cq_attr_set_external_umem(attr, umem, 0);
		cr_expect_eq(doca_verbs_cq_create(nic.dev, attr, &cq), rows[i].err, "row %zu", i);
		cr_expect_eq(cq == NULL, rows[i].err != DOCA_SUCCESS);
		cr_assert(!cq || doca_verbs_cq_destroy(cq) == DOCA_SUCCESS);
		cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	}
	free(mem);
}

Test(cq, sizes_beyond_the_device_are_refused)
{
	doca_verbs_cq_t *cq = NULL;

	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &cq), DOCA_ERROR_INVALID_VALUE);
	doca_verbs_cq_attr_set_cq_size(attr, UINT32_MAX);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &cq), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(cq, NULL);
}

Test(cq, flags_reach_the_object)
{
	doca_verbs_cq_t *cq;

	doca_verbs_cq_attr_set_cq_size(attr, 64);
	doca_verbs_cq_attr_set_cq_collapsed(attr, 1);
	doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &cq), DOCA_SUCCESS);
	cr_assert(cq->collapsed);
	cr_assert(cq->overrun_ignore);
	doca_verbs_cq_destroy(cq);
}
