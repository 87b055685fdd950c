/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests NCCL's InfiniBand transport as a library: two processes connect through
 * ncclNetIb (two-sided) and ncclRmaIbProxy (one-sided) and transfer data in host
 * memory; every byte is checked. Functions of NCCL and CUDA that the transport needs
 * are defined at the end; there is no GPU.
 * usage: nccl_net_driver FOLDER RANK ROUNDS; the ranks exchange their addresses in
 * FOLDER.
 */
#include "common.h"
#include "cudawrap.h"
#include "gin.h"

#include <chrono>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

#define NEED(call) \
	do { \
		if (!(call)) { \
			fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #call); \
			exit(1); \
		} \
	} while (0)
#define NCCL(call) NEED((call) == ncclSuccess)

extern ncclNet_t ncclNetIb;
extern ncclRma_t ncclRmaIbProxy;

static int rank, rounds;
static std::string folder;

/* ---- exchange between the ranks, through files ---- */

static void meet(const char *what, const void *mine, void *theirs, size_t len)
{
	std::string own = folder + "/" + what + "." + std::to_string(rank);
	std::string other = folder + "/" + what + "." + std::to_string(1 - rank);
	FILE *f = fopen((own + ".new").c_str(), "w");

	NEED(f && fwrite(mine, 1, len, f) == len && !fclose(f));
	NEED(!rename((own + ".new").c_str(), own.c_str()));
	while (!(f = fopen(other.c_str(), "r")))
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
	NEED(fread(theirs, 1, len, f) == len && !fclose(f));
}

static void barrier(const char *what)
{
	char c = 0;

	meet(what, &c, &c, 1);
}

static uint8_t pattern(size_t at, unsigned round, unsigned from)
{
	return (uint8_t)((at * 2654435761u >> 16) + 7 * round + from);
}

static void fill(uint8_t *mem, size_t len, unsigned round)
{
	for (size_t i = 0; i < len; i++)
		mem[i] = pattern(i, round, (unsigned)rank);
}

static void check(const uint8_t *mem, size_t len, unsigned round, const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != pattern(i, round, (unsigned)(1 - rank))) {
			fprintf(stderr, "rank %d: %s, round %u: byte %zu of %zu is %#x\n", rank,
				what, round, i, len, mem[i]);
			exit(1);
		}
}

/* ---- two-sided ---- */

#define FLIGHT 8
#define MOST   (1u << 20)

struct sides {
	void *listen, *send, *recv, *send_mr, *recv_mr;
	uint8_t *out, *in;
};

static struct sides connect_both(void *ctx)
{
	char mine[NCCL_NET_HANDLE_MAXSIZE] = "", theirs[NCCL_NET_HANDLE_MAXSIZE];
	struct sides s = {};

	NCCL(ncclNetIb.listen(ctx, 0, mine, &s.listen));
	meet("handle", mine, theirs, sizeof(mine));
	while (!s.send || !s.recv) {
		if (!s.send)
			NCCL(ncclNetIb.connect(ctx, 0, theirs, &s.send, NULL));
		if (!s.recv)
			NCCL(ncclNetIb.accept(s.listen, &s.recv, NULL));
	}
	return s;
}

