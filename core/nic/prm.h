/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Layouts of the firmware commands and contexts that the library or its tests use. Each field
 * is one line: byte offset of the big-endian 32-bit word, highest bit, lowest bit, as in the
 * Programmer's Reference Manual. PRM64 is a field of 64 bits at a byte offset. A name that ends
 * in _AT is the byte offset of a nested
 * layout. tests/lib/prm_fields.def has the fields again as data: tests/unit/test_prm.c compares
 * this file with that table, and tests/prm_vs_ifc.sh compares the table with the kernel's
 * mlx5_ifc.h. devx.c sends the commands.
 */
#ifndef GDK_PRM_H
#define GDK_PRM_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* A field is one number: byte offset << 16 | lowest bit << 8 | width in bits. */
#define PRM(off, hi, lo) ((uint32_t)(off) << 16 | (uint32_t)(lo) << 8 | ((hi) - (lo) + 1))
#define PRM64(off)	 ((uint32_t)(off) << 16 | 64)

#define PRM_OFFSET(field)  ((field) >> 16)
#define PRM_LOW_BIT(field) ((field) >> 8 & 0xff)
#define PRM_WIDTH(field)   ((field)&0xff)

/* Sets one field and leaves the other bits unchanged. Bits of value beyond the width of the field
 * are dropped; callers check the range. */
static inline void prm_set(void *box, uint32_t field, uint64_t value)
{
	uint8_t *at = (uint8_t *)box + PRM_OFFSET(field);
	uint64_t be64 = htobe64(value);
	uint32_t word, mask;

	if (PRM_WIDTH(field) == 64) {
		memcpy(at, &be64, sizeof(be64));
		return;
	}
	mask = (uint32_t)(((1ull << PRM_WIDTH(field)) - 1) << PRM_LOW_BIT(field));
	memcpy(&word, at, sizeof(word));
	word = be32toh(word) & ~mask;
	word = htobe32(word | ((uint32_t)(value << PRM_LOW_BIT(field)) & mask));
	memcpy(at, &word, sizeof(word));
}

static inline uint64_t prm_get(const void *box, uint32_t field)
{
	const uint8_t *at = (const uint8_t *)box + PRM_OFFSET(field);
	uint64_t be64;
	uint32_t word;

	if (PRM_WIDTH(field) == 64) {
		memcpy(&be64, at, sizeof(be64));
		return be64toh(be64);
	}
	memcpy(&word, at, sizeof(word));
	return be32toh(word) >> PRM_LOW_BIT(field) & ((1ull << PRM_WIDTH(field)) - 1);
}

/* Commands in use, by name and opcode. libmlx5 and the kernel build the DESTROY commands. */
#define GDK_COMMANDS(X) \
	X(QUERY_HCA_CAP, 0x100) \
	X(CREATE_CQ, 0x400) \
	X(DESTROY_CQ, 0x401) \
	X(QUERY_CQ, 0x402) \
	X(CREATE_QP, 0x500) \
	X(DESTROY_QP, 0x501) \
	X(RST2INIT_QP, 0x502) \
	X(INIT2RTR_QP, 0x503) \
	X(RTR2RTS_QP, 0x504) \
	X(RTS2RTS_QP, 0x505) \
	X(2ERR_QP, 0x507) \
	X(2RST_QP, 0x50a) \
	X(QUERY_QP, 0x50b) \
	X(INIT2INIT_QP, 0x50e) \
	X(ALLOC_Q_COUNTER, 0x771) \
	X(DEALLOC_Q_COUNTER, 0x772) \
	X(QUERY_Q_COUNTER, 0x773) \
	X(ALLOC_TRANSPORT_DOMAIN, 0x816) \
	X(DEALLOC_TRANSPORT_DOMAIN, 0x817) \
	X(QUERY_LAG, 0x842) \
	X(CREATE_TIR, 0x900) \
	X(DESTROY_TIR, 0x902) \
	X(CREATE_SQ, 0x904) \
	X(MODIFY_SQ, 0x905) \
	X(DESTROY_SQ, 0x906) \
	X(QUERY_SQ, 0x907) \
	X(CREATE_RQ, 0x908) \
	X(MODIFY_RQ, 0x909) \
	X(DESTROY_RQ, 0x90a) \
	X(QUERY_RQ, 0x90b) \
	X(CREATE_RMP, 0x90c) \
	X(DESTROY_RMP, 0x90e) \
	X(CREATE_TIS, 0x912) \
	X(DESTROY_TIS, 0x914) \
	X(CREATE_RQT, 0x916) \
	X(DESTROY_RQT, 0x918) \
	X(ALLOC_FLOW_COUNTER, 0x939) \
	X(DEALLOC_FLOW_COUNTER, 0x93a) \
	X(QUERY_FLOW_COUNTER, 0x93b)

