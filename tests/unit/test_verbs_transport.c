/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SEND and WRITE, also with immediate data, and RC READ through libmlx5, with sizes
 * around packet and segment boundaries; the bytes around the target must not change.
 * Also errors as a program sees them on both sides, and the WQEs flushed after them.
 */
#include "../lib/vb.h"

#define MEM	(1u << 20)
#define TO	(MEM / 2) /* second half: the target */
#define GUARD	64u
#define INVALID 0x5a5a5a5au

struct pair {
	struct vb v;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *a, *b;
};

static void open_pair(struct pair *p, enum ibv_qp_type type)
{
	p->v = vb_open(MEM);
	p->scq = ibv_create_cq(p->v.ctx, 256, NULL, NULL, 0);
	p->rcq = ibv_create_cq(p->v.ctx, 256, NULL, NULL, 0);
	cr_assert(p->scq && p->rcq);
	p->a = vb_qp(&p->v, type, p->scq, NULL);
	p->b = vb_qp(&p->v, type, p->rcq, NULL);
	vb_connect(&p->v, p->a, p->b);
}

static void close_pair(struct pair *p)
{
	cr_assert_eq(ibv_destroy_qp(p->a), 0);
	cr_assert_eq(ibv_destroy_qp(p->b), 0);
	cr_assert_eq(ibv_destroy_cq(p->scq), 0);
	cr_assert_eq(ibv_destroy_cq(p->rcq), 0);
	vb_close(&p->v);
}

static void fill(struct pair *p, uint32_t seed)
{
	for (uint32_t i = 0; i < TO; i++)
		p->v.mem[i] = (i + seed) * 2654435761u >> 17;
	memset(p->v.mem + TO, 0xa5, TO);
}

static struct ibv_send_wr request(struct pair *p, enum ibv_wr_opcode op, struct ibv_sge *sge, int n,
				  uint64_t to)
{
	struct ibv_send_wr wr = { .wr_id = 7,
				  .sg_list = sge,
				  .num_sge = n,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htobe32(0xfeed) };

	wr.wr.rdma.remote_addr = (uintptr_t)p->v.mem + to;
	wr.wr.rdma.rkey = p->v.mr->rkey;
	return wr;
}

static void post(struct pair *p, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	cr_assert_eq(ibv_post_send(p->a, wr, &bad), 0);
}

static bool takes_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void check_receive(struct pair *p, enum ibv_wr_opcode op, uint32_t len)
{
	struct ibv_wc wc = vb_wc(p->rcq);

	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(wc.wr_id, 9);
	cr_assert_eq(wc.byte_len, len);
	cr_assert_eq(wc.opcode,
		     op == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	cr_assert_eq(!(wc.wc_flags & IBV_WC_WITH_IMM), op == IBV_WR_SEND);
	if (op != IBV_WR_SEND)
		cr_assert_eq(be32toh(wc.imm_data), 0xfeed);
}

/*
 * One operation. More than two bytes are posted as two segments, so that packets and
 * segments end at different places.
 */
static void one(struct pair *p, enum ibv_wr_opcode op, uint32_t len, uint32_t seed)
{
	uint64_t from = 100, to = TO + GUARD;
	struct ibv_sge sge[2] = { vb_sge(&p->v, from, len / 3),
				  vb_sge(&p->v, from + len / 3, len - len / 3) };
	struct ibv_send_wr wr = request(p, op, sge, len > 2 ? 2 : 1, to);
	struct ibv_wc wc;

	fill(p, seed);
	if (len <= 2)
		sge[0] = vb_sge(&p->v, from, len);
	if (!len)
		wr.num_sge = 0;
	if (op == IBV_WR_RDMA_READ)
		wr.wr.rdma.remote_addr = (uintptr_t)p->v.mem + to;
	if (takes_receive(op))
		cr_assert_eq(vb_recv(&p->v, p->b, 9, to, len), 0);
	post(p, &wr);
	wc = vb_wc(p->scq);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "operation %u, %u bytes: %s", op, len,
		     ibv_wc_status_str(wc.status));
	if (takes_receive(op))
		check_receive(p, op, len);
	cr_assert_arr_eq(p->v.mem + from, p->v.mem + to, len, "operation %u, %u bytes: wrong data",
			 op, len);
	for (uint32_t i = 0; i < GUARD; i++)
		cr_assert(p->v.mem[to - 1 - i] == 0xa5 && p->v.mem[to + len + i] == 0xa5,
			  "operation %u, %u bytes: byte %u next to the target was written", op, len,
			  i);
}

static void sizes(enum ibv_qp_type type, const enum ibv_wr_opcode *ops, unsigned n)
{
	static const uint32_t len[] = { 0,     1, 3, 4, 1023, 1024, 1025, 3 * 1024, 16 * 1024 + 1,
					200001 };
	struct pair p;

	open_pair(&p, type);
	for (unsigned o = 0; o < n; o++)
		for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++)
			one(&p, ops[o], len[i], o * 16 + i);
	close_pair(&p);
}

Test(verbs_transport, rc_operations_of_many_sizes, .timeout = 60)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						  IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_READ };

	sizes(IBV_QPT_RC, ops, 5);
}

Test(verbs_transport, uc_operations_of_many_sizes, .timeout = 60)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
						  IBV_WR_SEND_WITH_IMM };

	sizes(IBV_QPT_UC, ops, 3);
}

/* ---- errors ---- */

enum what { GOOD, BAD_LKEY, BAD_RKEY, TOO_FAR, NO_RIGHT, SHORT_RECEIVE, NO_RECEIVE, UNALIGNED };

