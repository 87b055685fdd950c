/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * In place of tcp_cpu/tcp_cpu_rss_func.c of NVIDIA's gpu_packet_processing, which opens and closes
 * TCP connections: SYN, FIN and RST go to the CPU. That file needs queues for sends and receives by
 * the CPU, which gdaki does not have. This one has the same functions, and uses the queues that
 * kernels use, on the GPU "host". It also replaces the functions of DPDK that the application calls
 * to create its table of connections, because the table is here.
 */
#include <arpa/inet.h>
#include <doca_eth_rxq_gpu_data_path.h>
#include <doca_eth_txq_gpu_data_path.h>

#include "gdk_sdk_eth_rxq_dev.h"
#include "gdk_sdk_eth_txq_dev.h"

#include "common.h"
#include "packets.h"
#include "tcp_cpu/tcp_cpu_rss_func.h"
#include "tcp_cpu/tcp_session_table.h"

#define SLOTS	   256u
#define SLOT	   2048u /* bytes of a packet */
#define SESSIONS   64
#define TIMEOUT_NS 10000000u
#define ISS	   1000u	/* sequence number of the answer to a SYN */
#define OPTION	   "\2\4\5\170" /* maximum segment size, 1400 bytes */
#define TRY(call) \
	do { \
		doca_error_t err_ = call; \
\
		if (err_ != DOCA_SUCCESS) { \
			fprintf(stderr, "tcp_cpu: %s: %s\n", #call, doca_error_get_name(err_)); \
			return err_; \
		} \
	} while (0)

/* The CPU's end of a queue. A session without a flow entry is free. */
static struct end {
	struct doca_gpu *host;
	struct doca_gpu_eth_rxq *rxq;
	struct doca_gpu_eth_txq *txq;
	__be32 mkey;
	struct tcp_session_entry sessions[SESSIONS];
} ends[MAX_QUEUES];

/* ---- DPDK ---- */

int rte_eal_init(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

struct rte_hash *rte_hash_create(const struct rte_hash_parameters *params)
{
	(void)params;
	return NULL;
}

/* ---- queues ---- */

doca_error_t create_pe_cpu_rss(struct rxq_tcp_queues *queues, uint16_t id)
{
	(void)queues;
	setvbuf(stdout, NULL, _IOLBF,
		0); /* packet_processing.sh reads what the application prints */
	TRY(doca_gpu_create("host", &ends[id].host));
	return DOCA_SUCCESS;
}

/* The application calls this twice. */
doca_error_t destroy_pe_cpu_rss(struct rxq_tcp_queues *queues, uint16_t id)
{
	(void)queues;
	if (ends[id].host)
		TRY(doca_gpu_destroy(ends[id].host));
	ends[id].host = NULL;
	return DOCA_SUCCESS;
}

static doca_error_t map(struct end *end, struct doca_dev *dev, size_t bytes,
			struct doca_mmap **mmap, void **mem)
{
	TRY(doca_gpu_mem_alloc(end->host, bytes, 4096, DOCA_GPU_MEM_TYPE_GPU, mem, NULL));
	TRY(doca_mmap_create(mmap));
	TRY(doca_mmap_add_dev(*mmap, dev));
	TRY(doca_mmap_set_memrange(*mmap, *mem, bytes));
	TRY(doca_mmap_start(*mmap));
	return DOCA_SUCCESS;
}

static doca_error_t start(struct end *end, struct doca_ctx *ctx)
{
	TRY(doca_ctx_set_datapath_on_gpu(ctx, end->host));
	TRY(doca_ctx_start(ctx));
	return DOCA_SUCCESS;
}

doca_error_t create_txq_cpu_rss(struct rxq_tcp_queues *queues, uint16_t id)
{
	struct doca_eth_txq **txq = &queues->eth_txq_cpu_rss[id];
	struct doca_mmap **mmap = &queues->txq_cpu_rss_mmap[id];
	struct end *end = &ends[id];
	uint32_t mkey;

	TRY(map(end, queues->ddev, SLOT, mmap, &queues->txq_cpu_rss_mmap_addr[id]));
	TRY(doca_mmap_get_mkey(*mmap, queues->ddev, &mkey));
	end->mkey = htonl(mkey);
	TRY(doca_eth_txq_create(queues->ddev, SLOTS, txq));
	TRY(doca_eth_txq_set_l3_chksum_offload(*txq, 1));
	TRY(doca_eth_txq_set_l4_chksum_offload(*txq, 1));
	TRY(doca_eth_txq_gpu_set_completion_on_gpu(*txq));
	TRY(start(end, doca_eth_txq_as_doca_ctx(*txq)));
	TRY(doca_eth_txq_get_gpu_handle(*txq, &end->txq));
	return DOCA_SUCCESS;
}

doca_error_t destroy_txq_cpu_rss(struct rxq_tcp_queues *queues, uint16_t id)
{
	TRY(doca_ctx_stop(doca_eth_txq_as_doca_ctx(queues->eth_txq_cpu_rss[id])));
	TRY(doca_eth_txq_destroy(queues->eth_txq_cpu_rss[id]));
	TRY(doca_mmap_destroy(queues->txq_cpu_rss_mmap[id]));
	TRY(doca_gpu_mem_free(ends[id].host, queues->txq_cpu_rss_mmap_addr[id]));
	return DOCA_SUCCESS;
}

doca_error_t create_rxq_cpu_rss(struct rxq_tcp_queues *queues, uint16_t id)
{
	struct doca_eth_rxq **rxq = &queues->eth_rxq_cpu_rss[id];
	struct doca_mmap **mmap = &queues->rxq_cpu_rss_mmap[id];
	struct end *end = &ends[id];
	uint32_t bytes;

	TRY(doca_eth_rxq_create(queues->ddev, SLOTS, SLOT, rxq));
	TRY(doca_eth_rxq_set_type(*rxq, DOCA_ETH_RXQ_TYPE_CYCLIC));
	TRY(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, SLOT, SLOTS, 0, 0,
						  0, &bytes));
	TRY(map(end, queues->ddev, bytes, mmap, &queues->rxq_cpu_rss_mmap_addr[id]));
	TRY(doca_eth_rxq_set_pkt_buf(*rxq, *mmap, 0, bytes));
	TRY(start(end, doca_eth_rxq_as_doca_ctx(*rxq)));
	TRY(doca_eth_rxq_get_gpu_handle(*rxq, &end->rxq));
	return DOCA_SUCCESS;
}

doca_error_t destroy_rxq_cpu_rss(struct rxq_tcp_queues *queues, uint16_t id)
{
	TRY(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(queues->eth_rxq_cpu_rss[id])));
	TRY(doca_eth_rxq_destroy(queues->eth_rxq_cpu_rss[id]));
	TRY(doca_mmap_destroy(queues->rxq_cpu_rss_mmap[id]));
	TRY(doca_gpu_mem_free(ends[id].host, queues->rxq_cpu_rss_mmap_addr[id]));
	return DOCA_SUCCESS;
}

