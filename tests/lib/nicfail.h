/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's test hooks: they select the command or driver call that fails
 * next, and return the NIC's counters. Because the NIC is either linked in (sanitizer
 * builds) or preloaded, nicfail_find() looks the hooks up at run time.
 */
#ifndef NICFAIL_H
#define NICFAIL_H

#include <criterion/criterion.h>
#include <dlfcn.h>

#include "../softnic/softnic.h"

static void (*nicfail_next)(uint32_t nth_cmd, uint8_t status, uint32_t syndrome,
			    uint32_t nth_ioctl);
static uint32_t (*nicfail_live)(void);
static const struct sn_stats *(*nicfail_stats)(void);

#pragma weak sn_fail_next
#pragma weak sn_objects_live
#pragma weak sn_stats_get
void sn_fail_next(uint32_t nth_cmd, uint8_t status, uint32_t syndrome, uint32_t nth_ioctl);
uint32_t sn_objects_live(void);
const struct sn_stats *sn_stats_get(void);

static inline void nicfail_find(void)
{
	nicfail_next = sn_fail_next;
	nicfail_live = sn_objects_live;
	nicfail_stats = sn_stats_get;
	if (!nicfail_next)
		*(void **)&nicfail_next = dlsym(RTLD_DEFAULT, "sn_fail_next");
	if (!nicfail_live)
		*(void **)&nicfail_live = dlsym(RTLD_DEFAULT, "sn_objects_live");
	if (!nicfail_stats)
		*(void **)&nicfail_stats = dlsym(RTLD_DEFAULT, "sn_stats_get");
	if (!nicfail_next || !nicfail_live || !nicfail_stats)
		cr_assert_fail("the software NIC's test hooks were not found");
}

#endif
