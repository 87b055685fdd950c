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
	OP_QUERY_LAG = 0x842,
	OP_CREATE_RMP = 0x90c,
	OP_MODIFY_RMP,
	OP_QUERY_RMP = 0x90f,
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
enum { OPT_HI_UDP_SPORT = 1 << 2 };
#define OPT_ACCESS (OPT_RRE | OPT_RAE | OPT_RWE)

#endif
