/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The commands of the Ethernet objects without a ring: transport domains, TISes, tables
 * of RQs, TIRs and sets of queue counters. eth_objects.c has their life cycles.
 */
#include "eth.h"
#include "front.h"
#include "prm_nic.h"

#include <stdlib.h>

#define W(off) ((off) / 4)

static const uint32_t short_mask[4] = { 0xffffffff, 0x0000ffff, 0x00ffffff, 0 };

/* Stores the result of a command that creates an object. */
static uint8_t created(struct sn_cmd *cmd, enum sn_kind kind, void *obj)
{
	cmd->kind = kind;
	cmd->obj = obj;
	nic_set(cmd->out, OUT_OBJ, sn_obj_number(kind, obj));
	return SN_OK;
}

/* Checks the mask and the output of a command that creates an object. */
static uint8_t check_create(struct sn_cmd *cmd, const uint32_t *mask, uint32_t words)
{
	uint8_t st = sn_cmd_reserved(cmd, mask, words);

	if (!st && cmd->out_len < 0x10)
		st = sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x900001, "output too short");
	return st;
}

static uint8_t no_number(struct sn_cmd *cmd)
{
	return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x900002, "no number or memory left");
}

/* Reads modify_bitmask and refuses bits that are not in `known`. */
static uint8_t read_bitmask(struct sn_cmd *cmd, uint32_t known, uint32_t *bits)
{
	*bits = nic_get(cmd->in, MODIFY_ETH_MASK);
	if (*bits & ~known || nic_get(cmd->in, MODIFY_ETH_MASK_HI))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x900003,
				   "modify_bitmask names a field that cannot change");
	return SN_OK;
}

/* ---- transport domains ---- */
uint8_t sn_cmd_alloc_td(struct sn_cmd *cmd)
{
	static const uint32_t mask[4] = { 0xffffffff, 0x0000ffff, 0, 0 };
	uint8_t st = check_create(cmd, mask, 4);
	struct sn_td *td;

	if (st)
		return st;
	td = sn_td_create(cmd->dev, cmd->ctx);
	return td ? created(cmd, SN_TD, td) : no_number(cmd);
}

/* ---- sets of queue counters ---- */
uint8_t sn_cmd_alloc_q_counter(struct sn_cmd *cmd)
{
	static const uint32_t mask[4] = { 0xffffffff, 0x0000ffff, 0, 0 };
	uint8_t st = check_create(cmd, mask, 4);
	struct sn_counter_set *set;

	if (st)
		return st;
	set = sn_counter_set_create(cmd->dev, cmd->ctx);
	return set ? created(cmd, SN_COUNTER_SET, set) : no_number(cmd);
}

/* Only out_of_buffer is counted; the counters of RoCE read as 0. */
uint8_t sn_cmd_query_q_counter(struct sn_cmd *cmd)
{
	static const uint32_t mask[8] = {
		[W(0x00)] = 0xffffffff, [W(0x04)] = 0x0000ffff, [W(0x08)] = 0x8000ffff,
		[W(0x18)] = 0xc0000000, [W(0x1c)] = 0x000000ff,
	};
	struct sn_counter_set *set = cmd->obj;
	uint8_t st = sn_cmd_reserved(cmd, mask, 8);

	if (st)
		return st;
	if (cmd->out_len < 0x100)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x773001, "output too short");
	if (nic_get(cmd->in, QUERY_COUNTER_OTHER) || nic_get(cmd->in, QUERY_COUNTER_VPORT) ||
	    nic_get(cmd->in, QUERY_COUNTER_TOTAL))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x773002,
				   "counters of other ports and sums not supported");
	nic_set(cmd->out, QUERY_COUNTER_NO_WQE, (uint32_t)set->out_of_buffer);
	if (nic_get(cmd->in, QUERY_COUNTER_CLEAR))
		set->out_of_buffer = 0;
	return SN_OK;
}

/* ---- TISes ---- */
#define TISC_MASK(at) \
	[W(at + 0x00)] = 0xcf0f0000, [W(at + 0x24)] = 0x00ffffff, [W(at + 0x28)] = 0x00ffffff, \
		[W(at + 0x2c)] = 0x00ffffff

