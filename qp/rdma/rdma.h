/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of RDMA objects and their connections. rdma.c has the options and the context,
 * memory.c the shared receive queue and what kernels see, connection.c the connections, path.c
 * ports, GIDs and the states of queue pairs, cm.c the connection manager that does not exist.
 */
#ifndef GDK_RDMA_PRIV_H
#define GDK_RDMA_PRIV_H

#include "qp/doca/ctx.h"

#include "doca_rdma.h"
#include "gdk_rdma_recv_dev.h"
#include "host/doca_gpunetio_high_level.h"
#include "host/gdaki.h"
#include "umem/slab.h"

#define GDK_RDMA_GID_AUTO UINT32_MAX

/* What a remote side needs to know of a connection. All members are big-endian. */
struct gdk_rdma_details {
	char magic[8]; /* GDK_RDMA_MAGIC, with its end: programs print descriptions as strings */
	uint32_t version;
	uint32_t qpn, psn;
	uint32_t lid;
	uint32_t mtu;	/* enum ibv_mtu */
	uint32_t reads; /* reads and atomics that the queue pair answers at a time */
	uint8_t gid[16];
};
#define GDK_RDMA_MAGIC	 "gdkrdma"
#define GDK_RDMA_VERSION 1u

/* The local end of all paths. */
struct gdk_rdma_port {
	uint32_t gid_index;
	uint8_t num;
	bool roce;
	struct ibv_port_attr attr;
	union ibv_gid gid;
};

enum gdk_rdma_conn_state { GDK_RDMA_EXPORTED, GDK_RDMA_CONNECTED, GDK_RDMA_ENDED };

/* Events that doca_pe_progress() has not delivered yet. */
#define GDK_RDMA_EVENT_ESTABLISHED   1u
#define GDK_RDMA_EVENT_FAILURE	     2u
#define GDK_RDMA_EVENT_DISCONNECTION 4u

struct doca_rdma_connection {
	struct doca_rdma *rdma;
	uint32_t index;
	enum gdk_rdma_conn_state state;
	unsigned int events; /* GDK_RDMA_EVENT_* */
	union doca_data user_data;
	struct doca_gpu_verbs_qp_hl *qp;
	struct gdk_rdma_details details;
};

struct gdk_rdma_callbacks {
	doca_rdma_connection_established_cb_t established;
	doca_rdma_connection_failure_cb_t failure;
	doca_rdma_connection_disconnection_cb_t disconnection;
};

struct doca_rdma {
	struct doca_ctx ctx;
	uint32_t permissions; /* DOCA_ACCESS_FLAG_* */
	uint32_t send_size, recv_size, max_conns;
	uint32_t gid_index; /* or GDK_RDMA_GID_AUTO */
	bool grh;
	enum doca_gpu_dev_verbs_nic_handler nic_handler;
	struct gdk_rdma_callbacks callbacks;

	/* while the context runs */
	struct gdk_rdma_port port;
	struct doca_rdma_connection **conns; /* max_conns elements, num_conns in use */
	uint32_t num_conns;
	doca_gpu_verbs_service_t service; /* rings doorbells; NULL: GPU threads do */
	struct gdk_slab_unit unit;	  /* receive ring and receive CQ */
	struct doca_verbs_srq *srq;
	struct doca_gpu_dev_verbs_qp *srq_dev; /* GPU address */
	doca_verbs_cq_t *cq_rq;
	uint32_t map_size;   /* entries of the hash table */
	void *on_gpu;	     /* GPU address of the image (memory.c) */
	uint64_t *map;	     /* copy of the hash table */
	uint64_t wait_limit; /* ns, of connections that are exported later */
};

/* Checks that the context runs. func: the caller, for the message. */
doca_error_t gdk_rdma_must_run(const struct doca_rdma *rdma, const char *func);

/* memory.c: creates and destroys the receive queue and what kernels see. Destruction stops at the
 * first error, and may be repeated. */
doca_error_t gdk_rdma_memory_create(struct doca_rdma *rdma);
doca_error_t gdk_rdma_memory_destroy(struct doca_rdma *rdma);
/* Makes the number of a queue pair known to kernels that receive. */
doca_error_t gdk_rdma_publish_qpn(struct doca_rdma *rdma, uint32_t qpn, uint32_t index);
/* Makes a connection usable in kernels. qp_dev: GPU address. */
doca_error_t gdk_rdma_publish_qp(struct doca_rdma *rdma, uint32_t index,
				 struct doca_gpu_dev_verbs_qp *qp_dev);
/* Stores to a member of the state block of the receive queue. */
doca_error_t gdk_rdma_srq_store(struct doca_rdma *rdma, size_t offset, const void *value,
				size_t len);

/* connection.c: destroys all connections. Stops at the first error, and may be repeated. */
doca_error_t gdk_rdma_connections_destroy(struct doca_rdma *rdma);
/* Delivers the events of connections. Returns whether there were any. */
bool gdk_rdma_deliver(struct doca_rdma *rdma);

/* path.c */
doca_error_t gdk_rdma_port_open(struct doca_rdma *rdma);
doca_error_t gdk_rdma_details_fill(const struct doca_rdma *rdma, doca_verbs_qp_t *qp,
				   struct gdk_rdma_details *details);
/* Moves the queue pair of a connection to RTS. */
doca_error_t gdk_rdma_qp_connect(struct doca_rdma_connection *conn,
				 const struct gdk_rdma_details *remote);
/* Moves it to ERR. */
doca_error_t gdk_rdma_qp_end(struct doca_rdma_connection *conn);

static inline struct doca_rdma *gdk_to_rdma(struct doca_ctx *ctx)
{
	return GDK_CONTAINER_OF(ctx, struct doca_rdma, ctx);
}

#endif
