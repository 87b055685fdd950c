/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC and GPU memory, on the stand-in CUDA driver, whose copies to the
 * GPU arrive late. The NIC must access queues, DBRECs and payload through the
 * driver, with few copies for many packets, and the payload must arrive before its
 * completion.
 */
#include "../lib/standin.h"
#include "../lib/vb.h"

#include "../lib/e2e.h"
#include "../softnic/softnic.h"

#define LEN   20000u /* several packets, the last one shorter */
#define LONG  (1u << 18)
#define DEPTH 64u
#define ALL_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

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

static void await(struct ibv_qp *qp)
{
	time_t end = time(NULL) + VB_WAIT_S;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(qp->send_cq, 1, &wc)) && time(NULL) < end)
		;
	cr_assert_eq(n, 1);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

/* Transfers between local and remote memory, according to the opcode, and returns when complete. */
static void move_len(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_mr *local,
		     struct ibv_mr *remote, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local->addr, .length = len, .lkey = local->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = (uintptr_t)remote->addr,
					       .rkey = remote->rkey } },
			   *bad;

	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	await(qp);
}

static void move(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_mr *local,
		 struct ibv_mr *remote)
{
	move_len(qp, opcode, local, remote, LEN);
}

Test(gpu, payload_arrives_before_its_completion)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	doca_gpu_t *gpu = gpu_open();
	uint8_t *mem = gpu_mem(gpu, 65536);
	struct vb v = vb_open(2 * LEN);
	struct ibv_cq *cq = ibv_create_cq(v.ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	struct ibv_mr *mr = ibv_reg_mr(v.pd, mem, 65536, access);
	long copies = standin_cuda_copies();
	uint8_t last;

	cr_assert(mr, "GPU memory was not registered by address");
	vb_connect(&v, qp, qp);
	for (uint8_t round = 1; round < 200; round++) {
		memset(v.mem, round, LEN);
		if (round % 2)
			move(qp, IBV_WR_RDMA_WRITE, v.mr, mr);
		else /* in a READ, one pass handles the last packet and the completion */
			move(qp, IBV_WR_RDMA_READ, mr, v.mr);
		last = __atomic_load_n(&mem[LEN - 1], __ATOMIC_RELAXED);
		cr_assert_eq(last, round, "round %u: the completion came before the whole payload",
			     round);
		cr_assert_eq(mem[0], round, "round %u: the completion came before the payload",
			     round);
	}
	memset(mem, 99, LEN);
	move(qp, IBV_WR_RDMA_WRITE, mr, v.mr);
	cr_assert_eq(v.mem[0], 99);
	cr_assert_eq(v.mem[LEN - 1], 99);
	cr_assert_geq(standin_cuda_copies() - copies, 200, "the NIC did not use the driver");
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
	doca_gpu_mem_free(gpu, mem);
	doca_gpu_destroy(gpu);
}

/* A QP connected to itself, GPU memory and host memory of the same size. */
struct loop {
	doca_gpu_t *gpu;
	struct vb v;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;
	uint32_t mtu;
};

static struct loop loop_open(size_t len)
{
	struct loop l = { .gpu = gpu_open(), .v = vb_open(len) };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	l.mem = gpu_mem(l.gpu, len);
	l.cq = ibv_create_cq(l.v.ctx, 16, NULL, NULL, 0);
	l.qp = vb_qp(&l.v, IBV_QPT_RC, l.cq, NULL);
	l.mr = ibv_reg_mr(l.v.pd, l.mem, len, ALL_ACCESS);
	cr_assert(l.cq && l.mr);
	vb_connect(&l.v, l.qp, l.qp);
	cr_assert_eq(ibv_query_qp(l.qp, &attr, IBV_QP_PATH_MTU, &init), 0);
	l.mtu = 128u << attr.path_mtu;
	return l;
}

static void loop_close(struct loop *l)
{
	cr_assert_eq(ibv_dereg_mr(l->mr), 0);
	cr_assert_eq(ibv_destroy_qp(l->qp), 0);
	cr_assert_eq(ibv_destroy_cq(l->cq), 0);
	vb_close(&l->v);
	doca_gpu_mem_free(l->gpu, l->mem);
	doca_gpu_destroy(l->gpu);
}

/* The bytes differ by position and round. */
static void fill(uint8_t *mem, size_t len, uint8_t round)
{
	for (size_t i = 0; i < len; i++)
		mem[i] = (uint8_t)(i * 2654435761u >> 20) ^ round;
}

