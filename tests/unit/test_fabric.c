/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Connections through every GID of a port (RoCE v1 and v2, IPv4 and IPv6, VLAN),
 * with data over each; the RoCE v2 packets are checked in the software NIC's packet
 * capture. Also UDP source ports and bonds. Each test configures the NIC before it
 * opens it.
 */
#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "../../qp/verbs/qp.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/vb.h"

#define A(name) DOCA_VERBS_QP_ATTR_##name
#define S(name) DOCA_VERBS_QP_STATE_##name
#define BYTES	4096u
#define PRIO	5
#define TCLASS	0x68
#define HOPS	9

static uint8_t tclass = TCLASS, hops = HOPS; /* of the path */
static char pcap[] = "/tmp/gdaki-fabric-XXXXXX";

static void capture_packets(void)
{
	int fd = mkstemp(pcap);

	cr_assert_geq(fd, 0);
	close(fd);
	setenv("SOFTNIC_PCAP", pcap, 1);
}

static bool is_v4(const union ibv_gid *gid)
{
	return gid->raw[10] == 0xff && !gid->raw[0];
}

/* ---- connecting two QPs ---- */

static doca_error_t move(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr,
			 enum doca_verbs_qp_state to, int mask)
{
	doca_verbs_qp_attr_set_next_state(attr, to);
	return doca_verbs_qp_modify(qp, attr, mask | A(NEXT_STATE));
}

static void connect_by(struct e2e_nic *nic, struct e2e_qp *q, uint32_t to, uint32_t index,
		       const struct ibv_gid_entry *e)
{
	bool v4 = is_v4(&e->gid);
	struct doca_verbs_gid gid;
	doca_verbs_qp_attr_t *attr;
	doca_verbs_ah_attr_t *ah;

	memcpy(gid.raw, e->gid.raw, sizeof(gid.raw));
	cr_assert_eq(doca_verbs_ah_attr_create(nic->dev, &ah), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_ah_attr_set_addr_type(ah, v4 ? DOCA_VERBS_ADDR_TYPE_IPv4
						: DOCA_VERBS_ADDR_TYPE_IPv6);
	doca_verbs_ah_attr_set_gid(ah, gid);
	doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)index);
	doca_verbs_ah_attr_set_sl(ah, PRIO);
	doca_verbs_ah_attr_set_traffic_class(ah, TCLASS);
	doca_verbs_ah_attr_set_hop_limit(ah, HOPS);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	doca_verbs_qp_attr_set_port_num(attr, 1);
	doca_verbs_qp_attr_set_allow_remote_write(attr, 1);
	doca_verbs_qp_attr_set_dest_qp_num(attr, to);
	doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES);
	doca_verbs_qp_attr_set_ack_timeout(attr, 14);
	doca_verbs_qp_attr_set_retry_cnt(attr, 7);
	cr_assert_eq(
		move(q->hl->qp, attr, S(INIT),
		     A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ)),
		DOCA_SUCCESS);
	cr_assert_eq(move(q->hl->qp, attr, S(RTR),
			  A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) | A(MIN_RNR_TIMER)),
		     DOCA_SUCCESS, "RTR refused with GID %u", index);
	cr_assert_eq(move(q->hl->qp, attr, S(RTS),
			  A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY)),
		     DOCA_SUCCESS);
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_ah_attr_destroy(ah);
}

/*
 * Connects two QPs by the GID at this index and puts data from tx to rx. Returns
 * the UDP source port that the packets of tx must have.
 */
static uint16_t talk_by(struct e2e_nic *nic, struct e2e_buf *buf, uint32_t index,
			const struct ibv_gid_entry *e)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct e2e_qp tx, rx;
	uint16_t port;

	e2e_qp_open(nic, &tx, E2E_DB, 16);
	e2e_qp_open(nic, &rx, E2E_DB, 16);
	connect_by(nic, &tx, rx.qpn, index, e);
	connect_by(nic, &rx, tx.qpn, index, e);
	memset(buf->mem, (int)index + 1, BYTES);
	cr_assert_eq(gdk_put(tx.dev, e2e_addr(buf->mem + BYTES, buf->mr->rkey),
			     e2e_addr(buf->mem, buf->mr->lkey), BYTES, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&tx, t), 0, "put through GID %u failed", index);
	cr_assert_eq(memcmp(buf->mem, buf->mem + BYTES, BYTES), 0);
	port = gdk_path_udp_sport(tx.qpn, rx.qpn, e->gid.raw, e->gid.raw);
	e2e_qp_close(&tx);
	e2e_qp_close(&rx);
	return port;
}

