/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The table of settings, and the parsers of their values. Parsers accept a value only
 * as a whole: no blanks, no sign, no characters after it, nothing out of range. Also
 * linked into softnic-run.
 */
#include "setting.h"

#include "front.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#define RUN_CHARS \
	"." \
	"0123456789" \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define STALL_MAX_MS 4e6

static const char *const layers[] = { "ethernet", "infiniband", NULL };
static const char *const dma_kinds[] = { "none", "sq", "qp", NULL };
static const char *const pcie_kinds[] = { "refuse", "fault", "attach", NULL };
static const char *const stamps[] = { "free", "real", "both", NULL };

/* ---- parsers ---- */

/* Reads an integer at *at and moves *at behind it. */
static bool take_number(const char **at, uint64_t *value)
{
	const char *s = *at;
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	char *end;

	if (!isxdigit((unsigned char)s[hex ? 2 : 0]))
		return false;
	errno = 0;
	*value = strtoull(s, &end, hex ? 16 : 10);
	*at = end;
	return end != s && !errno;
}

bool sn_parse_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *value)
{
	return take_number(&text, value) && !*text && *value >= lo && *value <= hi;
}

/* Reads digits at *at into *value and moves *at behind them: an integer, or with scale the digits
 * after the point. Returns the number of digits. */
static int take_digits(const char **at, double *value, double *scale)
{
	int n;

	for (n = 0; isdigit((unsigned char)**at); n++, (*at)++)
		*value = scale ? *value + (**at - '0') * (*scale /= 10) : *value * 10 + **at - '0';
	return n;
}

/* Reads a number with an optional fraction and exponent at *at, for example 0.5 or 1e-3, and moves
 * *at behind it. Unlike strtod() it does not depend on the locale. */
static bool take_decimal(const char **at, double *value)
{
	double scale = 1, exponent = 0;
	int digits;
	bool down;

	*value = 0;
	digits = take_digits(at, value, NULL);
	if (**at == '.') {
		(*at)++;
		digits += take_digits(at, value, &scale);
	}
	if (!digits)
		return false;
	if (**at != 'e' && **at != 'E')
		return true;
	(*at)++;
	down = **at == '-';
	*at += down || **at == '+';
	if (!take_digits(at, &exponent, NULL) || exponent > 99)
		return false;
	for (; exponent > 0; exponent--)
		*value = down ? *value / 10 : *value * 10;
	return true;
}

bool sn_parse_ppm(const char *fraction, uint32_t *ppm)
{
	double value;

	if (!take_decimal(&fraction, &value) || *fraction || value > 1)
		return false;
	*ppm = (uint32_t)(value * 1e6 + 0.5);
	return value <= 0 || value >= 1e-6;
}

bool sn_parse_fail_cmd(const char *text, uint32_t *nth, uint8_t *status, uint32_t *syndrome)
{
	uint64_t value;

	if (!take_number(&text, &value) || value > UINT32_MAX)
		return false;
	*nth = (uint32_t)value;
	if (*text != ':')
		return !*text;
	text++;
	if (!take_number(&text, &value) || !value || value > UINT8_MAX)
		return false;
	*status = (uint8_t)value;
	if (*text != ':')
		return !*text;
	if (!sn_parse_number(text + 1, 0, UINT32_MAX, &value))
		return false;
	*syndrome = (uint32_t)value;
	return true;
}

bool sn_parse_stall(const char *text, uint32_t *us, uint32_t *every_us)
{
	double ms, every;

	if (!take_decimal(&text, &ms))
		return false;
	if (ms <= 0 && !*text) {
		*us = *every_us = 0;
		return true;
	}
	every = 10 * ms;
	if (*text == ':') {
		text++;
		if (!take_decimal(&text, &every))
			return false;
	}
	*us = (uint32_t)(ms * 1000);
	*every_us = (uint32_t)(every * 1000);
	return !*text && *us && every > ms && every < STALL_MAX_MS;
}

