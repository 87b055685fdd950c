/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Execution of firmware (DEVX) commands: dispatch, injected failures, check of reserved
 * bits, status and syndrome in the output. Also the commands of completion queues. The
 * other cmd_*.c files have the commands of the other objects.
 */
#include "eth.h"
#include "front.h"
#include "prm_nic.h"

#include <errno.h>
#include <stdlib.h>

static const struct command {
	uint16_t opcode;
	enum sn_cmd_class class;
	const char *name;
	uint8_t (*fn)(struct sn_cmd *cmd);
} commands[] = {
	{ OP_QUERY_HCA_CAP, SN_CMD_GENERAL, "QUERY_HCA_CAP", sn_cmd_query_hca_cap },
	{ OP_QUERY_ROCE_ADDRESS, SN_CMD_GENERAL, "QUERY_ROCE_ADDRESS", sn_cmd_query_roce_address },
	{ OP_QUERY_LAG, SN_CMD_GENERAL, "QUERY_LAG", sn_cmd_query_lag },
	{ OP_CREATE_MKEY, SN_CMD_CREATE, "CREATE_MKEY", sn_cmd_create_mkey },
	{ OP_QUERY_MKEY, SN_CMD_QUERY, "QUERY_MKEY", sn_cmd_query_mkey },
	{ OP_CREATE_CQ, SN_CMD_CREATE, "CREATE_CQ", sn_cmd_create_cq },
	{ OP_MODIFY_CQ, SN_CMD_MODIFY, "MODIFY_CQ", sn_cmd_modify_cq },
	{ OP_QUERY_CQ, SN_CMD_QUERY, "QUERY_CQ", sn_cmd_query_cq },
	{ OP_CREATE_QP, SN_CMD_CREATE, "CREATE_QP", sn_cmd_create_qp },
	{ OP_RST2INIT, SN_CMD_MODIFY, "RST2INIT_QP", sn_cmd_modify_qp },
	{ OP_INIT2INIT, SN_CMD_MODIFY, "INIT2INIT_QP", sn_cmd_modify_qp },
	{ OP_INIT2RTR, SN_CMD_MODIFY, "INIT2RTR_QP", sn_cmd_modify_qp },
	{ OP_RTR2RTS, SN_CMD_MODIFY, "RTR2RTS_QP", sn_cmd_modify_qp },
	{ OP_RTS2RTS, SN_CMD_MODIFY, "RTS2RTS_QP", sn_cmd_modify_qp },
	{ OP_SQERR2RTS, SN_CMD_MODIFY, "SQERR2RTS_QP", sn_cmd_modify_qp },
	{ OP_2ERR, SN_CMD_MODIFY, "2ERR_QP", sn_cmd_modify_qp },
	{ OP_2RST, SN_CMD_MODIFY, "2RST_QP", sn_cmd_modify_qp },
	{ OP_QUERY_QP, SN_CMD_QUERY, "QUERY_QP", sn_cmd_query_qp },
	{ OP_CREATE_RMP, SN_CMD_CREATE, "CREATE_RMP", sn_cmd_create_rmp },
	{ OP_MODIFY_RMP, SN_CMD_MODIFY, "MODIFY_RMP", sn_cmd_modify_rmp },
	{ OP_QUERY_RMP, SN_CMD_QUERY, "QUERY_RMP", sn_cmd_query_rmp },
	{ OP_ALLOC_Q_COUNTER, SN_CMD_CREATE, "ALLOC_Q_COUNTER", sn_cmd_alloc_q_counter },
	{ OP_QUERY_Q_COUNTER, SN_CMD_QUERY, "QUERY_Q_COUNTER", sn_cmd_query_q_counter },
	{ OP_ALLOC_TD, SN_CMD_CREATE, "ALLOC_TRANSPORT_DOMAIN", sn_cmd_alloc_td },
	{ OP_CREATE_TIS, SN_CMD_CREATE, "CREATE_TIS", sn_cmd_create_tis },
	{ OP_MODIFY_TIS, SN_CMD_MODIFY, "MODIFY_TIS", sn_cmd_modify_tis },
	{ OP_QUERY_TIS, SN_CMD_QUERY, "QUERY_TIS", sn_cmd_query_tis },
	{ OP_CREATE_RQT, SN_CMD_CREATE, "CREATE_RQT", sn_cmd_create_rqt },
	{ OP_MODIFY_RQT, SN_CMD_MODIFY, "MODIFY_RQT", sn_cmd_modify_rqt },
	{ OP_QUERY_RQT, SN_CMD_QUERY, "QUERY_RQT", sn_cmd_query_rqt },
	{ OP_CREATE_TIR, SN_CMD_CREATE, "CREATE_TIR", sn_cmd_create_tir },
	{ OP_MODIFY_TIR, SN_CMD_MODIFY, "MODIFY_TIR", sn_cmd_modify_tir },
	{ OP_QUERY_TIR, SN_CMD_QUERY, "QUERY_TIR", sn_cmd_query_tir },
	{ OP_CREATE_SQ, SN_CMD_CREATE, "CREATE_SQ", sn_cmd_create_sq },
	{ OP_MODIFY_SQ, SN_CMD_MODIFY, "MODIFY_SQ", sn_cmd_modify_sq },
	{ OP_QUERY_SQ, SN_CMD_QUERY, "QUERY_SQ", sn_cmd_query_sq },
	{ OP_CREATE_RQ, SN_CMD_CREATE, "CREATE_RQ", sn_cmd_create_rq },
	{ OP_MODIFY_RQ, SN_CMD_MODIFY, "MODIFY_RQ", sn_cmd_modify_rq },
	{ OP_QUERY_RQ, SN_CMD_QUERY, "QUERY_RQ", sn_cmd_query_rq },
	{ OP_ALLOC_FLOW_COUNTER, SN_CMD_CREATE, "ALLOC_FLOW_COUNTER", sn_cmd_alloc_flow_counter },
	{ OP_QUERY_FLOW_COUNTER, SN_CMD_QUERY, "QUERY_FLOW_COUNTER", sn_cmd_query_flow_counter },
};

