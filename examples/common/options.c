/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The command line of the examples that have a server and a client. Letters that the examples of
 * DOCA GPUNetIO have, too, have the same meaning. One table has names, ranges and help of all
 * options; a program does not accept, and does not list, options that it has no use for.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "program.h"

#define THREADS_MAX	  (1u << 16)
#define BLOCK_THREADS_MAX 512 /* of a GPU: EX_BLOCK_MAX of kernel.cuh */

enum kind { FLAG, NUMBER, TEXT, MEMORY, GPU, HANDLER };

/* Options without a letter have these values instead. */
enum { IB_PORT = 1000, JSON, CSV, VERSION };

/* Which programs have the option. */
enum who { ALL, THREADS, SCOPE, BANDWIDTH };

#define AT(member) offsetof(struct ex_options, member)

static const struct def {
	int letter;
	const char *name;
	enum kind kind;
	enum who who;
	size_t at; /* member of struct ex_options */
	uint32_t min, max;
	const char *expected; /* TEXT: in error messages; otherwise see value_name() */
	const char *help;
} defs[] = {
	{ 'g', "gpu", GPU, ALL, AT(gpu), 0, 0, "host|PCI",
	  "host: CPU threads execute the kernel; PCI address: a GPU (host)" },
	{ 'd', "device", TEXT, ALL, AT(device), 0, 0, "the name of an RDMA device",
	  "RDMA device; required if there is more than one" },
	{ 'c', "connect", TEXT, ALL, AT(server), 0, 0, "the IP address or name of the server",
	  "server to connect to: this process is the client" },
	{ 'p', "handler", HANDLER, ALL, AT(handler), 0, 0, "n",
	  "doorbell handler: 0 AUTO, 1 CPU_PROXY, 2 GPU_SM_DB, 6 GPU_SM_BF, 10 GPU_SM_NO_DBR" },
	{ 'r', "send-dbr-mode", NUMBER, ALL, AT(dbr_mode), 0, 2, "n",
	  "doorbell records: 0 valid, 1 none, 2 emulated by software (0; 1 with -p 10)" },
	{ 'e', "scope", NUMBER, SCOPE, AT(warp), 0, 1, "n",
	  "scope of an operation: 0 one thread, 1 a whole warp (0)" },
	{ 'i', "iterations", NUMBER, ALL, AT(iters), 1, 1u << 31, "n",
	  "messages of each queue pair, all its threads together" },
	{ 's', "size", NUMBER, ALL, AT(size), 1, 1u << 30, "bytes", "size of a message (1024)" },
	{ 'a', "all", FLAG, ALL, AT(sweep), 0, 1, NULL,
	  "sizes 1, 64, 128 ... 1048576, up to -s if it is given" },
	{ 'q', "queue-pairs", NUMBER, BANDWIDTH, AT(queues), 1, 1024, "n", "queue pairs" },
	{ 'b', "blocks", NUMBER, THREADS, AT(blocks), 1, THREADS_MAX, "n",
	  "blocks of each queue pair (as needed for its threads)" },
	{ 't', "threads", NUMBER, THREADS, AT(threads), 1, THREADS_MAX, "n",
	  "threads of each queue pair, in all its blocks together" },
	{ 'D', "duration", NUMBER, ALL, AT(duration_s), 1, 86400, "seconds",
	  "duration of each message size, instead of -i" },
	{ 'n', "warm-up", NUMBER, ALL, AT(warmup), 0, 1u << 20, "n",
	  "messages of each thread before the measurement; 0: none" },
	{ 'l', "gid-index", NUMBER, ALL, AT(gid_index), 0, 255, "n",
	  "GID index of the port (default: its RoCEv2 GID)" },
	{ 'm', "payload", MEMORY, ALL, AT(payload_gpu), 1, 0, "gpu|host",
	  "memory of the data (gpu with a GPU, otherwise host)" },
	{ 'Q', "queues", MEMORY, ALL, AT(queues_host), 0, 1, "gpu|host",
	  "memory of the queues (gpu with a GPU, otherwise host)" },
	{ 'P', "tcp-port", NUMBER, ALL, AT(tcp_port), 1, 65535, "n",
	  "TCP port of the server (5000)" },
	{ 'w', "timeout", NUMBER, ALL, AT(timeout_s), 1, 86400, "seconds",
	  "time without progress after which the program ends (60)" },
	{ IB_PORT, "ib-port", NUMBER, ALL, AT(ib_port), 1, 255, "n", "port of the device (1)" },
	{ JSON, "json", TEXT, ALL, AT(json), 0, 0, "the name of a file, or -",
	  "write the results as JSON; -: to standard output" },
	{ CSV, "csv", TEXT, ALL, AT(csv), 0, 0, "the name of a file, or -",
	  "write the results as CSV; -: to standard output" },
	{ 'h', "help", FLAG, ALL, 0, 0, 0, NULL, "print this help" },
	{ VERSION, "version", FLAG, ALL, 0, 0, 0, NULL, "print the version of gdaki" },
};

