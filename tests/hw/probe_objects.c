/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The parts "caps", "objects" and "limits" of the probe: capabilities, an object of
 * each kind in its variants, and the number of QPs that can exist at once. */
#include <string.h>
#include <unistd.h>

#include "probe.h"

#define KIB (1u << 10)
#define MIB (1u << 20)

static void print_number(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	probe_print(text, "%s", name);
}

static void print_port(struct e2e_nic *nic)
{
	struct ibv_port_attr port;

	if (ibv_query_port(nic->ctx, 1, &port))
		return probe_print("cannot be queried", "port 1");
	probe_print(port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand",
		    "link_layer");
	print_number("port.state", port.state);
	print_number("port.max_mtu", port.max_mtu);
	print_number("port.active_mtu", port.active_mtu);
	print_number("port.max_msg_sz", port.max_msg_sz);
	print_number("port.gid_tbl_len", (uint64_t)port.gid_tbl_len);
	print_number("port.pkey_tbl_len", port.pkey_tbl_len);
	print_number("port.flags", port.flags);
}

#define PRINT(name) print_number(#name, doca_verbs_device_attr_get_##name(attr));

void probe_caps(struct e2e_nic *nic)
{
	struct doca_verbs_device_attr *attr;
	doca_error_t err = doca_verbs_query_device(nic->ctx, &attr);

	probe_result(err, "query device");
	if (err)
		return;
	/* clang-format off */
	PRINT(max_qp) PRINT(max_qp_wr) PRINT(max_sge) PRINT(max_cq)
	PRINT(max_cqe) PRINT(max_mr) PRINT(max_pd) PRINT(max_ah)
	PRINT(max_srq) PRINT(max_srq_wr) PRINT(max_srq_sge) PRINT(max_pkeys)
	PRINT(max_qp_rd_atom) PRINT(max_qp_init_rd_atom) PRINT(send_dbr_mode_no_dbr_ext)
		/* clang-format on */
		probe_result(doca_verbs_device_attr_get_is_qp_type_supported(attr,
									     DOCA_VERBS_QP_TYPE_RC),
			     "RC");
	E2E_REQUIRE(!doca_verbs_device_attr_free(attr));
	print_port(nic);
}

/* ---- umem and UAR ---- */

static void try_umem(struct e2e_nic *nic, size_t size, size_t shift, uint32_t access)
{
	doca_verbs_umem_t *umem;
	uint8_t *mem = NULL;
	doca_error_t err;

	E2E_REQUIRE(!posix_memalign((void **)&mem, 2 * MIB, size + shift));
	memset(mem, 0, size + shift);
	err = doca_verbs_umem_create(nic->dev, NULL, mem + shift, size, access,
				     (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, &umem);
	probe_result(err, "umem of %zu bytes at offset %zu, access 0x%x", size, shift, access);
	if (!err)
		probe_result(doca_verbs_umem_destroy(umem), "umem of %zu bytes, destroyed", size);
	free(mem);
}

static void try_uar(struct e2e_nic *nic, enum doca_verbs_uar_allocation_type type)
{
	static const char *const names[] = { "BlueFlame", "non-cached", "dedicated non-cached" };
	doca_verbs_uar_t *uar;
	void *addr = NULL;
	doca_error_t err = doca_verbs_uar_create(nic->dev, type, &uar);

	probe_result(err, "UAR, %s", names[type]);
	if (err)
		return;
	probe_result(doca_verbs_uar_dbr_less_addr_get(uar, &addr), "UAR, %s, DBREC-less register",
		     names[type]);
	probe_result(doca_verbs_uar_destroy(uar), "UAR, %s, destroyed", names[type]);
}

/* ---- CQ and SRQ ---- */

static doca_error_t make_cq(struct e2e_nic *nic, uint32_t size, bool ignore_overrun, bool collapsed,
			    doca_verbs_cq_t **cq)
{
	doca_verbs_cq_attr_t *attr;
	doca_error_t err;

	E2E_REQUIRE(!doca_verbs_cq_attr_create(&attr));
	err = doca_verbs_cq_attr_set_cq_size(attr, size);
	if (!err && ignore_overrun)
		err = doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN);
	if (!err && collapsed)
		err = doca_verbs_cq_attr_set_cq_collapsed(attr, 1);
	if (!err)
		err = doca_verbs_cq_create(nic->dev, attr, cq);
	E2E_REQUIRE(!doca_verbs_cq_attr_destroy(attr));
	return err;
}

