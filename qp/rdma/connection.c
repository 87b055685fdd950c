/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Connections: a queue pair each, which takes receives from the queue of the RDMA object. */
#include "qp/rdma/rdma.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"

/* ---- creation ---- */

/* If CPU threads ring the doorbells, a service of the RDMA object does so. */
static doca_error_t serve(struct doca_rdma *rdma, struct doca_gpu_verbs_qp *qp)
{
	doca_error_t err = DOCA_SUCCESS;

	if (!qp->cpu_proxy)
		return DOCA_SUCCESS;
	if (!rdma->service)
		err = doca_gpu_verbs_create_service(&rdma->service);
	return err == DOCA_SUCCESS ? doca_gpu_verbs_service_monitor_qp(rdma->service, qp) : err;
}

static doca_error_t create_qp(struct doca_rdma *rdma, struct doca_rdma_connection *conn)
{
	const struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = rdma->ctx.gpu,
		.net_dev = rdma->ctx.dev,
		.sq_nwqe = (uint16_t)rdma->send_size, /* at most 32768: fits */
		.nic_handler = rdma->nic_handler,
		.send_dbr_mode_ext = GDK_SEND_DBR_MODE_AUTO,
	};
	doca_error_t err = gdk_verbs_create_qp_srq_hl(&attr, rdma->srq, rdma->cq_rq, 0, &conn->qp);

	if (err == DOCA_SUCCESS)
		err = serve(rdma, conn->qp->qp_gverbs);
	if (err == DOCA_SUCCESS)
		err = gdk_verbs_qp_set_wait_limit(conn->qp->qp_gverbs, rdma->wait_limit);
	if (err == DOCA_SUCCESS)
		err = gdk_rdma_details_fill(rdma, conn->qp->qp, &conn->details);
	/* No message can arrive before the connection is established. */
	if (err == DOCA_SUCCESS)
		err = gdk_rdma_publish_qpn(rdma, be32toh(conn->details.qpn), conn->index);
	return err;
}

doca_error_t doca_rdma_export(struct doca_rdma *rdma, const void **local_connection_details,
			      size_t *local_connection_details_size,
			      struct doca_rdma_connection **rdma_connection)
{
	struct doca_rdma_connection *conn;
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_PTR(local_connection_details);
	GDK_CHECK_PTR(local_connection_details_size);
	GDK_CHECK_PTR(rdma_connection);
	err = gdk_rdma_must_run(rdma, __func__);
	if (err != DOCA_SUCCESS)
		return err;
	if (rdma->num_conns == rdma->max_conns) {
		gdk_err("%s: the RDMA object has its %u connections; set more with "
			"doca_rdma_set_max_num_connections()",
			__func__, rdma->max_conns);
		return DOCA_ERROR_FULL;
	}
	conn = calloc(1, sizeof(*conn));
	if (!conn) {
		gdk_err("no memory for a connection");
		return DOCA_ERROR_NO_MEMORY;
	}
	conn->rdma = rdma;
	conn->index = rdma->num_conns;
	err = create_qp(rdma, conn);
	if (err != DOCA_SUCCESS) {
		if (conn->qp)
			(void)doca_gpu_verbs_destroy_qp_hl(conn->qp);
		free(conn);
		return err;
	}
	rdma->conns[rdma->num_conns++] = conn;
	*local_connection_details = &conn->details;
	*local_connection_details_size = sizeof(conn->details);
	*rdma_connection = conn;
	return DOCA_SUCCESS;
}

doca_error_t gdk_rdma_connections_destroy(struct doca_rdma *rdma)
{
	struct doca_rdma_connection *conn;
	doca_error_t err;

	while (rdma->num_conns) {
		conn = rdma->conns[rdma->num_conns - 1];
		err = doca_gpu_verbs_destroy_qp_hl(conn->qp);
		if (err != DOCA_SUCCESS)
			return err;
		free(conn);
		rdma->num_conns--;
	}
	if (!rdma->service)
		return DOCA_SUCCESS;
	err = doca_gpu_verbs_destroy_service(rdma->service);
	if (err == DOCA_SUCCESS)
		rdma->service = NULL;
	return err;
}

/* ---- state ---- */

