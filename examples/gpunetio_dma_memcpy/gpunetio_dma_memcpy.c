/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: copies of memory by the NIC, triggered by threads of a GPU, or of the CPU with -g host.
 * copies.c has the calls, gpunetio_dma_memcpy_kernel.cu the kernel; this file has the command line
 * and the report.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "dma_memcpy.h"

#define SIZE_MAX_BYTES (1u << 24)
#define THREADS_MAX    512u

static const struct option longs[] = {
	{ "gpu", required_argument, NULL, 'g' },
	{ "device", required_argument, NULL, 'd' },
	{ "size", required_argument, NULL, 's' },
	{ "copies", required_argument, NULL, 'n' },
	{ "threads", required_argument, NULL, 't' },
	{ "engine", required_argument, NULL, 'e' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void usage(void)
{
	printf("usage: gpunetio_dma_memcpy [options]\n"
	       "Copies 64 buffers of host memory to GPU memory by the NIC, triggered by threads of "
	       "one block, and\ncompares them.\n"
	       "  -g, --gpu GPU        PCI address of the GPU, or host: CPU threads (host)\n"
	       "  -d, --device NAME    RDMA device (the first one)\n"
	       "  -s, --size BYTES     bytes of a buffer, 1 to %u (4096)\n"
	       "  -n, --copies N       copies of all threads together, 1 to 100000000 (1024)\n"
	       "  -t, --threads N      threads, 1 to %u (32)\n"
	       "  -e, --engine ENGINE  auto, or write: RDMA writes, also if the NIC has a copy "
	       "engine (auto)\n"
	       "  -h, --help           print this text\n"
	       "      --version        print the version of gdaki\n",
	       SIZE_MAX_BYTES, THREADS_MAX);
}

static int number(const char *option, uint32_t max, uint32_t *value)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(optarg, &end, 10);
	if (!errno && end != optarg && !*end && *optarg != '-' && n && n <= max) {
		*value = (uint32_t)n;
		return 0;
	}
	return ex_error("invalid %s '%s' (expected 1 to %u)", option, optarg, max);
}

static int engine(bool *by_write)
{
	*by_write = !strcmp(optarg, "write");
	if (*by_write || !strcmp(optarg, "auto"))
		return 0;
	return ex_error("invalid -e, --engine '%s' (expected auto or write)", optarg);
}

/* Returns 0, or -1 after a message. */
static int take(int c, struct dm_options *opt)
{
	switch (c) {
	case 'g':
		opt->gpu = optarg;
		return 0;
	case 'd':
		opt->device = optarg;
		return 0;
	case 's':
		return number("-s, --size", SIZE_MAX_BYTES, &opt->size);
	case 'n':
		return number("-n, --copies", 100000000, &opt->copies);
	case 't':
		return number("-t, --threads", THREADS_MAX, &opt->threads);
	case 'e':
		return engine(&opt->by_write);
	}
	return -1; /* getopt_long() has printed the error */
}

/* Returns -1 to run the program, otherwise its exit status. */
static int parse(int argc, char **argv, struct dm_options *opt)
{
	int c;

	while ((c = getopt_long(argc, argv, "g:d:s:n:t:e:h", longs, NULL)) != -1) {
		if (c == 'h')
			return usage(), 0;
		if (c == 'V')
			return ex_print_version("gpunetio_dma_memcpy"), 0;
		if (take(c, opt))
			return 2;
	}
	if (optind == argc)
		return -1;
	ex_error("unexpected argument '%s' (-h prints the options)", argv[optind]);
	return 2;
}

static void report(const struct dm_options *opt, const struct dm_result *r)
{
	double bytes = (double)opt->size * opt->copies;

	printf("%u copies of %u bytes by %s (up to %llu bytes a request), %u threads", opt->copies,
	       opt->size, r->engine, (unsigned long long)r->max_bytes, opt->threads);
	if (r->seconds > 0)
		printf(": %.3f ms, %.3f M copies/s, %.3f GB/s", 1e3 * r->seconds,
		       1e-6 * opt->copies / r->seconds, 1e-9 * bytes / r->seconds);
	printf("\n%s\n", r->wrong ? "data: WRONG" : "data: correct");
}

int main(int argc, char **argv)
{
	struct dm_options opt = { .gpu = "host", .size = 4096, .copies = 1024, .threads = 32 };
	struct dm_result result;
	int rc = parse(argc, argv, &opt);

	if (rc >= 0)
		return rc;
	if (dm_run(&opt, &result))
		return 1;
	report(&opt, &result);
	return result.wrong != 0;
}