/* ---- the capture ---- */

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/*
 * Returns the number of captured packets with this UDP source port (0: any) and VLAN
 * tag (0: none). If they are IPv4 packets of a given port, checks that they have the
 * DSCP and TTL of the path.
 */
static int count_packets(uint16_t sport, uint16_t tci)
{
	uint8_t head[24], rec[16], p[5000], *ip;
	bool ether, v4;
	uint32_t len;
	int n = 0;
	FILE *f = fopen(pcap, "r");

	cr_assert(f && fread(head, sizeof(head), 1, f) == 1);
	ether = head[20] == 1;
	while (fread(rec, sizeof(rec), 1, f) == 1) {
		memcpy(&len, rec + 8, 4);
		cr_assert(len <= sizeof(p) && fread(p, len, 1, f) == 1);
		ip = p + (ether ? 14 : 0);
		if (ether && be16(p + 12) == 0x8100) {
			if (!tci || be16(p + 14) != tci)
				continue;
			ip += 4;
		} else if (tci) {
			continue;
		}
		cr_assert(!ether || be16(ip - 2) == (ip[0] >> 4 == 4 ? 0x0800 : 0x86dd));
		v4 = ip[0] >> 4 == 4;
		if (sport && be16(ip + (v4 ? 20 : 40)) != sport)
			continue;
		cr_assert(!sport || !v4 || (ip[1] >> 2 == tclass >> 2 && ip[8] == hops),
			  "wrong TOS %u or TTL %u", ip[1], ip[8]);
		n++;
	}
	fclose(f);
	return n;
}

#define PACKETS (BYTES / 1024) /* packets of one put */

/* ---- tests ---- */

/* Puts data through each GID of a port with this IP address (NULL: the default address). */
static void talk_by_every_gid(const char *ip, bool v4)
{
	struct ibv_gid_entry e[8];
	uint16_t port[8] = { 0 };
	struct e2e_nic nic;
	struct e2e_buf buf;
	int i, v2 = 0;

	capture_packets();
	if (ip)
		setenv("SOFTNIC_IP", ip, 1);
	e2e_open(&nic);
	cr_assert_eq(is_v4(&nic.gid), v4);
	e2e_buf_open(&nic, &buf, 2 * BYTES, E2E_REMOTE);
	for (i = 0; i < 8; i++)
		if (!ibv_query_gid_ex(nic.ctx, 1, (uint32_t)i, &e[i], 0))
			port[i] = talk_by(&nic, &buf, (uint32_t)i, &e[i]);
	e2e_buf_close(&buf);
	e2e_close(&nic);
	for (i = 0; i < 8; i++) {
		if (!port[i] || e[i].gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		cr_expect_eq(count_packets(port[i], 0), PACKETS,
			     "GID %d, source port %u: wrong number of packets", i, port[i]);
		v2++;
	}
	cr_expect_eq(v2, 2, "expected two RoCE v2 GIDs: link-local and the configured address");
	unlink(pcap);
}

Test(fabric, put_through_every_ipv4_gid)
{
	talk_by_every_gid(NULL, true);
}

Test(fabric, put_through_every_ipv6_gid)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool has_v6 = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

	if (fd >= 0)
		close(fd);
	if (!has_v6)
		cr_skip_test("no IPv6 on this machine");
	talk_by_every_gid("::1", false);
}

Test(fabric, put_with_and_without_vlan)
{
	struct ibv_gid_entry e[4];
	uint16_t port[4] = { 0 };
	struct e2e_nic nic;
	struct e2e_buf buf;

	capture_packets();
	setenv("SOFTNIC_VLAN", "100", 1);
	e2e_open(&nic);
	e2e_buf_open(&nic, &buf, 2 * BYTES, E2E_REMOTE);
	for (uint32_t i = 1; i < 4; i += 2) { /* the RoCE v2 GIDs: link-local, and on the VLAN */
		cr_assert_eq(ibv_query_gid_ex(nic.ctx, 1, i, &e[i], 0), 0);
		port[i] = talk_by(&nic, &buf, i, &e[i]);
	}
	e2e_buf_close(&buf);
	e2e_close(&nic);
	cr_expect_eq(count_packets(port[1], 0), PACKETS);
	cr_expect_eq(count_packets(port[3], PRIO << 13 | 100), PACKETS,
		     "the VLAN priority must be the service level");
	unlink(pcap);
}