/* ---- TCP ---- */

/* Returns the session of the packet, or else a free one; NULL: there is none. */
static struct tcp_session_entry *find(struct end *end, const struct eth_ip_tcp_hdr *in)
{
	const struct tcp_session_key key = { .src_addr = in->l3_hdr.src_addr,
					     .dst_addr = in->l3_hdr.dst_addr,
					     .src_port = in->l4_hdr.src_port,
					     .dst_port = in->l4_hdr.dst_port };
	struct tcp_session_entry *s, *unused = NULL;

	for (s = end->sessions; s < end->sessions + SESSIONS; s++) {
		if (s->flow && !memcmp(&s->key, &key, sizeof(key)))
			return s;
		if (!s->flow)
			unused = s;
	}
	if (unused)
		unused->key = key;
	return unused;
}

/* Builds the answer to a SYN or FIN, and returns its length. */
static uint32_t answer(const struct eth_ip_tcp_hdr *in, struct eth_ip_tcp_hdr *out)
{
	const uint32_t option = in->l4_hdr.syn ? sizeof(OPTION) - 1 : 0;
	const uint32_t head = sizeof(out->l3_hdr) + sizeof(out->l4_hdr) + option;
	const uint32_t data = ntohs(in->l3_hdr.total_length) - sizeof(in->l3_hdr) -
			      4u * in->l4_hdr.dt_off;

	memset(out, 0, sizeof(*out));
	memcpy(out->l2_hdr.d_addr_bytes, in->l2_hdr.s_addr_bytes, ETHER_ADDR_LEN);
	memcpy(out->l2_hdr.s_addr_bytes, in->l2_hdr.d_addr_bytes, ETHER_ADDR_LEN);
	out->l2_hdr.ether_type = in->l2_hdr.ether_type;
	out->l3_hdr.version_ihl = 0x45;
	out->l3_hdr.total_length = htons((uint16_t)head);
	out->l3_hdr.time_to_live = 64;
	out->l3_hdr.next_proto_id = IPPROTO_TCP;
	out->l3_hdr.src_addr = in->l3_hdr.dst_addr;
	out->l3_hdr.dst_addr = in->l3_hdr.src_addr;
	out->l4_hdr.src_port = in->l4_hdr.dst_port;
	out->l4_hdr.dst_port = in->l4_hdr.src_port;
	out->l4_hdr.sent_seq = in->l4_hdr.syn ? htonl(ISS) : in->l4_hdr.recv_ack;
	out->l4_hdr.recv_ack = htonl(ntohl(in->l4_hdr.sent_seq) + data + 1);
	out->l4_hdr.dt_off = (uint8_t)((sizeof(out->l4_hdr) + option) / 4);
	out->l4_hdr.tcp_flags = TCP_FLAG_ACK | (in->l4_hdr.syn ? TCP_FLAG_SYN : TCP_FLAG_FIN);
	out->l4_hdr.rx_win = htons(60000);
	memcpy(out + 1, OPTION, option);
	return (uint32_t)sizeof(out->l2_hdr) + head;
}

