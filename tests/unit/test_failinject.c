/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf */
/*
 * Fault injection in the functions that create, change or query objects, with the
 * host GPU and with the stand-in CUDA GPU. A case is repeated, and each time
 * another allocation, firmware command or driver call fails (see lib/faults.h).
 * Cases of devices, memory, attributes and queues are in failinject_verbs.h.
 */
#include <criterion/criterion.h>
#include <sys/mman.h>

#include "failinject_verbs.h"

/* ---- high level ---- */

/* Attributes of QPs whose depth, and so whose slab, differs from that of the QPs of open_qps(). */
static struct doca_gpu_verbs_qp_init_attr_hl hl_attr(enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };

	attr.gpu_dev = f.nic.gpu;
	attr.net_dev = f.nic.dev;
	attr.ibpd = f.nic.pd;
	attr.sq_nwqe = 128;
	attr.nic_handler = handler;
	if (handler == E2E_NO_DBR)
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	return attr;
}

static doca_error_t hl_made(const struct doca_gpu_verbs_qp_init_attr_hl *attr, doca_error_t err,
			    struct doca_gpu_verbs_qp_hl *hl)
{
	if (fault_made(err, hl))
		return err;
	cr_expect(hl->qp && hl->cq_sq && hl->qp_gverbs && hl->qp_umem && hl->external_uar);
	cr_expect(attr->nic_handler == E2E_AUTO || hl->nic_handler == attr->nic_handler);
	return FAULT_DONE(err, hl, doca_gpu_verbs_destroy_qp_hl(hl));
}

static doca_error_t hl_of(struct doca_gpu_verbs_qp_init_attr_hl *attr)
{
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	doca_error_t err = doca_gpu_verbs_create_qp_hl(attr, &hl);

	return hl_made(attr, err, hl);
}

#define HL(name, handler, ...) \
	static doca_error_t name(void) \
	{ \
		struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(handler); \
\
		__VA_ARGS__; \
		return hl_of(&attr); \
	}

HL(hl_auto, E2E_AUTO, )
HL(hl_any_mode, E2E_AUTO, attr.send_dbr_mode_ext = GDK_SEND_DBR_MODE_AUTO)
HL(hl_db, E2E_DB, )
HL(hl_collapsed, E2E_DB, attr.cq_collapsed = true)
HL(hl_bf, E2E_BF, )
HL(hl_proxy, E2E_PROXY, )
HL(hl_no_dbr, E2E_NO_DBR, )
HL(hl_emulated, E2E_NO_DBR,
   attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED)
HL(hl_dmabuf, E2E_DB, attr.mreg_type = DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_DMABUF)
HL(hl_peermem, E2E_DB, attr.mreg_type = DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_PEERMEM)

static doca_error_t hl_rq(void)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 16, .cqe_inline = true };
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(E2E_DB);
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	doca_error_t err = gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &hl);

	return hl_made(&attr, err, hl);
}

static doca_error_t hl_srq(void)
{
	struct doca_verbs_srq *srq = srq_prepare();
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(E2E_DB);
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	doca_error_t err = gdk_verbs_create_qp_srq_hl(&attr, srq, f.db->cq_sq, 0, &hl);

	err = hl_made(&attr, err, hl);
	cr_assert(!doca_verbs_srq_destroy(srq));
	return err;
}

static doca_error_t hl_on_host(void)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(E2E_DB);
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	doca_error_t err = gdk_verbs_create_qp_hl(&attr, GDK_QP_HL_QUEUES_ON_HOST, &hl);

	return hl_made(&attr, err, hl);
}

static doca_error_t group_made(doca_error_t err, struct doca_gpu_verbs_qp_group_hl *made)
{
	if (fault_made(err, made))
		return err;
	cr_expect(made->qp_main.qp_gverbs && made->qp_companion.qp_gverbs);
	return FAULT_DONE(err, made, doca_gpu_verbs_destroy_qp_group_hl(made));
}

