/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: threads of a client's GPU write to a server with the RDMA library, and threads of the
 * server's GPU receive the immediate values; with -g host, threads of the CPU. side.c has the calls
 * of the library, transfer.c the exchange over a socket, the file *_kernel.cu the kernel, and this
 * file the command line.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "rdma_write.h"

#define CONNECTIONS_MAX 64u
#define HOST_THREADS	4u
#define GPU_THREADS	256u

static const struct option longs[] = {
	{ "gpu", required_argument, NULL, 'g' },
	{ "device", required_argument, NULL, 'd' },
	{ "connect", required_argument, NULL, 'c' },
	{ "handler", required_argument, NULL, 'p' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "size", required_argument, NULL, 's' },
	{ "connections", required_argument, NULL, 'q' },
	{ "threads", required_argument, NULL, 't' },
	{ "gid-index", required_argument, NULL, 'l' },
	{ "tcp-port", required_argument, NULL, 'P' },
	{ "timeout", required_argument, NULL, 'w' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void usage(void)
{
	printf("usage: gpunetio_rdma_client_server_write [options]\n"
	       "Threads of the client write to the server with the RDMA library, in strong and in "
	       "weak mode.\nThreads of the server receive, and the server checks all data.\n"
	       "  -g, --gpu GPU          PCI address of the GPU, or host: CPU threads (host)\n"
	       "  -d, --device NAME      RDMA device (the first one)\n"
	       "  -c, --connect SERVER   server to connect to: this process is the client\n"
	       "  -p, --handler N        doorbell handler: 0 AUTO, 1 CPU_PROXY, 2 GPU_SM_DB (0)\n"
	       "  -i, --iterations N     writes of each connection in each mode (512)\n"
	       "  -s, --size BYTES       bytes of a write (1024)\n"
	       "  -q, --connections N    connections, 1 to %u (4)\n"
	       "  -t, --threads N        threads, 1 to %u (%u, on a GPU %u)\n"
	       "  -l, --gid-index N      GID index of the port (its RoCEv2 GID)\n"
	       "  -P, --tcp-port N       TCP port of the server (5000)\n"
	       "  -w, --timeout SECONDS  time limit of each wait without progress (60)\n"
	       "  -h, --help             print this text\n"
	       "      --version          print the version of gdaki\n"
	       "The client sends -i, -s and -q to the server.\n",
	       CONNECTIONS_MAX, RW_THREADS_MAX, HOST_THREADS, GPU_THREADS);
}

static int number(const char *option, uint32_t min, uint32_t max, uint32_t *value)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(optarg, &end, 10);
	if (!errno && isdigit((unsigned char)*optarg) && !*end && n >= min && n <= max) {
		*value = (uint32_t)n;
		return 0;
	}
	return ex_error("invalid %s '%s' (expected a number from %u to %u)", option, optarg, min,
			max);
}

/* Returns 0, or -1 after a message. */
static int take(int c, struct rw_options *opt)
{
	switch (c) {
	case 'g':
		opt->gpu = optarg;
		return 0;
	case 'd':
		opt->device = optarg;
		return 0;
	case 'c':
		opt->server = optarg;
		return 0;
	case 'p':
		return number("-p, --handler", 0, 2, &opt->handler);
	case 'i':
		return number("-i, --iterations", 1, RW_WRITES_MAX, &opt->writes);
	case 's':
		return number("-s, --size", 1, RW_BYTES_MAX, &opt->size);
	case 'q':
		return number("-q, --connections", 1, CONNECTIONS_MAX, &opt->connections);
	case 't':
		return number("-t, --threads", 1, RW_THREADS_MAX, &opt->threads);
	case 'l':
		return number("-l, --gid-index", 0, 255, &opt->gid_index);
	case 'P':
		return number("-P, --tcp-port", 1, 65535, &opt->tcp_port);
	case 'w':
		return number("-w, --timeout", 1, 86400, &opt->timeout_s);
	}
	return -1; /* getopt_long() has printed the error */
}

/* Returns -1 to run the program, otherwise its exit status. */
static int parse(int argc, char **argv, struct rw_options *opt)
{
	int c;

	while ((c = getopt_long(argc, argv, "g:d:c:p:i:s:q:t:l:P:w:h", longs, NULL)) != -1) {
		if (c == 'h')
			return usage(), 0;
		if (c == 'V')
			return ex_print_version("gpunetio_rdma_client_server_write"), 0;
		if (take(c, opt))
			return 2;
	}
	if (optind < argc) {
		ex_error("unexpected argument '%s' (-h prints the options)", argv[optind]);
		return 2;
	}
	if (!opt->threads)
		opt->threads = strcmp(opt->gpu, "host") ? GPU_THREADS : HOST_THREADS;
	return rw_check_options(opt) ? 2 : -1;
}

int main(int argc, char **argv)
{
	struct rw_options opt = {
		.gpu = "host",
		.connections = 4,
		.writes = 512,
		.size = 1024,
		.gid_index = UINT32_MAX,
		.tcp_port = 5000,
		.timeout_s = 60,
	};
	int rc = parse(argc, argv, &opt);

	if (rc >= 0)
		return rc;
	setvbuf(stdout, NULL, _IOLBF, 0); /* each line is written at once */
	ex_catch_signals();
	return rw_run(&opt) ? EXIT_FAILURE : EXIT_SUCCESS;
}
