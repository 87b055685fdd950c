/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The benchmark of receives on CPU threads: how many receives per second 1 and 32 threads post
 * again, and round trips of two threads, with the code that recv.cu runs on a GPU. CPU threads are
 * the NIC. The times depend on the number of processors; the checks do not.
 * usage: recv [faults]
 *   faults: makes one fault after the other and fails if the checks do not find it
 */
#define GDK_WARP 32
#include "recv_host.h"

#include <pthread.h>

#include "bench.h"

#define FLAGS	 (GDK_QPF_HOST_EXEC | GDK_QPF_SYS_SCOPE)
#define DEPTH	 1024u
#define FIRST	 64u /* iterations of the first run of a warp */
#define TARGET_S 0.1
#define ROUNDS	 100u
#define QPN_A	 RECV_QPN
#define QPN_B	 (RECV_QPN + 1)
#define EARLY_NS 300000000ull /* limit of the NIC where a fault leaves it without work */
#define FAULT_AT 100u

enum fault { NONE, TWICE, LENGTH, KEY, STALE, LOST, EXTRA };

struct run {
	uint8_t *free, *mem;
	struct recv_at at;
	struct recv_job job;
	struct recv_load load;
	struct recv_seen nic, post;
	uint32_t threads;
	gdk_mode_t mode;
	gdk_exec_t scope;
	int waits, go;
	enum fault fault;
	struct gdk_host_block block;
	struct gdk_host_warp warp;
};

static uint8_t *open_memory(const struct recv_at *at, uint32_t place, uint8_t **mem)
{
	const size_t len = at->len + (size_t)RECV_FREE_PLACES * RECV_LINE;
	uint8_t *p = aligned_alloc(4096, (len + 4095) & ~(size_t)4095);

	REQUIRE(p);
	*mem = p + recv_place(place);
	return p;
}

static void await_go(const int *go)
{
	uint32_t spins = 0;

	while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
		gdk_relax(spins++);
}

/* ---- receives posted again ---- */

static void *nic_thread(void *arg)
{
	struct run *r = arg;
	volatile uint64_t box;

	await_go(&r->go);
	recv_serve(&r->job, &r->nic, 0, 1, &box);
	return NULL;
}

/* Posts a receive without writing its WQE. */
static void post_stale(struct run *r)
{
	uint64_t idx;

	REQUIRE(!gdk_rq_reserve(r->load.qp, 1, r->mode, 0, &idx));
	gdk_rq_mark_ready(r->load.qp, idx, idx, r->mode);
	REQUIRE(!gdk_rq_submit(r->load.qp, idx + 1, gdk_how(r->mode, GDK_DB, GDK_THREAD, 0)));
}

/* One thread posts receives, one of them with a fault. */
static void post_with_fault(struct run *r)
{
	const struct gdk_how how = gdk_how(r->mode, GDK_DB, GDK_THREAD, 0);
	struct doca_gpu_dev_verbs_addr a;
	uint64_t ticket;

	for (uint32_t k = 0; k < r->load.iters + (r->fault == EXTRA); k++) {
		const int now = k == FAULT_AT + (r->fault == STALE ? DEPTH : 0);

		a = recv_addr(RECV_LADDR + (k - (now && r->fault == TWICE)) * RECV_STEP);
		a.key ^= now && r->fault == KEY;
		if (now && r->fault == STALE)
			post_stale(r);
		else if (!now || r->fault != LOST)
			(void)gdk_recv(r->load.qp, a, RECV_BYTES - (now && r->fault == LENGTH),
				       &ticket, how);
	}
}

struct poster {
	struct run *r;
	uint32_t rank;
};

static void *post_thread(void *arg)
{
	const struct poster *p = arg;
	struct run *r = p->r;

	if (r->scope == GDK_WARP_SCOPE)
		gdk_host_enter(&r->block, p->rank);
	await_go(&r->go);
	if (r->fault)
		post_with_fault(r);
	else
		recv_again(&r->load, &r->post, p->rank, r->threads, r->mode, r->scope, r->waits);
	if (r->scope == GDK_WARP_SCOPE)
		gdk_host_leave();
	return NULL;
}

