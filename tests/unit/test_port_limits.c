/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Limits of a port. If it requires a GRH in every packet (IBV_QPF_GRH_REQUIRED), a
 * path by LID must get a GRH if its GID is set, and must be refused otherwise. A
 * path MTU above the port's active MTU and a port that does not exist must be
 * refused.
 */
/* softnic-run: --link-layer infiniband --grh-required --mtu 1024 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/verbs/qp.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"

#define A(name) DOCA_VERBS_QP_ATTR_##name
#define BYTES	4096u

static struct e2e_nic nic;
static struct e2e_qp q;
static struct ibv_port_attr port;

static void open_all(void)
{
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert_eq(ibv_query_port(nic.ctx, 1, &port), 0);
	cr_assert(port.flags & IBV_QPF_GRH_REQUIRED);
}

static void close_all(void)
{
	e2e_qp_close(&q);
	e2e_close(&nic);
}

TestSuite(port_limits, .init = open_all, .fini = close_all);

static doca_error_t step(doca_verbs_qp_attr_t *attr, enum doca_verbs_qp_state to, int mask)
{
	doca_verbs_qp_attr_set_next_state(attr, to);
	return doca_verbs_qp_modify(q.hl->qp, attr, mask | A(NEXT_STATE));
}

/* Connects the QP to itself (up to RTS) by LID, with the GID, which may be 0, also set. */
static doca_error_t connect_by_lid(struct doca_verbs_gid gid, enum doca_verbs_mtu_size mtu)
{
	doca_verbs_qp_attr_t *attr;
	doca_verbs_ah_attr_t *ah;
	doca_error_t err;

	cr_assert_eq(doca_verbs_ah_attr_create(nic.dev, &ah), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IB_NO_GRH);
	doca_verbs_ah_attr_set_dlid(ah, port.lid);
	doca_verbs_ah_attr_set_gid(ah, gid);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	doca_verbs_qp_attr_set_port_num(attr, 1);
	doca_verbs_qp_attr_set_allow_remote_write(attr, 1);
	doca_verbs_qp_attr_set_dest_qp_num(attr, q.qpn);
	doca_verbs_qp_attr_set_path_mtu(attr, mtu);
	doca_verbs_qp_attr_set_ack_timeout(attr, 14);
	doca_verbs_qp_attr_set_retry_cnt(attr, 7);
	err = step(attr, DOCA_VERBS_QP_STATE_INIT,
		   A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ));
	if (err == DOCA_SUCCESS)
		err = step(attr, DOCA_VERBS_QP_STATE_RTR,
			   A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) |
				   A(MIN_RNR_TIMER));
	if (err == DOCA_SUCCESS)
		err = step(attr, DOCA_VERBS_QP_STATE_RTS,
			   A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY));
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_ah_attr_destroy(ah);
	return err;
}

Test(port_limits, defect_26_path_by_lid_gets_the_required_grh)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	struct doca_verbs_gid gid;
	struct e2e_buf buf;

	memcpy(gid.raw, nic.gid.raw, sizeof(gid.raw));
	cr_assert_eq(connect_by_lid(gid, DOCA_VERBS_MTU_SIZE_1K_BYTES), DOCA_SUCCESS);
	e2e_buf_open(&nic, &buf, 2 * BYTES, E2E_REMOTE);
	memset(buf.mem, 0x5a, BYTES);
	cr_assert_eq(gdk_put(q.dev, e2e_addr(buf.mem + BYTES, buf.mr->rkey),
			     e2e_addr(buf.mem, buf.mr->lkey), BYTES, &ticket,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&q, ticket), 0);
	cr_assert_eq(memcmp(buf.mem, buf.mem + BYTES, BYTES), 0);
	e2e_buf_close(&buf);
}

Test(port_limits, lid_without_gid_is_refused)
{
	static const struct doca_verbs_gid none;
	const char *log;

	capture_begin();
	cr_expect_eq(connect_by_lid(none, DOCA_VERBS_MTU_SIZE_1K_BYTES), DOCA_ERROR_INVALID_VALUE);
	log = capture_end();
	cr_expect(strstr(log, "port 1 requires a GRH"), "log: %s", log);
	cr_expect_eq(q.hl->qp->state, DOCA_VERBS_QP_STATE_INIT);
}

Test(port_limits, defect_26_mtu_above_the_ports_is_refused)
{
	struct doca_verbs_gid gid;
	const char *log;

	memcpy(gid.raw, nic.gid.raw, sizeof(gid.raw));
	capture_begin();
	cr_expect_eq(connect_by_lid(gid, DOCA_VERBS_MTU_SIZE_2K_BYTES), DOCA_ERROR_INVALID_VALUE);
	log = capture_end();
	cr_expect(strstr(log, "path_mtu 2048 is larger than the active MTU 1024 of port 1"),
		  "log: %s", log);
}

Test(port_limits, a_port_that_the_device_lacks_is_refused)
{
	doca_verbs_qp_attr_t *attr;
	const char *log;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_port_num(attr, 2);
	capture_begin();
	cr_expect_eq(
		step(attr, DOCA_VERBS_QP_STATE_INIT,
		     A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ)),
		DOCA_ERROR_INVALID_VALUE);
	log = capture_end();
	cr_expect(strstr(log, "port_num 2 does not exist (the device has ports 1 to 1)"), "log: %s",
		  log);
	doca_verbs_qp_attr_destroy(attr);
}