static doca_error_t group(void)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(E2E_DB);
	struct doca_gpu_verbs_qp_group_hl *made = NULL;
	doca_error_t err = doca_gpu_verbs_create_qp_group_hl(&attr, &made);

	return group_made(err, made);
}

static doca_error_t group_on_host(void)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(E2E_DB);
	struct doca_gpu_verbs_qp_group_hl *made = NULL;
	doca_error_t err = gdk_verbs_create_qp_group_hl(&attr, GDK_QP_HL_QUEUES_ON_HOST, &made);

	return group_made(err, made);
}

static doca_error_t group_rq(void)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 16 };
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(E2E_DB);
	struct doca_gpu_verbs_qp_group_hl *made = NULL;
	doca_error_t err = gdk_verbs_create_qp_group_rq_hl(&attr, &rq, 0, &made);

	return group_made(err, made);
}

static doca_error_t flat_list(void)
{
	struct doca_gpu_verbs_qp_hl *list[3] = { f.db, NULL, f.proxy };
	struct doca_gpu_dev_verbs_qp *made = NULL;
	doca_error_t err = doca_gpu_verbs_qp_flat_list_create_hl(list, 3, &made);

	return FAULT_DONE(err, made, doca_gpu_verbs_qp_flat_list_destroy_hl(made));
}

/* ---- export ---- */

static doca_error_t export_as(enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_gpu_verbs_qp *made = NULL;
	doca_error_t err;

	err = doca_gpu_verbs_export_qp(f.nic.gpu, f.bare->qp, handler, f.bare->qp_umem_gpu_ptr,
				       f.bare->cq_sq,
				       DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR, &made);
	return FAULT_DONE(err, made, doca_gpu_verbs_unexport_qp(f.nic.gpu, made));
}

static doca_error_t export_rq(void)
{
	struct doca_gpu_verbs_qp *made = NULL;
	doca_verbs_cq_t *cq_rq;
	doca_error_t err;

	cr_assert(!gdk_verbs_qp_hl_get_cq_rq(f.bare_rq, &cq_rq));
	err = gdk_verbs_export_qp_rq(f.nic.gpu, f.bare_rq->qp, E2E_DB, f.bare_rq->cq_sq, cq_rq,
				     DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR, &made);
	return FAULT_DONE(err, made, doca_gpu_verbs_unexport_qp(f.nic.gpu, made));
}

static doca_error_t export_db(void)
{
	return export_as(E2E_DB);
}

static doca_error_t export_proxy(void)
{
	return export_as(E2E_PROXY);
}

static doca_error_t qp_dev(void)
{
	struct doca_gpu_dev_verbs_qp *made = NULL;
	struct doca_gpu_verbs_qp *qp = NULL;
	doca_error_t err;

	err = doca_gpu_verbs_export_qp(f.nic.gpu, f.bare->qp, E2E_DB, f.bare->qp_umem_gpu_ptr,
				       f.bare->cq_sq,
				       DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR, &qp);
	if (err)
		return fault_made(err, qp);
	err = doca_gpu_verbs_get_qp_dev(qp, &made);
	fault_made(err, made);
	cr_expect(!doca_gpu_verbs_unexport_qp(f.nic.gpu, qp));
	return err;
}

static doca_error_t multi(void)
{
	struct doca_gpu_verbs_qp *qps[3] = { f.db->qp_gverbs, NULL, f.proxy->qp_gverbs };
	struct doca_gpu_dev_verbs_qp *made = NULL;
	doca_error_t err = doca_gpu_verbs_export_multi_qps_dev(f.nic.gpu, qps, 3, &made);

	return FAULT_DONE(err, made,
			  doca_gpu_verbs_unexport_multi_qps_dev(f.nic.gpu, qps, 3, made));
}

static doca_error_t service(void)
{
	doca_gpu_verbs_service_t made = NULL;
	doca_error_t err = doca_gpu_verbs_create_service(&made);

	return FAULT_DONE(err, made, doca_gpu_verbs_destroy_service(made));
}