/* Runs all threads and returns the rate in millions of receives per second. */
static double run_once(struct run *r, uint32_t iters, uint32_t place, uint64_t limit_ns)
{
	const uint64_t count = (uint64_t)iters * r->threads;
	struct poster posters[32];
	pthread_t nic, t[32];
	uint64_t start;

	r->at = recv_layout(DEPTH, 0);
	r->free = open_memory(&r->at, place, &r->mem);
	recv_image(r->mem, r->mem, &r->at, RECV_QPN, FLAGS);
	r->job = recv_job_of(r->mem, &r->at, count, r->fault ? 32 : r->threads);
	r->job.limit_ns = limit_ns;
	r->load.qp = recv_qp(r->mem, &r->at);
	r->load.begun = recv_begun(r->mem, &r->at);
	r->load.iters = iters;
	r->load.window = r->threads == 1 ? DEPTH / 2 : 1;
	memset(&r->nic, 0, sizeof(r->nic));
	memset(&r->post, 0, sizeof(r->post));
	r->go = 0;
	gdk_host_block_init(&r->block, &r->warp, r->threads, place);
	REQUIRE(!pthread_create(&nic, NULL, nic_thread, r));
	for (uint32_t i = 0; i < r->threads; i++) {
		posters[i] = (struct poster){ r, i };
		REQUIRE(!pthread_create(&t[i], NULL, post_thread, &posters[i]));
	}
	start = gdk_now_ns();
	__atomic_store_n(&r->go, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < r->threads; i++)
		pthread_join(t[i], NULL);
	pthread_join(nic, NULL);
	gdk_host_block_fini(&r->block);
	r->nic.bad |= recv_judge(r->mem, &r->at, count, &r->nic);
	free(r->free);
	return (double)count * 1e3 / (double)(r->nic.end_ns - start);
}

static int measure(const char *name, struct run r)
{
	struct recv_row row = { .name = name, .unit = "M/s" };
	uint32_t iters = r.scope == GDK_WARP_SCOPE ? FIRST : 256 * FIRST / r.threads;
	const double rate = run_once(&r, iters, 0, 0);

	iters = (uint32_t)(rate * 1e6 * TARGET_S / r.threads);
	iters = iters < FIRST ? FIRST : iters > 10000000 ? 10000000 : iters;
	for (uint32_t i = 0; i < RECV_RUNS; i++) {
		row.value[row.runs++] = run_once(&r, iters, i, 0);
		recv_row_add(&row, &r.nic);
		recv_row_add(&row, &r.post);
		recv_row_bad(&row, r.nic.wrong ? 0 : r.nic.bad);
	}
	return recv_row_print(&row);
}

/* ---- round trip ---- */

struct trip {
	struct recv_link link[2];
	struct recv_side side[2];
	struct recv_seen nic[2], post[2];
	gdk_mode_t mode;
	int imm, go;
};

struct trip_thread {
	struct trip *t;
	int which;
};

static void *forward_thread(void *arg)
{
	const struct trip_thread *a = arg;

	await_go(&a->t->go);
	recv_forward(&a->t->link[a->which], &a->t->nic[a->which]);
	return NULL;
}

static void *side_thread(void *arg)
{
	const struct trip_thread *a = arg;

	await_go(&a->t->go);
	recv_ping(&a->t->side[a->which], &a->t->post[a->which], a->t->mode, a->t->imm);
	return NULL;
}

/* change: modifies the run before it starts, or NULL. */
static void trip_once(struct trip *t, uint32_t *took, uint32_t place,
		      void (*change)(struct trip *t))
{
	const struct recv_at at = recv_layout(RECV_RT_DEPTH, 2 * (size_t)RECV_BUFFERS * RECV_LINE);
	struct trip_thread arg[2] = { { t, 0 }, { t, 1 } };
	pthread_t nic[2], side[2];
	uint8_t *mem[2], *p[2];

	for (uint32_t i = 0; i < 2; i++) {
		p[i] = open_memory(&at, 2 * place + i, &mem[i]);
		recv_image(mem[i], mem[i], &at, QPN_A + i, FLAGS);
		t->side[i] = recv_side_of(mem[i], &at, QPN_A + i, QPN_B - i, ROUNDS,
					  i ? NULL : took);
	}
	for (uint32_t i = 0; i < 2; i++) {
		t->link[i] = recv_link_of(mem[i], mem[!i], &at, QPN_A + i, ROUNDS,
					  (uint32_t)t->imm);
		t->link[i].delay = RECV_DELAY_NS;
		t->link[i].record_limit = RECV_LIMIT_NS; /* the ringer can be suspended */
	}
	if (change)
		change(t);
	t->go = 0;
	for (int i = 0; i < 2; i++) {
		REQUIRE(!pthread_create(&nic[i], NULL, forward_thread, &arg[i]));
		REQUIRE(!pthread_create(&side[i], NULL, side_thread, &arg[i]));
	}
	__atomic_store_n(&t->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++) {
		pthread_join(nic[i], NULL);
		pthread_join(side[i], NULL);
		t->post[i].bad |= recv_judge(mem[i], &at, ROUNDS + RECV_BUFFERS / 2, NULL);
	}
	free(p[0]);
	free(p[1]);
}

