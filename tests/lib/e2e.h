/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Shared by the end-to-end tests: an opened NIC with the GPU "host" or another, queue
 * pairs of the high-level API that are connected to each other or to a peer process,
 * registered memory, and puts through the device data path. E2E_REQUIRE checks a
 * precondition of a test: if it is false, E2E_REQUIRE prints it and aborts.
 */
#ifndef E2E_H
#define E2E_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "doca_gpunetio_host.h"
#include "host/gdaki.h"
#include "../softnic/lossless.h"
#include "device/gdk/onesided_dev.h"

#define E2E_REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

#define E2E_MODE    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define E2E_EXCL    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define E2E_WAIT_NS 40000000000ull /* a put that takes longer counts as lost */

#define E2E_AUTO   DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define E2E_PROXY  DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY
#define E2E_DB	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
#define E2E_BF	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF
#define E2E_NO_DBR DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR

struct e2e_nic {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_dev_t *dev;
	doca_gpu_t *gpu;
	union ibv_gid gid; /* a RoCE v2 GID; GID 0 of an InfiniBand port */
	int gid_index;
	/* LID of the port; 0 with RoCE. e2e_connect() also uses this LID as the peer's. */
	uint32_t lid;
};

struct e2e_qp {
	struct e2e_nic *nic;
	struct doca_gpu_verbs_qp_hl *hl;
	struct doca_gpu_dev_verbs_qp *dev;
	uint32_t qpn;
	pthread_t proxy; /* runs from e2e_proxy_begin() to e2e_proxy_end() if has_proxy */
	bool has_proxy;
	atomic_bool proxy_stop;
};

/* Connection parameters. ack_timeout is the exponent t of the timeout 4.096 us << t;
 * psn is the first PSN of both directions. */
struct e2e_path {
	uint16_t ack_timeout, retry_cnt;
	uint32_t psn;
};

struct e2e_buf {
	uint8_t *mem;
	size_t len;
	struct ibv_mr *mr;
};

/* Two connected QPs of one process on one NIC: tx puts from src into dst. */
struct e2e_pair {
	struct e2e_nic nic;
	struct e2e_qp tx, rx;
	struct e2e_buf src, dst;
};

/* ---- NIC and memory ---- */
void e2e_open(struct e2e_nic *nic); /* with the GPU "host" */
void e2e_open_on(struct e2e_nic *nic, const char *gpu_bus_id);
void e2e_close(struct e2e_nic *nic);
void e2e_buf_open(struct e2e_nic *nic, struct e2e_buf *buf, size_t len, int access);
void e2e_buf_use(struct e2e_nic *nic, struct e2e_buf *buf, void *mem, size_t len, int access);
void e2e_buf_close(struct e2e_buf *buf);
#define E2E_REMOTE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Byte i of a pseudo-random pattern without a short period. */
static inline uint8_t e2e_pattern(uint64_t i, uint32_t seed)
{
	uint64_t v = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xff51afd7ed558ccdull;

	return (uint8_t)(v >> 56 ^ v >> 29);
}

/* ---- queue pairs ---- */
/* Returns whether the first device supports queue pairs without DBREC. E2E_NO_DBR needs them. */
bool e2e_has_no_dbr(void);
#define E2E_NEEDS_NO_DBR() \
	do { \
		if (!e2e_has_no_dbr()) \
			cr_skip_test("the device has no queue pairs without DBREC"); \
	} while (0)
doca_error_t e2e_qp_try(struct e2e_nic *nic, struct e2e_qp *qp,
			enum doca_gpu_dev_verbs_nic_handler handler, unsigned int depth,
			bool collapsed);
void e2e_qp_open(struct e2e_nic *nic, struct e2e_qp *qp,
		 enum doca_gpu_dev_verbs_nic_handler handler, unsigned int depth);