#define GDK_COMMAND(name, opcode) GDK_CMD_##name = opcode,
enum { GDK_COMMANDS(GDK_COMMAND) };

/* Lengths of command boxes and contexts in bytes. A box without an entry of its own has the length
 * PRM_CMD_IN_LEN or PRM_CMD_OUT_LEN. */
enum {
	PRM_CMD_IN_LEN = 0x10,
	PRM_CMD_OUT_LEN = 0x10,
	PRM_CREATE_CQ_IN_LEN = 0x110,
	PRM_QUERY_CQ_OUT_LEN = 0x110,
	PRM_CREATE_QP_IN_LEN = 0x110,
	PRM_CREATE_QP_EXT_IN_LEN = 0x1d0, /* with an extension of the context */
	PRM_MODIFY_QP_IN_LEN = 0x110,	  /* RST2INIT to RTS2RTS; 2ERR, 2RST: 0x10 */
	PRM_QUERY_QP_OUT_LEN = 0x110,
	PRM_CREATE_RMP_IN_LEN = 0x110,
	PRM_CREATE_TIS_IN_LEN = 0xc0,
	PRM_SQ_RQ_IN_LEN = 0x110, /* CREATE and MODIFY of an SQ or RQ */
	PRM_QUERY_SQ_RQ_OUT_LEN = 0x110,
	PRM_QUERY_Q_COUNTER_IN_LEN = 0x20,
	PRM_QUERY_Q_COUNTER_OUT_LEN = 0x100,
	PRM_CREATE_TIR_IN_LEN = 0x110,
	PRM_CREATE_RQT_IN_LEN = 0x110, /* and PRM_RQT_ENTRY_LEN for each entry */
	PRM_RQT_ENTRY_LEN = 0x4,
	PRM_QUERY_FLOW_COUNTER_IN_LEN = 0x20,
	PRM_QUERY_FLOW_COUNTER_OUT_LEN = 0x20,
	PRM_FTE_LYR_2_4_LEN = 0x40,
	PRM_QUERY_HCA_CAP_OUT_LEN = 0x1010,
	PRM_QUERY_ROCE_ADDRESS_OUT_LEN = 0x30,
	PRM_QUERY_LAG_OUT_LEN = 0x10,
	PRM_CQC_LEN = 0x40,
	PRM_QPC_LEN = 0xe8,
	PRM_ADS_LEN = 0x2c,
};

/* First fields of a command. Input box: opcode, user ID, modifier, and the number of the object
 * that the command works on. Output box: status, syndrome, number of the new object. */
#define PRM_CMD_OPCODE	   PRM(0x00, 31, 16)
#define PRM_CMD_UID	   PRM(0x00, 15, 0)
#define PRM_CMD_OP_MOD	   PRM(0x04, 15, 0)
#define PRM_CMD_OBJECT	   PRM(0x08, 23, 0)
#define PRM_CMD_STATUS	   PRM(0x00, 31, 24)
#define PRM_CMD_SYNDROME   PRM(0x04, 31, 0)
#define PRM_CMD_OUT_OBJECT PRM(0x08, 23, 0)

/* CREATE_CQ and QUERY_CQ */
#define PRM_CREATE_CQ_CQC_AT	  0x10
#define PRM_CREATE_CQ_UMEM_OFFSET PRM64(0x50)
#define PRM_CREATE_CQ_UMEM_ID	  PRM(0x58, 31, 0)
#define PRM_CREATE_CQ_UMEM_VALID  PRM(0x5c, 31, 31)
#define PRM_QUERY_CQ_CQC_AT	  0x10

