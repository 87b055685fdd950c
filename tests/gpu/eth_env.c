/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What every case of the GPU test of Ethernet queues needs: see eth_host.h. */
#include <endian.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gdk_eth_steer.h"
#include "gdk_sdk_eth_rxq_dev.h"
#include "gdk_sdk_eth_txq_dev.h"

#include "../lib/bound.h"
#include "eth_host.h"

/* Seconds without progress until running kernels are aborted, then until they must have ended. */
#define BOUND_S (et_env.testpmd ? 150u : 25u)
#define GRACE_S 10u
/* How long a thread waits for progress. CPU threads wait until the abort. On a busy machine testpmd
 * may not poll for seconds. */
#ifdef GT_BOUND_S
#define ON_GPU	 false
#define LIMIT_NS (UINT64_MAX - 1)
#else
#define ON_GPU	 true
#define LIMIT_NS (et_env.testpmd ? 60000000000ull : 10000000000ull)
#endif
/* Packets on the way to testpmd and back, less than its ring has slots. */
#define ET_TESTPMD_WINDOW 400u

struct et_env et_env;
static char complaint[300];

int et_complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
	return -1;
}

const char *et_complaint(void)
{
	return complaint;
}

uint64_t et_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- NIC, GPU, memory ---- */

static void *alloc(size_t bytes, enum doca_gpu_mem_type type, void **cpu)
{
	void *gpu, *unused = NULL;

	ET_REQUIRE(!doca_gpu_mem_alloc(et_env.gpu, bytes, 65536, type, &gpu, cpu ? cpu : &unused));
	return gpu;
}

/* GPU memory of zeros. */
static void *alloc_clear(size_t bytes)
{
	void *p = alloc(bytes, DOCA_GPU_MEM_TYPE_GPU, NULL), *zeros = calloc(1, bytes);

	ET_REQUIRE(zeros && !et_gpu_copy(p, zeros, bytes));
	free(zeros);
	return p;
}

void et_env_open(const char *gpu)
{
	const size_t bytes = ET_MAX_THREADS * sizeof(int);
	struct doca_devinfo **list;
	uint32_t num = 0;

	ET_REQUIRE(!et_gpu_open(gpu));
	ET_REQUIRE(!doca_devinfo_create_list(&list, &num) && num);
	ET_REQUIRE(!doca_dev_open(list[0], &et_env.dev));
	ET_REQUIRE(!doca_devinfo_destroy_list(list));
	ET_REQUIRE(!doca_gpu_create(gpu, &et_env.gpu));
	et_env.sent_gpu = alloc(bytes, DOCA_GPU_MEM_TYPE_CPU_GPU, (void **)&et_env.sent);
	et_env.got_gpu = alloc(bytes, DOCA_GPU_MEM_TYPE_CPU_GPU, (void **)&et_env.got);
}

void et_env_close(void)
{
	ET_REQUIRE(!doca_gpu_mem_free(et_env.gpu, et_env.sent_gpu));
	ET_REQUIRE(!doca_gpu_mem_free(et_env.gpu, et_env.got_gpu));
	ET_REQUIRE(!doca_gpu_destroy(et_env.gpu) && !doca_dev_close(et_env.dev));
}

/* A registered buffer. GPU memory is registered as a dmabuf, if possible. */
static struct doca_mmap *map(size_t bytes, bool on_gpu, void **buf)
{
	struct doca_mmap *m;
	int fd = -1;

	*buf = alloc(bytes, on_gpu ? DOCA_GPU_MEM_TYPE_GPU : DOCA_GPU_MEM_TYPE_CPU_GPU, NULL);
	ET_REQUIRE(!doca_mmap_create(&m) && !doca_mmap_add_dev(m, et_env.dev));
	if (on_gpu && !doca_gpu_dmabuf_fd(et_env.gpu, *buf, bytes, &fd))
		ET_REQUIRE(!doca_mmap_set_dmabuf_memrange(m, fd, *buf, 0, bytes));
	else
		ET_REQUIRE(!doca_mmap_set_memrange(m, *buf, bytes));
	ET_REQUIRE(!doca_mmap_start(m));
	if (fd >= 0)
		close(fd);
	return m;
}

/* ---- queues ---- */

static void start(struct doca_ctx *ctx)
{
	ET_REQUIRE(!doca_ctx_set_datapath_on_gpu(ctx, et_env.gpu) && !doca_ctx_start(ctx));
}

