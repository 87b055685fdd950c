/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests the software NIC with NVSHMEM's ibgda.cpp, unchanged, as two processing
 * elements in one process. ibgda opens the NIC, creates RC queue pairs (with its own
 * umems for rings, DBRECs and collapsed CQs) and connects them. The driver then posts
 * RDMA writes on them by hand, as ibgda's kernels would. The driver leaves out the DC
 * queue pairs, which ibgda creates first, because the NIC does not support DC. The GPU is
 * that of the stand-in CUDA driver (tests/standin).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

#include "ibgda.cpp"

#define PES    2
#define WRITES 5
#define BYTES  64

#define MUST(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

/* ---- functions of the CUDA runtime that peer_cudart.c lacks ---- */

extern "C" {
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = *greatest = 0;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	(void)priority;
	return (cudaError_t)cuStreamCreate(stream, flags);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return (cudaError_t)cuStreamSynchronize(stream);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t len, cudaMemcpyKind,
			    cudaStream_t stream)
{
	return (cudaError_t)cuMemcpyHtoDAsync((CUdeviceptr)dst, src, len, stream);
}

cudaError_t cudaMemsetAsync(void *dst, int byte, size_t len, cudaStream_t stream)
{
	return (cudaError_t)cuMemsetD8Async((CUdeviceptr)dst, (unsigned char)byte, len, stream);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *, const void *)
{
	return cudaErrorNotSupported;
}

/* Pretends that nvidia_peermem is loaded: the stand-in's memory can be registered by address. */
int access(const char *path, int mode) noexcept
{
	if (!strcmp(path, "/sys/module/nvidia_peermem/version"))
		return 0;
	return faccessat(AT_FDCWD, path, mode, 0);
}
}

/* ---- firmware commands ---- */

/* ibgda requires atomics on DC queue pairs, which the NIC does not support. Copies the
 * atomic sizes of RC into the capability for DC. */

extern "C" int mlx5dv_devx_general_cmd(struct ibv_context *ctx, const void *in, size_t inlen,
				       void *out, size_t outlen)
{
	typedef int (*call)(struct ibv_context *, const void *, size_t, void *, size_t);
	static call real = (call)dlsym(RTLD_NEXT, "mlx5dv_devx_general_cmd");
	int ret = real(ctx, in, inlen, out, outlen);
	void *cap;

	if (!ret && DEVX_GET(query_hca_cap_in, in, opcode) == MLX5_CMD_OP_QUERY_HCA_CAP &&
	    DEVX_GET(query_hca_cap_in, in, op_mod) >> 1 == MLX5_CAP_ATOMIC) {
		cap = DEVX_ADDR_OF(query_hca_cap_out, out, capability.atomic_caps);
		DEVX_SET(atomic_caps, cap, atomic_size_dc,
			 DEVX_GET(atomic_caps, cap, atomic_size_qp));
	}
	return ret;
}

static CUresult error_string(CUresult, const char **text)
{
	*text = "stand-in";
	return CUDA_SUCCESS;
}

/* ---- the bootstrap between the processing elements: two threads ---- */

static pthread_barrier_t meet;
static const void *sent[PES];

static int alltoall(const void *from, void *to, int bytes, bootstrap_handle_t *boot)
{
	int pe;

	sent[boot->pg_rank] = from;
	pthread_barrier_wait(&meet);
	for (pe = 0; pe < PES; pe++)
		memcpy((char *)to + pe * bytes, (const char *)sent[pe] + boot->pg_rank * bytes,
		       (size_t)bytes);
	pthread_barrier_wait(&meet);
	return 0;
}

