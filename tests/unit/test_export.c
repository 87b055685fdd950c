/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Exported QPs: placement of the device struct, arrays of device structs, the last error,
 * counters, and the reset of the state and the queue memory. test_state_block.c has the content.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/export/export.h"
#include "device/gdk/state.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/guardalloc.h"

#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

static struct e2e_nic nic;
static struct e2e_qp q;

static void open_all(void)
{
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
}

static void close_all(void)
{
	e2e_qp_close(&q);
	e2e_close(&nic);
}

TestSuite(qp_export, .init = open_all, .fini = close_all);

/*
 * The fields that every post reads must be in the 128-byte line after that of
 * sq_rsvd_index, which every post changes.
 */
static void expect_place(const struct doca_gpu_dev_verbs_qp *d)
{
	const uintptr_t read = (uintptr_t)&d->sq_num_shift8_be / 128;

	cr_expect_eq((uintptr_t)d % 128, GDK_DEV_SKEW);
	cr_expect_eq((uintptr_t)&d->sq_rsvd_index / 128 + 1, read);
	cr_expect_eq((uintptr_t)&d->sq_wqe_daddr / 128, read);
	cr_expect_eq((uintptr_t)&d->gdk_state / 128, read);
	cr_expect_eq(d->sq_num, q.qpn);
}

Test(qp_export, read_only_fields_share_no_cache_line_with_the_index)
{
	struct doca_gpu_dev_verbs_qp *d;

	expect_place(q.dev); /* device struct in the memory of the high-level QP */
	cr_expect_geq((uintptr_t)q.dev, (uintptr_t)q.dev->gdk_state + gdk_qp_state_size(16));
	cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_DB, NULL, q.hl->cq_sq,
					      MODE(VALID_DBR), &q.hl->qp_gverbs),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_export_multi_qps_dev(nic.gpu, &q.hl->qp_gverbs, 1, &d),
		     DOCA_SUCCESS);
	expect_place(d);
	cr_expect_eq(q.hl->qp_gverbs->qp_gpu_h, d, "host GPU: one address");
	cr_assert_eq(doca_gpu_verbs_unexport_multi_qps_dev(nic.gpu, &q.hl->qp_gverbs, 1, d),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(q.hl->qp_gverbs, &d), DOCA_SUCCESS);
	expect_place(d); /* device struct in memory that the export allocates */
}

Test(qp_export, a_second_live_export_is_refused)
{
	struct doca_gpu_verbs_qp *again = NULL;

	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_DB, NULL, q.hl->cq_sq,
					      MODE(VALID_DBR), &again),
		     DOCA_ERROR_IN_USE);
	cr_assert_eq(again, NULL);
	cr_assert_eq(doca_verbs_qp_destroy(q.hl->qp), DOCA_ERROR_IN_USE);
	cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_AUTO, NULL, q.hl->cq_sq,
					      MODE(VALID_DBR), &q.hl->qp_gverbs),
		     DOCA_SUCCESS);
}

Test(qp_export, cq_that_can_overrun_is_reported)
{
	for (int overrun = 0; overrun < 2; overrun++) {
		cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs), DOCA_SUCCESS);
		q.hl->cq_sq->overrun_ignore = overrun;
		capture_begin();
		cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_DB, NULL, q.hl->cq_sq,
						      MODE(VALID_DBR), &q.hl->qp_gverbs),
			     DOCA_SUCCESS);
		cr_expect_eq(!!strstr(capture_end(), "overruns after 16 CQEs"), !overrun);
	}
}

Test(qp_export, mode_and_cq_must_match)
{
	struct doca_gpu_verbs_qp *x = NULL;
	struct e2e_qp other;

	e2e_qp_open(&nic, &other, E2E_DB, 16);
	doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs);
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_AUTO, NULL, other.hl->cq_sq,
					      MODE(VALID_DBR), &x),
		     DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_AUTO, NULL, q.hl->cq_sq,
					      MODE(NO_DBR_HW), &x),
		     DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_NO_DBR, NULL, q.hl->cq_sq,
					      MODE(VALID_DBR), &x),
		     DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(x, NULL);
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_DB, NULL, q.hl->cq_sq,
					      MODE(VALID_DBR), &q.hl->qp_gverbs),
		     DOCA_SUCCESS);
	e2e_qp_close(&other);
}

