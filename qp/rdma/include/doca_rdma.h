/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * RDMA objects: reliable connections that kernels of a GPU use (doca_gpunetio_dev_rdma.cuh). Return
 * values and threads: see doca_error.h.
 *
 * Set the options while the context is idle, and start it with doca_ctx_start(). Then, for each
 * connection, pass the description of doca_rdma_export() to the other side, and its description to
 * doca_rdma_connect(). Both sides must use gdaki. All connections share one receive queue.
 *
 * There is no connection manager: its functions return DOCA_ERROR_NOT_SUPPORTED.
 */
#ifndef GDK_SDK_DOCA_RDMA_H
#define GDK_SDK_DOCA_RDMA_H

#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_gpunetio_verbs_def.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_gpu_dev_rdma;    /* an RDMA object, in GPU memory */
struct doca_gpu_verbs_qp;    /* an exported queue pair (gdaki.h) */
struct doca_rdma;	     /* an RDMA object */
struct doca_rdma_addr;	     /* an address of the connection manager */
struct doca_rdma_connection; /* a connection */

/**
 * Creates an RDMA object. Destroy it with doca_rdma_destroy().
 *
 * @param dev a NIC, which must stay open until then
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma);

/**
 * Destroys an RDMA object.
 *
 * @retval DOCA_ERROR_BAD_STATE its context is not idle
 */
doca_error_t doca_rdma_destroy(struct doca_rdma *rdma);

/** Returns the context of an RDMA object, or NULL for NULL. */
struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma);

/** Checks whether a NIC can be used for RDMA objects that write. All NICs of the list can. */
doca_error_t doca_rdma_cap_task_write_is_supported(const struct doca_devinfo *devinfo);

/**
 * Sets what remote sides may do, a set of DOCA_ACCESS_FLAG_*. Default: local access only.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma, uint32_t permissions);

/**
 * Sets the operations of each connection that can be posted at a time.
 *
 * @param send_queue_size 1 to 32768, rounded up to a power of two; default 128
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma, uint32_t send_queue_size);

/**
 * Sets the receives that can be posted at a time, for all connections together.
 *
 * @param recv_queue_size 1 to 32768, rounded up to a power of two; default 128
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma, uint32_t recv_queue_size);

/**
 * Sets whether packets have a GRH on InfiniBand. On Ethernet they always have an IP header.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma, bool grh_enabled);

/**
 * Sets the index of the local GID. Default: the first RoCE v2 GID with an IPv4 address, otherwise
 * the first RoCE v2 GID, otherwise 0.
 *
 * @param gid_index at most 255; doca_ctx_start() checks that the port has such a GID
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index);

/**
 * Sets how many connections the object can have. Default: 1.
 *
 * @param max_num_connections 1 to 4096
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_rdma_set_max_num_connections(struct doca_rdma *rdma,
					       uint32_t max_num_connections);

/**
 * Returns the object for kernels. It is valid until the context is stopped. Connections that are
 * established later are visible to running kernels.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t doca_rdma_get_gpu_handle(const struct doca_rdma *rdma,
				      struct doca_gpu_dev_rdma **gpu_rdma);

/**
 * Creates a connection and returns its description for the remote side, which is valid until the
 * context is stopped. The connection gets the next index from 0 on.
 *
 * @param local_connection_details gets the description
 * @param local_connection_details_size gets its bytes
 * @param rdma_connection gets the connection
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 * @retval DOCA_ERROR_FULL the object has its greatest number of connections
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware, the kernel or the CUDA driver refused
 */
doca_error_t doca_rdma_export(struct doca_rdma *rdma, const void **local_connection_details,
			      size_t *local_connection_details_size,
			      struct doca_rdma_connection **rdma_connection);

/**
 * Establishes a connection. Kernels may then use it. The remote side may connect later; what is
 * sent to it until then is repeated.
 *
 * @param remote_connection_details description of the remote connection
 * @param remote_connection_details_size its bytes
 * @param rdma_connection a connection of doca_rdma_export()
 * @retval DOCA_ERROR_BAD_STATE the context does not run, or the connection is or was connected
 * @retval DOCA_ERROR_INVALID_VALUE the description is damaged, or the connection belongs to another
 *         object
 * @retval DOCA_ERROR_UNSUPPORTED_VERSION the description has another version
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware or the CUDA driver refused
 */
doca_error_t doca_rdma_connect(struct doca_rdma *rdma, const void *remote_connection_details,
			       size_t remote_connection_details_size,
			       struct doca_rdma_connection *rdma_connection);

