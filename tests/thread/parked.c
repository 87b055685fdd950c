/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The path of shared use that is inlined on a GPU: the token is parked at the first slot, nothing
 * needs system scope (p.parked is 2), and the token moves on between DBREC and register, which CPU
 * threads otherwise do not do. Threads post to one QP. Every WQE must be rung and executed exactly
 * once, the DBREC may only rise, and each doorbell must follow its DBREC; doorbells of successive
 * holders may arrive in any order, as at a NIC. Must be clean under ThreadSanitizer.
 */
#define GDK_TOKEN_FIRST 1
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "device/gdk/platform.h"

#define THREADS 4u
#define ROUNDS	1500u
#define DEPTH	64u

static uint32_t *dbrec_word; /* of the QP, or NULL */
static atomic_uint doorbell; /* highest index in a register store, as the NIC compares them */
static atomic_uint wrong, rung_slots, parked_posts;
static __thread unsigned int turns;

/* Lets other threads run at a point where the code must allow it. */
static void pause_here(void)
{
	if (++turns % 31 == 0)
		usleep(50);
	else if (turns % 3 == 0)
		gdk_host_yield();
}

static void complain(const char *what, unsigned int v)
{
	if (atomic_fetch_add(&wrong, 1) < 8)
		fprintf(stderr, "parked: %s: %u\n", what, v);
}

static void store_dbrec(uint32_t be)
{
	uint32_t old;
	int16_t step;

	pause_here();
	old = __builtin_bswap32(__atomic_exchange_n(dbrec_word, be, __ATOMIC_ACQ_REL));
	step = (int16_t)(uint16_t)(__builtin_bswap32(be) - old);
	if (step <= 0)
		complain("the DBREC does not rise", old);
	else
		atomic_fetch_add(&rung_slots, (unsigned int)step);
	pause_here();
}

static void store_register(uint64_t v)
{
	const uint32_t index = __builtin_bswap32((uint32_t)v) >> 8 & 0xffff;
	unsigned int old = atomic_load(&doorbell);

	pause_here();
	if (dbrec_word &&
	    (int16_t)(uint16_t)(__builtin_bswap32(__atomic_load_n(dbrec_word, __ATOMIC_ACQUIRE)) -
				index) < 0)
		complain("a doorbell is before its DBREC", index);
	while ((int16_t)(uint16_t)(index - old) > 0 &&
	       !atomic_compare_exchange_weak(&doorbell, &old, index))
		;
}

static void store32(uint32_t *p, uint32_t v, int scope)
{
	if (p == dbrec_word)
		store_dbrec(v);
	else
		gdk_st32(p, v, scope);
}

static void add64(uint64_t *p, uint64_t v, int scope)
{
	pause_here();
	atomic_fetch_add(&parked_posts, 1);
	gdk_red_add64(p, v, scope);
}

#define gdk_st32	    store32
#define gdk_red_add64	    add64
#define gdk_mmio_st64(p, v) ((void)(p), store_register(v))

#include "../unit/rig.h"

static uint8_t executed[THREADS][ROUNDS * 3];
static int stop;

struct job {
	struct rig *rig;
	gdk_mode_t mode;
	uint32_t id, posted;
	int alone, err;
};

static void note(struct rig *r, uint64_t slot, const struct doca_gpu_dev_verbs_wqe *wqe)
{
	const uint64_t token = be64toh(wqe->rw_rseg.raddr);
	const uint32_t id = (uint32_t)(token >> 32), seq = (uint32_t)token;

	if (id >= THREADS || seq >= ROUNDS * 3 || executed[id][seq]++)
		rig_fault(r, "WQE executed twice, or unknown", slot);
}

static void *nic(void *arg)
{
	struct rig *r = arg;
	uint32_t n;
	int last;

	do {
		last = __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
		r->pi += (uint16_t)(atomic_load(&doorbell) - (uint16_t)r->pi);
		while (r->ci < r->pi) {
			n = rig_exec(r);
			if (!n)
				abort();
			r->ci += n;
		}
		gdk_host_yield();
	} while (!last);
	return NULL;
}