static void open_rxq(struct et_queues *q, const struct et_case *c)
{
	struct gdk_eth_match match = { .value.ether_type = 0 };
	const uint32_t head[2] = { et_word(0, 0, et_env.testpmd), et_word(0, 1, et_env.testpmd) };
	const uint32_t bytes = c->rx_num * ET_SLOT;
	doca_error_t err;

	ET_REQUIRE(!doca_eth_rxq_create(et_env.dev, c->rx_num, ET_SLOT, &q->rxq));
	q->rx_map = map(bytes, c->packets_on_gpu, &q->rx_buf);
	ET_REQUIRE(!doca_eth_rxq_set_pkt_buf(q->rxq, q->rx_map, 0, bytes));
	ET_REQUIRE(!doca_eth_rxq_gpu_set_rq_mem_type(q->rxq, c->mem));
	start(doca_eth_rxq_as_doca_ctx(q->rxq));
	memcpy(match.value.dst_mac, head, 6);
	memset(match.mask.dst_mac, 0xff, 6);
	err = gdk_eth_steer(et_env.dev, &match, &q->rxq, 1, 0, 0, &q->rule);
	if (err == DOCA_ERROR_NOT_PERMITTED) {
		printf("flow rules need CAP_NET_RAW\n");
		exit(77); /* skipped */
	}
	ET_REQUIRE(!err);
}

static void open_txq(struct et_queues *q, const struct et_case *c)
{
	enum doca_gpu_dev_verbs_nic_handler handler;

	ET_REQUIRE(!doca_eth_txq_create(et_env.dev, c->depth, &q->txq));
	ET_REQUIRE(!doca_eth_txq_gpu_set_completion_on_gpu(q->txq));
	ET_REQUIRE(!doca_eth_txq_gpu_set_sq_mem_type(q->txq, c->mem));
	ET_REQUIRE(!gdk_eth_txq_set_nic_handler(q->txq, c->handler));
	start(doca_eth_txq_as_doca_ctx(q->txq));
	ET_REQUIRE(!gdk_eth_txq_get_nic_handler(q->txq, &handler, NULL, 0));
	q->proxy = handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
}

/* Makes both queues begin at an index, a multiple of 2^16: the NIC's indices begin at 0. */
static void preset(struct doca_gpu_eth_txq *txq, struct doca_gpu_eth_rxq *rxq, uint64_t at)
{
	struct gdk_qp_state st;
	struct doca_gpu_eth_txq tx;
	struct doca_gpu_eth_rxq rx;

	ET_REQUIRE(!et_gpu_copy(&tx, txq, sizeof(tx)));
	ET_REQUIRE(!et_gpu_copy(&st, tx.qp.gdk_state, sizeof(st)));
	ET_REQUIRE(!et_gpu_copy(&rx, rxq, sizeof(rx)));
	st.rung = st.completed = st.cqe_ci = st.wanted = st.parked = at;
	tx.wqe_pi = rx.next = rx.freed = at;
	ET_REQUIRE(!et_gpu_copy(tx.qp.gdk_state, &st, sizeof(st)));
	ET_REQUIRE(!et_gpu_copy(txq, &tx, sizeof(tx)) && !et_gpu_copy(rxq, &rx, sizeof(rx)));
}

void et_open(struct et_queues *q, const struct et_case *c, struct et_job *job)
{
	uint32_t key;

	*job = (struct et_job){ .how = c->how,
				.mode = c->mode,
				.exec = c->exec,
				.rx_exec = c->rx_exec,
				.blocks = c->blocks,
				.threads = c->threads,
				.rx_threads = c->rx_threads,
				.rounds = c->rounds,
				.notify = c->notify,
				.each = c->each,
				.window = et_env.testpmd ? ET_TESTPMD_WINDOW : c->rx_num / 2,
				.swapped = et_env.testpmd,
				.max_pkts = c->max_pkts,
				.first_tx = c->preset,
				.first_rx = c->preset,
				.limit_ns = LIMIT_NS,
				.sent = et_env.sent_gpu,
				.got = et_env.got_gpu };
	memset(q, 0, sizeof(*q));
	open_rxq(q, c);
	open_txq(q, c);
	q->tx_map = map((size_t)et_packets(job) * ET_SLOT, c->packets_on_gpu, &q->tx_buf);
	ET_REQUIRE(!doca_mmap_get_mkey(q->tx_map, et_env.dev, &key));
	q->result = alloc_clear(sizeof(*q->result));
	q->seen = alloc_clear(et_packets(job) * sizeof(*q->seen));
	ET_REQUIRE(!doca_eth_rxq_get_gpu_handle(q->rxq, &job->rxq));
	ET_REQUIRE(!doca_eth_txq_get_gpu_handle(q->txq, &job->txq));
	job->buf = q->tx_buf;
	job->key = htobe32(key);
	job->result = q->result;
	job->seen = q->seen;
	if (c->preset)
		preset(job->txq, job->rxq, c->preset);
}

