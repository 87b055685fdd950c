/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures puts between two queue pairs of one process on the software NIC, for each
 * doorbell handler and size: messages and bytes per second (median and range of several
 * runs), and a memcpy of the same bytes in the same runs for comparison. The results
 * describe the software NIC and this machine, not a ConnectX.
 */
#include <string.h>

#include "../lib/e2e.h"

#define DEPTH  1024u
#define RUNS   5
#define BUFFER (4u << 20)

static double seconds_since(uint64_t start)
{
	return (double)(e2e_now_ns() - start) / 1e9;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns messages per second. All puts have completed when the function returns. */
static double run_puts(struct e2e_pair *p, size_t size, unsigned int count)
{
	doca_gpu_dev_verbs_ticket_t last = 0;
	const uint64_t start = e2e_now_ns();
	const size_t places = BUFFER / size;

	for (unsigned int i = 0; i < count; i++)
		E2E_REQUIRE(!e2e_put(p, (i % places) * size, size, &last));
	E2E_REQUIRE(!e2e_wait(&p->tx, last));
	return count / seconds_since(start);
}

static double run_memcpy(struct e2e_pair *p, size_t size, unsigned int count)
{
	const uint64_t start = e2e_now_ns();
	const size_t places = BUFFER / size;

	for (unsigned int i = 0; i < count; i++) {
		memcpy(p->dst.mem + (i % places) * size, p->src.mem + (i % places) * size, size);
		__asm__ volatile("" ::: "memory");
	}
	return count / seconds_since(start);
}

static void row(enum doca_gpu_dev_verbs_nic_handler handler, size_t size, unsigned int count)
{
	struct e2e_pair p;
	double put[RUNS], copy[RUNS];

	e2e_pair_open(&p, handler, DEPTH, BUFFER);
	for (size_t i = 0; i < BUFFER; i++)
		p.src.mem[i] = e2e_pattern(i, 1);
	run_puts(&p, size, count / 4);
	for (int r = 0; r < RUNS; r++) {
		put[r] = run_puts(&p, size, count);
		copy[r] = run_memcpy(&p, size, count);
	}
	qsort(put, RUNS, sizeof(*put), by_value);
	qsort(copy, RUNS, sizeof(*copy), by_value);
	printf("%-14s %7zu  %9.0f  %9.0f to %9.0f  %9.3f  %12.3f  %6.3f\n",
	       gdk_handler_name(handler), size, put[RUNS / 2], put[0], put[RUNS - 1],
	       put[RUNS / 2] * (double)size / 1e9, copy[RUNS / 2] * (double)size / 1e9,
	       put[RUNS / 2] / copy[RUNS / 2]);
	e2e_pair_close(&p);
}

int main(void)
{
	static const struct {
		size_t size;
		unsigned int count;
	} shapes[] = { { 64, 20000 }, { 4096, 10000 }, { 65536, 1000 } };
	static const enum doca_gpu_dev_verbs_nic_handler handlers[] = { E2E_PROXY, E2E_DB, E2E_BF,
									E2E_NO_DBR };

	printf("%-14s %7s  %9s  %22s  %9s  %12s  %6s\n", "handler", "bytes", "puts/s",
	       "range of 5 runs", "GB/s", "memcpy GB/s", "ratio");
	for (size_t h = 0; h < sizeof(handlers) / sizeof(*handlers); h++)
		for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
			row(handlers[h], shapes[s].size, shapes[s].count);
	return 0;
}