/* CQC: completion queue context */
#define PRM_CQC_STATUS		 PRM(0x00, 31, 28)
#define PRM_CQC_DBR_UMEM_VALID	 PRM(0x00, 25, 25)
#define PRM_CQC_CQE_SZ		 PRM(0x00, 23, 21)
#define PRM_CQC_CC		 PRM(0x00, 20, 20)
#define PRM_CQC_OI		 PRM(0x00, 17, 17)
#define PRM_CQC_ST		 PRM(0x00, 11, 8)
#define PRM_CQC_DBR_UMEM_ID	 PRM(0x04, 31, 0)
#define PRM_CQC_PAGE_OFFSET	 PRM(0x08, 11, 6)
#define PRM_CQC_LOG_CQ_SIZE	 PRM(0x0c, 28, 24)
#define PRM_CQC_UAR_PAGE	 PRM(0x0c, 23, 0)
#define PRM_CQC_C_EQN		 PRM(0x14, 31, 0)
#define PRM_CQC_LOG_PAGE_SIZE	 PRM(0x18, 28, 24)
#define PRM_CQC_CONSUMER_COUNTER PRM(0x28, 23, 0)
#define PRM_CQC_PRODUCER_COUNTER PRM(0x2c, 23, 0)
#define PRM_CQC_DBR_ADDR	 PRM64(0x38)

enum {
	GDK_CQC_CQE_SZ_64 = 0,
	GDK_CQC_CQE_SZ_128 = 1,
};

/* CREATE_QP, the transitions RST2INIT to RTS2RTS, and QUERY_QP */
#define PRM_CREATE_QP_QPC_EXT	     PRM(0x08, 31, 31) /* an extension of the context follows */
#define PRM_CREATE_QP_INPUT_QPN	     PRM(0x08, 23, 0)
#define PRM_CREATE_QP_OPT_PARAM_MASK PRM(0x10, 31, 0)
#define PRM_CREATE_QP_QPC_AT	     0x18
#define PRM_CREATE_QP_WQ_UMEM_OFFSET PRM64(0x100)
#define PRM_CREATE_QP_WQ_UMEM_ID     PRM(0x108, 31, 0)
#define PRM_CREATE_QP_WQ_UMEM_VALID  PRM(0x10c, 31, 31)
#define PRM_CREATE_QP_QPC_EXT_AT     0x110
#define PRM_QPC_EXT_MMO		     PRM(0x00, 29, 29)
#define PRM_MODIFY_QP_QPN	     PRM(0x08, 23, 0)
#define PRM_MODIFY_QP_OPT_PARAM_MASK PRM(0x10, 31, 0)
#define PRM_MODIFY_QP_QPC_AT	     0x18
#define PRM_QUERY_QP_OPT_PARAM_MASK  PRM(0x10, 31, 0)
#define PRM_QUERY_QP_QPC_AT	     0x18

/* opt_param_mask: which optional parameters a transition takes from the QPC */
enum {
	GDK_OPTPAR_RRE = 1 << 1,
	GDK_OPTPAR_RAE = 1 << 2,
	GDK_OPTPAR_RWE = 1 << 3,
	GDK_OPTPAR_PKEY_INDEX = 1 << 4,
	GDK_OPTPAR_RNR_TIMEOUT = 1 << 6,
	GDK_OPTPAR_PRIMARY_ADDR_PATH = 1 << 7,
	GDK_OPTPAR_SRA_MAX = 1 << 8,
	GDK_OPTPAR_RRA_MAX = 1 << 9,
	GDK_OPTPAR_PM_STATE = 1 << 10,
	GDK_OPTPAR_RETRY_COUNT = 1 << 12,
	GDK_OPTPAR_RNR_RETRY = 1 << 13,
	GDK_OPTPAR_ACK_TIMEOUT = 1 << 14,
	GDK_OPTPAR_LAG_TX_AFF = 1 << 15,
	GDK_OPTPAR_PRI_PORT = 1 << 16,
};

