/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests batches that the lanes of simulated warps post. Two blocks of 40 threads (a warp of
 * 32 lanes and one of 8) share a QP. They post as converged threads, as warps and as
 * blocks, with WQEs of one and two slots, beside threads that reserve and submit on
 * their own. Every WQE must be executed exactly once, and no call may ring for others for long
 * before it offers the token. Must be clean under ThreadSanitizer.
 */
#define GDK_WARP 32
#include <pthread.h>

#include "ring_count.h"

#define BLOCKS	2u
#define THREADS 40u
#define LANES	(BLOCKS * THREADS)
#define ROUNDS	60u
#define PARTS	3u /* largest number of WQEs per thread and round */

struct job {
	struct rig *rig;
	struct gdk_host_block *block;
	enum doca_gpu_dev_verbs_resource_sharing_mode mode;
	uint32_t rank, id, most_rings, offers;
	int err;
};

static uint8_t expected[LANES][ROUNDS * PARTS], executed[LANES][ROUNDS * PARTS];
static int stop;

static void note(struct rig *r, uint64_t slot, const struct doca_gpu_dev_verbs_wqe *wqe)
{
	const uint64_t token = be64toh(wqe->rw_rseg.raddr);
	const uint32_t id = (uint32_t)(token >> 32), seq = (uint32_t)token;

	if (id >= LANES || seq >= ROUNDS * PARTS)
		rig_fault(r, "WQE with a wrong address", slot);
	else if (executed[id][seq]++)
		rig_fault(r, "WQE executed twice", slot);
}

static void *nic(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		rig_nic(arg);
		gdk_host_yield();
	}
	return NULL;
}

/* Builds a WQE of two slots if `two` is set, otherwise of one. */
static void write_wqe(struct job *j, uint64_t idx, uint32_t seq, int two)
{
	struct doca_gpu_dev_verbs_qp *qp = &j->rig->qp;
	const struct gdk_atomic_ext arg = { 0, 0, 1, 2, 3, 4 };
	const uint64_t token = (uint64_t)j->id << 32 | seq;

	expected[j->id][seq]++;
	if (two)
		gdk_wqe_atomic_ext(qp,
				   gdk_wqe_at(gdk_get_wqe_ptr(qp, idx), (uint16_t)idx,
					      DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS,
					      GDK_CE_ALWAYS),
				   gdk_get_wqe_ptr(qp, idx + 1), gdk_mem(token, gdk_key(1)),
				   gdk_mem(token, gdk_key(2)), 8, &arg);
	else
		gdk_wqe_rdma(qp,
			     gdk_wqe_at(gdk_get_wqe_ptr(qp, idx), (uint16_t)idx,
					DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, GDK_CE_ALWAYS),
			     gdk_mem(token, gdk_key(1)), gdk_mem(token, gdk_key(2)), 64);
}

/* Posts a batch of `slots` slots per thread: 1 (a short WQE), 2 (a long WQE) or 3
 * (both). extra: one more WQE for the whole group, built by rank 0; not in THREAD scope. */
static int batch(struct job *j, uint32_t seq, uint32_t slots, uint32_t extra, gdk_exec_t scope,
		 uint32_t code_opt, uint64_t *ticket)
{
	const struct gdk_how how = gdk_how(j->mode, RIG_AUTO, scope, code_opt);
	struct gdk_post p;
	int err = gdk_post_begin(&j->rig->qp, &p, slots, extra, how);

	*ticket = p.idx + slots - 1;
	if (err)
		return err;
	if (slots % 2)
		write_wqe(j, p.idx, seq, 0);
	if (slots > 1)
		write_wqe(j, p.idx + slots - 2, seq + 1, 1);
	if (extra && p.rank == 0) {
		if (p.base + p.total - 1 <= *ticket)
			return -ERANGE;
		write_wqe(j, p.base + p.total - 1, seq + 2, 0);
	}
	gdk_post_end(&p, how);
	return 0;
}

static int by_hand(struct job *j, uint32_t seq, uint32_t code_opt, uint64_t *ticket)
{
	struct doca_gpu_dev_verbs_qp *qp = &j->rig->qp;
	int err = gdk_reserve(qp, 1, j->mode, 0, ticket);

	if (err)
		return err;
	write_wqe(j, *ticket, seq, 0);
	gdk_mark_ready(qp, *ticket, *ticket, j->mode, RIG_AUTO);
	gdk_submit(qp, *ticket + 1, gdk_how(j->mode, RIG_AUTO, GDK_THREAD, code_opt));
	return 0;
}

