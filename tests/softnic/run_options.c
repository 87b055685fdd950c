/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Options and environment of softnic-run. Each option of setting.c sets its variable.
 * The values of options and of variables that were set before are checked; the first
 * invalid one is reported, and nothing has been created by then.
 */
#include "run.h"
#include "setting.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/gdk_version.h"

#define OPTIONS_MAX 96
#define EXTRA	    4 /* options that set no variable */
#define PREFIX	    "SOFTNIC_"

enum { OPT_NO_PRELOAD = 1000, OPT_HELP, OPT_LIST_MODELS, OPT_VERSION };

static bool by_option[OPTIONS_MAX]; /* setting i was given as an option */

void sn_run_message(const char *fmt, ...)
{
	char line[1024], *p;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (p = line; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	fprintf(stderr, "softnic-run: %s\n", line);
}

static void usage(void)
{
	const struct sn_setting *s;
	char left[64];

	printf("usage: softnic-run [options] -- COMMAND [ARGS]\n"
	       "Runs COMMAND on a software mlx5 NIC. Defaults are in parentheses. Integers are "
	       "decimal, or\nhexadecimal with 0x. An invalid value is refused with exit status 2.\n"
	       "  --no-preload                     set the environment only, for a COMMAND that is "
	       "linked with the NIC\n"
	       "  --list-models                    list card models with their properties and the "
	       "sources\n"
	       "  --version                        print the version of gdaki\n"
	       "  --help                           print this text\n");
	for (s = sn_settings; s < sn_settings + sn_settings_count; s++) {
		if (!s->option)
			continue;
		snprintf(left, sizeof(left), s->kind == SN_TRACE ? "%s[=%s]" : "%s %s", s->option,
			 s->value ? s->value : "");
		printf("  --%-30s %s", left, s->help);
		printf(s->otherwise ? " (%s)\n" : "\n", s->otherwise);
	}
}

/* ---- options ---- */

static void report_value(const struct sn_setting *s, bool option, const char *value)
{
	char expected[160];

	sn_setting_expected(s, expected, sizeof(expected));
	sn_run_message("invalid %s%s%s\"%.*s%s\" (expected %s)", option ? "--" : "",
		       option ? s->option : s->variable, option ? " " : "=", SN_SHOWN, value,
		       strlen(value) > SN_SHOWN ? "..." : "", expected);
}

static bool apply(size_t i, const char *value)
{
	const struct sn_setting *s = &sn_settings[i];
	char number[16];
	uint32_t ppm;

	if (value && !sn_setting_ok(s, value)) {
		report_value(s, true, value);
		return false;
	}
	if (s->kind == SN_FRACTION && sn_parse_ppm(value, &ppm)) {
		snprintf(number, sizeof(number), "%u", ppm);
		value = number;
	}
	by_option[i] = true;
	setenv(s->variable, value ? value : "1", 1);
	return true;
}

static size_t fill_options(struct option *opts)
{
	size_t n = 0, i;

	for (i = 0; i < sn_settings_count && i < OPTIONS_MAX; i++) {
		if (!sn_settings[i].option)
			continue;
		opts[n].name = sn_settings[i].option;
		opts[n].has_arg = sn_settings[i].kind == SN_FLAG    ? no_argument
				  : sn_settings[i].kind == SN_TRACE ? optional_argument
								    : required_argument;
		opts[n++].val = (int)i;
	}
	opts[n++] = (struct option){ "no-preload", no_argument, NULL, OPT_NO_PRELOAD };
	opts[n++] = (struct option){ "list-models", no_argument, NULL, OPT_LIST_MODELS };
	opts[n++] = (struct option){ "version", no_argument, NULL, OPT_VERSION };
	opts[n++] = (struct option){ "help", no_argument, NULL, OPT_HELP };
	return n;
}

/* Reports an option that getopt_long() refuses: unknown, ambiguous, or with a value that it does
 * not take. */
static void report_option(const struct option *opts, const char *given)
{
	size_t len = strncmp(given, "--", 2) ? 0 : strcspn(given + 2, "="), used = 0;
	char names[400] = "";
	int n = 0;

	for (; len && opts->name; opts++) {
		if (strncmp(opts->name, given + 2, len))
			continue;
		if (!opts->name[len]) {
			sn_run_message("option --%s takes no value: \"%.*s\"", opts->name, SN_SHOWN,
				       given);
			return;
		}
		n++;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s--%s",
						 used ? ", " : "", opts->name);
	}
	if (n == 1)
		sn_run_message("option %s takes no value: \"%.*s\"", names, SN_SHOWN, given);
	else if (n)
		sn_run_message("ambiguous option \"%s\" (it can be %s)", given, names);
	else
		sn_run_message("unknown option \"%.*s%s\" (softnic-run --help lists the options)",
			       SN_SHOWN, given, strlen(given) > SN_SHOWN ? "..." : "");
}