uint8_t sn_cmd_fail(struct sn_cmd *cmd, uint8_t status, uint32_t syndrome, const char *why)
{
	cmd->syndrome = syndrome;
	sn_trace("command %#x refused: %s (status %#x, syndrome %#x)", cmd->opcode, why, status,
		 syndrome);
	return status;
}

bool sn_cmd_owns(const struct sn_cmd *cmd, uint32_t handle)
{
	return cmd->dev->front->handles[handle].ctx == cmd->ctx;
}

static uint8_t check_word(struct sn_cmd *cmd, size_t at, uint32_t mask)
{
	uint32_t bad = nic_word(cmd->in, (uint32_t)at) & ~mask;

	if (!bad)
		return SN_OK;
	sn_violation(&cmd->dev->stats.bad_reserved,
		     "refusing command %#x: reserved bits %#x set in the word at %#zx", cmd->opcode,
		     bad, at);
	return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x700000 | (uint32_t)at, "reserved bits set");
}

uint8_t sn_cmd_reserved_head(struct sn_cmd *cmd, const uint32_t *mask, uint32_t words)
{
	uint8_t st = SN_OK;
	uint32_t i;

	if (cmd->in_len < words * 4)
		return sn_cmd_fail(cmd, SN_ST_BAD_INP_LEN, 0x600000 | cmd->opcode,
				   "input too short");
	for (i = 0; i < words && !st; i++)
		st = check_word(cmd, i * 4, mask[i]);
	return st;
}

uint8_t sn_cmd_reserved_at(struct sn_cmd *cmd, size_t at, const uint32_t *mask, uint32_t words)
{
	uint8_t st = SN_OK;
	uint32_t i;

	if (cmd->in_len < at + 4 * words)
		return sn_cmd_fail(cmd, SN_ST_BAD_INP_LEN, 0x600000 | cmd->opcode,
				   "input too short");
	for (i = 0; i < words && !st; i++)
		st = check_word(cmd, at + 4 * i, mask[i]);
	return st ? st : sn_cmd_reserved_rest(cmd, at + 4 * words);
}