static int measure_trip(const char *name, gdk_mode_t mode, int imm)
{
	struct recv_row row = { .name = name, .unit = "us" };
	static uint32_t took[ROUNDS];
	static double all[RECV_RUNS * ROUNDS];
	struct trip t;

	for (uint32_t run = 0; run < RECV_RUNS; run++) {
		double *us = all + (size_t)run * ROUNDS;

		memset(&t, 0, sizeof(t));
		t.mode = mode;
		t.imm = imm;
		trip_once(&t, took, run, NULL);
		for (uint32_t i = 0; i < ROUNDS; i++)
			us[i] = took[i] / 1e3;
		qsort(us, ROUNDS, sizeof(us[0]), recv_by_value);
		row.value[row.runs++] = us[ROUNDS / 2];
		for (int i = 0; i < 2; i++) {
			recv_row_add(&row, &t.nic[i]);
			recv_row_bad(&row, t.post[i].bad);
		}
	}
	qsort(all, RECV_RUNS * ROUNDS, sizeof(all[0]), recv_by_value);
	row.tail = all[RECV_RUNS * ROUNDS * 999 / 1000];
	return recv_row_print(&row);
}

/* ---- faults ---- */

static int found(const char *what, uint64_t bad, uint64_t want)
{
	const int ok = want ? (bad & want) == want : !bad;

	printf("%s: %s (0x%llx)\n", what, ok ? "ok" : "NOT FOUND", (unsigned long long)bad);
	return !ok;
}

static int post_fault(const char *what, enum fault fault, uint64_t want)
{
	struct run r = { .threads = 1, .mode = RECV_MODE(EXCLUSIVE), .fault = fault };

	(void)run_once(&r, 2 * DEPTH, 0, fault == LOST ? EARLY_NS : 0);
	return found(what, r.nic.bad | r.post.bad, want);
}

static void spoil_data(struct trip *t)
{
	t->link[1].spoil = 1;
}
static void spoil_imm(struct trip *t)
{
	t->link[0].spoil_imm = 1;
}
static void spoil_key(struct trip *t)
{
	t->side[0].qpn++; /* sends what the other side does not expect */
}
static void want_more(struct trip *t)
{
	t->link[0].rounds++;
	t->link[0].limit_ns = EARLY_NS;
}

static int trip_fault(const char *what, void (*change)(struct trip *t), uint64_t want)
{
	static uint32_t took[ROUNDS];
	struct trip t;

	memset(&t, 0, sizeof(t));
	t.mode = RECV_MODE(EXCLUSIVE);
	t.imm = 1;
	trip_once(&t, took, 0, change);
	return found(what, t.nic[0].bad | t.nic[1].bad | t.post[0].bad | t.post[1].bad, want);
}

static int faults(void)
{
	int bad = post_fault("no fault", NONE, 0);

	bad |= post_fault("a receive posted twice, another one lost", TWICE, RECV_BAD_SET);
	bad |= post_fault("a receive of another size", LENGTH, RECV_BAD_LENGTH);
	bad |= post_fault("a receive with another key", KEY, RECV_BAD_KEY);
	bad |= post_fault("content of the lap before", STALE, RECV_BAD_LAP | RECV_BAD_SET);
	bad |= post_fault("a receive lost", LOST, RECV_BAD_SILENT | RECV_BAD_SET);
	bad |= post_fault("a receive too many", EXTRA, RECV_BAD_END);
	bad |= trip_fault("round trip without fault", NULL, 0);
	bad |= trip_fault("wrong data", spoil_data, RECV_BAD_PAYLOAD);
	bad |= trip_fault("wrong immediate value", spoil_imm, RECV_BAD_CQE);
	bad |= trip_fault("data of another sender", spoil_key, RECV_BAD_PAYLOAD);
	bad |= trip_fault("a message lost", want_more, RECV_BAD_SILENT);
	return bad;
}

int main(int argc, char **argv)
{
	const struct run one = { .threads = 1, .mode = RECV_MODE(EXCLUSIVE) };
	const struct run all = { .threads = 32, .mode = RECV_MODE(GPU) };
	const struct run warp = { .threads = 32, .mode = RECV_MODE(CTA), .scope = GDK_WARP_SCOPE };
	struct run waits = one, all_wait = all;
	int bad = 0;

	if (argc > 1)
		return argc == 2 && !strcmp(argv[1], "faults") ? faults() : 2;
	waits.waits = all_wait.waits = 1;
	bad |= measure("CPU: exclusive, 1 thread", one);
	bad |= measure("CPU: exclusive, 1 thread, wait and post", waits);
	bad |= measure("CPU: GPU-shared, 32 threads", all);
	bad |= measure("CPU: GPU-shared, 32 threads, wait and post", all_wait);
	bad |= measure("CPU: block-shared, 1 warp, warp scope", warp);
	bad |= measure_trip("CPU: round trip, exclusive", RECV_MODE(EXCLUSIVE), 0);
	bad |= measure_trip("CPU: round trip, GPU-shared, immediate", RECV_MODE(GPU), 1);
	return bad;
}
