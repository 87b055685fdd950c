/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Two DBREC-less queue pairs share a doorbell register, and another thread, which touches no
 * queue, does not run: it is in a system call that does not sleep, or stopped between two
 * instructions as if it got no processor. With lossless.h no doorbell is lost. Without it each
 * doorbell of one queue pair is lost here, and the NIC must recover it. For a thread without a
 * processor the first recovery takes 8 s, so only LONG=1 runs this.
 */
#include <string.h>

#include "../lib/freeze.h"
#include "../softnic/lossless.h"

static bool lossless, drop;

#undef gdk_mmio_st64
static void store_register(uint64_t *p, uint64_t v)
{
	if (lossless)
		softnic_mmio_st64(p, v);
	else if (!drop)
		gdk_mmio_st64(p, v);
}
#define gdk_mmio_st64(p, v) store_register(p, v)

#include "../lib/e2e.h"

#define ROUNDS_LOSSLESS 1000
#define ROUNDS_LOST	3 /* each takes 20 ms or more */

struct two {
	struct e2e_nic nic;
	struct doca_gpu_verbs_qp_group_hl *group;
	struct e2e_qp qp[2];
};

static void two_open(struct two *s)
{
	const struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };

	e2e_open(&s->nic);
	attr.gpu_dev = s->nic.gpu;
	attr.net_dev = s->nic.dev;
	attr.ibpd = s->nic.pd;
	attr.sq_nwqe = 64;
	attr.nic_handler = E2E_NO_DBR;
	attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	E2E_REQUIRE(!doca_gpu_verbs_create_qp_group_hl(&attr, &s->group));
	e2e_qp_adopt(&s->nic, &s->qp[0], &s->group->qp_main);
	e2e_qp_adopt(&s->nic, &s->qp[1], &s->group->qp_companion);
	for (int i = 0; i < 2; i++)
		E2E_REQUIRE(
			!e2e_connect(&s->nic, s->qp[i].hl->qp, &s->nic.gid, s->qp[!i].qpn, path));
}

static void two_close(struct two *s)
{
	E2E_REQUIRE(!doca_gpu_verbs_destroy_qp_group_hl(s->group));
	e2e_close(&s->nic);
}

static uint64_t post(struct e2e_qp *qp)
{
	uint64_t idx;

	E2E_REQUIRE(!e2e_nop(qp, E2E_EXCL, GDK_CE_ALWAYS, &idx));
	return idx;
}

/* Posts on both queue pairs at once. Returns 1 if a wait fails, or if the NIC recovered another
 * number of doorbells. */
static int run(const char *what, uint64_t rounds, uint64_t lost, uint64_t forced)
{
	uint64_t all = e2e_recovered(), by_force = e2e_forced(), i, a, b;
	struct two s;
	int rc = 0;

	two_open(&s);
	for (i = 0; i < rounds && !rc; i++) {
		drop = true;
		a = post(&s.qp[0]);
		drop = false;
		b = post(&s.qp[1]);
		rc = gdk_wait_for(s.qp[1].dev, b, E2E_EXCL, 60000000000u);
		rc = rc ? rc : gdk_wait_for(s.qp[0].dev, a, E2E_EXCL, 60000000000u);
	}
	two_close(&s);
	all = e2e_recovered() - all;
	by_force = e2e_forced() - by_force;
	if (!rc && all == lost && by_force == forced)
		return 0;
	fprintf(stderr,
		"%s: status %d, %lu of %lu rounds, %lu doorbells recovered (expected %lu), "
		"%lu of them by force (expected %lu)\n",
		what, rc, i, rounds, all, lost, by_force, forced);
	return 1;
}

static int beside_a_frozen_thread(void)
{
	struct bystander bystander;
	int bad;

	if (!bystander_freeze(&bystander)) {
		puts("no frozen thread: this machine does not allow tracing");
		return 0;
	}
	lossless = true;
	bad = run("frozen thread, lossless register", ROUNDS_LOSSLESS, 0, 0);
	lossless = false;
	if (getenv("LONG") && *getenv("LONG"))
		bad |= run("frozen thread", ROUNDS_LOST, ROUNDS_LOST, ROUNDS_LOST);
	bystander_thaw(&bystander);
	return bad;
}

static int end[2];

/* The parent in vfork() is in state D. */
static void *vfork_and_wait(void *arg)
{
	char c;

	if (vfork() == 0) {
		atomic_store((atomic_int *)arg, 1);
		(void)!read(end[0], &c, 1);
		_exit(0);
	}
	atomic_store((atomic_int *)arg, 1); /* ThreadSanitizer replaces vfork() by fork() */
	return NULL;
}

static int beside_a_system_call(void)
{
	atomic_int begun = 0;
	pthread_t thread;
	int bad;

	E2E_REQUIRE(!pipe(end) && !pthread_create(&thread, NULL, vfork_and_wait, &begun));
	while (!atomic_load(&begun))
		gdk_host_yield();
	bad = run("thread in a system call", ROUNDS_LOST, ROUNDS_LOST, 0);
	E2E_REQUIRE(write(end[1], "", 1) == 1);
	pthread_join(thread, NULL);
	return bad;
}

int main(void)
{
	return beside_a_frozen_thread() | beside_a_system_call();
}
