/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Commands that a real ConnectX accepted or refused (recorded_qp.h), decoded with
 * the layouts of the library and of the software NIC. The expected values were
 * decoded by hand, so that the test depends on neither layout nor on mlx5_ifc.h.
 * The recorded replies are also passed to the library as if the NIC had sent them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "../../core/nic/prm.h"
#include "../../core/util.h"
#include "../lib/capture.h"
#include "host/gdaki.h"
#include "../lib/nic.h"
#include "../softnic/prm_nic.h"
#include "recorded_qp.h"

#define BOX_MAX	   0x160
#define PAS_AT	   0x110
#define QPC(field) ((field) + ((uint32_t)PRM_CREATE_QP_QPC_AT << 16))
#define XRCD_AT	   0xb0 /* the only word for which core/nic/prm.h has no field */
#define XRCD	   0x11u

/* Values decoded by hand, in the order of recorded_qps. The last three QPs are from one run. */
static const struct decoded {
	uint32_t uar_page, user_index, log_page_size, page_offset, cqn, pages, status, qpn;
	uint64_t dbr_addr, wq_umem_offset;
} decoded[] = {
	{ 0x15, 0x3ff5d, 4, 12, 0x10d, 1, 0, 0x40121, 0x55b6fe7c0, 1ull << 32 },
	{ 0x15, 0x3ff5e, 0, 0, 0x10d, 9, 0, 0x40122, 0x55b6fe800, 0 },
	{ 0x16, 0x3ff5f, 0, 0, 0x10d, 9, 5, 0, 0x55b6fe840, 0 },
	{ 0x15, 0x3ff5e, 0, 0, 0x10d, 9, 0, 0x40122, 0x522861800, 0 },
	{ 0x16, 0x3ff5f, 0, 0, 0x10d, 9, 5, 0, 0x522861840, 0 },
	{ 0x17, 0x1ff49, 3, 32, 0x115, 2, 0, 0x23be6, 0xa67c35ac0, 0 },
	{ 0x17, 0x1ff4a, 3, 0, 0x115, 2, 0, 0x23be7, 0xa67c35b00, 0 },
	{ 0x18, 0x1ff4b, 3, 24, 0x115, 2, 5, 0, 0xa67c35b40, 0 },
};

/*
 * Each field with its value in command d. All have 128 receive WQEs of 16 bytes and
 * 512 send slots.
 */
#define FIELDS(X, d) \
	X(PRM_CMD_OPCODE, 0x500) \
	X(PRM_CMD_UID, 2) \
	X(PRM_CMD_OP_MOD, 0) \
	X(PRM_CREATE_QP_INPUT_QPN, 0) \
	X(PRM_CREATE_QP_OPT_PARAM_MASK, 0) \
	X(QPC(PRM_QPC_STATE), 0) \
	X(QPC(PRM_QPC_ST), 0) \
	X(QPC(PRM_QPC_PM_STATE), 3) \
	X(QPC(PRM_QPC_PD), 0x18) \
	X(QPC(PRM_QPC_LOG_RQ_SIZE), 7) \
	X(QPC(PRM_QPC_LOG_RQ_STRIDE), 0) \
	X(QPC(PRM_QPC_NO_SQ), 0) \
	X(QPC(PRM_QPC_LOG_SQ_SIZE), 9) \
	X(QPC(PRM_QPC_UAR_PAGE), (d)->uar_page) \
	X(QPC(PRM_QPC_SEND_DBR_MODE), 0) \
	X(QPC(PRM_QPC_USER_INDEX), (d)->user_index) \
	X(QPC(PRM_QPC_LOG_PAGE_SIZE), (d)->log_page_size) \
	X(QPC(PRM_QPC_CQN_SND), (d)->cqn) \
	X(QPC(PRM_QPC_PAGE_OFFSET), (d)->page_offset) \
	X(QPC(PRM_QPC_CQN_RCV), (d)->cqn) \
	X(QPC(PRM_QPC_DBR_ADDR), (d)->dbr_addr) \
	X(QPC(PRM_QPC_RQ_TYPE), 0) \
	X(QPC(PRM_QPC_SRQN_RMPN_XRQN), 0x101) \
	X(QPC(PRM_QPC_CS_REQ), 0) \
	X(QPC(PRM_QPC_CS_RES), 1) \
	X(QPC(PRM_QPC_DBR_UMEM_VALID), 0) \
	X(PRM_CREATE_QP_WQ_UMEM_OFFSET, (d)->wq_umem_offset) \
	X(PRM_CREATE_QP_WQ_UMEM_VALID, 0)

#define RING_BYTES (128 * 16 + 512 * 64)

