/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The parts of tests/hw/probe.c, each in its own function, and the functions that
 * print their results. */
#ifndef HW_PROBE_H
#define HW_PROBE_H

#include <stdarg.h>

#include "../lib/e2e.h"

void probe_caps(struct e2e_nic *nic);
void probe_objects(struct e2e_nic *nic);
void probe_states(struct e2e_nic *nic);
void probe_errors(struct e2e_nic *nic);
void probe_limits(struct e2e_nic *nic);

/* Print one line: the formatted name, then the value or the name of the error ("ok": no error). */
void probe_print(const char *value, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void probe_result(doca_error_t err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
