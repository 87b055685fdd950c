/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * DOCA Flow, in the form of version 3.3, for programs that steer packets to receive queues: one
 * control pipe as root, basic pipes, forwarding to pipes, queues (RSS) or nowhere, and counters.
 * Every other value is refused with DOCA_ERROR_NOT_SUPPORTED, and the log names the field. With
 * GDK_DOCA_FLOW_3_2 defined before this file, the functions that add entries have the form of
 * version 3.2. Return values and out-parameters: see doca_error.h. Any thread may call each
 * function; numbers in packets are big-endian.
 *
 * Pipes are not tables of the NIC: each path from the root to a forward is one rule of
 * gdk_eth_steer.h, and each miss of a pipe is another. An entry is active when the function that
 * adds it returns. Packets that the root does not match go to the kernel's network stack.
 */
#ifndef GDK_SDK_DOCA_FLOW_H
#define GDK_SDK_DOCA_FLOW_H

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_flow_actions;	  /* not supported */
struct doca_flow_action_descs;	  /* not supported */
struct doca_flow_cfg;		  /* settings of the library */
struct doca_flow_match_condition; /* not supported */
struct doca_flow_pipe;		  /* a pipe: a match and its entries */
struct doca_flow_pipe_cfg;	  /* settings of a pipe */
struct doca_flow_pipe_entry;	  /* an entry of a pipe */
struct doca_flow_port;		  /* a NIC that has pipes */
struct doca_flow_port_cfg;	  /* settings of a port */

/** The type of layer 3 in Ethernet headers, in CPU byte order. */
#define DOCA_FLOW_ETHER_TYPE_IPV4 0x0800

#define DOCA_FLOW_MATCH_TCP_FLAG_FIN 0x01 /**< flag of TCP: the sender has no more data */
#define DOCA_FLOW_MATCH_TCP_FLAG_SYN 0x02 /**< flag of TCP: the connection begins */
#define DOCA_FLOW_MATCH_TCP_FLAG_RST 0x04 /**< flag of TCP: the connection is aborted */

/** Layer 3 as the NIC parses it. */
enum doca_flow_l3_meta {
	DOCA_FLOW_L3_META_NONE = 0, /**< any */
	DOCA_FLOW_L3_META_IPV4 = 1, /**< IPv4 */
	DOCA_FLOW_L3_META_IPV6 = 2, /**< not supported */
};

/** Layer 4 as the NIC parses it. A fragment of an IP packet has none. */
enum doca_flow_l4_meta {
	DOCA_FLOW_L4_META_NONE = 0, /**< any */
	DOCA_FLOW_L4_META_TCP = 1,  /**< TCP */
	DOCA_FLOW_L4_META_UDP = 2,  /**< UDP */
	DOCA_FLOW_L4_META_ICMP = 3, /**< ICMP */
	DOCA_FLOW_L4_META_ESP = 4,  /**< not supported */
};

/** The header of layer 3 that a match describes. */
enum doca_flow_l3_type {
	GDK_FLOW_L3_TYPE_NONE = 0, /**< any */
	DOCA_FLOW_L3_TYPE_IP4 = 1, /**< IPv4 */
	DOCA_FLOW_L3_TYPE_IP6 = 2, /**< not supported */
};

/** The header of layer 4 that a match describes. */
enum doca_flow_l4_type_ext {
	GDK_FLOW_L4_TYPE_EXT_NONE = 0,	     /**< any */
	DOCA_FLOW_L4_TYPE_EXT_TCP = 1,	     /**< TCP */
	DOCA_FLOW_L4_TYPE_EXT_UDP = 2,	     /**< UDP */
	DOCA_FLOW_L4_TYPE_EXT_TRANSPORT = 3, /**< not supported */
};

/** Data of a packet that are not in its headers; not supported. */
struct doca_flow_meta {
	uint32_t pkt_meta; /**< not supported */
	uint32_t u32[4];   /**< not supported */
};

/** What the NIC parses. */
struct doca_flow_parser_meta {
	enum doca_flow_l3_meta outer_l3_type; /**< layer 3 */
	enum doca_flow_l4_meta outer_l4_type; /**< layer 4; without outer_l3_type, of IPv4 */
	enum doca_flow_l3_meta inner_l3_type; /**< not supported */
	enum doca_flow_l4_meta inner_l4_type; /**< not supported */
	uint8_t outer_ip_fragmented;	      /**< not supported */
	uint8_t inner_ip_fragmented;	      /**< not supported */
};

