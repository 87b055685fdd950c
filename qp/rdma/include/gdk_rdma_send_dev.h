/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Connections of an RDMA object on the device, and the operations that they send. Each connection
 * is an exported queue pair with 64-byte slots. An operation has one WQE of one slot, so its
 * position is the index of its slot (qp/README.md), which the functions mask.
 *
 *   strong  The thread reserves the next slot by an atomic addition, writes its WQE and publishes
 *           it (post_dev.h). A commit asks for a doorbell for all slots that are reserved.
 *   weak    The caller chooses the position, and the thread only writes the WQE. The commit
 *           reserves and publishes the next n slots for all threads, and rings.
 *
 * A position is that of the first slot with these low bits that is not committed: callers may pass
 * 64-bit counters, or counters masked with 0xffff or with the ring size. So a weak writer that is a
 * whole ring ahead of the commits overwrites a WQE. The debug build detects this if the position
 * tells it or the slot was written already, and ends the queue pair; and a commit detects slots
 * that were not written (debug_dev.h). Before a slot is written again, its last WQE must be
 * complete: a weak writer waits for that as a strong one does.
 *
 * All functions use mode GPU: the threads may belong to several blocks.
 */
#ifndef GDK_RDMA_SEND_DEV_H
#define GDK_RDMA_SEND_DEV_H

#include "device/gdk/send_dev.h"
#include "gdk_sdk_shape.h"

/** Sharing mode of all functions. */
#define GDK_RDMA_MODE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU

/** A connection. The host writes qp when the connection is established. */
struct gdk_rdma_conn {
	uint64_t qp;			   /**< device struct of the queue pair; 0: not connected */
	uint8_t pad0[GDK_STATE_LINE - 8];  /**< not used */
	uint64_t committed;		   /**< operations below this index are committed */
	uint64_t commits;		   /**< number of commits */
	uint64_t waited;		   /**< commits that gdk_rdma_wait_all() has returned */
	uint32_t reported;		   /**< 1: it has returned the end of the connection, too */
	uint8_t pad1[GDK_STATE_LINE - 28]; /**< not used */
};

/** An RDMA object in kernels. Opaque. */
struct doca_gpu_dev_rdma {
	uint64_t conns;			  /**< struct gdk_rdma_conn, in an array */
	uint64_t recv;			  /**< struct doca_gpu_dev_rdma_r */
	uint32_t num;			  /**< elements of conns */
	uint8_t pad[GDK_STATE_LINE - 20]; /**< not used */
};

/** Where an operation is written. */
struct gdk_rdma_at {
	int weak;	   /**< at a position that the caller chose */
	uint32_t position; /**< of a weak operation */
};

/** Returns the place of a strong operation. */
GDK_FN struct gdk_rdma_at gdk_rdma_next(void)
{
	const struct gdk_rdma_at at = { 0, 0 };

	return at;
}

/** Returns the place of a weak operation. */
GDK_FN struct gdk_rdma_at gdk_rdma_at(uint32_t position)
{
	const struct gdk_rdma_at at = { 1, position };

	return at;
}

/** Element i of conns, which is less than num. */
GDK_FN struct gdk_rdma_conn *gdk_rdma_conn(const struct doca_gpu_dev_rdma *rdma, uint32_t i)
{
	return (struct gdk_rdma_conn *)(uintptr_t)gdk_ldc64(&rdma->conns) + i;
}

/** The queue pair, or NULL while there is none. The address never changes once it is stored, so the
 * first load may be cached. */
GDK_FN struct doca_gpu_dev_verbs_qp *gdk_rdma_conn_qp(const struct gdk_rdma_conn *conn)
{
	uint64_t qp = gdk_ldc64(&conn->qp);

	if (GDK_RARE(!qp))
		qp = gdk_ld64(&conn->qp, GDK_SCOPE_SYS);
	return (struct doca_gpu_dev_verbs_qp *)(uintptr_t)qp;
}

