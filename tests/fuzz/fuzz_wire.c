/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: packets of a peer that means harm. An input is a sequence of
 * {control byte, length, bytes from the BTH on}; the harness gives each the
 * number of the queue pair and, when a control bit says so, the PSN that is
 * expected next and a valid key, so that the parser's depths are reached. The
 * engine must survive, and only the registered region may change.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "../unit/engine_fake.h"

#define QPN 0x55
#define REGION 4096u
#define GUARD 0x5a
#define CTL_PSN 0x01	/* request with the PSN expected next */
#define CTL_UNA 0x02	/* response to the oldest request in flight */
#define CTL_KEY 0x04	/* RETH or AtomicETH with the region's address and key */
#define CTL_TYPE 0x10	/* of the first: times this, the service */
#define CTL_POST 0x08	/* post a READ first, so that responses mean something */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fake_qp q;
static uint8_t memory[REGION * 3] __attribute__((aligned(4096)));
static uint32_t key;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	fake_open("127.66.6.6");
	key = fake_mr(memory + REGION, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	fake_qp_init(&q, QPN, 1);
	return 0;
}

/* The NIC's thread never gets the lock in between: what happens is the input's doing. */
static void feed(uint8_t ctl, const uint8_t *bytes, size_t len)
{
	struct sn_eng *e = sn_dev->eng;
	struct sn_pkt pkt = { .no_icrc = true, .head = 28, .src = sn_dev->cfg.ip,
			      .dst = sn_dev->cfg.ip };

	if (len < 12 || len > SN_PKT_DATA - 4)
		return;
	memcpy(pkt.data, bytes, len);
	pkt.len = len;
	sn_put32(pkt.data + 4, QPN);
	if (ctl & (CTL_PSN | CTL_UNA))
		sn_put32(pkt.data + 8, (sn_get32(pkt.data + 8) & 0xff000000u) |
			 (ctl & CTL_PSN ? q.qp.eng->rsp.epsn : q.qp.eng->req.una));
	if (ctl & CTL_KEY && len >= 24) {
		sn_put64(pkt.data + 12, (uintptr_t)memory + REGION + (bytes[12] << 3));
		sn_put32(pkt.data + 20, key);
	}
	sn_wire_receive(e, &pkt);
}

static void start_over(enum sn_qp_type type)
{
	fake_modify(&q, SN_QPS_RST);
	q.qp.type = type;
	q.pi = q.rpi = q.sci = q.rci = 0;
	memset(q.dbr, 0, 24);
	memset(memory, GUARD, sizeof(memory));
	fake_connect(&q, "127.66.6.6", QPN);
	for (int i = 0; i < 4; i++)
		fake_recv(&q, memory + REGION, REGION, key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_wqe read = { .opcode = 0x10, .fm = 8, .rkey = key, .nsge = 1 };
	size_t len, i;

	start_over(size ? (enum sn_qp_type)(data[0] / CTL_TYPE % 3) : SN_QPT_RC);
	read.raddr = (uintptr_t)memory + REGION;
	read.sge[0].addr = memory + REGION;
	read.sge[0].len = 64;
	read.sge[0].lkey = key;
	if (size && data[0] & CTL_POST && q.qp.type == SN_QPT_RC)
		fake_post(&q, &read);
	pthread_mutex_lock(&sn_dev->lock);
	while (size >= 2) {
		len = data[1] % 96u + 12;
		if (len > size - 2)
			len = size - 2;
		feed(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	pthread_mutex_unlock(&sn_dev->lock);
	for (i = 0; i < REGION; i++)
		if (memory[i] != GUARD || memory[2 * REGION + i] != GUARD)
			abort();
	return 0;
}
