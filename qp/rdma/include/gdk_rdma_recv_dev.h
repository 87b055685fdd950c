/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Receives of an RDMA object. All its connections take receives from one shared receive queue
 * (srq_dev.h), and write their CQEs to one CQ, which has an entry for each receive.
 *
 * Receives are posted strongly or weakly, as sends are (gdk_rdma_send_dev.h). Messages of several
 * packets on several connections complete in another order than they took their receives. So the
 * thread that waits stores the result of each CQE in a table with an entry for each slot, and
 * returns results in the order of the slots, which is that of the posts. A slot is free when its
 * result is returned: a receive that is posted never overwrites one that is in use.
 *
 * A CQE has the number of its queue pair; the host writes a hash table from these numbers to
 * connection indices.
 */
#ifndef GDK_RDMA_RECV_DEV_H
#define GDK_RDMA_RECV_DEV_H

#include "device/gdk/srq_dev.h"
#include "gdk_rdma_send_dev.h"

/** The result of the receive in a slot. */
struct gdk_rdma_result {
	uint32_t imm_be; /**< immediate value; 0: none */
	uint32_t conn;	 /**< connection index + 1, and GDK_RDMA_FAILED; 0: not complete */
};
/** The receive failed. */
#define GDK_RDMA_FAILED 0x80000000u
/** A queue pair that the hash table does not contain. */
#define GDK_RDMA_NO_CONN 0x7fffffffu

/** An entry of the hash table: QP number << 32 | connection index + 1; 0: free. The first entry for
 * a QP number is at the number, modulo the size of the table; the next entries follow. */
typedef uint64_t gdk_rdma_map_t;

/** Receives of an RDMA object in kernels. Opaque. */
struct doca_gpu_dev_rdma_r {
	/* written by the host */
	uint64_t rdma;			   /**< the RDMA object */
	uint64_t srq;			   /**< device struct of the shared receive queue */
	uint64_t results;		   /**< struct gdk_rdma_result of each slot */
	uint64_t map;			   /**< gdk_rdma_map_t of the hash table */
	uint32_t map_mask;		   /**< entries of the hash table - 1 */
	uint8_t pad0[GDK_STATE_LINE - 36]; /**< not used */
	struct doca_gpu_dev_verbs_cq cq;   /**< the receive CQ */
	uint8_t pad1[2 * GDK_STATE_LINE - sizeof(struct doca_gpu_dev_verbs_cq)]; /**< not used */
	/* written by threads that post */
	uint64_t committed;		  /**< receives below this index are committed */
	uint8_t pad2[GDK_STATE_LINE - 8]; /**< not used */
	/* written by the thread that has `busy` */
	uint64_t returned; /**< receives below this index were returned; their slots are free */
	uint64_t polled;   /**< CQEs that were read */
	uint32_t busy;	   /**< 1: a thread reads CQEs */
	uint32_t idle;	   /**< polls that found nothing */
	uint8_t pad3[GDK_STATE_LINE - 24]; /**< not used */
};

/** Returns the device struct of the receive queue. */
GDK_FN struct doca_gpu_dev_verbs_qp *gdk_rdma_srq(const struct doca_gpu_dev_rdma_r *r)
{
	return (struct doca_gpu_dev_verbs_qp *)(uintptr_t)gdk_ldc64(&r->srq);
}

/* ---- posting ---- */

/** Reserves n receives, *from on. Returns -ENOBUFS if they would overwrite receives that were not
 * returned yet: no slot is reserved then. */
GDK_FN int gdk_rdma_recv_reserve(struct doca_gpu_dev_rdma_r *r, struct gdk_qp_state *st,
				 uint64_t *index, uint32_t n, uint64_t *from)
{
	const uint32_t depth = gdk_ldc32(&st->depth);
	uint64_t at = gdk_ld64(index, GDK_SCOPE_GPU), old;

	GDK_LOOP
	for (;;) {
		/* Acquire: returned, then our stores to the slots. Pairs with the release in
		 * gdk_rdma_take(). */
		if (n > depth || at + n - gdk_ld64_acq(&r->returned, GDK_SCOPE_GPU) > depth)
			return -ENOBUFS;
		old = gdk_any_cas64(index, at, at + n, GDK_SCOPE_GPU);
		if (old == at)
			break;
		at = old;
	}
	*from = at;
	return 0;
}

