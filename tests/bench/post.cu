/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures how many WQEs per second GPU threads post through DOCA GPUNetIO's device
 * API. The same source is compiled against our headers and against the peer's,
 * NVIDIA's open implementation. In each row a consumer verifies every WQE
 * (post_nic.cuh), and the time runs until the last one is verified. Another column
 * gives the rate without consumer and without the check for free slots (0 in rows for
 * which this is not measured). --matrix and --micro run other parts of the benchmark.
 * POST_NO_MATRIX omits the matrix. tests/bench/post.sh builds and runs it.
 */
#include "post_puts.cuh"

#include "post_run.cuh"

/* Uses BlueFlame with the low-level functions: one thread builds the WQE in shared memory
 * and copies it to its slot; submit_bf() copies it to the register. */
template <uint32_t OPT>
__global__ void post_blueflame(uint8_t *qps, uint32_t, uint32_t iters, uint32_t,
			       struct post_clock *clock)
{
	__shared__ __align__(128) struct doca_gpu_dev_verbs_wqe wqe;
	const auto flags = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE;
	QP *qp = (QP *)qps;

	for (int i = 0; i < 64; i++)
		wqe.inl_data[i] = 0;
	clock->start_ns = post_now();
	for (uint64_t k = 0; k < iters; k++) {
		const uint64_t i = doca_gpu_dev_verbs_reserve_wq_slots<EXC>(qp, 1, OPT);
		uint8_t *slot = (uint8_t *)doca_gpu_dev_verbs_get_wqe_ptr(qp, (uint16_t)i);

		doca_gpu_dev_verbs_wqe_prepare_write(qp, &wqe, (uint16_t)i,
						     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, flags,
						     0, POST_RADDR + k * POST_STEP, POST_RKEY,
						     POST_LADDR + k * POST_STEP, POST_LKEY, 4096);
		for (int s = 0; s < 3; s++)
			doca_gpu_dev_verbs_store_wqe_seg((uint64_t *)(slot + 16 * s),
							 (uint64_t *)(wqe.inl_data + 16 * s));
		doca_gpu_dev_verbs_mark_wqes_ready<EXC>(qp, i, i);
		doca_gpu_dev_verbs_submit_bf<EXC>(qp, i + 1, &wqe, OPT);
	}
	clock->end_ns = post_now();
}

static struct post_row capacity(struct post_row r)
{
	r.capacity = 1;
	return r;
}

static struct post_row blueflame(const char *name)
{
	struct post_row r = row<EXC, BF, THREAD, put4k, false>(name, { 1, 1, 1, 4096 }, 0);

	r.checked = post_blueflame<0>;
	r.unchecked = post_blueflame<SKIP_CHECK>;
	return r;
}

