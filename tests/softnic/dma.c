/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The copy engine: MMO requests with modifier 1 (mlx5_wr_memcpy() in providers/mlx5/qp.c of
 * rdma-core 44). One WQE of 64 bytes has a control word, key and address of a 64-byte result,
 * source and destination. A copy begins when all earlier requests of the queue are complete, and
 * advances by at most STEP bytes per pass, so that other queue pairs are served meanwhile.
 *
 * Guesses: reserved bits and a copy without permission are refused as invalid requests; source and
 * destination have the same length; a copy longer than the capability fails with a local length
 * error. The contents of the result are not documented: programs must not depend on them, so the
 * NIC fills it with a pattern, before the completion.
 */
#include "eng.h"

#define MODIFIER_DMA 1u
#define UNITS	     4u		/* size of the WQE in 16-byte units */
#define STEP	     (1u << 20) /* bytes copied per pass */
#define RESULT_LEN   64u
#define RESULT_BYTE  0xd5

enum { RESULT, SOURCE, TARGET, PIECES };

static struct sn_sge piece_at(const uint8_t *wqe, unsigned i)
{
	const uint8_t *p = wqe + 16 + 16 * i;
	uint32_t n = sn_get32(p);

	return (struct sn_sge){ sn_get64(p + 8), n ? n : 1u << 31, sn_get32(p + 4) };
}

/* Checks the keys and bounds of all pieces. Only the source may be read-only. */
static bool pieces_ok(struct sn_eng *e, const struct sn_qp_eng *q, const struct sn_msg *m)
{
	const struct sn_sge *s = m->sge;
	unsigned i;

	for (i = 0; i < PIECES; i++)
		if (!sn_mr_allows(e->dev, s[i].lkey, q->qp->pdn, s[i].addr, s[i].len, i != SOURCE))
			return false;
	return true;
}

static bool may_copy(const struct sn_cfg *cfg, const struct sn_qp *qp)
{
	return qp->type == SN_QPT_RC &&
	       (cfg->dma == SN_DMA_SQ || (cfg->dma == SN_DMA_QP && qp->mmo));
}

static bool check(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	if (m->sge[SOURCE].len != m->sge[TARGET].len)
		return sn_sq_bad(
			e, q, m, &e->dev->stats.bad_reserved,
			"source and destination have different lengths:", m->sge[TARGET].len);
	m->len = m->sge[SOURCE].len;
	if (m->len > 1ull << e->dev->cfg.dma_max) {
		m->synd = SN_SYND_LOC_LEN;
		m->vendor = 0x53;
	} else if (!pieces_ok(e, q, m)) {
		SN_COUNT(e, q->qp, local_prot_errors, 1);
		m->synd = SN_SYND_LOC_PROT;
		m->vendor = 0x51;
	}
	return !m->synd;
}

bool sn_dma_parse(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *wqe,
		  uint32_t bytes)
{
	unsigned i;

	m->local = true;
	if (!may_copy(&e->dev->cfg, q->qp))
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_opcode,
				 "the queue pair may not use the copy engine, opcode", m->opcode);
	if (wqe[0] != MODIFIER_DMA)
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
				 "opcode modifier invalid for the opcode:", wqe[0]);
	if (bytes != 16 * UNITS)
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
				 "wrong size of an MMO request, 16-byte units", bytes / 16);
	if (sn_get32(wqe + 16))
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
				 "MMO control word is not 0:", sn_get32(wqe + 16));
	for (i = 0; i < PIECES; i++)
		m->sge[i] = piece_at(wqe, i);
	m->sge[RESULT].len = RESULT_LEN;
	m->nsge = PIECES;
	return check(e, q, m);
}

static int copy_step(struct sn_eng *e, const struct sn_qp_eng *q, struct sn_msg *m)
{
	static uint8_t buf[65536]; /* used by the NIC thread only */
	uint64_t end = sn_min64((uint64_t)m->got + STEP, m->len);
	uint32_t n;

	for (; m->got < end; m->got += n) {
		n = (uint32_t)sn_min64(end - m->got, sizeof(buf));
		if (sn_sge_read(e->dev, q->qp->pdn, &m->sge[SOURCE], 1, m->got, buf, n) ||
		    sn_sge_write(e->dev, q->qp->pdn, &m->sge[TARGET], 1, m->got, buf, n))
			return -1;
		SN_COUNT(e, q->qp, dma_bytes, n);
	}
	e->copied = true;
	return 0;
}

int sn_dma_run(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	uint8_t result[RESULT_LEN];

	memset(result, RESULT_BYTE, sizeof(result));
	if (copy_step(e, q, m))
		goto fail;
	if (m->got < m->len)
		return 0;
	if (sn_sge_write(e->dev, q->qp->pdn, &m->sge[RESULT], 1, 0, result, sizeof(result)))
		goto fail;
	SN_COUNT(e, q->qp, dma_copies, 1);
	return 1;

fail:
	SN_COUNT(e, q->qp, local_prot_errors, 1);
	m->synd = SN_SYND_LOC_PROT;
	m->vendor = 0x52;
	return -1;
}