/* Posts 1 to 3 WQEs with one doorbell. */
static int post(struct job *j, uint32_t round, uint64_t *ticket)
{
	struct doca_gpu_dev_verbs_qp *qp = &j->rig->qp;
	const struct gdk_how how = gdk_how(j->mode, RIG_AUTO, GDK_THREAD, 0);
	const uint32_t n = 1 + (round + j->id) % 3;
	struct gdk_post p;
	uint32_t i;
	int err;

	err = gdk_post_begin(qp, &p, n, 0, how);
	if (err)
		return err;
	for (i = 0; i < n; i++, j->posted++)
		gdk_wqe_rdma(qp,
			     gdk_wqe_at(gdk_get_wqe_ptr(qp, p.idx + i), (uint16_t)(p.idx + i),
					DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, GDK_CE_ALWAYS),
			     gdk_mem((uint64_t)j->id << 32 | j->posted, gdk_key(1)),
			     gdk_mem(0, gdk_key(2)), 64);
	gdk_post_end(&p, how);
	*ticket = p.idx + n - 1;
	return 0;
}

/* Exactly the last DEPTH slots below rung are published, and the token is parked behind them. */
static int words_good(const struct rig *r)
{
	const uint64_t *words = (const uint64_t *)(const void *)(r->st + 1);
	uint32_t i, n = r->st->left != 0;

	for (i = 0; i < DEPTH / 32; i++)
		n += (uint32_t)__builtin_popcountll(words[i] >> 32);
	for (i = 1; i <= DEPTH; i++)
		n += r->st->rung >= i && !gdk_is_ready(r->st, DEPTH, r->st->rung - i);
	return n == 1 && r->st->parked == r->st->rung;
}

static void *run(void *arg)
{
	struct job *j = arg;
	uint64_t ticket = 0;
	uint32_t i;

	for (i = 0; i < ROUNDS && !j->err; i++) {
		j->err = post(j, i, &ticket);
		if (j->alone && !words_good(j->rig))
			complain("wrong words or token after post", i);
		if (!j->err && (i % 32 == j->id || i + 1 == ROUNDS))
			j->err = gdk_wait(&j->rig->qp, ticket, j->mode);
	}
	return NULL;
}

static int round_of(int handler, gdk_mode_t mode, uint32_t threads)
{
	pthread_t nic_thread, thread[THREADS];
	struct job jobs[THREADS];
	uint32_t i, seq, missing = 0, parked;
	struct rig r;
	uint64_t end;
	int bad = 0;

	rig_init(&r, DEPTH, handler, 0);
	r.st->flags &= ~GDK_QPF_SYS_SCOPE;
	r.exec = note;
	memset(executed, 0, sizeof(executed));
	dbrec_word = handler == RIG_NO_DBR ? NULL : &r.dbrec[1];
	atomic_store(&doorbell, 0);
	atomic_store(&rung_slots, 0);
	atomic_store(&parked_posts, 0);
	stop = 0;
	pthread_create(&nic_thread, NULL, nic, &r);
	for (i = 0; i < threads; i++) {
		jobs[i] = (struct job){ &r, mode, i, 0, threads == 1, 0 };
		pthread_create(&thread[i], NULL, run, &jobs[i]);
	}
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		bad |= jobs[i].err;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(nic_thread, NULL);
	for (i = 0; i < threads; i++)
		for (seq = 0; seq < jobs[i].posted; seq++)
			missing += executed[i][seq] != 1;
	end = r.qp.sq_rsvd_index;
	parked = atomic_load(&parked_posts) / 2; /* two additions each */
	bad |= missing || r.faults || r.ci != end || r.st->rung != end || !words_good(&r);
	bad |= dbrec_word &&
	       (atomic_load(&rung_slots) != (uint32_t)end || r.dbrec[1] != gdk_dbrec_value(end));
	/* A lone thread takes another path only where the ring is full. */
	bad |= threads == 1 ? parked < ROUNDS * 3 / 4 : parked == 0;
	if (bad)
		fprintf(stderr,
			"handler %d mode %d, %u threads: %u WQEs missing, %d faults, rung %llu of "
			"%llu, executed %llu, %u slots by DBREC, %u parked posts\n",
			handler, (int)mode, threads, missing, r.faults,
			(unsigned long long)r.st->rung, (unsigned long long)end,
			(unsigned long long)r.ci, atomic_load(&rung_slots), parked);
	rig_fini(&r);
	return bad != 0;
}

int main(void)
{
	static const gdk_mode_t modes[] = { RIG_GPU, RIG_CTA };
	static const int handlers[] = { RIG_DB, RIG_NO_DBR };
	unsigned int m, h;
	int bad = 0;

	for (m = 0; m < 2; m++)
		for (h = 0; h < 2; h++)
			bad |= round_of(handlers[h], modes[m], 1) |
			       round_of(handlers[h], modes[m], THREADS);
	return bad | (atomic_load(&wrong) != 0);
}
