/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw packet QPs through libibverbs: creation and what it refuses, the state transitions with
 * their attributes, queries, busy rules, and what a closed context leaves. test_verbs_rss.c has
 * work queues and RSS QPs.
 */
#include "../lib/leaks.h"
#include "../lib/raw.h"

static struct vb v;
static struct ibv_cq *cq;

static void open_all(void)
{
	raw_need();
	v = vb_open(8 * 4096);
	cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	cr_assert(cq);
}

static void close_all(void)
{
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

TestSuite(verbs_raw, .init = open_all, .fini = close_all);

static int move(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = to, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

Test(verbs_raw, device_reports_raw_packets)
{
	struct ibv_device_attr_ex dev;

	cr_assert_eq(ibv_query_device_ex(v.ctx, NULL, &dev), 0);
	cr_assert_eq(dev.raw_packet_caps, IBV_RAW_PACKET_CAP_CVLAN_STRIPPING |
						  IBV_RAW_PACKET_CAP_SCATTER_FCS |
						  IBV_RAW_PACKET_CAP_IP_CSUM);
	cr_assert(dev.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM);
	cr_assert(dev.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
	cr_assert(dev.device_cap_flags_ex & IBV_DEVICE_RAW_SCATTER_FCS);
	cr_assert(dev.device_cap_flags_ex & IBV_DEVICE_PCI_WRITE_END_PADDING);
	cr_assert_eq(dev.tso_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
	cr_assert_eq(dev.tso_caps.max_tso, 1u << 18);
	cr_assert_eq(dev.rss_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
	cr_assert_eq(dev.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	cr_assert_eq(dev.rss_caps.rx_hash_fields_mask, 0xff);
	cr_assert_eq(dev.rss_caps.max_rwq_indirection_table_size, 512);
	cr_assert_gt(dev.max_wq_type_rq, 0);
	cr_assert_eq(dev.packet_pacing_caps.supported_qpts, 0);
}

Test(verbs_raw, goes_through_all_states)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 64, 64, 0);

	cr_assert_eq(state_of(qp), IBV_QPS_RESET);
	cr_assert_eq(move(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
	cr_assert_eq(state_of(qp), IBV_QPS_INIT);
	cr_assert_eq(move(qp, IBV_QPS_RTR, 0), 0);
	cr_assert_eq(state_of(qp), IBV_QPS_RTR);
	cr_assert_eq(move(qp, IBV_QPS_RTS, 0), 0);
	cr_assert_eq(state_of(qp), IBV_QPS_RTS);
	cr_assert_eq(move(qp, IBV_QPS_RTS, 0), 0);
	cr_assert_eq(move(qp, IBV_QPS_ERR, 0), 0);
	cr_assert_eq(state_of(qp), IBV_QPS_ERR);
	cr_assert_eq(move(qp, IBV_QPS_RTS, 0), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(state_of(qp), IBV_QPS_RESET);
	raw_ready(qp);
	cr_assert_eq(state_of(qp), IBV_QPS_RTS);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(verbs_raw, refuses_wrong_transitions)
{
	static const enum ibv_qp_state path[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						  IBV_QPS_RTS };
	struct ibv_qp *qp = raw_qp(&v, cq, 64, 64, 0);
	unsigned at, to;

	for (at = 0; at < 4; at++) {
		if (at)
			cr_assert_eq(move(qp, path[at], at == 1 ? IBV_QP_PORT : 0), 0);
		for (to = 0; to < 4; to++) {
			if (to == at + 1 || to == 0 || (to == at && at != 2))
				continue;
			cr_expect_eq(move(qp, path[to], to == 1 ? IBV_QP_PORT : 0), EINVAL,
				     "%u to %u", path[at], path[to]);
		}
		cr_expect_eq(move(qp, IBV_QPS_SQD, 0), EINVAL);
		cr_expect_eq(move(qp, IBV_QPS_SQE, 0), EINVAL);
		cr_expect_eq(state_of(qp), path[at]);
	}
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(verbs_raw, refuses_wrong_attributes)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 64, 64, 0);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 2 };

	cr_assert_eq(move(qp, IBV_QPS_INIT, 0), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_QKEY), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_PKEY_INDEX), EINVAL);
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
	cr_assert_eq(move(qp, IBV_QPS_INIT, IBV_QP_PORT), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_RTR, IBV_QP_RQ_PSN), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_RTR, IBV_QP_RATE_LIMIT), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_RTR, 0), 0);
	cr_assert_eq(move(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN), EINVAL);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .rate_limit = 1000 };
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), EINVAL,
		     "the NIC has no packet pacing");
	attr.rate_limit = 0;
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
	cr_assert_eq(move(qp, IBV_QPS_ERR, IBV_QP_PORT), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_RESET, IBV_QP_PORT), EINVAL);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(verbs_raw, query_reports_capacities)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 128, 32, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	cr_assert_geq(attr.cap.max_send_wr, 128);
	cr_assert_eq(attr.cap.max_recv_wr, 32);
	cr_assert_eq(attr.cap.max_recv_sge, 4);
	cr_assert_eq(attr.port_num, 1);
	cr_assert_eq(init.sq_sig_all, 0);
	cr_assert_eq(init.qp_type, IBV_QPT_RAW_PACKET);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(verbs_raw, halves_may_be_missing)
{
	struct ibv_qp *sender = raw_qp(&v, cq, 64, 0, 0), *receiver = raw_qp(&v, cq, 0, 64, 0);

	raw_ready(sender);
	raw_ready(receiver);
	cr_assert_neq(sender->qp_num, receiver->qp_num);
	cr_assert_eq(state_of(sender), IBV_QPS_RTS);
	cr_assert_eq(state_of(receiver), IBV_QPS_RTS);
	cr_assert_eq(move(receiver, IBV_QPS_ERR, 0), 0);
	cr_assert_eq(state_of(receiver), IBV_QPS_ERR);
	cr_assert_eq(ibv_destroy_qp(sender), 0);
	cr_assert_eq(ibv_destroy_qp(receiver), 0);
	errno = 0;
	cr_assert_null(raw_qp_try(&v, cq, 0, 0, 0));
	cr_assert_eq(errno, EINVAL);
}

