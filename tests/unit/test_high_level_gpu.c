/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf */
/*
 * High-level QPs on the stand-in CUDA GPU, whose memory CPU threads can access: how
 * queue memory is registered and what the log reports, puts in every mode, memory
 * per QP, and arrays of device structs.
 */
#include "../lib/e2e.h"

#include <string.h>

#include "../../qp/export/export.h"
#include "device/gdk/state.h"
#include "../lib/capture.h"
#include "../lib/standin.h"

#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name
#define REG(name)  DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_##name
#define LEN	   5000u
#define PUTS	   200 /* more than the 64 slots of the ring, so that it wraps */

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_init_attr_hl attr;

static void open_gpu(void)
{
	setenv("DOCA_GPUNETIO_LOG", "6", 1); /* INFO */
	setenv("STANDIN_CUDA_IOMEM", "1", 0);
	standin_cuda();
	e2e_open_on(&nic, "8a:00.0");
	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.sq_nwqe = 64;
}

static void close_gpu(void)
{
	e2e_close(&nic); /* fails if an object is left */
	cr_assert_eq(standin_cuda_live(), 0);
}

static struct doca_gpu_verbs_qp_hl *create(void)
{
	struct doca_gpu_verbs_qp_hl *hl = NULL;

	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	return hl;
}

/* ---- placement of the queues ---- */

static void expect_queues(struct doca_gpu_verbs_qp_hl *hl, bool on_host)
{
	cr_expect_eq(gdk_gpu_host_mem(nic.gpu, hl->qp_umem_gpu_ptr) != NULL, on_host);
	cr_expect_eq(gdk_gpu_host_mem(nic.gpu, hl->cq_sq_umem_gpu_ptr) != NULL, on_host);
	cr_expect_eq(gdk_gpu_host_mem(nic.gpu, hl->qp_umem_dbr_gpu_ptr) != NULL, on_host);
	/* threads that wait load the state block often; the NIC never does */
	cr_expect_eq(gdk_gpu_host_mem(nic.gpu, gdk_to_export(hl->qp_gverbs)->q.state), NULL);
	cr_expect_eq(hl->qp_gverbs->qp_cpu->sq_wqe_daddr, hl->qp_umem_gpu_ptr);
}

Test(high_level_gpu, queues_are_in_host_memory_if_the_flag_requests_it)
{
	struct doca_gpu_verbs_qp_group_hl *group;
	struct doca_gpu_verbs_qp_hl *hl;

	open_gpu();
	for (uint32_t flags = 0; flags <= GDK_QP_HL_QUEUES_ON_HOST; flags++) {
		cr_assert_eq(gdk_verbs_create_qp_hl(&attr, flags, &hl), DOCA_SUCCESS);
		expect_queues(hl, flags);
		cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
		cr_assert_eq(gdk_verbs_create_qp_group_hl(&attr, flags, &group), DOCA_SUCCESS);
		expect_queues(&group->qp_main, flags);
		expect_queues(&group->qp_companion, flags);
		cr_expect_eq(doca_gpu_verbs_destroy_qp_group_hl(group), DOCA_SUCCESS);
	}
	close_gpu();
}

/* Programs such as NVIDIA's examples leave the struct uninitialized and set its named members. */
static void create_with_reserved(const uint8_t *bytes)
{
	struct doca_gpu_verbs_qp_init_attr_hl a;
	struct doca_gpu_verbs_qp_group_hl *group;
	struct doca_gpu_verbs_qp_hl *hl;

	memcpy(&a, bytes, sizeof(a));
	a.gpu_dev = nic.gpu;
	a.net_dev = nic.dev;
	a.ibpd = nic.pd;
	a.sq_nwqe = 64;
	a.nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO;
	a.mreg_type = REG(DEFAULT);
	a.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR;
	a.cq_collapsed = false;
	a.ordering_semantic = DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&a, &hl), DOCA_SUCCESS);
	expect_queues(hl, false);
	cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&a, &group), DOCA_SUCCESS);
	expect_queues(&group->qp_main, false);
	expect_queues(&group->qp_companion, false);
	cr_expect_eq(doca_gpu_verbs_destroy_qp_group_hl(group), DOCA_SUCCESS);
}

Test(high_level_gpu, reserved_bytes_have_no_effect)
{
	static const uint8_t fills[] = { 0, 1, 2, 0x5a, 0x80, 0xff };
	uint8_t bytes[sizeof(struct doca_gpu_verbs_qp_init_attr_hl)];
	uint32_t seed = 1;

	open_gpu();
	for (size_t i = 0; i < sizeof(fills); i++) {
		memset(bytes, fills[i], sizeof(bytes));
		create_with_reserved(bytes);
	}
	for (int i = 0; i < 20; i++) {
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
		create_with_reserved(bytes);
	}
	close_gpu();
}

