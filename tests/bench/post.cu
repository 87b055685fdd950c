/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * How many WQEs a second GPU threads post, by the device API of DOCA GPUNetIO
 * alone: compiled against our headers and against the peer's, the same source
 * measures both. Rows of the table: the availability check is on and a consumer
 * verifies every WQE (post_nic.cuh); beside them the rate without either. Time
 * runs from the first poster's start until the last WQE is verified, or posted.
 * Then the matrix of strategy, sharing, scope, QPs and message; the cost of
 * single instructions (post_micro.cuh). tests/bench/post.sh builds and runs it.
 */
#include "post_rig.cuh"

#include "post_micro.cuh"

#include <algorithm>
#include <vector>

#define RUNS 4
#define SPARSE 1024 /* messages per doorbell in the row "no doorbell" */

#define EXC DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define CTA DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define GPU DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define DB DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
#define BF DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF
#define NODBR DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR
#define PROXY DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY
#define THREAD DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define WARP DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define SKIP_CHECK DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK
#define SKIP_DB DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING

/* Inline values of 8 and 28 bytes; a message's number is in them. */
struct inl8 {
	uint32_t w[2];
};
struct inl28 {
	uint32_t w[7];
};
struct put4k {
};

template <typename T> __device__ static __forceinline__ T message(uint64_t k)
{
	T v;

#pragma unroll
	for (uint32_t i = 0; i < sizeof(v.w) / 4; i++)
		v.w[i] = post_payload(k, i);
	return v;
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T>
__device__ static __forceinline__ void post_one(QP *qp, uint64_t k, uint32_t opt)
{
	struct doca_gpu_dev_verbs_addr r, l;
	doca_gpu_dev_verbs_ticket_t ticket;

	r.addr = POST_RADDR + k * POST_STEP;
	r.key = POST_RKEY;
	l.addr = POST_LADDR + k * POST_STEP;
	l.key = POST_LKEY;
	if constexpr (sizeof(T) == 1)
		doca_gpu_dev_verbs_put<M, H, S>(qp, r, l, 4096, &ticket, opt);
	else
		doca_gpu_dev_verbs_p<T, M, H, S>(qp, r, message<T>(k), &ticket, opt);
}

/* EVERY: a doorbell each `every` messages and at the end (0: none), else each. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T, uint32_t OPT, bool EVERY>
__global__ void post_puts(uint8_t *qps, uint32_t n, uint32_t iters, uint32_t every,
			  struct post_clock *clock)
{
	QP *qp = (QP *)(qps + (size_t)(blockIdx.x % n) * POST_QP_STRIDE);
	const uint32_t stride = gridDim.x / n * blockDim.x;
	uint64_t k = blockIdx.x / n * blockDim.x + threadIdx.x;

	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&clock->start_ns, post_now());
	for (uint32_t i = 1; i <= iters; i++, k += stride) {
		const bool ring = !EVERY || (every && (i % every == 0 || i == iters));

		post_one<M, H, S, T>(qp, k, ring ? OPT : OPT | SKIP_DB);
	}
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMax((unsigned long long *)&clock->end_ns, post_now());
}

struct row {
	const char *name;
	post_kernel checked, unchecked;
	enum doca_gpu_dev_verbs_nic_handler handler;
	struct post_shape shape;
	uint32_t bytes, inl, every;
	double target; /* ratio to the peer that the table asks for; 0: none */
};

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T, bool BOTH = true, bool EVERY = false>
static struct row row(const char *name, struct post_shape shape, double target)
{
	struct row r = {};

	r.name = name;
	r.checked = post_puts<M, H, S, T, 0, EVERY>;
	if constexpr (BOTH)
		r.unchecked = post_puts<M, H, S, T, SKIP_CHECK, EVERY>;
	r.handler = H;
	r.shape = shape;
	r.bytes = sizeof(T) == 1 ? 4096 : (uint32_t)sizeof(T);
	r.inl = sizeof(T) != 1;
	r.every = EVERY ? SPARSE : 1;
	r.target = target;
	return r;
}

