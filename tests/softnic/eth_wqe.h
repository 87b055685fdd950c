/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A send WQE of an Ethernet SQ as eth_wqe.c parses it, and the functions by which
 * eth_wqe.c, eth_build.c and eth_send.c use it.
 */
#ifndef SOFTNIC_ETH_WQE_H
#define SOFTNIC_ETH_WQE_H

#include "eng.h"
#include "eth.h"

#define SN_ETH_PASS_FRAMES 64u	      /* frames that one SQ sends in one pass */
#define SN_ETH_PIECES	   63u	      /* the control segment counts at most 63 units of 16 bytes */
#define SN_ETH_HDR_AT	   30u	      /* offset of the inline header in the WQE */
#define SN_ETH_LSO_MAX	   (1u << 18) /* payload of a TSO WQE; max_lso_cap is 18 */
#define SN_ETH_L3_CSUM	   0x40
#define SN_ETH_L4_CSUM	   0x80
#define SN_ETH_VLAN_LEN	   4u
#define SN_ETH_TAGS_MAX	   2u

/* One data segment: memory, or inline bytes at offset `at` of the WQE (sge.len is their number). */
struct sn_eth_piece {
	struct sn_sge sge;
	bool inl;
	uint16_t at;
};

struct sn_eth_wqe {
	uint32_t idx;	 /* WQE index of its first block */
	uint16_t blocks; /* number of 64-byte blocks */
	uint8_t opcode, fm;
	uint8_t synd, vendor; /* of the error CQE; 0: no error */
	uint8_t cs_flags;
	uint16_t mss;
	uint16_t hdr_len;	   /* bytes of the inline header */
	uint16_t vlan_proto, vlan; /* tag to insert; vlan_proto 0: none */
	uint32_t len;		   /* sum of the pieces */
	uint32_t frames;	   /* number of frames that it sends */
	unsigned npieces;
	struct sn_eth_piece piece[SN_ETH_PIECES];
	uint64_t wait_value, wait_mask;
	uint8_t raw[SN_WQE_MAX];
};

/* Offsets of the headers at the start of a frame. */
struct sn_eth_heads {
	uint32_t l3, l4; /* l3: length of the Ethernet header with VLAN tags; l4: 0: no IP */
	uint32_t end;	 /* end of the last header that is known and complete */
	uint8_t ip;	 /* 0, 4 or 6 */
	uint8_t proto;	 /* of layer 4; valid if l4 is not 0 */
	bool fragment;
	bool cut; /* a header exceeds the bytes given */
};

/* eth_build.c */
void sn_eth_heads(const uint8_t *p, uint32_t len, struct sn_eth_heads *h);
/* Copies bytes [off, off + len) of the pieces from `first` on. Returns 0 or -EFAULT. */
int sn_eth_gather(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_eth_wqe *w, unsigned first,
		  uint32_t off, uint8_t *dst, uint32_t len);
/* Writes frame n of the WQE. Returns 0 or -EFAULT. */
int sn_eth_build(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_eth_wqe *w, uint32_t n,
		 struct sn_frame *f);
/* Inserts the checksums that cs_flags select, in headers that the parser accepted. */
void sn_eth_checksum(struct sn_frame *f, const struct sn_parsed *p, uint8_t cs_flags);

/* eth_wqe.c: parses and checks w->raw, of which idx, blocks and `bytes` bytes are valid. An
 * invalid WQE gets a syndrome and has no frames. */
void sn_eth_wqe_parse(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w);
void sn_eth_wqe_bad(struct sn_qp_eng *q, struct sn_eth_wqe *w, uint64_t *count, const char *what,
		    uint32_t value);
uint32_t sn_eth_mtu(const struct sn_eng *e);

/* trace_eth.c: callers check cfg.trace first */
void sn_trace_eth_wqe(const struct sn_qp_eng *q, const struct sn_eth_wqe *w);

#endif
