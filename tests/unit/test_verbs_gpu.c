/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC and GPU memory, on the stand-in driver, whose copies to the GPU arrive
 * late: queues, records and payload are reached by copies of the driver, and who
 * sees a completion sees the payload.
 */
#include "../lib/standin.h"
#include "../lib/vb.h"

#include "../lib/e2e.h"

#define LEN 20000u /* several packets, the last one short */
#define DEPTH 64u

static doca_gpu_t *gpu_open(void)
{
	doca_gpu_t *gpu = NULL;

	setenv("STANDIN_CUDA_POINTERS", "1", 1);
	standin_cuda();
	cr_assert_eq(doca_gpu_create("8a:00.0", &gpu), DOCA_SUCCESS);
	return gpu;
}

static uint8_t *gpu_mem(doca_gpu_t *gpu, size_t len)
{
	void *mem, *cpu;

	cr_assert_eq(doca_gpu_mem_alloc(gpu, len, 65536, DOCA_GPU_MEM_TYPE_GPU, &mem, &cpu),
		     DOCA_SUCCESS);
	return mem;
}

/* Between local and remote, as the opcode says; returns as soon as that is complete. */
static void move(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_mr *local,
		 struct ibv_mr *remote)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local->addr, .length = LEN,
			       .lkey = local->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = (uintptr_t)remote->addr,
					       .rkey = remote->rkey } }, *bad;
	time_t end = time(NULL) + VB_WAIT_S;
	struct ibv_wc wc;
	int n;

	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	while (!(n = ibv_poll_cq(qp->send_cq, 1, &wc)) && time(NULL) < end)
		;
	cr_assert_eq(n, 1);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

Test(gpu, payload_is_there_when_its_completion_is)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	doca_gpu_t *gpu = gpu_open();
	uint8_t *mem = gpu_mem(gpu, 65536);
	struct vb v = vb_open(2 * LEN);
	struct ibv_cq *cq = ibv_create_cq(v.ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	struct ibv_mr *mr = ibv_reg_mr(v.pd, mem, 65536, access);
	long copies = standin_cuda_calls();
	uint8_t last;

	cr_assert(mr, "the address of GPU memory is not registered");
	vb_connect(&v, qp, qp);
	for (uint8_t round = 1; round < 200; round++) {
		memset(v.mem, round, LEN);
		if (round % 2)
			move(qp, IBV_WR_RDMA_WRITE, v.mr, mr);
		else /* its last packet and its completion are of one pass */
			move(qp, IBV_WR_RDMA_READ, mr, v.mr);
		last = __atomic_load_n(&mem[LEN - 1], __ATOMIC_RELAXED);
		cr_assert_eq(last, round, "round %u: not all payload yet", round);
		cr_assert_eq(mem[0], round, "round %u: no payload yet", round);
	}
	memset(mem, 99, LEN);
	move(qp, IBV_WR_RDMA_WRITE, mr, v.mr);
	cr_assert_eq(v.mem[0], 99);
	cr_assert_eq(v.mem[LEN - 1], 99);
	cr_assert_geq(standin_cuda_calls() - copies, 200 * 20, "the NIC did not use the driver");
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
	doca_gpu_mem_free(gpu, mem);
	doca_gpu_destroy(gpu);
}

/* Rings, CQ and records in GPU memory, where the library puts them by itself. */
Test(gpu, queues_in_gpu_memory)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_t *gpu = gpu_open();
	doca_gpu_dev_verbs_ticket_t ticket;
	struct e2e_nic nic;
	struct e2e_buf buf;
	struct e2e_qp qp;
	long copies;

	e2e_open(&nic);
	cr_assert_eq(doca_gpu_destroy(nic.gpu), DOCA_SUCCESS);
	nic.gpu = gpu;
	e2e_qp_open(&nic, &qp, E2E_DB, DEPTH);
	e2e_buf_use(&nic, &buf, gpu_mem(gpu, 65536), 65536, E2E_REMOTE);
	cr_assert_eq(e2e_connect(&nic, qp.hl->qp, &nic.gid, qp.qpn, path), DOCA_SUCCESS);
	copies = standin_cuda_calls();
	for (uint8_t round = 1; round <= 3 * DEPTH; round++) {
		memset(buf.mem, round, 64);
		cr_assert_eq(gdk_put(qp.dev, e2e_addr(buf.mem + 4096, buf.mr->rkey),
				     e2e_addr(buf.mem, buf.mr->lkey), 64, &ticket, E2E_MODE,
				     E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0), 0);
		cr_assert_eq(e2e_wait(&qp, ticket), 0);
		cr_assert_eq(buf.mem[4096], round);
		cr_assert_eq(buf.mem[4096 + 63], round);
	}
	cr_assert_geq(standin_cuda_calls() - copies, 3 * (long)DEPTH * 4,
		      "the NIC did not use the driver");
	cr_assert_eq(ibv_dereg_mr(buf.mr), 0);
	doca_gpu_mem_free(gpu, buf.mem);
	e2e_qp_close(&qp);
	e2e_close(&nic);
}