static int transmit(struct end *end, const void *frame, uint32_t bytes)
{
	const struct gdk_how how = gdk_how(GDK_EXCLUSIVE, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
					   GDK_THREAD, 0);
	const struct gdk_eth_pkt pkt = gdk_eth_pkt((uintptr_t)frame, end->mkey, bytes);
	doca_gpu_dev_eth_ticket_t ticket;

	return gdk_eth_send(end->txq, pkt, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, how, &ticket) ||
	       gdk_eth_wait_for(end->txq, ticket, GDK_EXCLUSIVE);
}

/* Opens a session before the answer to its SYN, because the request comes after the answer. The
 * software NIC also delivers the answers, since the application's rules match them: they have SYN
 * and ACK, or are of no session. */
static doca_error_t handle(struct rxq_tcp_queues *queues, uint16_t id,
			   const struct eth_ip_tcp_hdr *in)
{
	struct eth_ip_tcp_hdr *out = queues->txq_cpu_rss_mmap_addr[id];
	struct tcp_session_entry *session = find(&ends[id], in);

	if (!session)
		return DOCA_ERROR_FULL;
	if (in->l4_hdr.syn ? in->l4_hdr.ack : !session->flow)
		return DOCA_SUCCESS;
	if (!in->l4_hdr.syn) {
		TRY(disable_tcp_gpu_offload(queues->port, id, session));
		session->flow = NULL;
	} else if (!session->flow) {
		TRY(enable_tcp_gpu_offload(queues->port, id, queues->rxq_pipe_gpu, session));
	}
	if (in->l4_hdr.rst)
		return DOCA_SUCCESS;
	return transmit(&ends[id], out, answer(in, out)) ? DOCA_ERROR_IO_FAILED : DOCA_SUCCESS;
}

void *tcp_cpu_rss_func(void *arg)
{
	const struct thread_args *args = arg;
	struct doca_gpu_eth_rxq *rxq = ends[args->queue_id].rxq;
	struct gdk_eth_batch batch;
	doca_error_t err = DOCA_SUCCESS;
	uint64_t i;

	while (err == DOCA_SUCCESS && !DOCA_GPUNETIO_VOLATILE(force_quit)) {
		if (gdk_eth_recv(rxq, 0, TIMEOUT_NS, 0, DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD,
				 &batch))
			err = DOCA_ERROR_IO_FAILED;
		for (i = batch.first; err == DOCA_SUCCESS && i < batch.first + batch.num; i++)
			err = handle(args->args, args->queue_id,
				     (void *)(uintptr_t)gdk_eth_pkt_addr(rxq, i));
	}
	if (err != DOCA_SUCCESS) {
		fprintf(stderr, "tcp_cpu: %s\n", doca_error_get_name(err));
		DOCA_GPUNETIO_VOLATILE(force_quit) = true;
	}
	return NULL;
}
