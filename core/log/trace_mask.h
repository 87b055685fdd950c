/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Decides which bytes of a command box the trace must hide (GDAKI_TRACE_CMDS_MASK=1):
 * addresses, GIDs, MACs and keys. trace.c writes the trace.
 */
#ifndef GDK_TRACE_MASK_H
#define GDK_TRACE_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets hide[i] to 1 for each byte i of a box that belongs to an address, GID, MAC or key that is
 * not zero. For an unknown command it hides everything after the first 16 bytes. The caller clears
 * hide. answer is true if box is the output box. */
void gdk_trace_mask(uint32_t opcode, bool answer, const uint8_t *box, size_t len, uint8_t *hide);

#endif
