/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends commands with one wrong field each, and the same commands without an error.
 * Prints whether the device refuses them, and with which status and syndrome.
 */
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "../../core/nic/devx.h"
#include "../../core/nic/net_dev.h"
#include "../../core/util.h"
#include "../../qp/verbs/qp.h"
#include "probe.h"

#define NONE_24	   0xfffff0u /* no object has this number */
#define UMEM_BYTES (64u << 10)
#define DBREC_AT   (32u << 10)
#define CMD_NONE   0x7ffu
#define OPT(bit)   ((uint64_t)GDK_OPTPAR_##bit)

struct wrong {
	const char *what;
	uint32_t at, field; /* offset of the context in the command; field of the context */
	uint64_t value;
};

static struct rig {
	struct ibv_context *ctx;
	doca_verbs_umem_t *umem;
	doca_verbs_uar_t *uar;
	uint8_t *mem;
	uint32_t umem_id, uar_id, eqn, pdn, cqn, port_mtu;
	struct mlx5dv_devx_obj *cq;
} r;

static void print_answer(const char *command, const char *what, doca_error_t err, const void *out)
{
	struct gdk_command_error last = { 0 };
	char text[96];

	if (!err) {
		probe_print("accepted", "%s, %s", command, what);
		return;
	}
	E2E_REQUIRE(!gdk_get_command_error(&last));
	snprintf(text, sizeof(text), "status 0x%x syndrome 0x%x errno %d",
		 (unsigned int)prm_get(out, PRM_CMD_STATUS),
		 (unsigned int)prm_get(out, PRM_CMD_SYNDROME), last.sys_err);
	probe_print(text, "%s, %s", command, what);
}

static void put_wrong(uint8_t *in, const struct wrong *w)
{
	if (w && w->field)
		prm_set(in + w->at, w->field, w->value);
}

/* Creates the object and destroys it, unless the caller keeps it. */
static void create(const char *command, uint32_t destroy, uint8_t *in, size_t inlen,
		   const struct wrong *w, struct mlx5dv_devx_obj **keep, uint32_t *number)
{
	uint8_t out[PRM_CMD_OUT_LEN];
	struct mlx5dv_devx_obj *obj = NULL;
	doca_error_t err;

	put_wrong(in, w);
	err = gdk_devx_create(r.ctx, command, in, inlen, out, sizeof(out), &obj);
	print_answer(command, w ? w->what : "without an error", err, out);
	if (number && !err)
		*number = (uint32_t)prm_get(out, PRM_CMD_OUT_OBJECT);
	if (keep)
		*keep = obj;
	else if (!err)
		E2E_REQUIRE(!gdk_devx_destroy(r.ctx, obj, destroy, command, 0));
}

/* ---- CREATE_CQ ---- */

static const struct wrong wrong_cq[] = {
	{ "an EQ that does not exist", PRM_CREATE_CQ_CQC_AT, PRM_CQC_C_EQN, 0xfe },
	{ "a umem that does not exist", 0, PRM_CREATE_CQ_UMEM_ID, NONE_24 },
	{ "an offset beyond the umem", 0, PRM_CREATE_CQ_UMEM_OFFSET, 1u << 30 },
	{ "a ring that ends beyond the umem", 0, PRM_CREATE_CQ_UMEM_OFFSET, UMEM_BYTES - 64 },
	{ "the ring at offset 64", 0, PRM_CREATE_CQ_UMEM_OFFSET, 64 },
	{ "page_offset 1", PRM_CREATE_CQ_CQC_AT, PRM_CQC_PAGE_OFFSET, 1 },
	{ "a DBREC umem that does not exist", PRM_CREATE_CQ_CQC_AT, PRM_CQC_DBR_UMEM_ID, NONE_24 },
	{ "a DBREC beyond the umem", PRM_CREATE_CQ_CQC_AT, PRM_CQC_DBR_ADDR, UMEM_BYTES },
	{ "a DBREC at offset 4", PRM_CREATE_CQ_CQC_AT, PRM_CQC_DBR_ADDR, DBREC_AT + 4 },
	{ "a UAR that does not exist", PRM_CREATE_CQ_CQC_AT, PRM_CQC_UAR_PAGE, NONE_24 },
	{ "log_cq_size 31", PRM_CREATE_CQ_CQC_AT, PRM_CQC_LOG_CQ_SIZE, 31 },
	{ "cqe_sz 7", PRM_CREATE_CQ_CQC_AT, PRM_CQC_CQE_SZ, 7 },
	{ "log_page_size 31", PRM_CREATE_CQ_CQC_AT, PRM_CQC_LOG_PAGE_SIZE, 31 },
	{ "op_mod 0xffff", 0, PRM_CMD_OP_MOD, 0xffff },
};

