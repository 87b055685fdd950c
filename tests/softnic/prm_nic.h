/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The layouts of firmware commands, for the NIC. They are deliberately separate from
 * the library's table, so that both cannot share a mistake. NIC_F() describes a field
 * by the byte offset of its 32-bit word and by its highest and lowest bit. Sources:
 * mlx5_ifc.h of Linux 6.12; for send_dbr_mode and the umem fields, mlx5_ifc.h of DOCA
 * GPUNetIO 3.0. Formats of WQEs, CQEs and packets are in the engine.
 */
#ifndef SOFTNIC_PRM_NIC_H
#define SOFTNIC_PRM_NIC_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define NIC_F(off, hi, lo) ((off) << 16 | (hi) << 8 | (lo))

static inline uint32_t nic_word(const void *p, uint32_t off)
{
	uint32_t w;

	memcpy(&w, (const uint8_t *)p + off, 4);
	return be32toh(w);
}

static inline uint64_t nic_get64(const void *p, uint32_t off)
{
	return (uint64_t)nic_word(p, off) << 32 | nic_word(p, off + 4);
}

static inline uint32_t nic_mask(uint32_t f)
{
	uint32_t hi = f >> 8 & 0xff, lo = f & 0xff;

	return (hi == 31 ? 0xffffffffu : (1u << (hi + 1)) - 1) & ~((1u << lo) - 1);
}

static inline uint32_t nic_get(const void *p, uint32_t f)
{
	return (nic_word(p, f >> 16) & nic_mask(f)) >> (f & 0xff);
}

static inline void nic_set(void *p, uint32_t f, uint32_t v)
{
	uint32_t w = nic_word(p, f >> 16);

	w = htobe32((w & ~nic_mask(f)) | (v << (f & 0xff) & nic_mask(f)));
	memcpy((uint8_t *)p + (f >> 16), &w, 4);
}

static inline void nic_set64(void *p, uint32_t off, uint64_t v)
{
	v = htobe64(v);
	memcpy((uint8_t *)p + off, &v, 8);
}

enum nic_opcode {
	OP_QUERY_HCA_CAP = 0x100,
	OP_CREATE_MKEY = 0x200,
	OP_QUERY_MKEY,
	OP_CREATE_CQ = 0x400,
	OP_DESTROY_CQ,
	OP_QUERY_CQ,
	OP_MODIFY_CQ,
	OP_CREATE_QP = 0x500,
	OP_DESTROY_QP,
	OP_RST2INIT,
	OP_INIT2RTR,
	OP_RTR2RTS,
	OP_RTS2RTS,
	OP_SQERR2RTS,
	OP_2ERR,
	OP_2RST = 0x50a,
	OP_QUERY_QP,
	OP_INIT2INIT = 0x50e,
	OP_QUERY_ROCE_ADDRESS = 0x760,
	OP_ALLOC_Q_COUNTER = 0x771,
	OP_QUERY_Q_COUNTER = 0x773,
	OP_ALLOC_TD = 0x816,
	OP_QUERY_LAG = 0x842,
	OP_CREATE_TIR = 0x900,
	OP_MODIFY_TIR,
	OP_QUERY_TIR = 0x903,
	OP_CREATE_SQ = 0x904,
	OP_MODIFY_SQ,
	OP_QUERY_SQ = 0x907,
	OP_CREATE_RQ = 0x908,
	OP_MODIFY_RQ,
	OP_QUERY_RQ = 0x90b,
	OP_CREATE_RMP = 0x90c,
	OP_MODIFY_RMP,
	OP_QUERY_RMP = 0x90f,
	OP_CREATE_TIS = 0x912,
	OP_MODIFY_TIS,
	OP_QUERY_TIS = 0x915,
	OP_CREATE_RQT = 0x916,
	OP_MODIFY_RQT,
	OP_QUERY_RQT = 0x919,
	OP_ALLOC_FLOW_COUNTER = 0x939,
	OP_QUERY_FLOW_COUNTER = 0x93b,
};

