/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dbrec-only */
/*
 * The NIC of this test takes the producer index only from the DBREC's send word, not
 * from the doorbell register. So data arrives only if the handler stores the index in
 * this word before it stores to the register.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/e2e.h"

#define BYTES 16384u

static void deliver(enum doca_gpu_dev_verbs_nic_handler handler)
{
	doca_gpu_dev_verbs_ticket_t t;
	const uint32_t *dbrec;
	struct e2e_pair p;

	e2e_pair_open(&p, handler, 64, BYTES);
	dbrec = (const uint32_t *)p.tx.dev->sq_dbrec - 1;
	for (size_t i = 0; i < BYTES; i++)
		p.src.mem[i] = e2e_pattern(i, 3);
	for (size_t off = 0; off < BYTES; off += 64) {
		cr_assert_eq(e2e_put(&p, off, 64, &t), 0);
		cr_assert_eq(e2e_wait(&p.tx, t), 0, "put %zu did not complete", off / 64);
	}
	cr_expect_eq(memcmp(p.src.mem, p.dst.mem, BYTES), 0);
	cr_expect_eq(dbrec[0], 0, "the receive word was written: 0x%08x", dbrec[0]);
	cr_expect_eq(be32toh(dbrec[1]), BYTES / 64);
	e2e_pair_close(&p);
}

Test(e2e_dbrec, defect_13_gpu_sm_db_writes_the_send_word)
{
	deliver(E2E_DB);
}

Test(e2e_dbrec, defect_13_gpu_sm_bf_writes_the_send_word)
{
	deliver(E2E_BF);
}

Test(e2e_dbrec, defect_13_cpu_proxy_writes_the_send_word)
{
	deliver(E2E_PROXY);
}