Test(verbs_raw, create_flags)
{
	static const uint32_t good[] = { IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_CVLAN_STRIPPING,
					 IBV_QP_CREATE_PCI_WRITE_END_PADDING,
					 IBV_QP_CREATE_BLOCK_SELF_MCAST_LB };
	struct ibv_qp *qp;
	unsigned i;

	for (i = 0; i < 4; i++) {
		qp = raw_qp(&v, cq, 16, 16, good[i]);
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	}
	cr_assert_null(raw_qp_try(&v, cq, 16, 16, IBV_QP_CREATE_SOURCE_QPN));
}

static struct ibv_qp *dv_qp(uint32_t flags)
{
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
					  .create_flags = flags };
	struct ibv_qp_init_attr_ex init = raw_init(&v, cq, 16, 16);

	errno = 0;
	return mlx5dv_create_qp(v.ctx, &init, &dv);
}

Test(verbs_raw, driver_flags)
{
	static const uint32_t good[] = { MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC,
					 MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC,
					 MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
					 MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE };
	static const uint32_t bad[] = { MLX5DV_QP_CREATE_TUNNEL_OFFLOADS,
					MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE };
	struct ibv_qp *qp;
	unsigned i;

	for (i = 0; i < 4; i++) {
		qp = dv_qp(good[i]);
		cr_assert(qp, "flag %#x", good[i]);
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	}
	for (i = 0; i < 2; i++) {
		cr_assert_null(dv_qp(bad[i]), "flag %#x", bad[i]);
		cr_assert_eq(errno, EINVAL);
	}
}

Test(verbs_raw, shared_receive_queue_is_refused)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(v.pd, &srq_init);
	struct ibv_qp_init_attr_ex init = raw_init(&v, cq, 16, 0);

	cr_assert(srq);
	init.srq = srq;
	errno = 0;
	cr_assert_null(ibv_create_qp_ex(v.ctx, &init));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
}