bool sn_parse_page_size(const char *text, uint32_t *bytes, bool *whole)
{
	uint64_t size;

	if (!take_number(&text, &size))
		return false;
	if (*text == 'k' || *text == 'K') {
		if (size > 64)
			return false;
		size *= 1024;
		text++;
	}
	*bytes = (uint32_t)size;
	*whole = *text;
	return (!*text || !strcmp(text, ":whole")) && size >= SN_UAR_SIZE && size <= 65536 &&
	       !(size & (size - 1));
}

bool sn_parse_lag(const char *text, uint8_t *ports, bool *hash, bool *inactive)
{
	uint64_t n;

	if (!take_number(&text, &n) || n > 15)
		return false;
	*ports = (uint8_t)n;
	*hash = !strcmp(text, ":hash");
	*inactive = !strcmp(text, ":inactive");
	return !*text || *hash || *inactive;
}

bool sn_parse_peers(const char *text, struct in6_addr *peers, unsigned *n)
{
	char one[INET6_ADDRSTRLEN];
	unsigned i;
	size_t len;

	for (*n = 0; *n < SN_ETH_PEERS_MAX; text++) {
		len = strcspn(text, ",");
		snprintf(one, sizeof(one), "%.*s", (int)len, text);
		if (len >= sizeof(one) || !sn_addr_parse(one, &peers[*n]))
			return false;
		for (i = 0; i < *n; i++)
			if (sn_addr_same(&peers[i], &peers[*n]))
				return false;
		++*n;
		text += len;
		if (!*text)
			return true;
	}
	return false;
}

/* ---- checks ---- */

static bool ip_ok(const char *value)
{
	struct in6_addr ip;

	return sn_addr_parse(value, &ip);
}

static bool peers_ok(const char *value)
{
	struct in6_addr peers[SN_ETH_PEERS_MAX];
	unsigned n;

	return sn_parse_peers(value, peers, &n);
}

static bool interface_ok(const char *value)
{
	return strlen(value) < IF_NAMESIZE && if_nametoindex(value);
}

static bool fail_cmd_ok(const char *value)
{
	uint32_t nth, syndrome;
	uint8_t status;

	return sn_parse_fail_cmd(value, &nth, &status, &syndrome);
}

static bool stall_ok(const char *value)
{
	uint32_t us, every_us;

	return sn_parse_stall(value, &us, &every_us);
}

static bool page_size_ok(const char *value)
{
	uint32_t bytes;
	bool whole;

	return sn_parse_page_size(value, &bytes, &whole);
}

static bool lag_ok(const char *value)
{
	bool hash, inactive;
	uint8_t ports;

	return sn_parse_lag(value, &ports, &hash, &inactive);
}

static bool events_ok(const char *value)
{
	uint64_t mask;

	return !strcmp(value, "legacy") || sn_parse_number(value, 0, UINT64_MAX, &mask);
}

/* Three decimal numbers of 16 bits, separated by dots. */
static bool version_ok(const char *value)
{
	uint64_t part;
	int i;

	if (strlen(value) >= sizeof(((struct sn_cfg *)NULL)->fw_ver))
		return false;
	for (i = 0; i < 3; i++) {
		if (i && *value++ != '.')
			return false;
		if (!isdigit((unsigned char)*value) || tolower((unsigned char)value[1]) == 'x' ||
		    !take_number(&value, &part) || part > UINT16_MAX)
			return false;
	}
	return !*value;
}

/* The IDs of the ConnectX and BlueField devices that mlx5 drivers serve are in these ranges. */
static bool pci_device_ok(const char *value)
{
	uint64_t id;

	return sn_parse_number(value, 0x1011, 0x10ff, &id) ||
	       sn_parse_number(value, 0x2100, 0x21ff, &id) ||
	       sn_parse_number(value, 0xa2d0, 0xa2ff, &id);
}

/* The name of softnic-run's temporary folder. */
static bool run_ok(const char *value)
{
	return strlen(value) < sizeof(((struct sn_cfg *)NULL)->run) &&
	       strspn(value, RUN_CHARS) == strlen(value);
}

static bool name_ok(const char *value)
{
	return strlen(value) < sizeof(((struct sn_cfg *)NULL)->name) && !strchr(value, '/') &&
	       strcmp(value, ".") && strcmp(value, "..");
}

/* ---- the table ---- */

#define FLAG(name, var, text) \
	{ \
		.option = name, .variable = "SOFTNIC_" var, .kind = SN_FLAG, .help = text \
	}
