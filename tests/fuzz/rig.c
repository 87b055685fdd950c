/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* One queue pair of the NIC's engine for a fuzzer: its setup, actions of the program
 * that owns it, and the check of memory at the end; see rig.h. */
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "rig.h"

#define GUARD	       0x5a
#define OWN_IP	       "127.66.6.6"
#define PAGE	       1u
#define SRQ_LOG	       4u
#define SRQ_STRIDE_LOG 6u

uint32_t rig_key[RIG_REGIONS];
static struct sn_mr *regions[RIG_REGIONS];
static struct sn_mr region_was[RIG_REGIONS];

uint8_t *rig_memory(enum rig_region region)
{
	return (uint8_t *)(uintptr_t)FUZZ_ARENA + region * 2 * RIG_REGION;
}

void rig_setup(void)
{
	static const uint32_t access[RIG_REGIONS] = {
		[RIG_ALL] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		[RIG_LOCAL] = IBV_ACCESS_LOCAL_WRITE,
		[RIG_READ_ONLY] = IBV_ACCESS_REMOTE_READ,
	};
	int i;

	setenv("SOFTNIC_TRACE", "/dev/null", 1);
	fuzz_arena();
	fuzz_begin();
	fake_open(OWN_IP);
	for (i = 0; i < RIG_REGIONS; i++) {
		rig_key[i] = fake_mr(rig_memory((enum rig_region)i), RIG_REGION, access[i]);
		regions[i] = sn_find_mr(sn_dev, rig_key[i]);
		region_was[i] = *regions[i];
	}
	fake_close();
}

/* ---- one input ---- */

static void set_cfg(struct fuzz_rig *r, uint8_t how)
{
	struct sn_cfg *cfg = &sn_dev->cfg;

	cfg->infiniband = how & 1;
	cfg->grh_required = how & 2;
	cfg->dbrec_only = how & 4;
	cfg->trace = how & 8;
	cfg->cd = how & 1;
	cfg->dma = how & 2 ? SN_DMA_QP : SN_DMA_SQ; /* QP: no queue pair has the permission */
	cfg->dma_max = how & 4 ? 6 : 31;
	cfg->loss_ppm = cfg->dup_ppm = cfg->reorder_ppm = how & 0x10 ? 100000 : 0;
	cfg->err_after = how & 0x20 ? 3 : 0;
	if (how & 0x40)
		memset(cfg->ip.s6_addr, 0xfd, 12);
	r->to_self = how & 0x80;
	r->peer = cfg->ip;
	if (!r->to_self)
		r->peer.s6_addr[15] ^= 1;
}

static void add_srq(struct fuzz_rig *r, uint8_t how)
{
	size_t bytes = 1u << (SRQ_LOG + SRQ_STRIDE_LOG);

	r->srq_ring = aligned_alloc(4096, 4096);
	r->srq_dbr = calloc(2, 4);
	if (!r->srq_ring || !r->srq_dbr)
		abort();
	memset(r->srq_ring, 0, bytes);
	r->srq = (struct sn_srq){ .srqn = 9,
				  .pdn = 7,
				  .buf = (uintptr_t)r->srq_ring,
				  .dbr = (uintptr_t)r->srq_dbr,
				  .wqe_cnt = 1u << SRQ_LOG,
				  .wqe_shift = SRQ_STRIDE_LOG,
				  .max_wr = (1u << SRQ_LOG) - 1,
				  .max_sge = 3,
				  .cyclic = how & 1,
				  .basic = (how & 3) == 3,
				  .limit = how & 4 ? 2 : 0 };
	r->q.qp.srq = &r->srq;
}

