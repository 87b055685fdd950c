/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * GPU, NIC, a receive queue and a send queue, with the interface of the DOCA SDK. Its headers
 * exclude those of DOCA GPUNetIO open, so the other files do not include them.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doca_dev.h"
#include "doca_eth_rxq_gpu_data_path.h"
#include "doca_eth_txq_gpu_data_path.h"
#include "doca_gpunetio.h"
#include "doca_pe.h"
#include "gdk_eth_steer.h"

#include "ethernet.h"
#include "queues.h"

#define SEND_SLOTS 4096u
#define AREAS	   16u

/* A block of memory, which is registered if map is not NULL. */
struct area {
	struct doca_gpu *gpu;
	void *mem;
	struct doca_mmap *map;
};

struct et_queues {
	const struct et_options *opt;
	const struct ex_grid_ops *grid;
	struct doca_gpu *gpu, *cpu; /* cpu: for a receive queue of CPU threads */
	struct doca_dev *dev;
	char device[DOCA_DEVINFO_IBDEV_NAME_SIZE];
	uint8_t mac[6];
	struct doca_eth_rxq *rxq;
	struct doca_eth_txq *txq;
	struct doca_pe *pe;
	struct gdk_eth_rule *rule;
	enum doca_gpu_dev_verbs_nic_handler handler;
	bool receives, sends; /* the contexts run */
	struct area areas[AREAS];
	uint32_t num_areas;
	int *status; /* of each thread of the kernel, GPU address */
	bool hung;   /* the kernel does not end, and still uses the memory of the process */
};

#define TRY(call) \
	do { \
		doca_error_t err_ = call; \
\
		if (err_ != DOCA_SUCCESS) \
			return ex_error("%s: %s", #call, doca_error_get_descr(err_)); \
	} while (0)

/* ---- GPU and NIC ---- */

static bool is_wanted(struct et_queues *q, const struct doca_devinfo *info)
{
	const char *want = q->opt->device;
	uint8_t equal = 0;

	if (doca_devinfo_get_ibdev_name(info, q->device, sizeof(q->device)) != DOCA_SUCCESS)
		return false;
	if (!want || !strcmp(want, q->device))
		return true;
	return strchr(want, ':') &&
	       doca_devinfo_is_equal_pci_addr(info, want, &equal) == DOCA_SUCCESS && equal;
}

static int open_nic(struct et_queues *q)
{
	const char *want = q->opt->device;
	doca_error_t err = DOCA_ERROR_NOT_FOUND;
	struct doca_devinfo **list;
	uint32_t num, i;

	TRY(doca_devinfo_create_list(&list, &num));
	for (i = 0; i < num && err == DOCA_ERROR_NOT_FOUND; i++)
		if (is_wanted(q, list[i]))
			err = doca_dev_open(list[i], &q->dev);
	doca_devinfo_destroy_list(list);
	if (err == DOCA_SUCCESS)
		return et_nic_mac(q->device, q->mac);
	return ex_error("cannot open %s%s: %s (ibv_devices lists the NICs)",
			want ? "the NIC " : "a NIC", want ? want : "", doca_error_get_descr(err));
}

int et_open(struct et_queues **queues, const struct et_options *opt)
{
	struct et_queues *q = calloc(1, sizeof(*q));

	*queues = q;
	if (!q)
		return ex_error("no memory");
	q->opt = opt;
	q->grid = ex_grid_get(opt->gpu);
	if (!q->grid || q->grid->open(opt->gpu))
		return -1;
	TRY(doca_gpu_create(opt->gpu, &q->gpu));
	return open_nic(q) || et_alloc(q, ET_THREADS_MAX * sizeof(*q->status), &q->status) ? -1 : 0;
}

const struct ex_grid_ops *et_grid(const struct et_queues *q)
{
	return q->grid;
}

const struct et_options *et_options(const struct et_queues *q)
{
	return q->opt;
}

int *et_status(const struct et_queues *q)
{
	return q->status;
}

void et_hung(struct et_queues *q)
{
	q->hung = true;
}

const char *et_device(const struct et_queues *q)
{
	return q->device;
}

const uint8_t *et_mac(const struct et_queues *q)
{
	return q->mac;
}

/* ---- memory ---- */

static int alloc(struct et_queues *q, struct doca_gpu *gpu, size_t len, struct area **area)
{
	struct area *a = &q->areas[q->num_areas];

	if (q->num_areas == AREAS)
		return ex_error("too many blocks of memory");
	TRY(doca_gpu_mem_alloc(gpu, len, (size_t)sysconf(_SC_PAGESIZE), DOCA_GPU_MEM_TYPE_GPU,
			       &a->mem, NULL));
	a->gpu = gpu;
	q->num_areas++;
	*area = a;
	return 0;
}

/* GPU memory is registered by a dmabuf if the GPU can export one. */
static int alloc_registered(struct et_queues *q, struct doca_gpu *gpu, size_t len,
			    struct area **area)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	doca_error_t err;
	struct area *a;
	int fd = -1;

	len = (len + page - 1) / page * page;
	if (alloc(q, gpu, len, &a))
		return -1;
	TRY(doca_mmap_create(&a->map));
	TRY(doca_mmap_add_dev(a->map, q->dev));
	if (strcmp(q->opt->gpu, "host") && gpu == q->gpu &&
	    doca_gpu_dmabuf_fd(gpu, a->mem, len, &fd) == DOCA_SUCCESS)
		err = doca_mmap_set_dmabuf_memrange(a->map, fd, a->mem, 0, len);
	else
		err = doca_mmap_set_memrange(a->map, a->mem, len);
	if (err == DOCA_SUCCESS)
		err = doca_mmap_start(a->map);
	if (fd >= 0)
		close(fd);
	if (err != DOCA_SUCCESS)
		return ex_error("registration of %zu bytes: %s", len, doca_error_get_descr(err));
	*area = a;
	return 0;
}

