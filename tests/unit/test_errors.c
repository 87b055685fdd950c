/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * How the host learns about an error: queries of the last error (from the error CQE
 * and its WQE, for several opcodes, with queues in host memory and in GPU memory),
 * events on a file descriptor, and the texts of syndromes and events.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <string.h>

#include "../../core/nic/devx.h"
#include "../../qp/verbs/qp.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/standin.h"

#define BYTES	      4096u
#define DEPTH	      16u
#define BAD_KEY	      0x100u
#define REMOTE_ACCESS 0x13
#define FLUSHED	      0x05
#define OP(name)      DOCA_GPUNETIO_IB_MLX5_OPCODE_##name

/* ---- one failing operation of each kind, after successful ones ---- */

static int fail_by(struct e2e_pair *p, uint8_t opcode, doca_gpu_dev_verbs_ticket_t *t)
{
	struct doca_gpu_dev_verbs_addr to = e2e_addr(p->dst.mem + 8, p->dst.mr->rkey ^ BAD_KEY);
	struct doca_gpu_dev_verbs_addr from = e2e_addr(p->src.mem, p->src.mr->lkey);

	switch (opcode) {
	case OP(RDMA_WRITE):
		return gdk_put(
			p->tx.dev, to, from, 64, t,
			gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0));
	case OP(RDMA_READ):
		return gdk_get(
			p->tx.dev, to, from, 64, t,
			gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0));
	case OP(ATOMIC_CS):
		return gdk_atomic_cas(p->tx.dev, to, from, 1, 2, t,
				      gdk_how(E2E_MODE, E2E_AUTO, GDK_THREAD, 0));
	default:
		return gdk_dump(
			p->tx.dev, e2e_addr(p->src.mem, p->src.mr->lkey ^ BAD_KEY), t,
			gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0));
	}
}

/* Queries the last error with both functions, which must agree. */
static struct gdk_qp_error error_of(struct e2e_qp *q)
{
	struct doca_gpu_verbs_qp_error_info info;
	struct gdk_qp_error e;

	cr_assert_eq(doca_gpu_verbs_query_last_error(q->hl->qp_gverbs, &info), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_get_error(q->hl->qp_gverbs, &e), DOCA_SUCCESS);
	cr_expect_eq(info.has_error, e.has_error);
	cr_expect_eq(info.syndrome, e.syndrome);
	cr_expect_eq(info.vendor_err_synd, e.vendor_err_synd);
	cr_expect_eq(info.hw_err_synd, e.hw_err_synd);
	cr_expect_eq(info.hw_synd_type, e.hw_synd_type);
	cr_expect_eq(info.wqe_counter, e.wqe_counter);
	cr_expect_eq(e.qpn, q->qpn);
	return e;
}

static void expect_error(uint8_t opcode, uint8_t syndrome)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_qp_error e;
	struct e2e_pair p;

	e2e_pair_open(&p, E2E_DB, DEPTH, BYTES);
	e = error_of(&p.tx);
	cr_expect(!e.has_error && !e.has_cqe && !e.has_remote && !e.syndrome);
	/* post more than one lap, so that a WQE's index differs from its slot */
	for (unsigned int i = 0; i < DEPTH + 3; i++) {
		cr_assert_eq(e2e_put(&p, 0, 64, &t), 0);
		cr_assert_eq(e2e_wait(&p.tx, t), 0);
	}
	cr_assert_eq(fail_by(&p, opcode, &t), 0);
	cr_assert_eq(e2e_wait(&p.tx, t), -EIO);
	e = error_of(&p.tx);
	cr_expect(e.has_error && e.has_cqe);
	cr_expect_eq(e.syndrome, syndrome, "opcode 0x%x: got syndrome 0x%x", opcode, e.syndrome);
	cr_expect_neq(e.vendor_err_synd, 0);
	cr_expect_eq(e.wqe_counter, DEPTH + 3);
	cr_expect_eq(e.opcode, opcode);
	cr_expect_eq(e.has_remote, opcode != OP(DUMP));
	if (e.has_remote) {
		cr_expect_eq(e.remote_addr, (uintptr_t)p.dst.mem + 8);
		cr_expect_eq(e.rkey, p.dst.mr->rkey ^ BAD_KEY);
	}
	e2e_pair_close(&p);
}

Test(peer_defects, defect_03_an_error_names_its_operation_address_and_queue_pair)
{
	expect_error(OP(RDMA_WRITE), REMOTE_ACCESS);
	expect_error(OP(RDMA_READ), REMOTE_ACCESS);
	expect_error(OP(ATOMIC_CS), REMOTE_ACCESS);
	expect_error(OP(DUMP), 0x04);
}

