/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of the NVIDIA driver, of its settings and of modules that belong to it. */
#ifndef DOCTOR_DRIVER_H
#define DOCTOR_DRIVER_H

#include "doctor.h"

void dr_check_driver(const struct dr_env *env, struct dr_report *r);

#endif
