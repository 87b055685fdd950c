/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Shared by the host part of the GPU test of Ethernet queues (eth_*.c, C) and its kernels
 * (eth_kernels.cu, CUDA): what a launch does, and the packets.
 *
 * One kernel sends, another one receives, at the same time. Packet `number` is sent once, by a
 * thread of the sending kernel, out of a slot of its own in the sender's buffer. The receiver
 * counts it in seen[number] and compares all its bytes.
 */
#ifndef ET_ETH_H
#define ET_ETH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ET_BOTH __host__ __device__ static inline
#else
#define ET_BOTH static inline
#endif

#define ET_SLOT	     256u /* bytes of a packet's slot, of either buffer */
#define ET_EACH_MAX  5u	  /* packets of each lane in a multi-packet send */
#define ET_RUNNING   0x7f7f7f7f
#define ET_EBADDATA  4242 /* status: a result is wrong */
#define ET_HEAD_WORD 5u	  /* words before the payload: the Ethernet header, 0, the number */

enum et_how {
	ET_SEND,    /* doca_gpu_dev_eth_txq_send() */
	ET_BY_HAND, /* reserve, prepare, submit */
	ET_MULTI,   /* gdk_eth_send_multi(), by warps */
	ET_HOLE,    /* no packet: all threads wait for a slot that is never written */
	ET_LEAST,   /* no packet: least values of warps and blocks */
};

/* What the threads of a launch change, in GPU memory. */
struct et_result {
	uint64_t received;    /* packets that the receiver has taken */
	uint32_t wrong;	      /* packets that differ */
	uint32_t first_wrong; /* number of one of them */
};

struct et_job {
	struct doca_gpu_eth_rxq *rxq;
	struct doca_gpu_eth_txq *txq;
	uint8_t *buf;		     /* of the sender: ET_SLOT bytes for each packet */
	uint32_t key;		     /* of buf, big-endian */
	uint32_t how, mode;	     /* enum et_how; sharing mode of the sending threads */
	uint32_t exec, rx_exec;	     /* execution scopes of the sender and of the receiver */
	uint32_t blocks, threads;    /* of the sender */
	uint32_t rx_threads;	     /* of the receiver, in one block */
	uint32_t notify;	     /* every how many sends NOTIFY; 0: only the last of a thread */
	uint32_t rounds, each;	     /* sends of each thread, packets of a send */
	uint32_t window;	     /* packets that may be sent and not received */
	uint32_t max_pkts;	     /* of one receive; 0: no limit */
	uint32_t swapped;	     /* packets come back with source and destination swapped */
	uint64_t first_tx, first_rx; /* index of the first WQE and of the first packet */
	uint64_t limit_ns; /* how long a thread waits for progress; UINT64_MAX: no limit */
	struct et_result *result;
	uint32_t *seen;	 /* one for each packet */
	int *sent, *got; /* status of each thread of either kernel, in host memory */
};

ET_BOTH uint32_t et_packets(const struct et_job *j)
{
	return j->blocks * j->threads * j->rounds * j->each;
}

ET_BOTH uint32_t et_words(uint32_t number)
{
	return 16 + number * 7 % 37;
}

/* Word `at` of packet `number`, little-endian. swapped: as it comes back from a program that swaps
 * source and destination. */
ET_BOTH uint32_t et_word(uint32_t number, uint32_t at, uint32_t swapped)
{
	switch (at) {
	case 0:
		return 0x00000002; /* destination 02:00:00:00:e7:01 */
	case 1:
		return swapped ? 0x000202e7 : 0x000201e7; /* source 02:00:00:00:e7:02 */
	case 2:
		return swapped ? 0x01e70000 : 0x02e70000;
	case 3:
		return 0x0000b588; /* a local experimental type */
	case 4:
		return number;
	default:
		return (number * 64 + at) * 2654435761u ^ number >> 3;
	}
}

#ifdef __cplusplus
extern "C" {
#endif

/* These return 0, or another number after a failure, which they log on stderr. */
int et_gpu_open(const char *pci);
int et_gpu_send(const struct et_job *job);
int et_gpu_recv(const struct et_job *job);
/* Of the launched kernels. 1: all have ended, 0: one is running, negative: one failed. */
int et_gpu_done(void);
int et_gpu_copy(void *dst, const void *src, size_t len);

/* One for each sharing mode, each from its own compilation of eth_kernels.cu. */
int et_send_EXCLUSIVE(const struct et_job *job, void *stream);
int et_send_CTA(const struct et_job *job, void *stream);
int et_send_GPU(const struct et_job *job, void *stream);

#ifdef __cplusplus
}
#endif

#endif
