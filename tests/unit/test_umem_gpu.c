/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf --dmabuf-pcie refuse --peermem 1 */
/*
 * Queue memory on the stand-in CUDA GPU, on machines that differ in what they can
 * register: the default dmabuf, a dmabuf of the PCIe mapping type, peer memory. The
 * library must choose what the NIC registers; a query and the log must report the
 * choice and the reason.
 */
#include "../lib/e2e.h"

#include <errno.h>
#include <string.h>

#include "../lib/capture.h"
#include "../lib/standin.h"

#define FIRST "the dmabuf was tried first and succeeded"

#define REG(name) DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_##name
#define LEN	  3000u

/*
 * Values of the environment variables: what CUDA exports ("2": also the PCIe type),
 * whether the NIC's kernel registers dmabufs, what it does with the PCIe type, and
 * whether peer memory works.
 */
struct machine {
	const char *exports, *dmabuf, *pcie, *peermem;
};

static const struct machine gb200 = { "2", "1", "refuse", "0" };
static const struct machine gb200_fault = { "2", "1", "fault", "0" };
static const struct machine peer_only = { "1", "0", "refuse", "1" };
static const struct machine no_export = { "0", "1", "refuse", "1" };
static const struct machine both = { "2", "1", "refuse", "1" };
static const struct machine nothing = { "2", "0", "refuse", "0" };

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_init_attr_hl attr;
static int (*dmabuf_flags)(void);

/* Configures NIC and GPU and opens them. The NIC reads its configuration once per process. */
static void boot(const struct machine *m)
{
	setenv("DOCA_GPUNETIO_LOG", "6", 1); /* INFO */
	setenv("STANDIN_CUDA_IOMEM", "1", 1);
	setenv("STANDIN_CUDA_POINTERS", "1", 1); /* the NIC recognizes GPU memory by its address */
	setenv("STANDIN_CUDA_DMABUF", m->exports, 1);
	setenv("SOFTNIC_DMABUF", m->dmabuf, 1);
	setenv("SOFTNIC_DMABUF_PCIE", m->pcie, 1);
	setenv("SOFTNIC_PEERMEM", m->peermem, 1);
	standin_cuda();
	*(void **)&dmabuf_flags = dlsym(standin_open("libcuda.so.1"), "standin_cuda_dmabuf_flags");
	cr_assert(dmabuf_flags);
	e2e_open_on(&nic, "8a:00.0");
	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.sq_nwqe = 64;
	attr.nic_handler = E2E_DB;
}

/* Puts data from one QP to the other. The queues of both are in GPU memory. */
static void deliver(struct e2e_pair *p)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_dev_verbs_ticket_t ticket;
	size_t i;

	cr_assert_eq(e2e_connect(&nic, p->tx.hl->qp, &nic.gid, p->rx.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, p->rx.hl->qp, &nic.gid, p->tx.qpn, path), DOCA_SUCCESS);
	e2e_buf_open(&nic, &p->src, LEN, IBV_ACCESS_LOCAL_WRITE);
	e2e_buf_open(&nic, &p->dst, LEN, E2E_REMOTE);
	for (i = 0; i < LEN; i++)
		p->src.mem[i] = e2e_pattern(i, 3);
	cr_assert_eq(e2e_put(p, 0, LEN, &ticket), 0);
	cr_assert_eq(e2e_wait(&p->tx, ticket), 0);
	cr_expect_arr_eq(p->src.mem, p->dst.mem, LEN);
	e2e_buf_close(&p->src);
	e2e_buf_close(&p->dst);
}

/*
 * Expects that QPs can be created and work, that their memory is registered through
 * `way`, and that the query, and the log for peer memory, give `reason`.
 */
static void works(const struct machine *m, enum doca_gpu_verbs_mem_reg_type type,
		  enum gdk_umem_way way, const char *reason)
{
	struct gdk_umem_registration reg;
	struct doca_gpu_verbs_qp_hl *hl[2] = { NULL };
	struct e2e_pair p;
	const char *log;
	int i;