/*
 * gdk_verbs_qp_get_error() must report all fields of the error CQE, but the remote
 * address only if the slot still holds the failed WQE.
 */
Test(errors, error_has_all_cqe_fields_and_checks_the_slot)
{
	struct doca_gpunetio_ib_mlx5_err_cqe_ex *ring;
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_qp_error e;
	struct e2e_pair p;

	e2e_pair_open(&p, E2E_DB, DEPTH, BYTES);
	/* fill every slot with a READ, which has a remote address */
	for (unsigned int i = 0; i < DEPTH; i++) {
		cr_assert_eq(gdk_get(p.tx.dev, e2e_addr(p.dst.mem, p.dst.mr->rkey),
				     e2e_addr(p.src.mem, p.src.mr->lkey), 64, &t,
				     gdk_how(E2E_MODE, E2E_AUTO,
					     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
			     0);
		cr_assert_eq(e2e_wait(&p.tx, t), 0);
	}
	ring = p.tx.hl->cq_sq_umem_gpu_ptr;
	ring[3].op_own = DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR << 4;
	ring[3].s_wqe_opcode_qpn = htobe32((uint32_t)OP(RDMA_READ) << 24 | p.tx.qpn);
	ring[3].syndrome = 0x15;
	ring[3].vendor_err_synd = 0x81;
	ring[3].hw_err_synd = 0x42;
	ring[3].hw_synd_type = 0x33;
	ring[3].wqe_counter = htobe16(0xfedc);
	e = error_of(&p.tx);
	cr_expect(e.has_error && e.has_cqe && !e.has_remote);
	cr_expect_eq(e.syndrome, 0x15);
	cr_expect_eq(e.vendor_err_synd, 0x81);
	cr_expect_eq(e.hw_err_synd, 0x42);
	cr_expect_eq(e.hw_synd_type, 0x33);
	cr_expect_eq(e.wqe_counter, 0xfedc);
	cr_expect_eq(e.opcode, OP(RDMA_READ));
	cr_expect_eq(e.remote_addr, 0);
	ring[3].wqe_counter = htobe16(3); /* the CQE names another opcode than the slot */
	ring[3].s_wqe_opcode_qpn = htobe32((uint32_t)OP(ATOMIC_CS) << 24 | p.tx.qpn);
	cr_expect_not(error_of(&p.tx).has_remote);
	ring[3].s_wqe_opcode_qpn = htobe32((uint32_t)OP(RDMA_READ) << 24 | p.tx.qpn);
	cr_expect_eq(error_of(&p.tx).remote_addr, (uintptr_t)p.dst.mem);
	e2e_pair_close(&p);
}

/* The queues are in GPU memory, which the host reads through the driver. */
Test(errors, error_is_read_from_queues_in_gpu_memory)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_qp_error e;
	struct e2e_nic nic;
	struct e2e_buf buf;
	struct e2e_qp qp, rx;
	long copies;

	setenv("STANDIN_CUDA_POINTERS", "1", 1);
	standin_cuda();
	e2e_open_on(&nic, "8a:00.0");
	e2e_qp_open(&nic, &qp, E2E_DB, DEPTH);
	e2e_buf_open(&nic, &buf, BYTES, E2E_REMOTE);
	e2e_qp_open(&nic, &rx, E2E_DB, DEPTH);
	cr_assert_eq(e2e_connect(&nic, qp.hl->qp, &nic.gid, rx.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, rx.hl->qp, &nic.gid, qp.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(gdk_put(qp.dev, e2e_addr(buf.mem + 64, buf.mr->rkey ^ BAD_KEY),
			     e2e_addr(buf.mem, buf.mr->lkey), 64, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&qp, t), -EIO);
	copies = standin_cuda_calls();
	e = error_of(&qp);
	cr_expect_geq(standin_cuda_calls() - copies, 3,
		      "expected two reads of the CQ and one of the WQE");
	cr_expect(e.has_error && e.has_cqe && e.has_remote);
	cr_expect_eq(e.syndrome, REMOTE_ACCESS);
	cr_expect_eq(e.remote_addr, (uintptr_t)buf.mem + 64);
	cr_expect_eq(e.rkey, buf.mr->rkey ^ BAD_KEY);
	e2e_qp_close(&qp);
	e2e_qp_close(&rx);
	e2e_buf_close(&buf);
	e2e_close(&nic);
}

/* ---- texts ---- */

Test(errors, every_syndrome_has_its_own_text)
{
	static const int all[] = {
		MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
		MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
		MLX5_CQE_SYNDROME_LOCAL_PROT_ERR,
		MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
		MLX5_CQE_SYNDROME_MW_BIND_ERR,
		MLX5_CQE_SYNDROME_BAD_RESP_ERR,
		MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR,
		MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
		MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
		MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
		MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
		MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR,
		MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR,
	};
	const char *unknown = gdk_syndrome_cause(0xee);

	cr_expect_str_eq(gdk_syndrome_text(0xee), "?");
	for (size_t i = 0; i < GDK_ARRAY_SIZE(all); i++) {
		cr_expect_str_neq(gdk_syndrome_text(all[i]), "?", "0x%x", all[i]);
		cr_expect_str_neq(gdk_syndrome_cause(all[i]), unknown, "0x%x", all[i]);
		for (size_t j = 0; j < i; j++) {
			cr_expect_str_neq(gdk_syndrome_text(all[i]), gdk_syndrome_text(all[j]));
			cr_expect_str_neq(gdk_syndrome_cause(all[i]), gdk_syndrome_cause(all[j]));
		}
	}
	for (int k = GDK_EVENT_CQ_ERROR; k <= GDK_EVENT_QP_ACCESS; k++)
		cr_expect_str_neq(gdk_event_text((enum gdk_event_kind)k), "?");
	cr_expect_str_eq(gdk_event_text((enum gdk_event_kind)9), "?");
}

/* ---- events ---- */

#define CMD_MODIFY_CQ	 0x403u
#define MODIFY_CQ_SELECT PRM(0x0c, 31, 0)
#define SELECT_OVERRUN	 (1u << 2)
#define MODIFY_CQ_IN_LEN 0x110

/* Configures the CQ so that the NIC reports an overrun instead of overwriting unconsumed CQEs. */
static void forbid_overrun(doca_verbs_cq_t *cq)
{
	uint8_t in[MODIFY_CQ_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN];

	prm_set(in, PRM_CMD_OPCODE, CMD_MODIFY_CQ);
	prm_set(in, PRM_CMD_OBJECT, cq->cqn);
	prm_set(in, MODIFY_CQ_SELECT, SELECT_OVERRUN);
	cr_assert_eq(gdk_devx_modify(cq->dev->ctx, cq->obj, "CQ", in, sizeof(in), out, sizeof(out)),
		     DOCA_SUCCESS);
}

static struct gdk_event next_event(struct gdk_events *ev)
{
	struct pollfd p = { .events = POLLIN };
	struct gdk_event e = { .number = 0 };

	cr_assert_eq(gdk_events_get_fd(ev, &p.fd), DOCA_SUCCESS);
	cr_assert_eq(poll(&p, 1, 10000), 1, "no event");
	cr_assert_eq(gdk_events_get(ev, &e), DOCA_SUCCESS);
	return e;
}

/*
 * A CQ overrun moves the QP to the error state without a CQE. The host gets an
 * event of the CQ and one of the QP. It then aborts the QP, which ends the device's
 * wait.
 */
Test(errors, cq_overrun_is_an_event)
{
	doca_gpu_dev_verbs_ticket_t t;
	uint8_t box[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state state;
	struct gdk_events *ev;
	struct gdk_qp_error err;
	struct gdk_event e;
	struct e2e_pair p;

	e2e_pair_open(&p, E2E_DB, DEPTH, BYTES);
	forbid_overrun(p.tx.hl->cq_sq);
	cr_assert_eq(gdk_events_open(p.nic.dev, &ev), DOCA_SUCCESS);
	cr_assert_eq(gdk_events_watch_cq(ev, p.tx.hl->cq_sq), DOCA_SUCCESS);
	cr_assert_eq(gdk_events_watch_qp(ev, p.tx.hl->qp), DOCA_SUCCESS);
	cr_assert_eq(gdk_events_get(ev, &e), DOCA_ERROR_AGAIN, "gdk_events_get() must not block");
	for (unsigned int i = 0; i < DEPTH; i++) {
		cr_assert_eq(e2e_put(&p, 0, 64, &t), 0);
		cr_assert_eq(e2e_wait(&p.tx, t), 0);
	}
	cr_assert_eq(gdk_events_get(ev, &e), DOCA_ERROR_AGAIN);
	cr_assert_eq(e2e_put(&p, 0, 64, &t), 0); /* one more than the CQ has entries */
	e = next_event(ev);
	cr_expect_eq(e.kind, GDK_EVENT_CQ_ERROR);
	cr_expect_eq(e.number, p.tx.hl->cq_sq->cqn);
	cr_expect_eq(e.syndrome, 1, "syndrome of an overrun");
	e = next_event(ev);
	cr_expect_eq(e.kind, GDK_EVENT_QP_FATAL);
	cr_expect_eq(e.number, p.tx.qpn);
	cr_expect_eq(e.syndrome, 0);
	cr_expect_eq(gdk_events_get(ev, &e), DOCA_ERROR_AGAIN);
	for (int i = 0; i < 1000; i++) {
		cr_assert_eq(gdk_qp_query_state(p.tx.hl->qp, box, &state), DOCA_SUCCESS);
		if (state == DOCA_VERBS_QP_STATE_ERR)
			break;
		usleep(1000);
	}
	cr_expect_eq(state, DOCA_VERBS_QP_STATE_ERR);
	err = error_of(&p.tx);
	cr_expect(err.has_error && !err.has_cqe);
	cr_assert_eq(gdk_verbs_qp_abort(p.tx.hl->qp_gverbs), DOCA_SUCCESS);
	cr_expect_eq(e2e_wait(&p.tx, t), -ECANCELED);
	cr_assert_eq(gdk_events_close(ev), DOCA_SUCCESS);
	e2e_pair_close(&p);
}

/* Forbids remote writes to the QP, which e2e_pair_open() has allowed. */
static void forbid_remote_write(struct e2e_qp *q)
{
	doca_verbs_qp_attr_t *attr;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS);
	doca_verbs_qp_attr_set_allow_remote_write(attr, 0);
	cr_assert_eq(doca_verbs_qp_modify(q->hl->qp, attr,
					  DOCA_VERBS_QP_ATTR_NEXT_STATE |
						  DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE),
		     DOCA_SUCCESS);
	doca_verbs_qp_attr_destroy(attr);
}

static void expect_remote(enum gdk_event_kind kind)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_events *ev;
	struct gdk_event e;
	struct e2e_pair p;

	e2e_pair_open(&p, E2E_DB, DEPTH, BYTES);
	cr_assert_eq(gdk_events_open(p.nic.dev, &ev), DOCA_SUCCESS);
	cr_assert_eq(gdk_events_watch_qp(ev, p.rx.hl->qp), DOCA_SUCCESS);
	if (kind == GDK_EVENT_QP_REQUEST)
		forbid_remote_write(&p.rx);
	cr_assert_eq(fail_by(&p, OP(RDMA_WRITE), &t), 0);
	e = next_event(ev);
	cr_expect_eq(e.kind, kind);
	cr_expect_eq(e.number, p.rx.qpn);
	cr_assert_eq(gdk_events_close(ev), DOCA_SUCCESS);
	e2e_pair_close(&p);
}

Test(errors, remote_errors_are_events)
{
	expect_remote(GDK_EVENT_QP_ACCESS);
	expect_remote(GDK_EVENT_QP_REQUEST);
}

Test(errors, channel_holds_its_device_and_leaks_nothing)
{
	struct gdk_events *ev = NULL;
	struct doca_verbs_cq_t none;
	struct e2e_nic nic, other;
	struct e2e_qp q;
	const char *log;
	int fd;

	e2e_open(&nic);
	e2e_open(&other);
	e2e_qp_open(&other, &q, E2E_DB, DEPTH);
	cr_assert_eq(gdk_events_open(nic.dev, &ev), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_dev_close(nic.dev), DOCA_ERROR_IN_USE);
	capture_begin();
	cr_expect_eq(gdk_events_watch_cq(ev, q.hl->cq_sq), DOCA_ERROR_INVALID_VALUE);
	log = capture_end();
	cr_expect(strstr(log, "(expected the same context)"), "log: %s", log);
	none = *q.hl->cq_sq;
	none.obj = NULL; /* as in the handle of a CQ that the DOCA SDK created */
	cr_expect_eq(gdk_events_watch_cq(ev, &none), DOCA_ERROR_NOT_SUPPORTED);
	cr_assert_eq(gdk_events_get_fd(ev, &fd), DOCA_SUCCESS);
	cr_expect_geq(fcntl(fd, F_GETFD), 0);
	cr_assert_eq(gdk_events_close(ev), DOCA_SUCCESS);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	e2e_qp_close(&q);
	e2e_close(&other);
	e2e_close(&nic);
}