/* QPC: queue pair context */
#define PRM_QPC_STATE		     PRM(0x00, 31, 28)
#define PRM_QPC_LAG_TX_PORT_AFFINITY PRM(0x00, 27, 24)
#define PRM_QPC_ST		     PRM(0x00, 23, 16)
#define PRM_QPC_PM_STATE	     PRM(0x00, 12, 11)
#define PRM_QPC_PD		     PRM(0x04, 23, 0)
#define PRM_QPC_MTU		     PRM(0x08, 31, 29)
#define PRM_QPC_LOG_MSG_MAX	     PRM(0x08, 28, 24)
#define PRM_QPC_LOG_RQ_SIZE	     PRM(0x08, 22, 19)
#define PRM_QPC_LOG_RQ_STRIDE	     PRM(0x08, 18, 16)
#define PRM_QPC_NO_SQ		     PRM(0x08, 15, 15)
#define PRM_QPC_LOG_SQ_SIZE	     PRM(0x08, 14, 11)
#define PRM_QPC_TS_FORMAT	     PRM(0x08, 7, 6)
#define PRM_QPC_RLKY		     PRM(0x08, 4, 4)
#define PRM_QPC_COUNTER_SET_ID	     PRM(0x0c, 31, 24)
#define PRM_QPC_UAR_PAGE	     PRM(0x0c, 23, 0)
#define PRM_QPC_SEND_DBR_MODE	     PRM(0x10, 31, 30)
#define PRM_QPC_USER_INDEX	     PRM(0x10, 23, 0)
#define PRM_QPC_LOG_PAGE_SIZE	     PRM(0x14, 28, 24)
#define PRM_QPC_REMOTE_QPN	     PRM(0x14, 23, 0)
#define PRM_QPC_PATH_AT		     0x18
#define PRM_QPC_LOG_ACK_REQ_FREQ     PRM(0x70, 31, 28)
#define PRM_QPC_LOG_SRA_MAX	     PRM(0x70, 23, 21)
#define PRM_QPC_RETRY_COUNT	     PRM(0x70, 18, 16)
#define PRM_QPC_RNR_RETRY	     PRM(0x70, 15, 13)
#define PRM_QPC_NEXT_SEND_PSN	     PRM(0x78, 23, 0)
#define PRM_QPC_CQN_SND		     PRM(0x7c, 23, 0)
#define PRM_QPC_LAST_ACKED_PSN	     PRM(0x88, 23, 0)
#define PRM_QPC_LOG_RRA_MAX	     PRM(0x90, 23, 21)
#define PRM_QPC_ATOMIC_MODE	     PRM(0x90, 19, 16)
#define PRM_QPC_RRE		     PRM(0x90, 15, 15)
#define PRM_QPC_RWE		     PRM(0x90, 14, 14)
#define PRM_QPC_RAE		     PRM(0x90, 13, 13)
#define PRM_QPC_PAGE_OFFSET	     PRM(0x90, 11, 6)
#define PRM_QPC_CD_SLAVE_RECEIVE     PRM(0x90, 2, 2)
#define PRM_QPC_CD_SLAVE_SEND	     PRM(0x90, 1, 1)
#define PRM_QPC_CD_MASTER	     PRM(0x90, 0, 0)
#define PRM_QPC_MIN_RNR_NAK	     PRM(0x94, 28, 24)
#define PRM_QPC_NEXT_RCV_PSN	     PRM(0x94, 23, 0)
#define PRM_QPC_CQN_RCV		     PRM(0x9c, 23, 0)
#define PRM_QPC_DBR_ADDR	     PRM64(0xa0)
#define PRM_QPC_RQ_TYPE		     PRM(0xac, 26, 24)
#define PRM_QPC_SRQN_RMPN_XRQN	     PRM(0xac, 23, 0)
#define PRM_QPC_HW_SQ_WQEBB_COUNTER  PRM(0xb4, 31, 16)
#define PRM_QPC_SW_SQ_WQEBB_COUNTER  PRM(0xb4, 15, 0)
#define PRM_QPC_CS_REQ		     PRM(0xc4, 15, 8)
#define PRM_QPC_CS_RES		     PRM(0xc4, 7, 0)
#define PRM_QPC_DBR_UMEM_VALID	     PRM(0xd0, 28, 28)
#define PRM_QPC_DBR_UMEM_ID	     PRM(0xe4, 31, 0)

enum {
	GDK_QPS_RST = 0,
	GDK_QPS_INIT = 1,
	GDK_QPS_RTR = 2,
	GDK_QPS_RTS = 3,
	GDK_QPS_SQER = 4,
	GDK_QPS_SQD = 5,
	GDK_QPS_ERR = 6,
};