#define NUMBER(name, var, from, to, arg, text, dflt) \
	{ \
		.option = name, .variable = "SOFTNIC_" var, .kind = SN_NUMBER, .lo = from, \
		.hi = to, .value = arg, .help = text, .otherwise = dflt \
	}
#define BOOL(name, var, text, dflt) NUMBER(name, var, 0, 1, "BOOL", text, dflt)
#define FRACTION(name, var, text) \
	{ \
		.option = name, .variable = "SOFTNIC_" var, .kind = SN_FRACTION, \
		.value = "FRACTION", .help = text, .otherwise = "0" \
	}
#define WORD(name, var, list, text, dflt) \
	{ \
		.option = name, .variable = "SOFTNIC_" var, .kind = SN_WORD, .words = list, \
		.value = "KIND", .help = text, .otherwise = dflt \
	}
#define PATH(name, var, how, arg, text) \
	{ \
		.option = name, .variable = "SOFTNIC_" var, .kind = how, .value = arg, \
		.help = text \
	}
#define CHECKED(name, var, fn, accepted, arg, text, dflt) \
	{ \
		.option = name, .variable = "SOFTNIC_" var, .kind = SN_CHECKED, .ok = fn, \
		.expected = accepted, .value = arg, .help = text, .otherwise = dflt \
	}

