/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Flow rules: they steer received packets to receive queues, without DOCA Flow, which stands on
 * them (doca_flow.h). A rule is one entry of the root table of the NIC's port. Packets that match
 * no rule of any process go to the kernel's network stack. Rules need CAP_NET_RAW, and end with the
 * process. Return values and out-parameters: see doca_error.h.
 */
#ifndef GDK_ETH_STEER_H
#define GDK_ETH_STEER_H

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_eth_rxq;
struct gdk_eth_rule; /* a flow rule */

/** Headers of a packet. All numbers are big-endian, as in the packet. */
struct gdk_eth_fields {
	uint8_t dst_mac[6];  /**< destination address of Ethernet */
	uint8_t src_mac[6];  /**< source address of Ethernet */
	uint16_t ether_type; /**< type of layer 3, behind a VLAN tag */
	uint16_t vlan_id;  /**< number of the VLAN, 12 bits; a packet without tag does not match */
	uint32_t src_ip;   /**< source address of IPv4 */
	uint32_t dst_ip;   /**< destination address of IPv4 */
	uint16_t src_port; /**< source port of UDP or TCP */
	uint16_t dst_port; /**< destination port of UDP or TCP */
	uint8_t ip_protocol; /**< protocol of layer 4 */
	uint8_t tcp_flags;   /**< flags of TCP */
	uint8_t fragment;    /**< 1: the packet is a fragment of an IP packet, 0: it is not */
};

/**
 * Packets that a rule matches: those whose headers are equal to value in all bits of mask. All
 * bytes 0: all packets. Masks that need others, of all bits: src_ip and dst_ip need ether_type
 * IPv4; ip_protocol and fragment need ether_type IPv4 or IPv6; src_port and dst_port need
 * ip_protocol UDP or TCP; tcp_flags needs ip_protocol TCP.
 */
struct gdk_eth_match {
	struct gdk_eth_fields value; /**< 0 in all bits that are 0 in mask */
	struct gdk_eth_fields mask;  /**< bits that are compared */
};

/** Headers whose hash selects one of several queues. */
enum gdk_eth_hash {
	GDK_ETH_HASH_NONE = 0,	    /**< no hash: one queue */
	GDK_ETH_HASH_IPV4 = 1 << 0, /**< both addresses; the rule must match IPv4 */
	GDK_ETH_HASH_UDP = 1 << 1,  /**< both ports, if the rule matches UDP */
	GDK_ETH_HASH_TCP = 1 << 2,  /**< both ports, if the rule matches TCP */
};

/** The key of the Toeplitz hash: Microsoft's, for which it publishes hashes of examples. */
#define GDK_ETH_HASH_KEY \
	{ \
		0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, \
			0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, \
			0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, \
			0xac, 0x01, 0xfa \
	}

/** The highest number of a priority. */
#define GDK_ETH_PRIORITY_LAST 15

/** The most queues of one rule. */
#define GDK_ETH_QUEUES_MAX 512

/**
 * Steers packets to receive queues. With several queues, the Toeplitz hash of the headers that hash
 * names selects one (key: GDK_ETH_HASH_KEY; input: source address, destination address, source
 * port, destination port): queue (h mod m) mod n. m is n if n is a power of two, otherwise 16 times
 * the next power of two. Of two rules that match, the one with the smaller priority applies. If
 * both have the same priority and the same match, each gets a copy of the packet; if they have the
 * same priority and different matches, it is not defined which applies. Destroy the rule with
 * gdk_eth_steer_destroy(), before the queues. Any thread may call this.
 *
 * @param[in] dev NIC of the queues
 * @param[in] match packets
 * @param[in] rxqs started receive queues of dev
 * @param[in] n number of queues, 0: matching packets are dropped
 * @param[in] hash bits of enum gdk_eth_hash
 * @param[in] priority 0 to GDK_ETH_PRIORITY_LAST. A rule for multicast, by dst_mac or dst_ip, must
 *            have GDK_ETH_PRIORITY_LAST, because the kernel puts it behind all others
 * @param[out] rule the rule, which is active
 * @retval DOCA_ERROR_NOT_SUPPORTED hash names headers that match does not; the NIC is not Ethernet
 * @retval DOCA_ERROR_NOT_PERMITTED the process does not have CAP_NET_RAW
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER kernel or firmware refuses the rule
 */
doca_error_t gdk_eth_steer(struct doca_dev *dev, const struct gdk_eth_match *match,
			   struct doca_eth_rxq *const rxqs[], uint32_t n, uint32_t hash,
			   uint32_t priority, struct gdk_eth_rule **rule);

/**
 * Removes a rule. Packets that the NIC has already steered still arrive. Any thread may call this.
 *
 * @retval DOCA_ERROR_DRIVER kernel or firmware refuses; the rule can be destroyed again
 */
doca_error_t gdk_eth_steer_destroy(struct gdk_eth_rule *rule);

/**
 * Counts the packets and bytes that a rule has matched. Any thread may call this.
 *
 * @retval DOCA_ERROR_DRIVER the firmware refuses the query
 */
doca_error_t gdk_eth_steer_query(struct gdk_eth_rule *rule, uint64_t *packets, uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
