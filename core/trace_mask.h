/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Which bytes of a command box are private. */
#ifndef GDK_TRACE_MASK_H
#define GDK_TRACE_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets hide[i] for each byte i of a box that belongs to a non-zero address, GID, MAC or key.
 * A command that is not known here is hidden whole, but for its head. */
void gdk_trace_mask(uint32_t opcode, bool answer, const uint8_t *box, size_t len, uint8_t *hide);

#endif