/* Options that print a text and end the program. */
static void print_and_exit(int o)
{
	if (o == OPT_HELP)
		usage();
	else if (o == OPT_VERSION)
		printf("softnic-run (gdaki) %s\n", GDK_VERSION);
	else
		sn_models_list(stdout);
	exit(0);
}

int sn_run_options(int argc, char **argv, bool *preload)
{
	struct option opts[OPTIONS_MAX + EXTRA + 1] = { 0 };
	int o, at;

	fill_options(opts);
	opterr = 0;
	for (at = optind; (o = getopt_long(argc, argv, "+:", opts, NULL)) != -1; at = optind) {
		if (o == ':')
			sn_run_message("option %s needs a value", argv[at]);
		else if (o == '?')
			report_option(opts, argv[at]);
		if (o == ':' || o == '?')
			return -1;
		if (o == OPT_NO_PRELOAD)
			*preload = false;
		else if (o >= OPT_NO_PRELOAD)
			print_and_exit(o);
		else if (!apply((size_t)o, optarg))
			return -1;
	}
	if (optind >= argc) {
		sn_run_message("COMMAND is missing (usage: softnic-run [options] -- COMMAND "
			       "[ARGS])");
		return -1;
	}
	return optind;
}

/* ---- environment ---- */

/* Reports why a path cannot be used. errno: the reason. */
static bool path_error(const struct sn_setting *s, const char *value)
{
	bool option = by_option[s - sn_settings];

	sn_run_message("invalid %s%s%s\"%s\" (cannot write %s: %s)", option ? "--" : "",
		       option ? s->option : s->variable, option ? " " : "=", value,
		       s->kind == SN_FOLDER ? "to this folder" : "this file", strerror(errno));
	return false;
}

/* Checks that the file or folder can be written, or created in its folder. */
static bool check_path(const struct sn_setting *s, const char *value)
{
	char parent[PATH_MAX], *slash;
	struct stat st;

	if (s->kind == SN_TRACE && (!strcmp(value, "0") || !strcmp(value, "1")))
		return true;
	if (!stat(value, &st)) {
		errno = s->kind == SN_FOLDER ? ENOTDIR : EISDIR;
		if (S_ISDIR(st.st_mode) != (s->kind == SN_FOLDER))
			return path_error(s, value);
		return !access(value, s->kind == SN_FOLDER ? W_OK | X_OK : W_OK) ||
		       path_error(s, value);
	}
	snprintf(parent, sizeof(parent), "%s", value);
	slash = strrchr(parent, '/');
	if (slash && !slash[1]) { /* FOLDER/ */
		errno = EISDIR;
		if (s->kind != SN_FOLDER)
			return path_error(s, value);
		*slash = '\0';
		slash = strrchr(parent, '/');
	}
	if (slash)
		slash[slash == parent] = '\0';
	else
		snprintf(parent, sizeof(parent), ".");
	if (!stat(parent, &st) && !S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return path_error(s, value);
	}
	return !access(parent, W_OK | X_OK) || path_error(s, value);
}

bool sn_run_absolute(const char *path, char absolute[PATH_MAX])
{
	char folder[PATH_MAX];

	if (*path == '/')
		folder[0] = '\0';
	else if (!getcwd(folder, sizeof(folder)))
		return false;
	return snprintf(absolute, PATH_MAX, "%s%s%s", folder, *path == '/' ? "" : "/", path) <=
	       SN_PATH_LEN;
}

/* Makes the path in the variable absolute, because COMMAND may change its folder. */
static bool keep_path(const struct sn_setting *s, const char *value)
{
	char path[PATH_MAX];

	if (s->kind == SN_TRACE && (!strcmp(value, "0") || !strcmp(value, "1")))
		return true;
	errno = ENAMETOOLONG;
	return sn_run_absolute(value, path) ? !setenv(s->variable, path, 1) : path_error(s, value);
}

