/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Threads share one QP in every sharing mode that allows it, with WQEs of one and two
 * slots, signaled or unsignaled, some submitted without a doorbell. Each WQE must be
 * executed exactly once, every wait must end, and every slot must be rung. No thread may ring
 * for others for long before it releases the token. Must be clean under ThreadSanitizer.
 */
#include <pthread.h>

#include "ring_count.h"

#define THREADS 6
#ifndef SHARED_WQES /* a multiple of 4, so that the last WQE of a thread gets a doorbell */
#define SHARED_WQES 1500
#endif

struct job {
	struct rig *rig;
	enum doca_gpu_dev_verbs_resource_sharing_mode mode;
	unsigned int id;
	int kinds; /* bit 0: WQEs of two slots, bit 1: unsignaled, bit 2: no doorbell */
	int err;
	uint32_t most_rings, offers;
};

static uint8_t executed[THREADS + 1][SHARED_WQES];
static int stop;

static void note(struct rig *r, uint64_t slot, const struct doca_gpu_dev_verbs_wqe *wqe)
{
	const uint64_t token = be64toh(wqe->rw_rseg.raddr);
	const unsigned int id = (unsigned int)(token >> 32), seq = (unsigned int)token;

	if (id > THREADS || seq >= SHARED_WQES) {
		rig_fault(r, "WQE with a wrong address", slot);
		return;
	}
	if (executed[id][seq]++)
		rig_fault(r, "WQE executed twice", slot);
	if ((be32toh(wqe->rw_cseg.qpn_ds) & 0x3f) == 5 && be64toh(wqe[1].dseg0.addr) != token)
		rig_fault(r, "WQE with a wrong second slot", slot);
}

static void *nic(void *arg)
{
	struct rig *r = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		rig_nic(r);
		gdk_host_yield();
	}
	return NULL;
}

static int post(struct job *j, unsigned int seq, uint64_t *ticket)
{
	struct doca_gpu_dev_verbs_qp *qp = &j->rig->qp;
	const struct gdk_atomic_ext arg = { 0, 0, 1, 2, 3, 4 };
	const int two = j->kinds & 1 && seq % 3 == 1, skip = j->kinds & 4 && seq % 4 != 3;
	const struct gdk_how how = gdk_how(j->mode, RIG_AUTO, GDK_THREAD,
					   skip ? GDK_OPT_SKIP_DB : 0);
	const uint32_t flags = j->kinds & 2 && seq % 5 ? 0 : GDK_CE_ALWAYS;
	const uint64_t token = (uint64_t)j->id << 32 | seq;
	struct doca_gpu_dev_verbs_wqe *wqe;
	struct gdk_post p = { 0 };
	uint64_t idx;
	int err;

	if (seq % 2) {
		err = gdk_reserve(qp, two ? 2 : 1, j->mode, 0, &idx);
	} else {
		err = gdk_post_begin(qp, &p, two ? 2 : 1, 0, how);
		idx = p.idx;
	}
	*ticket = idx + (two ? 1 : 0);
	if (err)
		return err;
	wqe = gdk_get_wqe_ptr(qp, idx);
	if (two)
		gdk_wqe_atomic_ext(qp,
				   gdk_wqe_at(wqe, (uint16_t)idx,
					      DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS, flags),
				   gdk_get_wqe_ptr(qp, idx + 1), gdk_mem(token, gdk_key(1)),
				   gdk_mem(token, gdk_key(2)), 8, &arg);
	else
		gdk_wqe_rdma(qp,
			     gdk_wqe_at(wqe, (uint16_t)idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					flags),
			     gdk_mem(token, gdk_key(1)), gdk_mem(token, gdk_key(2)), 64);
	if (seq % 2) {
		gdk_mark_ready(qp, idx, *ticket, j->mode, RIG_AUTO);
		gdk_submit(qp, *ticket + 1, how);
	} else {
		gdk_post_end(&p, how);
	}
	return 0;
}