/* Uses a new service, so that its list must grow for the first QP. */
static doca_error_t monitored(void)
{
	doca_gpu_verbs_service_t made = NULL;
	doca_error_t err = doca_gpu_verbs_create_service(&made);

	if (err)
		return fault_made(err, made);
	err = doca_gpu_verbs_service_monitor_qp(made, f.proxy->qp_gverbs);
	fault_disarm();
	cr_expect(!doca_gpu_verbs_destroy_service(made));
	return err;
}

/* ---- queries and changes of existing objects ---- */

static struct {
	struct doca_gpu_verbs_qp_error_info info;
	struct gdk_qp_error error;
	struct gdk_qp_counters counters;
	struct gdk_qp_recv_counters recv;
	char text[256];
} got;

FAULT_CHANGE(reset, doca_gpu_verbs_reset_tracking_and_memory(f.db->qp_gverbs))
FAULT_QUERY(last_error, doca_gpu_verbs_query_last_error(f.db->qp_gverbs, &got.info))
FAULT_QUERY(more_error, gdk_verbs_qp_get_error(f.db->qp_gverbs, &got.error))
FAULT_QUERY(counters, gdk_verbs_qp_get_counters(f.db->qp_gverbs, &got.counters))
FAULT_CHANGE(aborted,
	     gdk_verbs_qp_abort(f.db->qp_gverbs) ?: gdk_verbs_qp_clear_abort(f.db->qp_gverbs))
FAULT_CHANGE(limit, gdk_verbs_qp_set_wait_limit(f.db->qp_gverbs, 1))
FAULT_QUERY(dump_wqe, gdk_verbs_qp_dump_wqe(f.db->qp_gverbs, 0, got.text, sizeof(got.text)))
FAULT_QUERY(dump_cqe, gdk_verbs_qp_dump_cqe(f.db->qp_gverbs, 0, got.text, sizeof(got.text)))

FAULT_CHANGE(recv_reset, doca_gpu_verbs_reset_tracking_and_memory(f.rq->qp_gverbs))
FAULT_QUERY(recv_error, gdk_verbs_qp_get_error(f.rq->qp_gverbs, &got.error))
FAULT_QUERY(recv_counters, gdk_verbs_qp_get_recv_counters(f.rq->qp_gverbs, &got.recv))
FAULT_QUERY(dump_recv_wqe,
	    gdk_verbs_qp_dump_recv_wqe(f.rq->qp_gverbs, 0, got.text, sizeof(got.text)))
FAULT_QUERY(dump_recv_cqe,
	    gdk_verbs_qp_dump_recv_cqe(f.rq->qp_gverbs, 0, got.text, sizeof(got.text)))

/* With an error in the state block, the counters also need a copy of the CQ. */
static doca_error_t counters_of_error(void)
{
	struct gdk_qp_state *st = f.db->qp_gverbs->qp_cpu->gdk_state;
	const int32_t broken = -EIO, good = 0;
	doca_error_t err;

	cr_assert(!gdk_gpu_write(f.nic.gpu, &st->status, &broken, sizeof(broken)));
	fault_start();
	err = gdk_verbs_qp_get_counters(f.db->qp_gverbs, &got.counters);
	fault_disarm();
	cr_assert(!gdk_gpu_write(f.nic.gpu, &st->status, &good, sizeof(good)));
	return err;
}

static doca_error_t events(void)
{
	struct gdk_events *made = NULL;
	doca_error_t err = gdk_events_open(f.nic.dev, &made);

	return FAULT_DONE(err, made, gdk_events_close(made));
}

static doca_error_t watched(void)
{
	struct gdk_events *made = NULL;
	doca_error_t err;

	cr_assert(!gdk_events_open(f.nic.dev, &made));
	fault_start();
	err = gdk_events_watch_cq(made, f.db->cq_sq) ?: gdk_events_watch_qp(made, f.db->qp);
	fault_disarm();
	cr_assert(!gdk_events_close(made));
	return err;
}

static doca_error_t service_of(void)
{
	const struct gdk_service_attr attr = { .threads = 3 };
	doca_gpu_verbs_service_t made = NULL;
	doca_error_t err = gdk_verbs_service_create(&attr, &made);

	return FAULT_DONE(err, made, doca_gpu_verbs_destroy_service(made));
}

