/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * softnic-run [options] -- COMMAND: sets the environment, generates a sysfs tree, and
 * runs COMMAND with the software NIC in LD_PRELOAD (without it with --no-preload). When
 * COMMAND ends, removes the tree. With --strict, adds up the violations of all processes
 * that used the NIC, and exits with EXIT_STRICT if there are any. cfg.c, in the NIC,
 * reads the variables that this program sets.
 */
#include "front.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/gdk_version.h"

#define EXIT_USAGE   2
#define EXIT_STRICT  86
#define EXIT_NOT_RUN 127

/* Options that only set a variable. kind: 0 without a value, 1 with a value, 2 with a fraction
 * (converted to parts per million), 3 with an optional value. */
static const struct setting {
	const char *option, *variable;
	int kind;
	const char *value, *help;
} settings[] = {
	{ "strict", "SOFTNIC_STRICT", 0, NULL,
	  "exit with 86 if COMMAND used the NIC in ways that hardware refuses" },
	{ "stats", "SOFTNIC_STATS", 0, NULL, "print counters on standard error at exit" },
	{ "trace", "SOFTNIC_TRACE", 3, "FILE",
	  "print commands, work requests, packets and completions" },
	{ "dmabuf", "SOFTNIC_DMABUF", 0, NULL, "allow registration of dmabufs (file descriptors)" },
	{ "dmabuf-pcie", "SOFTNIC_DMABUF_PCIE", 1, "KIND",
	  "dmabufs of the PCIe mapping type: refuse, fault (at DMA) or attach (refuse)" },
	{ "peermem", "SOFTNIC_PEERMEM", 1, "BOOL",
	  "allow registration of GPU memory by address: 0 or 1 (1)" },
	{ "dbrec-only", "SOFTNIC_DBREC_ONLY", 0, NULL,
	  "ignore indices in doorbells and read doorbell records" },
	{ "ip", "SOFTNIC_IP", 1, "ADDRESS",
	  "address of the port: IPv4 or IPv6, of this machine (127.x.y.z)" },
	{ "pcap", "SOFTNIC_PCAP", 1, "FILE", "write sent and received packets to a capture file" },
	{ "stats-dir", "SOFTNIC_STATS_DIR", 1, "FOLDER",
	  "write counters as JSON, one file per process" },
	{ "no-dbr", "SOFTNIC_NO_DBR", 1, "BOOL",
	  "support queue pairs without doorbell record: 0 or 1 (1)" },
	{ "no-dbr-max", "SOFTNIC_NO_DBR_MAX", 1, "N",
	  "maximum number of such queue pairs (0: no limit)" },
	{ "fail-cmd", "SOFTNIC_FAIL_CMD", 1, "N[:STATUS[:SYND]]",
	  "let the N-th firmware command fail" },
	{ "fail-ioctl", "SOFTNIC_FAIL_IOCTL", 1, "N", "let the N-th verbs call fail" },
	{ "seed", "SOFTNIC_SEED", 1, "N", "seed of random faults (1)" },
	{ "loss-ppm", "SOFTNIC_LOSS_PPM", 1, "N", "lose N of a million packets" },
	{ "dup-ppm", "SOFTNIC_DUP_PPM", 1, "N", "send N of a million packets twice" },
	{ "reorder-ppm", "SOFTNIC_REORDER_PPM", 1, "N",
	  "send N of a million packets after their successor" },
	{ "corrupt-ppm", "SOFTNIC_CORRUPT_PPM", 1, "N", "flip a bit in N of a million packets" },
	{ "loss", "SOFTNIC_LOSS_PPM", 2, "FRACTION", "as --loss-ppm, a fraction from 0 to 1" },
	{ "dup", "SOFTNIC_DUP_PPM", 2, "FRACTION", "as --dup-ppm, a fraction" },
	{ "reorder", "SOFTNIC_REORDER_PPM", 2, "FRACTION", "as --reorder-ppm, a fraction" },
	{ "corrupt", "SOFTNIC_CORRUPT_PPM", 2, "FRACTION", "as --corrupt-ppm, a fraction" },
	{ "delay-us", "SOFTNIC_DELAY_US", 1, "N", "delay every packet by N microseconds" },
	{ "stall", "SOFTNIC_STALL", 1, "MS[:PERIOD]",
	  "stop the NIC for MS milliseconds of each period (10 * MS)" },
	{ "mtu", "SOFTNIC_MTU", 1, "BYTES",
	  "largest path MTU in bytes, 256 to 4096 (what the interface can carry)" },
	{ "link-layer", "SOFTNIC_LINK_LAYER", 1, "KIND", "ethernet or infiniband (ethernet)" },
	{ "grh-required", "SOFTNIC_GRH_REQUIRED", 0, NULL,
	  "the InfiniBand port requires a GRH in every packet" },
	{ "vlan", "SOFTNIC_VLAN", 1, "ID",
	  "VLAN of the GIDs of IP addresses; captures then have Ethernet headers" },
	{ "page-size", "SOFTNIC_PAGE_SIZE", 1, "BYTES[:whole]",
	  "page size of the kernel, 4k to 64k (4k): 64k puts 16 UARs in one mapping; whole: "
	  "it uses no smaller pages for umems" },
	{ "lag", "SOFTNIC_LAG", 1, "PORTS[:MODE]",
	  "the port is a bond that distributes queue pairs; hash: by packet headers; "
	  "inactive: bonding is supported but not in use" },
	{ "model", "SOFTNIC_MODEL", 1, "NAME",
	  "card model, see --list-models; other options override its values" },
	{ "lag-init2", "SOFTNIC_LAG_INIT2", 1, "BOOL",
	  "allow changing a queue pair's port of the bond before RTS: 0 or 1 (1)" },
	{ "query-lag", "SOFTNIC_QUERY_LAG", 1, "BOOL",
	  "support the command QUERY_LAG: 0 or 1 (1)" },
	{ "vf", "SOFTNIC_VF", 0, NULL, "the device is a virtual function" },
	{ "cd", "SOFTNIC_CD", 1, "BOOL", "support core direct (WAIT work requests): 0 or 1 (1)" },
	{ "ts-format", "SOFTNIC_TS_FORMAT", 1, "KIND",
	  "time stamp formats of the device: free, real or both (free)" },
	{ "events", "SOFTNIC_EVENTS", 1, "MASK",
	  "event types that can be subscribed (all); legacy: the device does not list them" },
	{ "qp-max", "SOFTNIC_QP_MAX", 1, "N", "maximum number of queue pairs (0: no limit)" },
	{ "cq-behind", "SOFTNIC_CQ_BEHIND", 1, "N",
	  "QUERY_CQ reports N CQEs less than were written" },
	{ "pci-device", "SOFTNIC_PCI_DEVICE", 1, "ID", "PCI device ID (0x1021)" },
	{ "fw-ver", "SOFTNIC_FW_VER", 1, "VERSION", "firmware version" },
	{ "err-after", "SOFTNIC_ERR_AFTER", 1, "N",
	  "move each queue pair to error after N messages (0: never)" },
};