/** Returns -EINVAL: there is no such connection; -ENOTCONN: it is not established. */
GDK_FN int gdk_rdma_find(const struct doca_gpu_dev_rdma *rdma, uint32_t i,
			 struct gdk_rdma_conn **conn, struct doca_gpu_dev_verbs_qp **qp)
{
	if (GDK_RARE(i >= gdk_ldc32(&rdma->num)))
		return -EINVAL;
	*conn = gdk_rdma_conn(rdma, i);
	*qp = gdk_rdma_conn_qp(*conn);
	return *qp ? 0 : -ENOTCONN;
}

/* ---- positions ---- */

/** The index of a position: the first one not below `end` with its low bits. */
GDK_FN uint64_t gdk_rdma_index(uint64_t end, uint32_t position, uint32_t depth)
{
	return end + ((position - (uint32_t)end) & (depth - 1));
}

#ifdef GDK_DEBUG
/** Prints a line and ends the queue. Returns the status that ended it. */
GDK_SLOW_FN int gdk_rdma_refuse(struct gdk_qp_state *st, uint32_t position, uint64_t end,
				const char *why)
{
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	gdk_text_start(&t, buf, sizeof(buf));
	gdk_text_field(&t, "gdaki: QP ", gdk_bswap32(gdk_ldc32(&st->qpn8_be)) >> 8);
	gdk_text_count(&t, ": position ", position);
	gdk_text_add(&t, why);
	gdk_text_count(&t, " (commits end at ", end);
	gdk_text_count(&t, ", slots ", gdk_ldc32(&st->depth));
	gdk_text_add(&t, "); not written\n");
	GDK_DEBUG_PRINT(buf);
	return gdk_state_end(st, -EINVAL);
}

/** A position of at least 16 bits that is not among the next `depth` ones. One below depth may have
 * been masked with the size of the ring. */
GDK_FN int gdk_rdma_check_position(struct gdk_qp_state *st, uint64_t end, uint32_t position)
{
	const uint32_t depth = gdk_ldc32(&st->depth);

	if (position < depth || ((position - (uint32_t)end) & 0xffff) < depth)
		return 0;
	return gdk_rdma_refuse(st, position, end, " is not among the next free ones");
}

/** A WQE has 16 bits of its index, so the slot shows whether it was written in this lap. */
GDK_FN int gdk_rdma_check_unwritten(struct gdk_qp_state *st, uint64_t end, uint64_t idx)
{
	const uint32_t depth = gdk_ldc32(&st->depth);
	const uint32_t *slot =
		(const uint32_t *)(uintptr_t)(gdk_ldc64(&st->ring) + ((idx & (depth - 1)) << 6));
	const uint32_t first = gdk_bswap32(gdk_any_ld32(slot, GDK_SCOPE_GPU));

	if (!gdk_any_ld32(slot + 1, GDK_SCOPE_GPU) || (first >> 8 & 0xffff) != (idx & 0xffff))
		return 0;
	return gdk_rdma_refuse(st, (uint32_t)idx, end, " was written already");
}
#else
/** Without GDK_DEBUG nothing is checked. */
GDK_FN int gdk_rdma_check_position(struct gdk_qp_state *st, uint64_t end, uint32_t position)
{
	(void)st, (void)end, (void)position;
	return 0;
}

/** Without GDK_DEBUG nothing is checked. */
GDK_FN int gdk_rdma_check_unwritten(struct gdk_qp_state *st, uint64_t end, uint64_t idx)
{
	(void)st, (void)end, (void)idx;
	return 0;
}
#endif

/* ---- posting ---- */

/** Writes a WQE at a position that the caller chose. If its slot is still in use, waits. */
GDK_FN int gdk_rdma_post_weak(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_one *one,
			      uint32_t segments, uint32_t position)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_wqes w = gdk_wqes_of_qp(qp);
	/* Slots below `end` are committed or reserved by strong operations. */
	const uint64_t end = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU);
	const uint64_t idx = gdk_rdma_index(end, position, w.mask + 1);
	uint64_t done, ended;
	int full, err;

	gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
	full = (uint32_t)(idx - done) > w.mask;
	if (GDK_RARE(full | (ended != 0))) {
		/* The WQE that this one overwrites is below `end`, so no commit is missing. */
		err = gdk_shared_slow(st, idx, w.mask, GDK_QP_LIMIT,
				      full ? GDK_RING | GDK_WANT | GDK_WAIT | GDK_WAIT_ROOM : 0);
		if (err)
			return err;
	}
	err = gdk_rdma_check_position(st, end, position);
	if (!err)
		err = gdk_rdma_check_unwritten(st, end, idx);
	if (err)
		return err;
	gdk_fence_load_store(GDK_SCOPE_GPU); /* as in gdk_own_reserve() */
	gdk_one_write(&w, idx, one, segments);
	return 0;
}