Test(verbs_raw, what_it_uses_is_busy)
{
	struct ibv_pd *pd = ibv_alloc_pd(v.ctx);
	struct ibv_cq *send = ibv_create_cq(v.ctx, 15, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = raw_init(&v, cq, 16, 16);
	struct ibv_qp *qp;

	init.pd = pd;
	init.send_cq = send;
	qp = ibv_create_qp_ex(v.ctx, &init);
	cr_assert(qp);
	cr_assert_eq(ibv_dealloc_pd(pd), EBUSY);
	cr_assert_eq(ibv_destroy_cq(send), EBUSY);
	cr_assert_eq(ibv_destroy_cq(cq), EBUSY);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(send), 0);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
}

Test(verbs_raw, destroy_and_close_leave_nothing)
{
	struct ibv_context *ctx;
	struct ibv_qp *qp;
	struct ibv_cq *other;
	struct vb w = { 0 };
	uint32_t before;

	/* libmlx5 keeps the register page of its first QP */
	cr_assert_eq(ibv_destroy_qp(raw_qp(&v, cq, 16, 16, 0)), 0);
	before = raw_live();
	qp = raw_qp(&v, cq, 16, 16, 0);
	cr_assert_gt(raw_live(), before);
	raw_ready(qp);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(raw_live(), before);
	leaks_ignore();
	ctx = pick_open();
	w.ctx = ctx;
	w.pd = ibv_alloc_pd(ctx);
	other = ibv_create_cq(ctx, 15, NULL, NULL, 0);
	cr_assert(w.pd && other);
	raw_ready(raw_qp(&w, other, 16, 16, 0));
	cr_assert_eq(ibv_close_device(ctx), 0);
	cr_assert_eq(raw_live(), before, "%u objects, %u before", raw_live(), before);
}

Test(verbs_raw, capability_is_needed)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	cr_assert_eq(syscall(SYS_capget, &head, data), 0);
	data[CAP_TO_INDEX(CAP_NET_RAW)].effective &= ~CAP_TO_MASK(CAP_NET_RAW);
	cr_assert_eq(syscall(SYS_capset, &head, data), 0);
	errno = 0;
	cr_assert_null(raw_qp_try(&v, cq, 16, 16, 0));
	cr_assert_eq(errno, EPERM);
	data[CAP_TO_INDEX(CAP_NET_RAW)].effective |= CAP_TO_MASK(CAP_NET_RAW);
	cr_assert_eq(syscall(SYS_capset, &head, data), 0);
	cr_assert_eq(ibv_destroy_qp(raw_qp(&v, cq, 16, 16, 0)), 0);
}

/* The call fails in the NIC: nothing may leak. */
Test(verbs_raw, failed_create_leaves_nothing)
{
	uint32_t before = raw_live();

	raw_fail_next(1);
	cr_assert_null(raw_qp_try(&v, cq, 16, 16, 0));
	cr_assert_eq(raw_live(), before);
}

/* ---- frames ---- */
static const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 0x0a };

/* Writes a frame of len bytes at off: for mac_a, with a VLAN tag if tci is not 0. */
static void frame(size_t off, uint32_t len, uint16_t tci)
{
	uint8_t *f = v.mem + off;
	uint32_t i;

	for (i = 0; i < len; i++)
		f[i] = (uint8_t)(i * 7 + tci);
	memcpy(f, mac_a, 6);
	f[6] &= 0xfe;
	f[12] = tci ? 0x81 : 0x88;
	f[13] = tci ? 0x00 : 0xb5; /* a local experimental type */
	f[14] = (uint8_t)(tci >> 8);
	f[15] = (uint8_t)tci;
	f[16] = 0x88;
	f[17] = 0xb5;
}

/* Sends a frame of len bytes from one QP to another, which was created with these flags, and
 * returns the received length. */
