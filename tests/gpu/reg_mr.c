/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * usage: reg_mr PCI-ADDRESS
 * Registers memory of that GPU by its address with plain ibv_reg_mr, moves a pattern
 * into it with an RDMA WRITE and back into host memory with an RDMA READ, on a queue
 * pair connected to itself. Exits with 0 if every byte is right.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEN    1000000u
#define WAIT_S 20

#define REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

static void *driver;

static void *symbol(const char *name)
{
	void *fn = dlsym(driver, name);

	REQUIRE(fn);
	return fn;
}

/* Allocates LEN bytes on the GPU and makes its primary context current. */
static void *gpu_memory(const char *pci)
{
	int (*init)(unsigned), (*device)(int *, const char *), (*retain)(void **, int);
	int (*set)(void *), (*alloc)(unsigned long long *, size_t), dev;
	unsigned long long mem;
	void *ctx;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	REQUIRE(driver);
	*(void **)&init = symbol("cuInit");
	*(void **)&device = symbol("cuDeviceGetByPCIBusId");
	*(void **)&retain = symbol("cuDevicePrimaryCtxRetain");
	*(void **)&set = symbol("cuCtxSetCurrent");
	*(void **)&alloc = symbol("cuMemAlloc_v2");
	REQUIRE(!init(0) && !device(&dev, pci) && !retain(&ctx, dev) && !set(ctx));
	REQUIRE(!alloc(&mem, LEN));
	return (void *)(uintptr_t)mem;
}

static struct ibv_qp *loop_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ };
	struct ibv_gid_entry e = { 0 };
	uint8_t i = 0;

	REQUIRE(qp);
	while (e.gid_type != IBV_GID_TYPE_ROCE_V2 || e.gid.raw[10] != 0xff)
		REQUIRE(!ibv_query_gid_ex(pd->context, 1, i++, &e, 0));
	REQUIRE(!ibv_modify_qp(
		qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid,
				      .sgid_index = (uint8_t)(i - 1),
				      .hop_limit = 64 } },
	};
	REQUIRE(!ibv_modify_qp(qp, &a,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = 18,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1 };
	REQUIRE(!ibv_modify_qp(qp, &a,
			       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
	return qp;
}

static void move(struct ibv_qp *qp, enum ibv_wr_opcode opcode, const struct ibv_mr *local,
		 const struct ibv_mr *gpu)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local->addr, .length = LEN, .lkey = local->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = (uintptr_t)gpu->addr,
					       .rkey = gpu->rkey } },
			   *bad;
	time_t end = time(NULL) + WAIT_S;
	struct ibv_wc wc;
	int n;

	REQUIRE(!ibv_post_send(qp, &wr, &bad));
	while (!(n = ibv_poll_cq(qp->send_cq, 1, &wc)) && time(NULL) < end)
		;
	REQUIRE(n == 1 && wc.status == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	uint8_t *from = malloc(LEN), *back = calloc(1, LEN);
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_mr *host, *host_back, *gpu;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	REQUIRE(argc == 2 && from && back && list && list[0]);
	for (uint32_t i = 0; i < LEN; i++)
		from[i] = (uint8_t)(i * 2654435761u >> 24);
	REQUIRE((ctx = ibv_open_device(list[0])) && (pd = ibv_alloc_pd(ctx)));
	REQUIRE(cq = ibv_create_cq(ctx, 4, NULL, NULL, 0));
	REQUIRE(gpu = ibv_reg_mr(pd, gpu_memory(argv[1]), LEN, access));
	REQUIRE(host = ibv_reg_mr(pd, from, LEN, access));
	REQUIRE(host_back = ibv_reg_mr(pd, back, LEN, access));
	qp = loop_qp(pd, cq);
	move(qp, IBV_WR_RDMA_WRITE, host, gpu);
	move(qp, IBV_WR_RDMA_READ, host_back, gpu);
	REQUIRE(!memcmp(from, back, LEN));
	REQUIRE(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(gpu) &&
		!ibv_dereg_mr(host) && !ibv_dereg_mr(host_back) && !ibv_dealloc_pd(pd) &&
		!ibv_close_device(ctx));
	return 0;
}