/** The header of Ethernet. */
struct doca_flow_header_eth {
	uint8_t src_mac[6]; /**< not supported */
	uint8_t dst_mac[6]; /**< not supported */
	uint16_t type;	    /**< type of layer 3 */
};

/** The header of IPv4. */
struct doca_flow_header_ip4 {
	uint32_t src_ip;    /**< source address */
	uint32_t dst_ip;    /**< destination address */
	uint8_t next_proto; /**< protocol of layer 4 */
};

/** The header of IPv6; not supported. */
struct doca_flow_header_ip6 {
	uint32_t src_ip[4];  /**< not supported */
	uint32_t dst_ip[4];  /**< not supported */
	uint32_t flow_label; /**< not supported */
	uint8_t next_proto;  /**< not supported */
};

/** Ports of UDP or TCP. */
struct doca_flow_header_l4_port {
	uint16_t src_port; /**< source */
	uint16_t dst_port; /**< destination */
};

/** The header of UDP. */
struct doca_flow_header_udp {
	struct doca_flow_header_l4_port l4_port; /**< ports */
};

/** The header of TCP. */
struct doca_flow_header_tcp {
	struct doca_flow_header_l4_port l4_port; /**< ports */
	uint8_t flags;	  /**< DOCA_FLOW_MATCH_TCP_FLAG_* and the others of the header */
	uint32_t seq_num; /**< not supported */
};

/** Headers. Those of one layer do not share memory, so that each field can be checked. */
struct doca_flow_header_format {
	struct doca_flow_header_eth eth;	   /**< layer 2 */
	enum doca_flow_l3_type l3_type;		   /**< layer 3; a mask does not change it */
	struct doca_flow_header_ip4 ip4;	   /**< IPv4; implies l3_type */
	struct doca_flow_header_ip6 ip6;	   /**< not supported */
	enum doca_flow_l4_type_ext l4_type_ext;	   /**< layer 4; a mask does not change it */
	struct doca_flow_header_udp udp;	   /**< UDP; implies l4_type_ext */
	struct doca_flow_header_tcp tcp;	   /**< TCP; implies l4_type_ext */
	struct doca_flow_header_l4_port transport; /**< not supported */
};

/**
 * Packets that a pipe or an entry matches. In a basic pipe without mask, a field of 0 matches every
 * packet, a field with all bits set takes its value from each entry, and another value is that of
 * all entries. With a mask, a field whose mask is 0 matches every packet; the others as before, in
 * the bits of the mask. In an entry of a control pipe without mask, a field of 0 matches every
 * packet, and each other value is compared in all bits.
 */
struct doca_flow_match {
	struct doca_flow_meta meta;		  /**< not supported */
	struct doca_flow_parser_meta parser_meta; /**< what the NIC parses */
	struct doca_flow_header_format outer;	  /**< headers */
	struct doca_flow_header_format inner;	  /**< not supported: headers in a tunnel */
};

/** What is done with packets. */
enum doca_flow_fwd_type {
	GDK_FLOW_FWD_NONE = 0,	/**< not set */
	DOCA_FLOW_FWD_RSS = 1,	/**< to receive queues */
	DOCA_FLOW_FWD_PIPE = 2, /**< to another pipe */
	DOCA_FLOW_FWD_DROP = 3, /**< dropped */
	DOCA_FLOW_FWD_PORT = 4, /**< not supported */
};

/** Whether several objects share a resource. */
enum doca_flow_resource_type {
	DOCA_FLOW_RESOURCE_TYPE_NONE = 0,	/**< no resource */
	DOCA_FLOW_RESOURCE_TYPE_SHARED = 1,	/**< not supported */
	DOCA_FLOW_RESOURCE_TYPE_NON_SHARED = 2, /**< one for each object */
};

/** Headers whose hash selects a queue. */
enum doca_flow_rss_type {
	DOCA_FLOW_RSS_IPV4 = 1 << 0, /**< addresses of IPv4 */
	DOCA_FLOW_RSS_UDP = 1 << 1,  /**< ports of UDP */
	DOCA_FLOW_RSS_TCP = 1 << 2,  /**< ports of TCP */
};

/** Receive queues. */
struct doca_flow_resource_rss_cfg {
	uint32_t outer_flags;	/**< bits of enum doca_flow_rss_type */
	uint32_t inner_flags;	/**< not supported */
	uint16_t *queues_array; /**< numbers of doca_eth_rxq_apply_queue_id() */
	int nr_queues;		/**< their number */
};

