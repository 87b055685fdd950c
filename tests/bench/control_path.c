/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures how fast high-level queue pairs are created, connected (each to itself),
 * exported (doca_gpu_verbs_get_qp_dev()) and destroyed, in QPs per second with 1, 64 and
 * 1024 alive at once, and the memory and the number of driver calls that each takes. Runs
 * on the software NIC, with a GPU of the stand-in driver if one is named. Memory of the
 * NIC and of the driver is not counted. The source is C and C++, because
 * control_path.sh also compiles it with NVIDIA's library.
 * usage: control_path [GPU [HANDLER [DEPTH]]] (default: host, 0 for AUTO, 128)
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "bench.h"
#include "doca_gpunetio_host.h"
#include "host/doca_gpunetio_high_level.h"
#include "memory.h"

#define QPS_MAX	   1024
#define MUST(call) REQUIRE((call) == DOCA_SUCCESS)

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_gpu_t *gpu;
	doca_dev_t *dev;
	struct doca_verbs_gid gid;
	uint8_t gid_index;
	struct doca_gpu_verbs_qp_init_attr_hl attr;
	size_t (*gpu_bytes)(void); /* functions of the stand-in driver; NULL without it */
	long (*gpu_calls)(void);
	size_t host_before, gpu_before; /* bytes held before the first QP */
} nic;

static struct doca_gpu_verbs_qp_hl *qps[QPS_MAX];

enum step { CREATE, CONNECT, EXPORT, DESTROY, ALL, STEPS };

/* Results of one round: seconds per step for all QPs, bytes held and driver calls made
 * when all QPs are exported. */
struct round {
	double took[STEPS];
	size_t host_bytes, gpu_bytes;
	long calls;
};

#define ROUNDS_MAX 400
static struct round rounds[ROUNDS_MAX];

static void find_gid(void)
{
	struct ibv_gid_entry e;

	for (;; nic.gid_index++) {
		REQUIRE(!ibv_query_gid_ex(nic.ctx, 1, nic.gid_index, &e, 0));
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[10] == 0xff)
			break;
	}
	memcpy(nic.gid.raw, e.gid.raw, sizeof(nic.gid.raw));
}

static void open_all(const char *gpu, int handler, int depth)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	REQUIRE(list && list[0]);
	REQUIRE((nic.ctx = ibv_open_device(list[0])) != NULL);
	ibv_free_device_list(list);
	REQUIRE((nic.pd = ibv_alloc_pd(nic.ctx)) != NULL);
	find_gid();
	MUST(doca_gpu_create(gpu, &nic.gpu));
	MUST(doca_verbs_dev_open(nic.pd, &nic.dev));
	*(void **)&nic.gpu_bytes = dlsym(RTLD_DEFAULT, "standin_cuda_bytes");
	*(void **)&nic.gpu_calls = dlsym(RTLD_DEFAULT, "standin_cuda_calls");
	nic.attr.gpu_dev = nic.gpu;
	nic.attr.net_dev = nic.dev;
	nic.attr.ibpd = nic.pd;
	nic.attr.sq_nwqe = (uint16_t)depth;
	nic.attr.nic_handler = (enum doca_gpu_dev_verbs_nic_handler)handler;
}

static void close_all(void)
{
	MUST(doca_verbs_dev_close(nic.dev));
	MUST(doca_gpu_destroy(nic.gpu));
	REQUIRE(!ibv_dealloc_pd(nic.pd));
	REQUIRE(!ibv_close_device(nic.ctx));
}

