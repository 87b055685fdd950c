/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks for each GPU, RDMA device and port what works and what does not, and prints the command
 * that repairs it. It changes nothing on the machine.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "doca_gpunetio_host.h"
#include "host/gdaki.h"

#include "doctor.h"
#include "files.h"

#define TIMEOUT_S 60
enum { OPT_VERSION = 1000, OPT_JSON, OPT_ROOT, OPT_RECORD };

static const struct option longopts[] = {
	{ "gpu", required_argument, NULL, 'g' },
	{ "device", required_argument, NULL, 'd' },
	{ "port", required_argument, NULL, 'i' },
	{ "handler", required_argument, NULL, 'p' },
	{ "timeout", required_argument, NULL, 'w' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "record", required_argument, NULL, OPT_RECORD },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	struct dr_env env;
	const char *record; /* NULL: not given */
	char gpu[16];
	bool json;
};

static int usage(void)
{
	fputs("Usage: gpunetio_doctor [options]\n\n"
	      "Checks which GPUs, RDMA devices and ports GPU-initiated RDMA can use, and how to\n"
	      "repair what does not work. It changes nothing.\n\n"
	      "  -g, --gpu <host|PCI>     check this GPU, for example 8A:00.0; host: CPU threads\n"
	      "                           (all GPUs; host if there is none)\n"
	      "  -d, --device <name>      check this RDMA device (all)\n"
	      "  -i, --port <n>           check this port (all)\n"
	      "  -p, --handler <n>        check this doorbell handler: 0 AUTO, 1 CPU_PROXY,\n"
	      "                           2 GPU_SM_DB, 6 GPU_SM_BF, 10 GPU_SM_NO_DBR (0)\n"
	      "  -w, --timeout <seconds>  time limit of each check that calls a driver (60)\n"
	      "      --json               print JSON instead of text\n"
	      "      --root <folder>      check a recorded machine: sys, proc, etc and dev of\n"
	      "                           this folder; opens no device\n"
	      "      --record <folder>    copy the files that are read into this folder, which\n"
	      "                           can be checked as a recorded machine\n"
	      "  -h, --help               print this help\n"
	      "      --version            print the version of gdaki\n\n"
	      "The exit status is 1 if what the options select cannot work. Without options it\n"
	      "is 1 if no RDMA device can be used.\n\n"
	      "Examples:\n"
	      "  gpunetio_doctor                              all GPUs and devices\n"
	      "  gpunetio_doctor -g 8A:00.0 -d mlx5_0 -p 2    one combination\n"
	      "  softnic-run -- gpunetio_doctor               software NIC\n",
	      stdout);
	return 0;
}

static int refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int refuse(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("error: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	return 2;
}

static int parse_number(const char *option, const char *text, unsigned int min, unsigned int max,
			unsigned int *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || !isdigit((unsigned char)text[0]) || *end || n < min || n > max)
		return refuse("invalid %s '%s' (expected a number from %u to %u)", option, text,
			      min, max);
	*value = (unsigned int)n;
	return 0;
}

/* Completes the address to the form of sysfs: 0000:8a:00.0. */
static int parse_gpu(struct arguments *a, const char *text)
{
	unsigned int domain = 0, bus, slot, function;
	bool valid;
	int used = 0;

	if (!strcmp(text, DR_HOST_GPU)) {
		a->env.gpu = DR_HOST_GPU;
		return 0;
	}
	valid = sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &used) == 4 &&
		!text[used];
	if (!valid) {
		domain = used = 0;
		valid = sscanf(text, "%x:%x.%x%n", &bus, &slot, &function, &used) == 3 &&
			!text[used];
	}
	if (!valid || domain > 0xffff || bus > 0xff || slot > 0x1f || function > 7)
		return refuse("invalid -g, --gpu '%s' (expected host or a PCI address such as "
			      "8A:00.0)",
			      text);
	snprintf(a->gpu, sizeof(a->gpu), "%04x:%02x:%02x.%x", domain, bus, slot, function);
	a->env.gpu = a->gpu;
	return 0;
}

