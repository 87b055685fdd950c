/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures the latency of one operation: one thread posts it and waits for its
 * completion. Another block of the same GPU acts as the NIC. It polls the doorbell
 * register, in GPU memory, or the word to which a CPU thread copies the proxy's counter.
 * It then reads the WQEs, waits for a constant delay, writes the CQEs, and checks WQEs
 * and DBREC. An operation that rings no doorbell is an error. The printed latency is the
 * time above the delay. Rows "complete": the CQEs of all operations are there before the
 * first one is posted, so only the cost of the software is measured. The same source is
 * compiled against our headers and the peer's. tests/bench/post.sh builds and runs it.
 */
#define POST_HANG_S 8

#include <algorithm>
#include <vector>

#include "post_doca.cuh"

#include "post_time.cuh"

#define LAT_DEPTH      4096u
#define LAT_OPS	       3000u /* of one run against the NIC */
#define LAT_WARM       200u  /* first operations of a run, not measured */
#define LAT_PLACES     5     /* memory placements, one run at each; see rig_place() */
#define LAT_DELAY_NS   2000
#define LAT_GAP_NS     2000 /* between two operations */
#define LAT_RECORD_NS  5000 /* the DBREC must show the index within this time */
#define LAT_LIMIT_NS   4000000000ull
#define LAT_LOOP_DEPTH 32768u
#define LAT_LOOP_OPS   8000u

#define OP_WRITE  0x08
#define OP_READ	  0x10
#define OP_ATOMIC 0x12

enum lat_op { LAT_PUT, LAT_GET, LAT_PUT_SIGNAL };
enum lat_done { LAT_NONE, LAT_WAIT, LAT_POLL };

struct lat_job {
	struct post_watch watch;
	uint32_t ops, slots;	       /* number of operations, and of WQEs of each */
	uint32_t opcode[2];	       /* of these WQEs */
	uint32_t halves;	       /* 2: doorbells are at two addresses in turn (BlueFlame) */
	uint32_t recorded;	       /* 1: check the DBREC */
	long long delay, record_limit; /* cycles */
};

/* Results of the NIC and of the posting thread. */
struct lat_seen {
	uint64_t verified, wrong, bad; /* bad: bits of enum post_bad */
	uint64_t ns;		       /* of a loop of operations */
};