/* Start of every input: opcode, uid (handled by the kernel), op_mod. */
#define IN_OPCODE    NIC_F(0x00, 31, 16)
#define IN_OP_MOD    NIC_F(0x04, 15, 0)
#define IN_OBJ	     NIC_F(0x08, 23, 0) /* number of the object: qpn, cqn, rmpn or mkey_index */
#define OUT_STATUS   NIC_F(0x00, 31, 24)
#define OUT_SYNDROME NIC_F(0x04, 31, 0)
#define OUT_OBJ	     NIC_F(0x08, 23, 0)

/* CQ commands: the context begins at 0x10. */
#define CMD_CQC		      0x10
#define CREATE_CQ_UMEM_OFFSET 0x50
#define CREATE_CQ_UMEM_ID     NIC_F(0x58, 31, 0)
#define CQC_STATUS	      NIC_F(0x00, 31, 28)
#define CQC_CQE_SZ	      NIC_F(0x00, 23, 21)
#define CQC_CC		      NIC_F(0x00, 20, 20)
#define CQC_OI		      NIC_F(0x00, 17, 17)
#define CQC_CQE_COMP_EN	      NIC_F(0x00, 14, 14)
#define CQC_DBR_UMEM_ID	      NIC_F(0x04, 31, 0)
#define CQC_PAGE_OFFSET	      NIC_F(0x08, 11, 6)
#define CQC_LOG_CQ_SIZE	      NIC_F(0x0c, 28, 24)
#define CQC_UAR_PAGE	      NIC_F(0x0c, 23, 0)
#define CQC_PERIOD	      NIC_F(0x10, 27, 16)
#define CQC_MAX_COUNT	      NIC_F(0x10, 15, 0)
#define CQC_C_EQN	      NIC_F(0x14, 7, 0)
#define CQC_LOG_PAGE_SIZE     NIC_F(0x18, 28, 24)
#define CQC_PRODUCER	      NIC_F(0x2c, 23, 0)
#define CQC_DBR_ADDR	      0x38

/* QP commands: the context begins at 0x18. */
#define CMD_QPC		 0x18
#define MODIFY_CQ_SELECT NIC_F(0x0c, 31, 0) /* field_select of MODIFY_CQ */
enum { CQ_MODIFY_PERIOD = 1 << 0, CQ_MODIFY_COUNT = 1 << 1, CQ_MODIFY_OVERRUN = 1 << 2 };
#define CMD_OPT_MASK	      NIC_F(0x10, 31, 0)
#define CMD_ECE		      NIC_F(0x14, 31, 0) /* also in the output of QUERY_QP */
#define OUT_ECE		      NIC_F(0x0c, 31, 0) /* output of CREATE_QP and of the transitions */
#define CREATE_QP_UMEM_OFFSET 0x100
#define CREATE_QP_UMEM_ID     NIC_F(0x108, 31, 0)
#define MODIFY_QP_OPT_MASK_HI NIC_F(0x10c, 31, 0) /* bits 63 to 32 of opt_param_mask */
#define CMD_QPC_EXT	      NIC_F(0x08, 31, 31) /* an extension of the context follows */
#define QPC_EXT		      0x110		  /* of CREATE_QP and of INIT2INIT */
#define QPC_EXT_LEN	      0xc0
#define QPC_EXT_MMO	      NIC_F(0x110, 29, 29)
#define QPC_STATE	      NIC_F(0x00, 31, 28)
#define QPC_LAG_PORT	      NIC_F(0x00, 27, 24)
#define QPC_ST		      NIC_F(0x00, 23, 16)
#define QPC_PM_STATE	      NIC_F(0x00, 12, 11)
#define QPC_PD		      NIC_F(0x04, 23, 0)
#define QPC_MTU		      NIC_F(0x08, 31, 29)
#define QPC_LOG_MSG_MAX	      NIC_F(0x08, 28, 24)
#define QPC_LOG_RQ_SIZE	      NIC_F(0x08, 22, 19)
#define QPC_LOG_RQ_STRIDE     NIC_F(0x08, 18, 16)
#define QPC_NO_SQ	      NIC_F(0x08, 15, 15)
#define QPC_LOG_SQ_SIZE	      NIC_F(0x08, 14, 11)
#define QPC_TS_FORMAT	      NIC_F(0x08, 7, 6)
#define QPC_UAR_PAGE	      NIC_F(0x0c, 23, 0)
#define QPC_SEND_DBR_MODE     NIC_F(0x10, 31, 30)
#define QPC_USER_INDEX	      NIC_F(0x10, 23, 0)
#define QPC_LOG_PAGE_SIZE     NIC_F(0x14, 28, 24)
#define QPC_REMOTE_QPN	      NIC_F(0x14, 23, 0)
#define QPC_PATH	      0x18
#define QPC_LOG_ACK_REQ_FREQ  NIC_F(0x70, 31, 28)
#define QPC_LOG_SRA_MAX	      NIC_F(0x70, 23, 21)
#define QPC_RETRY_COUNT	      NIC_F(0x70, 18, 16)
#define QPC_RNR_RETRY	      NIC_F(0x70, 15, 13)
#define QPC_NEXT_SEND_PSN     NIC_F(0x78, 23, 0)
#define QPC_CQN_SND	      NIC_F(0x7c, 23, 0)
#define QPC_LOG_RRA_MAX	      NIC_F(0x90, 23, 21)
#define QPC_ATOMIC_MODE	      NIC_F(0x90, 19, 16)
#define QPC_RRE		      NIC_F(0x90, 15, 15)
#define QPC_RWE		      NIC_F(0x90, 14, 14)
#define QPC_RAE		      NIC_F(0x90, 13, 13)
#define QPC_PAGE_OFFSET	      NIC_F(0x90, 11, 6)
#define QPC_CD		      NIC_F(0x90, 2, 0) /* cd_slave_receive, cd_slave_send, cd_master */
#define QPC_CD_MASTER	      NIC_F(0x90, 0, 0)
#define QPC_MIN_RNR_NAK	      NIC_F(0x94, 28, 24)
#define QPC_NEXT_RCV_PSN      NIC_F(0x94, 23, 0)
#define QPC_CQN_RCV	      NIC_F(0x9c, 23, 0)
#define QPC_DBR_ADDR	      0xa0
#define QPC_RQ_TYPE	      NIC_F(0xac, 26, 24)
#define QPC_RMPN	      NIC_F(0xac, 23, 0)
#define QPC_HW_SQ_COUNTER     NIC_F(0xb4, 31, 16)
#define QPC_SW_SQ_COUNTER     NIC_F(0xb4, 15, 0)
#define QPC_CS_REQ	      NIC_F(0xc4, 15, 8)
#define QPC_CS_RES	      NIC_F(0xc4, 7, 0)
#define QPC_DBR_UMEM_VALID    NIC_F(0xd0, 28, 28)
#define QPC_DBR_UMEM_ID	      NIC_F(0xe4, 31, 0)

