/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the parts of gpunetio_rdma_client_server_write share. Only side.c and the kernel use the
 * interface of the DOCA SDK, whose headers exclude those of DOCA GPUNetIO open in the same file.
 *
 * A round is a number of writes of each connection. Each write has a buffer of its own on both
 * sides, and an immediate value that names the buffer.
 */
#ifndef RDMA_WRITE_H
#define RDMA_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RW_WRITES_MAX  32768u /* of a round: the receives of a queue */
#define RW_THREADS_MAX 512u
#define RW_BYTES_MAX   (1u << 30) /* of all buffers of a side */

enum rw_mode { RW_STRONG, RW_WEAK, RW_MODES };

struct rw_options {
	const char *gpu;			     /* "host" or a PCI address */
	const char *device;			     /* NULL: the first NIC */
	const char *server;			     /* NULL: this process is the server */
	uint32_t handler;			     /* enum doca_gpu_dev_verbs_nic_handler */
	uint32_t connections, writes, size, threads; /* writes: of each connection in a round */
	uint32_t gid_index;			     /* UINT32_MAX: the library chooses it */
	uint32_t tcp_port, timeout_s;
};

/* ---- the kernel ---- */

struct doca_gpu_dev_rdma;
struct doca_gpu_buf_arr;

/* What the kernel gets, in memory that its threads can access. */
struct rw_job {
	struct doca_gpu_dev_rdma *rdma;
	struct doca_gpu_buf_arr *local, *remote;
	enum rw_mode mode;
	uint32_t connections, writes, size;
	uint32_t *imm, *conn, received; /* of the server: results and number of the receives */
};

/* The immediate value of the write to a buffer. Without one, a receive reports 0. */
#define rw_imm(buf) ((buf) + 1)

/* ---- side.c ---- */

struct rw_side;
struct doca_gpu_verbs_qp;
struct rw_blob { /* a description for the other side */
	const void *bytes;
	size_t len;
};

/* All int functions return 0 or, after a message, -1. rw_open() opens GPU and NIC, and *side needs
 * rw_close() even if it fails. rw_create() creates buffers, RDMA object and connections. */
int rw_open(struct rw_side **side, const struct rw_options *opt);
int rw_create(struct rw_side *side);
void rw_close(struct rw_side *side); /* accepts NULL */

/* Descriptions of connection i and of the buffers, and the use of those of the other side. */
struct rw_blob rw_describe_connection(struct rw_side *side, uint32_t i);
int rw_describe_buffers(struct rw_side *side, struct rw_blob *blob);
int rw_connect(struct rw_side *side, uint32_t i, struct rw_blob blob);
int rw_open_remote_buffers(struct rw_side *side, struct rw_blob blob);
int rw_get_qp(struct rw_side *side, struct doca_gpu_verbs_qp **qp); /* of connection 0 */

/* Fills the buffers and starts the kernel. rw_done() returns 1 when it has ended, 0 before;
 * rw_abort() ends its waits. */
int rw_launch(struct rw_side *side, enum rw_mode mode);
int rw_done(struct rw_side *side);
int rw_abort(struct rw_side *side);
double rw_seconds(struct rw_side *side); /* of the kernel */
int rw_check_kernel(struct rw_side *side);
/* The server: checks all bytes, immediate values and connection indices. */
int rw_check_data(struct rw_side *side);

/* ---- transfer.c ---- */

/* Checks the options that depend on each other. */
int rw_check_options(const struct rw_options *opt);
/* The whole program. The server takes the options of the transfer from the client. */
int rw_run(struct rw_options *opt);

/* ---- common/error.c ---- */
int ex_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