__device__ static __forceinline__ uint64_t lat_load(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

/* Returns whether v, a value of the register or of the counter, is the doorbell for index
 * `end`. A doorbell for another QP or for a higher index is an error. */
__device__ static __forceinline__ int lat_rings(const struct lat_job *j, uint64_t v, uint64_t end,
						uint64_t *bad)
{
	int64_t ahead = (int64_t)(v - end);

	if (v == 0)
		return 0;
	if (j->watch.source != POST_COUNTER) {
		if (post_register_qpn(v) != j->watch.want.qpn) {
			*bad |= POST_BAD_DOORBELL;
			return 0;
		}
		ahead = (int16_t)(post_register_index(v) - (uint32_t)end);
	}
	*bad |= ahead > 0 ? POST_BAD_DOORBELL : 0;
	return ahead >= 0;
}

/* Polls until the doorbell for index `end` arrives. Returns 0 after the deadline. */
__device__ static int lat_await(const struct lat_job *j, uint64_t end, uint64_t deadline,
				uint64_t *bad)
{
	for (uint32_t look = 1;; look++) {
		for (uint32_t half = 0; half < j->halves; half++)
			if (lat_rings(j, lat_load(j->watch.reg + 32 * half), end, bad))
				return 1;
		if (look % 256 == 0 && post_now() > deadline) {
			*bad |= POST_BAD_SILENT;
			return 0;
		}
	}
}

__device__ static __forceinline__ int lat_recorded(const struct lat_job *j, uint64_t end)
{
	const uint32_t v = *(const volatile uint32_t *)j->watch.record;

	return (int16_t)(post_swap32(v) - (uint32_t)end) >= 0;
}

struct lat_wqe {
	uint4 seg[2];
};

__device__ static uint32_t lat_check(const struct lat_job *j, const struct lat_wqe *wqe,
				     uint64_t index, uint32_t s)
{
	const uint4 a = wqe->seg[0], b = wqe->seg[1];
	const uint32_t w[8] = { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w };

	return post_verify_head(index, j->opcode[s], j->watch.want.qpn,
				j->watch.want.raddr + index * POST_STEP, w);
}

/* Processes the operation whose WQEs end at index `end`, after its doorbell. Returns
 * POST_BAD_* bits. The WQEs are read before the CQEs are written. A real NIC does not wait
 * for the DBREC, so the CQEs do not wait for it either. */
__device__ static uint64_t lat_process(const struct lat_job *j, uint64_t end)
{
	const long long start = clock64();
	const uint64_t first = end - j->slots;
	struct lat_wqe wqe[2];
	uint64_t bad = 0;

#pragma unroll
	for (uint32_t s = 0; s < 2; s++) {
		const uint64_t slot = (s < j->slots ? first + s : first) & (j->watch.depth - 1);

		wqe[s].seg[0] = post_read16(j->watch.ring + slot * 4);
		wqe[s].seg[1] = post_read16(j->watch.ring + slot * 4 + 1);
	}
	int recorded = !j->recorded || lat_recorded(j, end);

	bad |= lat_check(j, &wqe[0], first, 0);
	if (j->slots > 1)
		bad |= lat_check(j, &wqe[1], first + 1, 1);
	while (clock64() - start < j->delay)
		;
	post_complete(&j->watch, first, end, 0, 1);
	while (!recorded && clock64() - start < j->record_limit)
		recorded = lat_recorded(j, end);
	return bad | (recorded ? 0 : POST_BAD_RECORD);
}

/* The NIC: one thread. If a doorbell does not arrive, it completes everything, so that the
 * posting kernel ends. */
__global__ void lat_nic(const __grid_constant__ struct lat_job job, struct lat_seen *seen,
			volatile uint32_t *up)
{
	const uint64_t deadline = post_now() + LAT_LIMIT_NS;
	struct lat_seen s = {};
	int alive = 1;

	*up = 1;
	for (uint64_t i = 1; i <= job.ops; i++) {
		const uint64_t end = i * job.slots;
		uint64_t bad = 0;

		alive = alive && lat_await(&job, end, deadline, &bad);
		if (alive)
			bad |= lat_process(&job, end);
		else
			post_complete(&job.watch, end - job.slots, end, 0, 1);
		s.verified += alive && !bad;
		s.wrong += !alive || bad;
		s.bad |= bad;
	}
	*seen = s;
}

/* Posts the operation whose first WQE is at index `index` and waits for it. Returns 0, or
 * another value if a call failed. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum lat_op OP, enum lat_done DONE>
__device__ static __forceinline__ int lat_one(QP *qp, uint64_t index,
					      doca_gpu_dev_verbs_ticket_t *ticket)
{
	struct doca_gpu_dev_verbs_addr r, l, signal;
	int err = 0;

	r.addr = POST_RADDR + index * POST_STEP;
	signal.addr = r.addr + POST_STEP;
	r.key = signal.key = POST_RKEY;
	l.addr = POST_LADDR;
	l.key = POST_LKEY;
	if constexpr (OP == LAT_PUT)
		err = STATUS((doca_gpu_dev_verbs_put<M, H, THREAD>(qp, r, l, 64, ticket)));
	else if constexpr (OP == LAT_GET)
		err = STATUS((doca_gpu_dev_verbs_get<M, H, THREAD>(qp, r, l, 64, l, ticket)));
	else
		err = STATUS((
			doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, M, H,
						      THREAD>(qp, r, l, 64, signal, l, 1, ticket)));
	if constexpr (DONE == LAT_WAIT)
		err |= STATUS((doca_gpu_dev_verbs_wait<M, H>(qp, *ticket)));
	else if constexpr (DONE == LAT_POLL)
		err |= doca_gpu_dev_verbs_poll_cq_at<M>(doca_gpu_dev_verbs_qp_get_cq_sq(qp),
							*ticket);
	return err;
}

struct lat_load {
	struct post_watch watch;
	uint32_t ops, slots;
	long long gap;
	int32_t *cycles; /* of each operation */
};

