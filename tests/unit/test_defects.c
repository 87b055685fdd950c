/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Known defects in the host code of NVIDIA's open-source gpunetio, which this
 * library must not have. The name of a test for defect N starts with defect_N;
 * tests/defects.sh lists all of them. This file tests 5, 12, 16, 18, 19, 25, 27 and
 * 33, which need no GPU; other files test the other defects.
 */
/* softnic-run: --no-dbr-max 2 */
#include "doca_gpunetio_host.h"
#include "host/gdaki.h"

/* defect 33: gpunetio's public headers define these names in every program */
#if defined(u8) || defined(u16) || defined(u32) || defined(u64) || defined(__RTE_PMD_MLX5_PRM_H_)
#error "a public header defines a name that is not its own"
#endif
typedef struct own_u8 {
	int is_mine;
} u8, u16, u32, u64;

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "../../qp/verbs/qp.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/post_slots.h"
#include "../lib/nicfail.h"
#include "device/gdk/wqe.h"

#define DEPTH	   64u
#define BYTES	   4096u
#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

/* ---- 5: SQ and CQ of different depths, unsignalled WQEs ---- */

/* Creates a QP of DEPTH slots, connected to itself, on a CQ with `cqes` entries. */
static doca_error_t open_uneven(struct e2e_nic *nic, uint32_t cqes, doca_verbs_cq_t **cq,
				doca_verbs_qp_t **qp, struct doca_gpu_verbs_qp **x)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_cq_attr_t *attr;
	doca_error_t err;

	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, cqes);
	doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN);
	cr_assert_eq(doca_verbs_cq_create(nic->dev, attr, cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_set_send_cq(init, *cq);
	doca_verbs_qp_init_attr_set_sq_wr(init, DEPTH);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 1);
	cr_assert_eq(doca_verbs_qp_create(nic->dev, init, qp), DOCA_SUCCESS);
	doca_verbs_cq_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
	*x = NULL;
	capture_begin();
	err = doca_gpu_verbs_export_qp(nic->gpu, *qp, E2E_DB, NULL, *cq, MODE(VALID_DBR), x);
	(void)capture_end();
	return err;
}

static void close_uneven(struct e2e_nic *nic, doca_verbs_cq_t *cq, doca_verbs_qp_t *qp,
			 struct doca_gpu_verbs_qp *x)
{
	if (x)
		cr_assert_eq(doca_gpu_verbs_unexport_qp(nic->gpu, x), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
}

Test(peer_defects, defect_05_a_cq_that_loses_completions_is_refused)
{
	struct doca_gpu_verbs_qp *x;
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *qp;
	struct e2e_nic nic;

	e2e_open(&nic);
	cr_expect_eq(open_uneven(&nic, DEPTH / 2, &cq, &qp, &x), DOCA_ERROR_INVALID_VALUE);
	cr_expect(strstr(capture_text, "CQ of 32 entries") && strstr(capture_text, "64 slots"),
		  "log: %s", capture_text);
	close_uneven(&nic, cq, qp, x);
	e2e_close(&nic);
}

Test(peer_defects, defect_05_depths_may_differ_and_wqes_be_unsignalled)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	struct doca_gpu_dev_verbs_qp *dev;
	struct doca_gpu_verbs_qp *x;
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *qp;
	struct e2e_nic nic;
	struct e2e_buf buf;
	uint64_t idx = 0;

	e2e_open(&nic);
	e2e_buf_open(&nic, &buf, BYTES, E2E_REMOTE);
	cr_assert_eq(open_uneven(&nic, 4 * DEPTH, &cq, &qp, &x), DOCA_SUCCESS, "log: %s",
		     capture_text);
	cr_assert_eq(e2e_connect(&nic, qp, &nic.gid, qp->qpn, path), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(x, &dev), DOCA_SUCCESS);
	for (uint32_t i = 0; i < 5 * DEPTH; i++) {
		cr_assert_eq(gdk_reserve(dev, 1, E2E_MODE, 0, &idx), 0);
		buf.mem[0] = (uint8_t)(i + 1);
		gdk_wqe_write_inl(dev,
				  gdk_wqe_at(gdk_get_wqe_ptr(dev, idx), (uint16_t)idx,
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					     i % 3 == 2 ? GDK_CE_ALWAYS : 0),
				  gdk_mem((uintptr_t)buf.mem + 64, gdk_key(buf.mr->rkey)), buf.mem,
				  1);
		post_slots(dev, idx, idx, E2E_MODE, E2E_AUTO, 0);
		if (i % 3 != 2)
			continue;
		cr_assert_eq(gdk_wait_for(dev, idx, E2E_MODE, E2E_WAIT_NS), 0,
			     "wait for WQE %u failed", i);
		cr_assert_eq(buf.mem[64], (uint8_t)(i + 1));
	}
	close_uneven(&nic, cq, qp, x);
	e2e_buf_close(&buf);
	e2e_close(&nic);
}

