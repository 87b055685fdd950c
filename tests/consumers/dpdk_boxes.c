/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Builds each firmware command twice with the same attributes, once with the library
 * and once with DPDK's mlx5_devx_cmds.c, and compares the command inputs ("boxes") bit
 * by bit. The library's commands go to the NIC; DPDK's are only recorded. Every
 * difference must be listed in explained[], and every entry of explained[] must occur.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

#include "dpdk_shim.h"
#include "mlx5_devx_cmds.h"

#include "../../core/nic/prm.h"
#include "../../core/util.h"
#include "../../qp/verbs/qp.h"
#include "host/gdaki.h"

#define BOX_MAX 0x200
#define LENGTH \
	UINT32_MAX /* field of an entry of explained[]: DPDK's box is longer and ends in zeros */

#define MUST(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

struct box {
	uint8_t in[BOX_MAX];
	size_t len;
};
static struct box ours[0x1000]; /* the library's last box of each command */
static struct box theirs;
static unsigned int compared, bad;

/* The box of the library's last command with the same opcode. Capability queries share
 * one opcode and are stored by group. */
static struct box *ours_like(const void *in)
{
	uint32_t opcode = (uint32_t)prm_get(in, PRM_CMD_OPCODE);

	if (opcode == GDK_CMD_QUERY_HCA_CAP)
		opcode = (uint32_t)prm_get(in, PRM_CMD_OP_MOD);
	return &ours[opcode % GDK_ARRAY_SIZE(ours)];
}

static void keep(struct box *box, const void *in, size_t len)
{
	MUST(len <= BOX_MAX);
	memset(box, 0, sizeof(*box));
	memcpy(box->in, in, len);
	box->len = len;
}

/* A layout within a command, and its first bit. */
struct part {
	const char *layout;
	uint32_t bit;
};

/* ---- the library's boxes, recorded on their way to libmlx5 ---- */

