/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The Ethernet port of the NIC's engine for a fuzzer: its objects, actions of the program that
 * owns them, and the checks of memory and counters; see eth_rig.h. */
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdlib.h>

#include "eth_rig.h"

#define GUARD  0x5a
#define OWN_IP "127.66.6.6"
#define PAGE   1u
#define VNI    1u

struct eth_rig eth_rig;
void (*eth_rig_account)(void);
/* What the regions contain, but for bytes that receive WQEs name: these are in `writable`. */
static uint8_t shadow[RIG_REGIONS][ETH_REGION], writable[RIG_REGIONS][ETH_REGION];

void eth_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

void eth_store(enum rig_region region, uint32_t off, const void *bytes, uint32_t len)
{
	if (off > ETH_REGION || len > ETH_REGION - off)
		return;
	memcpy(rig_memory(region) + off, bytes, len);
	memcpy(shadow[region] + off, bytes, len);
}

static void check_region(int region)
{
	const uint8_t *now = rig_memory((enum rig_region)region);
	uint32_t i;

	for (i = 0; i < ETH_REGION; i++)
		ETH_CHECK(now[i] == shadow[region][i] || writable[region][i],
			  "byte %u of region %d was written, but no receive WQE names it", i,
			  region);
}

/* ---- the device ---- */

static void set_cfg(uint8_t how, uint8_t faults)
{
	static const uint32_t mtus[4] = { 0, 64, 1500, 9216 };
	struct sn_cfg *cfg = &sn_dev->cfg;
	struct in6_addr peer;

	cfg->trace = how & 1;
	cfg->eth_mtu = mtus[how >> 1 & 3];
	cfg->eth_pause = how & 8;
	cfg->eth_vni = VNI;
	cfg->dbrec_only = how & 0x10;
	cfg->wait_on_time = !(how & 0x20);
	cfg->ts_format = how & 0x40 ? SN_TS_REAL : SN_TS_BOTH;
	if (how & 0x80)
		memset(cfg->ip.s6_addr, 0xfd, 12);
	peer = cfg->ip;
	peer.s6_addr[15] ^= 1;
	cfg->eth_peers[0] = peer;
	cfg->eth_npeers = 1;
	cfg->loss_ppm = cfg->dup_ppm = faults & 1 ? 100000 : 0;
	cfg->reorder_ppm = faults & 2 ? 100000 : 0;
	cfg->corrupt_ppm = faults & 4 ? 100000 : 0;
	cfg->delay_us = faults & 8 ? 20 : 0;
	cfg->err_after = faults & 0x10 ? 3 : 0;
}

static void add_queue(struct fake_qp *q, struct sn_eth *eth, enum sn_qp_type type, uint32_t number)
{
	fake_qp_init_as(q, type, number, PAGE);
	q->qp.eth = eth;
	q->qp.rq_wqes = type == SN_QPT_RQ ? FAKE_DEPTH : 0;
	q->qp.sq_wqebbs = type == SN_QPT_SQ ? FAKE_DEPTH : 0;
}

static void add_queues(uint8_t how, uint8_t inl)
{
	struct eth_rig *r = &eth_rig;
	unsigned i;

	add_queue(&r->sq, &r->eth[0], SN_QPT_SQ, ETH_SQN);
	for (i = 0; i < ETH_RQS; i++) {
		add_queue(&r->rq[i], &r->eth[1 + i], SN_QPT_RQ, ETH_RQN + i);
		r->eth[1 + i].counters = &r->set;
		r->eth[1 + i].keep_vlan = how & 1 << i;
		r->eth[1 + i].scatter_fcs = how & 4 << i;
		r->eth[1 + i].end_pad = how & 0x10;
	}
	r->sq.qp.sig_all = how & 0x20;
	r->sq.qp.no_dbr = how & 0x40;
	for (i = 0; i < 1 + ETH_RQS; i++)
		r->eth[i].flush_in_error = how & 0x80;
	r->eth[0].min_inline = inl & 3;
	r->eth[0].empw = !(inl & 4);
	for (i = 0; i < ETH_RQS; i++)
		r->rq[i].qp.ts_format = inl >> 3 & 3;
	r->sq.qp.ts_format = inl >> 5 & 3;
}