static uint8_t read_tis(struct sn_cmd *cmd, struct sn_tis *tis, uint32_t which)
{
	const uint8_t *tisc = cmd->in + CMD_ETHC;
	uint8_t ports = cmd->dev->cfg.lag_ports ? cmd->dev->cfg.lag_ports : 1;

	if (nic_get(tisc, TISC_TLS) || nic_get(tisc, TISC_UNDERLAY_QPN))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x912001, "TLS and IPoIB not supported");
	if (which & TIS_MODIFY_LAG_PORT && nic_get(tisc, TISC_LAG_PORT) > ports)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x912002,
				   "lag_tx_port_affinity exceeds the number of ports");
	if (which & TIS_MODIFY_PRIO)
		tis->prio = (uint8_t)nic_get(tisc, TISC_PRIO);
	if (which & TIS_MODIFY_STRICT_LAG)
		tis->strict_lag_port = nic_get(tisc, TISC_STRICT_LAG_PORT);
	if (which & TIS_MODIFY_LAG_PORT)
		tis->lag_port = (uint8_t)nic_get(tisc, TISC_LAG_PORT);
	return SN_OK;
}

enum { TIS_ALL = TIS_MODIFY_PRIO | TIS_MODIFY_STRICT_LAG | TIS_MODIFY_LAG_PORT };

uint8_t sn_cmd_create_tis(struct sn_cmd *cmd)
{
	static const uint32_t mask[W(0xc0)] = { [W(0x00)] = 0xffffffff,
						[W(0x04)] = 0x0000ffff,
						TISC_MASK(CMD_ETHC) };
	uint8_t st = check_create(cmd, mask, W(0xc0));
	struct sn_tis from = { 0 }, *tis;
	struct sn_td *td;

	if (st)
		return st;
	td = sn_find_td(cmd->dev, nic_get(cmd->in + CMD_ETHC, TISC_TD));
	if (!td || !sn_cmd_owns(cmd, td->handle))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x912003, "no such transport domain");
	st = read_tis(cmd, &from, TIS_ALL);
	if (st)
		return st;
	tis = sn_tis_create(cmd->dev, cmd->ctx, td, from.prio);
	if (!tis)
		return no_number(cmd);
	tis->strict_lag_port = from.strict_lag_port;
	tis->lag_port = from.lag_port;
	return created(cmd, SN_TIS, tis);
}

uint8_t sn_cmd_modify_tis(struct sn_cmd *cmd)
{
	static const uint32_t mask[W(0xc0)] = { [W(0x00)] = 0xffffffff, [W(0x04)] = 0x0000ffff,
						[W(0x08)] = 0x00ffffff, [W(0x10)] = 0xffffffff,
						[W(0x14)] = 0xffffffff, TISC_MASK(CMD_ETHC) };
	uint8_t st = sn_cmd_reserved(cmd, mask, W(0xc0));
	uint32_t which;

	if (!st)
		st = read_bitmask(cmd, TIS_ALL, &which);
	return st ? st : read_tis(cmd, cmd->obj, which);
}

uint8_t sn_cmd_query_tis(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, short_mask, 4), *tisc = cmd->out + CMD_QUERY_TISC;
	const struct sn_tis *tis = cmd->obj;

	if (st)
		return st;
	if (cmd->out_len < CMD_QUERY_TISC + 0x30)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x915001, "output too short");
	nic_set(tisc, TISC_STRICT_LAG_PORT, tis->strict_lag_port);
	nic_set(tisc, TISC_LAG_PORT, tis->lag_port);
	nic_set(tisc, TISC_PRIO, tis->prio);
	nic_set(tisc, TISC_TD, tis->td->tdn);
	return SN_OK;
}

/* ---- tables of RQs ---- */
static const uint32_t create_rqt_mask[W(CMD_ETHC + RQTC_LIST)] = {
	[W(0x00)] = 0xffffffff,
	[W(0x04)] = 0x0000ffff,
	[W(CMD_ETHC + 0x14)] = 0x0700ffff,
	[W(CMD_ETHC + 0x18)] = 0x8000ffff,
};
static const uint32_t modify_rqt_mask[W(CMD_ETHC + RQTC_LIST)] = {
	[W(0x00)] = 0xffffffff,
	[W(0x04)] = 0x0000ffff,
	[W(0x08)] = 0x00ffffff,
	[W(0x10)] = 0xffffffff,
	[W(0x14)] = 0xffffffff,
	[W(CMD_ETHC + 0x14)] = 0x0700ffff,
	[W(CMD_ETHC + 0x18)] = 0x8000ffff,
};