/** Writes a receive at a position that the caller chose. */
GDK_FN int gdk_rdma_recv_index(struct doca_gpu_dev_rdma_r *r, struct gdk_qp_state *st,
			       const uint64_t *index, uint32_t position, uint64_t *idx)
{
	const uint32_t depth = gdk_ldc32(&st->depth);
	const uint64_t end = gdk_ld64(index, GDK_SCOPE_GPU);
	int err = gdk_rdma_check_position(st, end, position);

	if (err)
		return err;
	*idx = gdk_rdma_index(end, position, depth);
	return *idx - gdk_ld64_acq(&r->returned, GDK_SCOPE_GPU) >= depth ? -ENOBUFS : 0;
}

/** Posts a receive of up to 1 GiB; 0 bytes: without a buffer. Returns 0, -EINVAL (a wrong size),
 * -ENOBUFS (the queue is full), or the status that ended the receive queue. */
GDK_FN int gdk_rdma_recv(struct doca_gpu_dev_rdma_r *r, struct doca_gpu_dev_verbs_addr buf,
			 uint64_t bytes, struct gdk_rdma_at at)
{
	struct doca_gpu_dev_verbs_qp *srq = gdk_rdma_srq(r);
	struct gdk_qp_state *st = gdk_state_of_qp(srq);
	uint64_t idx;
	int err = gdk_state_status(st);

	if (GDK_RARE(err))
		return err;
	if (bytes > GDK_CHUNK)
		return -EINVAL;
	err = at.weak ? gdk_rdma_recv_index(r, st, gdk_rsvd_index(srq), at.position, &idx)
		      : gdk_rdma_recv_reserve(r, st, gdk_rsvd_index(srq), 1, &idx);
	if (GDK_RARE(err))
		return err;
	gdk_wqe_recv(srq, gdk_srq_wqe(srq, idx), buf.addr, gdk_key_doca(buf.key), (uint32_t)bytes);
	if (!at.weak)
		gdk_mark_ready(srq, idx, idx, GDK_RDMA_MODE, GDK_DB);
	return 0;
}

/** The receives below `to` are published. Has the NIC use them. */
GDK_FN int gdk_rdma_recv_committed(struct doca_gpu_dev_rdma_r *r, struct gdk_qp_state *st,
				   uint64_t to)
{
	gdk_rq_ring(st, to, GDK_RDMA_MODE);
	gdk_red_max64(&r->committed, to, GDK_SCOPE_GPU);
	return gdk_state_status(st);
}

/** Commits all strong receives that were posted before. */
GDK_FN int gdk_rdma_recv_commit_strong(struct doca_gpu_dev_rdma_r *r)
{
	struct doca_gpu_dev_verbs_qp *srq = gdk_rdma_srq(r);

	return gdk_rdma_recv_committed(r, gdk_state_of_qp(srq),
				       gdk_ld64(gdk_rsvd_index(srq), GDK_SCOPE_GPU));
}

/** Commits the next n positions. Their slots are written, now or in an earlier lap of the ring. */
GDK_FN int gdk_rdma_recv_commit_weak(struct doca_gpu_dev_rdma_r *r, uint32_t n)
{
	struct doca_gpu_dev_verbs_qp *srq = gdk_rdma_srq(r);
	struct gdk_qp_state *st = gdk_state_of_qp(srq);
	uint64_t from;
	int err = gdk_state_status(st);

	if (err || !n)
		return err;
	err = gdk_rdma_recv_reserve(r, st, gdk_rsvd_index(srq), n, &from);
	if (err)
		return err;
	gdk_mark_ready(srq, from, from + n - 1, GDK_RDMA_MODE, GDK_DB);
	return gdk_rdma_recv_committed(r, st, from + n);
}

/* ---- completion ---- */

/** Connection index + 1 of a queue pair. */
GDK_FN uint32_t gdk_rdma_conn_of(const struct doca_gpu_dev_rdma_r *r, uint32_t qpn)
{
	const gdk_rdma_map_t *map = (const gdk_rdma_map_t *)(uintptr_t)gdk_ldc64(&r->map);
	const uint32_t mask = gdk_ldc32(&r->map_mask);
	uint64_t entry;
	uint32_t i;

	GDK_LOOP
	for (i = 0; i <= mask; i++) {
		entry = gdk_ld64(&map[(qpn + i) & mask], GDK_SCOPE_SYS);
		if (entry >> 32 == qpn)
			return (uint32_t)entry;
		if (!entry)
			break;
	}
	return GDK_RDMA_NO_CONN;
}

