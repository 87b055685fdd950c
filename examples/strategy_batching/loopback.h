/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* A high-level queue pair of GPU "host" that is connected to itself, and memory for its payload. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <doca_gpunetio_host.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define LOOPBACK_DEPTH 256 /* slots of the send queue */

struct nic {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_dev_t *dev;
	doca_gpu_t *gpu;
	struct ibv_port_attr port;
	union ibv_gid gid;
	unsigned int gid_index;
};

struct loopback {
	struct doca_gpu_verbs_qp_hl *qp;
	struct doca_gpu_dev_verbs_qp *dev_qp; /* used by the threads that post */
	struct ibv_mr *mr;
	uint8_t *mem;
	size_t len;
};

/* Opens the first RDMA device. All functions print an error and return -1 if they fail. */
int nic_open(struct nic *nic);
void nic_close(struct nic *nic);
/* Creates a queue pair with handler CPU_PROXY. */
int loopback_open(struct loopback *lo, const struct nic *nic, size_t len);
void loopback_close(struct loopback *lo);

#endif