/* ---- 12: byte order of keys ---- */

Test(peer_defects, defect_12_key_in_the_wrong_byte_order_is_diagnosed)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_qp_error e;
	struct e2e_pair p;
	gdk_key_t wrong;

	e2e_pair_open(&p, E2E_DB, DEPTH, BYTES);
	cr_assert_neq(p.dst.mr->rkey, __builtin_bswap32(p.dst.mr->rkey));
	cr_expect_eq(gdk_key(p.dst.mr->rkey).be, htobe32(p.dst.mr->rkey));
	cr_assert_eq(e2e_put(&p, 0, 64, &t), 0);
	cr_assert_eq(e2e_wait(&p.tx, t), 0, "gdk_key() must take the key as libibverbs returns it");
	wrong = gdk_key_be(p.dst.mr->rkey);
	cr_assert_eq(gdk_put(p.tx.dev, gdk_addr((uintptr_t)p.dst.mem, wrong),
			     e2e_addr(p.src.mem, p.src.mr->lkey), 64, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&p.tx, t), -EIO);
	cr_assert_eq(gdk_verbs_qp_get_error(p.tx.hl->qp_gverbs, &e), DOCA_SUCCESS);
	cr_expect_eq(e.rkey, __builtin_bswap32(p.dst.mr->rkey),
		     "the error must show the rkey as the NIC read it");
	cr_expect(strstr(gdk_syndrome_cause(e.syndrome), "byte order"));
	e2e_pair_close(&p);
}

/* ---- 16, 18: UAR pages ---- */

static bool no_pages;

/* Replaces mlx5dv_devx_alloc_uar of libmlx5: fails if no_pages is set. */
struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *ctx, uint32_t flags)
{
	struct mlx5dv_devx_uar *(*real)(struct ibv_context *, uint32_t);

	*(void **)&real = dlsym(RTLD_NEXT, "mlx5dv_devx_alloc_uar");
	if (!no_pages)
		return real(ctx, flags);
	errno = EOPNOTSUPP;
	return NULL;
}

Test(peer_defects, defect_16_creation_without_a_register_page_fails)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = DEPTH };
	struct doca_gpu_verbs_qp_group_hl *group = NULL;
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	doca_verbs_uar_t *uar = NULL;
	struct e2e_nic nic;

	e2e_open(&nic);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	no_pages = true;
	for (int kind = 0; kind < 3; kind++)
		cr_expect_eq(doca_verbs_uar_create(nic.dev, kind, &uar), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &group), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(!uar && !hl && !group);
	no_pages = false;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS, "a retry must succeed");
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	e2e_close(&nic);
}

/*
 * The doorbell register of DBREC-less QPs is at offset 0x600 of the page of the
 * ordinary register. If the device does not support such QPs, the query of its
 * address must fail.
 */
Test(peer_defects, defect_18_dbrec_less_register_has_its_own_address)
{
	void *reg, *less, *less_before = NULL;
	doca_verbs_uar_t *uar, *other;
	struct e2e_nic nic;

	e2e_open(&nic);
	for (int kind = 0; kind < 2; kind++) {
		cr_assert_eq(doca_verbs_uar_create(nic.dev, kind, &uar), DOCA_SUCCESS);
		cr_expect_eq(doca_verbs_uar_reg_addr_get(uar, &reg), DOCA_SUCCESS);
		cr_expect_eq(doca_verbs_uar_dbr_less_addr_get(uar, &less), DOCA_SUCCESS);
		cr_expect_eq((uintptr_t)less & ~4095ul, (uintptr_t)reg & ~4095ul,
			     "both registers must be in one page");
		cr_expect_eq((uintptr_t)less & 4095, 0x600);
		cr_expect_neq(less, less_before);
		less_before = less;
		nic.dev->caps.send_dbr_mode_no_dbr_ext = 0;
		cr_assert_eq(doca_verbs_uar_create(nic.dev, kind, &other), DOCA_SUCCESS);
		cr_expect_eq(doca_verbs_uar_dbr_less_addr_get(other, &less),
			     DOCA_ERROR_NOT_SUPPORTED);
		nic.dev->caps.send_dbr_mode_no_dbr_ext = 1;
		cr_assert_eq(doca_verbs_uar_destroy(other), DOCA_SUCCESS);
		cr_assert_eq(doca_verbs_uar_destroy(uar), DOCA_SUCCESS);
	}
	e2e_close(&nic);
}

/* ---- 19: a device that has few DBREC-less QPs ---- */