static doca_error_t check_details(const void *details, size_t size, struct gdk_rdma_details *out)
{
	const char *why = NULL;

	memset(out, 0, sizeof(*out));
	memcpy(out, details, size < sizeof(*out) ? size : sizeof(*out));
	if (memcmp(out->magic, GDK_RDMA_MAGIC, sizeof(out->magic))) {
		why = "doca_rdma_export() of gdaki has not made them";
	} else if (be32toh(out->version) != GDK_RDMA_VERSION) {
		gdk_err("doca_rdma_connect: the remote connection details have version %u "
			"(expected %u): use the same gdaki on both sides",
			be32toh(out->version), GDK_RDMA_VERSION);
		return DOCA_ERROR_UNSUPPORTED_VERSION;
	} else if (size != sizeof(*out)) {
		why = "their size is wrong";
	} else if (be32toh(out->mtu) < IBV_MTU_256 || be32toh(out->mtu) > IBV_MTU_4096 ||
		   be32toh(out->qpn) >> 24 || be32toh(out->psn) >> 24 || be32toh(out->lid) >> 16 ||
		   be32toh(out->reads) >> 8) {
		why = "a number in them is out of range";
	}
	if (!why)
		return DOCA_SUCCESS;
	gdk_err("doca_rdma_connect: invalid remote connection details of %zu bytes: %s", size, why);
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t check_connection(const struct doca_rdma *rdma,
				     const struct doca_rdma_connection *conn)
{
	if (conn->rdma != rdma) {
		gdk_err("doca_rdma_connect: the connection belongs to another RDMA object");
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (conn->state == GDK_RDMA_EXPORTED)
		return DOCA_SUCCESS;
	gdk_err("doca_rdma_connect: connection %u %s; create another one with doca_rdma_export()",
		conn->index, conn->state == GDK_RDMA_CONNECTED ? "is connected" : "has ended");
	return DOCA_ERROR_BAD_STATE;
}

static doca_error_t establish(struct doca_rdma_connection *conn,
			      const struct gdk_rdma_details *remote)
{
	struct doca_gpu_dev_verbs_qp *dev;
	doca_error_t err = gdk_rdma_qp_connect(conn, remote);

	if (err == DOCA_SUCCESS)
		err = doca_gpu_verbs_get_qp_dev(conn->qp->qp_gverbs, &dev);
	if (err == DOCA_SUCCESS)
		err = gdk_rdma_publish_qp(conn->rdma, conn->index, dev);
	return err;
}

doca_error_t doca_rdma_connect(struct doca_rdma *rdma, const void *remote_connection_details,
			       size_t remote_connection_details_size,
			       struct doca_rdma_connection *rdma_connection)
{
	struct gdk_rdma_details remote;
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_PTR(remote_connection_details);
	GDK_CHECK_PTR(rdma_connection);
	err = gdk_rdma_must_run(rdma, __func__);
	if (err == DOCA_SUCCESS)
		err = check_connection(rdma, rdma_connection);
	if (err == DOCA_SUCCESS)
		err = check_details(remote_connection_details, remote_connection_details_size,
				    &remote);
	if (err != DOCA_SUCCESS)
		return err;
	err = establish(rdma_connection, &remote);
	if (err != DOCA_SUCCESS) {
		/* The queue pair may be between two states. */
		rdma_connection->state = GDK_RDMA_ENDED;
		rdma_connection->events |= GDK_RDMA_EVENT_FAILURE;
		return err;
	}
	rdma_connection->state = GDK_RDMA_CONNECTED;
	rdma_connection->events |= GDK_RDMA_EVENT_ESTABLISHED;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma_connection);
	if (rdma_connection->state != GDK_RDMA_CONNECTED) {
		gdk_err("%s: connection %u is not connected", __func__, rdma_connection->index);
		return DOCA_ERROR_BAD_STATE;
	}
	err = gdk_verbs_qp_abort(rdma_connection->qp->qp_gverbs);
	if (err == DOCA_SUCCESS)
		err = gdk_rdma_qp_end(rdma_connection);
	if (err != DOCA_SUCCESS)
		return err;
	rdma_connection->state = GDK_RDMA_ENDED;
	rdma_connection->events |= GDK_RDMA_EVENT_DISCONNECTION;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_set_user_data(struct doca_rdma_connection *rdma_connection,
						union doca_data connection_user_data)
{
	GDK_CHECK_PTR(rdma_connection);
	rdma_connection->user_data = connection_user_data;
	return DOCA_SUCCESS;
}

/* ---- events ---- */

/* Delivers one event. A callback may stop the context. */
static bool deliver_one(struct doca_rdma *rdma, struct doca_rdma_connection *conn)
{
	const struct gdk_rdma_callbacks cb = rdma->callbacks;
	const unsigned int event = conn->events & -conn->events;

	if (!event)
		return false;
	conn->events &= ~event;
	if (event == GDK_RDMA_EVENT_ESTABLISHED && cb.established)
		cb.established(conn, conn->user_data, rdma->ctx.user_data);
	else if (event == GDK_RDMA_EVENT_FAILURE && cb.failure)
		cb.failure(conn, conn->user_data, rdma->ctx.user_data);
	else if (event == GDK_RDMA_EVENT_DISCONNECTION && cb.disconnection)
		cb.disconnection(conn, conn->user_data, rdma->ctx.user_data);
	return true;
}

/* One event for each call, because the callback may destroy all connections and the object. */
bool gdk_rdma_deliver(struct doca_rdma *rdma)
{
	uint32_t i;

	for (i = 0; i < rdma->num_conns; i++)
		if (deliver_one(rdma, rdma->conns[i]))
			return true;
	return false;
}

/* ---- additions ---- */

doca_error_t gdk_rdma_connection_get_qp(const struct doca_rdma_connection *rdma_connection,
					struct doca_gpu_verbs_qp **qp)
{
	GDK_CHECK_PTR(rdma_connection);
	GDK_CHECK_PTR(qp);
	*qp = rdma_connection->qp->qp_gverbs;
	return DOCA_SUCCESS;
}

doca_error_t gdk_rdma_connection_get_index(const struct doca_rdma_connection *rdma_connection,
					   uint32_t *connection_index)
{
	GDK_CHECK_PTR(rdma_connection);
	GDK_CHECK_PTR(connection_index);
	*connection_index = rdma_connection->index;
	return DOCA_SUCCESS;
}

doca_error_t gdk_rdma_must_run(const struct doca_rdma *rdma, const char *func)
{
	if (rdma->ctx.state == GDK_CTX_STATE_RUNNING)
		return DOCA_SUCCESS;
	gdk_err("%s: the RDMA context does not run; call doca_ctx_start() first", func);
	return DOCA_ERROR_BAD_STATE;
}