/* Posts operations one at a time and stores their durations. After each, checks the ticket
 * and that the CQE was written. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum lat_op OP, enum lat_done DONE>
__global__ void lat_post(QP *qp, const __grid_constant__ struct lat_load load,
			 struct lat_seen *seen)
{
	const struct post_watch *w = &load.watch;
	struct lat_seen s = {};

	for (uint32_t i = 0; i < load.ops; i++) {
		const uint64_t first = (uint64_t)i * load.slots, last = first + load.slots - 1;
		doca_gpu_dev_verbs_ticket_t ticket = POST_POISON;
		long long start = clock64();
		const int err = lat_one<M, H, OP, DONE>(qp, first, &ticket);

		load.cycles[i] = (int32_t)(clock64() - start);
		const uint64_t cqe =
			*(const volatile uint64_t *)(w->cq + (last & (w->depth - 1)) * 64 + 56);
		uint64_t bad = err ? POST_BAD_STATUS : 0;

		bad |= ticket != last ? POST_BAD_INDEX : 0;
		bad |= cqe != post_cqe_tail(last, w->depth, w->want.qpn) ? POST_BAD_EARLY : 0;
		s.wrong += bad != 0;
		s.bad |= bad;
		for (start = clock64(); clock64() - start < load.gap;)
			;
	}
	*seen = s;
}

/* Posts operations back to back whose CQEs are there already. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum lat_op OP, enum lat_done DONE>
__global__ void lat_loop(QP *qp, const __grid_constant__ struct lat_load load,
			 struct lat_seen *seen)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	struct lat_seen s = {};
	uint64_t start = 0;
	int err = 0;

	for (uint32_t i = 0; i < load.ops; i++) {
		if (i == LAT_WARM)
			start = post_now();
		err |= lat_one<M, H, OP, DONE>(qp, (uint64_t)i * load.slots, &ticket);
	}
	s.ns = post_now() - start;
	s.wrong = err != 0;
	s.bad = err ? POST_BAD_STATUS : 0;
	*seen = s;
}

typedef void (*lat_kernel)(QP *qp, const struct lat_load load, struct lat_seen *seen);

struct lat_row {
	const char *name;
	lat_kernel kernel;
	struct post_row base;
	uint32_t slots, opcode[2];
	int loop; /* 1: kernel is lat_loop */
	int host_queues;
	double required; /* us; 0: none */
	double ratio;	 /* required, as a multiple of the peer's latency; 0: none */
	double goal;	 /* us; 0: none */
};

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_nic_handler H,
	  enum lat_op OP, enum lat_done DONE, bool LOOP = false>
static struct lat_row row(const char *name, double required, double ratio, double goal)
{
	struct lat_row r = {};

	r.name = name;
	if constexpr (LOOP)
		r.kernel = lat_loop<M, H, OP, DONE>;
	else
		r.kernel = lat_post<M, H, OP, DONE>;
	r.base.handler = H == DB      ? POST_DB
			 : H == BF    ? POST_BF
			 : H == NODBR ? POST_NO_DBR
				      : POST_PROXY;
	r.base.shape = { 1, 1, 1, LOOP ? LAT_LOOP_DEPTH : LAT_DEPTH };
	r.slots = OP == LAT_PUT_SIGNAL ? 2 : 1;
	r.opcode[0] = OP == LAT_GET ? OP_READ : OP_WRITE;
	r.opcode[1] = OP_ATOMIC;
	r.loop = LOOP;
	r.required = required;
	r.ratio = ratio;
	r.goal = goal;
	return r;
}

static struct lat_row on_host(struct lat_row r)
{
	r.host_queues = 1;
	return r;
}