static void try_cq(const struct wrong *w, struct mlx5dv_devx_obj **keep)
{
	uint8_t in[PRM_CREATE_CQ_IN_LEN] = { 0 }, *cqc = in + PRM_CREATE_CQ_CQC_AT;

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_CQ);
	prm_set(in, PRM_CREATE_CQ_UMEM_ID, r.umem_id);
	prm_set(in, PRM_CREATE_CQ_UMEM_VALID, 1);
	prm_set(cqc, PRM_CQC_OI, 1);
	prm_set(cqc, PRM_CQC_LOG_CQ_SIZE, 6);
	prm_set(cqc, PRM_CQC_UAR_PAGE, r.uar_id);
	prm_set(cqc, PRM_CQC_C_EQN, r.eqn);
	prm_set(cqc, PRM_CQC_DBR_UMEM_VALID, 1);
	prm_set(cqc, PRM_CQC_DBR_UMEM_ID, r.umem_id);
	prm_set(cqc, PRM_CQC_DBR_ADDR, DBREC_AT);
	create("CREATE_CQ", GDK_CMD_DESTROY_CQ, in, sizeof(in), w, keep, keep ? &r.cqn : NULL);
}

/* ---- CREATE_QP ---- */

#define QPC(field) PRM_CREATE_QP_QPC_AT, PRM_QPC_##field

static const struct wrong wrong_qp[] = {
	{ "a PD that does not exist", QPC(PD), NONE_24 },
	{ "a CQ that does not exist", QPC(CQN_SND), NONE_24 },
	{ "a UAR that does not exist", QPC(UAR_PAGE), NONE_24 },
	{ "a umem that does not exist", 0, PRM_CREATE_QP_WQ_UMEM_ID, NONE_24 },
	{ "an offset beyond the umem", 0, PRM_CREATE_QP_WQ_UMEM_OFFSET, 1u << 30 },
	{ "the ring at offset 64", 0, PRM_CREATE_QP_WQ_UMEM_OFFSET, 64 },
	{ "page_offset 1", QPC(PAGE_OFFSET), 1 },
	{ "a ring that is larger than the umem", QPC(LOG_SQ_SIZE), 15 },
	{ "a DBREC umem that does not exist", QPC(DBR_UMEM_ID), NONE_24 },
	{ "a DBREC at offset 4", QPC(DBR_ADDR), DBREC_AT + 4 },
	{ "service type 15", QPC(ST), 15 },
	{ "send_dbr_mode 1", QPC(SEND_DBR_MODE), 1 },
	{ "send_dbr_mode 3", QPC(SEND_DBR_MODE), 3 },
	{ "ts_format 1", QPC(TS_FORMAT), 1 },
	{ "ts_format 2", QPC(TS_FORMAT), 2 },
	{ "ts_format 3", QPC(TS_FORMAT), 3 },
	{ "cd_master", QPC(CD_MASTER), 1 },
	{ "cd_slave_send", QPC(CD_SLAVE_SEND), 1 },
	{ "pm_state 0", QPC(PM_STATE), 0 },
	{ "an SRQ that does not exist", QPC(RQ_TYPE), GDK_QPC_RQ_SRQ_RMP },
	{ "op_mod 0xffff", 0, PRM_CMD_OP_MOD, 0xffff },
};

static void try_qp(const struct wrong *w, struct mlx5dv_devx_obj **keep, uint32_t *qpn)
{
	uint8_t in[PRM_CREATE_QP_IN_LEN] = { 0 }, *qpc = in + PRM_CREATE_QP_QPC_AT;

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_QP);
	prm_set(in, PRM_CREATE_QP_WQ_UMEM_ID, r.umem_id);
	prm_set(in, PRM_CREATE_QP_WQ_UMEM_VALID, 1);
	prm_set(qpc, PRM_QPC_ST, GDK_QPC_ST_RC);
	prm_set(qpc, PRM_QPC_PM_STATE, GDK_QPC_PM_MIGRATED);
	prm_set(qpc, PRM_QPC_PD, r.pdn);
	prm_set(qpc, PRM_QPC_UAR_PAGE, r.uar_id);
	prm_set(qpc, PRM_QPC_CQN_SND, r.cqn);
	prm_set(qpc, PRM_QPC_CQN_RCV, r.cqn);
	prm_set(qpc, PRM_QPC_LOG_SQ_SIZE, 4);
	prm_set(qpc, PRM_QPC_RQ_TYPE, GDK_QPC_RQ_NONE);
	prm_set(qpc, PRM_QPC_DBR_UMEM_VALID, 1);
	prm_set(qpc, PRM_QPC_DBR_UMEM_ID, r.umem_id);
	prm_set(qpc, PRM_QPC_DBR_ADDR, DBREC_AT);
	create("CREATE_QP", GDK_CMD_DESTROY_QP, in, sizeof(in), w, keep, qpn);
}