/* Address path, offsets relative to QPC_PATH */
#define ADS_PKEY_INDEX	   NIC_F(0x00, 15, 0)
#define ADS_GRH		   NIC_F(0x04, 23, 23)
#define ADS_RLID	   NIC_F(0x04, 15, 0)
#define ADS_ACK_TIMEOUT	   NIC_F(0x08, 31, 27)
#define ADS_SRC_ADDR_INDEX NIC_F(0x08, 23, 16)
#define ADS_STAT_RATE	   NIC_F(0x08, 11, 8)
#define ADS_HOP_LIMIT	   NIC_F(0x08, 7, 0)
#define ADS_TCLASS	   NIC_F(0x0c, 27, 20)
#define ADS_RGID	   0x10
#define ADS_ECN		   NIC_F(0x20, 23, 22)
#define ADS_DSCP	   NIC_F(0x20, 21, 16)
#define ADS_UDP_SPORT	   NIC_F(0x20, 15, 0)
#define ADS_ETH_PRIO	   NIC_F(0x24, 30, 28)
#define ADS_SL		   NIC_F(0x24, 27, 24)
#define ADS_PORT	   NIC_F(0x24, 23, 16)
#define ADS_RMAC_HI	   NIC_F(0x24, 15, 0)
#define ADS_RMAC_LO	   NIC_F(0x28, 31, 0)

