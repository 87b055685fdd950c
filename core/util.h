/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Macros and inline functions for the whole host library: array size, container of a
 * member, token pasting, powers of two, alignment. They have no state and access no hardware.
 * Device code does not include this file; its helpers are in the platform headers.
 */
#ifndef GDK_UTIL_H
#define GDK_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GDK_ARRAY_SIZE(a)		    (sizeof(a) / sizeof((a)[0]))
#define GDK_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define GDK_PASTE_(a, b)		    a##b
#define GDK_PASTE(a, b)			    GDK_PASTE_(a, b)

static inline bool gdk_is_pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* Rounds v up to a multiple of align. align must be a power of two. */
static inline size_t gdk_align_up(size_t v, size_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* Position of the highest set bit. v must not be zero. */
static inline unsigned int gdk_ilog2(uint64_t v)
{
	return 63u - (unsigned int)__builtin_clzll(v);
}

static inline uint64_t gdk_roundup_pow2(uint64_t v)
{
	return v <= 1 ? 1 : 1ull << (gdk_ilog2(v - 1) + 1);
}

#endif