/* ---- transitions ---- */

#define IN_PATH(field) PRM_MODIFY_QP_QPC_AT + PRM_QPC_PATH_AT, PRM_ADS_##field

static const struct step {
	uint32_t opcode;
	const char *name;
	struct wrong w;
} steps[] = {
	{ GDK_CMD_INIT2RTR_QP, "INIT2RTR_QP", { "of a QP in RST", 0, 0, 0 } },
	{ GDK_CMD_RTR2RTS_QP, "RTR2RTS_QP", { "of a QP in RST", 0, 0, 0 } },
	{ GDK_CMD_RTS2RTS_QP, "RTS2RTS_QP", { "of a QP in RST", 0, 0, 0 } },
	{ GDK_CMD_RST2INIT_QP, "RST2INIT_QP", { "port 99", IN_PATH(VHCA_PORT_NUM), 99 } },
	{ GDK_CMD_RST2INIT_QP,
	  "RST2INIT_QP",
	  { "pkey_index 0xffff", IN_PATH(PKEY_INDEX), 0xffff } },
	{ GDK_CMD_RST2INIT_QP, "RST2INIT_QP", { "without an error", 0, 0, 0 } },
	{ GDK_CMD_INIT2RTR_QP, "INIT2RTR_QP", { "mtu 0", QPC(MTU), 0 } },
	{ GDK_CMD_INIT2RTR_QP, "INIT2RTR_QP", { "mtu 7", QPC(MTU), 7 } },
	{ GDK_CMD_INIT2RTR_QP,
	  "INIT2RTR_QP",
	  { "src_addr_index 255", IN_PATH(SRC_ADDR_INDEX), 255 } },
	{ GDK_CMD_INIT2RTR_QP, "INIT2RTR_QP", { "log_msg_max 31", QPC(LOG_MSG_MAX), 31 } },
	{ GDK_CMD_INIT2RTR_QP,
	  "INIT2RTR_QP",
	  { "LAG option", 0, PRM_MODIFY_QP_OPT_PARAM_MASK, OPT(LAG_TX_AFF) } },
	{ GDK_CMD_RTR2RTS_QP, "RTR2RTS_QP", { "after the previous step", 0, 0, 0 } },
};

/* Fills in all fields that RST2INIT and INIT2RTR need, so that the device can refuse them
 * only because of the wrong field. */
static void fill_step(uint8_t *in, uint32_t opcode, uint32_t qpn, const struct e2e_nic *nic)
{
	uint8_t *qpc = in + PRM_MODIFY_QP_QPC_AT, *path = qpc + PRM_QPC_PATH_AT;

	prm_set(in, PRM_CMD_OPCODE, opcode);
	prm_set(in, PRM_MODIFY_QP_QPN, qpn);
	prm_set(qpc, PRM_QPC_PM_STATE, GDK_QPC_PM_MIGRATED);
	prm_set(path, PRM_ADS_VHCA_PORT_NUM, 1);
	if (opcode != GDK_CMD_INIT2RTR_QP)
		return;
	prm_set(qpc, PRM_QPC_MTU, 3);
	prm_set(qpc, PRM_QPC_LOG_MSG_MAX, GDK_QPC_LOG_MSG_MAX);
	prm_set(qpc, PRM_QPC_REMOTE_QPN, qpn);
	prm_set(path, PRM_ADS_SRC_ADDR_INDEX, (uint32_t)nic->gid_index);
	prm_set(path, PRM_ADS_HOP_LIMIT, 64);
	prm_set(path, PRM_ADS_UDP_SPORT, 0xc000);
	memcpy(path + PRM_ADS_RGID_AT, nic->gid.raw, 16);
}