/* RMP commands: the context begins at 0x20, its work queue at 0x30 of the context. */
#define CMD_RMPC	 0x20
#define CMD_RMPC_WQ	 0x50
#define MODIFY_RMP_STATE NIC_F(0x08, 31, 28)
#define MODIFY_RMP_LWM	 NIC_F(0x14, 0, 0)
#define RMPC_STATE	 NIC_F(0x00, 23, 20)
#define RMPC_BASIC	 NIC_F(0x04, 31, 31)
#define WQ_TYPE		 NIC_F(0x00, 31, 28)
#define WQ_PAGE_OFFSET	 NIC_F(0x04, 20, 16)
#define WQ_LWM		 NIC_F(0x04, 15, 0)
#define WQ_PD		 NIC_F(0x08, 23, 0)
#define WQ_DBR_ADDR	 0x10
#define WQ_HW_COUNTER	 NIC_F(0x18, 31, 0)
#define WQ_LOG_STRIDE	 NIC_F(0x20, 19, 16)
#define WQ_LOG_SZ	 NIC_F(0x20, 4, 0)
#define WQ_DBR_UMEM_ID	 NIC_F(0x28, 31, 0)
#define WQ_UMEM_ID	 NIC_F(0x2c, 31, 0)
#define WQ_UMEM_OFFSET	 0x30

/* The other fields of a work queue, which SQs and RQs have, too */
#define WQ_SIGNATURE	NIC_F(0x00, 27, 27)
#define WQ_END_PADDING	NIC_F(0x00, 26, 25)
#define WQ_CD_SLAVE	NIC_F(0x00, 24, 24)
#define WQ_HDS_SKIP	NIC_F(0x04, 31, 31)
#define WQ_HDS_SIZE	NIC_F(0x04, 30, 28)
#define WQ_UAR_PAGE	NIC_F(0x0c, 23, 0)
#define WQ_DBR_VALID	NIC_F(0x24, 31, 31)
#define WQ_UMEM_VALID	NIC_F(0x24, 30, 30)
#define WQ_HAIRPIN_NUM	NIC_F(0x24, 28, 24)
#define WQ_HAIRPIN_SIZE NIC_F(0x24, 20, 16)
#define WQ_STRIDES	NIC_F(0x24, 11, 8)
#define WQ_TWO_BYTE	NIC_F(0x24, 7, 7)
#define WQ_STRIDE_SIZE	NIC_F(0x24, 2, 0)

/* Ethernet objects: the context begins at 0x20 (QUERY_TIS: at 0x10), the work queue of an SQ or RQ
 * at 0x30 of the context. */
#define CMD_ETHC	   0x20
#define CMD_ETH_WQ	   0x50
#define MODIFY_ETH_STATE   NIC_F(0x08, 31, 28) /* current state of an SQ or RQ */
#define MODIFY_ETH_MASK_AT 0x10		       /* modify_bitmask, 64 bits */
#define MODIFY_ETH_MASK_HI NIC_F(0x10, 31, 0)
#define MODIFY_ETH_MASK	   NIC_F(0x14, 31, 0)

#define TISC_STRICT_LAG_PORT NIC_F(0x00, 31, 31)
#define TISC_TLS	     NIC_F(0x00, 30, 30)
#define TISC_LAG_PORT	     NIC_F(0x00, 27, 24)
#define TISC_PRIO	     NIC_F(0x00, 19, 16)
#define TISC_TD		     NIC_F(0x24, 23, 0)
#define TISC_UNDERLAY_QPN    NIC_F(0x28, 23, 0)
#define CMD_QUERY_TISC	     0x10
enum { TIS_MODIFY_PRIO = 1 << 0, TIS_MODIFY_STRICT_LAG = 1 << 1, TIS_MODIFY_LAG_PORT = 1 << 2 };