/** Writes and publishes a WQE at the next position. Converged lanes share a reservation. */
GDK_FN int gdk_rdma_post_strong(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_one *one,
				uint32_t segments)
{
	struct gdk_post p;
	int err = gdk_post_begin(qp, &p, 1, 0, gdk_how(GDK_RDMA_MODE, GDK_AUTO, GDK_THREAD, 0));

	if (GDK_RARE(err))
		return err;
	gdk_one_write(&p.wqes, p.idx, one, segments);
	gdk_post_end(&p, gdk_how(GDK_RDMA_MODE, GDK_AUTO, GDK_THREAD, GDK_OPT_SKIP_DB));
	return 0;
}

/**
 * Posts one operation. A transfer has up to 1 GiB, one with immediate at least one byte, one whose
 * WQE carries the data 1 to 28 bytes. Returns 0, -EINVAL (a wrong size or connection), -ENOTCONN,
 * or the status that ended the queue pair; then nothing is posted.
 */
GDK_FN int gdk_rdma_post(struct doca_gpu_dev_rdma *rdma, uint32_t conn, const struct gdk_op_move *m,
			 int has_imm, struct gdk_rdma_at at)
{
	const uint64_t least = m->kind == GDK_MOVE_INLINE || m->kind == GDK_MOVE_WRITE_IMM;
	struct doca_gpu_dev_verbs_qp *qp;
	struct gdk_rdma_conn *c;
	struct gdk_one one;
	int err = gdk_rdma_find(rdma, conn, &c, &qp);

	if (GDK_RARE(err))
		return err;
	if (GDK_RARE(m->size < least || m->size > gdk_move_step(m)))
		return -EINVAL;
	one = gdk_move_one(m, 0);
	if (m->kind == GDK_MOVE_INLINE && has_imm) {
		one.op = DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM;
		one.imm_be = m->imm_be;
	}
	return at.weak ? gdk_rdma_post_weak(qp, &one, gdk_move_segments(m), at.position)
		       : gdk_rdma_post_strong(qp, &one, gdk_move_segments(m));
}

/* ---- commit, wait ---- */

/** The operations below `to` are published. Rings, and counts the commit. */
GDK_FN int gdk_rdma_committed(struct gdk_rdma_conn *conn, struct doca_gpu_dev_verbs_qp *qp,
			      uint64_t to)
{
	int err;

	gdk_submit(qp, to, gdk_how(GDK_RDMA_MODE, GDK_AUTO, GDK_THREAD, 0));
	err = gdk_qp_status(qp);
	if (GDK_RARE(err))
		return err;
	gdk_red_max64(&conn->committed, to, GDK_SCOPE_GPU);
	/* Release: committed, then commits. Pairs with the acquire in gdk_rdma_wait_all(). */
	gdk_fence_rel(GDK_SCOPE_GPU);
	gdk_red_inc64(&conn->commits, GDK_SCOPE_GPU);
	return 0;
}

/** Commits all strong operations that were posted before. */
GDK_FN int gdk_rdma_commit_strong(struct doca_gpu_dev_rdma *rdma, uint32_t conn)
{
	struct doca_gpu_dev_verbs_qp *qp;
	struct gdk_rdma_conn *c;
	int err = gdk_rdma_find(rdma, conn, &c, &qp);
	uint64_t to;

	if (GDK_RARE(err))
		return err;
	to = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU);
	return to ? gdk_rdma_committed(c, qp, to) : gdk_qp_status(qp);
}

/** Commits the n weak operations that follow those committed before. Returns -EINVAL if the slots
 * cannot all have been written. */
