/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For `-include`: the compiler chooses which device functions to inline. With all of them inlined,
 * a source file that calls many compiles up to ten times longer.
 */
#ifndef GDK_TESTS_FEWER_INLINED_H
#define GDK_TESTS_FEWER_INLINED_H

#define GDK_FN static inline __attribute__((__unused__))

#endif