#define PASS_ON(name, type, first) \
	type name(first, const void *in, size_t inlen, void *out, size_t outlen) \
	{ \
		type (*real)(first, const void *, size_t, void *, size_t); \
\
		*(void **)&real = dlsym(RTLD_NEXT, #name); \
		keep(ours_like(in), in, inlen); \
		return real(obj, in, inlen, out, outlen); \
	}
PASS_ON(mlx5dv_devx_obj_create, struct mlx5dv_devx_obj *, struct ibv_context *obj)
PASS_ON(mlx5dv_devx_obj_modify, int, struct mlx5dv_devx_obj *obj)
PASS_ON(mlx5dv_devx_obj_query, int, struct mlx5dv_devx_obj *obj)
PASS_ON(mlx5dv_devx_general_cmd, int, struct ibv_context *obj)

/* ---- DPDK's boxes ---- */

static void *their_create(void *ctx, const void *in, size_t inlen, void *out, size_t outlen)
{
	(void)ctx;
	memset(out, 0, outlen);
	keep(&theirs, in, inlen);
	return &theirs;
}

static int their_command(void *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	return !their_create(obj, in, inlen, out, outlen);
}

static void compare(const char *box, const struct part *parts);

/* Sends DPDK's query to the NIC. Compares QUERY_LAG, and queries of capability groups that
 * the library also queries. */
static int their_query(void *ctx, const void *in, size_t inlen, void *out, size_t outlen)
{
	int (*real)(void *, const void *, size_t, void *, size_t);

	keep(&theirs, in, inlen);
	if (prm_get(in, PRM_CMD_OPCODE) == GDK_CMD_QUERY_LAG)
		compare("QUERY_LAG", NULL);
	else if (ours_like(in)->len)
		compare("QUERY_HCA_CAP", NULL);
	*(void **)&real = dlsym(RTLD_NEXT, "mlx5dv_devx_general_cmd");
	return real(ctx, in, inlen, out, outlen);
}

static int their_destroy(void *obj)
{
	(void)obj;
	return 0;
}

static const struct mlx5_glue glue = {
	.devx_obj_create = their_create,
	.devx_obj_modify = their_command,
	.devx_obj_query = their_command,
	.devx_obj_destroy = their_destroy,
	.devx_general_cmd = their_query,
};
const struct mlx5_glue *mlx5_glue = &glue;

void *mlx5_malloc(uint32_t flags, size_t size, unsigned int align, int socket)
{
	(void)flags, (void)align, (void)socket;
	return calloc(1, size);
}

void mlx5_free(void *addr)
{
	free(addr);
}

/* ---- comparison ---- */

#define IN_QPC(field)  ((field) + ((uint32_t)PRM_MODIFY_QP_QPC_AT << 16))
#define IN_PATH(field) (IN_QPC(field) + ((uint32_t)PRM_QPC_PATH_AT << 16))

static struct explained {
	const char *box;
	uint32_t field;
	const char *name, *why;
	bool seen;
} explained[] = {
#define E(box, field, why) { box, field, #field, why, false },
#include "dpdk_explained.def"
#undef E
};

static const struct place {
	const char *name, *layout;
	uint32_t bit, bits;
} places[] = {
#define FIELD(name, layout, member, bit, bits) { #member, #layout, bit, bits },
#define NEWER				       FIELD
#define NESTED(name, layout, member, bit)
#include "../lib/prm_fields.def"
};

static const struct part cq_parts[] = { { "create_cq_in", 0 }, { "cqc", 0x80 }, { NULL, 0 } };
static const struct part qp_parts[] = {
	{ "create_qp_in", 0 }, { "qpc", 0xc0 }, { "ads", 0x180 }, { NULL, 0 }
};
static const struct part rmp_parts[] = {
	{ "create_qp_in", 0 }, { "rmpc", 0x100 }, { "wq", 0x280 }, { NULL, 0 }
};

static void name_bit(const struct part *parts, uint32_t bit, char *name, size_t len)
{
	const struct place *p;

	snprintf(name, len, "a bit that belongs to no known field");
	for (; parts && parts->layout; parts++)
		for (p = places; p < places + GDK_ARRAY_SIZE(places); p++)
			if (!strcmp(p->layout, parts->layout) && bit >= parts->bit + p->bit &&
			    bit < parts->bit + p->bit + p->bits)
				snprintf(name, len, "%s.%s", p->layout, p->name);
}

static bool explains(const struct explained *e, const char *box, uint32_t bit)
{
	uint32_t width = PRM_WIDTH(e->field), first = PRM_OFFSET(e->field) * 8;

	if (e->field == LENGTH)
		return false;
	if (width != 64)
		first += 32 - PRM_LOW_BIT(e->field) - width;
	return !strncmp(box, e->box, strlen(e->box)) && bit >= first && bit < first + width;
}

static bool is_explained(const char *box, uint32_t bit)
{
	bool yes = false;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(explained); i++)
		if (explains(&explained[i], box, bit))
			yes = explained[i].seen = true;
	return yes;
}

static bool length_is_explained(const char *box)
{
	struct explained *e;

	for (e = explained; e < explained + GDK_ARRAY_SIZE(explained); e++)
		if (e->field == LENGTH && !strncmp(box, e->box, strlen(e->box)))
			return e->seen = true;
	return false;
}

/* Compares the 32-bit word at byte `at` of both boxes; prints each field that differs once. */
static void compare_word(const char *box, const struct part *parts, uint32_t at)
{
	uint32_t a = (uint32_t)prm_get(ours_like(theirs.in)->in, PRM(at, 31, 0));
	uint32_t b = (uint32_t)prm_get(theirs.in, PRM(at, 31, 0)), bit;
	char name[64], last[64] = "";

	for (bit = 0; bit < 32; bit++) {
		if (!((a ^ b) << bit >> 31) || is_explained(box, at * 8 + bit))
			continue;
		bad++;
		name_bit(parts, at * 8 + bit, name, sizeof(name));
		if (strcmp(name, last))
			printf("%s: %s differs (word 0x%03x: 0x%08x, DPDK 0x%08x)\n", box, name, at,
			       a, b);
		snprintf(last, sizeof(last), "%s", name);
	}
}

static void compare(const char *box, const struct part *parts)
{
	struct box *mine = ours_like(theirs.in);
	uint32_t at;

	compared++;
	MUST(mine->len && theirs.len);
	if (mine->len > theirs.len || (mine->len < theirs.len && !length_is_explained(box))) {
		printf("%s: 0x%zx bytes, DPDK 0x%zx\n", box, mine->len, theirs.len);
		bad++;
	}
	for (at = 0; at < BOX_MAX; at += 4)
		compare_word(box, parts, at);
	memset(mine, 0, sizeof(*mine));
	memset(&theirs, 0, sizeof(theirs));
}