/* Registers one buffer by its address and the other by a file descriptor, like a dmabuf. */
static void register_both(struct sides *s)
{
	int fd = memfd_create("payload", MFD_CLOEXEC);

	s->out = (uint8_t *)aligned_alloc(4096, FLIGHT * MOST);
	NEED(s->out && !ftruncate(fd, FLIGHT * MOST));
	s->in = (uint8_t *)mmap(NULL, FLIGHT * MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(s->in != MAP_FAILED);
	NCCL(ncclNetIb.regMr(s->send, s->out, FLIGHT * MOST, NCCL_PTR_HOST, &s->send_mr));
	NCCL(ncclNetIb.regMrDmaBuf(s->recv, s->in, FLIGHT * MOST, NCCL_PTR_CUDA, 0, fd,
				   &s->recv_mr));
	close(fd);
}

static void finish(std::vector<void *> &requests, size_t expect)
{
	int done, sizes[NCCL_NET_IB_MAX_RECVS];

	for (void *&r : requests) {
		for (done = 0; !done;)
			NCCL(ncclNetIb.test(r, &done, sizes));
		if (expect)
			NEED((size_t)sizes[0] == expect);
	}
	requests.clear();
}

/* Sends FLIGHT messages of `len` bytes in each direction at once. */
static void exchange(struct sides *s, size_t len, unsigned round)
{
	std::vector<void *> sends, recvs;
	void *r, *to;
	int tag;

	for (int i = 0; i < FLIGHT; i++)
		fill(s->out + i * MOST, len, round + i);
	memset(s->in, 0xee, FLIGHT * MOST);
	for (int i = 0; i < FLIGHT; i++) {
		to = s->in + i * MOST;
		tag = i;
		for (r = NULL; !r;)
			NCCL(ncclNetIb.irecv(s->recv, 1, &to, &len, &tag, &s->recv_mr, NULL, &r));
		recvs.push_back(r);
	}
	for (int i = 0; i < FLIGHT; i++) {
		for (r = NULL; !r;)
			NCCL(ncclNetIb.isend(s->send, s->out + i * MOST, len, i, s->send_mr, NULL,
					     &r));
		sends.push_back(r);
	}
	finish(recvs, len);
	finish(sends, len);
	for (int i = 0; i < FLIGHT; i++) {
		check(s->in + i * MOST, len, round + i, "message");
		NEED(s->in[i * MOST + len] == 0xee);
	}
}

/* One receive request for several messages, which their tags distinguish. */
static void exchange_group(struct sides *s, unsigned round)
{
	size_t lens[4] = { 1, 100, 5000, 70000 };
	void *to[4], *mrs[4], *r = NULL;
	std::vector<void *> sends, recvs;
	int tags[4], done = 0, sizes[NCCL_NET_IB_MAX_RECVS];

	for (int i = 0; i < 4; i++) {
		to[i] = s->in + i * MOST;
		mrs[i] = s->recv_mr;
		tags[i] = 40 + i;
		fill(s->out + i * MOST, lens[i], round + i);
	}
	while (!r)
		NCCL(ncclNetIb.irecv(s->recv, 4, to, lens, tags, mrs, NULL, &r));
	recvs.push_back(r);
	for (int i = 3; i >= 0; i--) { /* not in the order of the receives */
		for (r = NULL; !r;)
			NCCL(ncclNetIb.isend(s->send, s->out + i * MOST, lens[i], tags[i],
					     s->send_mr, NULL, &r));
		sends.push_back(r);
	}
	while (!done)
		NCCL(ncclNetIb.test(recvs[0], &done, sizes));
	for (int i = 0; i < 4; i++) {
		NEED((size_t)sizes[i] == lens[i]);
		check(s->in + i * MOST, lens[i], round + i, "message of a group");
	}
	finish(sends, 0);
}

static void two_sided(void *ctx)
{
	static const size_t lens[] = { 1, 63, 4096, 65537, MOST - 4096 };
	struct sides s = connect_both(ctx);
	auto start = std::chrono::steady_clock::now();
	size_t bytes = 0;
	double took;

	register_both(&s);
	for (int round = 0; round < rounds; round++)
		for (size_t len : lens) {
			exchange(&s, len, (unsigned)round);
			bytes += FLIGHT * len;
		}
	exchange_group(&s, 3);
	took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
	printf("rank %d: two-sided: %zu bytes each way, %.3f GB/s\n", rank, bytes,
	       (double)bytes / took / 1e9);
	barrier("two-sided");
	NCCL(ncclNetIb.deregMr(s.send, s.send_mr));
	NCCL(ncclNetIb.deregMr(s.recv, s.recv_mr));
	NCCL(ncclNetIb.closeSend(s.send));
	NCCL(ncclNetIb.closeRecv(s.recv));
	NCCL(ncclNetIb.closeListen(s.listen));
}

/* ---- one-sided ---- */

#define AREA (1u << 20)

struct area {
	void *coll, *rma, *mr;
	uint8_t *mem; /* data to send, received data, fetched data, then the signal */
};

static void wait_for(struct area *a, void *request)
{
	int done = 0;

	while (!done)
		NCCL(ncclRmaIbProxy.test(a->coll, request, &done));
}

static struct area area_open(void *ctx, void **listen)
{
	char handles[2][NCCL_NET_HANDLE_MAXSIZE] = {};
	void *all[2] = { handles[0], handles[1] };
	ncclRmaConfig_t config = {};
	struct area a = {};

	config.nContexts = 1;
	config.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF;
	config.rankStride = 1;
	NCCL(ncclRmaIbProxy.listen(ctx, 0, handles[rank], listen));
	meet("rma", handles[rank], handles[1 - rank], NCCL_NET_HANDLE_MAXSIZE);
	NCCL(ncclRmaIbProxy.connect(ctx, all, 2, rank, *listen, &a.coll));
	NCCL(ncclRmaIbProxy.createContext(a.coll, &config, &a.rma));
	a.mem = (uint8_t *)aligned_alloc(4096, 3 * AREA + 4096);
	NEED(a.mem);
	memset(a.mem, 0, 3 * AREA + 4096);
	NCCL(ncclRmaIbProxy.regMrSym(a.coll, a.mem, 3 * AREA + 4096, NCCL_PTR_HOST, 0, &a.mr));
	return a;
}

/* Posts a put, then a put with a signal. When the peer sees the signal, the data of
 * both must have arrived. */
static void put_round(struct area *a, size_t len, unsigned round)
{
	uint64_t *signal = (uint64_t *)(a->mem + 3 * AREA);
	void *r[2];

	fill(a->mem, len, round);
	NCCL(ncclRmaIbProxy.iput(a->rma, 0, 0, a->mr, len / 2, AREA, a->mr, (uint32_t)(1 - rank),
				 &r[0]));
	NCCL(ncclRmaIbProxy.iputSignal(a->rma, 0, len / 2, a->mr, len - len / 2, AREA + len / 2,
				       a->mr, (uint32_t)(1 - rank), 3 * AREA, a->mr, 1,
				       NCCL_NET_SIGNAL_OP_INC, false, &r[1]));
	wait_for(a, r[0]);
	wait_for(a, r[1]);
	while (__atomic_load_n(signal, __ATOMIC_ACQUIRE) != round)
		std::this_thread::yield();
	check(a->mem + AREA, len, round, "put");
}

static void get_round(struct area *a, size_t len, unsigned round)
{
	void *r;

	memset(a->mem + 2 * AREA, 0, len);
	NCCL(ncclRmaIbProxy.iget(a->rma, 0, 0, a->mr, len, 2 * AREA, a->mr, (uint32_t)(1 - rank),
				 &r));
	wait_for(a, r);
	check(a->mem + 2 * AREA, len, round, "get");
	NCCL(ncclRmaIbProxy.iflush(a->rma, 0, a->mr, (uint32_t)rank, &r));
	wait_for(a, r);
}

static void one_sided(void)
{
	static const size_t lens[] = { 2, 64, 4097, AREA };
	void *ctx, *listen = NULL;
	unsigned round = 0;
	struct area a;

	NCCL(ncclRmaIbProxy.init(&ctx, 0, NULL));
	a = area_open(ctx, &listen);
	for (int i = 0; i < rounds; i++)
		for (size_t len : lens) {
			round++;
			put_round(&a, len, round);
			get_round(&a, len, round);
			barrier(("one-sided" + std::to_string(round)).c_str());
		}
	printf("rank %d: one-sided: %u rounds of put, signal and get\n", rank, round);
	NCCL(ncclRmaIbProxy.deregMrSym(a.coll, a.mr));
	barrier("one-sided end");
	NCCL(ncclRmaIbProxy.destroyContext(a.rma));
	NCCL(ncclRmaIbProxy.closeColl(a.coll));
	NCCL(ncclRmaIbProxy.closeListen(listen));
	NCCL(ncclRmaIbProxy.finalize(ctx));
}

int main(int argc, char **argv)
{
	ncclNetCommConfig_t config = { NCCL_NET_TRAFFIC_CLASS_UNDEF };
	ncclNetProperties_t props;
	int n = 0;
	void *ctx;

	NEED(argc == 4);
	folder = argv[1];
	rank = atoi(argv[2]);
	rounds = atoi(argv[3]);
	NCCL(ncclNetIb.init(&ctx, 0, &config, NULL, NULL));
	NCCL(ncclNetIb.devices(&n));
	NEED(n == 1);
	NCCL(ncclNetIb.getProperties(0, &props));
	NEED(props.ptrSupport & NCCL_PTR_DMABUF);
	two_sided(ctx);
	one_sided();
	NCCL(ncclNetIb.finalize(ctx));
	return 0;
}

/* ---- functions that the transport needs from the rest of NCCL and from CUDA ---- */

bool ncclEnvPluginInitialized(void)
{
	return true;
}

void ncclInitEnv(void)
{
}

const char *ncclEnvPluginGetEnv(const char *name)
{
	return getenv(name);
}

int64_t ncclParamSetCpuStackSize(void)
{
	return 0;
}

/* The one-sided transport requires a GPU whose memory can be registered by dmabuf. */
static CUresult CUDAAPI device_attribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	(void)dev;
	*value = attribute == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI error_string(CUresult error, const char **text)
{
	(void)error;
	*text = "a CUDA error";
	return CUDA_SUCCESS;
}

PFN_cuDeviceGetAttribute_v2000 pfn_cuDeviceGetAttribute = device_attribute;
PFN_cuGetErrorString_v6000 pfn_cuGetErrorString = error_string;

#define NO_CUDA(name, ...) \
	extern "C" cudaError_t CUDARTAPI name(__VA_ARGS__) \
	{ \
		return cudaErrorNotSupported; \
	}
NO_CUDA(cudaHostUnregister, void *)
NO_CUDA(cudaHostRegister, void *, size_t, unsigned int)
NO_CUDA(cudaHostGetDevicePointer, void **, void *, unsigned int)
NO_CUDA(cudaDeviceGetPCIBusId, char *, int, int)
NO_CUDA(cudaThreadExchangeStreamCaptureMode, enum cudaStreamCaptureMode *)
NO_CUDA(cudaDeviceGetAttribute, int *, enum cudaDeviceAttr, int)

extern "C" cudaError_t CUDARTAPI cudaGetDevice(int *dev)
{
	*dev = 0;
	return cudaSuccess;
}

extern "C" cudaError_t CUDARTAPI cudaGetLastError(void)
{
	return cudaSuccess;
}

extern "C" const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
	(void)error;
	return "CUDA is not available";
}

/* Functions for GPU-initiated queues: gin.cc refers to them, but no test calls them. */
#define NO_GDAKI(name, ...) \
	ncclResult_t name(__VA_ARGS__) \
	{ \
		return ncclInternalError; \
	}
NO_GDAKI(ncclGinGdakiCreateContext, void *, int, int, int, int, int, int, void **,
	 ncclNetDeviceHandle_t **)
NO_GDAKI(ncclGinGdakiDestroyContext, void *)
NO_GDAKI(ncclGinGdakiRegMrSym, void *, void *, size_t, int, uint64_t, void **, void **)
NO_GDAKI(ncclGinGdakiDeregMrSym, void *, void *)
NO_GDAKI(ncclGinGdakiProgress, void *)
NO_GDAKI(ncclGinGdakiQueryLastError, void *, bool *)