static uint32_t pass(uint32_t flags, uint32_t len, uint16_t tci)
{
	struct ibv_qp *to = raw_qp(&v, cq, 0, 16, flags), *from = raw_qp(&v, cq, 16, 0, 0);
	struct ibv_wc wc[2];
	struct ibv_flow *flow;
	uint32_t got;

	raw_ready(to);
	raw_ready(from);
	flow = raw_flow(to, mac_a);
	frame(0, len, tci);
	memset(v.mem + 4096, 0xee, 4096);
	cr_assert_eq(vb_recv(&v, to, 1, 4096, 4096), 0);
	raw_send(&v, from, 0, len);
	wc[0] = raw_wait(cq);
	wc[1] = raw_wait(cq);
	cr_assert_eq(wc[0].status, IBV_WC_SUCCESS);
	cr_assert_eq(wc[1].status, IBV_WC_SUCCESS);
	got = wc[0].qp_num == to->qp_num ? wc[0].byte_len : wc[1].byte_len;
	cr_assert_eq(ibv_destroy_qp(to), EBUSY, "a rule uses it");
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(to), 0);
	cr_assert_eq(ibv_destroy_qp(from), 0);
	return got;
}

Test(verbs_raw, frame_passes)
{
	cr_assert_eq(pass(0, 1000, 0), 1000);
	cr_assert_arr_eq(v.mem, v.mem + 4096, 1000);
	cr_assert_eq(v.mem[4096 + 1000], 0xee);
}

Test(verbs_raw, vlan_tag_is_kept_or_stripped)
{
	cr_assert_eq(pass(0, 200, 0x6012), 200);
	cr_assert_arr_eq(v.mem, v.mem + 4096, 200);
	cr_assert_eq(pass(IBV_QP_CREATE_CVLAN_STRIPPING, 200, 0x6012), 196);
	cr_assert_arr_eq(v.mem, v.mem + 4096, 12);
	cr_assert_arr_eq(v.mem + 16, v.mem + 4096 + 12, 184);
}

Test(verbs_raw, checksum_of_frame_is_scattered)
{
	cr_assert_eq(pass(IBV_QP_CREATE_SCATTER_FCS, 200, 0), 204);
	cr_assert_arr_eq(v.mem, v.mem + 4096, 200);
}

/* Whether a QP with these flags receives a frame of a QP of the same context. */
static bool loops(uint32_t flags, bool multicast)
{
	struct timespec nap = { 0, 20000000 };
	struct ibv_qp *from = raw_qp(&v, cq, 16, 0, 0), *to = dv_qp(flags);
	uint8_t mac[6] = { multicast ? 3 : 2, 0, 0, 0, 0, 0x0d };
	struct ibv_flow *flow;
	struct ibv_wc wc;
	bool got;

	cr_assert(to);
	raw_ready(to);
	raw_ready(from);
	flow = raw_flow(to, mac);
	frame(0, 100, 0);
	memcpy(v.mem, mac, 6);
	cr_assert_eq(vb_recv(&v, to, 1, 4096, 4096), 0);
	raw_send(&v, from, 0, 100);
	wc = raw_wait(cq);
	nanosleep(&nap, NULL);
	got = ibv_poll_cq(cq, 1, &wc) == 1;
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(to), 0);
	cr_assert_eq(ibv_destroy_qp(from), 0);
	return got;
}

Test(verbs_raw, flags_permit_loopback)
{
	cr_assert(!loops(0, false));
	cr_assert(!loops(0, true));
	cr_assert(loops(MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC, false));
	cr_assert(!loops(MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC, true));
	cr_assert(loops(MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC, true));
	cr_assert(!loops(MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC, false));
}

/* The NIC pads a frame to 64 bytes if the QP was created so, but reports its length. */
Test(verbs_raw, end_of_frame_is_padded)
{
	cr_assert_eq(pass(IBV_QP_CREATE_PCI_WRITE_END_PADDING, 100, 0), 100);
	cr_assert_neq(v.mem[4096 + 127], 0xee);
	cr_assert_eq(v.mem[4096 + 128], 0xee);
	cr_assert_eq(pass(0, 100, 0), 100);
	cr_assert_eq(v.mem[4096 + 100], 0xee);
}

