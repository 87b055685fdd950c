/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The commands of indirect memory keys with pieces of equal size (access mode KSM), and
 * with a single piece of any size (access mode KLM), as DPDK creates them for counters.
 * Keys of other modes cannot be created by a command; regions are registered in
 * uverbs_mr.c. Entries are checked when the key is created and again at each access
 * (mem.c), because a region may be deregistered before the key is destroyed (UCX
 * deregisters the regions of a large key first).
 */
#include "front.h"
#include "prm_nic.h"

#include <infiniband/verbs.h>
#include <stdlib.h>

#define W(off)	 ((off) / 4)
#define MODE_KLM 2u
#define MODE_KSM 3u
#define ANY_QP	 0xffffffu
#define KLM_SIZE 16u
/* Limits of the logarithm of a piece's size. 12: Linux's mlx5 assumes a smallest page of 4 KiB if
 * the device reports none. 31: the field has five bits in UCX's layout. */
#define MIN_LOG_ENTITY 12u
#define MAX_LOG_ENTITY 31u
/* log_size of a key with a single piece: larger than any offset */
#define WHOLE	     63u
#define ATOMIC_ALIGN 8u /* bytes of the largest atomic in the capabilities */

static const uint32_t create_mask[W(CMD_KLM)] = {
	[W(0x00)] = 0xffffffff,		  [W(0x04)] = 0x0000ffff,
	[W(CMD_MKC + 0x00)] = 0x1c047f00, [W(CMD_MKC + 0x04)] = 0xffffffff,
	[W(CMD_MKC + 0x0c)] = 0x00ffffff, [W(CMD_MKC + 0x10)] = 0xffffffff,
	[W(CMD_MKC + 0x14)] = 0xffffffff, [W(CMD_MKC + 0x18)] = 0xffffffff,
	[W(CMD_MKC + 0x1c)] = 0xffffffff, [W(CMD_MKC + 0x34)] = 0xffffffff,
	[W(CMD_MKC + 0x38)] = 0x0000007f, [W(0x60)] = 0xffffffff,
};
static const uint32_t query_mask[4] = { 0xffffffff, 0x0000ffff, 0x00ffffff, 0 };

static uint32_t rights(const uint8_t *mkc)
{
	return (nic_get(mkc, MKC_LW) ? IBV_ACCESS_LOCAL_WRITE : 0) |
	       (nic_get(mkc, MKC_RW) ? IBV_ACCESS_REMOTE_WRITE : 0) |
	       (nic_get(mkc, MKC_RR) ? IBV_ACCESS_REMOTE_READ : 0) |
	       (nic_get(mkc, MKC_A) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static uint8_t read_context(struct sn_cmd *cmd, struct sn_mr *key)
{
	const uint8_t *mkc = cmd->in + CMD_MKC;

	key->lkey = nic_get(mkc, MKC_TAG);
	key->pdn = nic_get(mkc, MKC_PD);
	key->iova = nic_get64(mkc, MKC_START);
	key->len = nic_get64(mkc, MKC_LEN);
	key->access = rights(mkc);
	if (nic_get(mkc, MKC_MODE) < MODE_KLM || nic_get(mkc, MKC_MODE_HI))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x200001, "unsupported access mode");
	if (nic_get(mkc, MKC_QPN) != ANY_QP)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x200002,
				   "key bound to one QP not supported");
	if (!key->len || key->iova + (key->len - 1) < key->iova)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x200003, "length is 0 or wraps");
	/* according to UCX, firmware requires aligned start and length */
	if (key->access & IBV_ACCESS_REMOTE_ATOMIC && (key->iova | key->len) % ATOMIC_ALIGN)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x200004,
				   "start or length misaligned for atomics");
	return SN_OK;
}

/*
 * Returns the number of entries that the length requires. Pieces are counted from the aligned
 * address at or below the start, which can add one entry. Translation (mem.c) counts from the
 * start itself and does not use this entry. UCX provides it, for what UCX calls a range check.
 */
static uint64_t needed(const struct sn_mr *key, uint32_t log_entity)
{
	uint64_t before = key->iova & ((1ull << log_entity) - 1);

	return ((before + (key->len - 1)) >> log_entity) + 1;
}

/* The entries after the first one must be zeros. */
static uint8_t check_single(struct sn_cmd *cmd, const struct sn_mr *key)
{
	uint32_t more = 0;
	size_t at;

	if (nic_get(cmd->in + CMD_MKC, MKC_LOG_ENTITY))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x20000c, "KLM with a page size");
	for (at = CMD_KLM + KLM_SIZE; at + 4 <= cmd->in_len; at += 4)
		more |= nic_word(cmd->in, (uint32_t)at);
	if (more || nic_get(cmd->in + CMD_KLM, KLM_BYTES) < key->len)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x20000d,
				   "KLM of more than one piece not supported");
	return SN_OK;
}

static uint8_t check_list(struct sn_cmd *cmd, const struct sn_mr *key, uint32_t log_entity)
{
	uint32_t n = nic_get(cmd->in, CREATE_MKEY_ACTUAL);
	uint32_t room = nic_get(cmd->in + CMD_MKC, MKC_OCTWORDS);

	if (log_entity != WHOLE && (log_entity < MIN_LOG_ENTITY || log_entity > MAX_LOG_ENTITY))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x200005, "unsupported size of a piece");
	if (room > 1u << SN_MAX_KSM_LOG || n > room || n < needed(key, log_entity))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x200006, "too many or too few entries");
	if (cmd->in_len < CMD_KLM + (size_t)n * KLM_SIZE)
		return sn_cmd_fail(cmd, SN_ST_BAD_INP_LEN, 0x200007,
				   "input too short for its list of entries");
	if (log_entity == WHOLE)
		return check_single(cmd, key);
	return sn_cmd_reserved_rest(cmd, CMD_KLM + (size_t)n * KLM_SIZE);
}