bool sn_run_make_folder(const char *variable)
{
	const struct sn_setting *s = sn_setting_of(variable);
	const char *folder = getenv(s->variable);
	char path[PATH_MAX];
	int fd;

	if (!folder || !*folder)
		return true;
	if (mkdir(folder, 0755) && errno != EEXIST)
		return path_error(s, folder);
	snprintf(path, sizeof(path), "%s/.softnic.XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0)
		return path_error(s, folder);
	close(fd);
	unlink(path);
	return true;
}

static bool check_settings(void)
{
	const struct sn_setting *s;
	const char *value;

	for (s = sn_settings; s < sn_settings + sn_settings_count; s++) {
		value = s->kind == SN_FRACTION ? NULL : getenv(s->variable);
		if (!value || !*value)
			continue;
		if (!sn_setting_ok(s, value)) {
			report_value(s, false, value);
			return false;
		}
		if (s->option && s->kind >= SN_FILE && s->kind <= SN_FOLDER &&
		    (!check_path(s, value) || !keep_path(s, value)))
			return false;
	}
	return true;
}

/* A misspelt variable would have no effect. */
static void warn_unknown(void)
{
	extern char **environ;
	char name[128];
	char **e;

	for (e = environ; *e; e++) {
		if (strncmp(*e, PREFIX, strlen(PREFIX)))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
		if (!sn_setting_of(name))
			sn_run_message("ignoring %s: unknown variable (softnic-run(1) lists them)",
				       name);
	}
}

static bool address_error(const char *why)
{
	const struct sn_setting *s = sn_setting_of("SOFTNIC_IP");
	const char *ip = getenv(s->variable);
	bool option = by_option[s - sn_settings];

	sn_run_message("invalid %s\"%s\" (%s)", option ? "--ip " : "SOFTNIC_IP=", ip ? ip : "",
		       why);
	return false;
}

/* Unsets a variable that an outer softnic-run generated, unless the option sets it. */
static void unset_generated(const char *variable, bool generated)
{
	if (generated && !by_option[sn_setting_of(variable) - sn_settings])
		unsetenv(variable);
}

/* A softnic-run that an outer one started, for example by make, is a host of its own. */
static void leave_outer_run(void)
{
	const char *run = getenv("SOFTNIC_RUN"), *run_ip = getenv("SOFTNIC_RUN_IP");
	const char *ip = getenv("SOFTNIC_IP"), *stats = getenv("SOFTNIC_STATS_DIR");
	char end[64];
	size_t len;

	unset_generated("SOFTNIC_IP", ip && run_ip && !strcmp(ip, run_ip));
	len = (size_t)snprintf(end, sizeof(end), "/%s/stats", run ? run : "");
	unset_generated("SOFTNIC_STATS_DIR", run && *run && stats && strlen(stats) > len &&
						     len < sizeof(end) &&
						     !strcmp(stats + strlen(stats) - len, end));
	unsetenv("SOFTNIC_RUN");
	unsetenv("SOFTNIC_RUN_IP");
}

/* The path of the sysfs tree, TMPDIR/softnic.XXXXXX/sys.PID, must fit into its variable. */
static bool check_tmpdir(void)
{
	const char *tmp = getenv("TMPDIR");
	char path[PATH_MAX];
	size_t most = SN_PATH_LEN - strlen("/softnic.XXXXXX/sys.4194304");

	if (!tmp || !*tmp || (sn_run_absolute(tmp, path) && strlen(path) <= most))
		return true;
	sn_run_message("invalid TMPDIR=\"%.500s\" (expected a path of at most %zu bytes)", tmp,
		       most);
	return false;
}

/* The NIC has one socket for Ethernet frames, of the IP version of its own address. */
static bool check_peers(const struct sn_cfg *cfg)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&cfg->ip), same = true;
	const char *name = "SOFTNIC_ETH_PEERS", *value = getenv(name);
	unsigned i;

	for (i = 0; i < cfg->eth_npeers; i++)
		same = same && IN6_IS_ADDR_V4MAPPED(&cfg->eth_peers[i]) == v4;
	if (same)
		return true;
	sn_run_message("invalid %s\"%s\" (expected IPv%d addresses, because the port's is one)",
		       by_option[sn_setting_of(name) - sn_settings] ? "--eth-peers "
								    : "SOFTNIC_ETH_PEERS=",
		       value, v4 ? 4 : 6);
	return false;
}

bool sn_run_config(struct sn_cfg *cfg)
{
	char text[INET6_ADDRSTRLEN];
	const char *ip;

	warn_unknown();
	leave_outer_run();
	if (!check_tmpdir() || !check_settings() || !sn_cfg_from_env(cfg))
		return false;
	if (cfg->infiniband && !sn_lid_of_ip(&cfg->ip))
		return address_error("expected an address whose last 16 bits are 1 to 49151, "
				     "because they are the LID of an InfiniBand port");
	if (!cfg->ndev[0])
		return address_error("no interface of this machine has this address");
	if (!check_peers(cfg))
		return false;
	sn_addr_text(&cfg->ip, text);
	ip = getenv("SOFTNIC_IP");
	if (!ip || !*ip)
		setenv("SOFTNIC_RUN_IP", text, 1);
	return !setenv("SOFTNIC_IP", text, 1);
}
