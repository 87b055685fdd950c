/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the engine writes to a CQE, and the functions of cqe.c. Part of eng.h.
 */
#ifndef SOFTNIC_CQE_H
#define SOFTNIC_CQE_H

#include "softnic.h"

struct sn_eng;
struct sn_cqe_eth;

struct sn_cqe_args {
	const void *inl;	      /* received data for the CQE; NULL: none */
	uint8_t inl_len, inl_room;    /* its bytes; 32 or 64: where it is stored */
	const struct sn_cqe_eth *eth; /* see eth.h; NULL: not a received Ethernet frame */
	uint8_t opcode, synd, vendor, wqe_opcode;
	bool solicited;
	uint16_t counter, slid;
	uint32_t byte_cnt, imm, flags_rqpn;
};
void sn_cqe_write(struct sn_eng *e, struct sn_cq *cq, struct sn_qp *qp,
		  const struct sn_cqe_args *a);
void sn_cq_due(struct sn_eng *e);
void sn_cq_arm(struct sn_eng *e, struct sn_cq *cq, uint32_t word);
void sn_cq_scan_arms(struct sn_eng *e, bool rung);

#endif
