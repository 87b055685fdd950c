/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The settings of the software NIC: one table with the option of softnic-run, the
 * SOFTNIC_* variable that carries it to the NIC, the accepted values and the text of
 * --help. softnic-run and the NIC check values with the same functions.
 */
#ifndef SOFTNIC_SETTING_H
#define SOFTNIC_SETTING_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SN_SHOWN    64	/* bytes of a value in a message */
#define SN_PATH_LEN 255 /* bytes of a path that struct sn_cfg can store */

enum sn_kind_of_value {
	SN_FLAG,     /* option without a value; the variable is 0 or 1 */
	SN_NUMBER,   /* an integer from lo to hi, decimal or hexadecimal (0x...) */
	SN_FRACTION, /* 0 to 1; the variable has parts per million */
	SN_WORD,     /* one of `words` */
	SN_FILE,     /* path of a file; its folder exists */
	SN_TRACE,    /* as SN_FILE, but the option's value is optional; 0 or 1: no file */
	SN_FOLDER,   /* path of a folder; it exists or can be created in an existing folder */
	SN_CHECKED,  /* checked by the function `ok` */
};

struct sn_setting {
	const char *option, *variable; /* option NULL: only a variable */
	enum sn_kind_of_value kind;
	uint64_t lo, hi;
	const char *const *words;
	bool (*ok)(const char *value);
	const char *expected; /* the accepted values, for SN_CHECKED */
	const char *value;    /* name of the value in --help; NULL: no value */
	const char *help;
	const char *otherwise; /* the default, as --help prints it; NULL: none */
};

extern const struct sn_setting sn_settings[];
extern const size_t sn_settings_count;

/* Returns the setting that checks the value of a variable (parts per million, not the fraction);
 * NULL: unknown variable. */
const struct sn_setting *sn_setting_of(const char *variable);
/* Checks the form and the range of a value, but not whether a file or an address exists. */
bool sn_setting_ok(const struct sn_setting *s, const char *value);
/* Writes what sn_setting_ok() accepts, as in "(expected ...)". */
void sn_setting_expected(const struct sn_setting *s, char *text, size_t len);

/* The parsers return false and leave the results undefined if the text is malformed. */
bool sn_parse_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *value);
bool sn_parse_ppm(const char *fraction, uint32_t *ppm);
/* Format: N[:STATUS[:SYNDROME]]. An absent part leaves its result unchanged. */
bool sn_parse_fail_cmd(const char *text, uint32_t *nth, uint8_t *status, uint32_t *syndrome);
/* Format: MS[:PERIOD] in milliseconds; the default period is 10 * MS. Refuses MS below 0.001. */
bool sn_parse_stall(const char *text, uint32_t *us, uint32_t *every_us);
/* Format: BYTES[k][:whole]; bytes is a power of two from 4096 (4k) to 65536 (64k). */
bool sn_parse_page_size(const char *text, uint32_t *bytes, bool *whole);
/* Format: ADDRESS[,ADDRESS...], at most SN_ETH_PEERS_MAX; different addresses. */
bool sn_parse_peers(const char *text, struct in6_addr *peers, unsigned *n);
/* Format: PORTS[:hash|:inactive] */
bool sn_parse_lag(const char *text, uint8_t *ports, bool *hash, bool *inactive);

#endif