static int parse_handler(struct arguments *a, const char *text)
{
	static const char *const handlers[] = { "0", "1", "2", "6", "10" };

	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (!strcmp(text, handlers[i])) {
			a->env.handler = atoi(text);
			return 0;
		}
	return refuse("invalid -p, --handler '%s' (expected 0, 1, 2, 6 or 10)", text);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int parse_option(struct arguments *a, int letter, const char *text)
{
	unsigned int n = 0;
	int rc;

	switch (letter) {
	case 'g':
		return parse_gpu(a, text);
	case 'd':
		a->env.device = text;
		return *text ? 0 : refuse("invalid -d, --device '' (expected a name)");
	case 'i':
		rc = parse_number("-i, --port", text, 1, 255, &n);
		a->env.port = (int)n;
		return rc;
	case 'p':
		return parse_handler(a, text);
	case 'w':
		return parse_number("-w, --timeout", text, 1, 86400, &a->env.timeout_s);
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_ROOT:
		a->env.root = text;
		a->env.probe = false;
		return is_folder(text) ? 0
				       : refuse("invalid --root '%s' (expected a folder)", text);
	case OPT_RECORD:
		a->record = text;
		return *text ? 0 : refuse("invalid --record '' (expected a folder)");
	default:
		return refuse("see gpunetio_doctor -h");
	}
}

static int start_record(const char *folder)
{
	int rc = dr_record_to(folder);

	return rc ? refuse("cannot record into '%s': %s", folder, strerror(-rc)) : 0;
}

/* Returns -1 to run the checks, otherwise the exit status. */
static int parse(struct arguments *a, int argc, char **argv)
{
	int letter, rc = 0;

	while ((letter = getopt_long(argc, argv, "g:d:i:p:w:h", longopts, NULL)) != -1 && !rc) {
		if (letter == 'h')
			return usage();
		if (letter == OPT_VERSION) {
			printf("gpunetio_doctor (gdaki) %s\n", gdk_version());
			return 0;
		}
		rc = parse_option(a, letter, optarg);
	}
	if (!rc && optind < argc)
		rc = refuse("unknown argument '%s'; see gpunetio_doctor -h", argv[optind]);
	if (!rc && a->record && *a->env.root)
		rc = refuse("--record and --root cannot be combined");
	if (!rc && a->record)
		rc = start_record(a->record);
	return rc ? rc : -1;
}

/* Keeps only the name that the user selected. */
static bool keep(struct dr_names *names, const char *name)
{
	for (int i = 0; i < names->num; i++)
		if (!strcmp(names->name[i], name)) {
			memmove(names->name[0], names->name[i], DR_NAME_LEN);
			names->num = 1;
			return true;
		}
	names->num = 0;
	return false;
}

/* /sys may list GPUs that the driver does not offer to this process, and lack others. So a GPU that
 * it does not list is tried, unless the machine is a recorded one. */
static void select_gpu(struct dr_env *env, struct dr_report *r)
{
	char scope[DR_NAME_LEN + 8];

	if (!strcmp(env->gpu, DR_HOST_GPU)) {
		env->gpus.num = 0;
		return;
	}
	if (keep(&env->gpus, env->gpu))
		return;
	snprintf(scope, sizeof(scope), "gpu %s", env->gpu);
	dr_add(r, scope, "present", env->probe ? DR_WARN : DR_FAIL,
	       "list the GPUs: lspci -d 10de:", "no NVIDIA GPU in /sys has this PCI address");
	snprintf(env->gpus.name[0], DR_NAME_LEN, "%s", env->gpu);
	env->gpus.num = 1;
	env->gpu_unlisted = true;
}

static void select_parts(struct dr_env *env, struct dr_report *r)
{
	dr_find_gpus(env, &env->gpus);
	dr_find_devices(env, &env->devices);
	if (env->gpu)
		select_gpu(env, r);
	if (env->device && !keep(&env->devices, env->device))
		dr_add(r, env->device, "present", DR_FAIL, "list the devices: ibv_devices",
		       "no RDMA device in /sys/class/infiniband has this name");
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.env = { .root = "", .handler = -1, .probe = true, .timeout_s = TIMEOUT_S }
	};
	struct dr_report *r;
	int rc = parse(&a, argc, argv);

	if (rc >= 0)
		return rc;
	r = dr_report_new(&a.env);
	select_parts(&a.env, r);
	dr_check_host(&a.env, r);
	if (!a.env.gpu_unlisted)
		dr_check_gpu(&a.env, r);
	dr_check_nic(&a.env, r);
	dr_check_topology(&a.env, r);
	dr_check_pair(&a.env, r);
	rc = dr_verdict(r);
	if (a.json)
		dr_print_json(r, rc);
	else
		dr_print_text(r);
	dr_report_free(r);
	if (fflush(stdout) || ferror(stdout)) {
		fputs("error: cannot write the report to standard output\n", stderr);
		return 1;
	}
	return rc;
}
