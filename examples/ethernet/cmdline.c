/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The command lines of the Ethernet examples. Each program has some of the options in the table.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#include "ethernet.h"

#define HOST_THREADS 32u
#define GPU_THREADS  256u
#define WARP	     32u
#define SETTINGS     32u

/* A text (max 0), a flag (value NULL) or a number. */
struct setting {
	char letter;
	const char *name, *value, *help;
	size_t at; /* in struct et_options */
	uint32_t min, max;
};

#define AT(member) offsetof(struct et_options, member)

static const struct setting settings[] = {
	{ 'g', "gpu", "GPU", "PCI address of the GPU, or host: CPU threads", AT(gpu), 0, 0 },
	{ 'n', "nic", "NIC", "name or PCI address of the NIC", AT(device), 0, 0 },
	{ 'e', "scope", "N", "threads of a call: 0 thread, 1 warp, 2 block", AT(scope), 0, 2 },
	{ 't', "threads", "N", "threads", AT(threads), 1, ET_THREADS_MAX },
	{ 'p', "handler", "N", "doorbell handler: 0 AUTO, 1 CPU_PROXY, 2 GPU_SM_DB, 6 GPU_SM_BF",
	  AT(handler), 0, 6 },
	{ 'i', "iterations", "N", "packets", AT(packets), 1, ET_PACKETS_MAX },
	{ 's', "size", "BYTES", "bytes of a packet", AT(size), ET_BYTES_MIN, ET_BYTES_MAX },
	{ 'b', "slots", "N", "packet slots of the receive queue", AT(slots), 64, 32768 },
	{ 'f', "in-flight", "N", "packets that are sent and not yet received", AT(in_flight), 1,
	  32768 },
	{ 'M', "multi", NULL, "several packets in a WQE, by warps (-e 1)", AT(multi), 0, 1 },
	{ 'u', "gap", "US", "microseconds from one burst to the next", AT(gap_us), 1, 1000000 },
	{ 'm', "mcst", NULL, "wait until packets are visible in GPU memory (before Hopper)",
	  AT(mcst), 0, 1 },
	{ 'c', "connect", "HOST", "where the other program runs", AT(server), 0, 0 },
	{ 'r', "remote", NULL, "the packets come from another process", AT(remote), 0, 1 },
	{ 'D', "duration", "SECONDS", "answer any host for this time, or until Ctrl-C",
	  AT(duration_s), 1, 86400 },
	{ 'a', "address", "IP", "IPv4 address that is answered", AT(address), 0, 0 },
	{ 'P', "tcp-port", "N", "TCP port of the receiver", AT(tcp_port), 1, 65535 },
	{ 'w', "timeout", "SECONDS", "time limit of waits without progress", AT(timeout_s), 1,
	  86400 },
};

#define NUM_SETTINGS (sizeof(settings) / sizeof(settings[0]))

static bool has(const struct et_program *program, const struct setting *s)
{
	return strchr(program->letters, s->letter) != NULL;
}

static void *place(struct et_options *opt, const struct setting *s)
{
	return (char *)opt + s->at;
}

static void usage(const struct et_program *program, struct et_options *opt)
{
	const struct setting *s;
	char left[32];

	printf("usage: %s [options]\n%s\n", program->name, program->about);
	for (s = settings; s < settings + NUM_SETTINGS; s++) {
		if (!has(program, s))
			continue;
		snprintf(left, sizeof(left), "%s%s%s", s->name, s->value ? " " : "",
			 s->value ? s->value : "");
		printf("  -%c, --%-18s %s", s->letter, left,
		       s->letter == 'i' && program->what ? program->what : s->help);
		if (s->letter == 'g')
			printf(" (%s)", opt->gpu);
		else if (s->letter == 'a')
			printf(" (%s)", opt->address);
		else if (s->letter == 'n')
			printf(" (the first one)");
		else if (s->letter == 't' && !opt->threads)
			printf(" (%u, on a GPU %u)", HOST_THREADS, GPU_THREADS);
		else if (s->letter == 'f' && !opt->in_flight)
			printf(" (256)");
		else if (s->max && s->value && (!s->min || *(uint32_t *)place(opt, s)))
			printf(" (%u)", *(uint32_t *)place(opt, s));
		printf("\n");
	}
	printf("  -h, --%-18s print this text\n      --%-18s print the version of gdaki\n", "help",
	       "version");
}

static int number(const struct setting *s, uint32_t *value)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(optarg, &end, 10);
	if (!errno && isdigit((unsigned char)*optarg) && !*end && n >= s->min && n <= s->max &&
	    (s->letter != 'p' || n <= 2 || n == 6)) {
		*value = (uint32_t)n;
		return 0;
	}
	if (s->letter == 'p') /* the handlers that an Ethernet send queue can have */
		return ex_error("invalid -p, --handler '%s' (expected 0, 1, 2 or 6)", optarg);
	return ex_error("invalid -%c, --%s '%s' (expected a number from %u to %u)", s->letter,
			s->name, optarg, s->min, s->max);
}

static int take(const struct setting *s, struct et_options *opt)
{
	if (!s->value) {
		*(bool *)place(opt, s) = true;
		return 0;
	}
	if (s->max)
		return number(s, place(opt, s));
	if (!*optarg)
		return ex_error("invalid -%c, --%s '' (expected a name)", s->letter, s->name);
	*(const char **)place(opt, s) = optarg;
	return 0;
}

/* Fills the arguments of getopt_long(). */
static void fill(const struct et_program *program, struct option *longs, char *shorts)
{
	size_t i;

	for (i = 0; i < NUM_SETTINGS; i++) {
		if (!has(program, &settings[i]))
			continue;
		*longs++ = (struct option){ settings[i].name,
					    settings[i].value ? required_argument : no_argument,
					    NULL, settings[i].letter };
		*shorts++ = settings[i].letter;
		if (settings[i].value)
			*shorts++ = ':';
	}
	*longs++ = (struct option){ "help", no_argument, NULL, 'h' };
	*longs++ = (struct option){ "version", no_argument, NULL, 'V' };
	*longs = (struct option){ 0 };
	*shorts++ = 'h';
	*shorts = 0;
}

int et_options_parse(const struct et_program *program, struct et_options *opt, int argc,
		     char **argv)
{
	struct option longs[SETTINGS];
	char shorts[2 * SETTINGS];
	size_t i;
	int c;

	fill(program, longs, shorts);
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (c == 'h')
			return usage(program, opt), 0;
		if (c == 'V')
			return ex_print_version(program->name), 0;
		for (i = 0; i < NUM_SETTINGS && settings[i].letter != c; i++)
			;
		if (i == NUM_SETTINGS || take(&settings[i], opt)) /* or getopt_long() failed */
			return 2;
	}
	if (optind == argc)
		return -1;
	ex_error("unexpected argument '%s' (-h prints the options)", argv[optind]);
	return 2;
}

int et_choose_threads(struct et_options *opt, bool one_group)
{
	const bool host = !strcmp(opt->gpu, "host");

	if (one_group && opt->scope != ET_BLOCK)
		opt->threads = opt->scope == ET_THREAD ? 1 : WARP;
	else if (!opt->threads)
		opt->threads = host ? HOST_THREADS : GPU_THREADS;
	if (opt->scope != ET_THREAD && opt->threads % WARP)
		return ex_error("invalid -t, --threads %u (expected a multiple of %u: -e %u has "
				"whole warps)",
				opt->threads, WARP, opt->scope);
	return 0;
}
