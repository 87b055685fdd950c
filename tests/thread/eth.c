/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw Ethernet of the software NIC under concurrency: two threads send frames, one receives
 * them, and others meanwhile create and destroy rules, queue pairs, tables and counters. Meant
 * for ThreadSanitizer, with the NIC linked in. It needs CAP_NET_RAW.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SENDERS 2u
#define DEPTH	16u
#define SLOT	256u
#define LEN	128u
#define RUN_MS	700

#define REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #cond, \
				errno); \
			exit(1); \
		} \
	} while (0)

/* A transport domain does not receive its own frames, so that senders and receivers have a
 * context of their own. */
struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *mem;
};

static struct side tx, rx;
static struct ibv_qp *receiver;
static struct ibv_cq *received;
static bool stop;
static unsigned long got, made[3];

static void side_open(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	size_t len = (size_t)SLOT * DEPTH * 2;

	REQUIRE(list && list[0]);
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	REQUIRE(s->ctx);
	s->pd = ibv_alloc_pd(s->ctx);
	s->mem = calloc(1, len);
	REQUIRE(s->pd && s->mem);
	s->mr = ibv_reg_mr(s->pd, s->mem, len, IBV_ACCESS_LOCAL_WRITE);
	REQUIRE(s->mr);
}

static void side_close(struct side *s)
{
	REQUIRE(!ibv_dereg_mr(s->mr) && !ibv_dealloc_pd(s->pd) && !ibv_close_device(s->ctx));
	free(s->mem);
}

static struct ibv_qp *qp_make(struct side *s, struct ibv_cq *cq, uint32_t send, uint32_t recv)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = send,
			 .max_recv_wr = recv,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	if (!qp && errno == EPERM)
		exit(77); /* skipped */
	REQUIRE(qp);
	REQUIRE(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	REQUIRE(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	REQUIRE(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return qp;
}

static void post_recv(uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)rx.mem + SLOT * slot, SLOT, rx.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	REQUIRE(!ibv_post_recv(receiver, &wr, &bad));
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

/* ---- threads ---- */
static void *send_frames(void *arg)
{
	unsigned slot = (unsigned)(uintptr_t)arg, posted = 0, done = 0;
	struct ibv_cq *cq = ibv_create_cq(tx.ctx, DEPTH, NULL, NULL, 0);
	struct ibv_qp *qp = qp_make(&tx, cq, DEPTH, 0);
	struct ibv_sge sge = { (uintptr_t)tx.mem + SLOT * slot, LEN, tx.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	memset(tx.mem + SLOT * slot, 0x11, LEN);
	tx.mem[SLOT * slot] = 2; /* unicast to an address that no NIC has */
	tx.mem[SLOT * slot + 5] = (uint8_t)slot;
	while (!stopped() || done != posted) {
		if (!stopped() && posted - done < DEPTH / 2) {
			REQUIRE(!ibv_post_send(qp, &wr, &bad));
			posted++;
		}
		if (!ibv_poll_cq(cq, 1, &wc))
			continue;
		REQUIRE(wc.status == IBV_WC_SUCCESS);
		done++;
	}
	REQUIRE(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	return NULL;
}

static void *receive_frames(void *arg)
{
	struct ibv_wc wc;

	while (!stopped()) {
		if (!ibv_poll_cq(received, 1, &wc))
			continue;
		REQUIRE(wc.status == IBV_WC_SUCCESS && wc.byte_len == LEN);
		REQUIRE(rx.mem[SLOT * wc.wr_id + LEN - 1] == 0x11);
		post_recv(wc.wr_id);
		got++;
	}
	return arg;
}

static struct ibv_flow *rule_make(unsigned slot, enum ibv_flow_attr_type type)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = type, .size = sizeof(rule.attr), .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};

	if (type == IBV_FLOW_ATTR_NORMAL) {
		rule.attr.num_of_specs = 1;
		rule.attr.size = sizeof(rule);
		rule.eth.val.dst_mac[5] = (uint8_t)slot;
		rule.eth.mask.dst_mac[5] = 0xff;
	}
	return ibv_create_flow(receiver, &rule.attr);
}

static void *change_rules(void *arg)
{
	static const enum ibv_flow_attr_type types[] = { IBV_FLOW_ATTR_NORMAL,
							 IBV_FLOW_ATTR_ALL_DEFAULT,
							 IBV_FLOW_ATTR_SNIFFER };
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *counters;
	struct ibv_flow *flow;

	while (!stopped()) {
		counters = ibv_create_counters(rx.ctx, &init);
		flow = rule_make(made[0] % SENDERS, types[made[0] % 3]);
		REQUIRE(counters && flow);
		REQUIRE(!ibv_destroy_flow(flow) && !ibv_destroy_counters(counters));
		made[0]++;
	}
	return arg;
}

/* Queue pairs that frames reach for a short time, and are destroyed with posted WQEs. */
static void *change_qps(void *arg)
{
	struct ibv_cq *cq = ibv_create_cq(rx.ctx, DEPTH, NULL, NULL, 0);
	struct ibv_sge sge = { (uintptr_t)rx.mem + SLOT * DEPTH, SLOT, rx.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_flow_attr all = { .type = IBV_FLOW_ATTR_ALL_DEFAULT,
				     .size = sizeof(all),
				     .port = 1 };
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	REQUIRE(cq);
	while (!stopped()) {
		qp = qp_make(&rx, cq, DEPTH, DEPTH);
		flow = ibv_create_flow(qp, &all);
		REQUIRE(flow && !ibv_post_recv(qp, &wr, &bad));
		REQUIRE(ibv_destroy_qp(qp) == EBUSY);
		REQUIRE(!ibv_destroy_flow(flow) && !ibv_destroy_qp(qp));
		made[1]++;
	}
	REQUIRE(!ibv_destroy_cq(cq));
	return arg;
}

static struct ibv_qp *rss_make(struct ibv_rwq_ind_table *table, uint8_t key[40])
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.pd = rx.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = 40,
				  .rx_hash_key = key,
				  .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 |
							 IBV_RX_HASH_DST_IPV4 },
	};

	return ibv_create_qp_ex(rx.ctx, &init);
}