#define NUM_DEFS (sizeof(defs) / sizeof(defs[0]))

static const struct def *find(int letter)
{
	for (size_t i = 0; i < NUM_DEFS; i++)
		if (defs[i].letter == letter)
			return &defs[i];
	return NULL;
}

static bool program_has(const struct ex_program *p, const struct def *d)
{
	return d->who == ALL || (d->who == THREADS && !p->one_thread) ||
	       (d->who == SCOPE && !p->one_block && !p->one_thread) ||
	       (d->who == BANDWIDTH && p->kind == EX_BANDWIDTH);
}

/* The option as in an error message: "-s, --size". */
static const char *name_of(const struct def *d, char *text, size_t size)
{
	if (d->letter < IB_PORT)
		snprintf(text, size, "-%c, --%s", d->letter, d->name);
	else
		snprintf(text, size, "--%s", d->name);
	return text;
}

static int refuse(const struct def *d, const char *text, const char *expected)
{
	char name[32];

	return ex_error("invalid %s '%s' (expected %s)", name_of(d, name, sizeof(name)), text,
			expected);
}

/* ---- values ---- */

static int parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || !isdigit((unsigned char)text[0]) || *end || n < min || n > max)
		return -1;
	*value = (uint32_t)n;
	return 0;
}

static int parse_number(const struct def *d, const char *text, void *member)
{
	char expected[64];
	uint32_t n;

	if (!parse_u32(text, d->min, d->max, &n)) {
		memcpy(member, &n, sizeof(n)); /* also a number that is declared as int or enum */
		return 0;
	}
	snprintf(expected, sizeof(expected), "a number from %u to %u", d->min, d->max);
	return refuse(d, text, expected);
}

/* Lists the handlers of a program: "0, 1, 2, 6 or 10". */
static void list_handlers(uint32_t mask, char *text, size_t size)
{
	size_t at = 0;

	text[0] = 0;
	for (unsigned int h = 0; mask >> h && h < 32; h++)
		if (mask >> h & 1)
			at += (size_t)snprintf(text + at, size - at, "%s%u",
					       !at		? ""
					       : mask >> h == 1 ? " or "
								: ", ",
					       h);
}

static int parse_handler(const struct ex_program *p, const struct def *d, const char *text,
			 struct ex_options *opt)
{
	char expected[96];
	uint32_t n;

	list_handlers(p->handlers, expected, sizeof(expected));
	if (parse_u32(text, 0, 31, &n) || strlen(text) > 2 || !(p->handlers >> n & 1))
		return refuse(d, text, expected);
	opt->handler = (enum doca_gpu_dev_verbs_nic_handler)n;
	return 0;
}

/* Only the form is checked here: doca_gpu_create() reports an address that no GPU has. */
static int parse_gpu(const struct def *d, const char *text, const char **gpu)
{
	bool address = strspn(text, "0123456789abcdefABCDEF:.") == strlen(text) &&
		       strchr(text, ':') && strchr(text, '.');

	if (strcmp(text, "host") && !address)
		return refuse(d, text, "host or a PCI address such as 8A:00.0");
	*gpu = text;
	return 0;
}

static int parse_value(const struct ex_program *p, const struct def *d, const char *text,
		       struct ex_options *opt)
{
	void *member = (char *)opt + d->at;

	switch (d->kind) {
	case FLAG:
		*(bool *)member = true;
		return 0;
	case NUMBER:
		return parse_number(d, text, member);
	case TEXT:
		if (!*text)
			return refuse(d, text, d->expected);
		*(const char **)member = text;
		return 0;
	case MEMORY: /* min: value of the member for gpu, max: for host */
		if (strcmp(text, "gpu") && strcmp(text, "host"))
			return refuse(d, text, "gpu or host");
		*(bool *)member = strcmp(text, "gpu") ? d->max : d->min;
		return 0;
	case GPU:
		return parse_gpu(d, text, (const char **)member);
	case HANDLER:
		return parse_handler(p, d, text, opt);
	}
	return -1;
}

/* ---- help ---- */