/* Checks sizes. max: maximum number of entries of the table. */
static uint8_t check_rqt(struct sn_cmd *cmd, uint32_t max)
{
	const uint8_t *rqtc = cmd->in + CMD_ETHC;
	uint32_t n = nic_get(rqtc, RQTC_ACTUAL);

	if (nic_get(rqtc, RQTC_LIST_TYPE) || nic_get(rqtc, RQTC_VHCA))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x916001,
				   "tables of other objects than RQs not supported");
	if (max > SN_RQT_MAX || !n || n > max || n & (n - 1))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x916002,
				   "size exceeds the maximum or is no power of two");
	if (cmd->in_len < CMD_ETHC + RQTC_LIST + 4 * n)
		return sn_cmd_fail(cmd, SN_ST_BAD_INP_LEN, 0x916003, "list of RQs too short");
	return sn_cmd_reserved_rest(cmd, CMD_ETHC + RQTC_LIST + 4 * n);
}

static uint8_t read_rqt(struct sn_cmd *cmd, struct sn_qp **rq)
{
	const uint8_t *list = cmd->in + CMD_ETHC + RQTC_LIST;
	uint32_t n = nic_get(cmd->in + CMD_ETHC, RQTC_ACTUAL), i;

	for (i = 0; i < n; i++) {
		if (nic_word(list, 4 * i) & ~nic_mask(RQTC_RQN))
			return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x916004,
					   "reserved bits set in an entry");
		rq[i] = sn_find_rq(cmd->dev, nic_get(list + 4 * i, RQTC_RQN));
		if (!rq[i] || !sn_cmd_owns(cmd, rq[i]->handle))
			return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x916005, "no such RQ");
	}
	return SN_OK;
}

uint8_t sn_cmd_create_rqt(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved_head(cmd, create_rqt_mask, W(CMD_ETHC + RQTC_LIST));
	const uint8_t *rqtc = cmd->in + CMD_ETHC;
	struct sn_qp *rq[SN_RQT_MAX];
	struct sn_rqt *rqt;

	if (!st && cmd->out_len < 0x10)
		st = sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x916006, "output too short");
	if (!st)
		st = check_rqt(cmd, nic_get(rqtc, RQTC_MAX));
	if (!st)
		st = read_rqt(cmd, rq);
	if (st)
		return st;
	rqt = sn_rqt_create(cmd->dev, cmd->ctx, rq, nic_get(rqtc, RQTC_ACTUAL),
			    nic_get(rqtc, RQTC_MAX));
	return rqt ? created(cmd, SN_RQT, rqt) : no_number(cmd);
}

uint8_t sn_cmd_modify_rqt(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved_head(cmd, modify_rqt_mask, W(CMD_ETHC + RQTC_LIST));
	struct sn_qp *rq[SN_RQT_MAX];
	struct sn_rqt *rqt = cmd->obj;
	uint32_t which = 0;

	if (!st)
		st = read_bitmask(cmd, RQT_MODIFY_LIST, &which);
	if (st || !which)
		return st;
	st = check_rqt(cmd, rqt->max);
	if (!st)
		st = read_rqt(cmd, rq);
	if (!st)
		sn_rqt_modify(rqt, rq, nic_get(cmd->in + CMD_ETHC, RQTC_ACTUAL));
	return st;
}

uint8_t sn_cmd_query_rqt(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, short_mask, 4), *rqtc = cmd->out + CMD_ETHC;
	const struct sn_rqt *rqt = cmd->obj;
	uint32_t i;

	if (st)
		return st;
	if (cmd->out_len < CMD_ETHC + RQTC_LIST + 4 * rqt->n)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x919001, "output too short");
	nic_set(rqtc, RQTC_MAX, rqt->max);
	nic_set(rqtc, RQTC_ACTUAL, rqt->n);
	for (i = 0; i < rqt->n; i++)
		nic_set(rqtc + RQTC_LIST + 4 * i, RQTC_RQN, rqt->rq[i]->qpn);
	return SN_OK;
}