/** Stores the result of a CQE. An error ends its connection: the NIC has ended the queue pair. */
GDK_FN void gdk_rdma_note(struct doca_gpu_dev_rdma_r *r,
			  const struct doca_gpunetio_ib_mlx5_cqe64 *cqe, int failed)
{
	const struct doca_gpu_dev_rdma *rdma =
		(const struct doca_gpu_dev_rdma *)(uintptr_t)gdk_ldc64(&r->rdma);
	const uint32_t mask = gdk_ldc32(GDK_QP_AT(gdk_rdma_srq(r), rq_wqe_mask));
	struct gdk_rdma_result *res = (struct gdk_rdma_result *)(uintptr_t)gdk_ldc64(&r->results) +
				      (gdk_srq_slot(cqe) & mask);
	const char *at = (const char *)cqe;
	const uint32_t qpn = gdk_bswap32(gdk_any_ld32((const uint32_t *)(const void *)(at + 56),
						      GDK_SCOPE_SYS)) &
			     0xffffff;
	const uint32_t opcode =
		gdk_any_ld32((const uint32_t *)(const void *)(at + 60), GDK_SCOPE_SYS) >> 28;
	const int has_imm = opcode == DOCA_GPUNETIO_IB_MLX5_CQE_RESP_WR_IMM ||
			    opcode == DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_IMM;
	uint32_t conn = gdk_rdma_conn_of(r, qpn);
	struct doca_gpu_dev_verbs_qp *qp;

	gdk_st32(&res->imm_be, has_imm ? gdk_cqe_imm(cqe) : 0, GDK_SCOPE_GPU);
	if (failed) {
		qp = conn == GDK_RDMA_NO_CONN ? NULL
					      : gdk_rdma_conn_qp(gdk_rdma_conn(rdma, conn - 1));
		if (qp)
			(void)gdk_state_end(gdk_state_of_qp(qp), -EIO);
		conn |= GDK_RDMA_FAILED;
	}
	gdk_st32(&res->conn, conn, GDK_SCOPE_GPU);
}

/** Where results are returned. */
struct gdk_rdma_out {
	uint32_t num;	/**< number of results so far */
	uint32_t *imm;	/**< gets immediate values; may be NULL */
	uint32_t *conn; /**< gets connection indices; may be NULL */
};

/**
 * Returns the results of receives below `end`, up to the first that is not complete. A receive that
 * failed is returned by itself, with -EIO. The caller has `busy`.
 */
GDK_FN int gdk_rdma_take(struct doca_gpu_dev_rdma_r *r, uint64_t end, struct gdk_rdma_out *out)
{
	struct gdk_rdma_result *results =
		(struct gdk_rdma_result *)(uintptr_t)gdk_ldc64(&r->results);
	const uint32_t mask = gdk_ldc32(GDK_QP_AT(gdk_rdma_srq(r), rq_wqe_mask));
	uint64_t at = gdk_ld64(&r->returned, GDK_SCOPE_GPU);
	const uint64_t first = at;
	uint32_t conn = 0;

	GDK_LOOP
	while (at < end && !(conn & GDK_RDMA_FAILED)) {
		struct gdk_rdma_result *res = &results[at & mask];

		conn = gdk_ld32(&res->conn, GDK_SCOPE_GPU);
		if (!conn || (conn & GDK_RDMA_FAILED && out->num)) {
			conn = 0;
			break;
		}
		if (out->imm)
			out->imm[out->num] = gdk_ld32(&res->imm_be, GDK_SCOPE_GPU);
		if (out->conn)
			out->conn[out->num] = (conn & ~GDK_RDMA_FAILED) - 1;
		out->num++;
		gdk_st32(&res->conn, 0, GDK_SCOPE_GPU);
		at++;
	}
	if (at != first) {
		/* Release: the table and the CQEs, then the slots are free. Pairs with the acquire
		 * in gdk_rdma_recv_reserve(). */
		gdk_fence_rel(GDK_SCOPE_GPU);
		gdk_st64(&r->returned, at, GDK_SCOPE_GPU);
	}
	return conn & GDK_RDMA_FAILED ? -EIO : 0;
}

/** Reads all CQEs that have arrived, unless another thread does, and returns results. */
GDK_FN int gdk_rdma_collect(struct doca_gpu_dev_rdma_r *r, uint64_t end, struct gdk_rdma_out *out)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t polled, was;
	int err;

	/* Acquire: pairs with the release below. */
	if (gdk_rmw_cas32(&r->busy, 0, 1, GDK_SCOPE_GPU))
		return 0;
	was = gdk_ld64(&r->polled, GDK_SCOPE_GPU);
	GDK_LOOP
	for (polled = was; (err = gdk_srq_poll(&r->cq, polled, &cqe)) != EBUSY; polled++)
		gdk_rdma_note(r, cqe, err != 0);
	if (polled != was)
		gdk_st64(&r->polled, polled, GDK_SCOPE_GPU);
	err = gdk_rdma_take(r, end, out);
	/* Release: polled, the table and returned, before the next thread reads them. */
	gdk_fence_rel(GDK_SCOPE_GPU);
	gdk_st32(&r->busy, 0, GDK_SCOPE_GPU);
	return err;
}