/* AUTO or, if the program supports one handler only, this one. */
static enum doca_gpu_dev_verbs_nic_handler default_handler(const struct ex_program *p)
{
	return p->handlers & 1 ? DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
			       : (enum doca_gpu_dev_verbs_nic_handler)__builtin_ctz(p->handlers);
}

/* Name of the value in the help; NULL: the option has none. */
static const char *value_name(const struct def *d)
{
	switch (d->letter) {
	case 'd':
		return "name";
	case 'c':
		return "server";
	case JSON:
	case CSV:
		return "file";
	default:
		return d->expected;
	}
}

static void print_option(const struct ex_program *p, const struct def *d)
{
	const char *value = value_name(d);
	char left[48], letter[8] = "   ";

	if (d->letter < IB_PORT)
		snprintf(letter, sizeof(letter), "-%c,", d->letter);
	snprintf(left, sizeof(left), "%s --%s%s%s%s", letter, d->name, value ? " <" : "",
		 value ? value : "", value ? ">" : "");
	printf("  %-28s %s", left, d->help);
	if (d->letter == 'p')
		printf(" (%d)", (int)default_handler(p));
	if (d->letter == 'q')
		printf(" (%u)", p->queues ? p->queues : 1);
	if (d->letter == 'i')
		printf(" (%u)", p->iters);
	if (d->letter == 't')
		printf(" (host %u, GPU %u)", p->host_threads, p->gpu_threads);
	if (d->letter == 'n')
		printf(" (%u)", ex_default_warmup(p));
	printf("\n");
}

static void usage(const struct ex_program *p, const char *prog)
{
	printf("Usage: %s [options]                server\n"
	       "       %s [options] -c <server>    client\n\n%s\n\n",
	       prog, prog, p->summary);
	for (size_t i = 0; i < NUM_DEFS; i++)
		if (program_has(p, &defs[i]))
			print_option(p, &defs[i]);
	printf("\nThe client's -i, -s, -a, -D%s apply; the server gets them from the "
	       "client.\nCtrl-C at either side ends the transfer, and what arrived is checked.\n\n"
	       "Examples:\n"
	       "  %s -d mlx5_0                                 server, no GPU\n"
	       "  %s -d mlx5_0 -c 192.168.1.1 -p 2             client, threads ring\n"
	       "  %s -g 8A:00.0 -d mlx5_0 -c 192.168.1.1       client on a GPU\n"
	       "  softnic-run -- %s -d mlx5_0                  server, software NIC\n",
	       p->one_thread ? " and -n" : ", -n, -q, -b and -t", prog, prog, prog, prog);
}

/* ---- combinations ---- */

static int wrong_threads(const struct ex_options *opt, const char *expected)
{
	return ex_error("invalid -t, --threads %u (expected %s)", opt->threads, expected);
}

/* The number of blocks with the fewest blocks of at most `most` threads, whole warps if needed. */
static uint32_t default_blocks(const struct ex_options *opt, uint32_t most)
{
	uint32_t unit = opt->warp ? 32 : 1;

	for (uint32_t b = 1; b < opt->threads; b++)
		if (opt->threads % b == 0 && opt->threads / b <= most &&
		    opt->threads / b % unit == 0)
			return b;
	return opt->threads / unit;
}

static int check_grid(const struct ex_program *p, struct ex_options *opt, bool host)
{
	uint32_t most = p->gpu_blocks ? p->gpu_threads / p->gpu_blocks : BLOCK_THREADS_MAX;

	if (opt->warp && !host && opt->threads % 32)
		return wrong_threads(opt, "a multiple of 32 with -e 1: whole warps");
	if (p->one_block && opt->blocks > 1)
		return ex_error("invalid -b, --blocks %u (expected 1: all threads of a queue pair "
				"of %s are in one block)",
				opt->blocks, p->name);
	if (p->one_block && opt->threads > EX_QUEUE_SIZE) /* posts a WQE of each thread at once */
		return wrong_threads(opt, "at most 2048: the WQEs of a send queue");
	if (!opt->blocks)
		opt->blocks = host || p->one_block ? 1 : default_blocks(opt, most);
	if (opt->threads % opt->blocks)
		return ex_error("invalid -t, --threads %u (expected a multiple of -b, --blocks: "
				"%u)",
				opt->threads, opt->blocks);
	if (!host && opt->threads / opt->blocks > BLOCK_THREADS_MAX)
		return wrong_threads(opt, "at most 512 in a block: more with -b, --blocks");
	if (opt->warp && !host && opt->threads / opt->blocks % 32)
		return wrong_threads(opt, "a multiple of 32 in each block with -e 1: whole warps");
	return 0;
}

