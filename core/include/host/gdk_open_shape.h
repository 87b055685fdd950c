/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Marks a source file that includes headers of DOCA GPUNetIO open. The headers of gdaki-doca, which
 * have the interface of the DOCA SDK, declare some of the same names differently. A source file can
 * include only one of the two sets.
 */
#ifndef GDK_OPEN_SHAPE_H
#define GDK_OPEN_SHAPE_H

/** Defined in a source file that includes headers of DOCA GPUNetIO open. */
#define GDK_OPEN_SHAPE

#if defined(GDK_SDK_SHAPE) && !defined(GDK_BOTH_SHAPES)
#error "this file includes headers of gdaki and of gdaki-doca: include only one set, \
and move the calls of the other one into another source file"
#endif

#endif