enum {
	GDK_QPC_CS_RES_32 = 1, /* up to 32 bytes of received data in CQEs of 64 bytes */
	GDK_QPC_ST_RC = 0,
	GDK_QPC_PM_MIGRATED = 3,
	GDK_QPC_RQ_REGULAR = 0,
	GDK_QPC_RQ_SRQ_RMP = 1, /* field srqn_rmpn_xrqn has the number of the receive queue */
	GDK_QPC_RQ_NONE = 3,
	GDK_QPC_MTU_256 = 1, /* 256 bytes; each further value doubles the MTU, up to 5: 4096 */
	GDK_QPC_LOG_MSG_MAX = 30,
	GDK_QPC_DBR_VALID = 0,
	GDK_QPC_NO_DBR_EXT = 1,
	GDK_QPC_TS_FORMAT_FREE_RUNNING = 0,
	GDK_QPC_TS_FORMAT_DEFAULT = 1,
};

/* ADS: address path, at PRM_QPC_PATH_AT within a QPC */
#define PRM_ADS_PKEY_INDEX     PRM(0x00, 15, 0)
#define PRM_ADS_GRH	       PRM(0x04, 23, 23)
#define PRM_ADS_MLID	       PRM(0x04, 22, 16)
#define PRM_ADS_RLID	       PRM(0x04, 15, 0)
#define PRM_ADS_ACK_TIMEOUT    PRM(0x08, 31, 27)
#define PRM_ADS_SRC_ADDR_INDEX PRM(0x08, 23, 16)
#define PRM_ADS_STAT_RATE      PRM(0x08, 11, 8)
#define PRM_ADS_HOP_LIMIT      PRM(0x08, 7, 0)
#define PRM_ADS_TCLASS	       PRM(0x0c, 27, 20)
#define PRM_ADS_FLOW_LABEL     PRM(0x0c, 19, 0)
#define PRM_ADS_RGID_AT	       0x10
#define PRM_ADS_ECN	       PRM(0x20, 23, 22)
#define PRM_ADS_DSCP	       PRM(0x20, 21, 16)
#define PRM_ADS_UDP_SPORT      PRM(0x20, 15, 0)
#define PRM_ADS_ETH_PRIO       PRM(0x24, 30, 28)
#define PRM_ADS_SL	       PRM(0x24, 27, 24)
#define PRM_ADS_VHCA_PORT_NUM  PRM(0x24, 23, 16)
#define PRM_ADS_RMAC_47_32     PRM(0x24, 15, 0)
#define PRM_ADS_RMAC_31_0      PRM(0x28, 31, 0)

/* CREATE_RMP (a receive queue that QPs share), its context and work queue */
#define PRM_CREATE_RMP_RMPC_AT	      0x20
#define PRM_RMPC_STATE		      PRM(0x00, 23, 20)
#define PRM_RMPC_BASIC_CYCLIC_RCV_WQE PRM(0x04, 31, 31)
#define PRM_RMPC_WQ_AT		      0x30
#define PRM_WQ_TYPE		      PRM(0x00, 31, 28)
#define PRM_WQ_END_PADDING_MODE	      PRM(0x00, 26, 25)
#define PRM_WQ_PD		      PRM(0x08, 23, 0)
#define PRM_WQ_UAR_PAGE		      PRM(0x0c, 23, 0)
#define PRM_WQ_DBR_ADDR		      PRM64(0x10)
#define PRM_WQ_LOG_STRIDE	      PRM(0x20, 19, 16)
#define PRM_WQ_LOG_PG_SZ	      PRM(0x20, 12, 8)
#define PRM_WQ_LOG_SZ		      PRM(0x20, 4, 0)
#define PRM_WQ_DBR_UMEM_VALID	      PRM(0x24, 31, 31)
#define PRM_WQ_UMEM_VALID	      PRM(0x24, 30, 30)
#define PRM_WQ_DBR_UMEM_ID	      PRM(0x28, 31, 0)
#define PRM_WQ_UMEM_ID		      PRM(0x2c, 31, 0)
#define PRM_WQ_UMEM_OFFSET	      PRM64(0x30)

/* Ethernet queues: SQ and RQ with their work queues, TIS, transport domain, queue counters. The
 * layouts of CREATE and MODIFY are alike. */