int et_alloc(struct et_queues *q, size_t len, void *ptr)
{
	struct area *a;

	if (alloc(q, q->gpu, len, &a))
		return -1;
	memcpy(ptr, &a->mem, sizeof(a->mem));
	return 0;
}

int et_copy(struct et_queues *q, void *dst, const void *src, size_t len)
{
	return q->grid->copy(dst, src, len) ? ex_error("copy of %zu bytes", len) : 0;
}

/* ---- queues ---- */

int et_open_rxq(struct et_queues *q, bool by_cpu, struct doca_gpu_eth_rxq **rxq)
{
	struct doca_gpu *gpu = q->gpu;
	struct doca_ctx *ctx;
	struct area *a;
	uint32_t bytes;

	if (by_cpu && strcmp(q->opt->gpu, "host")) {
		TRY(doca_gpu_create("host", &q->cpu));
		gpu = q->cpu;
	}
	TRY(doca_eth_rxq_create(q->dev, q->opt->slots, q->opt->size, &q->rxq));
	TRY(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, q->opt->size,
						  q->opt->slots, 0, 0, 0, &bytes));
	if (alloc_registered(q, gpu, bytes, &a))
		return -1;
	TRY(doca_eth_rxq_set_pkt_buf(q->rxq, a->map, 0, bytes));
	if (q->opt->mcst && !by_cpu)
		TRY(doca_eth_rxq_gpu_enable_mcst_qp(q->rxq));
	ctx = doca_eth_rxq_as_doca_ctx(q->rxq);
	TRY(doca_ctx_set_datapath_on_gpu(ctx, gpu));
	TRY(doca_ctx_start(ctx));
	q->receives = true;
	TRY(doca_eth_rxq_get_gpu_handle(q->rxq, rxq));
	return 0;
}

int et_steer(struct et_queues *q, uint32_t dst_ip, uint16_t port)
{
	struct gdk_eth_match m = { .value.ether_type = htobe16(0x0800), .mask.ether_type = 0xffff };
	doca_error_t err;

	memcpy(m.value.dst_mac, q->mac, 6);
	memset(m.mask.dst_mac, 0xff, 6);
	m.value.dst_ip = htobe32(dst_ip);
	m.mask.dst_ip = UINT32_MAX;
	if (port) {
		m.value.ip_protocol = ET_PROTO_UDP;
		m.mask.ip_protocol = UINT8_MAX;
		m.value.dst_port = htobe16(port);
		m.mask.dst_port = UINT16_MAX;
	}
	err = gdk_eth_steer(q->dev, &m, &q->rxq, 1, GDK_ETH_HASH_NONE, 0, &q->rule);
	if (err == DOCA_ERROR_NOT_PERMITTED)
		return ex_error("flow rules need CAP_NET_RAW: run this as root");
	return err ? ex_error("flow rule: %s", doca_error_get_descr(err)) : 0;
}