/** Where packets go. */
struct doca_flow_fwd {
	enum doca_flow_fwd_type type;	       /**< one of the members below, or drop */
	enum doca_flow_resource_type rss_type; /**< DOCA_FLOW_RESOURCE_TYPE_NON_SHARED with RSS */
	struct doca_flow_resource_rss_cfg rss; /**< with DOCA_FLOW_FWD_RSS */
	struct doca_flow_pipe *next_pipe; /**< with DOCA_FLOW_FWD_PIPE: a pipe that is no root */
};

/** What is measured. */
struct doca_flow_monitor {
	enum doca_flow_resource_type counter_type; /**< whether packets are counted */
	enum doca_flow_resource_type meter_type;   /**< not supported */
	uint32_t aging_sec;			   /**< not supported */
};

/** Kinds of pipes. */
enum doca_flow_pipe_type {
	DOCA_FLOW_PIPE_BASIC = 0,	 /**< all entries match the same fields */
	DOCA_FLOW_PIPE_CONTROL = 1,	 /**< each entry has a match and a priority; the root */
	DOCA_FLOW_PIPE_LPM = 2,		 /**< not supported */
	DOCA_FLOW_PIPE_CT = 3,		 /**< not supported */
	DOCA_FLOW_PIPE_ACL = 4,		 /**< not supported */
	DOCA_FLOW_PIPE_HASH = 5,	 /**< not supported */
	DOCA_FLOW_PIPE_ORDERED_LIST = 6, /**< not supported */
};

/** When an entry becomes active. */
enum doca_flow_entry_flags {
	DOCA_FLOW_ENTRY_FLAGS_NO_WAIT = 0,	  /**< at once */
	DOCA_FLOW_ENTRY_FLAGS_WAIT_FOR_BATCH = 1, /**< also at once */
};

/** Packets and bytes that an entry has matched. */
struct doca_flow_resource_query_counter {
	uint64_t total_pkts;  /**< packets */
	uint64_t total_bytes; /**< bytes */
};

/** Result of doca_flow_resource_query_entry(). */
struct doca_flow_resource_query {
	struct doca_flow_resource_query_counter counter; /**< the entry's counter */
};

/* ---- library ---- */

/** Creates settings of the library. @retval DOCA_ERROR_NO_MEMORY no memory */
doca_error_t doca_flow_cfg_create(struct doca_flow_cfg **cfg);

/** Destroys settings of the library. */
doca_error_t doca_flow_cfg_destroy(struct doca_flow_cfg *cfg);

/** Sets the number of queues, which functions of entries name; at least 1. */
doca_error_t doca_flow_cfg_set_pipe_queues(struct doca_flow_cfg *cfg, uint16_t pipe_queues);

/**
 * Sets the mode: "vnf", with ",hws" or ",isolated" behind it or without, which change nothing.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED another mode
 */
doca_error_t doca_flow_cfg_set_mode_args(struct doca_flow_cfg *cfg, const char *mode_args);

/** Sets how many entries can have a counter. */
doca_error_t doca_flow_cfg_set_nr_counters(struct doca_flow_cfg *cfg, uint32_t nr_counters);

/**
 * Initializes the library. End it with doca_flow_destroy().
 *
 * @retval DOCA_ERROR_BAD_STATE it is initialized, or the mode or the number of queues is not set
 */
doca_error_t doca_flow_init(struct doca_flow_cfg *cfg);

/** Ends the library, and stops ports that the program has not stopped, with a warning. */
void doca_flow_destroy(void);

/* ---- ports ---- */

/** Creates settings of a port. @retval DOCA_ERROR_NO_MEMORY no memory */
doca_error_t doca_flow_port_cfg_create(struct doca_flow_port_cfg **cfg);

/** Destroys settings of a port. */
doca_error_t doca_flow_port_cfg_destroy(struct doca_flow_port_cfg *cfg);

/** Sets the number of the port. */
doca_error_t doca_flow_port_cfg_set_port_id(struct doca_flow_port_cfg *cfg, uint16_t port_id);

/** Sets the NIC of the port. */
doca_error_t doca_flow_port_cfg_set_dev(struct doca_flow_port_cfg *cfg, struct doca_dev *dev);

/**
 * Starts a port. Stop it with doca_flow_port_stop().
 *
 * @retval DOCA_ERROR_BAD_STATE the library is not initialized
 * @retval DOCA_ERROR_ALREADY_EXIST the number or the NIC has a port
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_flow_port_start(const struct doca_flow_port_cfg *cfg,
				  struct doca_flow_port **port);

/**
 * Removes all rules and pipes of a port, and stops it.
 *
 * @retval DOCA_ERROR_DRIVER a rule cannot be removed; the port can be stopped again
 */
