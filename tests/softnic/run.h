/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Private declarations of softnic-run. */
#ifndef SOFTNIC_RUN_H
#define SOFTNIC_RUN_H

#include "front.h"

#include <limits.h>

#define EXIT_USAGE 2

/* Writes "softnic-run: " and the message as one line on standard error. */
void sn_run_message(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- run_options.c ---- */
/* Reads the options, checks each value and sets the variables. Ends the process after --help,
 * --version and --list-models. Returns the index of COMMAND, or -1 after a message. */
int sn_run_options(int argc, char **argv, bool *preload);
/* Checks all variables, fills cfg from them and sets SOFTNIC_IP to the port's address. Creates
 * nothing. Returns false after a message. */
bool sn_run_config(struct sn_cfg *cfg);

/* Creates the folder that the variable names, and a file in it, which it removes. Does nothing if
 * the variable is unset or empty. Returns false after a message. */
bool sn_run_make_folder(const char *variable);
/* Makes a path absolute. Returns false if the result has more than SN_PATH_LEN bytes. */
bool sn_run_absolute(const char *path, char absolute[PATH_MAX]);

/* ---- run_program.c ---- */
/* Checks that the program can preload the NIC. Returns false after a message. Accepts a
 * program that is not found: starting it fails later, with a message. */
bool sn_run_program_ok(char **command);

#endif