static int finish(void)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(explained); i++) {
		if (explained[i].seen)
			continue;
		printf("%s: remove the entry for %s, which no longer differs: %s\n",
		       explained[i].box, explained[i].name, explained[i].why);
		bad++;
	}
	printf("%u boxes compared, %zu explained differences, %u others\n", compared,
	       GDK_ARRAY_SIZE(explained), bad);
	return bad != 0;
}

/* ---- the objects ---- */

static struct ibv_pd *pd;
static doca_dev_t *dev;

static doca_verbs_cq_t *make_cq(const char *box, uint32_t size, bool collapsed)
{
	struct mlx5_devx_cq_attr attr = { 0 };
	doca_verbs_cq_attr_t *cq_attr;
	uint32_t eqn;
	doca_verbs_cq_t *cq;

	MUST(!doca_verbs_cq_attr_create(&cq_attr));
	MUST(!doca_verbs_cq_attr_set_cq_size(cq_attr, size));
	MUST(!doca_verbs_cq_attr_set_cq_collapsed(cq_attr, collapsed));
	MUST(!doca_verbs_cq_attr_set_cq_overrun(cq_attr, collapsed));
	MUST(!doca_verbs_cq_create(dev, cq_attr, &cq));
	MUST(!doca_verbs_cq_attr_destroy(cq_attr));
	MUST(!mlx5dv_devx_query_eqn(pd->context, 0, &eqn));
	attr.use_first_only = attr.overrun_ignore = collapsed;
	attr.log_cq_size = (uint32_t)__builtin_ctz(size);
	attr.uar_page_id = cq->uar->id;
	attr.q_umem_valid = attr.db_umem_valid = 1;
	attr.q_umem_id = attr.db_umem_id = cq->umem->id;
	attr.q_umem_offset = (uint64_t)((uint8_t *)cq->buf - (uint8_t *)cq->umem->addr);
	attr.db_umem_offset = (uint64_t)((uint8_t *)cq->dbrec - (uint8_t *)cq->umem->addr);
	attr.eqn = eqn;
	MUST(mlx5_devx_cmd_create_cq(pd->context, &attr));
	compare(box, cq_parts);
	return cq;
}

struct qp_kind {
	const char *box;
	uint32_t sq_wr, rq_wr;
	uint8_t cd_master, no_dbr;
};

static doca_verbs_qp_t *make_qp(const struct qp_kind *k, doca_verbs_cq_t *cq)
{
	struct mlx5_devx_qp_attr attr = { 0 };
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_t *qp;

	MUST(!doca_verbs_qp_init_attr_create(&init));
	MUST(!doca_verbs_qp_init_attr_set_pd(init, dev));
	MUST(!doca_verbs_qp_init_attr_set_send_cq(init, cq));
	MUST(!doca_verbs_qp_init_attr_set_receive_cq(init, cq));
	MUST(!doca_verbs_qp_init_attr_set_sq_wr(init, k->sq_wr));
	MUST(!doca_verbs_qp_init_attr_set_rq_wr(init, k->rq_wr));
	MUST(!doca_verbs_qp_init_attr_set_send_max_sges(init, 1));
	MUST(!doca_verbs_qp_init_attr_set_receive_max_sges(init, 1));
	MUST(!doca_verbs_qp_init_attr_set_user_index(init, 0x1234));
	MUST(!doca_verbs_qp_init_attr_set_core_direct_master(init, k->cd_master));
	if (k->no_dbr)
		MUST(!doca_verbs_qp_init_attr_set_send_dbr_mode(
			init, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT));
	MUST(!doca_verbs_qp_create(dev, init, &qp));
	MUST(!doca_verbs_qp_init_attr_destroy(init));
	attr.pd = dev->pdn;
	attr.uar_index = qp->uar->id;
	attr.cqn = cq->cqn;
	attr.num_of_send_wqbbs = qp->sq_num;
	attr.num_of_receive_wqes = qp->rq_num;
	attr.log_rq_stride = qp->rq_num ? (uint32_t)__builtin_ctz(qp->rwqe_size) : 0;
	attr.dbr_umem_valid = 1;
	attr.dbr_umem_id = qp->umem_dbr->id;
	attr.dbr_address = (uint64_t)((uint8_t *)qp->dbrec - (uint8_t *)qp->umem_dbr->addr);
	attr.wq_umem_id = qp->umem->id;
	attr.wq_umem_offset = (uint64_t)((uint8_t *)(qp->rq_num ? qp->rq_buf : qp->sq_buf) -
					 (uint8_t *)qp->umem->addr);
	attr.user_index = 0x1234;
	attr.cd_master = k->cd_master;
	MUST(mlx5_devx_cmd_create_qp(pd->context, &attr));
	compare(k->box, qp_parts);
	return qp;
}