static void add_tirs(void)
{
	struct eth_rig *r = &eth_rig;
	unsigned i;

	r->rqt = (struct sn_rqt){ .rq = r->table, .max = 4, .n = 4 };
	for (i = 0; i < 4; i++)
		r->table[i] = &r->rq[i % ETH_RQS].qp;
	for (i = 0; i < ETH_TIRS; i++) {
		r->tir[i].tirn = 0x40 + i;
		r->tir[i].rq = i < ETH_RQS ? &r->rq[i].qp : NULL;
		r->tir[i].rqt = i < ETH_RQS ? NULL : &r->rqt;
		r->tir[i].fn = i < ETH_RQS ? SN_HASH_NONE : SN_HASH_TOEPLITZ;
		r->tir[i].fields = 0xf;
		r->tir[i].udp = i & 1;
		memset(r->tir[i].key, 0x6d, SN_HASH_KEY);
	}
	r->counter = (struct sn_flow_counter){ .n = 1, .count = &r->count };
}

/* Marks the bytes that a data segment lets the NIC write. */
static void allow(const uint8_t *s)
{
	uint64_t addr = sn_get64(s + 8), len = sn_get32(s), base, first, end;
	int i;

	for (i = 0; i < RIG_REGIONS; i++) {
		if (sn_get32(s + 4) != rig_key[i] || i == RIG_READ_ONLY)
			continue;
		len = len ? len : 0x80000000u;
		base = (uintptr_t)rig_memory((enum rig_region)i);
		first = addr < base ? base : addr;
		end = addr + len < base + RIG_REGION ? addr + len : base + RIG_REGION;
		if (addr + len >= addr && first < end)
			memset(writable[i] + (first - base), 1, end - first);
	}
}

static void put_segment(uint8_t *s, const void *addr, uint32_t len, uint32_t key)
{
	sn_put32(s, len);
	sn_put32(s + 4, key);
	sn_put64(s + 8, (uintptr_t)addr);
}

/* Adds a rule that matches all frames, and posts receive WQEs with room for any frame. */
static void prepare(uint8_t how)
{
	struct eth_rig *r = &eth_rig;
	uint8_t *wqe;
	unsigned i;

	if (how & 1) {
		r->rule[0].order = 2;
		r->rule[0].tir = &r->tir[how >> 1 & 3];
		sn_flow_insert(sn_dev, &r->rule[r->nrules++]);
	}
	for (i = 0; how & 8 && i < 16; i++) {
		wqe = r->rq[i & 1].rq + i / 2 * FAKE_STRIDE;
		put_segment(wqe, rig_memory(RIG_ALL), RIG_REGION, rig_key[RIG_ALL]);
		put_segment(wqe + 16, rig_memory(RIG_LOCAL), RIG_REGION, rig_key[RIG_LOCAL]);
		put_segment(wqe + 32, NULL, 0, 0x100);
		allow(wqe);
		allow(wqe + 16);
		r->rq[i & 1].rpi = i / 2 + 1;
		r->rq[i & 1].dbr[0] = htobe32(i / 2 + 1);
	}
}

static void set_up(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), faults = fuzz_u8(in), queues = fuzz_u8(in), inl = fuzz_u8(in);
	uint8_t ready = fuzz_u8(in);
	unsigned i;

	memset(&eth_rig, 0, sizeof(eth_rig));
	memset(rig_memory(RIG_ALL), GUARD, RIG_REGIONS * ETH_REGION);
	memset(shadow, GUARD, sizeof(shadow));
	memset(writable, 0, sizeof(writable));
	fuzz_begin();
	fake_open(OWN_IP);
	set_cfg(how, faults);
	eth_rig.before = sn_dev->stats;
	add_queues(queues, inl);
	add_tirs();
	if (sn_eng_eth_open(sn_dev))
		abort();
	fake_modify(&eth_rig.sq, SN_QPS_RTS);
	for (i = 0; i < ETH_RQS; i++)
		fake_modify(&eth_rig.rq[i], SN_QPS_RTS);
	prepare(ready);
}

/* ---- the checks at the end ---- */

/* Each frame that arrived has exactly one outcome. */
static void check_received(void)
{
	uint64_t ends =
		ETH_COUNT(eth_delivered) + ETH_COUNT(eth_no_rule) + ETH_COUNT(eth_rule_dropped) +
		ETH_COUNT(eth_out_of_buffer) + ETH_COUNT(eth_not_ready) + ETH_COUNT(eth_too_long) +
		ETH_COUNT(eth_malformed) + ETH_COUNT(eth_fcs_errors) + ETH_COUNT(eth_rx_faults);

	ETH_CHECK(ends == ETH_COUNT(eth_rx_frames), "%lu frames received, %lu outcomes",
		  ETH_COUNT(eth_rx_frames), ends);
}