/* Expects correct data, and at most one copy per 8 packets. */
static void few_copies(struct loop *l, enum ibv_wr_opcode opcode, bool from_gpu, uint8_t round)
{
	uint8_t *from = from_gpu ? l->mem : l->v.mem, *to = from_gpu ? l->v.mem : l->mem;
	bool read = opcode == IBV_WR_RDMA_READ;
	struct ibv_mr *local = from_gpu != read ? l->mr : l->v.mr;
	uint32_t packets = LONG / l->mtu;
	long before;

	fill(from, LONG, round);
	memset(to, 0, LONG);
	before = standin_cuda_copies();
	move_len(l->qp, opcode, local, local == l->mr ? l->v.mr : l->mr, LONG);
	cr_expect_leq(standin_cuda_copies() - before, packets / 8, "%s %s the GPU: %ld copies",
		      read ? "READ" : "WRITE", from_gpu ? "from" : "to",
		      standin_cuda_copies() - before);
	cr_expect(!memcmp(from, to, LONG));
}

Test(gpu, many_packets_take_few_copies)
{
	struct loop l = loop_open(LONG);

	for (uint8_t round = 1; round < 4; round++) {
		few_copies(&l, IBV_WR_RDMA_WRITE, true, round);
		few_copies(&l, IBV_WR_RDMA_WRITE, false, round);
		few_copies(&l, IBV_WR_RDMA_READ, true, round);
		few_copies(&l, IBV_WR_RDMA_READ, false, round);
	}
	loop_close(&l);
}

static void post(struct loop *l, enum ibv_wr_opcode opcode, size_t host, size_t gpu, uint32_t len,
		 int flags)
{
	struct ibv_sge sge = vb_sge(&l->v, host, len);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = (unsigned)flags },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)l->mem + gpu;
	wr.wr.rdma.rkey = l->mr->rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)l->mem + gpu;
		wr.wr.atomic.rkey = l->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	cr_assert_eq(ibv_post_send(l->qp, &wr, &bad), 0);
}

/* Adjacent, separate and overlapping writes must take effect in the order of their requests. */
Test(gpu, writes_keep_their_order)
{
	struct loop l = loop_open(LONG);

	for (uint8_t round = 0; round < 100; round++) {
		memset(l.v.mem, 3 * round + 1, 8192);
		memset(l.v.mem + 8192, 3 * round + 2, 8192);
		memset(l.v.mem + 16384, 3 * round + 3, 8192);
		post(&l, IBV_WR_RDMA_WRITE, 0, 0, 8192, 0);
		post(&l, IBV_WR_RDMA_WRITE, 8192, 8192, 4096, 0); /* adjacent to the first */
		post(&l, IBV_WR_RDMA_WRITE, 16384, 4100, 100, 0); /* within the first */
		post(&l, IBV_WR_RDMA_WRITE, 8192, 12288 + 13, 77, 0);
		post(&l, IBV_WR_RDMA_WRITE, 8192, 4150, 8, IBV_SEND_SIGNALED);
		await(l.qp);
		cr_assert_eq(l.mem[0], (uint8_t)(3 * round + 1));
		cr_assert_eq(l.mem[4099], (uint8_t)(3 * round + 1));
		cr_assert_eq(l.mem[4100], (uint8_t)(3 * round + 3));
		cr_assert_eq(l.mem[4149], (uint8_t)(3 * round + 3));
		cr_assert_eq(l.mem[4150], (uint8_t)(3 * round + 2));
		cr_assert_eq(l.mem[4158], (uint8_t)(3 * round + 3));
		cr_assert_eq(l.mem[4200], (uint8_t)(3 * round + 1));
		cr_assert_eq(l.mem[12287], (uint8_t)(3 * round + 2));
		cr_assert_eq(l.mem[12288 + 13 + 76], (uint8_t)(3 * round + 2));
	}
	loop_close(&l);
}

/* A READ must not return data that was read ahead for an earlier READ. */
Test(gpu, read_returns_all_earlier_writes)
{
	struct loop l = loop_open(LONG);
	uint64_t word = 0, old, now;

	memset(l.mem, 0, LONG);
	for (uint8_t round = 1; round < 100; round++) {
		memset(l.v.mem, round, 32768);
		post(&l, IBV_WR_RDMA_READ, 65536, 0, 65536, 0);
		post(&l, IBV_WR_RDMA_WRITE, 0, 8192, 32768, 0);
		post(&l, IBV_WR_ATOMIC_FETCH_AND_ADD, 40960, 49152, 8, 0);
		post(&l, IBV_WR_RDMA_READ, 131072, 0, 65536, IBV_SEND_SIGNALED);
		await(l.qp);
		memcpy(&old, l.v.mem + 40960, 8);
		memcpy(&now, l.v.mem + 131072 + 49152, 8);
		cr_assert_eq(old, word++);
		cr_assert_eq(now, word);
		cr_assert_eq(l.v.mem[131072 + 8191], 0);
		cr_assert_eq(l.v.mem[131072 + 8192], round);
		cr_assert_eq(l.v.mem[131072 + 40959], round);
	}
	loop_close(&l);
}

