/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Marks a source file that includes headers of gdaki-doca, which have the interface of the DOCA
 * SDK. Those of DOCA GPUNetIO open declare some of the same names differently. A source file can
 * include only one of the two sets.
 */
#ifndef GDK_SDK_SHAPE_H
#define GDK_SDK_SHAPE_H

/** Defined in a source file that includes headers of gdaki-doca. */
#define GDK_SDK_SHAPE

/** The function of the library that a declaration stands for. DOCA GPUNetIO open has a function of
 * the declared name with other arguments. */
#define GDK_DOCA_NAME(name) __asm__(#name)

#if defined(GDK_OPEN_SHAPE) && !defined(GDK_BOTH_SHAPES)
#error "this file includes headers of gdaki and of gdaki-doca: include only one set, \
and move the calls of the other one into another source file"
#endif

#endif