/* ---- the list of cases ---- */

/*
 * The numbers are minimums: how many faults must make the case fail, if the faults
 * are in allocations, firmware commands, driver calls, CUDA calls and GDRCopy
 * calls, in this order.
 */
#define CASE(fn, alloc, ...) \
	{ \
		.name = #fn, .create = fn, .at_least = { alloc, 0, __VA_ARGS__ } \
	}
#define PREPARES(fn, alloc, ...) \
	{ \
		.name = #fn, .create = fn, .at_least = { alloc, 0, __VA_ARGS__ }, \
		.prepares = true, .errors = { \
			[FAULT_RDMA] = FAULT_ERR(NOT_SUPPORTED) \
		} \
	} /* these allocations of rdma-core fail without errno */

/* Cases that run before open_qps(), so that they share no counter, page or memory with its QPs. */
static const struct fault_case alone[] = {
	CASE(ah_attr, 1, 0),
	CASE(cq_attr, 1, 0),
	CASE(qp_attr, 1, 0),
	CASE(qp_init_attr, 1, 0),
	CASE(srq_init_attr, 1, 0),
	CASE(device_attr, 2, 1, 1),
	CASE(dev, 2, 1, 1),
	CASE(gpu, 1, 0, 0, 4),
	CASE(mem_gpu, 2, 0, 0, 2),
	CASE(mem_gpu_cpu, 1, 0, 0, 2, 2),
	CASE(mem_cpu_gpu, 2, 0, 0, 3),
	CASE(mem_first, 4, 0, 0, 6),
	CASE(map_first, 3, 0, 0, 7),
	CASE(umem_host, 1, 0, 1),
	CASE(umem_dmabuf, 1, 0, 1),
	PREPARES(uar_bf, 1, 0, 1),
	PREPARES(uar_nc, 1, 0, 0),
	CASE(uar_export, 1, 0, 0, 2),
	CASE(uar_can, 0, 0, 0, 0),
	CASE(cq_own, 4, 1, 2),
	CASE(cq_external, 2, 1, 1),
	CASE(srq_list, 3, 1, 2),
	CASE(srq_ring, 2, 1, 1),
	PREPARES(srq_exported, 3, 0, 0, 3),
	CASE(hl_auto, 5, 2, 4, 8),
	CASE(hl_any_mode, 5, 1, 3, 8),
	CASE(hl_db, 5, 2, 4, 8),
	CASE(hl_on_host, 5, 2, 4, 7),
	CASE(hl_rq, 6, 3, 5, 8),
	CASE(hl_collapsed, 5, 2, 4, 8),
	CASE(hl_bf, 5, 2, 4, 8),
	CASE(hl_proxy, 5, 2, 4, 8),
	CASE(hl_no_dbr, 5, 1, 4, 8), /* CREATE_QP is tried again after a failure */
	CASE(hl_emulated, 5, 2, 4, 8, 2),
	CASE(group, 8, 4, 7, 16),
	CASE(group_on_host, 8, 4, 7, 14),
	CASE(group_rq, 9, 5, 8, 16),
	CASE(events, 2, 0, 1),
	CASE(service_of, 4, 0, 0),
	CASE(service, 2, 0, 0),
};
static const struct fault_case alone_on_cuda[] = {
	CASE(hl_dmabuf, 5, 2, 4, 10),
	CASE(hl_peermem, 5, 2, 4, 10),
};
/* Cases that run after open_qps(), because they use its QPs. */
static const struct fault_case shared[] = {
	PREPARES(hl_srq, 5, 0, 0, 8),
	CASE(umem_gpu, 1, 0, 1),
	CASE(cq_in_gpu, 2, 1, 1, 3),
	CASE(qp_own, 4, 1, 2),
	CASE(qp_external, 2, 1, 1),
	CASE(query, 0, 1, 1),
	CASE(connected, 0, 3, 3),
	CASE(flat_list, 3, 0, 0, 5),
	CASE(export_db, 3, 0, 0, 9),
	CASE(export_proxy, 4, 0, 0, 5),
	CASE(qp_dev, 4, 0, 0, 9),
	CASE(multi, 2, 0, 0, 5),
	CASE(monitored, 3, 0, 0),
	CASE(reset, 2, 0, 0, 15),
	CASE(last_error, 1, 1, 1, 3),
	CASE(more_error, 1, 1, 1),
	CASE(counters, 0, 0, 0),
	CASE(aborted, 0, 0, 0),
	CASE(limit, 0, 0, 0),
	CASE(recv_reset, 3, 0, 0),
	CASE(recv_error, 2, 1, 1),
	CASE(recv_counters, 0, 0, 0),
	CASE(export_rq, 2, 0, 0),
	CASE(dump_recv_wqe, 0, 0, 0),
	CASE(dump_recv_cqe, 0, 0, 0),
	CASE(dump_wqe, 0, 0, 0),
	CASE(dump_cqe, 0, 0, 0),
	PREPARES(watched, 0, 0, 2),
	PREPARES(counters_of_error, 2, 0, 0),
};
static const struct fault_case shared_on_cuda[] = {
	CASE(dmabuf, 0, 0, 0, 1),
	CASE(dmabuf_pcie, 0, 0, 0, 1),
};