uint8_t sn_cmd_reserved_rest(struct sn_cmd *cmd, size_t from)
{
	uint8_t st = SN_OK;

	for (; from + 4 <= cmd->in_len && !st; from += 4)
		st = check_word(cmd, from, 0);
	return st;
}

uint8_t sn_cmd_reserved(struct sn_cmd *cmd, const uint32_t *mask, uint32_t words)
{
	uint8_t st = sn_cmd_reserved_head(cmd, mask, words);

	return st ? st : sn_cmd_reserved_rest(cmd, words * 4);
}

uint64_t sn_cmd_umem(struct sn_cmd *cmd, uint32_t id, uint64_t off, uint64_t len)
{
	struct sn_umem *u = sn_find_umem(cmd->dev, id);

	if (!u || off > u->len || len > u->len - off)
		return 0;
	return u->va + off;
}

static const struct command *find_command(uint16_t opcode, enum sn_cmd_class class)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].opcode == opcode && commands[i].class == class)
			return &commands[i];
	return NULL;
}

/* Where the objects that DEVX commands can use have their handle and number. */
#define PLACE(type, number) \
	{ \
		offsetof(struct type, handle), offsetof(struct type, number) \
	}

static const struct {
	size_t handle, number;
} places[] = {
	[SN_QP] = PLACE(sn_qp, qpn),
	[SN_SQ] = PLACE(sn_qp, qpn),
	[SN_RQ] = PLACE(sn_qp, qpn),
	[SN_WQ] = PLACE(sn_qp, qpn),
	[SN_CQ] = PLACE(sn_cq, cqn),
	[SN_SRQ] = PLACE(sn_srq, srqn),
	[SN_MKEY] = PLACE(sn_mr, lkey),
	[SN_TD] = PLACE(sn_td, tdn),
	[SN_TIS] = PLACE(sn_tis, tisn),
	[SN_RQT] = PLACE(sn_rqt, rqtn),
	[SN_TIR] = PLACE(sn_tir, tirn),
	[SN_COUNTER_SET] = PLACE(sn_counter_set, id),
	[SN_FLOW_COUNTER] = PLACE(sn_flow_counter, id),
};

static uint32_t word_at(const void *obj, size_t offset)
{
	uint32_t word;

	memcpy(&word, (const char *)obj + offset, sizeof(word));
	return word;
}

uint32_t sn_obj_number(enum sn_kind kind, const void *obj)
{
	uint32_t number = word_at(obj, places[kind].number);

	return kind == SN_MKEY ? number >> 8 : number;
}

uint32_t sn_obj_handle(enum sn_kind kind, const void *obj)
{
	return word_at(obj, places[kind].handle);
}

/* The commands that use an object, by kind. An RQ of verbs accepts the commands of RQs. */
static const struct family {
	enum sn_kind kind;
	uint16_t first, last; /* opcodes */
	uint32_t number;      /* field with the object's number */
} families[] = {
	{ SN_MKEY, 0x200, 0x2ff, IN_OBJ },
	{ SN_CQ, 0x400, 0x4ff, IN_OBJ },
	{ SN_QP, 0x500, 0x5ff, IN_OBJ },
	{ SN_COUNTER_SET, OP_QUERY_Q_COUNTER, OP_QUERY_Q_COUNTER, QUERY_COUNTER_SET },
	{ SN_TIR, OP_CREATE_TIR, OP_QUERY_TIR, IN_OBJ },
	{ SN_SQ, OP_CREATE_SQ, OP_QUERY_SQ, IN_OBJ },
	{ SN_RQ, OP_CREATE_RQ, OP_QUERY_RQ, IN_OBJ },
	{ SN_WQ, OP_CREATE_RQ, OP_QUERY_RQ, IN_OBJ },
	{ SN_SRQ, OP_CREATE_RMP, OP_QUERY_RMP, IN_OBJ },
	{ SN_TIS, OP_CREATE_TIS, OP_QUERY_TIS, IN_OBJ },
	{ SN_RQT, OP_CREATE_RQT, OP_QUERY_RQT, IN_OBJ },
	{ SN_FLOW_COUNTER, OP_QUERY_FLOW_COUNTER, OP_QUERY_FLOW_COUNTER, QUERY_FLOW_COUNTER },
};