/* The service level is PRIO. */
static int send_datagram(struct vb *v, struct ibv_qp *qp, uint32_t to)
{
	struct ibv_sge sge = vb_sge(v, BYTES, 512);
	struct ibv_ah_attr attr = vb_ah(v);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { .remote_qpn = to, .remote_qkey = 0x11111111 } },
			   *bad;
	int err;

	attr.sl = PRIO;
	wr.wr.ud.ah = ibv_create_ah(v->pd, &attr);
	cr_assert(wr.wr.ud.ah);
	err = ibv_post_send(qp, &wr, &bad);
	cr_assert_eq(ibv_destroy_ah(wr.wr.ud.ah), 0);
	return err;
}

/* UDP source port of a path without a flow label, as rdma_calc_flow_label() of Linux. */
static uint16_t sport_of(const struct ibv_qp *from, const struct ibv_qp *to)
{
	uint64_t v = (uint64_t)from->qp_num * to->qp_num;

	v ^= v >> 20;
	v ^= v >> 40;
	return ibv_flow_label_to_udp_sport(v & 0xfffff);
}

/* A program of libibverbs sends through the GID of the VLAN. All packets must have this tag. */
static void verbs_send_on_vlan(enum ibv_qp_type type, uint16_t tci, int packets)
{
	struct ibv_gid_entry e;
	struct ibv_qp *tx, *rx;
	struct ibv_cq *cq;
	uint16_t sport = 0;
	struct vb v;

	tclass = 0, hops = 64; /* those of vb_ah() */
	capture_packets();
	setenv("SOFTNIC_VLAN", "100", 1);
	v = vb_open(2 * BYTES);
	v.gid_index = 3;
	cr_assert_eq(ibv_query_gid_ex(v.ctx, 1, 3, &e, 0), 0);
	v.gid = e.gid;
	cq = ibv_create_cq(v.ctx, 8, NULL, NULL, 0);
	tx = vb_qp(&v, type, cq, NULL);
	rx = vb_qp(&v, type, cq, NULL);
	vb_connect(&v, tx, rx);
	if (type != IBV_QPT_UD)
		sport = sport_of(tx, rx);
	cr_assert_eq(vb_recv(&v, rx, 1, 0, BYTES), 0);
	if (type == IBV_QPT_UD)
		cr_assert_eq(send_datagram(&v, tx, rx->qp_num), 0);
	else
		cr_assert_eq(vb_send(&v, tx, 2, BYTES, BYTES), 0);
	cr_expect_eq(vb_wc(cq).status, IBV_WC_SUCCESS);
	cr_expect_eq(vb_wc(cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_destroy_qp(tx), 0);
	cr_assert_eq(ibv_destroy_qp(rx), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
	cr_expect_geq(count_packets(sport, tci), packets);
	cr_expect_eq(count_packets(0, 0), 0);
	unlink(pcap);
}

Test(fabric, verbs_sends_on_a_vlan)
{
	verbs_send_on_vlan(IBV_QPT_RC, 100, PACKETS);
}

Test(fabric, verbs_sends_on_a_vlan_without_acknowledgements)
{
	verbs_send_on_vlan(IBV_QPT_UC, 100, PACKETS);
}

Test(fabric, datagrams_on_a_vlan)
{
	verbs_send_on_vlan(IBV_QPT_UD, PRIO << 13 | 100, 1);
}

/* ---- bonds ---- */

static struct gdk_qp_lag lag_of(struct e2e_qp *q)
{
	struct gdk_qp_lag lag;

	cr_assert_eq(gdk_verbs_qp_get_lag(q->hl->qp, &lag), DOCA_SUCCESS);
	return lag;
}

static doca_error_t init_with_port(struct e2e_qp *q, uint8_t port)
{
	doca_verbs_qp_attr_t *attr;
	doca_error_t err;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_attr_set_lag_port(attr, port), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_port_num(attr, 1);
	err = move(q->hl->qp, attr, S(INIT),
		   A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ) |
			   GDK_VERBS_QP_ATTR_LAG_PORT);
	doca_verbs_qp_attr_destroy(attr);
	return err;
}

static doca_error_t change_port(struct e2e_qp *q, uint8_t port)
{
	doca_verbs_qp_attr_t *attr;
	doca_error_t err;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_attr_set_lag_port(attr, port), DOCA_SUCCESS);
	err = move(q->hl->qp, attr, S(RTS), GDK_VERBS_QP_ATTR_LAG_PORT);
	doca_verbs_qp_attr_destroy(attr);
	return err;
}