/* An RQ's context has RLKY, STATE, HAIRPIN, TS_FORMAT and USER_INDEX at the same places. */
#define SQC_RLKY	NIC_F(0x00, 31, 31)
#define SQC_CD_MASTER	NIC_F(0x00, 30, 30)
#define SQC_FLUSH	NIC_F(0x00, 28, 28) /* flush_in_error_en */
#define SQC_MULTI_PKT	NIC_F(0x00, 27, 27) /* allow_multi_pkt_send_wqe */
#define SQC_MIN_INLINE	NIC_F(0x00, 26, 24) /* min_wqe_inline_mode */
#define SQC_STATE	NIC_F(0x00, 23, 20)
#define SQC_REG_UMR	NIC_F(0x00, 19, 19)
#define SQC_SWP		NIC_F(0x00, 18, 18) /* allow_swp */
#define SQC_HAIRPIN	NIC_F(0x00, 17, 17)
#define SQC_NON_WIRE	NIC_F(0x00, 16, 16)
#define SQC_TS_FORMAT	NIC_F(0x00, 5, 4)
#define SQC_USER_INDEX	NIC_F(0x04, 23, 0)
#define SQC_CQN		NIC_F(0x08, 23, 0)
#define SQC_PEER_RQ	NIC_F(0x0c, 23, 0)
#define SQC_PEER_VHCA	NIC_F(0x10, 15, 0)
#define SQC_TS_CQN	NIC_F(0x18, 23, 0)  /* ts_cqe_to_dest_cqn */
#define SQC_RATE_INDEX	NIC_F(0x1c, 15, 0)  /* packet_pacing_rate_limit_index */
#define SQC_TIS_NUM	NIC_F(0x20, 31, 16) /* tis_lst_sz */
#define SQC_QUEUE_GROUP NIC_F(0x20, 15, 0)  /* qos_queue_group_id */
#define SQC_TIS		NIC_F(0x2c, 23, 0)  /* tis_num_0 */

#define RQC_DELAY_DROP	NIC_F(0x00, 30, 30)
#define RQC_SCATTER_FCS NIC_F(0x00, 29, 29)
#define RQC_VSD		NIC_F(0x00, 28, 28)
#define RQC_MEM_TYPE	NIC_F(0x00, 27, 24) /* mem_rq_type */
#define RQC_FLUSH	NIC_F(0x00, 18, 18)
#define RQC_CQN		NIC_F(0x08, 23, 0)
#define RQC_COUNTER_SET NIC_F(0x0c, 31, 24)
#define RQC_RMPN	NIC_F(0x10, 23, 0)
#define RQC_PEER_SQ	NIC_F(0x14, 23, 0)
#define RQC_PEER_VHCA	NIC_F(0x18, 15, 0)
enum { RQ_MODIFY_VSD = 1 << 1, RQ_MODIFY_SCATTER_FCS = 1 << 2, RQ_MODIFY_COUNTER_SET = 1 << 3 };

#define RQTC_LIST_TYPE	NIC_F(0x14, 26, 24) /* list_q_type */
#define RQTC_MAX	NIC_F(0x14, 15, 0)
#define RQTC_VHCA	NIC_F(0x18, 31, 31) /* rq_vhca_id_format */
#define RQTC_ACTUAL	NIC_F(0x18, 15, 0)
#define RQTC_LIST	0xf0
#define RQTC_RQN	NIC_F(0x00, 23, 0) /* in an entry */
#define RQT_MODIFY_LIST 1u

#define TIRC_DISP_TYPE	  NIC_F(0x04, 31, 28)
#define TIRC_TLS	  NIC_F(0x04, 27, 27)
#define TIRC_PACKET_MERGE 0x10		     /* word with the fields of packet merge (LRO) */
#define TIRC_INNER	  0x54		     /* word: rx_hash_field_selector_inner */
#define TIRC_RQN	  NIC_F(0x1c, 23, 0) /* inline_rqn */
#define TIRC_SYMMETRIC	  NIC_F(0x20, 31, 31)
#define TIRC_TUNNELED	  NIC_F(0x20, 29, 29)
#define TIRC_RQTN	  NIC_F(0x20, 23, 0)
#define TIRC_HASH_FN	  NIC_F(0x24, 31, 28)
#define TIRC_SELF_LB	  NIC_F(0x24, 25, 24)
#define TIRC_TD		  NIC_F(0x24, 23, 0)
#define TIRC_KEY	  0x28
#define TIRC_L3		  NIC_F(0x50, 31, 31) /* rx_hash_field_selector_outer */
#define TIRC_L4		  NIC_F(0x50, 30, 30)
#define TIRC_FIELDS	  NIC_F(0x50, 29, 0)
enum {
	TIR_MODIFY_LRO = 1 << 0,
	TIR_MODIFY_TABLE = 1 << 1,
	TIR_MODIFY_HASH = 1 << 2,
	TIR_MODIFY_SELF_LB = 1 << 4,
};