#define PRM_CREATE_SQ_SQC_AT   0x20
#define PRM_CREATE_RQ_RQC_AT   0x20
#define PRM_QUERY_SQ_SQC_AT    0x20
#define PRM_QUERY_RQ_RQC_AT    0x20
#define PRM_MODIFY_SQ_STATE    PRM(0x08, 31, 28) /* the state before */
#define PRM_MODIFY_RQ_STATE    PRM(0x08, 31, 28)
#define PRM_SQC_FLUSH_IN_ERROR PRM(0x00, 28, 28)
#define PRM_SQC_MULTI_PKT      PRM(0x00, 27, 27) /* allow_multi_pkt_send_wqe */
#define PRM_SQC_MIN_INLINE     PRM(0x00, 26, 24) /* min_wqe_inline_mode */
#define PRM_SQC_STATE	       PRM(0x00, 23, 20)
#define PRM_SQC_TS_FORMAT      PRM(0x00, 5, 4)
#define PRM_SQC_USER_INDEX     PRM(0x04, 23, 0)
#define PRM_SQC_CQN	       PRM(0x08, 23, 0)
#define PRM_SQC_TIS_LST_SZ     PRM(0x20, 31, 16)
#define PRM_SQC_TIS_NUM_0      PRM(0x2c, 23, 0)
#define PRM_SQC_WQ_AT	       0x30
#define PRM_RQC_VSD	       PRM(0x00, 28, 28)
#define PRM_RQC_STATE	       PRM(0x00, 23, 20)
#define PRM_RQC_FLUSH_IN_ERROR PRM(0x00, 18, 18)
#define PRM_RQC_TS_FORMAT      PRM(0x00, 5, 4)
#define PRM_RQC_USER_INDEX     PRM(0x04, 23, 0)
#define PRM_RQC_CQN	       PRM(0x08, 23, 0)
#define PRM_RQC_COUNTER_SET    PRM(0x0c, 31, 24)
#define PRM_RQC_WQ_AT	       0x30
#define PRM_CREATE_TIS_TISC_AT 0x20
#define PRM_TISC_PRIO	       PRM(0x00, 19, 16)
#define PRM_TISC_TD	       PRM(0x24, 23, 0)
#define PRM_Q_COUNTER_SET      PRM(0x08, 7, 0)	/* number of a new set */
#define PRM_QUERY_Q_COUNTER_ID PRM(0x1c, 7, 0)	/* counter_set_id */
#define PRM_Q_COUNTER_NO_WQE   PRM(0x30, 31, 0) /* out_of_buffer */

enum {
	GDK_WQ_STATE_RST = 0, /* states of an SQ or RQ */
	GDK_WQ_STATE_RDY = 1,
	GDK_WQ_STATE_ERR = 3,
	GDK_TS_FORMAT_FREE_RUNNING = 0,
	GDK_TS_FORMAT_DEFAULT = 1,
	GDK_TS_FORMAT_REAL_TIME = 2,
};

enum {
	GDK_RMPC_STATE_RDY = 1,
	GDK_WQ_LINKED_LIST = 0,
	GDK_WQ_CYCLIC = 1,
};

/* CREATE_RQT: table of RQs, from which a hash selects one */
#define PRM_CREATE_RQT_RQTC_AT 0x20
#define PRM_RQTC_MAX_SIZE      PRM(0x14, 15, 0)
#define PRM_RQTC_ACTUAL_SIZE   PRM(0x18, 15, 0)
#define PRM_RQTC_RQ_NUM_AT     0xf0
#define PRM_RQ_NUM	       PRM(0x00, 23, 0) /* in an entry */

/* CREATE_TIR: destination of flow rules */
#define PRM_CREATE_TIR_TIRC_AT	  0x20
#define PRM_TIRC_DISP_TYPE	  PRM(0x04, 31, 28)
#define PRM_TIRC_INLINE_RQN	  PRM(0x1c, 23, 0)
#define PRM_TIRC_INDIRECT_TABLE	  PRM(0x20, 23, 0)
#define PRM_TIRC_RX_HASH_FN	  PRM(0x24, 31, 28)
#define PRM_TIRC_TRANSPORT_DOMAIN PRM(0x24, 23, 0)
#define PRM_TIRC_TOEPLITZ_KEY_AT  0x28
#define PRM_TIRC_HASH_OUTER_AT	  0x50
#define PRM_HASH_L4_PROT_TYPE	  PRM(0x00, 30, 30)
#define PRM_HASH_SELECTED	  PRM(0x00, 29, 0)