/* clang-format off */
const struct sn_setting sn_settings[] = {
	FLAG("strict", "STRICT",
	     "exit with 86 if COMMAND used the NIC in ways that hardware refuses"),
	FLAG("stats", "STATS", "print counters on standard error at exit"),
	PATH("trace", "TRACE", SN_TRACE, "FILE",
	     "print commands, work requests, packets and completions"),
	FLAG("dmabuf", "DMABUF", "allow registration of dmabufs"),
	WORD("dmabuf-pcie", "DMABUF_PCIE", pcie_kinds,
	     "dmabufs of the PCIe mapping type: refuse, fault (at DMA) or attach", "refuse"),
	BOOL("peermem", "PEERMEM", "allow registration of GPU memory by address: 0 or 1", "1"),
	FLAG("dbrec-only", "DBREC_ONLY", "ignore indices in doorbells and read doorbell records"),
	CHECKED("ip", "IP", ip_ok, "an IPv4 or IPv6 address, not link-local or multicast",
		"ADDRESS",
		"address of the port: IPv4 or IPv6, of this machine", "one in 127.0.0.0/8"),
	PATH("pcap", "PCAP", SN_FILE, "FILE", "write sent and received packets to a capture file"),
	PATH("stats-dir", "STATS_DIR", SN_FOLDER, "FOLDER",
	     "write counters as JSON, one file per process"),
	PATH("evidence", "EVIDENCE", SN_FOLDER, "FOLDER",
	     "keep the last packets, the counters and the state of each queue, for each process"),
	BOOL("no-dbr", "NO_DBR", "support queue pairs without doorbell record: 0 or 1", "1"),
	NUMBER("no-dbr-max", "NO_DBR_MAX", 0, UINT32_MAX, "N",
	       "maximum number of such queue pairs; 0: no limit", "0"),
	CHECKED("fail-cmd", "FAIL_CMD", fail_cmd_ok,
		"N[:STATUS[:SYNDROME]], integers of 32, 8 and 32 bits, STATUS not 0",
		"N[:STATUS[:SYNDROME]]", "let the N-th firmware command fail; 0: none", "0"),
	NUMBER("fail-ioctl", "FAIL_IOCTL", 0, UINT32_MAX, "N",
	       "let the N-th verbs call fail; 0: none", "0"),
	NUMBER("seed", "SEED", 0, UINT64_MAX, "N", "seed of random faults", "1"),
	NUMBER("loss-ppm", "LOSS_PPM", 0, 1000000, "N", "lose N of a million packets", "0"),
	NUMBER("dup-ppm", "DUP_PPM", 0, 1000000, "N", "send N of a million packets twice", "0"),
	NUMBER("reorder-ppm", "REORDER_PPM", 0, 1000000, "N",
	       "send N of a million packets after their successor", "0"),
	NUMBER("corrupt-ppm", "CORRUPT_PPM", 0, 1000000, "N",
	       "flip a bit in N of a million packets", "0"),
	FRACTION("loss", "LOSS_PPM", "as --loss-ppm, a fraction from 0 to 1"),
	FRACTION("dup", "DUP_PPM", "as --dup-ppm, a fraction"),
	FRACTION("reorder", "REORDER_PPM", "as --reorder-ppm, a fraction"),
	FRACTION("corrupt", "CORRUPT_PPM", "as --corrupt-ppm, a fraction"),
	NUMBER("delay-us", "DELAY_US", 0, 60000000, "N",
	       "delay every packet by N microseconds", "0"),
	CHECKED("stall", "STALL", stall_ok,
		"0 or MS[:PERIOD], MS at least 0.001, PERIOD more than MS and less than 4000000",
		"MS[:PERIOD]",
		"stop the NIC for MS milliseconds of each period (10 * MS); 0: never",
		"0"),
	NUMBER("mtu", "MTU", 256, 4096, "BYTES", "largest path MTU in bytes, 256 to 4096",
	       "what the interface of the address can carry"),
	WORD("link-layer", "LINK_LAYER", layers, "ethernet or infiniband", "ethernet"),
	FLAG("grh-required", "GRH_REQUIRED", "the InfiniBand port requires a GRH in every packet"),
	NUMBER("vlan", "VLAN", 0, 4094, "ID",
	       "VLAN of the GIDs of IP addresses; captures then have Ethernet headers; 0: none",
	       "0"),
	CHECKED("eth-peers", "ETH_PEERS", peers_ok,
		"up to 16 different IPv4 or IPv6 addresses, separated by commas", "LIST",
		"hosts that receive raw Ethernet broadcasts and frames to unknown addresses",
		"none"),
	NUMBER("eth-vni", "ETH_VNI", 0, 0xffffff, "N",
	       "VXLAN network identifier of raw Ethernet frames", "1"),
	CHECKED("eth-if", "ETH_IF", interface_ok, "the name of an interface of this machine",
		"IFNAME",
		"send raw Ethernet frames on this interface, not by VXLAN; needs CAP_NET_RAW",
		NULL),
	NUMBER("eth-mtu", "ETH_MTU", 64, 9216, "BYTES", "Ethernet MTU of the port, 64 to 9216",
	       "that of the interface, at most 9216"),
	FLAG("eth-pause", "ETH_PAUSE",
	     "lossless raw Ethernet between software NICs: a frame waits for a receive request"),
	FLAG("card-timers", "CARD_TIMERS",
	     "retries and grants run out by time, even if the peer gets no processor time"),
	CHECKED("page-size", "PAGE_SIZE", page_size_ok,
		"4k, 8k, 16k, 32k or 64k, or this number of bytes, with or without :whole",
		"BYTES[:whole]",
		"page size of the kernel, 4k to 64k: 64k puts 16 UARs in one mapping; whole: "
		"it uses no smaller pages for umems", "4k"),
	CHECKED("lag", "LAG", lag_ok, "PORTS, PORTS:hash or PORTS:inactive with PORTS up to 15",
		"PORTS[:MODE]",
		"the port is a bond that distributes queue pairs; hash: by packet headers; "
		"inactive: bonding is supported but not in use; 0: no bond", "0"),
	CHECKED("model", "MODEL", sn_model_known, NULL, "NAME",
		"card model, see --list-models; other options override its values", NULL),
	BOOL("lag-init2", "LAG_INIT2",
	     "allow changing a queue pair's port of the bond before RTS: 0 or 1", "1"),
	BOOL("query-lag", "QUERY_LAG", "support the command QUERY_LAG: 0 or 1", "1"),
	FLAG("vf", "VF", "the device is a virtual function"),
	BOOL("cd", "CD", "support core direct (WAIT work requests): 0 or 1", "1"),
	WORD("dma", "DMA", dma_kinds,
	     "copy engine: none, sq (all RC queue pairs) or qp (those that request it)", "qp"),
	NUMBER("dma-max", "DMA_MAX", 6, 31, "N", "largest copy of the engine: 2^N bytes", "31"),
	BOOL("wait-on-time", "WAIT_ON_TIME",
	     "support wait on time in Ethernet send queues: 0 or 1", "1"),
	WORD("ts-format", "TS_FORMAT", stamps,
	     "time stamp formats of the device: free, real or both", "free"),
	CHECKED("events", "EVENTS", events_ok, "legacy or an integer of 64 bits", "MASK",
		"event types that can be subscribed; legacy: the device does not list them", "all"),
	NUMBER("qp-max", "QP_MAX", 0, UINT32_MAX, "N",
	       "maximum number of queue pairs; 0: no limit", "0"),
	NUMBER("cq-behind", "CQ_BEHIND", 0, UINT32_MAX, "N",
	       "QUERY_CQ reports N CQEs less than were written", "0"),
	CHECKED("pci-device", "PCI_DEVICE", pci_device_ok,
		"a device ID of mlx5: 0x1011 to 0x10ff, 0x2100 to 0x21ff or 0xa2d0 to 0xa2ff", "ID",
		"PCI device ID, hexadecimal with 0x", "0x1021"),
	CHECKED("fw-ver", "FW_VER", version_ok,
		"three integers up to 65535, for example 28.43.1000", "VERSION",
		"firmware version", "28.43.1000"),
	NUMBER("err-after", "ERR_AFTER", 0, UINT32_MAX, "N",
	       "move each queue pair to error after N messages; 0: never", "0"),
	CHECKED(NULL, "NAME", name_ok, "the name of a device, at most 31 bytes", NULL, NULL, NULL),
	CHECKED(NULL, "RUN", run_ok, "the name of a run, at most 31 bytes", NULL, NULL, NULL),
	CHECKED(NULL, "RUN_IP", ip_ok, "the address that softnic-run chose", NULL, NULL, NULL),
	PATH(NULL, "SYSFS", SN_FOLDER, NULL, NULL),
};
/* clang-format on */