/**
 * Ends a connection: threads that wait for it return CONNECTION_ABORTED, and the remote side gets
 * errors. Its index is not used again before the context is stopped.
 *
 * @retval DOCA_ERROR_BAD_STATE it is not connected
 * @retval DOCA_ERROR_DRIVER the firmware or the CUDA driver refused
 */
doca_error_t doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection);

/** Stores a value that callbacks of the connection get, at first 0. */
doca_error_t doca_rdma_connection_set_user_data(struct doca_rdma_connection *rdma_connection,
						union doca_data connection_user_data);

/** A remote side asks for a connection. Only a connection manager calls it. */
typedef void (*doca_rdma_connection_request_cb_t)(struct doca_rdma_connection *rdma_connection,
						  union doca_data ctx_user_data);
/** A connection is established. */
typedef void (*doca_rdma_connection_established_cb_t)(struct doca_rdma_connection *rdma_connection,
						      union doca_data connection_user_data,
						      union doca_data ctx_user_data);
/** A connection could not be established. */
typedef void (*doca_rdma_connection_failure_cb_t)(struct doca_rdma_connection *rdma_connection,
						  union doca_data connection_user_data,
						  union doca_data ctx_user_data);
/** A connection has ended. */
typedef void (*doca_rdma_connection_disconnection_cb_t)(
	struct doca_rdma_connection *rdma_connection, union doca_data connection_user_data,
	union doca_data ctx_user_data);

/**
 * Sets functions that doca_pe_progress() calls when the state of a connection has changed, by
 * doca_rdma_connect() or doca_rdma_connection_disconnect(). Each may be NULL.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t
doca_rdma_set_connection_state_callbacks(struct doca_rdma *rdma,
					 doca_rdma_connection_request_cb_t request_cb,
					 doca_rdma_connection_established_cb_t established_cb,
					 doca_rdma_connection_failure_cb_t failure_cb,
					 doca_rdma_connection_disconnection_cb_t disconnection_cb);

/** Kinds of addresses of the connection manager. */
enum doca_rdma_addr_type {
	DOCA_RDMA_ADDR_TYPE_IPv4 = 0, /**< "192.0.2.1" */
	DOCA_RDMA_ADDR_TYPE_IPv6 = 1, /**< "2001:db8::1" */
	DOCA_RDMA_ADDR_TYPE_GID = 2,  /**< a GID, as IPv6 */
};

/** Would describe the address of a server. Returns DOCA_ERROR_NOT_SUPPORTED. */
doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type addr_type, const char *address,
				   uint16_t port, struct doca_rdma_addr **addr);

/** Would free an address. Returns DOCA_ERROR_NOT_SUPPORTED. */
doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr);

/** Would connect to a server. Returns DOCA_ERROR_NOT_SUPPORTED. */
doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma, struct doca_rdma_addr *addr,
				       union doca_data connection_user_data);

/** Would accept a client. Returns DOCA_ERROR_NOT_SUPPORTED. */
doca_error_t doca_rdma_connection_accept(struct doca_rdma_connection *rdma_connection,
					 void *private_data, uint8_t private_data_len);

/** Would wait for clients. Returns DOCA_ERROR_NOT_SUPPORTED. */
doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/** Would end the wait for clients. Returns DOCA_ERROR_NOT_SUPPORTED. */
doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/* ---- additions of gdaki ---- */

/**
 * Sets the doorbell handler of the connections. Default: AUTO. With CPU_PROXY a thread of the
 * object rings the doorbells. doca_rdma_export() fails if the GPU or the NIC does not support the
 * handler.
 *
 * @param nic_handler AUTO, CPU_PROXY or GPU_SM_DB
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t gdk_rdma_set_nic_handler(struct doca_rdma *rdma,
				      enum doca_gpu_dev_verbs_nic_handler nic_handler);

/**
 * Ends all connections and the receive queue for kernels: threads that wait return
 * CONNECTION_ABORTED. The context can then only be stopped. Any thread, but not while another one
 * exports a connection or stops the context.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_rdma_abort(struct doca_rdma *rdma);

/**
 * Sets the time limit of waits in kernels, for all connections and the receive queue. Default:
 * 60 s.
 *
 * @param ns nanoseconds; 0: no limit
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_rdma_set_wait_limit(struct doca_rdma *rdma, uint64_t ns);

/**
 * Returns the queue pair of a connection, for counters and errors (gdaki.h). It is valid until the
 * context is stopped.
 */
doca_error_t gdk_rdma_connection_get_qp(const struct doca_rdma_connection *rdma_connection,
					struct doca_gpu_verbs_qp **qp);

/** Returns the index of a connection, by which kernels name it. */
doca_error_t gdk_rdma_connection_get_index(const struct doca_rdma_connection *rdma_connection,
					   uint32_t *connection_index);

#ifdef __cplusplus
}
#endif

#endif