Test(qp_export, handler_report_names_the_candidates)
{
	struct gdk_handler_report r;

	cr_assert_eq(gdk_verbs_qp_get_handler_report(q.hl->qp_gverbs, &r), DOCA_SUCCESS);
	cr_assert_eq(r.asked, E2E_DB);
	cr_assert_eq(r.chosen, E2E_DB);
	cr_assert_geq(r.num_candidates, 1);
}

Test(qp_export, export_multi_with_null_entries)
{
	struct doca_gpu_verbs_qp *list[3] = { 0 };
	struct doca_gpu_dev_verbs_qp *array = NULL;
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .gpu_dev = nic.gpu,
						       .net_dev = nic.dev,
						       .ibpd = nic.pd,
						       .sq_nwqe = 16 };
	struct doca_gpu_verbs_qp_hl *a, *b;

	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &a), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &b), DOCA_SUCCESS);
	list[0] = a->qp_gverbs;
	list[2] = a->qp_gverbs;
	cr_assert_eq(doca_gpu_verbs_export_multi_qps_dev(nic.gpu, list, 3, &array),
		     DOCA_ERROR_IN_USE, "a QP that is in the list twice must be refused");
	list[2] = b->qp_gverbs;
	cr_assert_eq(doca_gpu_verbs_export_multi_qps_dev(nic.gpu, list, 3, &array), DOCA_SUCCESS);
	cr_assert_eq(array[0].sq_num, a->qp_gverbs->qp_cpu->sq_num);
	cr_assert_eq(array[1].sq_num, 0);
	cr_assert_eq(array[2].gdk_state, b->qp_gverbs->qp_cpu->gdk_state);
	cr_assert_eq(b->qp_gverbs->qp_gpu, &array[2]);
	cr_assert_eq(doca_gpu_verbs_unexport_multi_qps_dev(nic.gpu, list, 3, array), DOCA_SUCCESS);
	cr_assert_eq(b->qp_gverbs->qp_gpu, NULL);
	doca_gpu_verbs_destroy_qp_hl(a);
	doca_gpu_verbs_destroy_qp_hl(b);
}

static void export_again(void)
{
	cr_assert_eq(doca_gpu_verbs_export_qp(nic.gpu, q.hl->qp, E2E_DB, NULL, q.hl->cq_sq,
					      MODE(VALID_DBR), &q.hl->qp_gverbs),
		     DOCA_SUCCESS);
}

/* Adds the QP as the last of num entries; the others are empty. The caller frees *list. */
static struct doca_gpu_dev_verbs_qp *array_of(unsigned int num, struct doca_gpu_verbs_qp ***list)
{
	struct doca_gpu_dev_verbs_qp *array = NULL;
	size_t blocks = guardalloc_end();

	guardalloc_begin();
	*list = calloc(num, sizeof(**list));
	cr_assert(*list);
	(*list)[num - 1] = q.hl->qp_gverbs;
	cr_assert_eq(doca_gpu_verbs_export_multi_qps_dev(nic.gpu, *list, num, &array),
		     DOCA_SUCCESS);
	blocks = guardalloc_end() - blocks;
	cr_expect(!GUARDALLOC_WORKS || blocks >= 3, "the product's blocks have no such page");
	cr_expect_eq(array[num - 1].sq_num, q.qpn);
	return array;
}

/* No entry behind the end of the list or of the array is used: an inaccessible page follows them.
 * The second time, the QP is unexported while it is in the array. */