static struct doca_gpu_verbs_qp_hl *hl_open_rq(void)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 8 };
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(E2E_DB);
	struct doca_gpu_verbs_qp_hl *hl = NULL;

	cr_assert(!gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &hl));
	return hl;
}

static struct doca_gpu_verbs_qp_hl *hl_open(enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr(handler);
	struct doca_gpu_verbs_qp_hl *hl = NULL;

	attr.sq_nwqe = 64;
	cr_assert(!doca_gpu_verbs_create_qp_hl(&attr, &hl));
	return hl;
}

static void open_all(void)
{
	struct doca_verbs_gid gid;
	doca_verbs_uar_t *bf;

	nicfail_find();
	e2e_open_on(&f.nic, fault_on_gpu ? BDF : "host");
	fault_gpu = f.nic.gpu;
	fault_dev = f.nic.dev;
	memcpy(gid.raw, f.nic.gid.raw, sizeof(gid.raw));
	cr_assert(!doca_verbs_ah_attr_create(f.nic.dev, &f.ah));
	cr_assert(!doca_verbs_ah_attr_set_gid(f.ah, gid));
	cr_assert(!doca_verbs_ah_attr_set_sgid_index(f.ah, (uint8_t)f.nic.gid_index));
	cr_assert(!doca_verbs_qp_attr_create(&f.attr));
	cr_assert(!doca_verbs_qp_attr_create(&f.got));
	cr_assert(!doca_verbs_qp_init_attr_create(&f.got_init));
	cr_assert(!doca_verbs_qp_attr_set_ah_attr(f.attr, f.ah));
	cr_assert(!doca_verbs_qp_attr_set_port_num(f.attr, 1));
	f.memfd = memfd_create("dmabuf", MFD_CLOEXEC);
	cr_assert(f.memfd >= 0 && !ftruncate(f.memfd, MEM_BYTES));
	cr_assert(!doca_verbs_umem_create(f.nic.dev, NULL, f.mem, MEM_BYTES, IBV_ACCESS_LOCAL_WRITE,
					  NO_FD, 0, &f.umem));
	cr_assert(
		!doca_verbs_uar_create(f.nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &f.uar));
	cr_assert(!doca_verbs_uar_create(f.nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME,
					 &bf)); /* libmlx5 keeps this page as a spare */
	cr_assert(!doca_verbs_uar_destroy(bf));
}

static void open_qps(void)
{
	f.db = hl_open(E2E_DB);
	f.proxy = hl_open(E2E_PROXY);
	f.rq = hl_open_rq();
	f.bare_rq = hl_open_rq();
	cr_assert(!doca_gpu_verbs_unexport_qp(f.nic.gpu, f.bare_rq->qp_gverbs));
	f.bare_rq->qp_gverbs = NULL;
	f.bare = hl_open(E2E_PROXY);
	cr_assert(!doca_gpu_verbs_unexport_qp(f.nic.gpu, f.bare->qp_gverbs));
	f.bare->qp_gverbs = NULL;
}