static void make_srq(void)
{
	struct mlx5_devx_create_rmp_attr attr = { 0 };
	struct mlx5_devx_wq_attr *wq = &attr.wq_attr;
	struct doca_verbs_srq_init_attr *init;
	struct doca_verbs_srq *srq;

	MUST(!doca_verbs_srq_init_attr_create(&init));
	MUST(!doca_verbs_srq_init_attr_set_pd(init, pd));
	MUST(!doca_verbs_srq_init_attr_set_srq_wr(init, 32));
	MUST(!doca_verbs_srq_init_attr_set_receive_max_sges(init, 1));
	MUST(!doca_verbs_srq_init_attr_set_type(init, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS));
	MUST(!doca_verbs_srq_create(pd->context, init, &srq));
	MUST(!doca_verbs_srq_init_attr_destroy(init));
	attr.state = 1; /* ready */
	attr.basic_cyclic_rcv_wqe = 1;
	wq->wq_type = 1; /* cyclic */
	wq->end_padding_mode = 1;
	wq->pd = dev->pdn;
	wq->log_wq_sz = 5;
	wq->log_wq_stride = (uint32_t)__builtin_ctz(srq->wqe_size);
	wq->wq_umem_valid = wq->dbr_umem_valid = 1;
	wq->wq_umem_id = wq->dbr_umem_id = srq->own_devx->umem_id;
	wq->wq_umem_offset = (uint64_t)((uint8_t *)srq->buf - (uint8_t *)srq->own_mem);
	wq->dbr_addr = (uint64_t)((uint8_t *)srq->dbrec - (uint8_t *)srq->own_mem);
	MUST(mlx5_devx_cmd_create_rmp(pd->context, &attr, 0));
	compare("CREATE_RMP", rmp_parts);
	MUST(!doca_verbs_srq_destroy(srq));
}

/* ---- transitions: DPDK's builder has fixed attributes, which the library gets too ---- */

#define A(name) DOCA_VERBS_QP_ATTR_##name

static void move(const char *box, doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr,
		 enum doca_verbs_qp_state to, int mask, uint32_t opcode)
{
	struct mlx5_devx_obj obj = { .obj = &theirs, .id = (int)qp->qpn };

	MUST(!doca_verbs_qp_attr_set_next_state(attr, to));
	MUST(!doca_verbs_qp_modify(qp, attr, mask | A(NEXT_STATE)));
	if (!opcode)
		return;
	MUST(!mlx5_devx_cmd_modify_qp_state(&obj, opcode, qp->qpn));
	compare(box, qp_parts);
}

