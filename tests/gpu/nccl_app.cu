/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * usage: nccl_app FOLDER RANK GPU collectives|gin|gin-proxy [BYTES]
 * One of two processes that use NCCL without changes: collectives and messages from 4
 * bytes to BYTES, or kernels that put to the other GPU themselves (GIN, GPU-initiated
 * networking; BYTES is ignored). All received data is checked on the GPU. Rank 0 prints
 * one line per operation and size: operation, bytes, time, GB/s, errors. Rank 1 prints
 * only the lines with errors.
 */
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define NEED(call) \
	do { \
		if (!(call)) { \
			fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #call); \
			exit(1); \
		} \
	} while (0)
#define CUDA(call) \
	do { \
		cudaError_t err_ = (call); \
		if (err_ != cudaSuccess) { \
			fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, rank, \
				#call, cudaGetErrorString(err_)); \
			exit(1); \
		} \
	} while (0)
#define NCCL(call) \
	do { \
		ncclResult_t err_ = (call); \
		if (err_ != ncclSuccess) { \
			fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, rank, \
				#call, ncclGetLastError(NULL)); \
			exit(1); \
		} \
	} while (0)

static int rank, bad;
static size_t most = 64u << 20;
static ncclComm_t comm;
static cudaStream_t stream;
static unsigned *errors; /* in GPU memory, incremented by check() */

/* ---- data: word i of rank r in a round ---- */

__host__ __device__ static unsigned word(size_t i, unsigned r, unsigned round)
{
	return (unsigned)(i * 2654435761u) ^ (r * 0x9e3779b9u + round * 0x85ebca6bu);
}

__global__ void fill(unsigned *to, size_t n, unsigned r, unsigned round)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)blockDim.x * gridDim.x)
		to[i] = word(i, r, round);
}

/* Checks n words, beginning with word `first` of the data. sum: expects the sum of
 * both ranks' data, otherwise the data of rank r. */
__global__ void check(const unsigned *got, size_t first, size_t n, unsigned r, unsigned round,
		      bool sum, unsigned *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)blockDim.x * gridDim.x) {
		unsigned want = word(first + i, sum ? 0 : r, round);

		if (sum)
			want += word(first + i, 1, round);
		if (got[i] != want)
			atomicAdd(wrong, 1);
	}
}

static double now(void)
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

static void report(const char *what, size_t bytes, double seconds)
{
	unsigned wrong;

	CUDA(cudaMemcpyAsync(&wrong, errors, 4, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaMemsetAsync(errors, 0, 4, stream));
	CUDA(cudaStreamSynchronize(stream));
	bad += wrong != 0;
	if (!rank || wrong)
		printf("%-14s %9zu bytes %8.1f us %7.3f GB/s %s (%u wrong)\n", what, bytes,
		       seconds * 1e6, (double)bytes / seconds / 1e9, wrong ? "FAIL" : "ok", wrong);
	fflush(stdout);
}

/* ---- collectives ---- */

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, SEND_RECV, KINDS };
static const char *const names[KINDS] = { "all_reduce", "all_gather", "reduce_scatter", "broadcast",
					  "send_recv" };

static void one_call(enum kind kind, const unsigned *in, unsigned *out, size_t n)
{
	switch (kind) {
	case ALL_REDUCE:
		NCCL(ncclAllReduce(in, out, n, ncclUint32, ncclSum, comm, stream));
		break;
	case ALL_GATHER: /* n words in total, n / 2 from each rank */
		NCCL(ncclAllGather(in, out, n / 2, ncclUint32, comm, stream));
		break;
	case REDUCE_SCATTER:
		NCCL(ncclReduceScatter(in, out, n / 2, ncclUint32, ncclSum, comm, stream));
		break;
	case BROADCAST:
		NCCL(ncclBroadcast(in, out, n, ncclUint32, 1, comm, stream));
		break;
	default:
		NCCL(ncclGroupStart());
		NCCL(ncclSend(in, n, ncclUint32, 1 - rank, comm, stream));
		NCCL(ncclRecv(out, n, ncclUint32, 1 - rank, comm, stream));
		NCCL(ncclGroupEnd());
	}
}

static void check_call(enum kind kind, const unsigned *out, size_t n, unsigned round)
{
	const unsigned peer = (unsigned)(1 - rank);

	switch (kind) {
	case ALL_REDUCE:
		check<<<64, 256, 0, stream>>>(out, 0, n, 0, round, true, errors);
		break;
	case ALL_GATHER:
		check<<<64, 256, 0, stream>>>(out, 0, n / 2, 0, round, false, errors);
		check<<<64, 256, 0, stream>>>(out + n / 2, 0, n / 2, 1, round, false, errors);
		break;
	case REDUCE_SCATTER:
		check<<<64, 256, 0, stream>>>(out, rank ? n / 2 : 0, n / 2, 0, round, true, errors);
		break;
	case BROADCAST:
		check<<<64, 256, 0, stream>>>(out, 0, n, 1, round, false, errors);
		break;
	default:
		check<<<64, 256, 0, stream>>>(out, 0, n, peer, round, false, errors);
	}
}