static std::vector<struct post_row> table(void)
{
	std::vector<struct post_row> rows = {
		row<EXC, DB, THREAD, put4k>("exclusive, 1 thread, doorbell each", { 1, 1, 1, 4096 },
					    2),
		row<EXC, DB, THREAD, put4k, true, true>("exclusive, 1 thread, no doorbell (a)",
							{ 1, 1, 1, 4096 }, 3),
		row<EXC, PROXY, THREAD, put4k>("exclusive, 1 thread, proxy each", { 1, 1, 1, 4096 },
					       2),
		row<EXC, DB, WARP, put4k>("exclusive, warp scope, doorbell per warp",
					  { 1, 32, 1, 4096 }, 2),
		row<EXC, DB, THREAD, put4k>("132 QPs, 1 thread each", { 132, 1, 132, 4096 }, 2),
		row<CTA, DB, THREAD, put4k>("CTA-shared, 1 warp, thread scope", { 1, 32, 1, 4096 },
					    50),
		row<CTA, DB, THREAD, put4k>("CTA-shared, 256 threads, thread scope",
					    { 1, 256, 1, 4096 }, 50),
		row<GPU, DB, THREAD, put4k>("GPU-shared, 1 warp, thread scope", { 1, 32, 1, 4096 },
					    60),
		capacity(row<GPU, DB, THREAD, put4k>("GPU-shared, 132x32 threads",
						     { 132, 32, 1, 32768 }, 1500)),
		row<GPU, DB, THREAD, put4k>("GPU-shared, 132x256 threads", { 132, 256, 1, 32768 },
					    10000),
		row<GPU, DB, WARP, put4k>("GPU-shared, 132 warps, warp scope",
					  { 132, 32, 1, 32768 }, 5),
		row<GPU, PROXY, THREAD, put4k>("GPU-shared, 132x32 threads, proxy",
					       { 132, 32, 1, 32768 }, 100),
		capacity(row<CTA, DB, THREAD, put4k>("132 QPs, CTA-shared, 256 threads each",
						     { 132, 256, 132, 4096 }, 45)),
		row<CTA, DB, WARP, put4k>("132 QPs, CTA-shared, 256 thr., warp scope",
					  { 132, 256, 132, 4096 }, 1),
		row<EXC, DB, THREAD, inl28>("exclusive, 1 thread, p of 28 bytes (b)",
					    { 1, 1, 1, 4096 }, 0),
		row<GPU, DB, THREAD, inl28>("GPU-shared, 132x32 threads, p of 28 bytes (b)",
					    { 132, 32, 1, 32768 }, 0),
		blueflame("exclusive, 1 thread, BlueFlame from shared memory"),
	};
#ifdef GDK_QP_STATE_H /* only with gdaki's headers: NVIDIA's have no block scope */
	rows.push_back(row<GPU, DB, BLOCK, put4k>("GPU-shared, 132x256 threads, block scope",
						  { 132, 256, 1, 32768 }, 0));
	rows.push_back(row<CTA, DB, BLOCK, put4k>("132 QPs, CTA-shared, 256 thr., block scope",
						  { 132, 256, 132, 4096 }, 0));
#endif
	return rows;
}

#ifndef POST_NO_MATRIX
/* Rows for one handler, sharing mode, scope and message type, with four numbers of QPs. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum doca_gpu_dev_verbs_exec_scope S, typename T>
static void cell(std::vector<struct post_row> &rows, const char *handler)
{
	static const uint32_t qps[] = { 1, 4, 32, 132 };
	const uint32_t lanes = S == WARP ? 32 : 1;

	for (uint32_t n : qps) {
		const uint32_t depth = n == 1 && M == GPU ? 32768 : 4096;
		const struct post_shape shape = { M == GPU ? 132 / n * n : n,
						  M == EXC   ? lanes
						  : M == CTA ? 256u
							     : 32u,
						  n, depth };
		char *name = (char *)malloc(64);

		snprintf(name, 64, "%s %s %s %s %u QPs", handler,
			 M == EXC   ? "exclusive"
			 : M == CTA ? "CTA"
				    : "GPU",
			 S == WARP ? "warp" : "thread", sizeof(T) == 1 ? "put 4 KiB" : "p 8 B", n);
		rows.push_back(row<M, H, S, T, false>(name, shape, 0));
	}
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H>
static void cells(std::vector<struct post_row> &rows, const char *handler)
{
	cell<M, H, THREAD, inl8>(rows, handler);
	cell<M, H, THREAD, put4k>(rows, handler);
#ifdef GDK_QP_STATE_H /* the peer's p posts nothing in warp scope */
	cell<M, H, WARP, inl8>(rows, handler);
#endif
	cell<M, H, WARP, put4k>(rows, handler);
}

template <enum doca_gpu_dev_verbs_nic_handler H>
static void strategy(std::vector<struct post_row> &rows, const char *handler)
{
	cells<EXC, H>(rows, handler);
	cells<CTA, H>(rows, handler);
	cells<GPU, H>(rows, handler);
}

static std::vector<struct post_row> matrix(void)
{
	std::vector<struct post_row> rows;

	strategy<DB>(rows, "DB");
	strategy<PROXY>(rows, "proxy");
#ifdef GDK_QP_STATE_H /* the peer's puts treat this handler as CPU_PROXY */
	strategy<BF>(rows, "BF");
#endif
	strategy<NODBR>(rows, "no-DBR");
	return rows;
}
#else
static std::vector<struct post_row> matrix(void)
{
	return {};
}
#endif

int main(int argc, char **argv)
{
	return run_main(argc, argv, table, matrix);
}
