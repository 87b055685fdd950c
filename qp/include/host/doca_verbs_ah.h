/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Address handles: the path to the remote port. A QP gets its path in the transition
 * INIT to RTR.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h. Getters
 * return 0, or a GID of zeroes, for NULL.
 */
#ifndef DOCA_VERBS_AH_H
#define DOCA_VERBS_AH_H

#include "host/doca_verbs_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A path to a remote port. Opaque. */
typedef struct doca_verbs_ah_attr_t doca_verbs_ah_attr_t;

/**
 * Creates a path object. Free it with doca_verbs_ah_attr_destroy(). All attributes are 0, which
 * means: IPv4, GID index 0, the rate of the port, hop limit 64.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_ah_attr_create(doca_dev_t *net_dev, doca_verbs_ah_attr_t **ah_attr);

/** Frees a path object. Attribute objects of QPs have their own copy of the path. */
doca_error_t doca_verbs_ah_attr_destroy(doca_verbs_ah_attr_t *ah_attr);

/**
 * Sets the GID of the remote port.
 *
 * @param gid in network byte order; an IPv4 address is "::ffff:a.b.c.d"
 */
doca_error_t doca_verbs_ah_attr_set_gid(doca_verbs_ah_attr_t *ah_attr, struct doca_verbs_gid gid);

/** Returns the GID of the remote port, in network byte order. */
struct doca_verbs_gid doca_verbs_ah_get_gid(const doca_verbs_ah_attr_t *ah_attr);

/**
 * Sets the kind of path. For RoCE the GID decides between IPv4 and IPv6: the two values have the
 * same effect. Default: IPv4.
 */
doca_error_t doca_verbs_ah_attr_set_addr_type(doca_verbs_ah_attr_t *ah_attr,
					      enum doca_verbs_addr_type addr_type);

/** Returns the kind of path. */
enum doca_verbs_addr_type doca_verbs_ah_get_addr_type(const doca_verbs_ah_attr_t *ah_attr);

/**
 * Sets the LID of the remote port. RoCE ignores it.
 *
 * @param dlid at most 65535
 */
doca_error_t doca_verbs_ah_attr_set_dlid(doca_verbs_ah_attr_t *ah_attr, uint32_t dlid);

/** Returns the LID of the remote port. */
uint32_t doca_verbs_ah_get_dlid(const doca_verbs_ah_attr_t *ah_attr);

/**
 * InfiniBand: sets the service level. RoCE: the low three bits set the priority, which is also in
 * the VLAN tag if the source GID belongs to a VLAN.
 *
 * @param sl at most 15
 */
doca_error_t doca_verbs_ah_attr_set_sl(doca_verbs_ah_attr_t *ah_attr, uint8_t sl);

/** Returns the service level or priority. */
uint8_t doca_verbs_ah_get_sl(const doca_verbs_ah_attr_t *ah_attr);

/**
 * Sets the index of the local GID, as in ibv_query_gid(). For RoCE it decides between RoCE v1 and
 * v2, IPv4 and IPv6, with VLAN and without. If the path has a GRH (always with RoCE), the
 * transition to RTR fails if the port has no GID at this index.
 */
doca_error_t doca_verbs_ah_attr_set_sgid_index(doca_verbs_ah_attr_t *ah_attr, uint8_t sgid_index);

/** Returns the index of the local GID. */
uint8_t doca_verbs_ah_get_sgid_index(const doca_verbs_ah_attr_t *ah_attr);

/**
 * Sets the limit of the send rate.
 *
 * @param static_rate code of the NIC, 4 bits: a value of enum ibv_rate plus 5; 0: the rate of the
 *         port
 */
doca_error_t doca_verbs_ah_attr_set_static_rate(doca_verbs_ah_attr_t *ah_attr, uint8_t static_rate);

/** Returns the code of the send rate limit. */
uint8_t doca_verbs_ah_get_static_rate(const doca_verbs_ah_attr_t *ah_attr);

/** Sets the hop limit of the GRH or IP header. 0 (default): 64. */
doca_error_t doca_verbs_ah_attr_set_hop_limit(doca_verbs_ah_attr_t *ah_attr, uint8_t hop_limit);

/** Returns the hop limit as it was set, so 0 means 64. */
uint8_t doca_verbs_ah_get_hop_limit(const doca_verbs_ah_attr_t *ah_attr);

/** Sets the traffic class of the GRH or IP header. Its upper six bits are the DSCP. */
doca_error_t doca_verbs_ah_attr_set_traffic_class(doca_verbs_ah_attr_t *ah_attr,
						  uint8_t traffic_class);

/** Returns the traffic class. */
uint8_t doca_verbs_ah_get_traffic_class(const doca_verbs_ah_attr_t *ah_attr);

#ifdef __cplusplus
}
#endif

#endif
