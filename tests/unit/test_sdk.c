/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * With the DOCA SDK (a stand-in that records its calls): every public function that the
 * SDK has is forwarded to it, with the SDK's objects and the same arguments. The other
 * public functions make calls of other SDK functions, or none.
 */
#include "../../umem/slab.h"
#include "device/gdk/state.h"
#include "../standin/sdk_rig.h"
#include "common/doca_gpunetio_verbs_dev.h"

#define NAMES_MAX 256

static const char *covered[NAMES_MAX];
static size_t num_covered;

/* Expects the SDK's record to be this text, or to contain it if the text ends with "*". */
static void expect_record(const char *fn, const char *fmt, ...)
{
	char want[512];
	va_list args;
	size_t len;

	va_start(args, fmt);
	len = (size_t)vsnprintf(want, sizeof(want) - 2, fmt, args);
	va_end(args);
	if (num_covered < NAMES_MAX)
		covered[num_covered++] = fn;
	if (len && want[len - 1] == '*') {
		want[len - 1] = '\0';
		cr_expect(strstr(sdk_record(), want), "%s: \"%s\" is not in the record:\n%s", fn,
			  want, sdk_record());
		return;
	}
	if (len)
		strcat(want, "\n");
	cr_expect_str_eq(sdk_record(), want, "%s: expected record:\n%sgot:\n%s", fn, want,
			 sdk_record());
}

/*
 * Calls fn, which must return value, and checks the SDK's record. The macros below
 * are shorthands: a call that returns DOCA_SUCCESS (FORWARDS); a setter with a
 * number (SETS) or an object (SETS_OBJECT); a function of one object (FORWARDS_OBJECT); a
 * function that makes no call of the SDK (MAKES_NO_CALL).
 */