/* Queue counters and flow counters */
#define QUERY_COUNTER_OTHER  NIC_F(0x08, 31, 31) /* other_vport */
#define QUERY_COUNTER_VPORT  NIC_F(0x08, 15, 0)
#define QUERY_COUNTER_CLEAR  NIC_F(0x18, 31, 31)
#define QUERY_COUNTER_TOTAL  NIC_F(0x18, 30, 30) /* aggregate */
#define QUERY_COUNTER_SET    NIC_F(0x1c, 7, 0)
#define QUERY_COUNTER_NO_WQE NIC_F(0x30, 31, 0) /* out_of_buffer */
#define ALLOC_FLOW_LOG	     NIC_F(0x0c, 12, 8) /* flow_counter_bulk_log_size */
#define ALLOC_FLOW_BULK	     NIC_F(0x0c, 7, 0)	/* flow_counter_bulk */
#define OUT_FLOW_COUNTER     NIC_F(0x08, 31, 0)
#define QUERY_FLOW_CLEAR     NIC_F(0x18, 31, 31)
#define QUERY_FLOW_NUM	     NIC_F(0x18, 15, 0) /* num_of_counters */
/* DPDK mlx5_prm.h: the counters are written to memory */
#define QUERY_FLOW_DUMP	   NIC_F(0x18, 30, 30) /* dump_to_memory */
#define QUERY_FLOW_KEY	   NIC_F(0x0c, 31, 0)  /* mkey */
#define QUERY_FLOW_ADDR	   0x10
#define QUERY_FLOW_COUNTER NIC_F(0x1c, 31, 0)
#define QUERY_FLOW_STATS   0x10 /* packets and octets of each counter, 64 bits each */

/* Memory key commands: the context begins at 0x10, the entries of 16 bytes at 0x110. */
#define CMD_MKC		   0x10
#define CREATE_MKEY_ACTUAL NIC_F(0x60, 31, 0) /* translations_octword_actual_size */
#define CMD_KLM		   0x110
#define MKC_MODE_HI	   NIC_F(0x00, 28, 26)
#define MKC_RELAXED_WRITE  NIC_F(0x00, 18, 18)
#define MKC_A		   NIC_F(0x00, 14, 14)
#define MKC_RW		   NIC_F(0x00, 13, 13)
#define MKC_RR		   NIC_F(0x00, 12, 12)
#define MKC_LW		   NIC_F(0x00, 11, 11)
#define MKC_LR		   NIC_F(0x00, 10, 10)
#define MKC_MODE	   NIC_F(0x00, 9, 8)
#define MKC_QPN		   NIC_F(0x04, 31, 8)
#define MKC_TAG		   NIC_F(0x04, 7, 0) /* mkey_7_0 */
#define MKC_PD		   NIC_F(0x0c, 23, 0)
#define MKC_START	   0x10
#define MKC_LEN		   0x18
#define MKC_OCTWORDS	   NIC_F(0x34, 31, 0) /* translations_octword_size */
#define MKC_RELAXED_READ   NIC_F(0x38, 6, 6)
#define MKC_LOG_ENTITY	   NIC_F(0x38, 5, 0) /* log_page_size */
#define KLM_BYTES	   NIC_F(0x00, 31, 0)
#define KLM_KEY		   NIC_F(0x04, 31, 0)
#define KLM_ADDR	   0x08

/* opt_param_mask */
enum {
	OPT_RRE = 1 << 1,
	OPT_RAE = 1 << 2,
	OPT_RWE = 1 << 3,
	OPT_PKEY = 1 << 4,
	OPT_QKEY = 1 << 5,
	OPT_RNR_TIMEOUT = 1 << 6,
	OPT_PATH = 1 << 7,
	OPT_SRA = 1 << 8,
	OPT_RRA = 1 << 9,
	OPT_PM_STATE = 1 << 10,
	OPT_RETRY = 1 << 12,
	OPT_RNR_RETRY = 1 << 13,
	OPT_ACK_TIMEOUT = 1 << 14,
	OPT_LAG = 1 << 15,
	OPT_PORT = 1 << 16,
	OPT_DSCP = 1 << 17,
	OPT_SGID = 1 << 23, /* DOCA GPUNetIO 3.0 */
};
enum { OPT_HI_UDP_SPORT = 1 << 2, OPT_HI_MMO = 1 << 3 };
#define OPT_ACCESS (OPT_RRE | OPT_RAE | OPT_RWE)

#endif
