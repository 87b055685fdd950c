/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host's half of the GPU test: a NIC, a GPU, payload in host and in GPU
 * memory, queue pairs connected to themselves, launches with a bound, and what
 * must be in memory afterwards. Functions that return int: 0, or -1 after
 * gt_complain said why.
 */
#ifndef GT_DEVICE_HOST_H
#define GT_DEVICE_HOST_H

#include "device.h"
#include "../lib/e2e.h"

#define GT_COUNTERS    65536u /* bytes */
#define GT_BYTES       (3 * GT_PART + GT_COUNTERS)
#define GT_MAX_THREADS 65536u
#ifndef GT_BOUND_S
#define GT_BOUND_S 20 /* a kernel that takes longer is aborted */
#endif
#define GT_GRACE_S 5 /* and has so long to end */

struct gt_region {
	void *gpu, *cpu; /* cpu is NULL for GPU memory */
	uint64_t nic;
	struct ibv_mr *mr;
};

struct gt_env {
	struct e2e_nic nic;
	struct gt_region host, dev;
	uint8_t *image; /* GT_BYTES: the payload's copy for the CPU */
	int *status, *status_gpu;
};

struct gt_case {
	char name[120];
	int (*run)(struct gt_env *env, const struct gt_case *c);
	enum gt_op op;
	enum doca_gpu_dev_verbs_resource_sharing_mode mode;
	enum doca_gpu_dev_verbs_exec_scope scope;
	enum doca_gpu_dev_verbs_nic_handler handler;
	enum gt_wait wait;
	uint32_t depth, nqps, by_thread, blocks, threads, iters, size, batch, code_opt, idle;
	bool queues_on_gpu, payload_on_gpu, collapsed, counted, varied, debug;
};

struct gt_qps {
	struct e2e_qp qp[GT_QPS], companion[GT_QPS];
	struct doca_gpu_verbs_qp_group_hl *group[GT_QPS]; /* of both, or NULL */
	uint32_t num;
};

void gt_env_open(struct gt_env *env, const char *pci);

/* How a case failed; the newest text is kept. */
int gt_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *gt_complaint(void);
/* Reports the running case as failed and ends the process. */
void gt_die(void) __attribute__((noreturn));

void gt_qps_open(struct gt_env *env, struct gt_qps *qps, const struct gt_case *c);
void gt_qps_connect(struct gt_env *env, struct gt_qps *qps, struct e2e_path path);
void gt_connect_to(struct gt_env *env, struct e2e_qp *qp, uint32_t qpn, struct e2e_path path);
void gt_qps_close(struct gt_qps *qps);
extern const struct e2e_path gt_good_path;

/* The job of the case, with fresh payload. */
int gt_prepare(struct gt_env *env, const struct gt_case *c, const struct gt_qps *qps,
	       struct gt_job *job);
/* Launches it and waits until it ends. Does not return if it cannot be ended. */
int gt_launch(struct gt_env *env, const struct gt_job *job);
int gt_wait(struct gt_qps *qps);
int gt_run(struct gt_env *env, struct gt_qps *qps, const struct gt_job *job);

/* Every thread returned 0, or the same; every byte of dst and old, and the counters, are
 * right. */
int gt_check_status(struct gt_env *env, const struct gt_job *job);
int gt_all_returned(struct gt_env *env, const struct gt_job *job, int expect);
int gt_check_payload(struct gt_env *env, const struct gt_case *c, const struct gt_job *job);
/* No QP ended, the slots were used, and the doorbells are of the right kind. */
int gt_check_counters(struct gt_qps *qps, const struct gt_job *job, uint64_t slots);
/* The debug build had nothing to say. */
int gt_check_quiet(const struct gt_job *job);
/* Slots that the job needs, without those of signals and dumps behind data. */
uint64_t gt_slots(const struct gt_job *job);

int gt_run_ops(struct gt_env *env, const struct gt_case *c);
int gt_run_reset(struct gt_env *env, const struct gt_case *c);
int gt_run_abort(struct gt_env *env, const struct gt_case *c);
int gt_run_denied(struct gt_env *env, const struct gt_case *c);
int gt_run_imm(struct gt_env *env, const struct gt_case *c);
int gt_run_huge(struct gt_env *env, const struct gt_case *c);
int gt_run_tools(struct gt_env *env, const struct gt_case *c);
int gt_run_gone(struct gt_env *env, const struct gt_case *c);
int gt_run_wrong(struct gt_env *env, const struct gt_case *c);
int gt_run_show(struct gt_env *env, const struct gt_case *c);
int gt_run_unrung(struct gt_env *env, const struct gt_case *c);

/* The cases of the debug build, for both lists of cases: each is given to `add`. */
void gt_debug_cases(void (*add)(const char *what, struct gt_case c));

/* The cases; returns how many there are. */
unsigned int gt_cases(struct gt_case *cases, unsigned int max);

#endif