static void unpack(const struct recorded_qp *r, uint8_t box[BOX_MAX])
{
	const struct recorded_row *row;
	size_t i;

	memset(box, 0, BOX_MAX);
	for (row = r->rows; row == r->rows || row->at; row++)
		for (i = 0; i < 4; i++)
			nic_set(box, NIC_F(row->at + 4 * i, 31, 0), row->words[i]);
}

/* Stores the words of a recorded reply as bytes. */
static void unpack_answer(const struct recorded_qp *r, uint8_t out[16])
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		nic_set(out, NIC_F(4 * i, 31, 0), r->answer[i]);
}

Test(recorded, library_layout_gives_the_values_decoded_by_hand)
{
	uint8_t box[BOX_MAX];
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(recorded_qps); i++) {
		const struct decoded *d = &decoded[i];

		unpack(&recorded_qps[i], box);
#define EXPECT(field, value) \
	cr_expect_eq(prm_get(box, field), value, "%s: " #field " is read as 0x%llx", \
		     recorded_qps[i].name, (unsigned long long)prm_get(box, field));
		FIELDS(EXPECT, d)
	}
}

Test(recorded, rebuilt_command_lacks_only_xrcd)
{
	uint8_t box[BOX_MAX], built[BOX_MAX];
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(recorded_qps); i++) {
		const struct decoded *d = &decoded[i];

		unpack(&recorded_qps[i], box);
		memset(built, 0, sizeof(built));
#define SET(field, value) prm_set(built, field, value);
		FIELDS(SET, d)
		cr_expect_eq(nic_word(box, XRCD_AT), XRCD);
		nic_set(built, NIC_F(XRCD_AT, 31, 0), XRCD);
		cr_expect_arr_eq(built, box, PAS_AT, "%s: the rebuilt command differs",
				 recorded_qps[i].name);
	}
}

/* The software NIC has its own layouts and must read the same values. */
Test(recorded, software_nic_layout_gives_the_same_values)
{
	uint8_t box[BOX_MAX], *q = box + CMD_QPC;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(recorded_qps); i++) {
		const struct decoded *d = &decoded[i];

		unpack(&recorded_qps[i], box);
		cr_expect_eq(nic_get(box, IN_OPCODE), OP_CREATE_QP);
		cr_expect_eq(nic_get(q, QPC_ST), 0);
		cr_expect_eq(nic_get(q, QPC_PM_STATE), 3);
		cr_expect_eq(nic_get(q, QPC_PD), 0x18);
		cr_expect_eq(nic_get(q, QPC_LOG_RQ_SIZE), 7);
		cr_expect_eq(nic_get(q, QPC_LOG_RQ_STRIDE), 0);
		cr_expect_eq(nic_get(q, QPC_LOG_SQ_SIZE), 9);
		cr_expect_eq(nic_get(q, QPC_UAR_PAGE), d->uar_page);
		cr_expect_eq(nic_get(q, QPC_USER_INDEX), d->user_index);
		cr_expect_eq(nic_get(q, QPC_LOG_PAGE_SIZE), d->log_page_size);
		cr_expect_eq(nic_get(q, QPC_CQN_SND), d->cqn);
		cr_expect_eq(nic_get(q, QPC_PAGE_OFFSET), d->page_offset);
		cr_expect_eq(nic_get(q, QPC_CQN_RCV), d->cqn);
		cr_expect_eq(nic_get64(q, QPC_DBR_ADDR), d->dbr_addr);
		cr_expect_eq(nic_get(q, QPC_RMPN), 0x101);
		cr_expect_eq(nic_get(q, QPC_DBR_UMEM_VALID), 0);
	}
}

/*
 * The rings begin on pages of 4 KiB, so page_offset must count 64ths of the QP's
 * page size, which may be larger, not units of 64 bytes. The number of listed pages
 * then equals the number needed.
 */
Test(recorded, page_offset_counts_64ths_of_a_page)
{
	uint8_t box[BOX_MAX];
	size_t i, page;

	for (i = 0; i < GDK_ARRAY_SIZE(recorded_qps); i++) {
		uint64_t size, offset;

		unpack(&recorded_qps[i], box);
		size = 4096ull << prm_get(box, QPC(PRM_QPC_LOG_PAGE_SIZE));
		offset = prm_get(box, QPC(PRM_QPC_PAGE_OFFSET)) * size / 64;
		cr_expect_eq(offset % 4096, 0, "%s: offset 0x%llx", recorded_qps[i].name,
			     (unsigned long long)offset);
		cr_expect_eq((offset + RING_BYTES + size - 1) / size, decoded[i].pages);
		/* The recorded log has whole rows of 16 bytes. */
		cr_expect_eq((PAS_AT + 8 * decoded[i].pages + 15) / 16 * 16,
			     recorded_qps[i].printed);
		for (page = 0; page < decoded[i].pages; page++)
			cr_expect_eq(nic_get64(box, PAS_AT + 8 * (uint32_t)page) % size, 0);
	}
}

