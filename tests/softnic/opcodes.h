/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Numeric codes of the hardware formats and the packet formats that the engine
 * reads and writes: opcodes of WQEs, CQEs and packets (BTH), syndromes of error
 * CQEs and of NAKs, sizes of extended packet headers. Field layouts are in the
 * files that parse and build them.
 */
#ifndef SOFTNIC_OPCODES_H
#define SOFTNIC_OPCODES_H

/* WQE opcodes */
enum {
	SN_OP_NOP = 0x00,
	SN_OP_SEND_INVAL = 0x01,
	SN_OP_WRITE = 0x08,
	SN_OP_WRITE_IMM = 0x09,
	SN_OP_SEND = 0x0a,
	SN_OP_SEND_IMM = 0x0b,
	SN_OP_WAIT = 0x0f,
	SN_OP_READ = 0x10,
	SN_OP_CS = 0x11,
	SN_OP_FA = 0x12,
	SN_OP_MASKED_CS = 0x14,
	SN_OP_MASKED_FA = 0x15,
	SN_OP_DUMP = 0x23,
	SN_OP_MMO = 0x2f,
};

/* CQE opcodes */
enum {
	SN_CQE_REQ = 0,
	SN_CQE_RESP_WRITE_IMM = 1,
	SN_CQE_RESP_SEND = 2,
	SN_CQE_RESP_SEND_IMM = 3,
	SN_CQE_RESIZE = 5,
	SN_CQE_REQ_ERR = 13,
	SN_CQE_RESP_ERR = 14,
};

/* Syndromes of error CQEs */
enum {
	SN_SYND_LOC_LEN = 0x01,
	SN_SYND_LOC_OP = 0x02,
	SN_SYND_LOC_PROT = 0x04,
	SN_SYND_FLUSH = 0x05,
	SN_SYND_BAD_RESP = 0x10,
	SN_SYND_LOC_ACCESS = 0x11,
	SN_SYND_REM_INV = 0x12,
	SN_SYND_REM_ACCESS = 0x13,
	SN_SYND_REM_OP = 0x14,
	SN_SYND_RETRY = 0x15,
	SN_SYND_RNR = 0x16,
};

/* BTH opcodes of RC, then those of UC, UD and masked atomics. The upper three bits of an opcode
 * select the service; SN_BTH_UC is added to an opcode of RC. */
enum {
	SN_BTH_SEND_FIRST = 0,
	SN_BTH_SEND_MIDDLE,
	SN_BTH_SEND_LAST,
	SN_BTH_SEND_LAST_IMM,
	SN_BTH_SEND_ONLY,
	SN_BTH_SEND_ONLY_IMM,
	SN_BTH_WRITE_FIRST,
	SN_BTH_WRITE_MIDDLE,
	SN_BTH_WRITE_LAST,
	SN_BTH_WRITE_LAST_IMM,
	SN_BTH_WRITE_ONLY,
	SN_BTH_WRITE_ONLY_IMM,
	SN_BTH_READ_REQ,
	SN_BTH_RESP_FIRST,
	SN_BTH_RESP_MIDDLE,
	SN_BTH_RESP_LAST,
	SN_BTH_RESP_ONLY,
	SN_BTH_ACK,
	SN_BTH_ATOMIC_ACK,
	SN_BTH_CS,
	SN_BTH_FA,
	SN_BTH_UC = 0x20,
	SN_BTH_UD_SEND = 0x64,
	SN_BTH_UD_SEND_IMM = 0x65,
	/* manufacturer's range: masked atomics of 8 and of 4 bytes, used between two software
	 * NICs only */
	SN_BTH_MASKED_CS = 0xd3,
	SN_BTH_MASKED_FA,
	SN_BTH_MASKED_CS4,
	SN_BTH_MASKED_FA4,
};

/* AETH syndromes of NAKs. An RNR NAK is SN_AETH_RNR plus the timer code. */
enum { SN_NAK_SEQ = 0x60, SN_NAK_INV = 0x61, SN_NAK_ACCESS = 0x62, SN_NAK_OP = 0x63 };
#define SN_AETH_RNR 0x20u

/* Bytes of extended headers. A masked atomic carries two masks in addition. */
enum { SN_RETH = 16, SN_ATOMIC_ETH = 28, SN_MASKED_ETH = 44 };

#endif
