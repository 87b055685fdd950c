/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Byte order of fields in packets.
 */
#ifndef GDK_SDK_DOCA_BITFIELD_H
#define GDK_SDK_DOCA_BITFIELD_H

#include <endian.h>
#include <stdint.h>

#include "gdk_sdk_shape.h"

#define DOCA_HTOBE16(_x) htobe16(_x) /**< from the CPU's order to big-endian */
#define DOCA_HTOBE32(_x) htobe32(_x) /**< from the CPU's order to big-endian */
#define DOCA_HTOBE64(_x) htobe64(_x) /**< from the CPU's order to big-endian */
#define DOCA_BETOH16(_x) be16toh(_x) /**< from big-endian to the CPU's order */
#define DOCA_BETOH32(_x) be32toh(_x) /**< from big-endian to the CPU's order */
#define DOCA_BETOH64(_x) be64toh(_x) /**< from big-endian to the CPU's order */

#endif
