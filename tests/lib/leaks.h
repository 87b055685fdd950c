/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests that close a context without destroying its objects: the NIC destroys them, but
 * what libmlx5 allocated for them stays. LeakSanitizer ignores what the calling thread
 * allocates from then on.
 */
#ifndef LEAKS_H
#define LEAKS_H

void __lsan_disable(void);
#pragma weak __lsan_disable

static inline void leaks_ignore(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

#endif