static void *run(void *arg)
{
	struct job *j = arg;
	uint64_t ticket = 0;
	unsigned int i;

	for (i = 0; i < SHARED_WQES && !j->err; i++) {
		j->err = post(j, i, &ticket);
		rung_now = 0;
		/* Wait for every 50th WQE of this thread. These WQEs are signaled. */
		if (!j->err && i % 50 == 0)
			j->err = gdk_wait(&j->rig->qp, ticket, j->mode);
		rung_now = 0;
	}
	j->most_rings = rung_most;
	j->offers = token_offers;
	return NULL;
}

/* Posts one more signaled WQE and waits for all WQEs. The CQE of this WQE completes all WQEs
 * before it. */
static int finish(struct rig *r, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct job last = { .rig = r, .mode = mode, .id = THREADS };
	uint64_t ticket;
	int err = post(&last, 0, &ticket);

	return err ? err : gdk_flush(&r->qp, mode);
}

static int check_executed(void)
{
	unsigned int i, seq, missing = executed[THREADS][0] != 1;

	for (i = 0; i < THREADS; i++)
		for (seq = 0; seq < SHARED_WQES; seq++)
			missing += executed[i][seq] != 1;
	if (missing)
		fprintf(stderr, "%u WQEs not executed exactly once\n", missing);
	return missing != 0;
}

static int round_of(uint32_t depth, int handler, int collapsed, int kinds,
		    enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	pthread_t nic_thread, thread[THREADS];
	struct job jobs[THREADS];
	struct rig r;
	uint64_t rung;
	uint32_t most_rings = 0;
	unsigned int i;
	int bad, err = 0;

	rig_init(&r, depth, handler, collapsed);
	r.exec = note;
	count_in(&r);
	memset(executed, 0, sizeof(executed));
	stop = 0;
	pthread_create(&nic_thread, NULL, nic, &r);
	for (i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){ &r, mode, i, kinds, 0, 0, 0 };
		pthread_create(&thread[i], NULL, run, &jobs[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	/* The highest slot is the last WQE of some thread, and that thread submitted it. All
	 * slots are published by then, so all must be rung without help from this function. */
	rung = r.st->rung;
	bad = rung != r.qp.sq_rsvd_index;
	bad |= finish(&r, mode) != 0;
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(nic_thread, NULL);
	for (i = 0; i < THREADS; i++) {
		err = jobs[i].err ? jobs[i].err : err;
		most_rings = jobs[i].most_rings > most_rings ? jobs[i].most_rings : most_rings;
	}
	bad |= err || most_rings > MOST_RINGS;
	bad |= check_executed();
	bad |= r.faults || (r.handler == RIG_NO_DBR && r.dbrec[1] != RIG_POISON);
	bad |= r.st->completed != r.qp.sq_rsvd_index;
	if (bad)
		fprintf(stderr,
			"depth %u handler %d collapsed %d kinds %d mode %d: status %d, "
			"reserved %llu rung %llu, %llu before the last WQE, completed %llu, "
			"%d faults, error %d, %u doorbells by one holder\n",
			depth, handler, collapsed, kinds, (int)mode, r.st->status,
			(unsigned long long)r.qp.sq_rsvd_index, (unsigned long long)r.st->rung,
			(unsigned long long)rung, (unsigned long long)r.st->completed, r.faults,
			err, most_rings);
	rig_fini(&r);
	return bad;
}

int main(void)
{
	static const int handlers[] = { RIG_DB, RIG_NO_DBR, RIG_BF, RIG_PROXY };
	static const uint32_t depths[] = { 2, 64 };
	unsigned int h, d;
	int bad = 0, kinds;

	for (h = 0; h < 4; h++)
		for (d = 0; d < 2; d++)
			for (kinds = 0; kinds < 8; kinds += h ? 7 : 1)
				bad |= round_of(depths[d], handlers[h], kinds & 1, kinds,
						h & 1 ? RIG_CTA : RIG_GPU);
	bad |= round_of(2, RIG_DB, 0, 7, RIG_GPU);
	bad |= round_of(64, RIG_DB, 0, 7, RIG_CTA);
	bad |= round_of(64, RIG_DB, 1, 6, RIG_GPU);
	return bad;
}