struct pe {
	bootstrap_handle_t boot;
	nvshmem_transport_t t;
	nvshmemt_ibgda_state_t *state;
	struct ibgda_device *device;
	struct ibv_mr *mr;
	uint8_t heap[2][4096] __attribute__((aligned(4096))); /* data to send; received data */
};
static struct pe pes[PES];
static struct nvshmemi_cuda_fn_table cuda_table;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* Opens one processing element. The mutex protects the transport's global variables. */
static void start(struct pe *pe, int rank)
{
	CUcontext ctx;
	int i;

	MUST(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxPushCurrent(ctx));
	pthread_mutex_lock(&one);
	MUST(!nvshmemt_init(&pe->t, &cuda_table, NVSHMEM_TRANSPORT_INTERFACE_VERSION));
	pthread_mutex_unlock(&one);
	pe->boot.pg_rank = rank;
	pe->boot.pg_size = PES;
	pe->boot.alltoall = alltoall;
	pe->t->boot_handle = &pe->boot;
	pe->t->my_pe = rank;
	pe->t->n_pes = PES;
	pe->state = (nvshmemt_ibgda_state_t *)pe->t->state;
	pe->device = (struct ibgda_device *)pe->state->devices + pe->state->dev_ids[0];
	for (i = 0; i < (int)sizeof(pe->heap[0]); i++)
		pe->heap[0][i] = (uint8_t)(i * 7 + rank * 31 + 1);
	pe->mr = ibv_reg_mr(pe->device->common_device.pd, pe->heap, sizeof(pe->heap),
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(pe->mr);
}

/* The steps of ibgda's connection setup, without those for DC. */
static void connect_rc(struct pe *pe)
{
	int per_pe = pe->state->options->IBGDA_NUM_RC_PER_PE, port = pe->state->port_ids[0];

	MUST(!ibgda_calculate_rc_endpoints(pe->state, pe->device, 32));
	MUST(!ibgda_allocate_rc_structures(pe->t, pe->device, per_pe * PES));
	MUST(!ibgda_create_qp_shared_objects(pe->state, pe->device));
	MUST(!ibgda_setup_rc_endpoints(pe->state, pe->device, port, pe->t, per_pe));
	MUST(pe->device->rc.num_eps_per_pe == per_pe);
}

/* Posts one RDMA write in slot n and rings the doorbell. */
static void put(struct pe *pe, struct pe *to, struct ibgda_ep *ep, unsigned int n)
{
	volatile uint64_t *reg = (volatile uint64_t *)ep->uar_mobject->aligned.cpu_ptr;
	struct ibgda_qp_control_structures *ctrl = &ep->qp_ctrl;
	uint8_t *ring = (uint8_t *)ctrl->wq_mobject->aligned.gpu_ptr + ctrl->wq_offset;
	uint8_t *dbrec = (uint8_t *)ctrl->dbr_mobject->aligned.gpu_ptr + ctrl->dbr_offset;
	struct wqe {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg local;
	} *wqe = (struct wqe *)(ring + n % ep->sq_cnt * MLX5_SEND_WQE_BB);

	memset(wqe, 0, MLX5_SEND_WQE_BB);
	mlx5dv_set_ctrl_seg(&wqe->ctrl, (uint16_t)n, MLX5_OPCODE_RDMA_WRITE, 0, ep->qpn,
			    MLX5_WQE_CTRL_CQ_UPDATE, sizeof(*wqe) / 16, 0, 0);
	wqe->remote.raddr = htobe64((uintptr_t)to->heap[1] + n * BYTES);
	wqe->remote.rkey = htobe32(to->mr->rkey);
	mlx5dv_set_data_seg(&wqe->local, BYTES, pe->mr->lkey, (uintptr_t)pe->heap[0] + n * BYTES);
	__sync_synchronize();
	((volatile uint32_t *)dbrec)[1] = htobe32(n + 1);
	__sync_synchronize();
	*reg = *(uint64_t *)wqe;
}

/* The CQ is collapsed: entry 0 holds the last completion, and entry 1 must be unchanged. */
static void wait_for(struct ibgda_ep *ep, uint16_t index)
{
	volatile struct mlx5_cqe64 *cqe =
		(volatile struct mlx5_cqe64 *)ep->send_cq->cq_mobject->aligned.gpu_ptr;
	int ms;

	for (ms = 0; ms < 10000 && be16toh(cqe->wqe_counter) != index; ms++)
		usleep(1000);
	MUST(be16toh(cqe->wqe_counter) == index);
	MUST(cqe->op_own >> 4 == MLX5_CQE_REQ);
	MUST(cqe[1].op_own == 0xff);
}

static void *run(void *arg)
{
	struct pe *pe = (struct pe *)arg, *to = pe == pes ? pes + 1 : pes;
	int rank = (int)(pe - pes), i;
	static const uint8_t zero[WRITES * BYTES] = {};
	struct ibgda_ep *ep;
	unsigned int n;

	start(pe, rank);
	connect_rc(pe);
	pthread_barrier_wait(&meet);
	for (i = 0; i < pe->device->rc.num_eps_per_pe; i++) {
		ep = pe->device->rc.eps[i * PES + (1 - rank)];
		MUST(i || !memcmp(to->heap[1], zero, sizeof(zero)));
		for (n = 0; n < WRITES; n++)
			put(pe, to, ep, n);
		wait_for(ep, WRITES - 1);
	}
	pthread_barrier_wait(&meet);
	MUST(!memcmp(pe->heap[1], to->heap[0], WRITES * BYTES));
	return NULL;
}

int main(void)
{
	pthread_t threads[PES];
	int i;

	cuda_table.pfn_cuCtxGetDevice = cuCtxGetDevice;
	cuda_table.pfn_cuDeviceGetAttribute = cuDeviceGetAttribute;
	cuda_table.pfn_cuPointerSetAttribute = cuPointerSetAttribute;
	cuda_table.pfn_cuMemGetHandleForAddressRange = cuMemGetHandleForAddressRange;
	cuda_table.pfn_cuGetErrorString = error_string;
	MUST(!pthread_barrier_init(&meet, NULL, PES));
	for (i = 0; i < PES; i++)
		MUST(!pthread_create(&threads[i], NULL, run, &pes[i]));
	for (i = 0; i < PES; i++)
		MUST(!pthread_join(threads[i], NULL));
	printf("%d RC queue pairs and their collapsed CQs created and connected, "
	       "%d writes each, data right\n",
	       PES * pes[0].device->rc.num_eps_per_pe, WRITES);
	return 0;
}