/* ---- the replies ---- */

/* Recorded reply that replaces the reply to CREATE_QP; NULL: the reply is not replaced. */
static const struct recorded_qp *replay;
static uint8_t refusal[16]; /* the software NIC's own reply to a refused command */

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *ctx, const void *in,
					       size_t inlen, void *out, size_t outlen)
{
	static struct mlx5dv_devx_obj *(*real)(struct ibv_context *, const void *, size_t, void *,
					       size_t);
	bool qp = prm_get(in, PRM_CMD_OPCODE) == GDK_CMD_CREATE_QP;
	struct mlx5dv_devx_obj *obj = NULL;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "mlx5dv_devx_obj_create");
	cr_assert_geq(outlen, 16);
	if (!replay || !qp) {
		obj = real(ctx, in, inlen, out, outlen);
		if (!obj)
			memcpy(refusal, out, sizeof(refusal));
		return obj;
	}
	if (!replay->answer[0])
		obj = real(ctx, in, inlen, out, outlen);
	unpack_answer(replay, out);
	errno = obj ? 0 : EREMOTEIO;
	return obj;
}

static doca_error_t create_qp(struct nic *nic, doca_verbs_cq_t *cq, doca_verbs_qp_t **qp)
{
	doca_verbs_qp_init_attr_t *attr;
	doca_error_t err;

	cr_assert_eq(doca_verbs_qp_init_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_set_pd(attr, nic->dev), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_set_send_cq(attr, cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_set_sq_wr(attr, 16), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_set_send_max_sges(attr, 1), DOCA_SUCCESS);
	err = doca_verbs_qp_create(nic->dev, attr, qp);
	cr_assert_eq(doca_verbs_qp_init_attr_destroy(attr), DOCA_SUCCESS);
	return err;
}

static void expect_answer(struct nic *nic, doca_verbs_cq_t *cq, size_t i)
{
	doca_verbs_qp_t *qp = NULL;
	struct gdk_command_error e;
	doca_error_t err;
	const char *log;
	uint32_t qpn;

	replay = &recorded_qps[i];
	capture_begin();
	err = create_qp(nic, cq, &qp);
	log = capture_end();
	replay = NULL;
	if (!decoded[i].status) {
		cr_assert_eq(err, DOCA_SUCCESS);
		cr_assert_eq(doca_verbs_qp_get_qpn(qp, &qpn), DOCA_SUCCESS);
		cr_expect_eq(qpn, decoded[i].qpn);
		cr_assert_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
		return;
	}
	cr_assert_eq(err, DOCA_ERROR_DRIVER);
	cr_assert_eq(gdk_get_command_error(&e), DOCA_SUCCESS);
	cr_expect_eq(e.opcode, 0x500);
	cr_expect_eq(e.status, 5);
	cr_expect_eq(e.syndrome, 0x65b500);
	cr_expect(strstr(log, "status 0x5 ") && strstr(log, "syndrome 0x0065b500"), "log: %s", log);
}

static doca_verbs_cq_t *make_cq(struct nic *nic)
{
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;

	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_set_cq_size(attr, 16), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_create(nic->dev, attr, &cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_destroy(attr), DOCA_SUCCESS);
	return cq;
}

/* The NIC is configured for one QP, so the second is refused. */
Test(recorded, software_nic_without_free_qps_replies_the_same)
{
	doca_verbs_qp_t *qp, *other = NULL;
	uint8_t recorded[16];
	doca_verbs_cq_t *cq;
	struct nic nic;

	setenv("SOFTNIC_QP_MAX", "1", 1);
	nic = nic_open();
	cq = make_cq(&nic);
	cr_assert_eq(create_qp(&nic, cq, &qp), DOCA_SUCCESS);
	cr_assert_eq(create_qp(&nic, cq, &other), DOCA_ERROR_DRIVER);
	unpack_answer(&recorded_qps[2], recorded);
	cr_expect_arr_eq(refusal, recorded, sizeof(recorded));
	cr_assert_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
	nic_close(&nic);
}

Test(recorded, library_handles_the_recorded_replies)
{
	struct nic nic = nic_open();
	doca_verbs_cq_t *cq = make_cq(&nic);
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(recorded_qps); i++)
		expect_answer(&nic, cq, i);
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
	nic_close(&nic);
}