/* ---- registration ---- */

static void try_registration(const char *has_dmabuf, enum doca_gpu_verbs_mem_reg_type asked,
			     doca_error_t want, const char *reason)
{
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	const char *log;
	doca_error_t err;

	setenv("STANDIN_CUDA_DMABUF", has_dmabuf, 1);
	open_gpu();
	attr.mreg_type = asked;
	capture_begin();
	err = doca_gpu_verbs_create_qp_hl(&attr, &hl);
	log = capture_end();
	cr_expect_eq(err, want, "dmabuf %s, type %d: error %d", has_dmabuf, asked, err);
	cr_expect(strstr(log, reason), "dmabuf %s, type %d, log: %s", has_dmabuf, asked, log);
	cr_expect_eq(!strstr(log, "dmabuf: not requested"), asked != REG(CUDA_PEERMEM),
		     "with peer memory requested, only that must be tried: %s", log);
	if (err == DOCA_SUCCESS)
		cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	close_gpu();
}

Test(high_level_gpu, memory_is_registered_as_requested_and_logged)
{
	try_registration("1", REG(DEFAULT), DOCA_SUCCESS, "through dmabuf");
	try_registration("1", REG(CUDA_DMABUF), DOCA_SUCCESS, "through dmabuf");
	try_registration("1", REG(CUDA_PEERMEM), DOCA_SUCCESS, "through peer memory");
	try_registration(
		"0", REG(DEFAULT), DOCA_SUCCESS,
		"through peer memory; dmabuf: the GPU cannot export a dmabuf of the memory");
	try_registration("0", REG(CUDA_DMABUF), DOCA_ERROR_NOT_SUPPORTED,
			 "the driver does not support dmabuf export");
	try_registration("0", REG(CUDA_PEERMEM), DOCA_SUCCESS, "through peer memory");
}

/* ---- data ---- */

static void connect_both(struct e2e_qp *a, struct e2e_qp *b)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	cr_assert_eq(e2e_connect(&nic, a->hl->qp, &nic.gid, b->qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, b->hl->qp, &nic.gid, a->qpn, path), DOCA_SUCCESS);
}

/* Allocates a payload buffer in GPU memory. */
static void gpu_buf(struct e2e_buf *buf, int access)
{
	void *mem, *cpu;

	cr_assert_eq(doca_gpu_mem_alloc(nic.gpu, LEN, 4096, DOCA_GPU_MEM_TYPE_GPU, &mem, &cpu),
		     DOCA_SUCCESS);
	memset(mem, 0, LEN);
	e2e_buf_use(&nic, buf, mem, LEN, access);
}

static void drop_buf(struct e2e_buf *buf)
{
	E2E_REQUIRE(!ibv_dereg_mr(buf->mr));
	cr_assert_eq(doca_gpu_mem_free(nic.gpu, buf->mem), DOCA_SUCCESS);
}

static void put_and_compare(struct e2e_pair *p)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	for (uint32_t n = 0; n < PUTS; n++) {
		for (size_t i = 0; i < 64; i++)
			p->src.mem[i] = e2e_pattern(i, n);
		cr_assert_eq(e2e_put(p, 0, n % 2 ? LEN : 64, &ticket), 0);
		cr_assert_eq(e2e_wait(&p->tx, ticket), 0, "put %u failed", n);
		cr_assert(!memcmp(p->dst.mem, p->src.mem, LEN), "put %u: wrong data", n);
	}
}

/* Returns the producer index in the DBREC. */
static uint32_t record_of(const struct e2e_qp *qp)
{
	return be32toh(*qp->hl->qp_gverbs->sq_dbrec);
}

static void try_mode(enum doca_gpu_dev_verbs_nic_handler handler,
		     enum doca_gpu_verbs_send_dbr_mode_ext mode,
		     enum doca_gpu_dev_verbs_nic_handler chosen)
{
	struct e2e_pair p;
	bool out;

	open_gpu();
	attr.nic_handler = E2E_DB;
	e2e_qp_adopt(&nic, &p.rx, create());
	attr.nic_handler = handler;
	attr.send_dbr_mode_ext = mode;
	e2e_qp_adopt(&nic, &p.tx, create());
	cr_expect_eq(p.tx.hl->nic_handler, chosen);
	cr_expect_eq(p.tx.hl->send_dbr_mode_ext, mode);
	connect_both(&p.tx, &p.rx);
	gpu_buf(&p.src, IBV_ACCESS_LOCAL_WRITE);
	gpu_buf(&p.dst, E2E_REMOTE);
	if (p.tx.hl->qp_gverbs->cpu_proxy)
		e2e_proxy_begin(&p.tx);
	put_and_compare(&p);
	e2e_proxy_end(&p.tx);
	/* the proxy thread may have stopped before it wrote the DBREC for the last puts */
	if (p.tx.hl->qp_gverbs->cpu_proxy) {
		doca_gpu_verbs_cpu_proxy_progress(p.tx.hl->qp_gverbs, &out);
		cr_expect_eq(record_of(&p.tx), PUTS, "handler %d mode %d", handler, mode);
	}
	e2e_qp_close(&p.tx);
	e2e_qp_close(&p.rx);
	drop_buf(&p.src);
	drop_buf(&p.dst);
	close_gpu();
}