static void set_path(doca_verbs_qp_attr_t *attr, doca_verbs_ah_attr_t *ah)
{
	MUST(doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4));
	MUST(doca_verbs_ah_attr_set_sgid_index(ah, nic.gid_index));
	MUST(doca_verbs_ah_attr_set_hop_limit(ah, 64));
	MUST(doca_verbs_ah_attr_set_gid(ah, nic.gid));
	MUST(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES));
	MUST(doca_verbs_qp_attr_set_rq_psn(attr, 0));
	MUST(doca_verbs_qp_attr_set_sq_psn(attr, 0));
	MUST(doca_verbs_qp_attr_set_port_num(attr, 1));
	MUST(doca_verbs_qp_attr_set_ack_timeout(attr, 14));
	MUST(doca_verbs_qp_attr_set_retry_cnt(attr, 7));
	MUST(doca_verbs_qp_attr_set_rnr_retry(attr, 7));
	MUST(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	MUST(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	MUST(doca_verbs_qp_attr_set_ah_attr(attr, ah));
}

static void step(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr, enum doca_verbs_qp_state state,
		 int mask)
{
	MUST(doca_verbs_qp_attr_set_next_state(attr, state));
	MUST(doca_verbs_qp_modify(qp, attr, mask | DOCA_VERBS_QP_ATTR_NEXT_STATE));
}

static void connect_to_itself(doca_verbs_qp_t *qp)
{
	doca_verbs_qp_attr_t *attr;
	doca_verbs_ah_attr_t *ah;
	uint32_t qpn;

	MUST(doca_verbs_qp_get_qpn(qp, &qpn));
	MUST(doca_verbs_qp_attr_create(&attr));
	MUST(doca_verbs_ah_attr_create(nic.dev, &ah));
	set_path(attr, ah);
	MUST(doca_verbs_qp_attr_set_dest_qp_num(attr, qpn));
	step(qp, attr, DOCA_VERBS_QP_STATE_INIT,
	     DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
		     DOCA_VERBS_QP_ATTR_PKEY_INDEX | DOCA_VERBS_QP_ATTR_PORT_NUM);
	step(qp, attr, DOCA_VERBS_QP_STATE_RTR,
	     DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
		     DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
		     DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER);
	step(qp, attr, DOCA_VERBS_QP_STATE_RTS,
	     DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
		     DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY);
	MUST(doca_verbs_ah_attr_destroy(ah));
	MUST(doca_verbs_qp_attr_destroy(attr));
}

static struct round run(int num)
{
	long calls = nic.gpu_calls ? nic.gpu_calls() : 0;
	struct doca_gpu_dev_verbs_qp *dev;
	double at[ALL + 1];
	struct round r;
	int i;

	at[0] = seconds();
	for (i = 0; i < num; i++)
		MUST(doca_gpu_verbs_create_qp_hl(&nic.attr, &qps[i]));
	at[1] = seconds();
	for (i = 0; i < num; i++)
		connect_to_itself(qps[i]->qp);
	at[2] = seconds();
	for (i = 0; i < num; i++)
		MUST(doca_gpu_verbs_get_qp_dev(qps[i]->qp_gverbs, &dev));
	at[3] = seconds();
	r.host_bytes = memory_held() - nic.host_before;
	r.gpu_bytes = nic.gpu_bytes ? nic.gpu_bytes() - nic.gpu_before : 0;
	r.calls = nic.gpu_calls ? nic.gpu_calls() - calls : 0;
	for (i = 0; i < num; i++)
		MUST(doca_gpu_verbs_destroy_qp_hl(qps[i]));
	at[4] = seconds();
	for (i = CREATE; i < ALL; i++)
		r.took[i] = at[i + 1] - at[i];
	r.took[ALL] = at[4] - at[0];
	return r;
}

static double median_of(enum step step, int n)
{
	double v[ROUNDS_MAX];
	int i;

	for (i = 0; i < n; i++)
		v[i] = rounds[i].took[step];
	qsort(v, (size_t)n, sizeof(v[0]), by_value);
	return v[n / 2];
}

/* Prints one row: the number of QPs alive at once, QPs per second of each step (median
 * of n rounds), and bytes and driver calls per QP (of the last round). */
static void row(int num, int n)
{
	const struct round *last = &rounds[n - 1];
	int i;

	for (i = 0; i < n; i++)
		rounds[i] = run(num);
	printf("%d", num);
	for (i = CREATE; i < STEPS; i++)
		printf(" %.0f", num / median_of((enum step)i, n));
	printf(" %zu %zu %.1f\n", last->host_bytes / (size_t)num, last->gpu_bytes / (size_t)num,
	       (double)last->calls / num);
}

int main(int argc, char **argv)
{
	open_all(argc > 1 ? argv[1] : "host", argc > 2 ? atoi(argv[2]) : 0,
		 argc > 3 ? atoi(argv[3]) : 128);
	memory_begin();
	nic.host_before = memory_held();
	nic.gpu_before = nic.gpu_bytes ? nic.gpu_bytes() : 0;
	run(1); /* maps the UAR page, which later rounds share */
	printf("qps create/s connect/s export/s destroy/s all/s host-bytes gpu-bytes calls\n");
	row(1, ROUNDS_MAX);
	row(64, 15);
	row(1024, 3);
	close_all();
	return 0;
}