static void try_cq(struct e2e_nic *nic, uint32_t size, bool ignore_overrun, bool collapsed)
{
	struct gdk_events *events = NULL;
	doca_verbs_cq_t *cq;
	doca_error_t err = make_cq(nic, size, ignore_overrun, collapsed, &cq);

	probe_result(err, "CQ of %u%s%s", size, ignore_overrun ? ", overrun ignored" : "",
		     collapsed ? ", collapsed" : "");
	if (err)
		return;
	err = gdk_events_open(nic->dev, &events);
	probe_result(err ? err : gdk_events_watch_cq(events, cq), "events of a CQ");
	probe_result(doca_verbs_cq_destroy(cq), "CQ of %u, destroyed", size);
	if (events)
		E2E_REQUIRE(!gdk_events_close(events));
}

static doca_error_t make_srq(struct e2e_nic *nic, enum doca_verbs_srq_type type, uint32_t wr,
			     struct doca_verbs_srq **srq)
{
	struct doca_verbs_srq_init_attr *attr;
	doca_error_t err;

	E2E_REQUIRE(!doca_verbs_srq_init_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_pd(attr, nic->pd));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_srq_wr(attr, wr));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_type(attr, type));
	err = doca_verbs_srq_create(nic->ctx, attr, srq);
	E2E_REQUIRE(!doca_verbs_srq_init_attr_destroy(attr));
	return err;
}

static void try_srq(struct e2e_nic *nic, enum doca_verbs_srq_type type, uint32_t wr)
{
	const char *kind = type == DOCA_VERBS_SRQ_TYPE_CONTIGUOUS ? "a ring" : "a list";
	struct doca_verbs_srq *srq;
	doca_error_t err = make_srq(nic, type, wr, &srq);

	probe_result(err, "SRQ of %u, %s", wr, kind);
	if (!err)
		probe_result(doca_verbs_srq_destroy(srq), "SRQ, %s, destroyed", kind);
}

/* ---- QP ---- */

static const struct qp_case {
	const char *name;
	uint32_t sq_wr, rq_wr, sges, inl;
	enum doca_verbs_qp_send_dbr_mode dbr;
	bool master, srq;
} qp_cases[] = {
	{ "QP of 1 slot", 1, 0, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID, false, false },
	{ "QP of 64 slots", 64, 0, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID, false, false },
	{ "QP of 1024 slots and 64 receives", 1024, 64, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID,
	  false, false },
	{ "QP of 32768 slots", 32768, 0, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID, false,
	  false },
	{ "QP of 64 slots, 3 segments, 200 bytes inline", 64, 0, 3, 200,
	  DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID, false, false },
	{ "QP without DBREC", 64, 0, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT, false, false },
	{ "QP, master of CORE-Direct", 64, 0, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID, true,
	  false },
	{ "QP with an SRQ", 64, 0, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID, false, true },
};

static doca_error_t make_qp(struct e2e_nic *nic, const struct qp_case *c, doca_verbs_cq_t *cq,
			    struct doca_verbs_srq *srq, doca_verbs_qp_t **qp)
{
	doca_verbs_qp_init_attr_t *init;
	doca_error_t err;

	E2E_REQUIRE(!doca_verbs_qp_init_attr_create(&init));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_cq(init, cq));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_receive_cq(init, cq));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_sq_wr(init, c->sq_wr));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_rq_wr(init, c->rq_wr));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_max_sges(init, c->sges));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_receive_max_sges(init, 1));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_max_inline_data(init, c->inl));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_dbr_mode(init, c->dbr));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_core_direct_master(init, c->master));
	if (srq)
		E2E_REQUIRE(!doca_verbs_qp_init_attr_set_srq(init, srq));
	err = doca_verbs_qp_create(nic->dev, init, qp);
	E2E_REQUIRE(!doca_verbs_qp_init_attr_destroy(init));
	return err;
}