/* Reports the fastest call, because the first one includes the time to connect. */
static void measure(enum kind kind, size_t bytes, unsigned *in, unsigned *out)
{
	int rounds = bytes >= 16u << 20 ? 3 : 6;
	double best = 1e9, start;

	for (int round = 0; round < rounds; round++) {
		fill<<<64, 256, 0, stream>>>(in, bytes / 4, (unsigned)rank, (unsigned)round);
		CUDA(cudaMemsetAsync(out, 0xee, bytes, stream));
		CUDA(cudaStreamSynchronize(stream));
		start = now();
		one_call(kind, in, out, bytes / 4);
		CUDA(cudaStreamSynchronize(stream));
		if (now() - start < best)
			best = now() - start;
		check_call(kind, out, bytes / 4, (unsigned)round);
		CUDA(cudaGetLastError());
	}
	report(names[kind], bytes, best);
}

static void collectives(void)
{
	static const size_t sizes[] = { 4, 1000, 65536, 1u << 20, 4u << 20, 16u << 20, 64u << 20 };
	unsigned *in, *out;

	CUDA(cudaMalloc(&in, most));
	CUDA(cudaMalloc(&out, most));
	for (int kind = 0; kind < KINDS; kind++)
		for (size_t bytes : sizes)
			if (bytes <= most && (bytes >= 8 || kind == ALL_REDUCE) &&
			    (kind == ALL_REDUCE || bytes < 64u << 20))
				measure((enum kind)kind, bytes, in, out);
	CUDA(cudaFree(in));
	CUDA(cudaFree(out));
}

/* ---- device-initiated ---- */

struct put_args {
	ncclWindow_t out, in;
	size_t piece; /* bytes per put */
	unsigned puts;
	/* Value of the signal before any put. The kernel cannot read it itself, because the
	 * peer may put before this kernel starts. */
	uint64_t before;
};

__global__ void read_signals(ncclDevComm dev, uint64_t *values)
{
	ncclGin gin{ dev, 0 };

	values[0] = gin.readSignal(0);
	values[1] = gin.readSignal(1);
}

/* Each thread puts its pieces. All of the peer's pieces have arrived once the signal
 * has counted them. */
__global__ void put_all(ncclDevComm dev, struct put_args a)
{
	ncclGin gin{ dev, 0 };
	int peer = 1 - dev.rank;

	for (unsigned i = threadIdx.x; i < a.puts; i += blockDim.x)
		gin.put(ncclTeamWorld(dev), peer, a.in, i * a.piece, a.out, i * a.piece, a.piece,
			ncclGin_SignalInc{ 0 });
	gin.waitSignal(ncclCoopCta(), 0, a.before + a.puts);
	gin.flush(ncclCoopCta());
}

/*
 * A word is sent back and forth, either inline in the WQE (values) or from memory. The
 * proxy of NCCL 2.28.9 does not support the inline form: for putValue it posts a WQE
 * whose local memory is not registered.
 */
__global__ void ping_pong(ncclDevComm dev, ncclWindow_t out, ncclWindow_t in, unsigned rounds,
			  uint64_t seen, bool values, unsigned *wrong)
{
	volatile uint64_t *word = (volatile uint64_t *)ncclGetLocalPointer(out, 0);
	ncclGin gin{ dev, 0 };
	int peer = 1 - dev.rank;

	for (unsigned i = 0; i < 2 * rounds; i++) {
		if (i % 2 == dev.rank) {
			if (values) {
				gin.putValue(ncclTeamWorld(dev), peer, in, 0, (uint64_t)i,
					     ncclGin_SignalInc{ 1 });
				continue;
			}
			*word = i;
			__threadfence_system();
			gin.put(ncclTeamWorld(dev), peer, in, 0, out, 0, 8, ncclGin_SignalInc{ 1 });
			continue;
		}
		gin.waitSignal(ncclCoopThread(), 1, seen + i / 2 + 1);
		if (*(volatile uint64_t *)ncclGetLocalPointer(in, 0) != i)
			atomicAdd(wrong, 1);
	}
	gin.flush(ncclCoopThread());
}