Test(peer_defects, defect_19_auto_falls_back_beyond_the_device_limit)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = DEPTH };
	struct doca_gpu_verbs_qp_hl *hl[4] = { NULL }, *none = NULL;
	const char *log;
	struct e2e_nic nic;

	e2e_open(&nic);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.nic_handler = E2E_AUTO;
	attr.send_dbr_mode_ext = GDK_SEND_DBR_MODE_AUTO;
	capture_begin();
	for (int i = 0; i < 4; i++)
		cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[i]), DOCA_SUCCESS,
			     "QP %d not created", i);
	log = capture_end();
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(hl[i]->nic_handler, i < 2 ? E2E_NO_DBR : E2E_DB,
			     "QP %d has the wrong handler", i);
		cr_expect_eq(hl[i]->send_dbr_mode_ext, i < 2 ? MODE(NO_DBR_HW) : MODE(VALID_DBR));
	}
	cr_expect(strstr(log, "status 0x5"), "log: %s", log);
	attr.send_dbr_mode_ext = MODE(NO_DBR_HW);
	cr_expect_eq(doca_gpu_verbs_create_qp_hl(&attr, &none), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_null(none, "an explicit mode must not fall back");
	for (int i = 0; i < 4; i++)
		cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[i]), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* ---- 25: UDP source ports ---- */

#define PAIRS 16

static uint16_t connected_port(struct e2e_nic *nic, struct e2e_qp *q)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	uint8_t out[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state state;

	cr_assert_eq(e2e_connect(nic, q->hl->qp, &nic->gid, q->qpn, path), DOCA_SUCCESS);
	cr_assert_eq(gdk_qp_query_state(q->hl->qp, out, &state), DOCA_SUCCESS);
	return (uint16_t)prm_get(out + PRM_QUERY_QP_QPC_AT + PRM_QPC_PATH_AT, PRM_ADS_UDP_SPORT);
}

static void back_to_reset(struct e2e_qp *q)
{
	doca_verbs_qp_attr_t *attr;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RST);
	cr_assert_eq(doca_verbs_qp_modify(q->hl->qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE),
		     DOCA_SUCCESS);
	doca_verbs_qp_attr_destroy(attr);
}

Test(peer_defects, defect_25_udp_ports_spread_and_rand_is_untouched)
{
	struct e2e_qp q[PAIRS];
	uint16_t port[PAIRS];
	int want[4], distinct = 0;
	struct e2e_nic nic;

	srand(7);
	for (int i = 0; i < 4; i++)
		want[i] = rand();
	srand(7);
	e2e_open(&nic);
	for (int i = 0; i < PAIRS; i++) {
		bool seen = false;

		e2e_qp_open(&nic, &q[i], E2E_DB, 16);
		port[i] = connected_port(&nic, &q[i]);
		cr_expect_geq(port[i], 0xc000);
		for (int j = 0; j < i; j++)
			seen |= port[j] == port[i];
		distinct += !seen;
	}
	cr_expect_geq(distinct, PAIRS - 1, "only %d ports for %d QPs created within a second",
		      distinct, PAIRS);
	for (int i = 0; i < PAIRS; i++) {
		back_to_reset(&q[i]);
		cr_expect_eq(connected_port(&nic, &q[i]), port[i],
			     "the port changed when the QP was connected again");
		e2e_qp_close(&q[i]);
	}
	for (int i = 0; i < 4; i++)
		cr_expect_eq(rand(), want[i], "the library used the program's rand()");
	e2e_close(&nic);
}

/* ---- 27: a refused command ---- */

#define STATUS	 0x0f
#define SYNDROME 0xabc123

Test(peer_defects, defect_27_refused_command_is_reported_in_full)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = DEPTH };
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	struct gdk_command_error e = { .opcode = 1 };
	struct e2e_nic nic;
	const char *log;

	nicfail_find();
	e2e_open(&nic);
	cr_assert_eq(gdk_get_command_error(&e), DOCA_SUCCESS);
	cr_expect_eq(e.opcode, 0, "an error is recorded, but no command was refused");
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.nic_handler = E2E_DB;
	nicfail_next(1, STATUS, SYNDROME, 0);
	capture_begin();
	cr_expect_neq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	log = capture_end();
	cr_expect(strstr(log, "CQ of 64 entries: firmware refused CREATE_CQ (0x400): "
			      "status 0xf") &&
			  strstr(log, "syndrome 0x00abc123"),
		  "log: %s", log);
	cr_assert_eq(gdk_get_command_error(&e), DOCA_SUCCESS);
	cr_expect_eq(e.opcode, 0x400);
	cr_expect_eq(e.status, STATUS);
	cr_expect_eq(e.syndrome, SYNDROME);
	cr_expect_str_eq(e.command, "CREATE_CQ");
	cr_expect(strstr(e.object, "CQ of 64 entries"), "%s", e.object);
	cr_expect(strstr(e.status_text, "no resources"));
	e2e_close(&nic);
}

/* ---- 33: short names ---- */

Test(peer_defects, defect_33_headers_define_no_short_names)
{
	const u8 mine = { .is_mine = 1 };

	cr_expect_eq(mine.is_mine, 1, "the program's own type must be used");
}
