/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A verbs program for sanitizers.sh. It sends 200 messages from an RC queue pair to itself,
 * then it has the bug that its argument names: overflow (of a heap block), integer (overflow),
 * race, leak, or none. With "fork" it has no bug and forks a child that exits at once. With
 * "start" it returns at once. With OWN_OPTIONS it has its own options of AddressSanitizer.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MSG_LEN 4096
#define ROUNDS	200
#define REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "sanitized: line %d: not true: %s\n", __LINE__, #cond); \
			exit(3); \
		} \
	} while (0)

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *buf; /* a message to send and a message received */
};

static int shared, added, added_twice; /* added: the thread has changed shared */

#ifdef OWN_OPTIONS
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=1";
}
#endif

static void side_open(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	REQUIRE(list && list[0]);
	REQUIRE(s->ctx = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	REQUIRE(s->pd = ibv_alloc_pd(s->ctx));
	REQUIRE(s->buf = calloc(2, MSG_LEN));
	REQUIRE(s->mr = ibv_reg_mr(s->pd, s->buf, 2 * MSG_LEN, IBV_ACCESS_LOCAL_WRITE));
	REQUIRE(s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0));
	attr.send_cq = attr.recv_cq = s->cq;
	REQUIRE(s->qp = ibv_create_qp(s->pd, &attr));
}

static void side_connect(struct side *s)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = s->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = 3, .hop_limit = 64 } },
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1 };

	REQUIRE(!ibv_query_gid(s->ctx, 1, 3, &rtr.ah_attr.grh.dgid));
	REQUIRE(!ibv_modify_qp(s->qp, &init,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS));
	REQUIRE(!ibv_modify_qp(s->qp, &rtr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
	REQUIRE(!ibv_modify_qp(s->qp, &rts,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void ping(struct side *s, char value)
{
	struct ibv_sge from = { (uintptr_t)s->buf, MSG_LEN, s->mr->lkey };
	struct ibv_sge to = { (uintptr_t)s->buf + MSG_LEN, MSG_LEN, s->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_send;
	int done = 0, n;
	struct ibv_wc wc;

	memset(s->buf, value, MSG_LEN);
	REQUIRE(!ibv_post_recv(s->qp, &recv, &bad_recv));
	REQUIRE(!ibv_post_send(s->qp, &send, &bad_send));
	for (; done < 2; done += n) {
		n = ibv_poll_cq(s->cq, 1, &wc);
		REQUIRE(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
	}
	REQUIRE(!memcmp(s->buf, s->buf + MSG_LEN, MSG_LEN));
	memset(s->buf + MSG_LEN, 0, MSG_LEN);
}

static void side_close(struct side *s)
{
	REQUIRE(!ibv_destroy_qp(s->qp));
	REQUIRE(!ibv_destroy_cq(s->cq));
	REQUIRE(!ibv_dereg_mr(s->mr));
	REQUIRE(!ibv_dealloc_pd(s->pd));
	REQUIRE(!ibv_close_device(s->ctx));
	free(s->buf);
}

/* ThreadSanitizer misses some races of two accesses at the same time, because each of them reads
 * the other's place before it is written. Relaxed accesses of added order the two accesses in time
 * and leave the race: they are no synchronization. The thread lives until both are done, because
 * the history of one that has ended may be gone, and the race is then not reported. */
static void *add(void *arg)
{
	(void)arg;
	shared++;
	__atomic_store_n(&added, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&added_twice, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

static void have_child(void)
{
	pid_t child = fork();
	int st;

	REQUIRE(child >= 0);
	if (!child)
		exit(0);
	REQUIRE(waitpid(child, &st, 0) == child && WIFEXITED(st) && !WEXITSTATUS(st));
}

static void have_bug(const char *kind)
{
	volatile int number = INT32_MAX;
	char *volatile block = malloc(33);
	pthread_t thread;

	if (!strcmp(kind, "overflow"))
		block[33] = 1;
	if (!strcmp(kind, "integer"))
		number += 1;
	if (!strcmp(kind, "race")) {
		REQUIRE(!pthread_create(&thread, NULL, add, NULL));
		while (!__atomic_load_n(&added, __ATOMIC_RELAXED))
			sched_yield();
		shared++;
		__atomic_store_n(&added_twice, 1, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
	}
	if (strcmp(kind, "leak"))
		free(block);
	block = NULL;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "none";
	struct side side;
	int i;

	if (!strcmp(kind, "start"))
		return 0;
	side_open(&side);
	side_connect(&side);
	for (i = 0; i < ROUNDS; i++)
		ping(&side, (char)i);
	have_bug(kind);
	side_close(&side);
	if (!strcmp(kind, "fork"))
		have_child();
	puts("done");
	return 0;
}