static int create_txq(struct et_queues *q, enum et_send_mode mode)
{
	struct doca_ctx *ctx;

	TRY(doca_eth_txq_create(q->dev, SEND_SLOTS, &q->txq));
	ctx = doca_eth_txq_as_doca_ctx(q->txq);
	TRY(gdk_eth_txq_set_nic_handler(q->txq,
					(enum doca_gpu_dev_verbs_nic_handler)q->opt->handler));
	if (mode == ET_SUMS) {
		TRY(doca_eth_txq_set_l3_chksum_offload(q->txq, 1));
		TRY(doca_eth_txq_set_l4_chksum_offload(q->txq, 1));
	}
	if (mode == ET_TIMED) { /* the CPU handles completions, which tell how late sends were */
		TRY(doca_eth_txq_set_wait_on_time_offload(q->txq));
		TRY(doca_pe_create(&q->pe));
		TRY(doca_pe_connect_ctx(q->pe, ctx));
	} else {
		TRY(doca_eth_txq_gpu_set_completion_on_gpu(q->txq));
	}
	TRY(doca_ctx_set_datapath_on_gpu(ctx, q->gpu));
	TRY(doca_ctx_start(ctx));
	q->sends = true;
	TRY(gdk_eth_txq_get_nic_handler(q->txq, &q->handler, NULL, 0));
	return 0;
}

int et_open_txq(struct et_queues *q, enum et_send_mode mode, uint32_t frames,
		struct doca_gpu_eth_txq **txq, struct et_memory *memory)
{
	struct area *a;
	uint32_t key;

	if (create_txq(q, mode))
		return -1;
	TRY(gdk_eth_txq_set_wait_limit(q->txq, q->opt->timeout_s * 1000000000ull));
	TRY(doca_eth_txq_get_gpu_handle(q->txq, txq));
	if (!frames)
		return 0;
	memory->len = (size_t)frames * q->opt->size;
	if (alloc_registered(q, q->gpu, memory->len, &a))
		return -1;
	TRY(doca_mmap_get_mkey(a->map, q->dev, &key));
	memory->mem = a->mem;
	memory->key = htobe32(key);
	return 0;
}

uint32_t et_handler(const struct et_queues *q)
{
	return (uint32_t)q->handler;
}

int et_nic_time(struct et_queues *q, uint64_t ns, uint64_t *when)
{
	TRY(doca_eth_txq_calculate_timestamp(q->txq, ns, when));
	return 0;
}

/* ---- while they run ---- */

int et_counts(struct et_queues *q, struct et_counts *counts)
{
	struct gdk_eth_rxq_counters rx;
	struct gdk_eth_txq_counters tx;

	*counts = (struct et_counts){ 0 };
	if (q->rxq) {
		TRY(gdk_eth_rxq_get_counters(q->rxq, &rx));
		counts->packets = rx.packets;
		counts->out_of_buffer = rx.out_of_buffer;
		counts->dbrecs = rx.dbrecs;
	}
	if (!q->txq)
		return 0;
	TRY(gdk_eth_txq_get_counters(q->txq, &tx));
	counts->doorbells = tx.doorbells;
	counts->dbrecs = tx.dbrecs;
	counts->timed = tx.timed;
	counts->early = tx.early;
	counts->late_max = tx.late_max_ns;
	counts->late_mean = tx.timed ? tx.late_ns / tx.timed : 0;
	return 0;
}

int et_progress(struct et_queues *q)
{
	if (q->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
		TRY(doca_eth_txq_gpu_cpu_proxy_progress(q->txq));
	if (q->pe)
		(void)doca_pe_progress(q->pe);
	return 0;
}

int et_abort(struct et_queues *q)
{
	if (q->rxq)
		TRY(gdk_eth_rxq_abort(q->rxq));
	if (q->txq)
		TRY(gdk_eth_txq_abort(q->txq));
	return 0;
}

/* ---- closing ---- */

static void close_queues(struct et_queues *q)
{
	if (q->rule)
		gdk_eth_steer_destroy(q->rule);
	if (q->sends)
		doca_ctx_stop(doca_eth_txq_as_doca_ctx(q->txq));
	if (q->txq)
		doca_eth_txq_destroy(q->txq);
	if (q->receives)
		doca_ctx_stop(doca_eth_rxq_as_doca_ctx(q->rxq));
	if (q->rxq)
		doca_eth_rxq_destroy(q->rxq);
	if (q->pe)
		doca_pe_destroy(q->pe);
}

void et_close(struct et_queues *q)
{
	struct area *a;

	if (!q || q->hung)
		return;
	close_queues(q);
	for (a = q->areas; a < q->areas + q->num_areas; a++) {
		if (a->map)
			doca_mmap_destroy(a->map);
		doca_gpu_mem_free(a->gpu, a->mem);
	}
	if (q->dev)
		doca_dev_close(q->dev);
	if (q->cpu)
		doca_gpu_destroy(q->cpu);
	if (q->gpu)
		doca_gpu_destroy(q->gpu);
	if (q->grid)
		q->grid->close();
	free(q);
}