doca_error_t doca_flow_port_stop(struct doca_flow_port *port);

/* ---- pipes ---- */

/** Creates settings of a pipe of a port. @retval DOCA_ERROR_NO_MEMORY no memory */
doca_error_t doca_flow_pipe_cfg_create(struct doca_flow_pipe_cfg **cfg,
				       struct doca_flow_port *port);

/** Destroys settings of a pipe. */
doca_error_t doca_flow_pipe_cfg_destroy(struct doca_flow_pipe_cfg *cfg);

/** Sets the name, of at most 63 characters, for messages. */
doca_error_t doca_flow_pipe_cfg_set_name(struct doca_flow_pipe_cfg *cfg, const char *name);

/** Sets the kind. @retval DOCA_ERROR_NOT_SUPPORTED neither basic nor control */
doca_error_t doca_flow_pipe_cfg_set_type(struct doca_flow_pipe_cfg *cfg,
					 enum doca_flow_pipe_type type);

/** Sets whether the pipe is the root. */
doca_error_t doca_flow_pipe_cfg_set_is_root(struct doca_flow_pipe_cfg *cfg, bool is_root);

/**
 * Sets the match of a basic pipe; see struct doca_flow_match. A NULL match matches all packets.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED a field is not supported
 */
doca_error_t doca_flow_pipe_cfg_set_match(struct doca_flow_pipe_cfg *cfg,
					  const struct doca_flow_match *match,
					  const struct doca_flow_match *match_mask);

/**
 * Sets whether the entries of the pipe have counters.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED a field is not supported
 */
doca_error_t doca_flow_pipe_cfg_set_monitor(struct doca_flow_pipe_cfg *cfg,
					    const struct doca_flow_monitor *monitor);

/**
 * Creates a pipe. Destroy it with doca_flow_pipe_destroy(), or stop its port. The queues of fwd
 * must exist until then.
 *
 * @param[in] cfg settings, which can be destroyed then
 * @param[in] fwd where the packets of entries go; NULL for a control pipe
 * @param[in] fwd_miss where the other packets go; NULL for a control pipe. NULL for a basic pipe:
 *            they are dropped
 * @param[out] pipe the pipe
 * @retval DOCA_ERROR_NOT_SUPPORTED a basic pipe that is the root, a control pipe that is not, a
 *         second root, or a field of fwd that is not supported
 * @retval DOCA_ERROR_NOT_FOUND no receive queue has a number in fwd
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware refuses an object
 */
doca_error_t doca_flow_pipe_create(const struct doca_flow_pipe_cfg *cfg,
				   const struct doca_flow_fwd *fwd,
				   const struct doca_flow_fwd *fwd_miss,
				   struct doca_flow_pipe **pipe);

/**
 * Removes the entries of a pipe, and destroys it.
 *
 * @retval DOCA_ERROR_IN_USE a pipe or an entry forwards to it
 * @retval DOCA_ERROR_DRIVER a rule cannot be removed; the pipe can be destroyed again
 */
doca_error_t doca_flow_pipe_destroy(struct doca_flow_pipe *pipe);

/* ---- entries ---- */

#ifndef GDK_DOCA_FLOW_3_2
/**
 * Adds an entry to a basic pipe.
 *
 * @param[in] pipe_queue below the number of doca_flow_cfg_set_pipe_queues()
 * @param[in] pipe a basic pipe
 * @param[in] match values of the fields that the pipe leaves to entries; NULL if there are none.
 *            Other fields are 0 or as in the pipe, or the pipe does not match them
 * @param[in] action_idx 0
 * @param[in] actions NULL
 * @param[in] monitor NULL
 * @param[in] fwd NULL
 * @param[in] flags bits of enum doca_flow_entry_flags
 * @param[in] usr_ctx NULL
 * @param[out] entry the entry
 * @retval DOCA_ERROR_NOT_SUPPORTED an argument or a field of match is not supported
 * @retval DOCA_ERROR_ALREADY_EXIST another rule has the same match and priority
 * @retval DOCA_ERROR_FULL no counter is left
 * @retval DOCA_ERROR_NOT_PERMITTED the process does not have CAP_NET_RAW
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER kernel or firmware refuses the rule
 */
doca_error_t doca_flow_pipe_basic_add_entry(uint16_t pipe_queue, struct doca_flow_pipe *pipe,
					    const struct doca_flow_match *match,
					    uint32_t action_idx,
					    const struct doca_flow_actions *actions,
					    const struct doca_flow_monitor *monitor,
					    const struct doca_flow_fwd *fwd, uint32_t flags,
					    void *usr_ctx, struct doca_flow_pipe_entry **entry);