static std::vector<struct row> table(void)
{
	return {
		row<EXC, DB, THREAD, put4k>("exclusive, 1 thread, doorbell each",
					    { 1, 1, 1, 4096 }, 2),
		row<EXC, DB, THREAD, put4k, true, true>("exclusive, 1 thread, no doorbell (a)",
							{ 1, 1, 1, 4096 }, 3),
		row<EXC, PROXY, THREAD, put4k>("exclusive, 1 thread, proxy each",
					       { 1, 1, 1, 4096 }, 2),
		row<EXC, DB, WARP, put4k>("exclusive, warp scope, doorbell per warp",
					  { 1, 32, 1, 4096 }, 2),
		row<EXC, DB, THREAD, put4k>("132 QPs, 1 thread each", { 132, 1, 132, 4096 }, 2),
		row<CTA, DB, THREAD, put4k>("CTA-shared, 1 warp, thread scope",
					    { 1, 32, 1, 4096 }, 50),
		row<CTA, DB, THREAD, put4k>("CTA-shared, 256 threads, thread scope",
					    { 1, 256, 1, 4096 }, 50),
		row<GPU, DB, THREAD, put4k>("GPU-shared, 1 warp, thread scope",
					    { 1, 32, 1, 4096 }, 60),
		row<GPU, DB, THREAD, put4k>("GPU-shared, 132x32 threads", { 132, 32, 1, 32768 },
					    1500),
		row<GPU, DB, THREAD, put4k>("GPU-shared, 132x256 threads", { 132, 256, 1, 32768 },
					    10000),
		row<GPU, DB, WARP, put4k>("GPU-shared, 132 warps, warp scope",
					  { 132, 32, 1, 32768 }, 5),
		row<GPU, PROXY, THREAD, put4k>("GPU-shared, 132x32 threads, proxy",
					       { 132, 32, 1, 32768 }, 100),
		row<CTA, DB, THREAD, put4k>("132 QPs, CTA-shared, 256 threads each",
					    { 132, 256, 132, 4096 }, 45),
		row<CTA, DB, WARP, put4k>("132 QPs, CTA-shared, 256 thr., warp scope",
					  { 132, 256, 132, 4096 }, 1),
		row<EXC, DB, THREAD, inl28>("exclusive, 1 thread, p of 28 bytes (b)",
					    { 1, 1, 1, 4096 }, 0),
		row<GPU, DB, THREAD, inl28>("GPU-shared, 132x32 threads, p of 28 bytes (b)",
					    { 132, 32, 1, 32768 }, 0),
	};
}

/* One strategy, sharing mode, scope and message, at four numbers of QPs. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T>
static void cell(std::vector<struct row> &rows, const char *handler)
{
	static const uint32_t qps[] = { 1, 4, 32, 132 };
	const uint32_t lanes = S == WARP ? 32 : 1;

	for (uint32_t n : qps) {
		const uint32_t depth = n == 1 && M == GPU ? 32768 : 4096;
		const struct post_shape shape = {
			M == GPU ? 132 / n * n : n,
			M == EXC ? lanes : M == CTA ? 256u : 32u, n, depth
		};
		char *name = (char *)malloc(64);

		snprintf(name, 64, "%s %s %s %s %u QPs", handler,
			 M == EXC ? "exclusive" : M == CTA ? "CTA" : "GPU",
			 S == WARP ? "warp" : "thread", sizeof(T) == 1 ? "put 4 KiB" : "p 8 B", n);
		rows.push_back(row<M, H, S, T, false>(name, shape, 0));
	}
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H>
static void cells(std::vector<struct row> &rows, const char *handler)
{
	cell<M, H, THREAD, inl8>(rows, handler);
	cell<M, H, THREAD, put4k>(rows, handler);
#ifdef POST_WARP_P
	cell<M, H, WARP, inl8>(rows, handler);
#endif
	cell<M, H, WARP, put4k>(rows, handler);
}

template <enum doca_gpu_dev_verbs_nic_handler H>
static void strategy(std::vector<struct row> &rows, const char *handler)
{
	cells<EXC, H>(rows, handler);
	cells<CTA, H>(rows, handler);
	cells<GPU, H>(rows, handler);
}

static std::vector<struct row> matrix(void)
{
	std::vector<struct row> rows;

	strategy<DB>(rows, "DB");
	strategy<PROXY>(rows, "proxy");
#ifdef GDK_QP_STATE_H /* the peer's puts take this value for the proxy */
	strategy<BF>(rows, "BF");
#endif
	strategy<NODBR>(rows, "no-DBR");
	return rows;
}

/* Iterations so that a run takes about target_ms, and laps the ring where it can. */
static uint32_t calibrate(struct post_rig *r, post_kernel kernel, const struct row *w, int nic,
			  double target_ms)
{
	const double per_iter = (double)r->shape.blocks / r->shape.qps * r->shape.threads;
	uint32_t iters = 1;

	for (int step = 0; step < 3; step++) {
		const double goal = step ? target_ms * 1e6 : 1e6;
		const double ns = std::max(1000., rig_run(r, kernel, iters, nic || w->every == 1 ?
							  w->every : 0, nic, w->name).ns);
		double next = iters * goal / ns;

		if (ns > goal)
			break;
		next = std::min(next, iters * 1000.);
		if (step == 2)
			next = std::max(next, std::min(3. * next, 4 * r->shape.depth / per_iter));
		iters = (uint32_t)std::max(1., std::min(next, 4e6));
	}
	return iters;
}