GDK_FN int gdk_rdma_commit_weak(struct doca_gpu_dev_rdma *rdma, uint32_t conn, uint32_t n)
{
	struct doca_gpu_dev_verbs_qp *qp;
	struct gdk_rdma_conn *c;
	struct gdk_qp_state *st;
	uint64_t from;
	int err = gdk_rdma_find(rdma, conn, &c, &qp);

	if (GDK_RARE(err))
		return err;
	if (!n)
		return gdk_qp_status(qp);
	st = gdk_state_of_qp(qp);
	from = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU);
	/* Each writer has seen that its slot is free. */
	if (from + n - gdk_ld64(&st->completed, GDK_SCOPE_GPU) > gdk_ldc32(&st->depth))
		return gdk_qp_status(qp) ? gdk_qp_status(qp) : -EINVAL;
	from = gdk_rmw_add64(gdk_rsvd_index(qp), n, GDK_SCOPE_GPU);
	gdk_mark_ready(qp, from, from + n - 1, GDK_RDMA_MODE, GDK_AUTO);
	return gdk_rdma_committed(c, qp, from + n);
}

/** Waits for the operations below `to` and returns as gdk_wait(), or, with poll, polls once. */
GDK_FN int gdk_rdma_complete(struct doca_gpu_dev_verbs_qp *qp, uint64_t to, int poll)
{
	return poll ? gdk_poll_ticket(qp, to - 1, GDK_RDMA_MODE)
		    : gdk_wait(qp, to - 1, GDK_RDMA_MODE);
}

/**
 * Waits until all operations that were committed before are complete, on all connections. *num is
 * the number of their commits; each commit is counted by one call only. Returns 0, or the status
 * that ended a queue pair, the first one; *num then has the commits of the other connections. When
 * a connection ends, the call does not wait for the others any more, because they may have waited
 * as long; later calls do.
 */
GDK_FN int gdk_rdma_wait_all(struct doca_gpu_dev_rdma *rdma, uint32_t *num)
{
	const uint32_t conns = gdk_ldc32(&rdma->num);
	struct doca_gpu_dev_verbs_qp *qp;
	struct gdk_rdma_conn *c;
	uint64_t commits, old;
	int first = 0, poll = 0, err;
	uint32_t i;

	*num = 0;
	GDK_LOOP
	for (i = 0; i < conns; i++) {
		c = gdk_rdma_conn(rdma, i);
		qp = gdk_rdma_conn_qp(c);
		if (!qp)
			continue;
		/* Acquire: commits, then committed. */
		commits = gdk_ld64_acq(&c->commits, GDK_SCOPE_GPU);
		/* Acquire: waited, then the data of reads that another thread has waited for. */
		if (commits == gdk_ld64_acq(&c->waited, GDK_SCOPE_GPU))
			continue;
		err = gdk_rdma_complete(qp, gdk_ld64(&c->committed, GDK_SCOPE_GPU), poll);
		if (GDK_RARE(err)) {
			if (err == EBUSY)
				continue;
			first = first ? first : err;
			poll |= !gdk_ld32(&c->reported, GDK_SCOPE_GPU);
			gdk_st32(&c->reported, 1, GDK_SCOPE_GPU);
			continue;
		}
		/* Release: the data, then waited. Pairs with the acquire above. */
		gdk_fence_rel(GDK_SCOPE_GPU);
		old = gdk_max64(&c->waited, commits, GDK_SCOPE_GPU);
		*num += commits > old ? (uint32_t)(commits - old) : 0;
	}
	return first;
}

/** The next position of a connection, and the mask for positions. */
GDK_FN int gdk_rdma_info(struct doca_gpu_dev_rdma *rdma, uint32_t conn, uint32_t *position,
			 uint32_t *mask)
{
	struct doca_gpu_dev_verbs_qp *qp;
	struct gdk_rdma_conn *c;
	int err = gdk_rdma_find(rdma, conn, &c, &qp);

	if (err)
		return err;
	*mask = gdk_ldc16(GDK_QP_AT(qp, sq_wqe_mask));
	*position = (uint32_t)gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU) & *mask;
	return gdk_qp_status(qp);
}

#endif