void et_close(struct et_queues *q)
{
	void *const blocks[] = { q->rx_buf, q->tx_buf, q->result, q->seen };

	ET_REQUIRE(!doca_ctx_stop(doca_eth_txq_as_doca_ctx(q->txq)));
	ET_REQUIRE(!doca_eth_txq_destroy(q->txq) && !gdk_eth_steer_destroy(q->rule));
	ET_REQUIRE(!doca_ctx_stop(doca_eth_rxq_as_doca_ctx(q->rxq)));
	ET_REQUIRE(!doca_eth_rxq_destroy(q->rxq));
	ET_REQUIRE(!doca_mmap_destroy(q->rx_map) && !doca_mmap_destroy(q->tx_map));
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		ET_REQUIRE(!doca_gpu_mem_free(et_env.gpu, blocks[i]));
}

/* ---- launches ---- */

int et_launch(const struct et_job *job, bool send, bool recv)
{
	ET_REQUIRE(job->blocks * job->threads <= ET_MAX_THREADS);
	/* A multi-packet send of a warp has packets from all parts of its round. */
	ET_REQUIRE(job->each == 1 || job->window >= job->blocks * job->threads * job->each);
	for (uint32_t i = 0; i < ET_MAX_THREADS; i++) {
		if (send)
			__atomic_store_n(&et_env.sent[i], ET_RUNNING, __ATOMIC_SEQ_CST);
		if (recv)
			__atomic_store_n(&et_env.got[i], ET_RUNNING, __ATOMIC_SEQ_CST);
	}
	return (recv && et_gpu_recv(job)) || (send && et_gpu_send(job))
		       ? et_complain("the launch failed")
		       : 0;
}

static void count(const struct et_queues *q, struct gdk_eth_txq_counters *tx, struct et_result *r)
{
	memset(tx, 0, sizeof(*tx));
	memset(r, 0, sizeof(*r));
	(void)gdk_eth_txq_get_counters(q->txq, tx);
	(void)et_gpu_copy(r, q->result, sizeof(*r));
}

/* Waits until the kernels end, or have made no progress for this time. */
static int wait_for(const struct et_queues *q, uint64_t seconds)
{
	struct bound b = bound_begin(0, ON_GPU);
	const struct timespec nap = { 0, 20000 };
	struct gdk_eth_txq_counters tx = { 0 };
	struct et_result r = { 0 };
	int done;

	while (!(done = et_gpu_done())) {
		if (q->proxy)
			(void)doca_eth_txq_gpu_cpu_proxy_progress(q->txq);
		nanosleep(&nap, NULL);
		if (!bound_passed(&b, tx.completed + r.received, seconds * 1000000000))
			continue;
		count(q, &tx, &r);
		if (bound_passed(&b, tx.completed + r.received, seconds * 1000000000))
			break;
	}
	return done;
}

int et_wait(struct et_queues *q)
{
	struct gdk_eth_txq_counters tx;
	int done = wait_for(q, BOUND_S);
	struct et_result r;

	if (done > 0)
		return 0;
	if (done < 0) {
		et_complain("a kernel failed");
		et_die();
	}
	count(q, &tx, &r);
	(void)gdk_eth_txq_abort(q->txq);
	(void)gdk_eth_rxq_abort(q->rxq);
	et_complain("no progress for %u s: %llu slots reserved, %llu complete, %llu packets "
		    "received",
		    BOUND_S, (unsigned long long)tx.reserved, (unsigned long long)tx.completed,
		    (unsigned long long)r.received);
	if (wait_for(q, GRACE_S) <= 0)
		et_die();
	return -1;
}