/* The kinds of batches alternate. In the thread scope, the parameters differ from lane to lane. */
static int post(struct job *j, uint32_t round, uint64_t *ticket)
{
	const uint32_t seq = round * PARTS, mix = j->rank * 7 + round;
	const uint32_t code_opt = round % 3 ? GDK_OPT_SKIP_DB : 0;
	/* WARP scope needs a whole warp. */
	const uint32_t whole = j->rank < THREADS / 32 * 32;
	const gdk_exec_t warp = whole ? GDK_WARP_SCOPE : RIG_THREAD;

	switch (round % 6) {
	case 0:
		return batch(j, seq, 1, 1, GDK_BLOCK_SCOPE, code_opt, ticket);
	case 1:
		return batch(j, seq, 2, whole, warp, code_opt, ticket);
	case 2:
		return batch(j, seq, 1, 0, warp, 0, ticket);
	case 3:
		return mix % 2 ? by_hand(j, seq, code_opt, ticket)
			       : batch(j, seq, 1, 0, RIG_THREAD, code_opt, ticket);
	default:
		return batch(j, seq, 1 + mix % 3, 0, RIG_THREAD, code_opt, ticket);
	}
}

static void *lane(void *arg)
{
	struct job *j = arg;
	uint64_t ticket = 0;
	uint32_t i;
	int err = 0;

	gdk_host_enter(j->block, j->rank);
	for (i = 0; i < ROUNDS && !err; i++) {
		rung_now = 0;
		err = post(j, i, &ticket);
		rung_now = 0;
		if (!err && ((j->id + i) % 8 == 0 || i + 1 == ROUNDS))
			err = gdk_wait(&j->rig->qp, ticket, j->mode);
	}
	j->err = err;
	j->most_rings = rung_most;
	j->offers = token_offers;
	gdk_host_leave();
	return NULL;
}

static int check_executed(void)
{
	uint32_t id, seq, wrong = 0;

	for (id = 0; id < LANES; id++)
		for (seq = 0; seq < ROUNDS * PARTS; seq++)
			wrong += executed[id][seq] != expected[id][seq];
	if (wrong)
		fprintf(stderr, "%u WQEs not executed exactly once\n", wrong);
	return wrong != 0;
}

static int round_of(int handler, enum doca_gpu_dev_verbs_resource_sharing_mode mode, uint32_t depth)
{
	static struct gdk_host_warp warps[BLOCKS][(THREADS + 31) / 32];
	struct gdk_host_block blocks[BLOCKS];
	pthread_t nic_thread, threads[LANES];
	struct job jobs[LANES];
	struct rig r;
	uint32_t i, all_offers = 0;
	int bad = 0;

	rig_init(&r, depth, handler, 0);
	r.exec = note;
	count_in(&r);
	memset(executed, 0, sizeof(executed));
	memset(expected, 0, sizeof(expected));
	stop = 0;
	for (i = 0; i < BLOCKS; i++)
		gdk_host_block_init(&blocks[i], warps[i], THREADS, depth + i);
	pthread_create(&nic_thread, NULL, nic, &r);
	for (i = 0; i < LANES; i++) {
		jobs[i] = (struct job){ &r, &blocks[i / THREADS], mode, i % THREADS, i, 0, 0, 0 };
		pthread_create(&threads[i], NULL, lane, &jobs[i]);
	}
	for (i = 0; i < LANES; i++) {
		pthread_join(threads[i], NULL);
		bad |= jobs[i].err;
		all_offers += jobs[i].offers;
		if (jobs[i].most_rings > MOST_RINGS) {
			fprintf(stderr, "%u doorbells before the token was offered\n",
				jobs[i].most_rings);
			bad = 1;
		}
	}
	if (!all_offers || gdk_flush(&r.qp, mode))
		bad = 1;

	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(nic_thread, NULL);
	for (i = 0; i < BLOCKS; i++)
		gdk_host_block_fini(&blocks[i]);
	bad |= check_executed() | r.faults;
	bad |= r.st->completed != r.qp.sq_rsvd_index;
	if (bad)
		fprintf(stderr,
			"handler %d mode %d depth %u: status %d, reserved %llu, completed "
			"%llu, %d faults\n",
			handler, (int)mode, depth, r.st->status,
			(unsigned long long)r.qp.sq_rsvd_index, (unsigned long long)r.st->completed,
			r.faults);
	rig_fini(&r);
	return bad != 0;
}

int main(void)
{
	return round_of(RIG_DB, RIG_GPU, 128) | round_of(RIG_NO_DBR, RIG_CTA, 256) |
	       round_of(RIG_BF, RIG_GPU, 128) | round_of(RIG_PROXY, RIG_GPU, 512);
}
