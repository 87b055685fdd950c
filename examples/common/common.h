/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Shared code of the examples: command line (options.c), an endpoint with GPU, NIC, queue
 * pair and payload that is created with the public DOCA API and connected to a peer
 * (endpoint.c), and an exchange of data over TCP (exchange.c). The waits of the exchange end at
 * a time limit, which a blocked connect() can exceed, and on Ctrl-C.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "doca_gpunetio_host.h"
#include "host/gdaki.h"

#define EX_QUEUE_SIZE 2048 /* WQEs of the send queue */

/* Prints an error message to stderr. Returns -1, so that callers can "return ex_error(...)". */
int ex_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Returns 0 on success. Otherwise prints what and the error, and returns -1. */
int ex_check(doca_error_t err, const char *what);

/* ---- options.c ---- */
struct ex_options {
	const char *gpu;    /* "host" or a PCI address */
	const char *device; /* NULL: the only RDMA device */
	const char *server; /* NULL: this process is the server */
	enum doca_gpu_dev_verbs_nic_handler handler;
	bool warp;	  /* puts at warp scope */
	bool payload_gpu; /* payload in GPU memory */
	uint32_t threads;
	uint32_t iters; /* puts of all threads together */
	uint32_t size;	/* bytes of a message */
	int gid_index;	/* -1: a RoCEv2 GID, preferably of IPv4; InfiniBand: 0 */
	uint16_t tcp_port;
	unsigned int timeout_s; /* time limit of each wait */
};

/* Both return -1 to run the program, otherwise its exit status: 0 after --help or --version, 2
 * after an error in the command line. ex_no_options() is for programs without options. */
int ex_options_parse(struct ex_options *opt, int argc, char **argv);
int ex_no_options(int argc, char **argv);

/* ---- endpoint.c ---- */
struct ex_peer { /* data that a side sends to its peer, which needs them to connect and to put */
	uint32_t qpn, psn, lid, mtu; /* mtu: enum ibv_mtu */
	uint8_t gid[16];
	uint64_t addr;
	uint32_t rkey;
};

struct ex_payload {
	uint8_t *gpu_ptr; /* address for the threads of the data path */
	uint8_t *cpu_ptr; /* NULL: GPU memory that the CPU cannot access */
	uint64_t addr;	  /* address for the NIC */
	size_t len;
	struct ibv_mr *mr;
};

struct ex_endpoint {
	doca_gpu_t *gpu;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_dev_t *dev;
	struct doca_gpu_verbs_qp_hl *qp;
	doca_gpu_verbs_service_t service; /* rings the doorbell of a CPU_PROXY QP; NULL: none */
	struct ibv_port_attr port;
	uint8_t gid_index;
	struct ex_peer local; /* complete after ex_payload_alloc */
	struct ex_payload payload;
};

/* If ex_endpoint_open() fails, it frees everything. ex_endpoint_close() accepts an endpoint whose
 * bytes are all 0. */
int ex_endpoint_open(struct ex_endpoint *ep, const struct ex_options *opt);
void ex_endpoint_close(struct ex_endpoint *ep);
int ex_payload_alloc(struct ex_endpoint *ep, size_t len, bool in_gpu);
int ex_endpoint_connect(struct ex_endpoint *ep, const struct ex_peer *peer);

/* ---- exchange.c ---- */
void ex_catch_signals(void);
bool ex_interrupted(void);
/* Return a connected socket, or -1. ex_tcp_connect() retries until the server listens, at most for
 * the time limit. */
int ex_tcp_accept(const struct ex_options *opt);
int ex_tcp_connect(const struct ex_options *opt);
void ex_tcp_close(int sock); /* -1 is accepted */
int ex_send(int sock, const void *buf, size_t len, unsigned int timeout_s);
int ex_recv(int sock, void *buf, size_t len, unsigned int timeout_s);
int ex_send_u32(int sock, uint32_t value, unsigned int timeout_s);
int ex_recv_u32(int sock, uint32_t *value, unsigned int timeout_s);
int ex_swap_peers(int sock, const struct ex_peer *local, struct ex_peer *remote,
		  unsigned int timeout_s);

#endif