/* Replaces a raw packet QP of verbs by the part of it whose command this is; an RSS QP has only a
 * TIR. */
static void select_part(struct sn_cmd *cmd)
{
	const struct sn_raw *raw = cmd->obj;

	switch (cmd->opcode) {
	case OP_MODIFY_TIR:
	case OP_QUERY_TIR:
		cmd->kind = SN_TIR;
		cmd->obj = raw->tir;
		break;
	case OP_MODIFY_SQ:
	case OP_QUERY_SQ:
		cmd->kind = SN_SQ;
		cmd->obj = raw->sq;
		break;
	case OP_MODIFY_RQ:
	case OP_QUERY_RQ:
		cmd->kind = SN_RQ;
		cmd->obj = raw->rq;
		break;
	case OP_MODIFY_TIS:
	case OP_QUERY_TIS:
		cmd->kind = SN_TIS;
		cmd->obj = raw->sq ? raw->sq->eth->tis : NULL;
		break;
	}
}

/* True unless a MODIFY or QUERY command names another object than that of its handle. The kernel
 * makes the same check. */
static bool names_own_object(struct sn_cmd *cmd, enum sn_cmd_class class)
{
	const struct family *f = families, *end = f + sizeof(families) / sizeof(families[0]);

	if (class != SN_CMD_MODIFY && class != SN_CMD_QUERY)
		return true;
	if (cmd->kind == SN_RAW)
		select_part(cmd);
	if (cmd->kind == SN_IND_TABLE) {
		cmd->obj = ((const struct sn_ind_table *)cmd->obj)->rqt;
		cmd->kind = SN_RQT;
	}
	for (; cmd->obj && f < end; f++)
		if (f->kind == cmd->kind && cmd->opcode >= f->first && cmd->opcode <= f->last)
			return cmd->in_len >= (f->number >> 16) + 4 &&
			       nic_get(cmd->in, f->number) == sn_obj_number(cmd->kind, cmd->obj);
	return false;
}

static uint8_t run(struct sn_cmd *cmd, const struct command *c)
{
	struct sn_cfg *cfg = &cmd->dev->cfg;

	if (++cmd->dev->front->cmds == cfg->fail_cmd_nth) {
		cmd->dev->stats.faults_injected++;
		return sn_cmd_fail(cmd, cfg->fail_cmd_status, cfg->fail_cmd_syndrome,
				   "injected failure");
	}
	if (!c) {
		sn_violation(&cmd->dev->stats.bad_command, "refusing command %#x: unknown opcode",
			     cmd->opcode);
		return sn_cmd_fail(cmd, SN_ST_BAD_OP, 0x800000 | cmd->opcode, "unknown opcode");
	}
	return c->fn(cmd);
}

/* If cfg.trace is set, traces the input, four words per line, without lines of zeros. */
static void trace_input(const struct sn_cmd *cmd)
{
	const uint8_t *p = cmd->in;
	size_t at;

	for (at = 0; cmd->dev->cfg.trace && at + 16 <= cmd->in_len; at += 16) {
		if (!nic_get64(p, (uint32_t)at) && !nic_get64(p, (uint32_t)at + 8))
			continue;
		sn_trace("command %#x in %04zx: %08x %08x %08x %08x", cmd->opcode, at,
			 nic_word(p, (uint32_t)at), nic_word(p, (uint32_t)at + 4),
			 nic_word(p, (uint32_t)at + 8), nic_word(p, (uint32_t)at + 12));
	}
}