static void close_all(void)
{
	cr_expect(!doca_gpu_verbs_destroy_qp_hl(f.rq));
	cr_expect(!doca_gpu_verbs_destroy_qp_hl(f.bare_rq));
	cr_expect(!doca_gpu_verbs_destroy_qp_hl(f.bare));
	cr_expect(!doca_gpu_verbs_destroy_qp_hl(f.proxy));
	cr_expect(!doca_gpu_verbs_destroy_qp_hl(f.db));
	cr_expect(!doca_verbs_uar_destroy(f.uar));
	cr_expect(!doca_verbs_umem_destroy(f.umem));
	cr_expect(!doca_verbs_qp_init_attr_destroy(f.got_init));
	cr_expect(!doca_verbs_qp_attr_destroy(f.got));
	cr_expect(!doca_verbs_qp_attr_destroy(f.attr));
	cr_expect(!doca_verbs_ah_attr_destroy(f.ah));
	close(f.memfd);
	e2e_close(&f.nic);
	cr_expect(!fault_on_gpu || !standin_cuda_live());
}

#define ALL(cases, kind) each_of(cases, sizeof(cases) / sizeof(cases[0]), kind)

static void each_of(const struct fault_case *c, size_t n, enum fault kind)
{
	const struct fault_case *end = c + n;

	for (; c < end; c++)
		fault_each(c, kind, false);
	/*
	 * Destruction cannot free the memory of a CUDA context that it cannot make
	 * current, so it gets no faults in CUDA and GDRCopy calls.
	 */
	for (c = end - n; c < end && kind < FAULT_CUDA; c++)
		fault_each(c, kind, true);
}

static void all_of(enum fault kind)
{
	bool cuda = fault_on_gpu && !fault_uncounted;

	if (kind <= FAULT_RDMA && !FAILALLOC_WORKS)
		cr_skip_test("a sanitizer replaces malloc");
	open_all();
	ALL(alone, kind);
	if (cuda)
		ALL(alone_on_cuda, kind);
	open_qps();
	ALL(shared, kind);
	if (cuda)
		ALL(shared_on_cuda, kind);
	close_all();
}

TestSuite(failinject);

Test(failinject, allocations)
{
	all_of(FAULT_ALLOC);
}

/* All later allocations fail, too, so error handling cannot allocate either. */
Test(failinject, all_allocations_from_the_nth_on)
{
	failalloc_stay();
	all_of(FAULT_ALLOC);
}

Test(failinject, allocations_of_rdma_core)
{
	all_of(FAULT_RDMA);
}

Test(failinject, firmware_commands)
{
	all_of(FAULT_COMMAND);
}

Test(failinject, driver_calls)
{
	all_of(FAULT_CALL);
}

static void load_standins(void)
{
	standin_cuda();
	standin_gdr();
	fault_on_gpu = true;
}

TestSuite(failinject_cuda, .init = load_standins);

Test(failinject_cuda, allocations)
{
	all_of(FAULT_ALLOC);
}

Test(failinject_cuda, firmware_commands)
{
	all_of(FAULT_COMMAND);
}

Test(failinject_cuda, driver_calls)
{
	all_of(FAULT_CALL);
}

Test(failinject_cuda, cuda_calls)
{
	all_of(FAULT_CUDA);
}

Test(failinject_cuda, cuda_calls_with_queues_on_the_host)
{
	setenv("GDAKI_QUEUE_MEM", "cpu_gpu", 1);
	fault_uncounted = true;
	all_of(FAULT_CUDA);
}

Test(failinject_cuda, cuda_calls_with_registers_as_device_memory)
{
	setenv("STANDIN_CUDA_IOMEM", "1", 1);
	all_of(FAULT_CUDA);
}

Test(failinject_cuda, gdrcopy_calls)
{
	all_of(FAULT_GDR);
}