#define SETTINGS	(sizeof(settings) / sizeof(settings[0]))
#define OPT_NO_PRELOAD	1000
#define OPT_HELP	1001
#define OPT_LIST_MODELS 1002
#define OPT_VERSION	1003

static volatile sig_atomic_t child;

static void usage(FILE *f)
{
	char left[64];
	size_t i;

	fprintf(f,
		"usage: softnic-run [options] -- COMMAND [ARGS]\n"
		"Runs COMMAND on a software mlx5 NIC.\n"
		"  --no-preload                   set the environment only, for a COMMAND that is "
		"linked with the NIC\n"
		"  --list-models                  list card models with their properties and the "
		"sources\n"
		"  --version                      print the version of gdaki\n");
	for (i = 0; i < SETTINGS; i++) {
		snprintf(left, sizeof(left), settings[i].kind == 3 ? "%s[=%s]" : "%s %s",
			 settings[i].option, settings[i].value ? settings[i].value : "");
		fprintf(f, "  --%-28s %s\n", left, settings[i].help);
	}
}

static void apply(const struct setting *s, const char *arg)
{
	char ppm[32];

	if (s->kind == 2) {
		snprintf(ppm, sizeof(ppm), "%.0f", atof(arg) * 1e6);
		arg = ppm;
	}
	setenv(s->variable, arg ? arg : "1", 1);
}