Test(qp_export, arrays_of_every_length)
{
	struct doca_gpu_dev_verbs_qp *array;
	struct doca_gpu_verbs_qp **list;

	cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs), DOCA_SUCCESS);
	export_again();
	for (unsigned int num = 1; num <= 16; num++) {
		array = array_of(num, &list);
		cr_assert_eq(doca_gpu_verbs_unexport_multi_qps_dev(nic.gpu, list, num, array),
			     DOCA_SUCCESS);
		free(list);
		array = array_of(num, &list);
		cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs), DOCA_SUCCESS);
		cr_assert_eq(doca_gpu_verbs_unexport_multi_qps_dev(nic.gpu, list, num, array),
			     DOCA_SUCCESS);
		free(list);
		export_again();
	}
}

Test(qp_export, last_error_is_the_cause_not_a_flush)
{
	struct doca_gpunetio_ib_mlx5_err_cqe_ex *ring = q.hl->cq_sq_umem_gpu_ptr;
	struct doca_gpu_verbs_qp_error_info info;

	cr_assert_eq(doca_gpu_verbs_query_last_error(q.hl->qp_gverbs, &info), DOCA_SUCCESS);
	cr_assert_not(info.has_error);
	for (int i = 2; i < 6; i++) {
		ring[i].op_own = DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR << 4;
		ring[i].s_wqe_opcode_qpn = htobe32(0x08000000 | (i == 2 ? q.qpn + 1 : q.qpn));
		ring[i].syndrome = i == 4 ? 0x13 : 5;
		ring[i].vendor_err_synd = 0x88;
		ring[i].wqe_counter = htobe16((uint16_t)(100 + i));
	}
	cr_assert_eq(doca_gpu_verbs_query_last_error(q.hl->qp_gverbs, &info), DOCA_SUCCESS);
	cr_assert(info.has_error);
	cr_assert_eq(info.syndrome, 0x13);
	cr_assert_eq(info.vendor_err_synd, 0x88);
	cr_assert_eq(info.wqe_counter, 104);
}

/* As a put that is not plain does on a GPU. */
static void set_plain_end(struct doca_gpu_dev_verbs_qp *dev)
{
	dev->gdk_state->plain_at = (uintptr_t)&dev->gdk_plain_end;
	dev->gdk_plain_end = 5;
	dev->gdk_state->plain_sys = 5;
}

/* The QP's state must not refer to the array, which is freed. */
Test(qp_export, plain_end_is_forgotten_with_the_array)
{
	struct doca_gpu_dev_verbs_qp *array;
	struct doca_gpu_verbs_qp **list;

	cr_assert_eq(doca_gpu_verbs_unexport_qp(nic.gpu, q.hl->qp_gverbs), DOCA_SUCCESS);
	export_again();
	array = array_of(3, &list);
	set_plain_end(&array[2]);
	cr_assert_eq(doca_gpu_verbs_unexport_multi_qps_dev(nic.gpu, list, 3, array), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(q.hl->qp_gverbs, &q.dev), DOCA_SUCCESS);
	cr_assert_eq(q.dev->gdk_state->plain_at, 0);
	cr_assert_eq(q.dev->gdk_state->plain_sys, 0);
	cr_assert_eq(q.dev->gdk_plain_end, 0);
	free(list);
}

Test(qp_export, counters_and_abort)
{
	struct gdk_qp_counters c;

	q.dev->sq_rsvd_index = 7;
	q.dev->gdk_state->doorbells = 3;
	q.dev->gdk_state->completed = 5;
	cr_assert_eq(gdk_verbs_qp_get_counters(q.hl->qp_gverbs, &c), DOCA_SUCCESS);
	cr_assert_eq(c.wqes_reserved, 7);
	cr_assert_eq(c.doorbells, 3);
	cr_assert_eq(c.completions, 5);
	cr_assert_eq(c.status, 0);
	set_plain_end(q.dev);
	cr_assert_eq(gdk_verbs_qp_abort(q.hl->qp_gverbs), DOCA_SUCCESS);
	cr_assert_eq(q.dev->gdk_state->abort_word, 1);
	cr_assert_eq(q.dev->gdk_plain_end, 0);
	cr_assert_eq(q.dev->gdk_state->plain_sys, 0);
}