static const struct failure {
	enum what what;
	enum ibv_wr_opcode op;
	enum ibv_wc_status status;
	int async;		    /* event on the receiving side; -1: none */
	enum ibv_wc_status receive; /* status of the first receive; SUCCESS: it does not complete */
} failures[] = {
	{ BAD_LKEY, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR, -1, IBV_WC_SUCCESS },
	{ BAD_LKEY, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR, -1, IBV_WC_SUCCESS },
	{ BAD_RKEY, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR,
	  IBV_WC_WR_FLUSH_ERR },
	{ TOO_FAR, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR,
	  IBV_WC_WR_FLUSH_ERR },
	{ NO_RIGHT, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR,
	  IBV_WC_WR_FLUSH_ERR },
	{ UNALIGNED, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR,
	  IBV_WC_WR_FLUSH_ERR },
	{ SHORT_RECEIVE, IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR, -1, IBV_WC_LOC_LEN_ERR },
	{ NO_RECEIVE, IBV_WR_SEND, IBV_WC_RNR_RETRY_EXC_ERR, -1, IBV_WC_SUCCESS },
};

static void spoil(struct pair *p, enum what what, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct ibv_qp_attr none = { .qp_access_flags = 0 };

	if (what == BAD_LKEY)
		sge->lkey ^= INVALID;
	if (what == BAD_RKEY)
		wr->wr.rdma.rkey ^= INVALID;
	if (what == TOO_FAR)
		wr->wr.rdma.remote_addr = (uintptr_t)p->v.mem + MEM - sge->length + 1;
	if (what == NO_RIGHT)
		cr_assert_eq(ibv_modify_qp(p->b, &none, IBV_QP_ACCESS_FLAGS), 0);
	if (what == UNALIGNED) {
		wr->wr.atomic.remote_addr = (uintptr_t)p->v.mem + TO + 4;
		wr->wr.atomic.rkey = p->v.mr->rkey;
		sge->length = 8;
	}
}

/*
 * Posts a successful READ (unless NO_RIGHT), the failing request, and two more that
 * must be flushed. Expects all send completions, and the receive completions and the
 * asynchronous event that *f contains.
 */
static void fail_once(const struct failure *f)
{
	struct ibv_async_event ev;
	struct ibv_sge sge, ok;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair p;

	open_pair(&p, IBV_QPT_RC);
	if (f->what == NO_RECEIVE) { /* connect again, with a limited number of RNR retries */
		struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

		cr_assert_eq(ibv_modify_qp(p.a, &reset, IBV_QP_STATE), 0);
		vb_to_init(p.a);
		vb_to_rts(&p.v, p.a, p.b->qp_num, 1);
	} else {
		cr_assert_eq(vb_recv(&p.v, p.b, 1, TO, f->what == SHORT_RECEIVE ? 99 : 4096), 0);
		cr_assert_eq(vb_recv(&p.v, p.b, 2, TO, 4096), 0);
	}
	ok = vb_sge(&p.v, 0, 0);
	wr = request(&p, IBV_WR_RDMA_READ, &ok, 0, TO);
	if (f->what != NO_RIGHT)
		post(&p, &wr);
	sge = vb_sge(&p.v, 0, 100);
	wr = request(&p, f->op, &sge, 1, TO);
	spoil(&p, f->what, &wr, &sge);
	post(&p, &wr);
	wr = request(&p, IBV_WR_RDMA_WRITE, &ok, 0, TO);
	for (wr.wr_id = 11; wr.wr_id <= 12; wr.wr_id++)
		post(&p, &wr);
	if (f->what != NO_RIGHT)
		cr_assert_eq(vb_wc(p.scq).status, IBV_WC_SUCCESS);
	wc = vb_wc(p.scq);
	cr_assert_eq(wc.status, f->status, "case %u: send status %s", f->what,
		     ibv_wc_status_str(wc.status));
	cr_assert(wc.wr_id == 7 && wc.vendor_err);
	for (uint64_t id = 11; id <= 12; id++) {
		wc = vb_wc(p.scq);
		cr_assert(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == id);
	}
	if (f->receive != IBV_WC_SUCCESS) {
		wc = vb_wc(p.rcq);
		cr_assert(wc.wr_id == 1 && wc.status == f->receive, "case %u: receive %s", f->what,
			  ibv_wc_status_str(wc.status));
		wc = vb_wc(p.rcq);
		cr_assert(wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR);
	}
	cr_assert_eq(vb_async(&p.v, &ev, f->async < 0 ? 50 : 5000), f->async,
		     "case %u: wrong asynchronous event", f->what);
	close_pair(&p);
}

Test(verbs_transport, errors_and_flushed_requests, .timeout = 60)
{
	for (unsigned i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		fail_once(&failures[i]);
}

/*
 * Requests of several kinds: the completions of both sides must be in posting
 * order, although READs take longer.
 */
Test(verbs_transport, completions_are_in_posting_order, .timeout = 60)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair p;

	open_pair(&p, IBV_QPT_RC);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 32; i++)
			cr_assert_eq(vb_recv(&p.v, p.b, i, TO + 4096, 4096), 0);
		for (unsigned i = 0; i < 64; i++) {
			uint32_t len = ops[i % 4] == IBV_WR_SEND ? 4000 : 8000;

			sge = vb_sge(&p.v, 0, len);
			wr = request(&p, ops[i % 4], &sge, 1, TO + 16384);
			wr.wr_id = i;
			post(&p, &wr);
		}
		for (unsigned i = 0; i < 64; i++) {
			struct ibv_wc wc = vb_wc(p.scq);

			cr_assert(wc.status == IBV_WC_SUCCESS && wc.wr_id == i);
		}
		for (unsigned i = 0; i < 32; i++) {
			struct ibv_wc wc = vb_wc(p.rcq);

			cr_assert(wc.status == IBV_WC_SUCCESS && wc.wr_id == i);
		}
	}
	close_pair(&p);
}
