/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The port and the GID of an RDMA object, and the states of its queue pairs. */
#include "qp/rdma/rdma.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "core/log/log.h"
#include "qp/verbs/qp.h"

#define PORT	    1
#define PSN_MASK    0xffffffu
#define ACK_TIMEOUT 17 /* 4.096 us << 17: 537 ms */
#define RETRIES	    7
#define RNR_FOREVER 7  /* the remote side may post receives later; the time limit ends waits */
#define RNR_TIMER   12 /* 640 us: a shorter time makes the NIC repeat messages many times */
#define HOP_LIMIT   64

/* ---- port ---- */

/* The first RoCE v2 GID with an IPv4 address, otherwise the first RoCE v2 GID, otherwise 0. */
static uint32_t default_gid(struct ibv_context *ctx, int num)
{
	struct ibv_gid_entry e;
	int i, found = -1;

	for (i = 0; i < num; i++) {
		if (ibv_query_gid_ex(ctx, PORT, (uint32_t)i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (gdk_gid_is_v4(e.gid.raw))
			return (uint32_t)i;
		if (found < 0)
			found = i;
	}
	return found < 0 ? 0 : (uint32_t)found;
}

static bool is_empty(const union ibv_gid *gid)
{
	static const union ibv_gid none;

	return !memcmp(gid, &none, sizeof(none));
}

doca_error_t gdk_rdma_port_open(struct doca_rdma *rdma)
{
	struct ibv_context *ctx = rdma->ctx.dev->ctx;
	const char *name = ibv_get_device_name(ctx->device);
	struct gdk_rdma_port *port = &rdma->port;

	if (ibv_query_port(ctx, PORT, &port->attr)) {
		gdk_err("%s: cannot query port %d: %s", name, PORT, strerror(errno));
		return DOCA_ERROR_DRIVER;
	}
	port->num = PORT;
	port->roce = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->gid_index = rdma->gid_index;
	if (port->gid_index == GDK_RDMA_GID_AUTO)
		port->gid_index = port->roce ? default_gid(ctx, port->attr.gid_tbl_len) : 0;
	if (port->gid_index >= (uint32_t)port->attr.gid_tbl_len ||
	    ibv_query_gid(ctx, PORT, (int)port->gid_index, &port->gid)) {
		gdk_err("%s: port %d has no GID %u (it has %d); call doca_rdma_set_gid_index() "
			"with another index",
			name, PORT, port->gid_index, port->attr.gid_tbl_len);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (is_empty(&port->gid)) {
		gdk_err("%s: GID %u of port %d is empty; call doca_rdma_set_gid_index() with "
			"another index (ibv_devinfo -v lists the GIDs)",
			name, port->gid_index, PORT);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_rdma_details_fill(const struct doca_rdma *rdma, doca_verbs_qp_t *qp,
				   struct gdk_rdma_details *details)
{
	uint32_t psn, qpn;
	doca_error_t err = doca_verbs_qp_get_qpn(qp, &qpn);

	if (err != DOCA_SUCCESS)
		return err;
	/* Packets of an earlier connection between two queue pairs of the same numbers, which are
	 * still on their way, must not be accepted. */
	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != (ssize_t)sizeof(psn))
		psn = (uint32_t)(uintptr_t)details ^ qpn << 12;
	memset(details, 0, sizeof(*details));
	memcpy(details->magic, GDK_RDMA_MAGIC, sizeof(details->magic));
	details->version = htobe32(GDK_RDMA_VERSION);
	details->qpn = htobe32(qpn);
	details->psn = htobe32(psn & PSN_MASK);
	details->lid = htobe32(rdma->port.attr.lid);
	details->mtu = htobe32(rdma->port.attr.active_mtu);
	details->reads = htobe32(rdma->ctx.dev->caps.max_qp_rd_atom);
	memcpy(details->gid, rdma->port.gid.raw, sizeof(details->gid));
	return DOCA_SUCCESS;
}

/* ---- connection ---- */

static enum doca_verbs_addr_type addr_type(const struct doca_rdma *rdma)
{
	if (rdma->port.roce)
		return gdk_gid_is_v4(rdma->port.gid.raw) ? DOCA_VERBS_ADDR_TYPE_IPv4
							 : DOCA_VERBS_ADDR_TYPE_IPv6;
	return rdma->grh || rdma->port.attr.flags & IBV_QPF_GRH_REQUIRED
		       ? DOCA_VERBS_ADDR_TYPE_IB_GRH
		       : DOCA_VERBS_ADDR_TYPE_IB_NO_GRH;
}

static doca_error_t fill_ah(const struct doca_rdma *rdma, const struct gdk_rdma_details *remote,
			    doca_verbs_ah_attr_t *ah)
{
	struct doca_verbs_gid gid;

	memcpy(gid.raw, remote->gid, sizeof(gid.raw));
	return doca_verbs_ah_attr_set_addr_type(ah, addr_type(rdma)) ?:
	       doca_verbs_ah_attr_set_gid(ah, gid) ?:
	       doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)rdma->port.gid_index) ?:
	       doca_verbs_ah_attr_set_hop_limit(ah, HOP_LIMIT) ?:
	       doca_verbs_ah_attr_set_dlid(ah, be32toh(remote->lid));
}

static doca_error_t fill_attr(const struct doca_rdma_connection *conn,
			      const struct gdk_rdma_details *remote, doca_verbs_ah_attr_t *ah,
			      doca_verbs_qp_attr_t *attr)
{
	const struct doca_rdma *rdma = conn->rdma;
	const uint8_t own_reads = rdma->ctx.dev->caps.max_qp_rd_atom;
	const uint8_t most = rdma->ctx.dev->caps.max_qp_init_rd_atom;
	uint32_t reads = be32toh(remote->reads), mtu = be32toh(remote->mtu);

	if (mtu > (uint32_t)rdma->port.attr.active_mtu)
		mtu = (uint32_t)rdma->port.attr.active_mtu;
	/* enum ibv_mtu counts from 1, enum doca_verbs_mtu_size from 0. */
	return doca_verbs_qp_attr_set_path_mtu(attr, (enum doca_verbs_mtu_size)(mtu - 1)) ?:
	       doca_verbs_qp_attr_set_port_num(attr, rdma->port.num) ?:
	       doca_verbs_qp_attr_set_pkey_index(attr, 0) ?:
	       doca_verbs_qp_attr_set_allow_remote_write(
		       attr, !!(rdma->permissions & DOCA_ACCESS_FLAG_RDMA_WRITE)) ?:
	       doca_verbs_qp_attr_set_allow_remote_read(
		       attr, !!(rdma->permissions & DOCA_ACCESS_FLAG_RDMA_READ)) ?:
	       doca_verbs_qp_attr_set_atomic_mode(attr,
						  rdma->permissions & DOCA_ACCESS_FLAG_RDMA_ATOMIC
							  ? DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC
							  : DOCA_VERBS_QP_ATOMIC_MODE_NONE) ?:
	       doca_verbs_qp_attr_set_ah_attr(attr, ah) ?:
	       doca_verbs_qp_attr_set_dest_qp_num(attr, be32toh(remote->qpn)) ?:
	       doca_verbs_qp_attr_set_rq_psn(attr, be32toh(remote->psn)) ?:
	       doca_verbs_qp_attr_set_sq_psn(attr, be32toh(conn->details.psn)) ?:
	       doca_verbs_qp_attr_set_max_dest_rd_atomic(attr, own_reads) ?:
	       doca_verbs_qp_attr_set_max_rd_atomic(attr,
						    (uint8_t)(reads < most ? reads : most)) ?:
	       doca_verbs_qp_attr_set_min_rnr_timer(attr, RNR_TIMER) ?:
	       doca_verbs_qp_attr_set_ack_timeout(attr, ACK_TIMEOUT) ?:
	       doca_verbs_qp_attr_set_retry_cnt(attr, RETRIES) ?:
	       doca_verbs_qp_attr_set_rnr_retry(attr, RNR_FOREVER);
}

static doca_error_t move(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr,
			 enum doca_verbs_qp_state next, int mask)
{
	return doca_verbs_qp_attr_set_next_state(attr, next)
		       ?: doca_verbs_qp_modify(qp, attr, mask | DOCA_VERBS_QP_ATTR_NEXT_STATE);
}

static doca_error_t walk(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr)
{
	return move(qp, attr, DOCA_VERBS_QP_STATE_INIT,
		    DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
			    DOCA_VERBS_QP_ATTR_ATOMIC_MODE | DOCA_VERBS_QP_ATTR_PKEY_INDEX |
			    DOCA_VERBS_QP_ATTR_PORT_NUM) ?:
	       move(qp, attr, DOCA_VERBS_QP_STATE_RTR,
		    DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
			    DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
			    DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER |
			    DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC) ?:
	       move(qp, attr, DOCA_VERBS_QP_STATE_RTS,
		    DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
			    DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY |
			    DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC);
}

doca_error_t gdk_rdma_qp_connect(struct doca_rdma_connection *conn,
				 const struct gdk_rdma_details *remote)
{
	doca_verbs_qp_attr_t *attr = NULL;
	doca_verbs_ah_attr_t *ah;
	doca_error_t err = doca_verbs_ah_attr_create(conn->rdma->ctx.dev, &ah);

	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_qp_attr_create(&attr) ?:
	      fill_ah(conn->rdma, remote, ah) ?:
	      fill_attr(conn, remote, ah, attr) ?:
	      walk(conn->qp->qp, attr);
	if (attr)
		(void)doca_verbs_qp_attr_destroy(attr);
	(void)doca_verbs_ah_attr_destroy(ah);
	return err;
}

doca_error_t gdk_rdma_qp_end(struct doca_rdma_connection *conn)
{
	doca_verbs_qp_attr_t *attr;
	doca_error_t err = doca_verbs_qp_attr_create(&attr);

	if (err != DOCA_SUCCESS)
		return err;
	err = move(conn->qp->qp, attr, DOCA_VERBS_QP_STATE_ERR, 0);
	(void)doca_verbs_qp_attr_destroy(attr);
	return err;
}
