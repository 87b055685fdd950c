/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ethernet queues and rules that are created and destroyed many times leave heap and descriptors of
 * the process as they were. This includes the software NIC, whose objects are in this process.
 */
#include <arpa/inet.h>
#include <malloc.h>

#include "../lib/fds.h"
#include "eth_queue_rig.h"

#define LIVES 100
#define LEAST 40u /* bytes that a leak has in each life */

static struct queues q;

/* One life of each object: the queues, and a rule with tables, counter and hash. */
static void live(void)
{
	struct gdk_eth_match match = { .value.ether_type = htons(0x0800),
				       .mask.ether_type = 0xffff };
	struct doca_eth_rxq *rxqs[3];
	struct gdk_eth_rule *rule;

	rig_open_rxq(&q, 64);
	rig_open_txq(&q, 64, rig_gpu_cq);
	rxqs[0] = rxqs[1] = rxqs[2] = q.rxq;
	cr_assert_eq(gdk_eth_steer(q.dev, &match, rxqs, 3, GDK_ETH_HASH_IPV4, 0, &rule),
		     DOCA_SUCCESS);
	cr_assert_eq(gdk_eth_steer_destroy(rule), DOCA_SUCCESS);
	rig_close_txq(&q);
	rig_close_rxq(&q);
}

static long grown(void)
{
	const size_t bytes = mallinfo2().uordblks;
	unsigned int i;

	for (i = 0; i < LIVES; i++)
		live();
	return (long)(mallinfo2().uordblks - bytes);
}

/* malloc keeps freed chunks for a thread and counts them as used: 8 KiB in one of the two parts on
 * some machines. A leak is in both. */
Test(doca_eth_leaks, heap_stays_the_same)
{
	unsigned int i;
	long once, again;

#ifdef GDK_SAN
	cr_skip_test("the sanitizer replaces the heap, and finds leaks itself");
#endif
	rig_open_dev(&q);
	for (i = 0; i < 20; i++) /* libraries keep memory of their first uses */
		live();
	once = grown();
	again = grown();
	cr_expect(once < LIVES * (long)LEAST || again < LIVES * (long)LEAST,
		  "%ld and %ld bytes leak", once, again);
	rig_close_dev(&q);
}

Test(doca_eth_leaks, closed_device_leaves_no_descriptor)
{
	unsigned int fds = 0, i;

	for (i = 0; i < 4; i++) {
		rig_open_dev(&q);
		live();
		rig_close_dev(&q);
		fds = i ? fds : count_fds();
	}
	cr_expect_eq(count_fds(), fds);
}