static void *change_tables(void *arg)
{
	struct ibv_cq *cq = ibv_create_cq(rx.ctx, DEPTH, NULL, NULL, 0);
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ,
					 .max_wr = DEPTH,
					 .max_sge = 1,
					 .pd = rx.pd,
					 .cq = cq };
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table_init_attr of = { .log_ind_tbl_size = 0 };
	struct ibv_rwq_ind_table *table;
	uint8_t key[40] = { 1 };
	struct ibv_qp *rss;
	struct ibv_wq *wq;

	while (!stopped()) {
		wq = ibv_create_wq(rx.ctx, &init);
		REQUIRE(wq && !ibv_modify_wq(wq, &ready));
		of.ind_tbl = &wq;
		table = ibv_create_rwq_ind_table(rx.ctx, &of);
		rss = table ? rss_make(table, key) : NULL;
		REQUIRE(rss);
		REQUIRE(!ibv_destroy_qp(rss) && !ibv_destroy_rwq_ind_table(table) &&
			!ibv_destroy_wq(wq));
		made[2]++;
	}
	REQUIRE(!ibv_destroy_cq(cq));
	return arg;
}

int main(void)
{
	void *(*const work[])(void *) = { receive_frames, change_rules, change_qps, change_tables };
	const struct timespec run = { 0, RUN_MS * 1000000l };
	struct ibv_flow *rules[SENDERS];
	pthread_t threads[SENDERS + 4];
	unsigned i;

	side_open(&tx);
	side_open(&rx);
	received = ibv_create_cq(rx.ctx, 2 * DEPTH, NULL, NULL, 0);
	REQUIRE(received);
	receiver = qp_make(&rx, received, 0, DEPTH);
	for (i = 0; i < DEPTH; i++)
		post_recv(i);
	for (i = 0; i < SENDERS; i++) {
		rules[i] = rule_make(i, IBV_FLOW_ATTR_NORMAL);
		REQUIRE(rules[i]);
		REQUIRE(!pthread_create(&threads[i], NULL, send_frames, (void *)(uintptr_t)i));
	}
	for (i = 0; i < 4; i++)
		REQUIRE(!pthread_create(&threads[SENDERS + i], NULL, work[i], NULL));
	nanosleep(&run, NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < SENDERS + 4; i++)
		pthread_join(threads[i], NULL);
	printf("%lu frames, %lu rules, %lu queue pairs, %lu tables\n", got, made[0], made[1],
	       made[2]);
	REQUIRE(got && made[0] && made[1] && made[2]);
	for (i = 0; i < SENDERS; i++)
		REQUIRE(!ibv_destroy_flow(rules[i]));
	REQUIRE(!ibv_destroy_qp(receiver) && !ibv_destroy_cq(received));
	side_close(&rx);
	side_close(&tx);
	return 0;
}