Test(high_level_gpu, puts_work_in_every_mode, .timeout = 60)
{
	standin_gdr();
	try_mode(E2E_AUTO, MODE(VALID_DBR), E2E_DB);
	try_mode(E2E_DB, MODE(VALID_DBR), E2E_DB);
	try_mode(E2E_BF, MODE(VALID_DBR), E2E_BF);
	try_mode(E2E_PROXY, MODE(VALID_DBR), E2E_PROXY);
	try_mode(E2E_AUTO, MODE(NO_DBR_HW), E2E_NO_DBR);
	try_mode(E2E_DB, MODE(NO_DBR_HW), E2E_NO_DBR);
	try_mode(E2E_AUTO, MODE(NO_DBR_SW_EMULATED), E2E_NO_DBR);
	cr_assert_eq(standin_gdr_live(), 0);
}

/* ---- what is refused, and the reason ---- */

static void try_refused(enum doca_gpu_dev_verbs_nic_handler handler,
			enum doca_gpu_verbs_send_dbr_mode_ext mode, const char *reason)
{
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	const char *log;

	open_gpu();
	attr.nic_handler = handler;
	attr.send_dbr_mode_ext = mode;
	capture_begin();
	cr_expect_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_ERROR_NOT_SUPPORTED);
	log = capture_end();
	cr_expect(strstr(log, reason), "handler %d, mode %d, log: %s", handler, mode, log);
	cr_expect_null(hl);
	close_gpu();
}

Test(high_level_gpu, emulation_needs_a_counter_that_the_cpu_can_read)
{
	setenv("GDRCOPY_PATH_L", "/nowhere/libgdrapi.so", 1);
	try_refused(E2E_AUTO, MODE(NO_DBR_SW_EMULATED),
		    "NO_DBR_SW_EMULATED needs a counter that the CPU can read");
}

static void expect_auto(const char *iomem, enum doca_gpu_dev_verbs_nic_handler chosen,
			unsigned int candidate, const char *reason)
{
	struct doca_gpu_verbs_qp_hl *hl;
	struct gdk_handler_report r;

	setenv("STANDIN_CUDA_IOMEM", iomem, 1);
	open_gpu();
	hl = create();
	cr_expect_eq(hl->nic_handler, chosen);
	cr_expect_eq(gdk_verbs_qp_get_handler_report(hl->qp_gverbs, &r), DOCA_SUCCESS);
	cr_expect_eq(r.chosen, chosen);
	cr_expect(strstr(r.candidates[candidate].reason, reason), "%s",
		  r.candidates[candidate].reason);
	cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	close_gpu();
}

Test(high_level_gpu, auto_picks_the_proxy_if_no_register_can_be_mapped)
{
	expect_auto("1", E2E_DB, 1, "mapped as device memory");
	/* as device memory through softnic-run's wrapper, as ordinary memory without the wrapper */
	expect_auto("0", E2E_DB, 1, "mapped as");
	expect_auto("3", E2E_PROXY, 1, "PeerMappingOverride");
	try_refused(E2E_DB, MODE(VALID_DBR), "PeerMappingOverride");
	try_refused(E2E_BF, MODE(VALID_DBR), "PeerMappingOverride");
	try_refused(E2E_NO_DBR, MODE(NO_DBR_HW), "PeerMappingOverride");
	try_refused(E2E_AUTO, MODE(NO_DBR_SW_EMULATED), "the CPU proxy writes the DBREC itself");
}

/* ---- memory ---- */

#define MANY 64

/*
 * All parts of a QP are in one unit of a slab. A QP must not take a page for
 * anything but its rings: at most 1536 bytes may be added to them. Each of the 7 slabs may take
 * another page, because CUDA does not align memory to pages.
 */
Test(high_level_gpu, qp_takes_little_memory_beyond_its_rings)
{
	const size_t rings = 2 * 128 * 64, small = 1536;
	struct doca_gpu_verbs_qp_hl *hl[MANY];
	struct doca_gpu_dev_verbs_qp *dev;
	long calls;

	open_gpu();
	attr.sq_nwqe = 128;
	for (int i = 0; i < MANY; i++) {
		hl[i] = create();
		cr_expect_eq(hl[i]->qp_umem, hl[i]->cq_sq_umem);
		cr_expect_eq(hl[i]->qp_umem, hl[i]->qp_umem_dbr);
		cr_assert_eq(doca_gpu_verbs_get_qp_dev(hl[i]->qp_gverbs, &dev), DOCA_SUCCESS);
		cr_expect(i || standin_cuda_bytes() <= rings + 2 * 4096,
			  "the first QP takes more than its rings and two pages");
	}
	cr_expect_leq(standin_cuda_bytes(), MANY * (rings + small) + 7 * 4096);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[i]), DOCA_SUCCESS);
	/* The next QP reuses registered memory, so it needs few calls of the driver. */
	calls = standin_cuda_calls();
	hl[0] = create();
	cr_expect_leq(standin_cuda_calls() - calls, 25);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[0]), DOCA_SUCCESS);
	close_gpu();
}

