/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Registered memory becomes inaccessible before the NIC uses it: this must cause an
 * error completion, not a signal. A SIGSEGV handler that the program installs
 * before or after it opens the NIC must get all of the program's own faults, and
 * none of the NIC's.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "../lib/vb.h"

#define LEN 8192u

static volatile sig_atomic_t caught;
static sigjmp_buf landing;

static void on_segv(int sig)
{
	caught++;
	(void)sig;
	siglongjmp(landing, 1);
}

static void catch_segv(void)
{
	struct sigaction own = { .sa_handler = on_segv, .sa_flags = SA_NODEFER };

	sigemptyset(&own.sa_mask);
	cr_assert_eq(sigaction(SIGSEGV, &own, NULL), 0);
	caught = 0;
}

/* Reads from an inaccessible page. */
static void fault(void)
{
	volatile uint8_t *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(page, MAP_FAILED);
	if (!sigsetjmp(landing, 0))
		(void)*page;
	munmap((void *)(uintptr_t)page, 4096);
}

/* The NIC accesses memory that became inaccessible, as source and as destination. */
static void meets_unmapped(struct vb *v)
{
	uint8_t *gone = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge source = { .addr = (uintptr_t)gone, .length = LEN };
	enum ibv_wc_status status;
	struct ibv_mr *mr;

	cr_assert_neq(gone, MAP_FAILED);
	mr = ibv_reg_mr(v->pd, gone, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(mr);
	/* not munmap(): the next queue could be placed there */
	cr_assert_eq(mprotect(gone + 4096, 4096, PROT_NONE), 0);
	source.lkey = mr->lkey;
	status = vb_write(v, source, (uintptr_t)v->mem, v->mr->rkey);
	cr_expect_eq(status, IBV_WC_LOC_PROT_ERR, "inaccessible source: status %d", status);
	status = vb_write(v, vb_sge(v, 0, LEN), (uintptr_t)gone, mr->rkey);
	cr_expect_eq(status, IBV_WC_REM_ACCESS_ERR, "inaccessible destination: status %d", status);
	munmap(gone, LEN);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	v->mem[0] = 0x5a;
	status = vb_write(v, vb_sge(v, 0, LEN), (uintptr_t)v->mem + LEN, v->mr->rkey);
	cr_expect_eq(status, IBV_WC_SUCCESS);
	cr_expect_eq(v->mem[LEN], 0x5a);
}

Test(unmapped, inaccessible_memory_is_an_error_completion)
{
	struct vb v = vb_open(2 * LEN);

	meets_unmapped(&v);
	vb_close(&v);
}

Test(unmapped, handler_installed_before_gets_only_its_own_faults)
{
	struct vb v;

	catch_segv();
	v = vb_open(2 * LEN);
	meets_unmapped(&v);
	cr_expect_eq(caught, 0, "the program's handler got a fault of the NIC");
	fault();
	fault();
	cr_expect_eq(caught, 2);
	vb_close(&v);
	fault();
	cr_expect_eq(caught, 3);
}

Test(unmapped, handler_installed_after_gets_only_its_own_faults)
{
	struct vb v = vb_open(2 * LEN);

	catch_segv();
	meets_unmapped(&v);
	cr_expect_eq(caught, 0, "the program's handler got a fault of the NIC");
	fault();
	cr_expect_eq(caught, 1);
	meets_unmapped(&v);
	cr_expect_eq(caught, 1);
	vb_close(&v);
}

/* Without a handler, the program's own fault must still kill it. */
Test(unmapped, own_fault_without_a_handler_kills_the_program, .signal = SIGSEGV)
{
	struct vb v = vb_open(2 * LEN);
	volatile uint8_t *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	meets_unmapped(&v);
	signal(SIGSEGV, SIG_DFL);
	(void)*page;
}
