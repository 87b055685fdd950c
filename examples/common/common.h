/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What applications can copy from the examples: messages (error.c), and an endpoint with GPU, NIC,
 * queue pairs and payload that is created with the public DOCA API and connected to a peer (nic.c,
 * endpoint.c, connect.c). Also the command line (options.c). session.h has the rest.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "doca_gpunetio_host.h"
#include "host/gdaki.h"
#include "job.h"

#define EX_QUEUE_SIZE 2048 /* WQEs of each send queue and each receive queue */
#define EX_AREA_ALIGN 64   /* of the parts of a queue pair's area */
#define EX_AREA_GUARD 64   /* bytes after the data that no message may change */

/* ---- error.c ---- */

/* Prints an error message to stderr. Returns -1, so that callers can "return ex_error(...)". */
int ex_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *ex_last_error(void); /* the text of the last message */
/* Returns 0 on success. Otherwise prints what and the error, and returns -1. */
int ex_check(doca_error_t err, const char *what);
void ex_print_version(const char *prog);
/* Command line of programs without options. Returns -1 to run the program, otherwise its exit
 * status: 0 after --help or --version, 2 after an error. */
int ex_no_options(int argc, char **argv);

/* ---- options.c ---- */
/* A program that uses only the endpoint may leave members 0, except gpu and gid_index. */
struct ex_options {
	const char *gpu;    /* "host" or a PCI address */
	const char *device; /* NULL: the only RDMA device */
	const char *server; /* NULL: this process is the server */
	enum doca_gpu_dev_verbs_nic_handler handler;
	enum doca_gpu_verbs_send_dbr_mode_ext dbr_mode;
	uint32_t warp;	       /* operations at warp scope */
	bool payload_gpu;      /* payload in GPU memory */
	bool queues_host;      /* queues in host memory, also with a GPU */
	bool companions;       /* each queue pair gets a companion, for counters */
	bool companions_cross; /* connected to the peer's; otherwise each to itself */
	bool receive_queues;   /* each queue pair gets a receive queue for threads */
	bool sweep;	       /* several message sizes */
	bool size_given;
	uint32_t queues;	  /* number of queue pairs; 0: 1 */
	uint32_t blocks, threads; /* of each queue pair */
	uint32_t iters;		  /* messages of each queue pair, all its threads together */
	uint32_t duration_s;	  /* 0: send iters messages */
	uint32_t warmup;	  /* messages of each thread before the measurement */
	uint32_t size;		  /* bytes of a message */
	int gid_index;		  /* -1: a RoCEv2 GID, preferably of IPv4; InfiniBand: 0 */
	uint32_t ib_port;	  /* port of the device; 0: 1 */
	uint32_t tcp_port;
	uint32_t timeout_s; /* time limit of each wait without progress */
	const char *json, *csv;
};

struct ex_program;
/* Returns -1 to run the program, otherwise its exit status: 0 after --help or --version, 2 after
 * an error in the command line. */
int ex_options_parse(struct ex_options *opt, const struct ex_program *program, int argc,
		     char **argv);
uint32_t ex_default_warmup(const struct ex_program *program);

/* ---- endpoint.c, nic.c, connect.c ---- */
struct ex_peer { /* what the peer needs to connect one queue pair and to access its area */
	uint32_t qpn, companion_qpn, psn, lid, mtu; /* mtu: enum ibv_mtu */
	uint32_t reads; /* outstanding reads and atomics that this side accepts */
	uint8_t gid[16];
	uint64_t addr; /* area of the queue pair */
	uint32_t rkey;
};

struct ex_payload {	  /* memory of the data and flags of all queue pairs */
	uint8_t *gpu_ptr; /* address for the threads of the data path */
	uint8_t *cpu_ptr; /* NULL: GPU memory that the CPU cannot access */
	uint64_t addr;	  /* address for the NIC */
	size_t len;
	struct ibv_mr *mr;
};

/* Each queue pair has an area of `stride` bytes in the payload, with the data at its start and the
 * other parts at these offsets. Both sides must have the same areas. */
struct ex_area {
	size_t stride, recv, flags, prev; /* see struct ex_dev_queue */
};

struct ex_queue {
	struct doca_gpu_verbs_qp_hl *qp, *companion; /* companion: NULL unless requested */
	struct doca_gpu_verbs_qp_group_hl *group;    /* owns both; NULL without companion */
	uint32_t qpn, companion_qpn;
};

struct ex_endpoint {
	doca_gpu_t *gpu;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_dev_t *dev;
	struct doca_gpu_verbs_qp_hl *qp; /* the first queue pair */
	struct ex_queue *queues;
	uint32_t num_queues;
	bool companions_cross;
	doca_gpu_verbs_service_t service; /* rings doorbells of CPU_PROXY queue pairs; or NULL */
	struct ibv_port_attr port;
	uint8_t port_num, gid_index;
	struct ex_peer local; /* first queue pair; complete after ex_payload_alloc */
	struct ex_payload payload;
	struct ex_area area;
};

/* ex_endpoint_open() is ex_device_open() and ex_queues_create(). If the first two fail, they
 * free everything. ex_endpoint_close() accepts an endpoint whose bytes are all 0. */
int ex_endpoint_open(struct ex_endpoint *ep, const struct ex_options *opt);
int ex_device_open(struct ex_endpoint *ep, const struct ex_options *opt);
int ex_queues_create(struct ex_endpoint *ep, const struct ex_options *opt);
void ex_endpoint_close(struct ex_endpoint *ep);
int ex_nic_open(struct ex_endpoint *ep, const struct ex_options *opt);
bool ex_gid_is_ipv4(const union ibv_gid *gid);

/* Allocates and registers the payload. ex_areas_alloc() divides it into areas, one per queue pair,
 * each with `data` bytes of data and the flags of `threads` threads. separate_recv: the peer's puts
 * arrive in another part of the area than the data that this side sends. */
int ex_payload_alloc(struct ex_endpoint *ep, size_t len, bool in_gpu);
int ex_areas_alloc(struct ex_endpoint *ep, size_t data, uint32_t threads, bool separate_recv,
		   bool in_gpu);

/* For each queue pair: send the result of ex_queue_local() to the peer of that queue pair, and call
 * ex_queue_connect() and ex_queue_device() with what the peer sent. Peers of different queue pairs
 * may be different processes. ex_endpoint_connect() is for the first queue pair. */
void ex_queue_local(const struct ex_endpoint *ep, uint32_t queue, struct ex_peer *peer);
int ex_queue_connect(struct ex_endpoint *ep, uint32_t queue, const struct ex_peer *peer);
int ex_queue_device(const struct ex_endpoint *ep, uint32_t queue, const struct ex_peer *peer,
		    struct ex_dev_queue *dev);
int ex_endpoint_connect(struct ex_endpoint *ep, const struct ex_peer *peer);

/* ---- exchange.c ---- */
void ex_catch_signals(void);
bool ex_interrupted(void); /* Ctrl-C or SIGTERM occurred */

#endif
