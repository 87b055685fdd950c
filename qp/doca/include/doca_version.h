/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The version of the DOCA SDK whose interface gdaki-doca has.
 */
#ifndef GDK_SDK_DOCA_VERSION_H
#define GDK_SDK_DOCA_VERSION_H

#include "gdk_sdk_shape.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Returns the version of the DOCA SDK whose interface the headers have, "MAJOR.MINOR.PATCH". The
 * string is static. gdk_version() returns the version of gdaki. Any thread may call this.
 */
const char *doca_version(void);

#ifdef __cplusplus
}
#endif

#endif