	boot(m);
	attr.mreg_type = type;
	capture_begin();
	for (i = 0; i < 2; i++)
		cr_expect_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[i]), DOCA_SUCCESS);
	log = capture_end();
	cr_assert(hl[0] && hl[1], "log: %s", log);
	cr_expect(strstr(log, way == GDK_UMEM_DMABUF ? "through dmabuf" : "through peer memory"),
		  "log: %s", log);
	cr_expect_eq(gdk_verbs_umem_get_registration(hl[0]->qp_umem, &reg), DOCA_SUCCESS);
	cr_expect_eq(reg.way, way);
	cr_expect_eq(reg.page_size, 4096);
	cr_expect(strstr(reg.reason, reason), "%s", reg.reason);
	cr_expect(way == GDK_UMEM_DMABUF || strstr(log, reason), "log: %s", log);
	cr_expect(way != GDK_UMEM_DMABUF || dmabuf_flags() == 0,
		  "the dmabuf must not have the PCIe type");
	e2e_qp_adopt(&nic, &p.tx, hl[0]);
	e2e_qp_adopt(&nic, &p.rx, hl[1]);
	p.nic = nic;
	deliver(&p);
	e2e_qp_close(&p.tx);
	e2e_qp_close(&p.rx);
	e2e_close(&nic); /* fails if an object is left */
}

static void is_refused(const struct machine *m, enum doca_gpu_verbs_mem_reg_type type,
		       doca_error_t want, const char *dmabuf, const char *peer)
{
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	const char *log;
	doca_error_t err;

	boot(m);
	attr.mreg_type = type;
	capture_begin();
	err = doca_gpu_verbs_create_qp_hl(&attr, &hl);
	log = capture_end();
	cr_expect_eq(err, want, "error %d", err);
	cr_expect_null(hl);
	cr_expect(strstr(log, dmabuf) && strstr(log, peer), "log: %s", log);
	cr_expect(strstr(log, "load nvidia-peermem") && strstr(log, "open kernel modules") &&
			  strstr(log, "GDAKI_QUEUE_MEM=cpu_gpu"),
		  "no remedy in the log: %s", log);
	e2e_close(&nic); /* fails if an object is left */
}

Test(umem_gpu, default_dmabuf_if_the_pcie_type_is_refused)
{
	works(&gb200, REG(DEFAULT), GDK_UMEM_DMABUF, FIRST);
}

Test(umem_gpu, default_dmabuf_if_the_pcie_type_faults)
{
	works(&gb200_fault, REG(DEFAULT), GDK_UMEM_DMABUF, FIRST);
}

Test(umem_gpu, peer_memory_if_the_nic_refuses_dmabufs)
{
	works(&peer_only, REG(DEFAULT), GDK_UMEM_PEER_MEMORY, "the NIC cannot register the dmabuf");
}

Test(umem_gpu, peer_memory_if_the_gpu_exports_no_dmabuf)
{
	works(&no_export, REG(DEFAULT), GDK_UMEM_PEER_MEMORY,
	      "the GPU cannot export a dmabuf of the memory");
}

Test(umem_gpu, caller_chooses_if_both_work)
{
	works(&both, REG(DEFAULT), GDK_UMEM_DMABUF, FIRST);
	works(&both, REG(CUDA_DMABUF), GDK_UMEM_DMABUF, "not requested");
	works(&both, REG(CUDA_PEERMEM), GDK_UMEM_PEER_MEMORY, "not requested");
}

Test(umem_gpu, failure_logs_both_attempts)
{
	is_refused(&nothing, REG(DEFAULT), DOCA_ERROR_DRIVER,
		   "dmabuf: the NIC cannot register the dmabuf: Operation not supported",
		   "peer memory: the NIC cannot register the address: Bad address");
}

Test(umem_gpu, requested_dmabuf_does_not_fall_back)
{
	is_refused(&peer_only, REG(CUDA_DMABUF), DOCA_ERROR_NOT_SUPPORTED,
		   "dmabuf: the NIC cannot register the dmabuf: Operation not supported",
		   "peer memory: not requested");
}

Test(umem_gpu, requested_peer_memory_does_not_fall_back)
{
	is_refused(&gb200, REG(CUDA_PEERMEM), DOCA_ERROR_DRIVER, "dmabuf: not requested",
		   "peer memory: the NIC cannot register the address: Bad address");
}

