/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The part "states" of the probe. It uses a connected queue pair: answers to queries,
 * transitions, writes that succeed and fail, and resets. */
#include <string.h>

#include "probe.h"

#define BYTES	4096u
#define BAD_KEY 0x7fffff00u

static void print_attr(const char *when, const struct e2e_qp *q)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	struct gdk_qp_attr a = { 0 };
	doca_error_t err;
	char text[200];

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr) && !doca_verbs_qp_init_attr_create(&init));
	err = doca_verbs_qp_query(q->hl->qp, attr, init, NULL);
	if (!err)
		err = gdk_verbs_qp_attr_get(attr, &a);
	snprintf(text, sizeof(text),
		 "state %d mtu %d write %d read %d atomic %d ack_timeout %u retry %u rnr_retry %u "
		 "min_rnr %u rd_atomic %u dest_rd_atomic %u hops %u tclass %u sl %u",
		 (int)a.current_state, (int)a.path_mtu, a.allow_remote_write, a.allow_remote_read,
		 (int)a.atomic_mode, a.ack_timeout, a.retry_cnt, a.rnr_retry, a.min_rnr_timer,
		 a.max_rd_atomic, a.max_dest_rd_atomic, a.hop_limit, a.traffic_class, a.sl);
	probe_print(err ? doca_error_get_name(err) : text, "%s, queried", when);
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr) && !doca_verbs_qp_init_attr_destroy(init));
}

static void print_error(const char *what, struct e2e_qp *q)
{
	struct gdk_qp_error e = { 0 };
	doca_error_t err = gdk_verbs_qp_get_error(q->hl->qp_gverbs, &e);
	char text[128];

	snprintf(text, sizeof(text), "error %d, CQE %d, syndrome 0x%x (%s), vendor 0x%x",
		 e.has_error, e.has_cqe, e.syndrome, gdk_syndrome_text(e.syndrome),
		 e.vendor_err_synd);
	probe_print(err ? doca_error_get_name(err) : text, "%s, the error", what);
}

static void print_put(struct e2e_pair *p, const char *what, bool delivered)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	char text[96];
	size_t i;
	int rc;

	for (i = 0; i < BYTES; i++)
		p->src.mem[i] = e2e_pattern(i, (uint32_t)strlen(what));
	rc = e2e_put(p, 0, BYTES, &ticket);
	rc = rc ? rc : e2e_wait(&p->tx, ticket);
	snprintf(text, sizeof(text), "status %d, data %s", rc,
		 !delivered				 ? "not checked"
		 : memcmp(p->src.mem, p->dst.mem, BYTES) ? "wrong"
							 : "right");
	probe_print(text, "%s", what);
}

static doca_error_t move(struct e2e_qp *q, enum doca_verbs_qp_state to, int mask)
{
	doca_verbs_qp_attr_t *attr;
	doca_error_t err;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_next_state(attr, to));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_min_rnr_timer(attr, 5));
	err = doca_verbs_qp_modify(q->hl->qp, attr, mask | DOCA_VERBS_QP_ATTR_NEXT_STATE);
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
	return err;
}

static void reconnect(struct e2e_pair *p)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	e2e_qp_reset(&p->tx);
	e2e_qp_reset(&p->rx);
	probe_result(e2e_connect(&p->nic, p->tx.hl->qp, &p->nic.gid, p->rx.qpn, path),
		     "reset and connected");
	probe_result(e2e_connect(&p->nic, p->rx.hl->qp, &p->nic.gid, p->tx.qpn, path),
		     "the other side");
}

void probe_states(struct e2e_nic *nic)
{
	struct gdk_qp_lag lag = { 0 };
	struct e2e_pair p;
	uint32_t key;
	char text[64];

	(void)nic; /* a pair opens its own */
	e2e_pair_open(&p, E2E_DB, 16, BYTES);
	print_attr("connected", &p.tx);
	print_put(&p, "a write", true);
	if (!gdk_verbs_qp_get_lag(p.tx.hl->qp, &lag)) {
		snprintf(text, sizeof(text), "ports %u active %d by queue %d", lag.ports,
			 lag.active, lag.by_queue);
		probe_print(text, "bond");
	}
	probe_result(move(&p.tx, DOCA_VERBS_QP_STATE_RTS, DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER),
		     "RTS to RTS, min_rnr_timer");
	print_attr("changed", &p.tx);
	reconnect(&p);
	print_put(&p, "a write after the reset", true);
	key = p.dst.mr->rkey;
	p.dst.mr->rkey = BAD_KEY;
	print_put(&p, "a write with a key that does not exist", false);
	p.dst.mr->rkey = key;
	print_error("a write with a key that does not exist", &p.tx);
	reconnect(&p);
	print_put(&p, "a write after the error", true);
	probe_result(move(&p.tx, DOCA_VERBS_QP_STATE_ERR, 0), "RTS to ERR");
	print_put(&p, "a write in ERR", false);
	print_error("a write in ERR", &p.tx);
	print_attr("in ERR", &p.tx);
	probe_result(move(&p.tx, DOCA_VERBS_QP_STATE_RST, 0), "ERR to RST");
	print_attr("in RST", &p.tx);
	e2e_pair_close(&p);
}