static void set_attributes(struct fuzz_rig *r, uint8_t how, uint8_t counts)
{
	static const uint8_t rd_atomic[4] = { 4, 0, 1, 16 };
	struct sn_qp *qp = &r->q.qp;

	qp->path_mtu = how % 5 + 1;
	qp->sig_all = how & 0x10;
	qp->no_dbr = how & 0x20;
	qp->remote_write = qp->remote_read = qp->remote_atomic = !(how & 0x40);
	qp->sqd_event = how & 0x80;
	qp->max_rd_atomic = rd_atomic[counts & 3];
	qp->max_dest_rd_atomic = rd_atomic[counts >> 2 & 3];
	qp->retry_cnt = counts & 0x10 ? 1 : 7;
	qp->rnr_retry = counts & 0x20 ? 1 : 7;
	qp->ack_timeout = counts & 0x40 ? 0 : 8;
	qp->min_rnr_timer = 1;
	qp->qkey = RIG_QKEY;
	qp->way.ip = r->peer;
	qp->dest_qpn = RIG_QPN;
	qp->sq_psn = qp->rq_psn = 0xfffff0; /* close to the wrap-around */
}

static void bring_up(struct fuzz_rig *r)
{
	fake_modify(&r->q, SN_QPS_INIT);
	fake_modify(&r->q, SN_QPS_RTR);
	fake_modify(&r->q, SN_QPS_RTS);
}

void rig_start(struct fuzz_rig *r, struct fuzz_in *in)
{
	uint8_t type = fuzz_u8(in), how = fuzz_u8(in), counts;

	memset(r, 0, sizeof(*r));
	memset(rig_memory(RIG_ALL), GUARD, RIG_REGIONS * 2 * RIG_REGION);
	fuzz_begin();
	fake_open(OWN_IP);
	set_cfg(r, how);
	fake_qp_init_as(&r->q, (enum sn_qp_type)(type % 3), RIG_QPN, PAGE);
	if (type & 0x10)
		add_srq(r, type >> 5);
	r->has_srq = type & 0x10;
	how = fuzz_u8(in);
	counts = fuzz_u8(in);
	set_attributes(r, how, counts);
	bring_up(r);
}

static void check(enum rig_region region, unsigned from)
{
	static uint8_t intact[2 * RIG_REGION];

	if (!intact[0])
		memset(intact, GUARD, sizeof(intact));
	if (!memcmp(rig_memory(region) + from, intact, 2 * RIG_REGION - from))
		return;
	fprintf(stderr, "memory without access rights changed in region %d\n", (int)region);
	abort();
}

void rig_restore(void)
{
	int i;

	for (i = 0; i < RIG_REGIONS; i++)
		*regions[i] = region_was[i];
}

void rig_end(struct fuzz_rig *r)
{
	fuzz_passes(sn_dev, 4);
	fake_qp_fini(&r->q);
	fake_close();
	memset(r->q.uar, 0, 4096);
	memset(&sn_dev->cfg, 0, sizeof(sn_dev->cfg));
	free(r->srq_ring);
	free(r->srq_dbr);
	rig_restore();
	check(RIG_ALL, RIG_REGION);
	check(RIG_LOCAL, RIG_REGION);
	check(RIG_READ_ONLY, 0);
}

/* ---- actions of the local program ---- */

void rig_state(struct fuzz_rig *r, struct fuzz_in *in)
{
	switch (fuzz_u8(in) % 5) {
	case 0:
		fake_modify(&r->q, SN_QPS_RST);
		r->q.pi = r->q.rpi = 0;
		memset(r->q.dbr, 0, 8);
		bring_up(r);
		break;
	case 1:
		fake_modify(&r->q, SN_QPS_ERR);
		break;
	case 2:
		if (r->q.qp.state == SN_QPS_RTS)
			fake_modify(&r->q, SN_QPS_SQD);
		break;
	case 3:
		if (r->q.qp.state >= SN_QPS_RTS && r->q.qp.state <= SN_QPS_SQD)
			fake_modify(&r->q, SN_QPS_RTS);
		break;
	case 4:
		fake_modify(&r->q, SN_QPS_RST);
		break;
	}
}