static doca_verbs_qp_attr_t *path_to(doca_verbs_qp_t *qp)
{
	doca_verbs_qp_attr_t *attr;
	doca_verbs_ah_attr_t *ah;
	struct doca_verbs_gid to;
	union ibv_gid gid;

	MUST(!ibv_query_gid(pd->context, 1, 3, &gid));
	memcpy(to.raw, gid.raw, sizeof(to.raw));
	MUST(!doca_verbs_ah_attr_create(dev, &ah));
	MUST(!doca_verbs_ah_attr_set_gid(ah, to));
	MUST(!doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4));
	MUST(!doca_verbs_ah_attr_set_sgid_index(ah, 3));
	MUST(!doca_verbs_ah_attr_set_hop_limit(ah, 64));
	MUST(!doca_verbs_qp_attr_create(&attr));
	MUST(!doca_verbs_qp_attr_set_ah_attr(attr, ah));
	MUST(!doca_verbs_ah_attr_destroy(ah));
	MUST(!doca_verbs_qp_attr_set_port_num(attr, 1));
	MUST(!doca_verbs_qp_attr_set_allow_remote_read(attr, 1));
	MUST(!doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	MUST(!doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_256_BYTES));
	MUST(!doca_verbs_qp_attr_set_dest_qp_num(attr, qp->qpn));
	MUST(!doca_verbs_qp_attr_set_min_rnr_timer(attr, 0));
	MUST(!doca_verbs_qp_attr_set_ack_timeout(attr, 16));
	MUST(!doca_verbs_qp_attr_set_retry_cnt(attr, 7));
	MUST(!doca_verbs_qp_attr_set_rnr_retry(attr, 7));
	return attr;
}

static void transitions(doca_verbs_qp_t *qp)
{
	doca_verbs_qp_attr_t *attr = path_to(qp);

	move("RST2INIT", qp, attr, DOCA_VERBS_QP_STATE_INIT,
	     A(PORT_NUM) | A(PKEY_INDEX) | A(ALLOW_REMOTE_READ) | A(ALLOW_REMOTE_WRITE),
	     MLX5_CMD_OP_RST2INIT_QP);
	move("INIT2RTR", qp, attr, DOCA_VERBS_QP_STATE_RTR,
	     A(AH_ATTR) | A(PATH_MTU) | A(DEST_QP_NUM) | A(RQ_PSN) | A(MIN_RNR_TIMER),
	     MLX5_CMD_OP_INIT2RTR_QP);
	move("RTR2RTS", qp, attr, DOCA_VERBS_QP_STATE_RTS,
	     A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY), MLX5_CMD_OP_RTR2RTS_QP);
	move("2ERR", qp, attr, DOCA_VERBS_QP_STATE_ERR, 0, 0); /* DPDK has no builder for it */
	move("2RST", qp, attr, DOCA_VERBS_QP_STATE_RST, 0, MLX5_CMD_OP_QP_2RST);
	MUST(!doca_verbs_qp_attr_destroy(attr));
}

/* ---- queries ---- */

static void queries(doca_verbs_cq_t *cq)
{
	struct mlx5_devx_obj obj = { .obj = &theirs, .id = (int)cq->cqn };
	struct mlx5_devx_lag_context lag;
	struct mlx5_hca_attr attr;
	uint32_t out[0x200], producer, before = compared;

	MUST(!gdk_cq_query_producer(cq, &producer));
	MUST(!mlx5_devx_cmd_query_cq(&obj, out, sizeof(out)));
	compare("QUERY_CQ", cq_parts);
	MUST(!mlx5_devx_cmd_query_lag(pd->context, &lag));
	/* This call fails at the first capability group that the NIC lacks. */
	mlx5_devx_cmd_query_hca_attr(pd->context, &attr);
	MUST(compared - before >= 4);
}

int main(void)
{
	static const struct qp_kind kinds[] = {
		{ "CREATE_QP of 64 send slots", 64, 0, 0, 0 },
		{ "CREATE_QP of 32 send slots and 16 receive WQEs", 32, 16, 0, 0 },
		{ "CREATE_QP of a WAIT master", 16, 0, 1, 0 },
		{ "CREATE_QP without DBREC", 16, 0, 0, 1 },
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	doca_verbs_cq_t *cq, *collapsed;
	doca_verbs_qp_t *qp;
	size_t i;

	MUST(ctx);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	MUST(pd && !doca_verbs_dev_open(pd, &dev));
	cq = make_cq("CREATE_CQ of 128 entries", 128, false);
	collapsed = make_cq("CREATE_CQ, collapsed", 64, true);
	for (i = 0; i < GDK_ARRAY_SIZE(kinds); i++) {
		qp = make_qp(&kinds[i], cq);
		if (!i)
			transitions(qp);
		MUST(!doca_verbs_qp_destroy(qp));
	}
	make_srq();
	queries(cq);
	MUST(!doca_verbs_cq_destroy(cq) && !doca_verbs_cq_destroy(collapsed));
	MUST(!doca_verbs_dev_close(dev) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	return finish();
}