/* ---- arrays of device structs ---- */

typedef doca_error_t (*make_array)(struct doca_gpu_verbs_qp_hl **hl,
				   struct doca_gpu_dev_verbs_qp **array);
typedef doca_error_t (*drop_array)(struct doca_gpu_verbs_qp_hl **hl,
				   struct doca_gpu_dev_verbs_qp *array);

static struct doca_gpu_verbs_qp **exported(struct doca_gpu_verbs_qp_hl **hl)
{
	static struct doca_gpu_verbs_qp *qps[3];

	for (int i = 0; i < 3; i += 2)
		qps[i] = hl[i]->qp_gverbs;
	return qps;
}

static doca_error_t multi(struct doca_gpu_verbs_qp_hl **hl, struct doca_gpu_dev_verbs_qp **array)
{
	return doca_gpu_verbs_export_multi_qps_dev(nic.gpu, exported(hl), 3, array);
}

static doca_error_t unmulti(struct doca_gpu_verbs_qp_hl **hl, struct doca_gpu_dev_verbs_qp *array)
{
	return doca_gpu_verbs_unexport_multi_qps_dev(nic.gpu, exported(hl), 3, array);
}

static doca_error_t flat(struct doca_gpu_verbs_qp_hl **hl, struct doca_gpu_dev_verbs_qp **array)
{
	return doca_gpu_verbs_qp_flat_list_create_hl(hl, 3, array);
}

static doca_error_t unflat(struct doca_gpu_verbs_qp_hl **hl, struct doca_gpu_dev_verbs_qp *array)
{
	(void)hl;
	return doca_gpu_verbs_qp_flat_list_destroy_hl(array);
}

static void arrays_of(make_array make, drop_array drop)
{
	struct doca_gpu_dev_verbs_qp *array, *other = NULL, *one;
	struct doca_gpu_verbs_qp_hl *hl[3] = { create(), NULL, create() };
	struct doca_gpu_verbs_qp *qp = hl[2]->qp_gverbs;

	cr_assert_eq(make(hl, &array), DOCA_SUCCESS);
	for (int i = 0; i < 3; i += 2) {
		cr_expect(!memcmp(&array[i], hl[i]->qp_gverbs->qp_cpu, sizeof(*array)));
		cr_assert_eq(doca_gpu_verbs_get_qp_dev(hl[i]->qp_gverbs, &one), DOCA_SUCCESS);
		cr_expect_eq(one, &array[i]);
	}
	cr_expect_eq(array[1].sq_num, 0);
	cr_expect_eq(multi(hl, &other), DOCA_ERROR_IN_USE);
	cr_expect_eq(flat(hl, &other), DOCA_ERROR_IN_USE);
	array[2].sq_rsvd_index = 7; /* the index must be kept whenever the device struct moves */
	cr_assert_eq(drop(hl, array), DOCA_SUCCESS);
	cr_expect_eq(drop(hl, array), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(qp->qp_cpu->sq_rsvd_index, 7);
	cr_assert_eq(make(hl, &array), DOCA_SUCCESS, "a second array must be possible");
	cr_expect_eq(array[2].sq_rsvd_index, 7);
	array[2].sq_rsvd_index = 8;
	cr_assert_eq(drop(hl, array), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(qp, &one), DOCA_SUCCESS);
	cr_expect(!memcmp(one, qp->qp_cpu, sizeof(*one)),
		  "the QP must have its own device struct again");
	cr_expect_eq(one->sq_rsvd_index, 8);
	cr_assert_eq(make(hl, &other), DOCA_ERROR_IN_USE,
		     "a QP with its own device struct must be refused");
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[2]), DOCA_SUCCESS);
	hl[2] = create();
	cr_assert_eq(make(hl, &array), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[2]), DOCA_SUCCESS);
	cr_assert_eq(unflat(hl, array), DOCA_SUCCESS,
		     "must succeed although one of its QPs is destroyed");
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[0]), DOCA_SUCCESS);
}

Test(high_level_gpu, qp_has_one_device_struct_and_keeps_its_index)
{
	open_gpu();
	arrays_of(multi, unmulti);
	arrays_of(flat, unflat);
	close_gpu();
}