static void try_qp(struct e2e_nic *nic, const struct qp_case *c, doca_verbs_cq_t *cq)
{
	struct doca_verbs_srq *srq = NULL;
	struct gdk_events *events = NULL;
	doca_verbs_qp_t *qp;
	doca_error_t err;

	if (c->srq && make_srq(nic, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS, 64, &srq))
		return probe_print("no SRQ", "%s", c->name);
	err = make_qp(nic, c, cq, srq, &qp);
	probe_result(err, "%s", c->name);
	if (!err) {
		err = gdk_events_open(nic->dev, &events);
		probe_result(err ? err : gdk_events_watch_qp(events, qp), "%s, events", c->name);
		probe_result(doca_verbs_qp_destroy(qp), "%s, destroyed", c->name);
	}
	if (events)
		E2E_REQUIRE(!gdk_events_close(events));
	if (srq)
		E2E_REQUIRE(!doca_verbs_srq_destroy(srq));
}

void probe_objects(struct e2e_nic *nic)
{
	doca_verbs_cq_t *cq;
	size_t i;

	try_umem(nic, 4 * KIB, 0, IBV_ACCESS_LOCAL_WRITE);
	try_umem(nic, 64 * KIB, 0, IBV_ACCESS_LOCAL_WRITE);
	try_umem(nic, 2 * MIB, 0, IBV_ACCESS_LOCAL_WRITE);
	try_umem(nic, 64 * KIB, 64, IBV_ACCESS_LOCAL_WRITE);
	try_umem(nic, 4 * KIB, 0, 0);
	try_umem(nic, 4 * KIB, 0, IBV_ACCESS_REMOTE_WRITE);
	try_umem(nic, 4 * KIB, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	try_uar(nic, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME);
	try_uar(nic, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE);
	try_uar(nic, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED);
	for (i = 1; i <= 65536; i *= 256)
		try_cq(nic, (uint32_t)i, false, false);
	try_cq(nic, 1024, true, false);
	try_cq(nic, 1024, true, true);
	try_srq(nic, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS, 64);
	try_srq(nic, DOCA_VERBS_SRQ_TYPE_LINKED_LIST, 64);
	if (make_cq(nic, 1024, false, false, &cq))
		return probe_print("no CQ", "QPs");
	for (i = 0; i < sizeof(qp_cases) / sizeof(qp_cases[0]); i++)
		try_qp(nic, &qp_cases[i], cq);
	E2E_REQUIRE(!doca_verbs_cq_destroy(cq));
}

/* ---- limits ---- */

#define LIMIT_QPS 300000u
#define LIMIT_S	  200

void probe_limits(struct e2e_nic *nic)
{
	const struct qp_case small = { "",    1,    0, 1, 0, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID,
				       false, false };
	const char *seconds = getenv("PROBE_LIMIT_S");
	uint64_t end = e2e_now_ns() + (seconds ? strtoull(seconds, NULL, 0) : LIMIT_S) * 1000000000;
	doca_verbs_qp_t **qps = calloc(LIMIT_QPS, sizeof(*qps));
	doca_error_t err = DOCA_SUCCESS;
	struct gdk_command_error last = { 0 };
	doca_verbs_cq_t *cq;
	uint32_t n;

	E2E_REQUIRE(qps && !make_cq(nic, 64, true, false, &cq));
	for (n = 0; n < LIMIT_QPS && !err && e2e_now_ns() < end; n++)
		err = make_qp(nic, &small, cq, NULL, &qps[n]);
	n -= err != DOCA_SUCCESS;
	if (err)
		print_number("QPs that exist at once", n);
	else
		probe_print("more than could be created within the time limit",
			    "QPs that exist at once");
	if (err && !gdk_get_command_error(&last) && last.command)
		printf("creating the next one: %s in %s, status 0x%x syndrome 0x%x errno %d\n",
		       doca_error_get_name(err), last.command, last.status, last.syndrome,
		       last.sys_err);
	while (n--)
		E2E_REQUIRE(!doca_verbs_qp_destroy(qps[n]));
	E2E_REQUIRE(!doca_verbs_cq_destroy(cq));
	free(qps);
}