int sn_cmd_exec(struct sn_cmd *cmd, enum sn_cmd_class class)
{
	const struct command *c;
	uint8_t status;

	cmd->opcode = (uint16_t)nic_get(cmd->in, IN_OPCODE);
	c = find_command(cmd->opcode, class);
	cmd->dev->stats.commands++;
	trace_input(cmd);
	if (c && !names_own_object(cmd, class))
		return -EINVAL;
	status = run(cmd, c);
	nic_set(cmd->out, OUT_STATUS, status);
	nic_set(cmd->out, OUT_SYNDROME, status ? cmd->syndrome : 0);
	sn_trace("command %s (%#x): status %#x", c ? c->name : "?", cmd->opcode, status);
	if (!status)
		return 0;
	cmd->dev->stats.commands_failed++;
	return -EREMOTEIO;
}

/* ---- completion queues ---- */
static const uint32_t create_cq_mask[0x60 / 4] = {
	[0x00 / 4] = 0xffffffff, [0x04 / 4] = 0x0000ffff, [0x10 / 4] = 0xfef7ff7f,
	[0x14 / 4] = 0xffffffff, [0x18 / 4] = 0x00000fcf, [0x1c / 4] = 0x1fffffff,
	[0x20 / 4] = 0x0fffffff, [0x24 / 4] = 0x000000ff, [0x28 / 4] = 0x1f000000,
	[0x30 / 4] = 0x00ffffff, [0x34 / 4] = 0x00ffffff, [0x38 / 4] = 0x00ffffff,
	[0x3c / 4] = 0x00ffffff, [0x48 / 4] = 0xffffffff, [0x4c / 4] = 0xffffffff,
	[0x50 / 4] = 0xffffffff, [0x54 / 4] = 0xffffffff, [0x58 / 4] = 0xffffffff,
	[0x5c / 4] = 0x80000000,
};

static uint8_t cq_read(struct sn_cmd *cmd, struct sn_cq *cq)
{
	const uint8_t *cqc = cmd->in + CMD_CQC;
	uint32_t sz = nic_get(cqc, CQC_CQE_SZ), dbr_id = nic_get(cqc, CQC_DBR_UMEM_ID);
	uint32_t ring_id = nic_get(cmd->in, CREATE_CQ_UMEM_ID);
	uint32_t eqn = nic_get(cqc, CQC_C_EQN);
	struct sn_ring ring = { .umem = ring_id,
				.offset = nic_get64(cmd->in, CREATE_CQ_UMEM_OFFSET),
				.page_offset = nic_get(cqc, CQC_PAGE_OFFSET) };
	uint8_t st;

	cq->log_size = (uint8_t)nic_get(cqc, CQC_LOG_CQ_SIZE);
	if (sz > 1 || cq->log_size > SN_MAX_CQ_LOG || nic_get(cqc, CQC_CQE_COMP_EN))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x400001, "unsupported CQ or CQE size");
	cq->cqe_size = sz ? 128 : 64;
	cq->cc = nic_get(cqc, CQC_CC);
	cq->oi = nic_get(cqc, CQC_OI);
	cq->devx = true;
	cq->uar = nic_get(cqc, CQC_UAR_PAGE);
	if (!sn_find_uar(cmd->dev, cq->uar))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x400002, "no such UAR");
	if (eqn < SN_EQN_BASE || eqn >= SN_EQN_BASE + SN_COMP_VECTORS)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x400003, "no such EQ");
	ring.len = cq->cc ? cq->cqe_size : (uint64_t)cq->cqe_size << cq->log_size;
	cq->eqn = eqn;
	cq->mod_period = (uint16_t)nic_get(cqc, CQC_PERIOD);
	cq->mod_count = (uint16_t)nic_get(cqc, CQC_MAX_COUNT);
	cq->dbr = sn_cmd_umem(cmd, dbr_id, nic_get64(cqc, CQC_DBR_ADDR), 8);
	st = sn_cmd_ring(cmd, &ring, 0x400004, &cq->buf);
	if (st)
		return st;
	if (!cq->dbr || cq->dbr & 7)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x400005,
				   "DBREC outside its umem or misaligned");
	cq->umems[0] = sn_find_umem(cmd->dev, ring_id);
	cq->umems[1] = sn_find_umem(cmd->dev, dbr_id);
	return SN_OK;
}