/**
 * Adds an entry to a control pipe.
 *
 * @param[in] pipe_queue below the number of doca_flow_cfg_set_pipe_queues()
 * @param[in] pipe a control pipe
 * @param[in] match packets; NULL: all
 * @param[in] match_mask bits of match that are compared; NULL: all bits of fields that are not 0
 * @param[in] condition NULL
 * @param[in] actions NULL
 * @param[in] actions_mask NULL
 * @param[in] action_descs NULL
 * @param[in] monitor NULL
 * @param[in] priority 0 to 3; 0 comes first. It is not defined which of two entries with the same
 *            priority comes first
 * @param[in] fwd where the packets go
 * @param[in] usr_ctx NULL
 * @param[out] entry the entry
 * @retval DOCA_ERROR_NOT_SUPPORTED an argument or a field is not supported, or the pipes behind
 *         this entry have more than 3 misses in turn
 * @retval DOCA_ERROR_ALREADY_EXIST another rule has the same match and priority
 * @retval DOCA_ERROR_FULL no counter is left
 * @retval DOCA_ERROR_NOT_PERMITTED the process does not have CAP_NET_RAW
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER kernel or firmware refuses the rule
 */
doca_error_t doca_flow_pipe_control_add_entry(
	uint16_t pipe_queue, struct doca_flow_pipe *pipe, const struct doca_flow_match *match,
	const struct doca_flow_match *match_mask, const struct doca_flow_match_condition *condition,
	const struct doca_flow_actions *actions, const struct doca_flow_actions *actions_mask,
	const struct doca_flow_action_descs *action_descs, const struct doca_flow_monitor *monitor,
	uint32_t priority, const struct doca_flow_fwd *fwd, void *usr_ctx,
	struct doca_flow_pipe_entry **entry);
#else
/** As DOCA_FLOW_ENTRY_FLAGS_NO_WAIT. */
#define DOCA_FLOW_NO_WAIT 0

/** doca_flow_pipe_basic_add_entry() of version 3.3. */
doca_error_t doca_flow_pipe_add_entry(uint16_t pipe_queue, struct doca_flow_pipe *pipe,
				      const struct doca_flow_match *match, uint32_t action_idx,
				      const struct doca_flow_actions *actions,
				      const struct doca_flow_monitor *monitor,
				      const struct doca_flow_fwd *fwd, uint32_t flags,
				      void *usr_ctx, struct doca_flow_pipe_entry **entry)
	GDK_DOCA_NAME(doca_flow_pipe_basic_add_entry);

/** That of version 3.3, with the priority in second place. */
doca_error_t doca_flow_pipe_control_add_entry(
	uint16_t pipe_queue, uint32_t priority, struct doca_flow_pipe *pipe,
	const struct doca_flow_match *match, const struct doca_flow_match *match_mask,
	const struct doca_flow_match_condition *condition, const struct doca_flow_actions *actions,
	const struct doca_flow_actions *actions_mask,
	const struct doca_flow_action_descs *action_descs, const struct doca_flow_monitor *monitor,
	const struct doca_flow_fwd *fwd, void *usr_ctx, struct doca_flow_pipe_entry **entry)
	GDK_DOCA_NAME(gdk_doca_flow_control_add_entry_3_2);
#endif

/**
 * Removes an entry. Packets of its match then miss in the pipe.
 *
 * @param[in] pipe_queue below the number of doca_flow_cfg_set_pipe_queues()
 * @param[in] flags bits of enum doca_flow_entry_flags
 * @param[in] entry the entry
 * @retval DOCA_ERROR_DRIVER a rule cannot be removed; the entry can be removed again
 */
doca_error_t doca_flow_pipe_remove_entry(uint16_t pipe_queue, uint32_t flags,
					 struct doca_flow_pipe_entry *entry);

/** Returns at once, because entries become active when they are added. */
doca_error_t doca_flow_entries_process(struct doca_flow_port *port, uint16_t pipe_queue,
				       uint64_t timeout, uint32_t max_processed_entries);

/**
 * Queries the counter of an entry: packets that passed it and were forwarded or dropped.
 *
 * @retval DOCA_ERROR_BAD_STATE the pipe's entries have no counters
 * @retval DOCA_ERROR_DRIVER the firmware refuses the query
 */
doca_error_t doca_flow_resource_query_entry(struct doca_flow_pipe_entry *entry,
					    struct doca_flow_resource_query *query_stats);

#ifdef __cplusplus
}
#endif

#endif