static int check_iterations(const struct ex_program *p, struct ex_options *opt, bool given)
{
	if (!given) /* the default, rounded up */
		opt->iters = (p->iters + opt->threads - 1) / opt->threads * opt->threads;
	if (opt->iters % opt->threads)
		return ex_error("invalid -i, --iterations %u (expected a multiple of "
				"-t, --threads: %u)",
				opt->iters, opt->threads);
	if (given && opt->duration_s)
		return ex_error("invalid -D, --duration with -i, --iterations: use one of them");
	return 0;
}

static int check_memory(struct ex_options *opt, bool host, bool payload_given, bool queues_given)
{
	static const char text[] = "invalid -%c, --%s gpu with -g host: select a GPU with "
				   "-g <PCI address>";

	if (!payload_given)
		opt->payload_gpu = !host;
	if (host && opt->payload_gpu)
		return ex_error(text, 'm', "payload");
	if (host && queues_given && !opt->queues_host)
		return ex_error(text, 'Q', "queues");
	return 0;
}

#define GIVEN(letter) (given >> (find(letter) - defs) & 1)

/* Sets the defaults that depend on other options, and checks combinations. */
static int complete(const struct ex_program *p, struct ex_options *opt, uint64_t given)
{
	bool host = !strcmp(opt->gpu, "host");

	if (!opt->threads)
		opt->threads = p->one_thread ? 1 : host ? p->host_threads : p->gpu_threads;
	if (opt->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR && !GIVEN('r'))
		opt->dbr_mode = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	if (!opt->server && (opt->json || opt->csv))
		return ex_error("invalid --%s without -c, --connect: the client has the results",
				opt->json ? "json" : "csv");
	opt->size_given = GIVEN('s');
	opt->companions = opt->companions_cross = p->counter;
	opt->receive_queues = p->receives && !opt->server;
	return check_memory(opt, host, GIVEN('m'), GIVEN('Q')) || check_grid(p, opt, host) ||
			       check_iterations(p, opt, GIVEN('i'))
		       ? -1
		       : 0;
}

uint32_t ex_default_warmup(const struct ex_program *p)
{
	return p->kind == EX_LATENCY ? 100 : 8;
}

/* ---- command line ---- */

static void to_getopt(const struct ex_program *p, struct option *longs, char *shorts)
{
	for (size_t i = 0; i < NUM_DEFS; i++) {
		const struct def *d = &defs[i];

		if (!program_has(p, d))
			continue;
		*longs++ = (struct option){ d->name,
					    d->kind == FLAG ? no_argument : required_argument, NULL,
					    d->letter };
		if (d->letter >= IB_PORT)
			continue;
		*shorts++ = (char)d->letter;
		if (d->kind != FLAG)
			*shorts++ = ':';
	}
	*longs = (struct option){ 0 };
	*shorts = 0;
}

/* Prints why getopt_long() refused an argument. */
static int refused(const struct ex_program *p, const char *prog, int letter)
{
	const struct def *d = letter ? find(letter) : NULL;
	char name[32];

	if (d && !program_has(p, d))
		ex_error("%s does not have the option %s", p->name, name_of(d, name, sizeof(name)));
	ex_error("see %s -h", prog);
	return 2;
}

int ex_options_parse(struct ex_options *opt, const struct ex_program *p, int argc, char **argv)
{
	struct option longs[NUM_DEFS + 1];
	char shorts[2 * NUM_DEFS + 1];
	uint64_t given = 0;
	int letter;

	*opt = (struct ex_options){
		.gpu = "host",
		.handler = default_handler(p),
		.queues = p->queues ? p->queues : 1,
		.size = 1024,
		.gid_index = -1,
		.ib_port = 1,
		.tcp_port = 5000,
		.timeout_s = 60,
		.warmup = ex_default_warmup(p),
	};
	to_getopt(p, longs, shorts);
	while ((letter = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (letter == 'h') {
			usage(p, argv[0]);
			return 0;
		}
		if (letter == VERSION) {
			ex_print_version(argv[0]);
			return 0;
		}
		if (letter == '?')
			return refused(p, argv[0], optopt);
		if (parse_value(p, find(letter), optarg, opt))
			return 2;
		given |= 1ull << (find(letter) - defs);
	}
	if (optind < argc) {
		ex_error("unknown argument '%s'; see %s -h", argv[optind], argv[0]);
		return 2;
	}
	return complete(p, opt, given) ? 2 : -1;
}