/* Each copy of a sent frame was lost or failed, is a datagram, or arrived in this process. */
static void check_sent(uint64_t frames)
{
	uint64_t local = ETH_COUNT(eth_rx_frames) - eth_rig.arrived;
	uint64_t copies = ETH_COUNT(eth_tx_copies) + ETH_COUNT(eth_tx_duplicated) -
			  ETH_COUNT(eth_tx_lost) - ETH_COUNT(eth_tx_failed);

	ETH_CHECK(frames == ETH_COUNT(eth_tx_frames), "the SQ sent %lu frames, the port %lu",
		  frames, ETH_COUNT(eth_tx_frames));
	ETH_CHECK(copies == eth_rig.datagrams + local,
		  "%lu copies of frames, %lu datagrams, %lu arrived here", copies,
		  eth_rig.datagrams, local);
}

static void tear_down(void)
{
	struct eth_rig *r = &eth_rig;
	uint64_t sent;
	unsigned i;

	sn_dev->cfg.delay_us = sn_dev->cfg.reorder_ppm = 0;
	fuzz_passes(sn_dev, 4);
	while (r->nrules)
		sn_flow_remove(&r->rule[--r->nrules]);
	sent = r->eth[0].stats.frames;
	fake_qp_fini(&r->sq);
	for (i = 0; i < ETH_RQS; i++)
		fake_qp_fini(&r->rq[i]);
	fake_close();
	if (eth_rig_account)
		eth_rig_account();
	check_received();
	check_sent(sent);
	memset(r->sq.uar, 0, 4096);
	memset(&sn_dev->cfg, 0, sizeof(sn_dev->cfg));
	rig_restore();
	for (i = 0; i < RIG_REGIONS; i++)
		check_region((int)i);
}

/* Requests and grants of the flow control, see eth_pause.c. */
static bool is_control(const uint8_t *bytes, size_t len)
{
	return len == 68 && sn_get32(bytes + 22) == 0x67706131;
}

static void count_datagram(const struct sockaddr *to, const uint8_t *bytes, size_t len)
{
	(void)to;
	if (is_control(bytes, len))
		return;
	ETH_CHECK(len >= 8 + SN_ETH_FRAME_MIN && len <= 8 + SN_ETH_FRAME_MAX,
		  "a datagram of %zu bytes", len);
	ETH_CHECK(bytes[0] == 0x08, "flags of the VXLAN header: 0x%02x", bytes[0]);
	ETH_CHECK(sn_get32(bytes + 4) >> 8 == VNI, "VNI %u", sn_get32(bytes + 4) >> 8);
	eth_rig.datagrams++;
}

void eth_input(const uint8_t *data, size_t size, int steps, void (*step)(struct fuzz_in *in))
{
	struct fuzz_in in = { data, size };
	int i;

	fuzz_vxlan_sent = count_datagram;
	set_up(&in);
	for (i = 0; i < steps && in.left; i++)
		step(&in);
	tear_down();
}

/* ---- receive WQEs ---- */

static void put_sge(uint8_t *s, struct fuzz_in *in)
{
	static const uint32_t lens[8] = { 64, 128, 1024, 2048, RIG_REGION, 0, 13, 100 };
	uint8_t how = fuzz_u8(in);
	enum rig_region region = (enum rig_region)(how % RIG_REGIONS);

	uint32_t len = how & 4 ? fuzz_u16(in) : lens[how >> 5];
	uint32_t off = how & 0x10 ? fuzz_u16(in) : 0;

	put_segment(s, rig_memory(region) + off, len, how & 8 ? 0x100 : rig_key[region]);
}

static void post(struct fake_qp *q, uint8_t how, struct fuzz_in *in)
{
	uint8_t *wqe = q->rq + q->rpi % FAKE_DEPTH * FAKE_STRIDE;
	uint32_t i, n = how & 0x40 ? 1 + fuzz_u8(in) % 4 : 1;

	if (how & 0x80) {
		fuzz_bytes(in, wqe, fuzz_u8(in) % (FAKE_STRIDE + 1));
	} else {
		for (i = 0; i < n; i++)
			put_sge(wqe + 16 * i, in);
		if (n < 4)
			sn_put32(wqe + 16 * n + 4, 0x100);
	}
	for (i = 0; i < 4; i++)
		allow(wqe + 16 * i);
	q->rpi++;
}

void eth_recv(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	struct fake_qp *q = &eth_rig.rq[how & 1];
	unsigned n = 1 + (how >> 1 & 7);

	while (n--)
		post(q, how, in);
	q->dbr[0] = htobe32(q->rpi & 0xffff);
}