static void new_ring(struct sn_cq *cq, uint8_t log_size)
{
	static uint8_t ring[64 * 64] __attribute__((aligned(64)));

	if (cq->buf != (uintptr_t)ring)
		sn_eng_cq_resize(sn_dev, cq, (uintptr_t)ring, log_size);
}

static void arm(struct fuzz_rig *r, bool recv, uint32_t word)
{
	uint8_t db[8];

	r->q.dbr[recv ? 5 : 3] = htobe32(word);
	sn_put32(db, word);
	sn_put32(db + 4, recv ? r->q.rcq.cqn : r->q.scq.cqn);
	memcpy(r->q.uar + 0x20, db, 8);
}

static void change_region(uint8_t what)
{
	struct sn_mr *mr = regions[what % RIG_REGIONS];

	if (what & 0x40)
		mr->len = what & 0x3f;
	else
		mr->lkey = mr->rkey = 0;
}

void rig_program(struct fuzz_rig *r, struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);
	struct sn_cq *cq = what & 0x80 ? &r->q.rcq : &r->q.scq;

	switch (what & 7) {
	case 0:
	case 1:
		r->q.dbr[what & 0x80 ? 4 : 2] = htobe32((uint32_t)cq->pi & 0xffffff);
		break;
	case 2:
		arm(r, what & 0x80, (what >> 3 & 1u) << 24 | ((uint32_t)cq->pi & 0xffffff));
		break;
	case 3:
		sn_eng_cq_moderate(sn_dev, cq, what >> 3 & 3, 16);
		break;
	case 4:
		new_ring(cq, what >> 3 & 7 ? 6 : 2);
		break;
	case 5:
		/* any of the DBREC words; they all have the same format */
		r->q.dbr[what >> 3 & 7] = htobe32(fuzz_u16(in));
		break;
	case 6:
		r->q.qp.sq_psn = fuzz_u32(in) & 0xffffff; /* takes effect at the next connection */
		break;
	case 7:
		change_region(fuzz_u8(in));
		break;
	}
}

/* ---- receive WQEs ---- */

static void put_sge(uint8_t *s, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	enum rig_region region = (enum rig_region)(how % RIG_REGIONS);

	sn_put32(s, how & 4 ? fuzz_u8(in) : RIG_REGION / 2);
	sn_put32(s + 4, how & 8 ? 0x100 : rig_key[region]);
	sn_put64(s + 8, (uintptr_t)rig_memory(region) + (how >> 4) * 8);
}

void rig_recv(struct fuzz_rig *r, struct fuzz_in *in, bool raw)
{
	uint32_t *pi = r->has_srq ? &r->srq_pi : &r->q.rpi;
	uint32_t *dbr = r->has_srq ? r->srq_dbr : r->q.dbr, i, n;
	uint8_t *wqe = r->has_srq ? r->srq_ring + (*pi % (1u << SRQ_LOG) << SRQ_STRIDE_LOG)
				  : r->q.rq + *pi % FAKE_DEPTH * FAKE_STRIDE;
	uint32_t at = r->has_srq && !r->srq.basic ? 16 : 0;

	if (raw) {
		fuzz_bytes(in, wqe, fuzz_u8(in) % 65);
	} else {
		if (at)
			sn_put32(wqe, (*pi + 1) % (1u << SRQ_LOG));
		n = fuzz_u8(in) % 4;
		for (i = 0; i < n && at < 64; i++, at += 16)
			put_sge(wqe + at, in);
		if (at < 64)
			sn_put32(wqe + at + 4, 0x100);
	}
	++*pi;
	dbr[0] = htobe32(*pi & 0xffff);
}

void rig_input(const uint8_t *data, size_t size, int steps,
	       void (*step)(struct fuzz_rig *r, struct fuzz_in *in))
{
	struct fuzz_in in = { data, size };
	struct fuzz_rig r;
	int i;

	rig_start(&r, &in);
	for (i = 0; i < steps && in.left; i++)
		step(&r, &in);
	rig_end(&r);
}