/* Writes one page of host memory to the same offset of GPU memory. */
static void write_page(struct loop *l, struct ibv_mr *to, size_t off, int flags)
{
	struct ibv_sge sge = vb_sge(&l->v, off, 4096);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = (unsigned)flags,
				  .wr.rdma = { .remote_addr = (uintptr_t)l->mem + off,
					       .rkey = to->rkey } },
			   *bad;

	cr_assert_eq(ibv_post_send(l->qp, &wr, &bad), 0);
}

/* Adjacent regions may be different allocations, and the driver copies to one at a time. */
Test(gpu, copies_do_not_cross_regions)
{
	struct loop l = loop_open(8192);
	struct ibv_mr *low = ibv_reg_mr(l.v.pd, l.mem, 4096, ALL_ACCESS);
	struct ibv_mr *high = ibv_reg_mr(l.v.pd, l.mem + 4096, 4096, ALL_ACCESS);
	unsigned long long dst, meet = (uintptr_t)l.mem + 4096;
	long n;

	cr_assert(low && high);
	for (uint8_t round = 1; round < 50; round++) {
		n = standin_cuda_writes();
		memset(l.v.mem, round, 8192);
		write_page(&l, low, 0, 0);
		write_page(&l, high, 4096, IBV_SEND_SIGNALED);
		await(l.qp);
		for (; n < standin_cuda_writes(); n++) {
			size_t len = standin_cuda_write(n, &dst);

			cr_assert(dst >= meet || dst + len <= meet,
				  "a copy of %zu bytes crosses the regions", len);
		}
		cr_assert_eq(l.mem[4095], round);
		cr_assert_eq(l.mem[8191], round);
	}
	cr_assert_eq(ibv_dereg_mr(low) | ibv_dereg_mr(high), 0);
	loop_close(&l);
}

/*
 * The write was acknowledged before its copy failed, so the NIC counts an error;
 * later writes must work.
 */
Test(gpu, failed_copy_is_counted_as_an_error)
{
	struct loop l = loop_open(8192);
	const struct sn_stats *(*stats)(void);

	*(void **)&stats = dlsym(RTLD_DEFAULT, "sn_stats_get");
	cr_assert(stats);
	memset(l.v.mem, 1, 8192);
	write_page(&l, l.mr, 0, IBV_SEND_SIGNALED);
	await(l.qp);
	cr_assert_eq(stats()->gpu_copy_errors, 0);
	standin_cuda_fail_at(1);
	write_page(&l, l.mr, 4096, 0);
	write_page(&l, l.mr, 0, IBV_SEND_SIGNALED);
	await(l.qp);
	cr_assert(standin_cuda_failed());
	standin_cuda_fail_at(0);
	cr_assert_eq(stats()->gpu_copy_errors, 1);
	memset(l.v.mem, 2, 8192);
	write_page(&l, l.mr, 4096, IBV_SEND_SIGNALED);
	await(l.qp);
	cr_assert_eq(l.mem[8191], 2);
	cr_assert_eq(stats()->gpu_copy_errors, 1);
	loop_close(&l);
}

/*
 * Counts the CQEs among the copies since number n: the owner word must be copied
 * separately, after the rest.
 */
static unsigned cqes_since(long n)
{
	unsigned long long body, owner;
	unsigned found = 0;

	for (; n + 1 < standin_cuda_writes(); n++)
		found += standin_cuda_write(n, &body) == 60 &&
			 standin_cuda_write(n + 1, &owner) == 4 && owner == body + 60;
	return found;
}

/* Rings, CQ and DBRECs are in GPU memory, where the library places them by default. */
Test(gpu, queues_in_gpu_memory)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_t *gpu = gpu_open();
	doca_gpu_dev_verbs_ticket_t ticket;
	struct e2e_nic nic;
	struct e2e_buf buf;
	struct e2e_qp qp;
	long copies, writes;

	e2e_open(&nic);
	cr_assert_eq(doca_gpu_destroy(nic.gpu), DOCA_SUCCESS);
	nic.gpu = gpu;
	e2e_qp_open(&nic, &qp, E2E_DB, DEPTH);
	e2e_buf_use(&nic, &buf, gpu_mem(gpu, 65536), 65536, E2E_REMOTE);
	cr_assert_eq(e2e_connect(&nic, qp.hl->qp, &nic.gid, qp.qpn, path), DOCA_SUCCESS);
	copies = standin_cuda_calls();
	for (uint8_t round = 1; round <= 3 * DEPTH; round++) {
		memset(buf.mem, round, 64);
		writes = standin_cuda_writes();
		cr_assert_eq(gdk_put(qp.dev, e2e_addr(buf.mem + 4096, buf.mr->rkey),
				     e2e_addr(buf.mem, buf.mr->lkey), 64, &ticket,
				     gdk_how(E2E_MODE, E2E_AUTO,
					     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
			     0);
		cr_assert_eq(e2e_wait(&qp, ticket), 0);
		cr_assert_eq(cqes_since(writes), 1, "round %u: wrong number of CQE copies", round);
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
