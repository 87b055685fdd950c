/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host part of the GPU test: a NIC, a GPU, payload in host and in GPU memory,
 * queue pairs (most of them connected to themselves), launches with a time limit, and
 * the checks of memory afterwards. Functions that return int return 0, or -1 after
 * gt_complain() stored the reason.
 */
#ifndef GT_DEVICE_HOST_H
#define GT_DEVICE_HOST_H

#include "device.h"
#include "../lib/bound.h"
#include "../lib/e2e.h"

#define GT_COUNTERS    65536u /* bytes of the last part of the payload */
#define GT_BYTES       (3 * GT_PART + GT_COUNTERS)
#define GT_MAX_THREADS 65536u
/* Seconds without progress until a running kernel is aborted; make defines it for CPU threads. */
#ifdef GT_BOUND_S
#define GT_ON_GPU false
#else
#define GT_ON_GPU  true
#define GT_BOUND_S 20
#endif
#define GT_GRACE_S 5 /* seconds until an aborted kernel must have ended */

struct gt_region {
	void *gpu, *cpu; /* addresses for the GPU and for the CPU; cpu is NULL for GPU memory */
	uint64_t nic;
	struct ibv_mr *mr;
};

struct gt_env {
	struct e2e_nic nic;
	struct gt_region host, dev;
	uint8_t *image; /* GT_BYTES: initial payload, later a copy of the payload for the checks */
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
	/* group that contains the QP and its companion; NULL: the QP has no companion */
	struct doca_gpu_verbs_qp_group_hl *group[GT_QPS];
	uint32_t num;
};

void gt_env_open(struct gt_env *env, const char *pci);

/* Stores the reason for a failure; a later reason replaces it. */
int gt_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *gt_complaint(void);
/* Reports the running case as failed and ends the process. */
void gt_die(void) __attribute__((noreturn));

void gt_qps_open(struct gt_env *env, struct gt_qps *qps, const struct gt_case *c);
void gt_qps_connect(struct gt_env *env, struct gt_qps *qps, struct e2e_path path);
void gt_connect_to(struct gt_env *env, struct e2e_qp *qp, uint32_t qpn, struct e2e_path path);
void gt_qps_close(struct gt_qps *qps);
extern const struct e2e_path gt_good_path;

/* Initializes the payload and fills in the job of the case. */
int gt_prepare(struct gt_env *env, const struct gt_case *c, const struct gt_qps *qps,
	       struct gt_job *job);
/* gt_run() launches the job (gt_launch) and waits until it ends (gt_wait). After
 * GT_BOUND_S without progress, gt_wait() aborts the QPs and returns -1. It ends the process if the
 * kernel fails or the abort does not end it. */
int gt_launch(struct gt_env *env, const struct gt_job *job);
int gt_wait(struct gt_qps *qps);
int gt_run(struct gt_env *env, struct gt_qps *qps, const struct gt_job *job);

/* gt_check_status() checks that every thread returned 0, gt_all_returned() that every
 * thread returned `expect`. gt_check_payload() checks every byte of dst, and the words
 * that the operations store in old and in the counters. */
int gt_check_status(struct gt_env *env, const struct gt_job *job);
int gt_all_returned(struct gt_env *env, const struct gt_job *job, int expect);
int gt_check_payload(struct gt_env *env, const struct gt_case *c, const struct gt_job *job);
/* Checks that no QP failed, that `slots` slots (and those of signals and dumps) were
 * reserved, that the number of doorbells is possible, and that DBRECs were updated
 * unless the handler does not use them. */
int gt_check_counters(struct gt_qps *qps, const struct gt_job *job, uint64_t slots);
/* Checks that a job of the debug build printed nothing; returns 0 for other jobs. */
int gt_check_quiet(const struct gt_job *job);
/* Number of slots that the job needs, without those of GT_TAIL (signals and dumps). */
uint64_t gt_slots(const struct gt_job *job);

int gt_run_ops(struct gt_env *env, const struct gt_case *c);
int gt_run_reset(struct gt_env *env, const struct gt_case *c);
int gt_run_abort(struct gt_env *env, const struct gt_case *c);
int gt_run_unconnected(struct gt_env *env, const struct gt_case *c);
int gt_run_unserved(struct gt_env *env, const struct gt_case *c);
int gt_run_bad_rkey(struct gt_env *env, const struct gt_case *c);
int gt_run_imm(struct gt_env *env, const struct gt_case *c);
int gt_run_recv(struct gt_env *env, const struct gt_case *c);
int gt_run_rdma(struct gt_env *env, const struct gt_case *c);
int gt_run_huge(struct gt_env *env, const struct gt_case *c);
int gt_run_tools(struct gt_env *env, const struct gt_case *c);
int gt_run_no_peer(struct gt_env *env, const struct gt_case *c);
int gt_run_bad_wqe(struct gt_env *env, const struct gt_case *c);
int gt_run_dump(struct gt_env *env, const struct gt_case *c);
int gt_run_never_rung(struct gt_env *env, const struct gt_case *c);

/* Passes each case of the debug build to `add`. Used by the case lists of the GPU test
 * and of tests/kernels. */
void gt_debug_cases(void (*add)(const char *what, struct gt_case c));

/* Fills in the cases and returns their number. */
unsigned int gt_cases(struct gt_case *cases, unsigned int max);

#endif