/*
 * Checks that each required entry names a region of the PD. The byte count of an entry is
 * ignored: UCX and DPDK set it, Linux does not. Entries beyond the length are not checked: DPDK
 * sets them to zeros.
 */
static uint8_t read_list(struct sn_cmd *cmd, const struct sn_mr *key, struct sn_ksm *k)
{
	const uint8_t *klm = cmd->in + CMD_KLM;
	const struct sn_mr *mr;
	uint32_t i;

	for (i = 0; i < k->n; i++, klm += KLM_SIZE) {
		k->piece[i].key = nic_get(klm, KLM_KEY);
		k->piece[i].addr = nic_get64(klm, KLM_ADDR);
		mr = sn_find_mr(cmd->dev, k->piece[i].key);
		if (i < needed(key, k->log_size) && (!mr || mr->ksm || mr->pdn != key->pdn))
			return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x200008,
					   "an entry names no region of the PD");
	}
	return SN_OK;
}

uint8_t sn_cmd_create_mkey(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved_head(cmd, create_mask, W(CMD_KLM));
	struct sn_mr from = { 0 }, *key = NULL;
	uint32_t n, log_entity;

	if (st)
		return st;
	if (cmd->out_len < 0x10)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x200009, "output too short");
	n = nic_get(cmd->in, CREATE_MKEY_ACTUAL);
	log_entity = nic_get(cmd->in + CMD_MKC, MKC_LOG_ENTITY);
	if (nic_get(cmd->in + CMD_MKC, MKC_MODE) == MODE_KLM)
		log_entity = WHOLE;
	st = read_context(cmd, &from);
	if (!st)
		st = check_list(cmd, &from, log_entity);
	if (st)
		return st;
	from.ksm = calloc(1, sizeof(*from.ksm) + n * sizeof(from.ksm->piece[0]));
	if (!from.ksm)
		return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x20000a, "out of memory");
	from.ksm->n = n;
	from.ksm->log_size = (uint8_t)log_entity;
	from.ksm->local_read = nic_get(cmd->in + CMD_MKC, MKC_LR);
	from.ksm->relaxed_write = nic_get(cmd->in + CMD_MKC, MKC_RELAXED_WRITE);
	from.ksm->relaxed_read = nic_get(cmd->in + CMD_MKC, MKC_RELAXED_READ);
	st = read_list(cmd, &from, from.ksm);
	if (!st && !(key = sn_mr_create(cmd->dev, cmd->ctx, &from)))
		st = sn_cmd_fail(cmd, SN_ST_NO_RES, 0x20000b, "no key left");
	if (st) {
		free(from.ksm);
		return st;
	}
	cmd->kind = SN_MKEY;
	cmd->obj = key;
	nic_set(cmd->out, OUT_OBJ, key->lkey >> 8);
	sn_trace("indirect key %#x start %#llx length %llu access %#x: %u pieces of 1 << %u",
		 key->lkey, (unsigned long long)key->iova, (unsigned long long)key->len,
		 key->access, n, log_entity);
	return SN_OK;
}

/* Returns the context without the list of entries. */
uint8_t sn_cmd_query_mkey(struct sn_cmd *cmd)
{
	const struct sn_mr *key = cmd->obj;
	uint8_t st = sn_cmd_reserved(cmd, query_mask, 4), *mkc = cmd->out + CMD_MKC;

	if (st)
		return st;
	if (cmd->out_len < CMD_MKC + 0x40)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x201001, "output too short");
	nic_set(mkc, MKC_A, !!(key->access & IBV_ACCESS_REMOTE_ATOMIC));
	nic_set(mkc, MKC_RW, !!(key->access & IBV_ACCESS_REMOTE_WRITE));
	nic_set(mkc, MKC_RR, !!(key->access & IBV_ACCESS_REMOTE_READ));
	nic_set(mkc, MKC_LW, !!(key->access & IBV_ACCESS_LOCAL_WRITE));
	nic_set(mkc, MKC_LR, key->ksm->local_read);
	nic_set(mkc, MKC_RELAXED_WRITE, key->ksm->relaxed_write);
	nic_set(mkc, MKC_RELAXED_READ, key->ksm->relaxed_read);
	nic_set(mkc, MKC_MODE, key->ksm->log_size == WHOLE ? MODE_KLM : MODE_KSM);
	nic_set(mkc, MKC_QPN, ANY_QP);
	nic_set(mkc, MKC_TAG, key->lkey & 0xff);
	nic_set(mkc, MKC_PD, key->pdn);
	nic_set64(mkc, MKC_START, key->iova);
	nic_set64(mkc, MKC_LEN, key->len);
	nic_set(mkc, MKC_OCTWORDS, key->ksm->n);
	if (key->ksm->log_size != WHOLE)
		nic_set(mkc, MKC_LOG_ENTITY, key->ksm->log_size);
	return SN_OK;
}