enum {
	GDK_TIR_DIRECT = 0, /* to inline_rqn */
	GDK_TIR_INDIRECT = 1,
	GDK_RX_HASH_TOEPLITZ = 2,
	GDK_TOEPLITZ_KEY_LEN = 40,
	GDK_HASH_L4_TCP = 0,
	GDK_HASH_L4_UDP = 1,
};

/* Bits of PRM_HASH_SELECTED */
enum {
	GDK_HASH_SRC_IP = 1 << 0,
	GDK_HASH_DST_IP = 1 << 1,
	GDK_HASH_L4_SPORT = 1 << 2,
	GDK_HASH_L4_DPORT = 1 << 3,
};

/* ALLOC_FLOW_COUNTER and QUERY_FLOW_COUNTER */
#define PRM_ALLOC_FLOW_COUNTER_ID   PRM(0x08, 31, 0)
#define PRM_QUERY_FLOW_COUNTER_ID   PRM(0x1c, 31, 0)
#define PRM_QUERY_FLOW_COUNTER_AT   0x10
#define PRM_TRAFFIC_COUNTER_PACKETS PRM64(0x00)
#define PRM_TRAFFIC_COUNTER_OCTETS  PRM64(0x08)

/* Match of a flow rule: outer headers of fte_match_param, at its beginning. An IPv4 address is the
 * last word of an address. */
#define PRM_FTE_SMAC_47_16  PRM(0x00, 31, 0)
#define PRM_FTE_SMAC_15_0   PRM(0x04, 31, 16)
#define PRM_FTE_ETHERTYPE   PRM(0x04, 15, 0)
#define PRM_FTE_DMAC_47_16  PRM(0x08, 31, 0)
#define PRM_FTE_DMAC_15_0   PRM(0x0c, 31, 16)
#define PRM_FTE_FIRST_VID   PRM(0x0c, 11, 0)
#define PRM_FTE_IP_PROTOCOL PRM(0x10, 31, 24)
#define PRM_FTE_CVLAN_TAG   PRM(0x10, 15, 15)
#define PRM_FTE_FRAG	    PRM(0x10, 13, 13)
#define PRM_FTE_TCP_FLAGS   PRM(0x10, 8, 0)
#define PRM_FTE_TCP_SPORT   PRM(0x14, 31, 16)
#define PRM_FTE_TCP_DPORT   PRM(0x14, 15, 0)
#define PRM_FTE_UDP_SPORT   PRM(0x1c, 31, 16)
#define PRM_FTE_UDP_DPORT   PRM(0x1c, 15, 0)
#define PRM_FTE_SRC_IP_AT   0x20
#define PRM_FTE_DST_IP_AT   0x30
#define PRM_IPV4	    PRM(0x0c, 31, 0) /* in an address */

enum {
	GDK_MATCH_OUTER_HEADERS = 1, /* match_criteria_enable */
};

/* QUERY_HCA_CAP: op_mod is group << 1 | GDK_CAP_CURRENT */
#define PRM_QUERY_HCA_CAP_AT 0x10

enum {
	GDK_CAP_CURRENT = 1,
	GDK_CAP_GENERAL = 0x0,
	GDK_CAP_ETHERNET = 0x1,
	GDK_CAP_ROCE = 0x4,
	GDK_CAP_GENERAL_2 = 0x20,
};

/* general capabilities */
enum {
	GDK_PORT_IB = 0,
	GDK_PORT_ETHERNET = 1,
};

