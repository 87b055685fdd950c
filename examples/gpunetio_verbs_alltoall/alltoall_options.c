/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The command line of gpunetio_verbs_alltoall. It is read before MPI starts, so that --help works
 * without a launcher. Options that other examples have, too, have the same letters.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alltoall_rank.h"

#define PROGRAM "gpunetio_verbs_alltoall"

enum { OPT_VERSION = 1000, OPT_COUNTER, OPT_FAULT, OPT_IB_PORT, OPT_JSON, OPT_CSV };

static const struct option longopts[] = {
	{ "gpu", required_argument, NULL, 'g' },
	{ "device", required_argument, NULL, 'd' },
	{ "handler", required_argument, NULL, 'p' },
	{ "send-dbr-mode", required_argument, NULL, 'r' },
	{ "iterations", required_argument, NULL, 'i' },
	{ "size", required_argument, NULL, 's' },
	{ "threads", required_argument, NULL, 't' },
	{ "gid-index", required_argument, NULL, 'l' },
	{ "payload", required_argument, NULL, 'm' },
	{ "queues", required_argument, NULL, 'Q' },
	{ "check", required_argument, NULL, 'k' },
	{ "no-warm-up", no_argument, NULL, 'n' },
	{ "timeout", required_argument, NULL, 'w' },
	{ "counter", no_argument, NULL, OPT_COUNTER },
	{ "fault", required_argument, NULL, OPT_FAULT },
	{ "ib-port", required_argument, NULL, OPT_IB_PORT },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "csv", required_argument, NULL, OPT_CSV },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static void usage(void)
{
	printf("Usage: mpirun -n RANKS " PROGRAM " [options]\n"
	       "       srun -n RANKS " PROGRAM " [options]\n\n"
	       "Every rank puts a block to every other rank in each iteration.\n\n"
	       "  -g, --gpu <list>         host: CPU threads run the data path; all: the GPUs of\n"
	       "                           the host; or PCI addresses, separated by commas. The\n"
	       "                           ranks of a host take them in turn (host)\n"
	       "  -d, --device <list>      RDMA devices, separated by commas, which the ranks of\n"
	       "                           a host take in turn (those nearest to the GPU)\n"
	       "  -p, --handler <n>        doorbell handler: 0 AUTO, 1 CPU_PROXY, 2 GPU_SM_DB,\n"
	       "                           6 GPU_SM_BF, 10 GPU_SM_NO_DBR (0)\n"
	       "  -r, --send-dbr-mode <n>  doorbell records: 0 valid, 1 none, 2 emulated by\n"
	       "                           software (0; 1 with -p 10)\n"
	       "  -i, --iterations <n>     number of iterations (1000)\n"
	       "  -s, --size <bytes>       size of a block (4096)\n"
	       "  -t, --threads <n>        threads of each queue pair, which divide a block\n"
	       "                           (host 1, GPU 32)\n"
	       "  -l, --gid-index <n>      GID index of the port (default: its RoCEv2 GID)\n"
	       "  -m, --payload <gpu|host> memory of the data (gpu with a GPU, otherwise host)\n"
	       "  -Q, --queues <gpu|host>  memory of the queues (gpu with a GPU, otherwise host)\n"
	       "  -k, --check <n>          check all bytes in each n-th iteration, and the first\n"
	       "                           8 of each thread in the others (1)\n"
	       "  -n, --no-warm-up         measure from the first iteration on\n"
	       "  -w, --timeout <seconds>  time limit of each wait without progress (60)\n"
	       "      --counter            count arrived blocks by a companion queue pair\n"
	       "      --fault <kind>:<rank>\n"
	       "                           plant a fault in a rank: wrong (a byte), kill or hang\n"
	       "      --ib-port <n>        port of the RDMA device (1)\n"
	       "      --json <file>        write the results as JSON; -: standard output\n"
	       "      --csv <file>         write the results as CSV; -: standard output\n"
	       "  -h, --help               print this help\n"
	       "      --version            print the version of gdaki\n\n"
	       "Examples:\n"
	       "  mpirun -n 4 softnic-run -- " PROGRAM "    software NIC, CPU threads\n"
	       "  mpirun -n 16 -N 8 " PROGRAM " -g all      2 hosts with 8 GPUs\n"
	       "  srun -N 2 --ntasks-per-node 8 --mpi=pmix " PROGRAM " -g all\n");
}

