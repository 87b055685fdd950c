/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The report, for the files that print or judge it. */
#ifndef DOCTOR_REPORT_H
#define DOCTOR_REPORT_H

#include "doctor.h"

struct dr_result {
	char *scope, *check, *text, *fix; /* fix: NULL: none */
	enum dr_level level;
};

struct dr_choice { /* the handler for one GPU and device */
	char gpu[DR_NAME_LEN], device[DR_NAME_LEN];
	char handler[DR_NAME_LEN];
	char text[512];
};

struct dr_report {
	const struct dr_env *env;
	struct dr_result *results; /* results of one scope are neighbours */
	size_t num;
	struct dr_choice *choices;
	size_t num_choices;
	int sink; /* in a child process: pipe to the parent, which gets the results; otherwise -1 */
};

/* child.c: in a child process they send the item to the parent and return true. */
bool dr_to_parent(struct dr_report *r, const struct dr_result *x);
bool dr_handler_to_parent(struct dr_report *r, const struct dr_choice *c);

/* verdict.c */
struct dr_combination {
	const char *gpu, *device; /* gpu: address, or "host" */
	int port;
	bool works;
	const struct dr_choice *choice; /* NULL: not determined */
	const struct dr_result *failed; /* the first failed check, or NULL */
};
/* Calls fn for each combination that the options select. */
void dr_each_combination(const struct dr_report *r,
			 void (*fn)(const struct dr_combination *c, void *arg), void *arg);

const char *dr_level_word(enum dr_level level);

#endif
