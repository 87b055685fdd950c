/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A stand-in for everything around the software NIC's engine, so that tests can
 * drive the engine alone: one device, object tables in plain arrays, queues in
 * ordinary memory. libibverbs and the firmware emulation are not involved.
 */
#ifndef ENGINE_FAKE_H
#define ENGINE_FAKE_H

#include "../softnic/eng.h"

#define FAKE_DEPTH  64u
#define FAKE_STRIDE 64u

/* A QP, its CQs, and what the application knows of them: queue memory and indices. */
struct fake_qp {
	struct sn_qp qp;
	struct sn_cq scq, rcq;
	uint8_t *sq, *rq, *scqe, *rcqe;
	uint32_t *dbr; /* words 0-1: the QP's DBREC, 2-3: the send CQ's, 4-5: the receive CQ's */
	uint32_t pi, rpi, sci, rci; /* producer indices of SQ and RQ, consumer indices of the CQs */
	uint8_t *uar;
};

/* An address of loopback that no other test uses: host 1 to 7 of this process. */
void fake_ip(char ip[16], unsigned host);
void fake_open(const char *ip);
/* Starts no engine thread; the test calls sn_eng_pass() instead. */
void fake_open_still(const char *ip);
void fake_close(void);
void fake_qp_init(struct fake_qp *q, uint32_t qpn, uint32_t page); /* an RC QP */
void fake_qp_init_as(struct fake_qp *q, enum sn_qp_type type, uint32_t qpn, uint32_t page);
void fake_qp_fini(struct fake_qp *q);
void fake_connect(struct fake_qp *q, const char *ip, uint32_t dest);
void fake_modify(struct fake_qp *q, enum sn_qp_state to);
uint32_t fake_mr(void *va, uint64_t len, uint32_t access); /* returns the key */
void fake_mr_drop(uint32_t key);

/*
 * The content of one WQE. fake_write_wqe() builds the WQE at the producer index,
 * fake_ring() rings the doorbell, and fake_post() does both.
 */
struct fake_wqe {
	uint8_t opcode, fm;
	uint64_t raddr;
	uint32_t rkey, imm;
	uint64_t swap, compare;
	struct {
		void *addr;
		uint32_t len, lkey;
	} sge[4];
	unsigned nsge;
	const void *inl;
	uint32_t inl_len;
};
void fake_write_wqe(struct fake_qp *q, const struct fake_wqe *w);
void fake_ring(struct fake_qp *q); /* stores the DBREC, then the doorbell register */
void fake_post(struct fake_qp *q, const struct fake_wqe *w);
void fake_recv(struct fake_qp *q, void *addr, uint32_t len, uint32_t lkey);
/*
 * Copies the next CQE of the receive CQ or the send CQ, and consumes it. Returns
 * false if no CQE arrives within ms milliseconds.
 */
bool fake_poll(struct fake_qp *q, bool recv, uint8_t cqe[64], int ms);

extern unsigned fake_events, fake_async;

#endif
