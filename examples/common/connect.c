/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Connects the queue pairs of an endpoint (RST, INIT, RTR, RTS), with the public API only.
 */
#include <string.h>

#include "common.h"

#define ACK_TIMEOUT 17 /* 4.096 us << 17: 537 ms; a loaded CPU may delay a software NIC */
#define RETRIES	    7
#define HOP_LIMIT   64

/* Makes a call. If it fails, prints the call and the error, and returns -1 from the function that
 * uses the macro. */
#define SET(call) \
	do { \
		if (ex_check(call, #call)) \
			return -1; \
	} while (0)

static enum doca_verbs_addr_type addr_type(const struct ex_endpoint *ep)
{
	union ibv_gid gid;

	if (ep->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return ep->port.flags & IBV_QPF_GRH_REQUIRED ? DOCA_VERBS_ADDR_TYPE_IB_GRH
							     : DOCA_VERBS_ADDR_TYPE_IB_NO_GRH;
	memcpy(gid.raw, ep->local.gid, sizeof(gid.raw));
	return ex_gid_is_ipv4(&gid) ? DOCA_VERBS_ADDR_TYPE_IPv4 : DOCA_VERBS_ADDR_TYPE_IPv6;
}

static int fill_ah(const struct ex_endpoint *ep, const struct ex_peer *peer,
		   doca_verbs_ah_attr_t *ah)
{
	struct doca_verbs_gid gid;

	memcpy(gid.raw, peer->gid, sizeof(gid.raw));
	SET(doca_verbs_ah_attr_set_addr_type(ah, addr_type(ep)));
	SET(doca_verbs_ah_attr_set_gid(ah, gid));
	SET(doca_verbs_ah_attr_set_sgid_index(ah, ep->gid_index));
	SET(doca_verbs_ah_attr_set_hop_limit(ah, HOP_LIMIT));
	SET(doca_verbs_ah_attr_set_sl(ah, 0));
	SET(doca_verbs_ah_attr_set_dlid(ah, peer->lid));
	return 0;
}

static int fill_qp_attr(const struct ex_endpoint *ep, const struct ex_peer *peer,
			doca_verbs_ah_attr_t *ah, doca_verbs_qp_attr_t *attr)
{
	uint32_t mtu = peer->mtu < ep->local.mtu ? peer->mtu : ep->local.mtu;
	uint32_t reads = peer->reads < ep->local.reads ? peer->reads : ep->local.reads;

	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return ex_error("invalid MTU code %u of the peer", peer->mtu);
	/* enum ibv_mtu counts from 1, enum doca_verbs_mtu_size from 0 */
	SET(doca_verbs_qp_attr_set_path_mtu(attr, (enum doca_verbs_mtu_size)(mtu - 1)));
	SET(doca_verbs_qp_attr_set_port_num(attr, ep->port_num));
	SET(doca_verbs_qp_attr_set_pkey_index(attr, 0));
	SET(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	SET(doca_verbs_qp_attr_set_allow_remote_read(attr, 1));
	SET(doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC));
	SET(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	SET(doca_verbs_qp_attr_set_dest_qp_num(attr, peer->qpn));
	SET(doca_verbs_qp_attr_set_rq_psn(attr, peer->psn));
	SET(doca_verbs_qp_attr_set_sq_psn(attr, ep->local.psn));
	SET(doca_verbs_qp_attr_set_max_dest_rd_atomic(attr, (uint8_t)ep->local.reads));
	SET(doca_verbs_qp_attr_set_max_rd_atomic(attr, (uint8_t)reads));
	SET(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	SET(doca_verbs_qp_attr_set_ack_timeout(attr, ACK_TIMEOUT));
	SET(doca_verbs_qp_attr_set_retry_cnt(attr, RETRIES));
	SET(doca_verbs_qp_attr_set_rnr_retry(attr, 1));
	return 0;
}

static int walk_states(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr)
{
	static const struct {
		enum doca_verbs_qp_state next;
		int mask;
	} steps[] = {
		{ DOCA_VERBS_QP_STATE_INIT,
		  DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
			  DOCA_VERBS_QP_ATTR_ATOMIC_MODE | DOCA_VERBS_QP_ATTR_PKEY_INDEX |
			  DOCA_VERBS_QP_ATTR_PORT_NUM },
		{ DOCA_VERBS_QP_STATE_RTR,
		  DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
			  DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
			  DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER |
			  DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC },
		{ DOCA_VERBS_QP_STATE_RTS,
		  DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
			  DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY |
			  DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		SET(doca_verbs_qp_attr_set_next_state(attr, steps[i].next));
		SET(doca_verbs_qp_modify(qp, attr, steps[i].mask | DOCA_VERBS_QP_ATTR_NEXT_STATE));
	}
	return 0;
}

static int connect_qp(struct ex_endpoint *ep, doca_verbs_qp_t *qp, const struct ex_peer *peer)
{
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr;
	int rc = -1;

	if (ex_check(doca_verbs_ah_attr_create(ep->dev, &ah), "address handle"))
		return -1;
	if (ex_check(doca_verbs_qp_attr_create(&attr), "queue pair attributes"))
		goto destroy_ah;
	if (!fill_ah(ep, peer, ah) && !fill_qp_attr(ep, peer, ah, attr))
		rc = walk_states(qp, attr);
	doca_verbs_qp_attr_destroy(attr);
destroy_ah:
	doca_verbs_ah_attr_destroy(ah);
	return rc;
}

int ex_queue_connect(struct ex_endpoint *ep, uint32_t queue, const struct ex_peer *peer)
{
	struct ex_queue *q = &ep->queues[queue];
	struct ex_peer other = ep->companions_cross ? *peer : ep->local;

	other.qpn = ep->companions_cross ? peer->companion_qpn : q->companion_qpn;
	if (q->companion && connect_qp(ep, q->companion->qp, &other))
		return -1;
	return connect_qp(ep, q->qp->qp, peer);
}

int ex_endpoint_connect(struct ex_endpoint *ep, const struct ex_peer *peer)
{
	return ex_queue_connect(ep, 0, peer);
}