static void meet(void)
{
	static int *word_of_all;

	if (!word_of_all)
		CUDA(cudaMalloc(&word_of_all, 4));
	NCCL(ncclAllReduce(word_of_all, word_of_all, 1, ncclInt, ncclMax, comm, stream));
	CUDA(cudaStreamSynchronize(stream));
}

static void puts_of(const ncclDevComm &dev, struct put_args a, unsigned *out, unsigned *in,
		    unsigned round)
{
	size_t words = a.piece * a.puts / 4;
	char name[32];
	double start;

	fill<<<64, 256, 0, stream>>>(out, words, (unsigned)rank, round);
	CUDA(cudaMemsetAsync(in, 0xee, words * 4, stream));
	meet();
	start = now();
	put_all<<<1, 32, 0, stream>>>(dev, a);
	CUDA(cudaStreamSynchronize(stream));
	start = now() - start;
	check<<<64, 256, 0, stream>>>(in, 0, words, (unsigned)(1 - rank), round, false, errors);
	snprintf(name, sizeof(name), "gin %u puts", a.puts);
	report(name, words * 4, start);
}

static void gin_kernels(bool by_value)
{
	static const size_t pieces[] = { 64, 4096, 65536, 1u << 20 };
	ncclDevCommRequirements reqs;
	unsigned *out, *in, round = 0;
	ncclWindow_t out_win, in_win;
	uint64_t signals[2], *values;
	ncclDevComm dev;
	double start;

	memset(&reqs, 0, sizeof(reqs));
	reqs.ginForceEnable = true;
	reqs.ginSignalCount = 2;
	NCCL(ncclMemAlloc((void **)&out, 16u << 20));
	NCCL(ncclMemAlloc((void **)&in, 16u << 20));
	CUDA(cudaMemset(in, 0, 16u << 20));
	NCCL(ncclCommWindowRegister(comm, out, 16u << 20, &out_win, NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclCommWindowRegister(comm, in, 16u << 20, &in_win, NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclDevCommCreate(comm, &reqs, &dev));
	CUDA(cudaMalloc(&values, sizeof(signals)));
	read_signals<<<1, 1, 0, stream>>>(dev, values);
	CUDA(cudaMemcpyAsync(signals, values, sizeof(signals), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (size_t piece : pieces)
		for (unsigned puts = 1; puts <= 64 && piece * puts <= 16u << 20; puts *= 8) {
			puts_of(dev, { out_win, in_win, piece, puts, signals[0] }, out, in,
				round++);
			signals[0] += puts;
		}
	meet();
	start = now();
	ping_pong<<<1, 1, 0, stream>>>(dev, out_win, in_win, 100, signals[1], by_value, errors);
	CUDA(cudaStreamSynchronize(stream));
	report("gin ping-pong", 100 * 8, now() - start);
	meet();
	NCCL(ncclDevCommDestroy(comm, &dev));
	NCCL(ncclCommWindowDeregister(comm, out_win));
	NCCL(ncclCommWindowDeregister(comm, in_win));
}

/* ---- start ---- */

static void exchange_id(const std::string &folder, ncclUniqueId *id)
{
	std::string path = folder + "/id", draft = path + ".new";
	FILE *f;

	if (!rank) {
		NCCL(ncclGetUniqueId(id));
		NEED((f = fopen(draft.c_str(), "w")) && fwrite(id, sizeof(*id), 1, f) == 1);
		NEED(!fclose(f) && !rename(draft.c_str(), path.c_str()));
		return;
	}
	while (!(f = fopen(path.c_str(), "r")))
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	NEED(fread(id, sizeof(*id), 1, f) == 1 && !fclose(f));
}

/* Calls _exit() on SIGTERM: the software NIC reports its counters in _exit(), but not if
 * the signal kills the process. */
static void give_up(int)
{
	_exit(124);
}

int main(int argc, char **argv)
{
	ncclUniqueId id;
	int version;

	signal(SIGTERM, give_up);

	NEED(argc >= 5);
	rank = atoi(argv[2]);
	if (argc > 5)
		most = strtoul(argv[5], NULL, 0);
	CUDA(cudaSetDevice(atoi(argv[3])));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&errors, 4));
	CUDA(cudaMemset(errors, 0, 4));
	NCCL(ncclGetVersion(&version));
	exchange_id(argv[1], &id);
	NCCL(ncclCommInitRank(&comm, 2, id, rank));
	if (!rank)
		printf("NCCL %d, %s\n", version, argv[4]);
	if (!strncmp(argv[4], "gin", 3))
		gin_kernels(strcmp(argv[4], "gin-proxy"));
	else
		collectives();
	NCCL(ncclCommDestroy(comm));
	return bad != 0;
}