static void connect_itself(struct e2e_nic *nic, struct e2e_qp *q)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	cr_assert_eq(e2e_connect(nic, q->hl->qp, &nic->gid, q->qpn, path), DOCA_SUCCESS);
}

Test(fabric, bond_ports_are_assigned_round_robin)
{
	struct gdk_qp_lag lag;
	struct e2e_qp q[6];
	struct e2e_nic nic;
	int uses[3] = { 0 };

	setenv("SOFTNIC_LAG", "2", 1);
	e2e_open(&nic);
	for (int i = 0; i < 6; i++) {
		e2e_qp_open(&nic, &q[i], E2E_DB, 16);
		lag = lag_of(&q[i]);
		cr_expect(lag.ports == 2 && lag.active && lag.by_queue && !lag.port);
		connect_itself(&nic, &q[i]);
		lag = lag_of(&q[i]);
		cr_assert(lag.port == 1 || lag.port == 2);
		cr_expect_eq(lag.active_port, lag.port);
		uses[lag.port]++;
	}
	cr_expect_eq(uses[1], 3);
	cr_expect_eq(change_port(&q[0], 2), DOCA_SUCCESS);
	cr_expect_eq(lag_of(&q[0]).port, 2);
	cr_expect_eq(change_port(&q[0], 1), DOCA_SUCCESS);
	cr_expect_eq(lag_of(&q[0]).port, 1);
	for (int i = 0; i < 6; i++)
		e2e_qp_close(&q[i]);
	e2e_close(&nic);
}

Test(fabric, bond_port_can_be_requested)
{
	const char *log;
	struct e2e_nic nic;
	struct e2e_qp q;

	setenv("SOFTNIC_LAG", "4", 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	capture_begin();
	cr_expect_eq(init_with_port(&q, 5), DOCA_ERROR_INVALID_VALUE);
	log = capture_end();
	cr_expect(strstr(log, "port 5 of the bond does not exist (the device has 4)"), "log: %s",
		  log);
	cr_expect_eq(init_with_port(&q, 4), DOCA_SUCCESS);
	cr_expect_eq(lag_of(&q).port, 4);
	cr_expect_eq(lag_of(&q).active_port, 0,
		     "the NIC reports the active port only for ports 1 and 2");
	e2e_qp_close(&q);
	e2e_close(&nic);
}

/*
 * The library assigns no port of the bond to a QP if the bond distributes packets
 * by a hash of their headers, or if the bond is not active.
 */
static void expect_no_port(const char *kind, bool active)
{
	struct gdk_qp_lag lag;
	struct e2e_nic nic;
	struct e2e_qp q;

	setenv("SOFTNIC_LAG", kind, 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	connect_itself(&nic, &q);
	lag = lag_of(&q);
	cr_expect(!lag.by_queue && !lag.port && lag.active == active, "%s", kind);
	e2e_qp_close(&q);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_expect_eq(init_with_port(&q, 1), active ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

Test(fabric, no_port_is_assigned_if_the_bond_hashes_headers)
{
	expect_no_port("2:hash", true);
}

Test(fabric, no_port_is_assigned_without_a_bond)
{
	expect_no_port("0", false);
}

/* libmlx5 queries the software NIC's bond, and queries and changes the port of a QP. */
Test(fabric, libmlx5_reads_the_same_bond)
{
	struct mlx5dv_context dv = { .comp_mask = MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS };
	uint8_t port = 0, active = 0;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct vb v;

	setenv("SOFTNIC_LAG", "2", 1);
	v = vb_open(4096);
	cr_assert_eq(mlx5dv_query_device(v.ctx, &dv), 0);
	cr_expect_eq(dv.num_lag_ports, 2);
	cr_assert(cq = ibv_create_cq(v.ctx, 16, NULL, NULL, 0));
	qp = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	vb_connect(&v, qp, qp);
	cr_assert_eq(mlx5dv_query_qp_lag_port(qp, &port, &active), 0);
	cr_expect(port == 1 && active == 1, "got port %u, active port %u", port, active);
	cr_assert_eq(mlx5dv_modify_qp_lag_port(qp, 2), 0);
	cr_assert_eq(mlx5dv_query_qp_lag_port(qp, &port, &active), 0);
	cr_expect(port == 2 && active == 2, "got port %u, active port %u", port, active);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}