/** The status of the receive queue, or of the connections if all of them have ended. */
GDK_FN int gdk_rdma_recv_status(struct doca_gpu_dev_rdma_r *r)
{
	const struct doca_gpu_dev_rdma *rdma =
		(const struct doca_gpu_dev_rdma *)(uintptr_t)gdk_ldc64(&r->rdma);
	const uint32_t conns = gdk_ldc32(&rdma->num);
	struct doca_gpu_dev_verbs_qp *qp;
	int err = gdk_qp_status(gdk_rdma_srq(r)), one;
	uint32_t i;

	if (err)
		return err;
	GDK_LOOP
	for (i = 0; i < conns; i++) {
		qp = gdk_rdma_conn_qp(gdk_rdma_conn(rdma, i));
		if (!qp)
			continue;
		one = gdk_qp_status(qp);
		if (!one)
			return 0;
		err = err ? err : one;
	}
	return err;
}

#define GDK_RDMA_IDLE 16u /**< polls without a result, for each poll of a send queue */

/**
 * A poll found nothing. Polls now and then the send queue of a connection, one after the other: if
 * the remote side is gone, the operations of the connection fail, but there may be no thread that
 * waits for them.
 */
GDK_FN void gdk_rdma_idle(struct doca_gpu_dev_rdma_r *r)
{
	const struct doca_gpu_dev_rdma *rdma =
		(const struct doca_gpu_dev_rdma *)(uintptr_t)gdk_ldc64(&r->rdma);
	const uint32_t turn = gdk_ld32(&r->idle, GDK_SCOPE_GPU) + 1;
	struct doca_gpu_dev_verbs_qp *qp;
	struct gdk_qp_state *st;
	struct gdk_rdma_conn *c;
	uint64_t to, done;

	gdk_st32(&r->idle, turn, GDK_SCOPE_GPU); /* several threads may lose some turns */
	if (turn % GDK_RDMA_IDLE)
		return;
	c = gdk_rdma_conn(rdma, turn / GDK_RDMA_IDLE % gdk_ldc32(&rdma->num));
	qp = gdk_rdma_conn_qp(c);
	if (!qp)
		return;
	st = gdk_state_of_qp(qp);
	to = gdk_ld64(&c->committed, GDK_SCOPE_GPU);
	done = gdk_ld64(&st->completed, GDK_SCOPE_GPU);
	/* An error flushes the last operation, too. gdk_poll_ticket() would cost 15 registers. */
	if (done < to && gdk_look(st, to, done, 0, GDK_WAIT_ONCE) == -EIO)
		(void)gdk_state_end(st, -EIO);
}

/**
 * Returns the results of receives in the order in which they were posted, each once: those that are
 * complete or, with block, all that were committed before the call. Returns 0; -EIO with the result
 * of one receive that failed, whose connection has ended; or, with the results so far, the status
 * of the receive queue, that of the connections if all have ended, or -ETIMEDOUT after the time
 * limit. A wait that fails does not end the receive queue.
 */
GDK_FN int gdk_rdma_recv_wait(struct doca_gpu_dev_rdma_r *r, int block, struct gdk_rdma_out *out)
{
	struct gdk_qp_state *st = gdk_state_of_qp(gdk_rdma_srq(r));
	const uint64_t end = gdk_ld64(&r->committed, GDK_SCOPE_GPU);
	struct gdk_wait_timer w = { 0, GDK_REPEAT_NS, 0, 0 };
	uint64_t limit = GDK_QP_LIMIT, waited;
	uint32_t before;
	int err;

	GDK_LOOP
	for (;;) {
		before = out->num;
		err = gdk_rdma_collect(r, end, out);
		/* Acquire: returned, then the data of receives that another thread returned. Pairs
		 * with the release in gdk_rdma_take(). */
		if (err || gdk_ld64_acq(&r->returned, GDK_SCOPE_GPU) >= end)
			return err;
		if (!block && out->num)
			return 0;
		if (out->num != before) {
			w.start = 0;
			continue;
		}
		gdk_rdma_idle(r);
		err = gdk_rdma_recv_status(r);
		if (err || !block)
			return err;
		waited = gdk_wait_turn(st, &w, &limit, 0);
		err = waited ? gdk_wait_check(st, waited, limit) : 0;
		if (err)
			return err;
	}
}

#endif