static int parse(int argc, char **argv, bool *preload)
{
	static const int args[] = { no_argument, required_argument, required_argument,
				    optional_argument };
	struct option opts[SETTINGS + 5] = { 0 };
	size_t i;
	int o;

	for (i = 0; i < SETTINGS; i++) {
		opts[i].name = settings[i].option;
		opts[i].has_arg = args[settings[i].kind];
		opts[i].val = (int)i;
	}
	opts[i++] = (struct option){ "no-preload", no_argument, NULL, OPT_NO_PRELOAD };
	opts[i++] = (struct option){ "list-models", no_argument, NULL, OPT_LIST_MODELS };
	opts[i++] = (struct option){ "version", no_argument, NULL, OPT_VERSION };
	opts[i] = (struct option){ "help", no_argument, NULL, OPT_HELP };
	while ((o = getopt_long(argc, argv, "+", opts, NULL)) != -1) {
		if (o == '?')
			return -1;
		if (o == OPT_HELP) {
			usage(stdout);
			exit(0);
		}
		if (o == OPT_VERSION) {
			printf("softnic-run (gdaki) %s\n", GDK_VERSION);
			exit(0);
		}
		if (o == OPT_LIST_MODELS) {
			sn_models_list(stdout);
			exit(0);
		}
		if (o == OPT_NO_PRELOAD)
			*preload = false;
		else
			apply(&settings[o], optarg);
	}
	return optind;
}

static bool model_ok(void)
{
	const char *model = getenv("SOFTNIC_MODEL");

	if (!model || !*model || sn_model_known(model))
		return true;
	fprintf(stderr, "softnic-run: unknown card model \"%s\", expected one of ", model);
	sn_models_print(stderr);
	fprintf(stderr, "\n");
	return false;
}

/* Checks that a variable is unset, empty or one of the words. Otherwise prints an error. */
static bool is_word(const char *variable, const char *const *words)
{
	const char *value = getenv(variable);
	size_t i;

	if (!value || !*value)
		return true;
	for (i = 0; words[i]; i++)
		if (!strcmp(value, words[i]))
			return true;
	fprintf(stderr, "softnic-run: invalid %s=\"%s\", expected", variable, value);
	for (i = 0; words[i]; i++)
		fprintf(stderr, "%s %s", i ? " or" : "", words[i]);
	fprintf(stderr, "\n");
	return false;
}

/* Checks that SOFTNIC_LAG is unset, empty, N, N:hash or N:inactive with N up to 15. */
static bool lag_ok(void)
{
	const char *value = getenv("SOFTNIC_LAG");
	char *end;

	if (!value || !*value ||
	    (strtoul(value, &end, 0) < 16 && end != value &&
	     (!*end || !strcmp(end, ":hash") || !strcmp(end, ":inactive"))))
		return true;
	fprintf(stderr,
		"softnic-run: invalid SOFTNIC_LAG=\"%s\", expected PORTS, PORTS:hash or "
		"PORTS:inactive with PORTS up to 15\n",
		value);
	return false;
}

static bool check_words(void)
{
	static const char *const layers[] = { "ethernet", "infiniband", NULL };
	static const char *const pcie[] = { "refuse", "fault", "attach", NULL };
	static const char *const stamps[] = { "free", "real", "both", NULL };

	return lag_ok() && is_word("SOFTNIC_TS_FORMAT", stamps) &&
	       is_word("SOFTNIC_LINK_LAYER", layers) && is_word("SOFTNIC_DMABUF_PCIE", pcie);
}

/* Checks the environment, fills cfg from it and sets SOFTNIC_IP to the port's address. A given
 * address must belong to an interface of this machine. */
static int set_address(struct sn_cfg *cfg)
{
	const char *given = getenv("SOFTNIC_IP");
	char text[INET6_ADDRSTRLEN];
	struct in6_addr ip;

	if (given && *given && !sn_addr_parse(given, &ip)) {
		fprintf(stderr,
			"softnic-run: invalid SOFTNIC_IP=\"%s\" (expected IPv4 or IPv6 address)\n",
			given);
		errno = EINVAL;
		return -1;
	}
	if (!check_words()) {
		errno = EINVAL;
		return -1;
	}
	if (!sn_cfg_page_size(cfg)) {
		fprintf(stderr, "softnic-run: invalid SOFTNIC_PAGE_SIZE (expected 4k to 64k)\n");
		errno = EINVAL;
		return -1;
	}
	sn_cfg_from_env(cfg);
	if (cfg->infiniband && !sn_lid_of_ip(&cfg->ip)) {
		fprintf(stderr,
			"softnic-run: invalid address for an InfiniBand port: the last 16 bits "
			"are its LID and must be 1 to 49151\n");
		errno = EINVAL;
		return -1;
	}
	sn_addr_text(&cfg->ip, text);
	if (!cfg->ndev[0]) {
		fprintf(stderr, "softnic-run: no interface of this machine has the address %s\n",
			text);
		errno = EADDRNOTAVAIL;
		return -1;
	}
	return setenv("SOFTNIC_IP", text, 1);
}

/* Finds libsoftnic.so: beside this program in an installed tree, where PREFIX/bin has a link to the
 * program; in ../lib in the build tree. The other places serve installations that were copied with
 * the link replaced by the program. */
