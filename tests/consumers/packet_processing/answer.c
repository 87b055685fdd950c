/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the part of NVIDIA's gpu_packet_processing that answers pings: its NIC, its DOCA Flow, its
 * queues for UDP and ICMP, its pipes and its ICMP kernel, without its threads for TCP on the CPU.
 * Ends at SIGTERM or SIGINT. usage: answer PCI_ADDRESS GPU
 */
#include <signal.h>
#include <unistd.h>

#include "common.h"
#include "tcp_cpu/tcp_session_table.h"

#define SEMAPHORE_ITEMS 64
#define MUST(call) \
	do { \
		doca_error_t must_ = call; \
\
		if (must_ != DOCA_SUCCESS) { \
			fprintf(stderr, "answer: %s: %s\n", #call, doca_error_get_name(must_)); \
			return 1; \
		} \
	} while (0)

bool force_quit;
static uint32_t replies, errors;

/* What the pipe for TCP on the CPU needs of DPDK. It is not created. */
struct rte_hash *tcp_session_table;
struct rte_hash_parameters tcp_session_ht_params;

int rte_eal_init(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return -1;
}

struct rte_hash *rte_hash_create(const struct rte_hash_parameters *params)
{
	(void)params;
	return NULL;
}

/* The queues for TCP are not created. */
doca_error_t destroy_tcp_queues(struct rxq_tcp_queues *tcp_queues, bool http_server,
				struct txq_http_queues *http_queues)
{
	(void)tcp_queues;
	(void)http_server;
	(void)http_queues;
	return DOCA_SUCCESS;
}

static void stop(int signum)
{
	(void)signum;
	DOCA_GPUNETIO_VOLATILE(force_quit) = true;
}

static void sent(struct doca_eth_txq_gpu_event_notify_send_packet *event, union doca_data user)
{
	(void)event;
	(void)user;
	replies++;
}

static void failed(struct doca_eth_txq_gpu_event_error_send_packet *event, union doca_data user)
{
	(void)event;
	(void)user;
	errors++;
}

int main(int argc, char **argv)
{
	static struct rxq_icmp_queues icmp;
	static struct rxq_udp_queues udp;
	static struct rxq_tcp_queues tcp; /* no pipes */
	struct doca_flow_port *port;
	struct doca_gpu *gpu;
	struct doca_dev *dev;
	struct doca_pe *pe;
	cudaStream_t stream;
	uint32_t quit = 0;

	if (argc != 3)
		return 2;
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	MUST(init_doca_device(argv[1], &dev));
	MUST(doca_gpu_create(argv[2], &gpu));
	MUST(doca_pe_create(&pe));
	port = init_doca_flow(dev, 0, 1);
	if (!port)
		return 1;
	MUST(create_udp_queues(&udp, port, gpu, dev, 1, SEMAPHORE_ITEMS));
	MUST(create_icmp_queues(&icmp, port, gpu, dev, 1, pe, failed, sent));
	MUST(create_root_pipe(&udp, &tcp, &icmp, port));
	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		return 1;
	MUST(kernel_receive_icmp(stream, &quit, &icmp));
	puts("ready");
	fflush(stdout);
	while (!DOCA_GPUNETIO_VOLATILE(force_quit))
		if (!doca_pe_progress(pe))
			usleep(100);
	DOCA_GPUNETIO_VOLATILE(quit) = 1;
	cudaStreamSynchronize(stream);
	while (doca_pe_progress(pe))
		;
	MUST(doca_flow_port_stop(port));
	doca_flow_destroy();
	MUST(destroy_icmp_queues(&icmp));
	MUST(destroy_udp_queues(&udp));
	MUST(doca_pe_destroy(pe));
	MUST(doca_gpu_destroy(gpu));
	MUST(doca_dev_close(dev));
	printf("%u replies, %u errors\n", replies, errors);
	return errors != 0;
}