static void try_steps(struct e2e_nic *nic)
{
	uint8_t in[PRM_MODIFY_QP_IN_LEN], out[PRM_CMD_OUT_LEN];
	struct mlx5dv_devx_obj *qp = NULL;
	uint32_t qpn = 0;
	doca_error_t err;
	size_t i;

	try_qp(NULL, &qp, &qpn);
	if (!qp)
		return;
	for (i = 0; i < GDK_ARRAY_SIZE(steps); i++) {
		memset(in, 0, sizeof(in));
		fill_step(in, steps[i].opcode, qpn, nic);
		put_wrong(in, &steps[i].w);
		err = gdk_devx_modify(r.ctx, qp, steps[i].name, in, sizeof(in), out, sizeof(out));
		print_answer(steps[i].name, steps[i].w.what, err, out);
	}
	memset(in, 0, sizeof(in));
	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_QP);
	prm_set(in, PRM_CMD_OBJECT, NONE_24);
	err = gdk_devx_query(r.ctx, qp, "QUERY_QP", in, PRM_CMD_IN_LEN, out, sizeof(out));
	print_answer("QUERY_QP", "for another QP than the handle's", err, out);
	prm_set(in, PRM_CMD_OBJECT, qpn);
	err = gdk_devx_query(r.ctx, qp, "QUERY_QP", in, PRM_CMD_IN_LEN, out, sizeof(out));
	print_answer("QUERY_QP", "with an output of 16 bytes", err, out);
	E2E_REQUIRE(!gdk_devx_destroy(r.ctx, qp, GDK_CMD_DESTROY_QP, "QP", qpn));
}

static void try_general(uint32_t opcode, uint32_t op_mod, const char *command, const char *what)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 }, out[PRM_QUERY_HCA_CAP_OUT_LEN];
	doca_error_t err;

	prm_set(in, PRM_CMD_OPCODE, opcode);
	prm_set(in, PRM_CMD_OP_MOD, op_mod);
	err = gdk_devx_cmd(r.ctx, command, in, sizeof(in), out, sizeof(out));
	print_answer(command, what, err, out);
}

/* ---- setting up ---- */

static void open_rig(struct e2e_nic *nic)
{
	r.ctx = nic->ctx;
	r.pdn = nic->dev->pdn;
	E2E_REQUIRE(!posix_memalign((void **)&r.mem, UMEM_BYTES, UMEM_BYTES));
	memset(r.mem, 0xff, UMEM_BYTES / 2);
	memset(r.mem + UMEM_BYTES / 2, 0, UMEM_BYTES / 2);
	E2E_REQUIRE(!doca_verbs_umem_create(nic->dev, NULL, r.mem, UMEM_BYTES,
					    IBV_ACCESS_LOCAL_WRITE,
					    (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, &r.umem));
	E2E_REQUIRE(!doca_verbs_umem_get_id(r.umem, &r.umem_id));
	E2E_REQUIRE(
		!doca_verbs_uar_create(nic->dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &r.uar) ||
		!doca_verbs_uar_create(nic->dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, &r.uar));
	E2E_REQUIRE(!doca_verbs_uar_id_get(r.uar, &r.uar_id));
	E2E_REQUIRE(!mlx5dv_devx_query_eqn(r.ctx, 0, &r.eqn));
}

static void close_rig(void)
{
	E2E_REQUIRE(!gdk_devx_destroy(r.ctx, r.cq, GDK_CMD_DESTROY_CQ, "CQ", r.cqn));
	E2E_REQUIRE(!doca_verbs_uar_destroy(r.uar));
	E2E_REQUIRE(!doca_verbs_umem_destroy(r.umem));
	free(r.mem);
}

void probe_errors(struct e2e_nic *nic)
{
	size_t i;

	open_rig(nic);
	try_cq(NULL, NULL);
	for (i = 0; i < GDK_ARRAY_SIZE(wrong_cq); i++)
		try_cq(&wrong_cq[i], NULL);
	try_cq(NULL, &r.cq);
	E2E_REQUIRE(r.cq);
	for (i = 0; i < GDK_ARRAY_SIZE(wrong_qp); i++)
		try_qp(&wrong_qp[i], NULL, NULL);
	try_steps(nic);
	try_general(CMD_NONE, 0, "command 0x7ff", "unknown to every device");
	try_general(GDK_CMD_QUERY_HCA_CAP, 0x7ffe, "QUERY_HCA_CAP", "a group that does not exist");
	try_general(GDK_CMD_QUERY_LAG, 0, "QUERY_LAG", "without an error");
	close_rig();
}
