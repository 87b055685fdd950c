/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The version of gdaki, independent of the version of the DOCA GPUNetIO API that it
 * implements (DOCA_GPUNETIO_VERSION). This is the only place that defines it: the
 * Makefile reads it for pkg-config, programs print it for --version.
 */
#ifndef GDK_VERSION_H
#define GDK_VERSION_H

#define GDK_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the version of the linked library, "MAJOR.MINOR.PATCH", a static string.
 * It differs from GDK_VERSION if the caller was compiled with other headers.
 */
const char *gdk_version(void);

#ifdef __cplusplus
}
#endif

#endif