Test(verbs_raw, every_send_completes_with_sq_sig_all)
{
	struct ibv_qp_init_attr_ex init = raw_init(&v, cq, 16, 16);
	struct ibv_sge sge = vb_sge(&v, 0, 100);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp_init_attr got;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	init.sq_sig_all = 1;
	qp = ibv_create_qp_ex(v.ctx, &init);
	cr_assert(qp);
	raw_ready(qp);
	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &got), 0);
	cr_assert_eq(got.sq_sig_all, 1);
	frame(0, 100, 0);
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	cr_assert_eq(raw_wait(cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

/* Receive WQEs posted before RTR are used, and those of a reset QP are not. */
Test(verbs_raw, reset_discards_receive_wqes)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 16, 16, 0);
	struct ibv_flow *flow = raw_flow(qp, mac_a);
	struct ibv_wc wc[2];
	int i;

	raw_ready(qp);
	cr_assert_eq(vb_recv(&v, qp, 1, 4096, 4096), 0);
	cr_assert_eq(move(qp, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(move(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
	cr_assert_eq(vb_recv(&v, qp, 2, 4096, 4096), 0);
	cr_assert_eq(move(qp, IBV_QPS_RTR, 0), 0);
	cr_assert_eq(move(qp, IBV_QPS_RTS, 0), 0);
	frame(0, 300, 0);
	raw_send(&v, qp, 0, 300);
	for (i = 0; i < 2; i++) {
		wc[0] = raw_wait(cq);
		cr_assert_eq(wc[0].status, IBV_WC_SUCCESS);
		if (wc[0].opcode == IBV_WC_RECV)
			cr_assert_eq(wc[0].wr_id, 2);
	}
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(verbs_raw, error_flushes_both_queues)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 16, 16, 0);
	struct ibv_wc wc;
	int i;

	raw_ready(qp);
	cr_assert_eq(vb_recv(&v, qp, 1, 4096, 4096), 0);
	cr_assert_eq(move(qp, IBV_QPS_ERR, 0), 0);
	raw_send(&v, qp, 0, 300);
	for (i = 0; i < 2; i++) {
		wc = raw_wait(cq);
		cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

/* A send WQE that cannot be read puts the SQ in error; the receive half continues. */
Test(verbs_raw, send_error_is_reported_by_query)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 16, 16, 0);
	struct ibv_sge sge = vb_sge(&v, 0, 100);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	raw_ready(qp);
	sge.lkey ^= 0x5500;
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	cr_assert_eq(raw_wait(cq).status, IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(state_of(qp), IBV_QPS_SQE);
	cr_assert_eq(move(qp, IBV_QPS_RTS, 0), EINVAL);
	cr_assert_eq(move(qp, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(state_of(qp), IBV_QPS_RESET);
	raw_ready(qp);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

/* Sends n frames and polls their completions. */
static void send_many(struct ibv_qp *qp, struct ibv_cq *of, uint32_t n)
{
	time_t end = time(NULL) + VB_WAIT_S;
	uint32_t i, done = 0, batch;
	struct ibv_wc wc;

	while (done < n) {
		batch = n - done < 16 ? n - done : 16;
		for (i = 0; i < batch; i++)
			raw_send(&v, qp, 0, 60);
		while (batch && time(NULL) < end)
			if (ibv_poll_cq(of, 1, &wc)) {
				cr_assert_eq(wc.status, IBV_WC_SUCCESS);
				done++;
				batch--;
			}
		cr_assert_eq(batch, 0);
	}
}

/* DPDK counts the completions of a send queue with 16 bits. Until the NIC has written the next
 * CQE, nothing may poll, because libmlx5 then stores the whole index. */
Test(verbs_raw, consumer_index_of_16_bits)
{
	struct ibv_cq *small = ibv_create_cq(v.ctx, 31, NULL, NULL, 0);
	struct ibv_qp *qp = raw_qp(&v, small, 16, 0, 0);
	struct timespec nap = { 0, 1000000 };
	struct mlx5dv_cq dv;
	struct mlx5dv_obj obj = { .cq = { .in = small, .out = &dv } };
	uint32_t i;

	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	raw_ready(qp);
	frame(0, 60, 0);
	send_many(qp, small, 0x10000 - 16);
	for (i = 0x10000 - 15; i <= 0x10000 + 48; i++) {
		raw_send(&v, qp, 0, 60);
		nanosleep(&nap, NULL);
		cr_assert_eq(raw_wait(small).status, IBV_WC_SUCCESS, "send %u", i);
		__atomic_store_n(dv.dbrec, htobe32(i & 0xffff), __ATOMIC_RELEASE);
	}
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(small), 0);
}
