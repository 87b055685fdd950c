/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Helpers of the tests of the watch (qp/watch.c): a pair of queue pairs, and what was logged. */
#ifndef WATCH_RIG_H
#define WATCH_RIG_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "../../qp/export.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/standin.h"

#define MS	 1000000ull
#define EMULATED DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED

static struct e2e_pair p;

static inline void nap_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static inline unsigned int times(const char *log, const char *what)
{
	unsigned int n = 0;

	while ((log = strstr(log, what))) {
		log++;
		n++;
	}
	return n;
}

/* Number of threads of this process that watch queue pairs. */
static inline unsigned int watchers(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	unsigned int n = 0;
	char path[300], name[32];
	FILE *comm;

	cr_assert(tasks);
	while ((task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		comm = fopen(path, "r");
		if (!comm)
			continue;
		n += fgets(name, sizeof(name), comm) && !strcmp(name, "gdaki-watch\n");
		fclose(comm);
	}
	closedir(tasks);
	return n;
}

static inline struct doca_gpu_verbs_qp *gverbs(void)
{
	return p.tx.hl->qp_gverbs;
}

static inline void put(doca_gpu_dev_verbs_ticket_t *t)
{
	cr_assert_eq(e2e_put(&p, 0, 64, t), 0);
}

static inline struct doca_gpu_verbs_qp_hl *create(struct e2e_nic *nic, unsigned int mode)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = nic->gpu,
		.net_dev = nic->dev,
		.ibpd = nic->pd,
		.sq_nwqe = 16,
		.nic_handler = E2E_AUTO,
		.send_dbr_mode_ext = (enum doca_gpu_verbs_send_dbr_mode_ext)mode,
	};
	struct doca_gpu_verbs_qp_hl *hl;

	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	return hl;
}

#endif