/* Allocates GPU memory and exports a dmabuf of the PCIe type. */
static int pcie_fd(void **mem)
{
	void *cpu;
	int fd = -1;

	cr_assert_eq(doca_gpu_mem_alloc(nic.gpu, 65536, 65536, DOCA_GPU_MEM_TYPE_GPU, mem, &cpu),
		     DOCA_SUCCESS);
	cr_assert_eq(gdk_gpu_get_dmabuf_fd_pcie(nic.gpu, *mem, 65536, &fd), DOCA_SUCCESS);
	cr_expect_eq(dmabuf_flags(), 1);
	return fd;
}

static void drop_pcie(void *mem, int fd)
{
	close(fd);
	cr_expect_eq(doca_gpu_mem_free(nic.gpu, mem), DOCA_SUCCESS);
	e2e_close(&nic);
}

Test(umem_gpu, pcie_dmabuf_is_refused_if_the_nic_cannot_attach)
{
	doca_verbs_umem_t *umem = NULL;
	const char *log;
	void *mem;
	int fd;

	boot(&gb200);
	fd = pcie_fd(&mem);
	cr_expect_null(ibv_reg_dmabuf_mr(nic.pd, 0, 65536, (uintptr_t)mem, fd, E2E_REMOTE));
	cr_expect_eq(errno, 524);
	capture_begin();
	cr_expect_eq(doca_verbs_umem_create(nic.dev, nic.gpu, mem, 65536, IBV_ACCESS_LOCAL_WRITE,
					    fd, 0, &umem),
		     DOCA_ERROR_NOT_SUPPORTED);
	log = capture_end();
	cr_expect(strstr(log, "ENOTSUPP (524): the exporter does not allow this NIC to attach"),
		  "log: %s", log);
	drop_pcie(mem, fd);
}

Test(umem_gpu, pcie_dmabuf_works_if_the_nic_attaches_it)
{
	static const struct machine direct = { "2", "1", "attach", "0" };
	struct gdk_umem_registration reg;
	doca_verbs_umem_t *umem = NULL;
	struct ibv_mr *mr;
	void *mem;
	int fd;

	boot(&direct);
	fd = pcie_fd(&mem);
	cr_assert(mr = ibv_reg_dmabuf_mr(nic.pd, 0, 65536, (uintptr_t)mem, fd, E2E_REMOTE));
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(doca_verbs_umem_create(nic.dev, nic.gpu, mem, 65536, IBV_ACCESS_LOCAL_WRITE,
					    fd, 0, &umem),
		     DOCA_SUCCESS);
	cr_expect_eq(gdk_verbs_umem_get_registration(umem, &reg), DOCA_SUCCESS);
	cr_expect_eq(reg.way, GDK_UMEM_GIVEN_DMABUF);
	cr_expect_eq(reg.reason[0], '\0');
	cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	drop_pcie(mem, fd);
}

/* The dmabuf is registered, but the NIC's writes to it fail. */
Test(umem_gpu, put_to_a_faulting_pcie_dmabuf_fails)
{
	struct e2e_pair p = { 0 };
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_dev_verbs_ticket_t ticket;
	void *mem;
	int fd;

	boot(&gb200_fault);
	fd = pcie_fd(&mem);
	e2e_qp_open(&nic, &p.tx, E2E_DB, 64);
	e2e_qp_open(&nic, &p.rx, E2E_DB, 64);
	cr_assert_eq(e2e_connect(&nic, p.tx.hl->qp, &nic.gid, p.rx.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, p.rx.hl->qp, &nic.gid, p.tx.qpn, path), DOCA_SUCCESS);
	e2e_buf_open(&nic, &p.src, LEN, IBV_ACCESS_LOCAL_WRITE);
	p.dst.mem = mem;
	p.dst.len = 65536;
	cr_assert(p.dst.mr = ibv_reg_dmabuf_mr(nic.pd, 0, 65536, (uintptr_t)mem, fd, E2E_REMOTE));
	cr_assert_eq(e2e_put(&p, 0, LEN, &ticket), 0);
	cr_expect_eq(e2e_wait(&p.tx, ticket), -EIO);
	e2e_qp_close(&p.tx);
	e2e_qp_close(&p.rx);
	e2e_buf_close(&p.src);
	cr_assert_eq(ibv_dereg_mr(p.dst.mr), 0);
	drop_pcie(mem, fd);
}
