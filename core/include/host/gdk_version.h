/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The version of gdaki. It is independent of the version of the DOCA GPUNetIO API that gdaki
 * implements (DOCA_GPUNETIO_VERSION).
 *
 * Only this file defines it: the Makefile reads it from here for pkg-config.
 */
#ifndef GDK_VERSION_H
#define GDK_VERSION_H

/** Version that the caller was compiled with, "MAJOR.MINOR.PATCH". */
#define GDK_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Returns the version of the linked library, "MAJOR.MINOR.PATCH". It differs from GDK_VERSION if
 * the caller was compiled with the headers of another version. The string is static. Any thread
 * may call this.
 */
const char *gdk_version(void);

#ifdef __cplusplus
}
#endif

#endif