uint8_t sn_cmd_create_cq(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, create_cq_mask, 0x60 / 4);
	struct sn_cq *cq;

	if (st)
		return st;
	if (cmd->out_len < 0x10)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x400006, "output too short");
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x400007, "out of memory");
	st = cq_read(cmd, cq);
	if (!st && sn_cq_add(cmd->dev, cmd->ctx, cq))
		st = sn_cmd_fail(cmd, SN_ST_NO_RES, 0x400008, "no CQ number left");
	if (st) {
		free(cq);
		return st;
	}
	cmd->kind = SN_CQ;
	cmd->obj = cq;
	nic_set(cmd->out, OUT_OBJ, cq->cqn);
	return SN_OK;
}

/* Changes the fields that field_select names: moderation of events, and whether overrun is
 * checked. */
uint8_t sn_cmd_modify_cq(struct sn_cmd *cmd)
{
	static const uint32_t mask[0x60 / 4] = {
		[0x00 / 4] = 0xffffffff, [0x08 / 4] = 0x00ffffff, [0x0c / 4] = 0xffffffff,
		[0x10 / 4] = 0xfef7ff7f, [0x14 / 4] = 0xffffffff, [0x18 / 4] = 0x00000fcf,
		[0x1c / 4] = 0x1fffffff, [0x20 / 4] = 0x0fffffff, [0x24 / 4] = 0x000000ff,
		[0x28 / 4] = 0x1f000000,
	};
	const uint32_t known = CQ_MODIFY_PERIOD | CQ_MODIFY_COUNT | CQ_MODIFY_OVERRUN;
	uint8_t st = sn_cmd_reserved(cmd, mask, 0x60 / 4);
	const uint8_t *cqc = cmd->in + CMD_CQC;
	struct sn_cq *cq = cmd->obj;
	uint32_t select, count = cq->mod_count, period = cq->mod_period;

	if (st)
		return st;
	select = nic_get(cmd->in, MODIFY_CQ_SELECT);
	if (select & ~known)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x403002,
				   "field_select names a field that cannot change");
	if (select & CQ_MODIFY_PERIOD)
		period = nic_get(cqc, CQC_PERIOD);
	if (select & CQ_MODIFY_COUNT)
		count = nic_get(cqc, CQC_MAX_COUNT);
	if (select & CQ_MODIFY_OVERRUN)
		cq->oi = nic_get(cqc, CQC_OI);
	sn_eng_cq_moderate(cmd->dev, cq, (uint16_t)count, (uint16_t)period);
	return SN_OK;
}

/* Returns the producer counter for a query. cfg.cq_behind models a device whose cached context
 * lags behind the ring. */
static uint32_t cq_producer(const struct sn_cmd *cmd, const struct sn_cq *cq)
{
	uint64_t behind = cmd->dev->cfg.cq_behind;

	return (uint32_t)(cq->pi > behind ? cq->pi - behind : 0);
}

uint8_t sn_cmd_query_cq(struct sn_cmd *cmd)
{
	static const uint32_t mask[] = { 0xffffffff, 0x0000ffff, 0x00ffffff, 0 };
	const struct sn_cq *cq = cmd->obj;
	uint8_t *cqc = cmd->out + CMD_CQC, st = sn_cmd_reserved(cmd, mask, 4);

	if (st)
		return st;
	if (cmd->out_len < 0x50)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x402001, "output too short");
	nic_set(cqc, CQC_STATUS, cq->error ? 0x9 : 0); /* CQ overflow, reported for any error */
	nic_set(cqc, CQC_CQE_SZ, cq->cqe_size == 128);
	nic_set(cqc, CQC_CC, cq->cc);
	nic_set(cqc, CQC_OI, cq->oi);
	nic_set(cqc, CQC_LOG_CQ_SIZE, cq->log_size);
	nic_set(cqc, CQC_UAR_PAGE, cq->uar);
	nic_set(cqc, CQC_PERIOD, cq->mod_period);
	nic_set(cqc, CQC_MAX_COUNT, cq->mod_count);
	nic_set(cqc, CQC_C_EQN, cq->eqn);
	nic_set(cqc, CQC_PRODUCER, cq_producer(cmd, cq));
	return SN_OK;
}