struct rates {
	double median, low, high; /* million WQEs a second */
	uint64_t messages;
	struct post_result sum;
};

static struct rates measure(struct post_rig *r, post_kernel kernel, const struct row *w, int nic,
			    double target_ms)
{
	const uint32_t every = nic || w->every == 1 ? w->every : 0;
	const uint32_t iters = calibrate(r, kernel, w, nic, target_ms);
	struct rates rates = {};
	std::vector<double> v;

	rates.messages = (uint64_t)r->shape.blocks * r->shape.threads * iters;
	for (int i = 0; i <= RUNS; i++) {
		const struct post_result res = rig_run(r, kernel, iters, every, nic, w->name);

		rates.sum.verified += res.verified;
		rates.sum.mismatches += res.mismatches;
		rates.sum.bad |= res.bad;
		rates.sum.late += res.late;
		if (i) /* the first warms up */
			v.push_back((double)rates.messages / res.ns * 1e3);
		/* Without a consumer a slow row is only a side note. */
		if (!nic && i && res.ns > 3e8)
			break;
	}
	std::sort(v.begin(), v.end());
	rates.median = (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
	rates.low = v.front();
	rates.high = v.back();
	return rates;
}

static void run_row(const char *section, int number, const struct row *w,
		    const struct post_options *o)
{
	struct rates with, without = {};
	struct post_rig rig;

	rig_open(&rig, o, &w->shape, w->handler, w->bytes, w->inl);
	with = measure(&rig, w->checked, w, 1, o->target_ms);
	/* Without checks nothing keeps posters from their own ring's tail; where that
	 * cost doorbells there is no rate. */
	if (w->unchecked)
		without = measure(&rig, w->unchecked, w, 0, o->target_ms);
	printf("%s\t%d\t%s\t%.4g\t%.3f\t%.3f\t%.3f\t%llu\t%llu\t0x%llx\t%llu\t%.3f\t%llu\t%s\n",
	       section, number, w->name, w->target, with.median, with.low, with.high,
	       (unsigned long long)with.sum.verified,
	       (unsigned long long)with.sum.mismatches, (unsigned long long)with.sum.bad,
	       (unsigned long long)with.sum.late, without.sum.bad ? 0 : without.median,
	       (unsigned long long)with.messages, rig.sys_scope ? "sys" : "gpu");
	fflush(stdout);
	rig_close(&rig);
}

static int usage(const char *name)
{
	fprintf(stderr,
		"%s [--matrix] [--micro] [--first ROW] [--ms MS] [--reg-gpu] [--sys]\n"
		"  --first    row to begin with, after a hang\n"
		"  --ms       length of one run\n"
		"  --reg-gpu  register pages in GPU memory, not in pinned host memory\n"
		"  --sys      our fences at system scope, as with queues in host memory\n",
		name);
	return 2;
}

static int parse(int argc, char **argv, struct post_options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(a, "--matrix"))
			o->matrix = 1;
		else if (!strcmp(a, "--micro"))
			o->micro = 1;
		else if (!strcmp(a, "--reg-gpu"))
			o->reg_on_gpu = 1;
		else if (!strcmp(a, "--sys"))
			o->sys_scope = 1;
		else if (!strcmp(a, "--first") && *v)
			o->first = atoi(argv[++i]);
		else if (!strcmp(a, "--ms") && atof(v) > 0)
			o->target_ms = atof(argv[++i]);
		else
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct post_options o = {};
	struct cudaDeviceProp prop;

	o.target_ms = 15;
	if (parse(argc, argv, &o))
		return usage(argv[0]);
	/* A kernel that is loaded late would wait for the resident one. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	CK(cudaGetDeviceProperties(&prop, 0));
	CK(cudaSetDeviceFlags(cudaDeviceMapHost));
	if (prop.multiProcessorCount < 132)
		fprintf(stderr, "%d multiprocessors, the rows are made for 132\n",
			prop.multiProcessorCount);
	micro_spin_up();
	if (o.micro)
		return micro_run();
	const std::vector<struct row> rows = o.matrix ? matrix() : table();
	for (int i = o.first; i < (int)rows.size(); i++)
		run_row(o.matrix ? "matrix" : "table", i, &rows[i], &o);
	return 0;
}