const size_t sn_settings_count = sizeof(sn_settings) / sizeof(sn_settings[0]);

const struct sn_setting *sn_setting_of(const char *variable)
{
	size_t i;

	for (i = 0; i < sn_settings_count; i++)
		if (sn_settings[i].kind != SN_FRACTION &&
		    !strcmp(sn_settings[i].variable, variable))
			return &sn_settings[i];
	return NULL;
}

static bool is_word(const char *const *words, const char *value)
{
	while (*words && strcmp(*words, value))
		words++;
	return *words;
}

bool sn_setting_ok(const struct sn_setting *s, const char *value)
{
	uint64_t number;
	uint32_t ppm;

	switch (s->kind) {
	case SN_FLAG:
		return sn_parse_number(value, 0, 1, &number);
	case SN_NUMBER:
		return sn_parse_number(value, s->lo, s->hi, &number);
	case SN_FRACTION:
		return sn_parse_ppm(value, &ppm);
	case SN_WORD:
		return is_word(s->words, value);
	case SN_CHECKED:
		return s->ok(value);
	default:
		return *value && strlen(value) <= SN_PATH_LEN;
	}
}

static void list_words(const char *const *words, char *text, size_t len)
{
	size_t used = 0, i;

	for (i = 0; words[i] && used < len; i++)
		used += (size_t)snprintf(text + used, len - used, "%s%s",
					 !i		? ""
					 : words[i + 1] ? ", "
							: " or ",
					 words[i]);
}

void sn_setting_expected(const struct sn_setting *s, char *text, size_t len)
{
	if (s->kind == SN_FLAG || (s->kind == SN_NUMBER && s->hi == 1))
		snprintf(text, len, "0 or 1");
	else if (s->kind == SN_NUMBER)
		snprintf(text, len, "an integer from %" PRIu64 " to %" PRIu64, s->lo, s->hi);
	else if (s->kind == SN_FRACTION)
		snprintf(text, len, "0 or a fraction from 0.000001 to 1");
	else if (s->kind == SN_WORD)
		list_words(s->words, text, len);
	else if (s->expected)
		snprintf(text, len, "%s", s->expected);
	else if (s->kind == SN_CHECKED)
		sn_models_text(text, len);
	else
		snprintf(text, len, "a path of 1 to %d bytes", SN_PATH_LEN);
}
