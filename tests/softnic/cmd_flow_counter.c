/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The commands of flow counters: allocation of one counter, or of a bulk of 128 or more
 * with consecutive identifiers, and query into the output or into memory. flow.c counts.
 */
#include "eth.h"
#include "front.h"
#include "prm_nic.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#define COUNTER_SIZE 16u  /* packets and octets */
#define BULK_UNIT    128u /* a bit of flow_counter_bulk is a multiple of 128 counters */

uint8_t sn_cmd_alloc_flow_counter(struct sn_cmd *cmd)
{
	static const uint32_t mask[4] = { 0xffffffff, 0x0000ffff, 0, 0x00001fff };
	uint8_t st = sn_cmd_reserved(cmd, mask, 4);
	struct sn_flow_counter *c;
	uint32_t bulk;

	if (st)
		return st;
	if (cmd->out_len < 0x10)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x939001, "output too short");
	bulk = nic_get(cmd->in, ALLOC_FLOW_BULK);
	if (bulk & (bulk - 1) || nic_get(cmd->in, ALLOC_FLOW_LOG))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x939002, "unsupported bulk size");
	c = sn_flow_counter_create(cmd->dev, cmd->ctx, bulk ? bulk * BULK_UNIT : 1);
	if (!c)
		return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x939003, "no number or memory left");
	cmd->kind = SN_FLOW_COUNTER;
	cmd->obj = c;
	nic_set(cmd->out, OUT_FLOW_COUNTER, c->id);
	return SN_OK;
}

/* Stores packets and octets of the first n counters. */
static void store(const struct sn_flow_counter *c, uint32_t n, uint8_t *stats)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		nic_set64(stats, COUNTER_SIZE * i, c->count[i].packets);
		nic_set64(stats, COUNTER_SIZE * i + 8, c->count[i].bytes);
	}
}

/* Writes the first n counters to the address that the command gives. */
static uint8_t dump(struct sn_cmd *cmd, const struct sn_flow_counter *c, uint32_t n)
{
	uint32_t key = nic_get(cmd->in, QUERY_FLOW_KEY);
	const struct sn_mr *mr = sn_find_mr(cmd->dev, key);
	uint8_t *stats = malloc((size_t)n * COUNTER_SIZE);
	int rc = -EFAULT;

	if (!stats)
		return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x93b003, "out of memory");
	store(c, n, stats);
	if (mr)
		rc = sn_mr_write(cmd->dev, key, mr->pdn, nic_get64(cmd->in, QUERY_FLOW_ADDR),
				 (uint64_t)n * COUNTER_SIZE, IBV_ACCESS_LOCAL_WRITE, stats);
	free(stats);
	return rc ? sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x93b004, "memory cannot be written") : SN_OK;
}

static uint8_t check_query(struct sn_cmd *cmd, const struct sn_flow_counter *c, uint32_t n)
{
	bool to_memory = nic_get(cmd->in, QUERY_FLOW_DUMP);

	if (n > c->n)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x93b001,
				   "num_of_counters exceeds the bulk");
	if (!to_memory && cmd->out_len < QUERY_FLOW_STATS + COUNTER_SIZE * (size_t)n)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x93b002, "output too short");
	if (!to_memory && (nic_get(cmd->in, QUERY_FLOW_KEY) || nic_get64(cmd->in, QUERY_FLOW_ADDR)))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x93b005,
				   "key or address without dump_to_memory");
	return to_memory ? dump(cmd, c, n) : SN_OK;
}

/* Returns the first num_of_counters counters of the bulk, or writes them to memory; 0: the first
 * one. */
uint8_t sn_cmd_query_flow_counter(struct sn_cmd *cmd)
{
	static const uint32_t mask[8] = {
		0xffffffff, 0x0000ffff, 0,	    0xffffffff,
		0xffffffff, 0xffffffff, 0xc000ffff, 0xffffffff,
	};
	struct sn_flow_counter *c = cmd->obj;
	uint8_t st = sn_cmd_reserved(cmd, mask, 8);
	uint32_t n;

	if (st)
		return st;
	n = nic_get(cmd->in, QUERY_FLOW_NUM);
	n = n ? n : 1;
	st = check_query(cmd, c, n);
	if (st)
		return st;
	if (!nic_get(cmd->in, QUERY_FLOW_DUMP))
		store(c, n, cmd->out + QUERY_FLOW_STATS);
	if (nic_get(cmd->in, QUERY_FLOW_CLEAR))
		memset(c->count, 0, n * sizeof(*c->count));
	return SN_OK;
}