static int find_library(char *lib, size_t size)
{
	static const char *const places[] = { "", "../lib/", "../lib/gdaki/", "../lib64/gdaki/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	if (n < 0)
		return -errno;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(lib, size, "%s/%slibsoftnic.so", self, places[i]);
		if (!access(lib, R_OK))
			return 0;
	}
	fprintf(stderr, "softnic-run: libsoftnic.so is not in %s or %s/../lib\n", self, self);
	errno = ENOENT;
	return -ENOENT;
}

/* Puts libsoftnic.so first in LD_PRELOAD, whose entries spaces and colons separate. */
static int set_preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char lib[PATH_MAX + 64], *value;
	int rc = find_library(lib, sizeof(lib));

	if (rc)
		return rc;
	if (strpbrk(lib, " :")) {
		fprintf(stderr,
			"softnic-run: cannot preload \"%s\": its path has a space or colon\n", lib);
		errno = EINVAL;
		return -EINVAL;
	}
	if (asprintf(&value, "%s%s%s", lib, old && *old ? ":" : "", old ? old : "") < 0)
		return -ENOMEM;
	setenv("LD_PRELOAD", value, 1);
	free(value);
	return 0;
}

static int set_tree(const char *dir, const struct sn_cfg *cfg)
{
	char path[PATH_MAX + 16];
	int rc;

	snprintf(path, sizeof(path), "%s/sys", dir);
	setenv("SOFTNIC_SYSFS", path, 1);
	rc = sn_sysfs_build(path, cfg);
	if (rc)
		return rc;
	if (!getenv("SOFTNIC_STATS_DIR")) {
		snprintf(path, sizeof(path), "%s/stats", dir);
		setenv("SOFTNIC_STATS_DIR", path, 1);
	}
	mkdir(getenv("SOFTNIC_STATS_DIR"), 0755);
	/* a GPU kernel that waits for the NIC must not also wait for lazy module loading */
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	return 0;
}

static unsigned long long file_violations(const char *path)
{
	unsigned long long n = 0;
	char buf[4096];
	const char *p;
	FILE *f = fopen(path, "r");

	if (!f)
		return 0;
	if (fgets(buf, sizeof(buf), f) && (p = strstr(buf, "\"violations\": ")))
		n = strtoull(p + strlen("\"violations\": "), NULL, 10);
	fclose(f);
	return n;
}

static unsigned long long sum_violations(const char *dir)
{
	unsigned long long n = 0;
	char path[PATH_MAX + 300];
	struct dirent *e;
	DIR *d = opendir(dir);

	if (!d)
		return 0;
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (strstr(e->d_name, ".json"))
			n += file_violations(path);
	}
	closedir(d);
	return n;
}

static void forward(int sig)
{
	if (child > 0)
		kill(child, sig);
}

static int run_child(char **argv)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction sa = { .sa_handler = forward, .sa_flags = SA_RESTART };
	sigset_t all, old;
	size_t i;
	int st;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		prctl(PR_SET_PDEATHSIG,
		      SIGKILL); /* COMMAND must not outlive a killed softnic-run */
		execvp(argv[0], argv);
		fprintf(stderr, "softnic-run: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(EXIT_NOT_RUN);
	}
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		sigaction(sigs[i], &sa, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (child < 0)
		return EXIT_NOT_RUN;
	while (waitpid(child, &st, 0) < 0)
		if (errno != EINTR)
			return EXIT_NOT_RUN;
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

int main(int argc, char **argv)
{
	char dir[PATH_MAX];
	unsigned long long bad;
	bool preload = true;
	struct sn_cfg cfg;
	int first, status;

	first = parse(argc, argv, &preload);
	if (first < 0 || first >= argc) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!model_ok())
		return EXIT_USAGE;
	if (sn_tmp_make(dir) || set_address(&cfg) || set_tree(dir, &cfg) ||
	    (preload && set_preload())) {
		fprintf(stderr, "softnic-run: cannot set up address, sysfs tree or preload: %s\n",
			strerror(errno));
		sn_sysfs_remove(dir);
		return EXIT_NOT_RUN;
	}
	status = run_child(argv + first);
	bad = getenv("SOFTNIC_STRICT") ? sum_violations(getenv("SOFTNIC_STATS_DIR")) : 0;
	sn_sysfs_remove(dir);
	if (bad) {
		fprintf(stderr, "softnic-run: failing the run: %llu violations counted\n", bad);
		return EXIT_STRICT;
	}
	return status;
}
