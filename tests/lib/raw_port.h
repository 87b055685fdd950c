/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The MAC of a port, and the rule that steers frames to a raw packet QP, for all programs that use
 * libibverbs alone. */
#ifndef RAW_PORT_H
#define RAW_PORT_H

#include <infiniband/verbs.h>
#include <string.h>

/* The MAC of port 1, from its link-local GID (RFC 4291, appendix A). Returns 0, or an errno. */
static inline int raw_port_mac(struct ibv_context *ctx, uint8_t mac[6])
{
	union ibv_gid gid;
	const int err = ibv_query_gid(ctx, 1, 0, &gid);

	if (err)
		return err;
	mac[0] = gid.raw[8] ^ 2;
	memcpy(mac + 1, gid.raw + 9, 2);
	memcpy(mac + 3, gid.raw + 13, 3);
	return 0;
}

/* Sends frames with this destination to a QP. Returns NULL, and sets errno, if that fails. */
static inline struct ibv_flow *raw_flow_try(struct ibv_qp *qp, const uint8_t dmac[6])
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL,
			  .size = sizeof(rule),
			  .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};

	memcpy(rule.eth.val.dst_mac, dmac, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	return ibv_create_flow(qp, &rule.attr);
}

#endif