static std::vector<struct lat_row> rows(void)
{
	return {
		row<EXC, DB, LAT_PUT, LAT_WAIT>("exclusive, put + wait", 1.35, 0.75, 1.1),
		row<EXC, DB, LAT_PUT, LAT_POLL>("exclusive, put + poll_cq_at", 1.32, 0, 1.1),
		row<GPU, DB, LAT_PUT, LAT_WAIT>("GPU-shared, put + wait", 0, 1, 1.6),
		row<GPU, DB, LAT_PUT, LAT_POLL>("GPU-shared, put + poll_cq_at", 0, 0.75, 1.6),
		row<EXC, DB, LAT_GET, LAT_WAIT>("exclusive, get + wait", 0, 1, 0),
		row<EXC, DB, LAT_PUT_SIGNAL, LAT_WAIT>("exclusive, put_signal + wait", 0, 1, 0),
		row<EXC, NODBR, LAT_PUT, LAT_WAIT>("exclusive, NO_DBR, put + wait", 0, 1, 0),
		row<EXC, PROXY, LAT_PUT, LAT_WAIT>("exclusive, proxy, put + wait", 0, 1, 0),
		on_host(row<EXC, DB, LAT_PUT, LAT_WAIT>(
			"exclusive, queues in host memory, put + wait", 0, 1, 0)),
		row<EXC, DB, LAT_PUT, LAT_NONE, true>("complete: put alone", 0, 1, 0.33),
		row<EXC, DB, LAT_PUT, LAT_WAIT, true>("complete: put + wait", 1.35, 0, 0),
		row<EXC, DB, LAT_PUT, LAT_POLL, true>("complete: put + poll_cq_at", 0, 1, 0),
		row<EXC, PROXY, LAT_PUT, LAT_WAIT, true>("complete: proxy, put + wait", 1.30, 0, 0),
#ifdef GDK_QP_STATE_H /* the peer's puts treat this handler as CPU_PROXY */
		row<EXC, BF, LAT_PUT, LAT_WAIT>("exclusive, BF, put + wait", 0, 0, 0),
#endif
	};
}

/* Results of one row at one delay. */
struct lat_result {
	std::vector<double> us; /* sorted */
	uint64_t verified, wrong, bad;
};

static double part_of(const struct lat_result *res, double part)
{
	const size_t n = res->us.size();

	return n ? res->us[std::min(n - 1, (size_t)(part * (double)n))] : 0;
}

static void start_nic(struct post_rig *r, const struct lat_job *job, struct lat_seen *seen,
		      const char *what)
{
	const double end = seconds() + POST_HANG_S;

	r->up[0] = 0;
	lat_nic<<<1, 1, 0, r->nic>>>(*job, seen, r->up);
	CK(cudaGetLastError());
	while (!r->up[0])
		if (seconds() > end) {
			printf("HANG\t%s: the NIC did not start\n", what);
			fflush(stdout);
			_exit(3);
		}
}

static struct lat_job job_of(const struct post_rig *r, const struct lat_row *w,
			     const struct post_watch *watch, double rate, int delay_ns)
{
	struct lat_job j = {};

	j.watch = *watch;
	j.ops = LAT_OPS;
	j.slots = w->slots;
	j.opcode[0] = w->opcode[0];
	j.opcode[1] = w->opcode[1];
	j.halves = r->handler == POST_BF ? 2 : 1;
	j.recorded = r->handler == POST_DB || r->handler == POST_BF;
	j.delay = (long long)(delay_ns * rate);
	j.record_limit = (long long)(LAT_RECORD_NS * rate);
	return j;
}

/* Adds the durations of a run above the delay, and the errors that both sides found. */
static void take_results(struct lat_result *res, const struct lat_load *load,
			 const struct lat_seen *dev, double rate, long long delay)
{
	std::vector<int32_t> cycles(LAT_OPS);
	struct lat_seen seen[2];

	CK(cudaMemcpy(seen, dev, sizeof(seen), cudaMemcpyDeviceToHost));
	for (const struct lat_seen &s : seen) {
		res->verified += s.verified;
		res->wrong += s.wrong;
		res->bad |= s.bad;
	}
	if (!load->cycles) {
		res->us.push_back((double)seen[1].ns / (load->ops - LAT_WARM) / 1e3);
		return;
	}
	CK(cudaMemcpy(cycles.data(), load->cycles, LAT_OPS * sizeof(cycles[0]),
		      cudaMemcpyDeviceToHost));
	for (uint32_t i = LAT_WARM; i < LAT_OPS; i++)
		res->us.push_back((double)(cycles[i] - delay) / rate / 1e3);
}

