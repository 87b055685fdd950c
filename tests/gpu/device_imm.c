/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks the order of execution. The peer is a queue pair of libmlx5 with posted
 * receives, and each write carries the index of its slot as immediate data. The
 * immediates must arrive in increasing order, each once.
 */
#include "device_host.h"

#define RECEIVES 4096

static struct ibv_qp *receiver_create(struct gt_env *env, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { .max_send_wr = 1,
						  .max_recv_wr = RECEIVES,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp *qp = ibv_create_qp(env->nic.pd, &init);

	E2E_REQUIRE(qp);
	E2E_REQUIRE(!ibv_modify_qp(
		qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

static void receiver_connect(struct gt_env *env, struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = env->nic.gid,
				      .hop_limit = 64,
				      .sgid_index = (uint8_t)env->nic.gid_index } },
	};

	E2E_REQUIRE(!ibv_modify_qp(qp, &a,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER));
	for (int i = 0; i < RECEIVES; i++)
		E2E_REQUIRE(!ibv_post_recv(qp, &wr, &bad));
}

static int check_arrivals(struct ibv_cq *cq, uint32_t expected)
{
	uint32_t got = 0;
	int64_t last = -1;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 1) {
		if (wc.status != IBV_WC_SUCCESS || !(wc.wc_flags & IBV_WC_WITH_IMM))
			return gt_complain("receive %u: status %d", got, wc.status);
		if ((int64_t)be32toh(wc.imm_data) <= last)
			return gt_complain("slot %u arrived after slot %ld (out of order)",
					   be32toh(wc.imm_data), last);
		last = be32toh(wc.imm_data);
		got++;
	}
	return n < 0 || got != expected ? gt_complain("%u of %u receives completed", got, expected)
					: 0;
}

int gt_run_imm(struct gt_env *env, const struct gt_case *c)
{
	struct ibv_cq *cq = ibv_create_cq(env->nic.ctx, RECEIVES, NULL, NULL, 0);
	uint32_t ops = c->blocks * c->threads * c->iters;
	struct ibv_qp *receiver;
	struct gt_qps qps;
	struct gt_job job;
	int rc;

	E2E_REQUIRE(cq && ops <= RECEIVES);
	receiver = receiver_create(env, cq);
	gt_qps_open(env, &qps, c);
	gt_connect_to(env, &qps.qp[0], receiver->qp_num, gt_good_path);
	receiver_connect(env, receiver, qps.qp[0].qpn);
	rc = gt_prepare(env, c, &qps, &job) || gt_run(env, &qps, &job) ||
	     gt_check_status(env, &job) || check_arrivals(cq, ops) ||
	     gt_check_payload(env, c, &job) || gt_check_counters(&qps, &job, gt_slots(&job));
	gt_qps_close(&qps);
	E2E_REQUIRE(!ibv_destroy_qp(receiver) && !ibv_destroy_cq(cq));
	return rc ? -1 : 0;
}