/* ---- TIRs ---- */
#define TIRC_MASK(at) \
	[W(at + 0x04)] = 0xf8000000, [W(at + 0x10)] = 0x0fffffff, [W(at + 0x1c)] = 0x00ffffff, \
		[W(at + 0x20)] = 0xa0ffffff, [W(at + 0x24)] = 0xf3ffffff, \
		[W(at + 0x28)] = 0xffffffff, [W(at + 0x2c)] = 0xffffffff, \
		[W(at + 0x30)] = 0xffffffff, [W(at + 0x34)] = 0xffffffff, \
		[W(at + 0x38)] = 0xffffffff, [W(at + 0x3c)] = 0xffffffff, \
		[W(at + 0x40)] = 0xffffffff, [W(at + 0x44)] = 0xffffffff, \
		[W(at + 0x48)] = 0xffffffff, [W(at + 0x4c)] = 0xffffffff, \
		[W(at + 0x50)] = 0xffffffff, [W(at + 0x54)] = 0xffffffff

enum { DISP_DIRECT, DISP_INDIRECT };

static uint8_t read_tir_hash(struct sn_cmd *cmd, struct sn_tir *tir)
{
	const uint8_t *tirc = cmd->in + CMD_ETHC;
	const uint32_t known = SN_HASH_SRC_IP | SN_HASH_DST_IP | SN_HASH_L4_SPORT |
			       SN_HASH_L4_DPORT;
	uint32_t fn = nic_get(tirc, TIRC_HASH_FN);

	tir->symmetric = nic_get(tirc, TIRC_SYMMETRIC);
	tir->ipv6 = nic_get(tirc, TIRC_L3);
	tir->udp = nic_get(tirc, TIRC_L4);
	tir->fields = nic_get(tirc, TIRC_FIELDS);
	if (fn != SN_HASH_NONE && fn != SN_HASH_TOEPLITZ)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x900004,
				   "hash function other than Toeplitz not supported");
	if (tir->symmetric && fn == SN_HASH_NONE)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x900005,
				   "rx_hash_symmetric without a hash function");
	if (tir->fields & ~known || nic_word(tirc, TIRC_INNER))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x900006,
				   "hash of IPsec or inner headers not supported");
	tir->fn = (enum sn_hash_fn)fn;
	memcpy(tir->key, tirc + TIRC_KEY, SN_HASH_KEY);
	return SN_OK;
}

static uint8_t find_rqt(struct sn_cmd *cmd, struct sn_tir *tir)
{
	tir->rqt = sn_find_rqt(cmd->dev, nic_get(cmd->in + CMD_ETHC, TIRC_RQTN));
	if (!tir->rqt || !sn_cmd_owns(cmd, tir->rqt->handle))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x900007, "no such table of RQs");
	return SN_OK;
}

/* Reads where the frames go: to an RQ, or to an entry of a table. */
static uint8_t read_tir_target(struct sn_cmd *cmd, struct sn_tir *tir)
{
	const uint8_t *tirc = cmd->in + CMD_ETHC;

	switch (nic_get(tirc, TIRC_DISP_TYPE)) {
	case DISP_DIRECT:
		if (nic_get(tirc, TIRC_RQTN) || tir->fn != SN_HASH_NONE)
			return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x900008,
					   "a direct TIR has neither table nor hash function");
		tir->rq = sn_find_rq(cmd->dev, nic_get(tirc, TIRC_RQN));
		if (!tir->rq || !sn_cmd_owns(cmd, tir->rq->handle))
			return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x900009, "no such RQ");
		return SN_OK;
	case DISP_INDIRECT:
		if (nic_get(tirc, TIRC_RQN))
			return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90000a,
					   "an indirect TIR has no RQ of its own");
		return find_rqt(cmd, tir);
	}
	return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90000b, "no such disp_type");
}

