/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host part of the GPU test of Ethernet queues: a NIC, a GPU, a send queue, a receive queue,
 * and a rule between them. Functions that return int return 0, or -1 after et_complain() stored the
 * reason.
 */
#ifndef ET_HOST_H
#define ET_HOST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "doca_eth_rxq_gpu_data_path.h"
#include "doca_eth_txq_gpu_data_path.h"
#include "doca_gpunetio.h"
#include "doca_mmap.h"

#include "eth.h"

#define ET_MAX_THREADS 65536u

struct et_case {
	char name[60];
	int (*run)(const struct et_case *c);
	enum et_how how;
	enum doca_gpu_dev_eth_resource_sharing_mode mode;
	enum doca_gpu_dev_eth_exec_scope exec, rx_exec;
	enum doca_gpu_dev_verbs_nic_handler handler;
	uint32_t blocks, threads, rounds, each, notify, rx_threads;
	uint32_t depth, rx_num, max_pkts; /* slots of the queues; packets of one receive */
	enum doca_gpu_mem_type mem;	  /* of the queues */
	bool packets_on_gpu;
	bool in_turn;	 /* the receiver starts when the sender has ended */
	uint64_t preset; /* first index of both queues */
};

struct et_env {
	struct doca_dev *dev;
	struct doca_gpu *gpu;
	int *sent, *got;	 /* status words, CPU address */
	int *sent_gpu, *got_gpu; /* their GPU addresses */
	uint64_t packets;	 /* of all cases */
	uint32_t case_packets;	 /* packets of a case; 0: the usual number */
	bool testpmd; /* packets go to dpdk-testpmd, which swaps their addresses and returns them */
};
extern struct et_env et_env;

/* The queues of a case, and the memory that its kernels use. */
struct et_queues {
	struct doca_eth_rxq *rxq;
	struct doca_eth_txq *txq;
	struct doca_mmap *rx_map, *tx_map;
	void *rx_buf, *tx_buf;
	struct gdk_eth_rule *rule;
	struct et_result *result;
	uint32_t *seen;
	bool proxy; /* the CPU rings the doorbells of the send queue */
};

#define ET_REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			et_complain("%s:%d: %s", __FILE__, __LINE__, #cond); \
			et_die(); \
		} \
	} while (0)

/* Stores the reason for a failure; a later reason replaces it. */
int et_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *et_complaint(void);
/* Reports the running case as failed, prints the numbers and ends the process. */
void et_die(void) __attribute__((noreturn));
uint64_t et_now_ns(void);

void et_env_open(const char *gpu);
void et_env_close(void);
void et_open(struct et_queues *q, const struct et_case *c, struct et_job *job);
void et_close(struct et_queues *q);
/* Initializes the status of threads, and launches the receiver (recv) and the sender (send). */
int et_launch(const struct et_job *job, bool send, bool recv);
/* Waits until the kernels end. After a time limit, aborts the queues and returns -1; ends the
 * process if that does not end the kernels. */
int et_wait(struct et_queues *q);

/* The cases for a GPU, or for CPU threads (small). Returns their number. */
unsigned int et_cases(struct et_case *cases, unsigned int max, bool small);

/* Adds cases, so that each two values of sharing mode, scope, handler, memory and kind of send are
 * in a case together. */
void et_table(void (*add)(const char *name, struct et_case c), struct et_case base, bool small);

int et_run_packets(const struct et_case *c);
int et_run_least(const struct et_case *c);
int et_run_abort(const struct et_case *c);

#endif