static int refuse(int letter, const char *text, const char *expected)
{
	const struct option *o = longopts;

	while (o->val != letter)
		o++;
	if (letter < OPT_VERSION)
		return ex_error("invalid -%c, --%s '%s' (expected %s)", letter, o->name, text,
				expected);
	return ex_error("invalid --%s '%s' (expected %s)", o->name, text, expected);
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

/* Numeric options and the uint32_t in struct a2a_options that gets the value. */
static const struct number {
	int letter;
	unsigned long min, max;
	size_t offset;
} numbers[] = {
	{ 'i', 1, 1ul << 31, offsetof(struct a2a_options, ex.iters) },
	{ 's', 1, 1ul << 30, offsetof(struct a2a_options, ex.size) },
	{ 't', 1, 512, offsetof(struct a2a_options, ex.threads) },
	{ 'l', 0, 255, offsetof(struct a2a_options, ex.gid_index) },
	{ 'k', 1, 1ul << 31, offsetof(struct a2a_options, check) },
	{ 'w', 1, 86400, offsetof(struct a2a_options, ex.timeout_s) },
};

static int parse_handler(struct a2a_options *opt, const char *text)
{
	static const char *const values[] = { "0", "1", "2", "6", "10" };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (!strcmp(text, values[i])) {
			opt->ex.handler = (enum doca_gpu_dev_verbs_nic_handler)atoi(text);
			return 0;
		}
	return refuse('p', text, "0, 1, 2, 6 or 10");
}

static int parse_fault(struct a2a_options *opt, const char *text)
{
	static const struct {
		const char *prefix;
		enum a2a_fault fault;
	} kinds[] = { { "wrong:", A2A_FAULT_WRONG },
		      { "kill:", A2A_FAULT_KILL },
		      { "hang:", A2A_FAULT_HANG } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].prefix);
		unsigned long rank;

		if (strncmp(text, kinds[i].prefix, len))
			continue;
		if (parse_number(OPT_FAULT, text + len, 0, INT32_MAX, &rank))
			return -1;
		opt->fault = kinds[i].fault;
		opt->fault_rank = (uint32_t)rank;
		return 0;
	}
	return refuse(OPT_FAULT, text, "wrong:RANK, kill:RANK or hang:RANK");
}

/* Stores 1 for gpu, 0 for host. */
static int parse_memory(int letter, const char *text, int *in_gpu)
{
	if (strcmp(text, "gpu") && strcmp(text, "host"))
		return refuse(letter, text, "gpu or host");
	*in_gpu = !strcmp(text, "gpu");
	return 0;
}

struct choices {	     /* -1: not given */
	int payload, queues; /* 1: GPU, 0: host */
	int dbrec;	     /* enum doca_gpu_verbs_send_dbr_mode_ext */
};

static int parse_option(struct a2a_options *opt, int letter, const char *arg, struct choices *given)
{
	unsigned long n = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].letter == letter) {
			if (parse_number(letter, arg, numbers[i].min, numbers[i].max, &n))
				return -1;
			*(uint32_t *)(void *)((char *)opt + numbers[i].offset) = (uint32_t)n;
			return 0;
		}
	switch (letter) {
	case 'g':
		opt->gpus = arg;
		return 0;
	case 'd':
		opt->devices = arg;
		return 0;
	case 'p':
		return parse_handler(opt, arg);
	case 'm':
		return parse_memory('m', arg, &given->payload);
	case 'Q':
		return parse_memory('Q', arg, &given->queues);
	case 'r':
		if (parse_number('r', arg, 0, 2, &n))
			return -1;
		given->dbrec = (int)n;
		return 0;
	case OPT_IB_PORT:
		if (parse_number(OPT_IB_PORT, arg, 1, 255, &n))
			return -1;
		opt->ex.ib_port = (uint8_t)n;
		return 0;
	case 'n':
		opt->no_warmup = true;
		return 0;
	case OPT_COUNTER:
		opt->counter = true;
		return 0;
	case OPT_FAULT:
		return parse_fault(opt, arg);
	case OPT_JSON:
		opt->json = arg;
		return 0;
	case OPT_CSV:
		opt->csv = arg;
		return 0;
	default:
		ex_error("see " PROGRAM " -h");
		return -1;
	}
}

static int complete(struct a2a_options *opt, const struct choices *given)
{
	const bool host = !strcmp(opt->gpus, "host");

	if (host && (given->payload == 1 || given->queues == 1))
		return ex_error("invalid -%c gpu with -g host: select GPUs with -g",
				given->payload == 1 ? 'm' : 'Q');
	opt->ex.payload_gpu = given->payload < 0 ? !host : given->payload;
	opt->ex.queues_host = !host && given->queues == 0;
	opt->ex.dbr_mode = given->dbrec >= 0 ? (enum doca_gpu_verbs_send_dbr_mode_ext)given->dbrec
			   : opt->ex.handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR
				   ? DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW
				   : DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR;
	if (!opt->ex.threads)
		opt->ex.threads = host ? 1 : 32;
	if (opt->counter && opt->ex.handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF)
		return ex_error("invalid -p 6 with --counter: a queue pair and its companion "
				"cannot share a BlueFlame register");
	return 0;
}

int a2a_options_parse(struct a2a_options *opt, int argc, char **argv)
{
	struct choices given = { -1, -1, -1 };
	int letter;

	*opt = (struct a2a_options){
		.gpus = "host",
		.check = 1,
		.ex = { .iters = 1000, .size = 4096, .gid_index = -1, .timeout_s = 60 },
	};
	while ((letter = getopt_long(argc, argv, "g:d:p:r:i:s:t:l:m:Q:k:nw:h", longopts, NULL)) !=
	       -1) {
		if (letter == 'h') {
			usage();
			return 0;
		}
		if (letter == OPT_VERSION) {
			printf(PROGRAM " (gdaki) %s\n", gdk_version());
			return 0;
		}
		if (parse_option(opt, letter, optarg, &given))
			return 2;
	}
	if (optind < argc) {
		ex_error("unknown argument '%s'; see " PROGRAM " -h", argv[optind]);
		return 2;
	}
	return complete(opt, &given) ? 2 : -1;
}
