/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The command line of the examples. Letters that the put_bw example of DOCA GPUNetIO has, too,
 * have the same meaning. Each option also has a long name.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define OPT_VERSION 1000 /* this option has no letter */

static const struct option longopts[] = {
	{ "gpu", required_argument, NULL, 'g' },
	{ "device", required_argument, NULL, 'd' },
	{ "connect", required_argument, NULL, 'c' },
	{ "handler", required_argument, NULL, 'p' },
	{ "scope", required_argument, NULL, 'e' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "size", required_argument, NULL, 's' },
	{ "threads", required_argument, NULL, 't' },
	{ "gid-index", required_argument, NULL, 'l' },
	{ "payload", required_argument, NULL, 'm' },
	{ "tcp-port", required_argument, NULL, 'P' },
	{ "timeout", required_argument, NULL, 'w' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static void usage(const char *prog)
{
	printf("Usage: %s [options]                server\n"
	       "       %s [options] -c <server>    client, puts data into the server's memory\n\n"
	       "  -g, --gpu <host|PCI>     host: CPU threads run the data path; PCI address:\n"
	       "                           a GPU runs it (host)\n"
	       "  -d, --device <name>      RDMA device; required if there is more than one\n"
	       "  -c, --connect <address>  IP address or name of the server (client only)\n"
	       "  -p, --handler <n>        doorbell handler: 0 AUTO, 1 CPU_PROXY, 2 GPU_SM_DB,\n"
	       "                           6 GPU_SM_BF, 10 GPU_SM_NO_DBR (0)\n"
	       "  -e, --scope <n>          scope of a put: 0 one thread, 1 a whole warp (0)\n"
	       "  -i, --iterations <n>     total number of puts of all threads (2048)\n"
	       "  -s, --size <bytes>       size of each put (1024)\n"
	       "  -t, --threads <n>        threads that share the queue pair (host 4, GPU 512)\n"
	       "  -l, --gid-index <n>      GID index of the port (default: its RoCEv2 GID)\n"
	       "  -m, --payload <gpu|host> memory of the data (gpu with a GPU, otherwise host)\n"
	       "  -P, --tcp-port <n>       TCP port to exchange addresses (5000)\n"
	       "  -w, --timeout <seconds>  time limit of each wait (60)\n"
	       "  -h, --help               print this help\n"
	       "      --version            print the version of gdaki\n\n"
	       "The client's -i, -s and -t apply; the server gets them from the client.\n\n"
	       "Examples:\n"
	       "  %s -d mlx5_0                                 server, no GPU\n"
	       "  %s -d mlx5_0 -c 192.168.1.1 -p 2             client, threads ring\n"
	       "  %s -g 8A:00.0 -d mlx5_0 -c 192.168.1.1 -t 256 client on a GPU\n"
	       "  softnic-run -- %s -d mlx5_0                  server, software NIC\n",
	       prog, prog, prog, prog, prog, prog);
}

static int refuse(int letter, const char *text, const char *expected)
{
	const struct option *o = longopts;

	while (o->val != letter)
		o++;
	return ex_error("invalid -%c, --%s '%s' (expected %s)", letter, o->name, text, expected);
}

static int parse_number(int letter, const char *text, unsigned long min, unsigned long max,
			unsigned long *value)
{
	char *end, expected[64];

	errno = 0;
	*value = strtoul(text, &end, 10);
	if (!errno && isdigit((unsigned char)text[0]) && !*end && *value >= min && *value <= max)
		return 0;
	snprintf(expected, sizeof(expected), "a number from %lu to %lu", min, max);
	return refuse(letter, text, expected);
}

/* Only the form is checked here: doca_gpu_create() reports an address that no GPU has. */
static int parse_gpu(struct ex_options *opt, const char *text)
{
	bool address = strspn(text, "0123456789abcdefABCDEF:.") == strlen(text) &&
		       strchr(text, ':') && strchr(text, '.');

	if (strcmp(text, "host") && !address)
		return refuse('g', text, "host or a PCI address such as 8A:00.0");
	opt->gpu = text;
	return 0;
}

static int parse_name(int letter, const char *text, const char *expected, const char **name)
{
	if (!*text)
		return refuse(letter, text, expected);
	*name = text;
	return 0;
}

static int parse_handler(struct ex_options *opt, const char *text)
{
	static const char expected[] = "0, 1, 2, 6 or 10";
	char *end;

	opt->handler = (enum doca_gpu_dev_verbs_nic_handler)strtoul(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || strlen(text) > 2)
		return refuse('p', text, expected);
	switch (opt->handler) {
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO:
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY:
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB:
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF:
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR:
		return 0;
	default:
		return refuse('p', text, expected);
	}
}

/* Ranges of the numeric options. parse_option stores the values. */
static const struct range {
	int letter;
	unsigned long min, max;
} ranges[] = {
	{ 'e', 0, 1 },	 { 'i', 1, 1ul << 31 }, { 's', 1, 1ul << 30 }, { 't', 1, 1ul << 16 },
	{ 'l', 0, 255 }, { 'P', 1, 65535 },	{ 'w', 1, 86400 },
};

static int parse_ranged(int letter, const char *text, unsigned long *value)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (ranges[i].letter == letter)
			return parse_number(letter, text, ranges[i].min, ranges[i].max, value);
	return -1;
}

static int parse_payload(struct ex_options *opt, const char *text, bool *given)
{
	if (strcmp(text, "gpu") && strcmp(text, "host"))
		return refuse('m', text, "gpu or host");
	opt->payload_gpu = !strcmp(text, "gpu");
	*given = true;
	return 0;
}

static int parse_option(struct ex_options *opt, int letter, const char *arg, bool *payload_given)
{
	unsigned long n = 0;

	switch (letter) {
	case 'g':
		return parse_gpu(opt, arg);
	case 'd':
		return parse_name('d', arg, "the name of an RDMA device", &opt->device);
	case 'c':
		return parse_name('c', arg, "the IP address or name of the server", &opt->server);
	case 'p':
		return parse_handler(opt, arg);
	case 'm':
		return parse_payload(opt, arg, payload_given);
	default:
		break;
	}
	if (parse_ranged(letter, arg, &n))
		return -1;
	switch (letter) {
	case 'e':
		opt->warp = n;
		break;
	case 'i':
		opt->iters = n;
		break;
	case 's':
		opt->size = n;
		break;
	case 't':
		opt->threads = n;
		break;
	case 'l':
		opt->gid_index = n;
		break;
	case 'P':
		opt->tcp_port = n;
		break;
	case 'w':
		opt->timeout_s = n;
		break;
	default:
		break;
	}
	return 0;
}

/* Sets the defaults that depend on other options, and checks combinations. */
static int complete(struct ex_options *opt, bool payload_given)
{
	bool host = !strcmp(opt->gpu, "host");

	if (!opt->threads)
		opt->threads = host ? 4 : 512;
	if (opt->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
		opt->dbr_mode = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	if (!payload_given)
		opt->payload_gpu = !host;
	if (host && opt->payload_gpu)
		return ex_error("invalid -m, --payload gpu with -g host: select a GPU "
				"with -g <PCI address>");
	if (opt->iters % opt->threads)
		return ex_error("invalid -i, --iterations %u (expected a multiple of "
				"-t, --threads: %u)",
				opt->iters, opt->threads);
	if (opt->warp && !host && opt->threads % 32)
		return ex_error("invalid -t, --threads %u (expected a multiple of 32 "
				"with -e 1: whole warps)",
				opt->threads);
	return 0;
}

int ex_options_parse(struct ex_options *opt, int argc, char **argv)
{
	bool payload_given = false;
	int letter;

	*opt = (struct ex_options){
		.gpu = "host",
		.iters = 2048,
		.size = 1024,
		.gid_index = -1,
		.tcp_port = 5000,
		.timeout_s = 60,
	};
	while ((letter = getopt_long(argc, argv, "g:d:c:p:e:i:s:t:l:m:P:w:h", longopts, NULL)) !=
	       -1) {
		if (letter == 'h') {
			usage(argv[0]);
			return 0;
		}
		if (letter == OPT_VERSION) {
			ex_print_version(argv[0]);
			return 0;
		}
		if (letter == '?') {
			ex_error("see %s -h", argv[0]);
			return 2;
		}
		if (parse_option(opt, letter, optarg, &payload_given))
			return 2;
	}
	if (optind < argc) {
		ex_error("unknown argument '%s'; see %s -h", argv[optind], argv[0]);
		return 2;
	}
	return complete(opt, payload_given) ? 2 : -1;
}