void e2e_qp_adopt(struct e2e_nic *nic, struct e2e_qp *qp, struct doca_gpu_verbs_qp_hl *hl);
void e2e_qp_close(struct e2e_qp *qp);
/* Moves the QP from RST to RTS, connected to dest_qpn at gid. */
doca_error_t e2e_connect(struct e2e_nic *nic, doca_verbs_qp_t *qp, const union ibv_gid *gid,
			 uint32_t dest_qpn, struct e2e_path path);
/* With another rnr_retry than 1. */
doca_error_t e2e_connect_rnr(struct e2e_nic *nic, doca_verbs_qp_t *qp, const union ibv_gid *gid,
			     uint32_t dest_qpn, struct e2e_path path, uint16_t rnr_retry);
/* For a QP of type UC, of which path.psn only is used. */
doca_error_t e2e_connect_uc(struct e2e_nic *nic, doca_verbs_qp_t *qp, const union ibv_gid *gid,
			    uint32_t dest_qpn, struct e2e_path path);
/* Moves the QP to RST and resets the indices and the queue memory of its export. */
void e2e_qp_reset(struct e2e_qp *qp);
/* Starts a thread that rings the doorbells of qp (handler CPU_PROXY) until e2e_proxy_end(). */
void e2e_proxy_begin(struct e2e_qp *qp);
void e2e_proxy_end(struct e2e_qp *qp);

void e2e_pair_open(struct e2e_pair *p, enum doca_gpu_dev_verbs_nic_handler handler,
		   unsigned int depth, size_t bytes);
void e2e_pair_close(struct e2e_pair *p);

/* ---- data path ---- */
static inline struct doca_gpu_dev_verbs_addr e2e_addr(const void *p, uint32_t key)
{
	return gdk_addr((uintptr_t)p, gdk_key(key));
}

/* Posts a NOP and rings. ce: GDK_CE_ALWAYS, or 0 for one without CQE. Inline, because a test may
 * replace the store to the register. */
static inline int e2e_nop(struct e2e_qp *qp, enum doca_gpu_dev_verbs_resource_sharing_mode mode,
			  uint32_t ce, uint64_t *idx)
{
	int rc = gdk_reserve(qp->dev, 1, mode, 0, idx);

	if (rc)
		return rc;
	gdk_wqe_nop(qp->dev, gdk_get_wqe_ptr(qp->dev, *idx), (uint16_t)*idx, ce);
	gdk_mark_ready(qp->dev, *idx, *idx, mode, E2E_AUTO);
	gdk_submit(qp->dev, *idx + 1, gdk_how(mode, E2E_AUTO, GDK_THREAD, 0));
	return 0;
}

/* Puts len bytes from offset off of src to the same offset of dst. */
int e2e_put(struct e2e_pair *p, size_t off, size_t len, doca_gpu_dev_verbs_ticket_t *ticket);
int e2e_wait(struct e2e_qp *qp, doca_gpu_dev_verbs_ticket_t ticket);
uint64_t e2e_now_ns(void);
/* The software NIC's counters db_recovered and db_forced; 0 on a device. */
uint64_t e2e_recovered(void);
uint64_t e2e_forced(void);

/* ---- a peer in its own process, which shares its memory with the test ---- */
struct e2e_peer {
	pid_t pid;   /* the process that opened the peer's NIC */
	pid_t child; /* softnic-run, the parent of pid */
	int fd;
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
	uint8_t *mem; /* the peer's memory, mapped in this process */
	size_t len;
};

/* Starts the peer and receives its GID, QP number and rkey. Must be called before this process
 * opens the NIC. */
void e2e_peer_start(struct e2e_peer *peer, size_t len);
/* Sends gid and qpn to the peer, which connects its QP to them. Returns once it is connected. */
void e2e_peer_connect(struct e2e_peer *peer, const union ibv_gid *gid, uint32_t qpn);
void e2e_peer_kill(struct e2e_peer *peer);
void e2e_peer_end(struct e2e_peer *peer);

#endif