/* Runs one row at one place: with the NIC, or, if it is a loop, alone. */
static void run_once(struct lat_result *res, const struct lat_row *w, uint32_t place, int delay_ns)
{
	std::atomic<int> stop(w->loop || w->base.handler != POST_PROXY);
	const double rate = time_rate();
	struct post_options o = {};
	struct lat_load load = {};
	struct lat_seen *seen;
	struct lat_job job;
	struct post_rig rig;

	o.host_queues = w->host_queues;
	o.reg_on_gpu = !w->loop && w->base.handler != POST_PROXY;
	rig_open(&rig, &o, &w->base, place);
	load.ops = w->loop ? LAT_LOOP_OPS + LAT_WARM : LAT_OPS;
	load.slots = w->slots;
	load.gap = (long long)(LAT_GAP_NS * rate);
	rig_reset(&rig, (uint64_t)load.ops * load.slots);
	CK(cudaMemcpy(&load.watch, rig.watches, sizeof(load.watch), cudaMemcpyDeviceToHost));
	CK(cudaMalloc(&seen, 2 * sizeof(*seen)));
	CK(cudaMemset(seen, 0, 2 * sizeof(*seen)));
	job = job_of(&rig, w, &load.watch, rate, delay_ns);
	if (w->loop)
		rig_fill_cqes(&rig);
	else
		CK(cudaMalloc(&load.cycles, LAT_OPS * sizeof(*load.cycles)));
	CK(cudaDeviceSynchronize());
	std::thread passing(rig_pass_on, &rig, &stop);
	if (!w->loop)
		start_nic(&rig, &job, seen, w->name);
	w->kernel<<<1, 1, 0, rig.post>>>((QP *)rig.qps, load, seen + 1);
	CK(cudaGetLastError());
	rig_sync(rig.post, w->name);
	rig_sync(rig.nic, w->name);
	stop = 1;
	passing.join();
	take_results(res, &load, seen, rate, job.delay);
	if (rig_end(&rig, (uint64_t)load.ops * load.slots, 1, 0)) {
		res->wrong++;
		res->bad |= POST_BAD_END;
	}
	CK(cudaFree(seen));
	if (load.cycles)
		CK(cudaFree(load.cycles));
	rig_close(&rig);
}

static struct lat_result measure(const struct lat_row *w, int delay_ns)
{
	struct lat_result res = {};

	for (uint32_t place = 0; place < LAT_PLACES; place++)
		run_once(&res, w, place, delay_ns);
	std::sort(res.us.begin(), res.us.end());
	return res;
}

/* zero: results without delay. */
static void print_row(size_t number, const struct lat_row *w, const struct lat_result *at,
		      const struct lat_result *zero)
{
	printf("latency\t%zu\t%s\t%.3f\t%.3f\t%.3f\t%.3f", number, w->name, part_of(at, 0.5),
	       part_of(at, 0.99), part_of(zero, 0.5), part_of(zero, 0.99));
	printf("\t%.4g\t%.4g\t%.4g\t%llu\t%llu\t0x%llx\n", w->required, w->ratio, w->goal,
	       (unsigned long long)(at->verified + zero->verified),
	       (unsigned long long)(at->wrong + zero->wrong),
	       (unsigned long long)(at->bad | zero->bad));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const std::vector<struct lat_row> all = rows();

	time_open();
	for (size_t i = (size_t)time_first(argc, argv); i < all.size(); i++) {
		const struct lat_row *w = &all[i];
		const struct lat_result at = measure(w, w->loop ? 0 : LAT_DELAY_NS);
		const struct lat_result zero = w->loop ? lat_result() : measure(w, 0);

		print_row(i, w, &at, &zero);
	}
	return 0;
}
