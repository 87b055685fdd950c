/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The functions with which NVIDIA's samples read their command line, for doca_samples.sh: gdaki
 * does not have the SDK's parser of arguments. doca_argp.c implements them.
 */
#ifndef TEST_DOCA_ARGP_H
#define TEST_DOCA_ARGP_H

#include <string.h> /* the RDMA sample relies on it */

#include "doca_error.h"

enum doca_argp_type {
	DOCA_ARGP_TYPE_STRING,
	DOCA_ARGP_TYPE_INT,
	DOCA_ARGP_TYPE_BOOLEAN,
};

struct doca_argp_param;
typedef doca_error_t doca_argp_param_cb(void *param, void *config);

doca_error_t doca_argp_init(const char *program_name, void *config);
doca_error_t doca_argp_register_version_callback(doca_argp_param_cb *callback);
doca_error_t doca_argp_start(int argc, char **argv);
doca_error_t doca_argp_destroy(void);
doca_error_t doca_argp_param_create(struct doca_argp_param **param);
doca_error_t doca_argp_register_param(struct doca_argp_param *param);
void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name);
void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name);
void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments);
void doca_argp_param_set_description(struct doca_argp_param *param, const char *description);
void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb *callback);
void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type);
void doca_argp_param_set_mandatory(struct doca_argp_param *param);

#endif