static uint8_t read_tir(struct sn_cmd *cmd, struct sn_tir *tir)
{
	const uint8_t *tirc = cmd->in + CMD_ETHC;
	uint8_t st;

	if (nic_get(tirc, TIRC_TLS) || nic_word(tirc, TIRC_PACKET_MERGE) ||
	    nic_get(tirc, TIRC_TUNNELED))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90000c,
				   "TLS, packet merge and tunnels not supported");
	tir->self_lb_block = (uint8_t)nic_get(tirc, TIRC_SELF_LB);
	tir->td = sn_find_td(cmd->dev, nic_get(tirc, TIRC_TD));
	/* DPDK's drop queue has no transport domain (number 0). */
	if (tir->td ? !sn_cmd_owns(cmd, tir->td->handle) : nic_get(tirc, TIRC_TD))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x90000d, "no such transport domain");
	st = read_tir_hash(cmd, tir);
	return st ? st : read_tir_target(cmd, tir);
}

uint8_t sn_cmd_create_tir(struct sn_cmd *cmd)
{
	static const uint32_t mask[W(0x110)] = { [W(0x00)] = 0xffffffff,
						 [W(0x04)] = 0x0000ffff,
						 TIRC_MASK(CMD_ETHC) };
	uint8_t st = check_create(cmd, mask, W(0x110));
	struct sn_tir from = { 0 }, *tir;

	if (!st)
		st = read_tir(cmd, &from);
	if (st)
		return st;
	tir = sn_tir_create(cmd->dev, cmd->ctx, &from);
	return tir ? created(cmd, SN_TIR, tir) : no_number(cmd);
}

/* Changes the hash, the table of an indirect TIR, or which frames of this port it receives. */
uint8_t sn_cmd_modify_tir(struct sn_cmd *cmd)
{
	static const uint32_t mask[W(0x110)] = { [W(0x00)] = 0xffffffff, [W(0x04)] = 0x0000ffff,
						 [W(0x08)] = 0x00ffffff, [W(0x10)] = 0xffffffff,
						 [W(0x14)] = 0xffffffff, TIRC_MASK(CMD_ETHC) };
	const uint32_t known = TIR_MODIFY_TABLE | TIR_MODIFY_HASH | TIR_MODIFY_SELF_LB;
	uint8_t st = sn_cmd_reserved(cmd, mask, W(0x110));
	struct sn_tir *tir = cmd->obj, new = *tir;
	uint32_t which = 0;

	if (!st)
		st = read_bitmask(cmd, known, &which);
	if (!st && which & (TIR_MODIFY_TABLE | TIR_MODIFY_HASH) && !tir->rqt)
		st = sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x901001,
				 "a direct TIR has neither table nor hash function");
	if (!st && which & TIR_MODIFY_HASH)
		st = read_tir_hash(cmd, &new);
	if (!st && which & TIR_MODIFY_TABLE)
		st = find_rqt(cmd, &new);
	if (st)
		return st;
	if (which & TIR_MODIFY_SELF_LB)
		new.self_lb_block = (uint8_t)nic_get(cmd->in + CMD_ETHC, TIRC_SELF_LB);
	sn_tir_modify(tir, &new);
	return SN_OK;
}

uint8_t sn_cmd_query_tir(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, short_mask, 4), *tirc = cmd->out + CMD_ETHC;
	const struct sn_tir *tir = cmd->obj;

	if (st)
		return st;
	if (cmd->out_len < CMD_ETHC + 0x58)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x903001, "output too short");
	nic_set(tirc, TIRC_DISP_TYPE, tir->rqt ? DISP_INDIRECT : DISP_DIRECT);
	nic_set(tirc, TIRC_RQN, tir->rq ? tir->rq->qpn : 0);
	nic_set(tirc, TIRC_RQTN, tir->rqt ? tir->rqt->rqtn : 0);
	nic_set(tirc, TIRC_SYMMETRIC, tir->symmetric);
	nic_set(tirc, TIRC_HASH_FN, tir->fn);
	nic_set(tirc, TIRC_SELF_LB, tir->self_lb_block);
	nic_set(tirc, TIRC_TD, tir->td ? tir->td->tdn : 0);
	memcpy(tirc + TIRC_KEY, tir->key, SN_HASH_KEY);
	nic_set(tirc, TIRC_L3, tir->ipv6);
	nic_set(tirc, TIRC_L4, tir->udp);
	nic_set(tirc, TIRC_FIELDS, tir->fields);
	return SN_OK;
}