/* Fills the CQ's ring as if the NIC had written n CQEs with the indices base, base + 1, ... */
static void write_cqes(uint8_t *ring, uint32_t num, uint64_t base, uint64_t n)
{
	for (uint32_t i = 0; i < num; i++)
		ring[i * 64 + 63] = 0xf1;
	for (uint64_t i = base; i < base + n; i++)
		ring[(i & (num - 1)) * 64 + 63] = i & num ? 1 : 0;
}

Test(qp_export, producer_index_is_found_in_the_ring)
{
	static uint8_t ring[16 * 64];

	for (uint64_t base = 0; base < 32; base++) {
		for (uint64_t n = 0; n < 80; n++) {
			write_cqes(ring, 16, base, n);
			cr_assert_eq(gdk_cq_find_producer(ring, 16, base) % 32, (base + n) % 32,
				     "base %d, %d CQEs", (int)base, (int)n);
		}
	}
}

Test(qp_export, reset_restores_the_initial_state)
{
	uint8_t *ring = q.hl->cq_sq_umem_gpu_ptr;
	uint32_t *dbrec = q.hl->qp_umem_dbr_gpu_ptr;

	write_cqes(ring, 16, 0, 21);
	q.dev->sq_rsvd_index = 21;
	q.dev->gdk_state->rung = 21;
	q.dev->gdk_state->status = -5;
	set_plain_end(q.dev);
	dbrec[1] = htobe32(21);
	memset(q.hl->qp_umem_gpu_ptr, 0xaa, 64);
	cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(q.hl->qp_gverbs), DOCA_SUCCESS);
	cr_assert_eq(q.dev->sq_rsvd_index, 0);
	cr_assert_eq(q.dev->gdk_plain_end, 0);
	cr_assert_eq(q.dev->gdk_state->plain_at, 0);
	cr_assert_eq(q.dev->gdk_state->rung, 0);
	cr_assert_eq(q.dev->gdk_state->status, 0);
	cr_assert_eq(q.dev->cq_sq.cqe_rsvd % 32, 21);
	cr_assert_eq(q.dev->gdk_state->cqe_ci, q.dev->cq_sq.cqe_rsvd);
	cr_assert_eq(dbrec[1], 0);
	cr_assert_eq(*(uint8_t *)q.hl->qp_umem_gpu_ptr, 0);
	/*
	 * The next CQE in this slot has index 21, in lap 1 (owner bit 1), so the
	 * slot is invalidated with owner bit 0.
	 */
	cr_assert_eq(ring[5 * 64 + 63], 0xf0);
	cr_assert_eq(ring[4 * 64 + 63], 0xf1,
		     "next index 36 is in lap 2, so the owner bit must be 1");
}

/* Each round makes another number of puts, so the resets find various indices of the CQ. */
Test(qp_reset, defect_28_data_flows_again_after_every_reset, .timeout = 60)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_dev_verbs_ticket_t t;
	struct e2e_pair p;

	e2e_pair_open(&p, E2E_DB, 16, 256);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 5 + 7 * round; i++) {
			p.src.mem[i] = e2e_pattern((uint64_t)i, (uint32_t)round);
			cr_assert_eq(e2e_put(&p, 0, 256, &t), 0);
			cr_assert_eq(e2e_wait(&p.tx, t), 0, "round %d put %d", round, i);
			cr_assert_eq(p.dst.mem[i], p.src.mem[i]);
		}
		e2e_qp_reset(&p.tx);
		e2e_qp_reset(&p.rx);
		cr_assert_eq(e2e_connect(&p.nic, p.tx.hl->qp, &p.nic.gid, p.rx.qpn, path), 0);
		cr_assert_eq(e2e_connect(&p.nic, p.rx.hl->qp, &p.nic.gid, p.tx.qpn, path), 0);
	}
	e2e_pair_close(&p);
}
