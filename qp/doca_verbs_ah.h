/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Address handles: the path to the remote port, given to a QP on its way to RTR. */
#ifndef DOCA_VERBS_AH_H
#define DOCA_VERBS_AH_H

#include "doca_verbs_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

enum doca_verbs_addr_type {
	DOCA_VERBS_ADDR_TYPE_IPv4,	/* RoCE */
	DOCA_VERBS_ADDR_TYPE_IPv6,	/* RoCE */
	DOCA_VERBS_ADDR_TYPE_IB_GRH,	/* InfiniBand with global route */
	DOCA_VERBS_ADDR_TYPE_IB_NO_GRH, /* InfiniBand, LID only; with the GID if the port
					 * requires a GRH (IBV_QPF_GRH_REQUIRED) */
};

typedef struct doca_verbs_ah_attr_t doca_verbs_ah_attr_t;

/* All attributes are 0: IPv4, GID index 0, hop limit 64. NO_MEMORY. */
doca_error_t doca_verbs_ah_attr_create(doca_dev_t *net_dev, doca_verbs_ah_attr_t **ah_attr);
doca_error_t doca_verbs_ah_attr_destroy(doca_verbs_ah_attr_t *ah_attr);

/* Getters return zeroes for a NULL argument. */

/* The remote port's GID, in network order; an IPv4 address is ::ffff:a.b.c.d. */
doca_error_t doca_verbs_ah_attr_set_gid(doca_verbs_ah_attr_t *ah_attr, struct doca_verbs_gid gid);
struct doca_verbs_gid doca_verbs_ah_get_gid(const doca_verbs_ah_attr_t *ah_attr);

/* Must fit the port's link layer; the two kinds of IP address are told apart by the GID. */
doca_error_t doca_verbs_ah_attr_set_addr_type(doca_verbs_ah_attr_t *ah_attr,
					      enum doca_verbs_addr_type addr_type);
enum doca_verbs_addr_type doca_verbs_ah_get_addr_type(const doca_verbs_ah_attr_t *ah_attr);

/* InfiniBand: the remote LID and the service level, at most 15. RoCE: its low three
 * bits are the priority, also of the VLAN tag if the source GID is on a VLAN. */
doca_error_t doca_verbs_ah_attr_set_dlid(doca_verbs_ah_attr_t *ah_attr, uint32_t dlid);
uint32_t doca_verbs_ah_get_dlid(const doca_verbs_ah_attr_t *ah_attr);
doca_error_t doca_verbs_ah_attr_set_sl(doca_verbs_ah_attr_t *ah_attr, uint8_t sl);
uint8_t doca_verbs_ah_get_sl(const doca_verbs_ah_attr_t *ah_attr);

/* Index of the local port's GID, as ibv_query_gid has it: it decides between RoCE v1 and
 * v2, IPv4 and IPv6, with VLAN and without. */
doca_error_t doca_verbs_ah_attr_set_sgid_index(doca_verbs_ah_attr_t *ah_attr, uint8_t sgid_index);
uint8_t doca_verbs_ah_get_sgid_index(const doca_verbs_ah_attr_t *ah_attr);

/* The NIC's own code, 4 bits: an enum ibv_rate and 5; 0 is as fast as the port. */
doca_error_t doca_verbs_ah_attr_set_static_rate(doca_verbs_ah_attr_t *ah_attr, uint8_t static_rate);
uint8_t doca_verbs_ah_get_static_rate(const doca_verbs_ah_attr_t *ah_attr);

/* Of the GRH or IP header. Hop limit 0 is taken as 64; the six upper bits of the traffic
 * class are the DSCP. */
doca_error_t doca_verbs_ah_attr_set_hop_limit(doca_verbs_ah_attr_t *ah_attr, uint8_t hop_limit);
uint8_t doca_verbs_ah_get_hop_limit(const doca_verbs_ah_attr_t *ah_attr);
doca_error_t doca_verbs_ah_attr_set_traffic_class(doca_verbs_ah_attr_t *ah_attr,
						  uint8_t traffic_class);
uint8_t doca_verbs_ah_get_traffic_class(const doca_verbs_ah_attr_t *ah_attr);

#ifdef __cplusplus
}
#endif

#endif