#define PRM_HCA_CAP_2		PRM(0x04, 31, 31)
#define PRM_HCA_LOG_DMA_MMO_MAX PRM(0x0c, 20, 16) /* log_dma_mmo_max_size */
#define PRM_HCA_LOG_MAX_QP_SZ	PRM(0x10, 23, 16)
#define PRM_HCA_LOG_MAX_CQ_SZ	PRM(0x18, 23, 16)
#define PRM_HCA_DMA_MMO_SQ	PRM(0x28, 12, 12)
#define PRM_HCA_RTS2RTS_LAG	PRM(0x28, 13, 13) /* rts2rts_lag_tx_port_affinity */
#define PRM_HCA_RTS2RTS_QP_DSCP PRM(0x2c, 21, 21)
#define PRM_HCA_GID_TABLE_SIZE	PRM(0x2c, 15, 0)
#define PRM_HCA_PORT_TYPE	PRM(0x34, 9, 8)
#define PRM_HCA_NUM_PORTS	PRM(0x34, 7, 0)
#define PRM_HCA_GROUP_MANAGER	PRM(0x34, 31, 31) /* vport_group_manager */
#define PRM_HCA_CQE_VERSION	PRM(0x3c, 3, 0)
#define PRM_HCA_NIC_FLOW_TABLE	PRM(0x34, 25, 25)
#define PRM_HCA_SCTR_DATA_CQE	PRM(0x40, 10, 10)
#define PRM_HCA_ETH_OFFLOADS	PRM(0x40, 3, 3) /* eth_net_offloads */
#define PRM_HCA_ROCE		PRM(0x40, 2, 2)
#define PRM_HCA_CD		PRM(0x44, 19, 19)
#define PRM_HCA_RC		PRM(0x44, 0, 0)
#define PRM_HCA_LAG_TX_PORT	PRM(0x4c, 7, 7) /* lag_tx_port_affinity */
#define PRM_HCA_LAG_MASTER	PRM(0x4c, 4, 4)
#define PRM_HCA_NUM_LAG_PORTS	PRM(0x4c, 3, 0)
#define PRM_HCA_MAX_WQE_SZ_SQ	PRM(0x50, 15, 0)
#define PRM_HCA_MAX_WQE_SZ_RQ	PRM(0x54, 15, 0)
#define PRM_HCA_SQ_TS_FORMAT	PRM(0x88, 31, 30)
#define PRM_HCA_RQ_TS_FORMAT	PRM(0x88, 29, 28)
#define PRM_HCA_WAIT_ON_TIME	PRM(0xd0, 19, 19)
#define PRM_HCA_FREQUENCY_KHZ	PRM(0x9c, 31, 0) /* device_frequency_khz */
#define PRM_HCA_DMA_MMO_QP	PRM(0xe8, 23, 23)

/* Ethernet capabilities */
#define PRM_ETH_CSUM	    PRM(0x00, 31, 31)
#define PRM_ETH_INLINE_MODE PRM(0x00, 13, 12) /* wqe_inline_mode */
#define PRM_ETH_EMPW	    PRM(0x00, 5, 5)   /* enhanced_multi_pkt_send_wqe */

enum {
	GDK_INLINE_MODE_L2 = 0, /* every send WQE needs the Ethernet header inline */
	GDK_INLINE_MODE_VPORT = 1,
	GDK_INLINE_MODE_NOT_REQUIRED = 2,
};

/* qp_ts_format and sq_ts_format: supported timestamp formats */
enum {
	GDK_TS_CAP_FREE_RUNNING = 0,
	GDK_TS_CAP_REAL_TIME = 1,
	GDK_TS_CAP_BOTH = 2,
};

/* QUERY_LAG: state of a bond */
#define PRM_QUERY_LAG_AT	     0x08
#define PRM_LAGC_PORT_SELECT_MODE    PRM(0x00, 10, 8)
#define PRM_LAGC_STATE		     PRM(0x00, 2, 0) /* 1: active */
#define PRM_LAGC_TX_REMAP_AFFINITY_2 PRM(0x04, 11, 8)
#define PRM_LAGC_TX_REMAP_AFFINITY_1 PRM(0x04, 3, 0)

enum {
	GDK_LAG_BY_QUEUE = 0, /* each QP has a port; else a hash of the packet selects the port */
};

/* general capabilities 2 */
#define PRM_HCA2_SEND_DBR_MODE_NO_DBR_EXT PRM(0x5c, 30, 30)

/* RoCE capabilities */
#define PRM_ROCE_QP_TS_FORMAT	    PRM(0x00, 1, 0)
#define PRM_ROCE_MAX_SRC_UDP_PORT   PRM(0x18, 31, 16)
#define PRM_ROCE_MIN_SRC_UDP_PORT   PRM(0x18, 15, 0)
#define PRM_ROCE_ADDRESS_TABLE_SIZE PRM(0x1c, 15, 0)

/* QUERY_ROCE_ADDRESS: one entry of the port's GID table */
#define PRM_QUERY_ROCE_ADDRESS_INDEX PRM(0x08, 31, 16)
#define PRM_QUERY_ROCE_ADDRESS_AT    0x10
#define PRM_ROCE_ADDR_ROCE_VERSION   PRM(0x18, 7, 0)

enum {
	GDK_ROCE_VERSION_1 = 0,
	GDK_ROCE_VERSION_2 = 2,
};

#endif