/* ---- rules and TIRs ---- */

static void fill_match(struct sn_rule *rule, uint8_t fields, struct fuzz_in *in)
{
	static const struct {
		uint8_t off, len;
	} part[8] = { { 0x08, 6 }, { 0x06, 2 }, { 0x00, 6 }, { 0x0e, 2 },
		      { 0x10, 4 }, { 0x14, 4 }, { 0x1c, 4 }, { 0x20, 32 } };
	struct sn_parsed p;
	uint8_t frame[ETH_ROOM];
	unsigned i;

	sn_eth_parse(frame, eth_frame(in, frame), &p);
	memcpy(rule->match, p.match, SN_MATCH_LEN);
	for (i = 0; i < 8; i++)
		if (fields & 1 << i)
			memset(rule->mask + part[i].off, 0xff, part[i].len);
}

static void add_rule(uint8_t how, struct fuzz_in *in)
{
	struct sn_rule *rule = &eth_rig.rule[eth_rig.nrules];
	uint8_t what = fuzz_u8(in), fields = fuzz_u8(in);

	if (eth_rig.nrules == ETH_RULES)
		return;
	*rule = (struct sn_rule){ .handle = eth_rig.nrules,
				  .order = how >> 4 & 3,
				  .egress = (what & 7) == 7,
				  .drop = (what & 7) >= 6,
				  .set_tag = what & 8,
				  .tag = 0xabcdef,
				  .sniffer = (what & 0x30) == 0x30 };
	rule->tir = (what & 7) < 5 ? &eth_rig.tir[what & 3] : NULL;
	rule->counter = what & 0x40 ? &eth_rig.counter : NULL;
	rule->bytes_counter = what & 0x80 ? &eth_rig.counter : NULL;
	fill_match(rule, fields, in);
	if (how & 0x40)
		fuzz_bytes(in, rule->mask + fuzz_u8(in) % 48, 16);
	sn_flow_insert(sn_dev, rule);
	eth_rig.nrules++;
}

static void change_tir(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	struct sn_tir *tir = &eth_rig.tir[how % ETH_TIRS];

	tir->symmetric = how & 4;
	tir->ipv6 = how & 8;
	tir->udp = how & 0x10;
	tir->self_lb_block = how >> 6;
	tir->fields = fuzz_u8(in) & 0x1f;
	eth_rig.rqt.n = fuzz_u8(in) % 5;
}

void eth_rule(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);

	if (how & 8)
		change_tir(in);
	else if ((how & 7) == 7 && eth_rig.nrules)
		sn_flow_remove(&eth_rig.rule[--eth_rig.nrules]);
	else
		add_rule(how, in);
}

/* ---- other actions of the program ---- */

static struct fake_qp *queue(uint8_t what)
{
	return what % 3 ? &eth_rig.rq[what % 3 - 1] : &eth_rig.sq;
}

static void change_state(struct fake_qp *q, uint8_t to)
{
	static const enum sn_qp_state states[4] = { SN_QPS_RST, SN_QPS_RTS, SN_QPS_ERR,
						    SN_QPS_RTS };

	if (states[to & 3] == SN_QPS_RTS && q->qp.state == SN_QPS_ERR)
		return;
	if (states[to & 3] == SN_QPS_RST) {
		q->pi = q->rpi = 0;
		memset(q->dbr, 0, 8);
	}
	fake_modify(q, states[to & 3]);
}

static void change_region(uint8_t what)
{
	struct sn_mr *mr = sn_find_mr(sn_dev, rig_key[what % RIG_REGIONS]);

	if (!mr)
		return;
	if (what & 0x40)
		mr->len = what & 0x3f;
	else
		mr->lkey = mr->rkey = 0;
}

static void consume(struct fake_qp *q)
{
	q->dbr[2] = htobe32((uint32_t)q->scq.pi & 0xffffff);
	q->dbr[4] = htobe32((uint32_t)q->rcq.pi & 0xffffff);
}

void eth_program(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);
	struct fake_qp *q = queue(what >> 3);

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
		consume(q);
		break;
	case 3:
		change_state(q, what >> 5);
		break;
	case 4:
		q->dbr[what >> 5] = htobe32(fuzz_u16(in));
		break;
	case 5:
		change_region(fuzz_u8(in));
		break;
	case 6:
		fuzz_sleep(1000ull << (what >> 3));
		break;
	case 7:
		eth_rule(in);
		break;
	}
}