#define RETURNS(value, fn, args, ...) \
	do { \
		sdk_clear(); \
		cr_expect(fn args == (value), "%s did not return %s", #fn, #value); \
		expect_record(#fn, __VA_ARGS__); \
	} while (0)
#define FORWARDS(fn, args, ...) RETURNS(DOCA_SUCCESS, fn, args, __VA_ARGS__)
/* A setter of a number; the SDK's function has the same name. */
#define SETS(fn, attr, kind, v) FORWARDS(fn, (attr, v), #fn "(" kind ", %d)", (int)(v))

#define SETS_OBJECT(fn, attr, kind, obj, name) FORWARDS(fn, (attr, obj), #fn "(" kind ", " name ")")
#define FORWARDS_OBJECT(fn, obj, kind)	       FORWARDS(fn, (obj), #fn "(" kind ")")
#define MAKES_NO_CALL(fn, args)		       FORWARDS(fn, args, "%s", "")

/* ---- one object of each kind ---- */

static struct nic nic;
static doca_gpu_t *gpu;
static doca_verbs_umem_t *umem;
static doca_verbs_uar_t *uar;
static doca_verbs_cq_t *cq;
static doca_verbs_qp_t *qp;
static struct doca_verbs_srq *srq;
static doca_verbs_ah_attr_t *ah;
static char page[8192] __attribute__((aligned(4096)));

static void try_gpu(void)
{
	void *mem = NULL, *cpu = NULL;
	int fd;

	FORWARDS(doca_gpu_create, (BDF, &gpu), "doca_gpu_create(" BDF ")");
	FORWARDS(doca_gpu_mem_alloc, (gpu, 300, 0, DOCA_GPU_MEM_TYPE_CPU_GPU, &mem, &cpu),
		 "doca_gpu_mem_alloc(gpu, 300, 0, 2, cpu)");
	cr_expect(mem && cpu == mem);
	FORWARDS(doca_gpu_mem_free, (gpu, mem), "doca_gpu_mem_free(gpu, %p)", mem);
	FORWARDS(doca_gpu_mem_alloc, (gpu, 4096, 512, DOCA_GPU_MEM_TYPE_GPU, &mem, NULL),
		 "doca_gpu_mem_alloc(gpu, 4096, 512, 0, NULL)");
	FORWARDS(doca_gpu_get_dmabuf_fd, (gpu, mem, 4096, &fd), "doca_gpu_dmabuf_fd(gpu, %p, 4096)",
		 mem);
	FORWARDS(doca_verbs_umem_create, (nic.dev, gpu, mem, 4096, 1, fd, 0, &umem),
		 "doca_umem_gpu_create(gpu, dev, %p, 4096, 1)", mem);
	close(fd);
	FORWARDS(doca_verbs_umem_destroy, (umem), "doca_umem_destroy(umem)");
	cr_expect_eq(doca_gpu_mem_free(gpu, mem), DOCA_SUCCESS);
}

static void try_dev(void)
{
	nic.ctx = nic_open_context();
	nic.pd = ibv_alloc_pd(nic.ctx);
	sdk_clear();
	cr_assert_eq(doca_verbs_dev_open(nic.pd, &nic.dev), DOCA_SUCCESS);
	expect_record("doca_verbs_dev_open",
		      "doca_rdma_bridge_open_dev_from_pd(%p)\ndoca_rdma_bridge_get_dev_pd(dev)\n"
		      "doca_verbs_bridge_verbs_pd_import(%p)\n"
		      "doca_verbs_bridge_verbs_context_import(%p, 0)",
		      (void *)nic.pd, (void *)nic.pd, (void *)nic.ctx);
}

#define ATTR_IS(name, value) \
	RETURNS(value, doca_verbs_device_attr_get_##name, (attr), \
		"doca_verbs_device_attr_get_" #name "(device_attr)")

static void try_device_attr(void)
{
	struct doca_verbs_device_attr *attr;

	FORWARDS(doca_verbs_query_device, (nic.ctx, &attr),
		 "doca_verbs_bridge_verbs_context_import(%p, 0)\n"
		 "doca_verbs_query_device(context)\ndoca_verbs_context_destroy(context)",
		 (void *)nic.ctx);
	ATTR_IS(max_qp, 101);
	ATTR_IS(max_qp_wr, 102);
	ATTR_IS(max_sge, 103);
	ATTR_IS(max_cq, 104);
	ATTR_IS(max_cqe, 105);
	ATTR_IS(max_mr, 106);
	ATTR_IS(max_pd, 107);
	ATTR_IS(max_ah, 108);
	ATTR_IS(max_srq, 109);
	ATTR_IS(max_srq_wr, 110);
	ATTR_IS(max_srq_sge, 111);
	ATTR_IS(max_pkeys, 112);
	ATTR_IS(max_qp_rd_atom, 113);
	ATTR_IS(max_qp_init_rd_atom, 114);
	ATTR_IS(send_dbr_mode_no_dbr_ext, 1);
	FORWARDS(doca_verbs_device_attr_get_is_qp_type_supported, (attr, 2),
		 "doca_verbs_device_attr_get_is_qp_type_supported(device_attr, 2)");
	FORWARDS(doca_verbs_device_attr_get_is_cqe_inline_supported, (attr),
		 "doca_verbs_device_attr_get_is_cqe_inline_supported(device_attr)");
	FORWARDS_OBJECT(doca_verbs_device_attr_free, attr, "device_attr");
}

static void try_umem(void)
{
	void *addr = NULL;
	size_t size = 0;
	uint32_t id = 0;

	FORWARDS(doca_verbs_umem_create, (nic.dev, gpu, page, 8192, 3, NO_FD, 0, &umem),
		 "doca_umem_create(dev, %p, 8192, 3)", (void *)page);
	FORWARDS(doca_verbs_umem_get_id, (umem, &id), "doca_umem_get_id(umem)");
	FORWARDS(doca_verbs_umem_get_size, (umem, &size), "doca_umem_get_size(umem)");
	FORWARDS(doca_verbs_umem_get_address, (umem, &addr), "doca_umem_get_address(umem)");
	cr_expect(id == 0x1234 && size == 8192 && addr == page);
}

static void try_uar(void)
{
	void *reg = NULL, *dbr_less = NULL;
	uint32_t id = 0;

	FORWARDS(doca_verbs_uar_create, (nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &uar),
		 "doca_uar_create(dev, 1)\ndoca_uar_reg_addr_get(uar)");
	FORWARDS(doca_verbs_uar_id_get, (uar, &id), "doca_uar_id_get(uar)");
	FORWARDS(doca_verbs_uar_reg_addr_get, (uar, &reg), "doca_uar_reg_addr_get(uar)");
	FORWARDS(doca_verbs_uar_dbr_less_addr_get, (uar, &dbr_less), "doca_uar_reg_addr_get(uar)");
	cr_expect(id == 0x77 && reg && reg == dbr_less);
}

static void try_cq(void)
{
	uint32_t *ci = NULL, *arm = NULL, num = 0, cqn = 0;
	doca_verbs_cq_attr_t *attr;
	uint64_t *reg = NULL;
	void *ring = NULL;
	uint8_t size = 0;

	FORWARDS(doca_verbs_cq_attr_create, (&attr), "doca_verbs_cq_attr_create()");
	SETS(doca_verbs_cq_attr_set_cq_size, attr, "cq_attr", 50);
	FORWARDS(doca_verbs_cq_attr_set_cq_context, (attr, page),
		 "doca_verbs_cq_attr_set_cq_context(cq_attr, %p)", (void *)page);
	SETS(doca_verbs_cq_attr_set_cq_overrun, attr, "cq_attr", DOCA_VERBS_CQ_ENABLE_OVERRUN);
	SETS(doca_verbs_cq_attr_set_cq_collapsed, attr, "cq_attr", 7);
	FORWARDS(doca_verbs_cq_attr_set_external_umem, (attr, umem, 64),
		 "doca_verbs_cq_attr_set_external_umem(cq_attr, umem, 64)\n"
		 "doca_verbs_cq_attr_set_external_datapath_en(cq_attr, 1)");
	SETS_OBJECT(doca_verbs_cq_attr_set_external_uar, attr, "cq_attr", uar, "uar");
	FORWARDS(doca_verbs_cq_create, (nic.dev, attr, &cq),
		 "doca_verbs_cq_create(context, cq_attr)\n*");
	FORWARDS_OBJECT(doca_verbs_cq_attr_destroy, attr, "cq_attr");
	FORWARDS(doca_verbs_cq_get_wq, (cq, &ring, &num, &size), "doca_verbs_cq_get_wq(cq)");
	FORWARDS(doca_verbs_cq_get_dbr_addr, (cq, &reg, &ci, &arm),
		 "doca_verbs_cq_get_dbr_addr(cq)");
	FORWARDS(doca_verbs_cq_get_cqn, (cq, &cqn), "doca_verbs_cq_get_cqn(cq)");
	cr_expect(ring && num == 64 && size == 64 && reg && ci && arm == ci + 1 && cqn == 0x5c);
	/* The data path must see unused entries as invalid. */
	cr_expect_eq((uint8_t)page[64 + 63], 0xf1);
	cr_expect_eq((uint8_t)page[64 * 64 + 63], 0xf1);
	cr_expect_eq(page[65 * 64 + 63], 0);
}

#define PATH(name, v, kept) \
	do { \
		SETS(doca_verbs_ah_attr_set_##name, ah, "ah", v); \
		RETURNS(kept, doca_verbs_ah_get_##name, (ah), \
			"doca_verbs_ah_attr_get_" #name "(ah)"); \
	} while (0)

static void try_ah(void)
{
	struct doca_verbs_gid gid = { .raw = { 1, [15] = 16 } };

	FORWARDS(doca_verbs_ah_attr_create, (nic.dev, &ah), "doca_verbs_ah_attr_create(context)");
	FORWARDS(doca_verbs_ah_attr_set_gid, (ah, gid), "doca_verbs_ah_attr_set_gid(ah, 1..16)");
	sdk_clear();
	gid = doca_verbs_ah_get_gid(ah);
	expect_record("doca_verbs_ah_get_gid", "doca_verbs_ah_attr_get_gid(ah)");
	cr_expect(gid.raw[0] == 9 && gid.raw[15] == 8);
	PATH(addr_type, DOCA_VERBS_ADDR_TYPE_IPv6, DOCA_VERBS_ADDR_TYPE_IB_GRH);
	PATH(dlid, 70000, 201);
	PATH(sl, 3, 202);
	PATH(sgid_index, 4, 203);
	PATH(static_rate, 200, 204);
	PATH(hop_limit, 6, 205);
	PATH(traffic_class, 7, 206);
}

static void try_srq(void)
{
	struct doca_verbs_srq_init_attr *attr;
	uint32_t num = 0, size = 0;
	doca_verbs_umem_t *got;
	uint64_t offset;
	void *buf = NULL;

	FORWARDS(doca_verbs_srq_init_attr_create, (&attr), "doca_verbs_srq_init_attr_create()");
	SETS(doca_verbs_srq_init_attr_set_srq_wr, attr, "srq_init_attr", 31);
	RETURNS(301, doca_verbs_srq_init_attr_get_srq_wr, (attr),
		"doca_verbs_srq_init_attr_get_srq_wr(srq_init_attr)");
	SETS(doca_verbs_srq_init_attr_set_receive_max_sges, attr, "srq_init_attr", 2);
	RETURNS(302, doca_verbs_srq_init_attr_get_receive_max_sges, (attr),
		"doca_verbs_srq_init_attr_get_receive_max_sges(srq_init_attr)");
	SETS(doca_verbs_srq_init_attr_set_type, attr, "srq_init_attr",
	     DOCA_VERBS_SRQ_TYPE_LINKED_LIST);
	RETURNS(DOCA_VERBS_SRQ_TYPE_CONTIGUOUS, doca_verbs_srq_init_attr_get_type, (attr),
		"doca_verbs_srq_init_attr_get_type(srq_init_attr)");
	FORWARDS(doca_verbs_srq_init_attr_set_pd, (attr, nic.pd),
		 "doca_verbs_bridge_verbs_pd_import(%p)\n"
		 "doca_verbs_srq_init_attr_set_pd(srq_init_attr, pd)",
		 (void *)nic.pd);
	RETURNS(nic.pd, doca_verbs_srq_init_attr_get_pd, (attr), "%s", "");
	FORWARDS(doca_verbs_srq_init_attr_set_external_umem, (attr, umem, 128),
		 "doca_verbs_srq_init_attr_set_external_umem(srq_init_attr, umem, 128)");
	MAKES_NO_CALL(doca_verbs_srq_init_attr_get_external_umem, (attr, &got, &offset));
	cr_expect(got == umem && offset == 128);
	FORWARDS(doca_verbs_srq_create, (nic.ctx, attr, &srq),
		 "doca_verbs_bridge_verbs_context_import(%p, 0)\n"
		 "doca_verbs_srq_create(context, srq_init_attr)",
		 (void *)nic.ctx);
	RETURNS(303, doca_verbs_srq_get_srqn, (srq), "doca_verbs_srq_get_srqn(srq)");
	sdk_clear();
	doca_verbs_srq_get_wq(srq, &buf, &num, &size);
	expect_record("doca_verbs_srq_get_wq", "doca_verbs_srq_get_wq(srq)");
	cr_expect(buf && num == 16 && size == 64);
	sdk_clear();
	cr_expect(doca_verbs_srq_get_dbr_addr(srq));
	expect_record("doca_verbs_srq_get_dbr_addr", "doca_verbs_srq_get_dbr_addr(srq)");
	FORWARDS(doca_verbs_srq_init_attr_destroy, (attr),
		 "doca_verbs_srq_init_attr_destroy(srq_init_attr)\ndoca_verbs_pd_destroy(pd)");
}

/* ---- queue pairs ---- */

#define I "qp_init_attr" /* kind of object in the record */

static void set_init(doca_verbs_qp_init_attr_t *a)
{
	SETS_OBJECT(doca_verbs_qp_init_attr_set_pd, a, I, nic.dev, "pd");
	SETS_OBJECT(doca_verbs_qp_init_attr_set_send_cq, a, I, cq, "cq");
	SETS_OBJECT(doca_verbs_qp_init_attr_set_receive_cq, a, I, cq, "cq");
	SETS(doca_verbs_qp_init_attr_set_sq_sig_all, a, I, 5);
	SETS(doca_verbs_qp_init_attr_set_sq_wr, a, I, 61);
	SETS(doca_verbs_qp_init_attr_set_rq_wr, a, I, 62);
	SETS(doca_verbs_qp_init_attr_set_send_max_sges, a, I, 63);
	SETS(doca_verbs_qp_init_attr_set_receive_max_sges, a, I, 64);
	SETS(doca_verbs_qp_init_attr_set_max_inline_data, a, I, 65);
	SETS(doca_verbs_qp_init_attr_set_user_index, a, I, 1 << 24);
	SETS(doca_verbs_qp_init_attr_set_qp_type, a, I, 3);
	FORWARDS(doca_verbs_qp_init_attr_set_external_umem, (a, umem, 4096),
		 "doca_verbs_qp_init_attr_set_external_umem(" I ", umem, 4096)\n"
		 "doca_verbs_qp_init_attr_set_external_datapath_en(" I ", 1)");
	FORWARDS(doca_verbs_qp_init_attr_set_external_umem_dbr, (a, umem, 128),
		 "doca_verbs_qp_init_attr_set_external_dbr_umem(" I ", umem, 128)");
	SETS_OBJECT(doca_verbs_qp_init_attr_set_external_uar, a, I, uar, "uar");
	FORWARDS(doca_verbs_qp_init_attr_set_qp_context, (a, page),
		 "doca_verbs_qp_init_attr_set_qp_context(" I ", %p)", (void *)page);
	SETS_OBJECT(doca_verbs_qp_init_attr_set_srq, a, I, srq, "srq");
	SETS(doca_verbs_qp_init_attr_set_core_direct_master, a, I, 2);
	SETS(doca_verbs_qp_init_attr_set_ordering_semantic, a, I, 1);
	SETS(doca_verbs_qp_init_attr_set_send_dbr_mode, a, I, 0);
}

static void try_init(doca_verbs_qp_init_attr_t **init)
{
	enum doca_verbs_qp_ordering_semantic order;
	enum doca_verbs_qp_send_dbr_mode mode;
	bool emulate;

	FORWARDS(doca_verbs_qp_init_attr_create, (init), "doca_verbs_qp_init_attr_create()");
	set_init(*init);
	FORWARDS(doca_verbs_qp_init_attr_get_send_dbr_mode, (*init, &mode),
		 "doca_verbs_qp_init_attr_get_send_dbr_mode(" I ")");
	FORWARDS(doca_verbs_qp_init_attr_get_ordering_semantic, (*init, &order),
		 "doca_verbs_qp_init_attr_get_ordering_semantic(" I ")");
	cr_expect(mode == DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT &&
		  order == DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_ALL);
	MAKES_NO_CALL(doca_verbs_qp_init_attr_set_emulate_no_dbr_ext, (*init, false));
	MAKES_NO_CALL(doca_verbs_qp_init_attr_get_emulate_no_dbr_ext, (*init, &emulate));
}

#define A "qp_attr" /* kind of object in the record */

/* The SDK's query calls its own get_qpn, not that of gdaki or of libdoca_other.so. */
#define AND_INSIDE "\ndoca_verbs_qp_get_qpn(qp)"

static void try_attr(doca_verbs_qp_attr_t **made)
{
	enum doca_verbs_qp_state state;
	doca_verbs_qp_attr_t *a;

	FORWARDS(doca_verbs_qp_attr_create, (made), "doca_verbs_qp_attr_create()");
	a = *made;
	SETS(doca_verbs_qp_attr_set_next_state, a, A, DOCA_VERBS_QP_STATE_INIT);
	SETS(doca_verbs_qp_attr_set_current_state, a, A, DOCA_VERBS_QP_STATE_ERR);
	RETURNS(DOCA_VERBS_QP_STATE_RTR, doca_verbs_qp_attr_get_next_state, (a),
		"doca_verbs_qp_attr_get_next_state(" A ")");
	FORWARDS(doca_verbs_qp_attr_get_current_state, (a, &state),
		 "doca_verbs_qp_attr_get_current_state(" A ")");
	cr_expect_eq(state, DOCA_VERBS_QP_STATE_RTS);
	SETS(doca_verbs_qp_attr_set_path_mtu, a, A, DOCA_VERBS_MTU_SIZE_RAW_ETHERNET);
	SETS(doca_verbs_qp_attr_set_rq_psn, a, A, 71);
	SETS(doca_verbs_qp_attr_set_sq_psn, a, A, 72);
	SETS(doca_verbs_qp_attr_set_dest_qp_num, a, A, 73);
	SETS(doca_verbs_qp_attr_set_allow_remote_write, a, A, 2);
	SETS(doca_verbs_qp_attr_set_allow_remote_read, a, A, 3);
	SETS(doca_verbs_qp_attr_set_atomic_mode, a, A, DOCA_VERBS_QP_ATOMIC_MODE_ONLY_8BYTES);
	SETS_OBJECT(doca_verbs_qp_attr_set_ah_attr, a, A, ah, "ah");
	SETS(doca_verbs_qp_attr_set_pkey_index, a, A, 301);
	SETS(doca_verbs_qp_attr_set_port_num, a, A, 302);
	SETS(doca_verbs_qp_attr_set_ack_timeout, a, A, 303);
	SETS(doca_verbs_qp_attr_set_retry_cnt, a, A, 304);
	SETS(doca_verbs_qp_attr_set_rnr_retry, a, A, 305);
	SETS(doca_verbs_qp_attr_set_min_rnr_timer, a, A, 306);
	SETS(doca_verbs_qp_attr_set_max_rd_atomic, a, A, 82);
	SETS(doca_verbs_qp_attr_set_max_dest_rd_atomic, a, A, 83);
}

static void try_qp_getters(void)
{
	uint32_t sq_num = 0, rq_num = 1, rwqe = 0, qpn = 0;
	void *sq = NULL, *rq = NULL, *dbrec = NULL, *reg = NULL;

	FORWARDS(doca_verbs_qp_get_wq, (qp, &sq, &sq_num, &rq, &rq_num, &rwqe),
		 "doca_verbs_qp_get_wq(qp)");
	FORWARDS(doca_verbs_qp_get_dbr_addr, (qp, &dbrec), "doca_verbs_qp_get_dbr_addr(qp)");
	FORWARDS(doca_verbs_qp_get_uar_addr, (qp, &reg), "doca_verbs_qp_get_uar_addr(qp)");
	FORWARDS(doca_verbs_qp_get_qpn, (qp, &qpn), "doca_verbs_qp_get_qpn(qp)");
	cr_expect(sq && rq && sq != rq && sq_num == 64 && rq_num == 0 && rwqe == 16);
	cr_expect(dbrec && reg && qpn == 0x9a);
	RETURNS(false, doca_verbs_qp_get_emulate_no_dbr_ext, (qp), "%s", "");
}

static void try_qp(void)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	int mask = 0;

	try_init(&init);
	try_attr(&attr);
	FORWARDS(doca_verbs_qp_create, (nic.dev, init, &qp),
		 "doca_verbs_qp_create(context, " I ")\n*");
	try_qp_getters();
	FORWARDS(doca_verbs_qp_modify, (qp, attr, 0x123), "doca_verbs_qp_modify(qp, " A ", 291)");
	FORWARDS(doca_verbs_qp_query, (qp, attr, init, &mask),
		 "doca_verbs_qp_query(qp, " A ", " I ")" AND_INSIDE);
	cr_expect_eq(mask, 0x40);
	FORWARDS_OBJECT(doca_verbs_qp_attr_destroy, attr, A);
	FORWARDS_OBJECT(doca_verbs_qp_init_attr_destroy, init, I);
}

/* ---- functions that the SDK lacks ---- */

static void *mem_of(struct doca_gpu_dev_verbs_qp *array)
{
	return (char *)array - GDK_DEV_SKEW;
}

static void try_exported(struct doca_gpu_verbs_qp *exported)
{
	struct doca_gpu_verbs_qp_error_info info;
	struct doca_gpu_dev_verbs_qp *dev, *devs;
	doca_gpu_verbs_service_t service;
	bool progressed;

	FORWARDS(doca_gpu_verbs_query_last_error, (exported, &info),
		 "doca_verbs_qp_query(qp, qp_attr, qp_init_attr)\n*");
	cr_expect_not(info.has_error);
	MAKES_NO_CALL(doca_gpu_verbs_reset_tracking_and_memory, (exported));
	MAKES_NO_CALL(doca_gpu_verbs_cpu_proxy_progress, (exported, &progressed));
	MAKES_NO_CALL(doca_gpu_verbs_create_service, (&service));
	MAKES_NO_CALL(doca_gpu_verbs_service_monitor_qp, (service, exported));
	MAKES_NO_CALL(doca_gpu_verbs_destroy_service, (service));
	FORWARDS(doca_gpu_verbs_export_multi_qps_dev, (gpu, &exported, 1, &devs),
		 "doca_gpu_mem_alloc(gpu, *");
	FORWARDS(doca_gpu_verbs_unexport_multi_qps_dev, (gpu, &exported, 1, devs),
		 "doca_gpu_mem_free(gpu, %p)*", mem_of(devs));
	MAKES_NO_CALL(doca_gpu_verbs_get_qp_dev, (exported, &dev));
}

static void try_high_level(void)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = gpu,
		.net_dev = nic.dev,
		.sq_nwqe = 64,
		.nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
	};
	struct doca_gpu_verbs_qp_group_hl *group;
	struct doca_gpu_dev_verbs_qp *flat;
	struct doca_gpu_verbs_qp *again;
	struct doca_gpu_verbs_qp_hl *hl;

	FORWARDS(doca_gpu_verbs_create_qp_hl, (&attr, &hl),
		 "doca_verbs_qp_create(context, qp_init_attr)\n*");
	cr_expect(strstr(sdk_record(), "doca_umem_gpu_create(gpu, dev, "),
		  "DEFAULT must register by dmabuf");
	cr_expect_eq(hl->qp_gverbs->qp_cpu->sq_wqe_daddr, hl->qp_umem_gpu_ptr);
	cr_expect_eq(hl->qp_gverbs->qp_cpu->cq_sq.cqe_daddr, hl->cq_sq_umem_gpu_ptr);
	cr_expect_eq(hl->qp_gverbs->qp_cpu->sq_dbrec, (__be32 *)hl->qp_umem_dbr_gpu_ptr + 1);
	FORWARDS(doca_gpu_verbs_qp_flat_list_create_hl, (&hl, 1, &flat),
		 "doca_gpu_mem_alloc(gpu, *");
	FORWARDS(doca_gpu_verbs_qp_flat_list_destroy_hl, (flat), "doca_gpu_mem_free(gpu, %p)",
		 mem_of(flat));
	/* The first export uses memory of the high-level QP, the second allocates its own. */
	cr_expect_eq(doca_gpu_verbs_unexport_qp(gpu, hl->qp_gverbs), DOCA_SUCCESS);
	FORWARDS(doca_gpu_verbs_export_qp,
		 (gpu, hl->qp, hl->nic_handler, hl->qp_umem_gpu_ptr, hl->cq_sq,
		  hl->send_dbr_mode_ext, &again),
		 "doca_gpu_mem_alloc(gpu, *");
	hl->qp_gverbs = NULL;
	try_exported(again);
	FORWARDS(doca_gpu_verbs_unexport_qp, (gpu, again), "doca_gpu_mem_free(gpu, *");
	FORWARDS(doca_gpu_verbs_destroy_qp_hl, (hl), "doca_verbs_qp_destroy(qp)\n*");
	FORWARDS(doca_gpu_verbs_create_qp_group_hl, (&attr, &group),
		 "doca_verbs_qp_init_attr_set_core_direct_master(qp_init_attr, 1)\n*");
	FORWARDS(doca_gpu_verbs_destroy_qp_group_hl, (group), "doca_uar_destroy(uar)\n*");
}

static void try_uar_export(void)
{
	uint64_t *reg_gpu;
	bool can = false;
	void *reg;

	cr_expect_eq(doca_verbs_uar_reg_addr_get(uar, &reg), DOCA_SUCCESS);
	MAKES_NO_CALL(doca_gpu_verbs_can_gpu_register_uar, (reg, &can));
	cr_expect(can);
	MAKES_NO_CALL(doca_gpu_verbs_export_uar, (reg, &reg_gpu));
	MAKES_NO_CALL(doca_gpu_verbs_unexport_uar, (reg_gpu));
}

static void try_version(void)
{
	uint32_t version;

	MAKES_NO_CALL(doca_gpu_verbs_get_library_version, (&version));
	MAKES_NO_CALL(doca_gpu_verbs_check_device_code_compatibility, (version));
	MAKES_NO_CALL(doca_gpu_verbs_check_host_code_compatibility, (version));
}

static void end(void)
{
	FORWARDS_OBJECT(doca_verbs_qp_destroy, qp, "qp");
	FORWARDS(doca_verbs_srq_destroy, (srq),
		 "doca_verbs_srq_destroy(srq)\ndoca_verbs_context_destroy(context)");
	FORWARDS_OBJECT(doca_verbs_cq_destroy, cq, "cq");
	FORWARDS_OBJECT(doca_verbs_ah_attr_destroy, ah, "ah");
	FORWARDS(doca_verbs_uar_destroy, (uar), "doca_uar_destroy(uar)");
	FORWARDS(doca_verbs_umem_destroy, (umem), "doca_umem_destroy(umem)");
	gdk_slab_trim(gpu, nic.dev);
	FORWARDS(doca_verbs_dev_close, (nic.dev),
		 "doca_verbs_context_destroy(context)\ndoca_verbs_pd_destroy(pd)\n"
		 "doca_dev_close(dev)");
	FORWARDS(doca_gpu_destroy, (gpu), "doca_gpu_destroy(gpu)");
	ibv_dealloc_pd(nic.pd);
	ibv_close_device(nic.ctx);
}

static bool is_covered(const char *name)
{
	size_t i;

	for (i = 0; i < num_covered; i++)
		if (!strcmp(covered[i], name))
			return true;
	return false;
}

/* Every function of tests/api_names.txt must have been tested above. */
static void expect_all_covered(void)
{
	FILE *file = fopen("tests/api_names.txt", "r");
	unsigned int n = 0;
	char name[256];

	cr_assert(file, "tests/api_names.txt not found: run in the root of the tree");
	while (fgets(name, sizeof(name), file)) {
		name[strcspn(name, "\n")] = '\0';
		if (name[0] == '#')
			continue;
		n++;
		cr_expect(is_covered(name), "%s is not tested here", name);
	}
	fclose(file);
	cr_expect_geq(n, 160);
}

/*
 * Loads a library that exports functions of the SDK's names, in front of the SDK. A build with a
 * sanitizer loads the SDK without RTLD_DEEPBIND, so that the SDK would call these functions.
 */
static void load_other(void)
{
#ifndef GDK_SAN
	char path[4096];

	standin_path(path, sizeof(path), "sdk/libdoca_other.so");
	cr_assert(dlopen(path, RTLD_NOW | RTLD_GLOBAL), "%s", dlerror());
#endif
}

Test(sdk, every_function_is_forwarded_to_the_sdk)
{
	load_other();
	sdk_begin("sdk");
	try_dev();
	try_gpu();
	try_device_attr();
	try_umem();
	try_uar();
	try_cq();
	try_ah();
	try_srq();
	try_qp();
	try_high_level();
	try_uar_export();
	try_version();
	end();
	expect_all_covered();
	cr_expect_eq(sdk_live(), 0, "%d objects of the SDK leaked", sdk_live());
	cr_expect_eq(standin_cuda_live(), 0);
}
