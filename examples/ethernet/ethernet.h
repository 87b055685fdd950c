/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the Ethernet examples share: the command line (cmdline.c), queues with the interface of the
 * DOCA SDK (queues.c), the start and end of a kernel (run.c), a raw packet queue pair of libibverbs
 * (raw.c), the TCP connection of sender and receiver (pair.c), and the account of the packets
 * (account.c).
 *
 * All int functions return 0 or, after a message, -1, unless a comment says otherwise.
 */
#ifndef ETHERNET_H
#define ETHERNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "grid.h"

#define ET_PACKETS_MAX (1u << 24)
#define ET_THREADS_MAX 512u

/* Addresses inside of the packets. They need no address of the machine. */
#define ET_SENDER_IP   0xc6120001u /* 198.18.0.1, of the range for benchmarks (RFC 2544) */
#define ET_RECEIVER_IP 0xc6120002u
#define ET_PORT	       9000u

enum { ET_THREAD, ET_WARP, ET_BLOCK }; /* values of enum doca_gpu_dev_eth_exec_scope */

/* ---- cmdline.c ---- */

struct et_options {
	const char *gpu;    /* "host" or a PCI address */
	const char *device; /* name or PCI address of the NIC; NULL: the first one */
	const char *server; /* the other side, or NULL */
	const char *address;
	bool remote; /* the other side connects to this process */
	bool mcst, multi;
	uint32_t scope, threads, handler, packets, size, slots, in_flight, gap_us;
	uint32_t tcp_port, timeout_s, duration_s;
};

/* A program's command line. letters: of the options that it has; what: counted by -i. */
struct et_program {
	const char *name, *about, *letters, *what;
};

/* Options that are not given keep their values in *opt. Returns -1 to run the program, otherwise
 * its exit status. */
int et_options_parse(const struct et_program *program, struct et_options *opt, int argc,
		     char **argv);
/* Sets the number of threads if it was not given; warps must be whole on a GPU. one_group: the
 * threads are one group of the scope. */
int et_choose_threads(struct et_options *opt, bool one_group);

/* ---- queues.c ---- */

struct doca_gpu_eth_rxq;
struct doca_gpu_eth_txq;
struct et_queues;

struct et_memory { /* registered memory of the threads that use a queue */
	void *mem;
	size_t len;
	uint32_t key; /* big-endian */
};

/* Opens GPU and NIC. *q needs et_close() even if it fails. */
int et_open(struct et_queues **q, const struct et_options *opt);
void et_close(struct et_queues *q); /* accepts NULL */
const char *et_device(const struct et_queues *q);
const uint8_t *et_mac(const struct et_queues *q);
/* Memory that threads of the GPU and the CPU can access, until et_close(). */
int et_alloc(struct et_queues *q, size_t len, void *ptr);
int et_copy(struct et_queues *q, void *dst, const void *src, size_t len);

/* A receive queue of opt->slots slots. by_cpu: CPU threads receive, also if a GPU sends. */
int et_open_rxq(struct et_queues *q, bool by_cpu, struct doca_gpu_eth_rxq **rxq);
/* Steers IPv4 packets to the NIC's MAC address to the receive queue: those to a UDP port, or of an
 * address if port is 0. */
int et_steer(struct et_queues *q, uint32_t dst_ip, uint16_t port);

enum et_send_mode { ET_PLAIN, ET_SUMS, ET_TIMED }; /* SUMS: the NIC inserts checksums */
/* A send queue, and memory for `frames` packets of opt->size bytes. */
int et_open_txq(struct et_queues *q, enum et_send_mode mode, uint32_t frames,
		struct doca_gpu_eth_txq **txq, struct et_memory *memory);
uint32_t et_handler(const struct et_queues *q); /* of the send queue; gdk_handler_name() */
/* The form of a time for kernels. */
int et_nic_time(struct et_queues *q, uint64_t ns, uint64_t *when);

struct et_counts {
	uint64_t packets;	      /* that receives have returned */
	uint64_t out_of_buffer;	      /* that the NIC dropped because no slot was free */
	uint64_t doorbells, dbrecs;   /* of the send queue; without one, dbrecs of the other */
	uint64_t timed;		      /* sends at a given time */
	uint64_t late_mean, late_max; /* ns after that time at which the NIC sent them */
	uint64_t early;
};
int et_counts(struct et_queues *q, struct et_counts *counts);
/* Rings doorbells for a kernel, and reports completions. */
int et_progress(struct et_queues *q);
int et_abort(struct et_queues *q); /* ends the waits of the kernel */

/* ---- run.c ---- */

/* Starts a block of threads. arg: memory of et_alloc(), to which job of len bytes is copied. */
int et_launch(struct et_queues *q, uint32_t threads, void *arg, const void *job, size_t len);
/* Waits for the end of the kernel, and reads the job again. step (may be NULL) is called meanwhile;
 * if it returns -1, the waits of the kernel end. */
int et_wait(struct et_queues *q, int (*step)(void *), void *step_arg, void *arg, void *job,
	    size_t len);
double et_seconds(struct et_queues *q);

/* ---- raw.c ---- */

struct et_raw;

int et_nic_mac(const char *device, uint8_t mac[6]);
/* A raw packet queue pair that receives nothing before et_raw_steer(). *raw needs et_raw_close()
 * even if it fails. */
int et_raw_open(struct et_raw **raw, const char *device);
void et_raw_close(struct et_raw *raw); /* accepts NULL */
int et_raw_steer(struct et_raw *raw, uint32_t dst_ip);
/* Memory for the next frame, NULL while all are being sent. Then et_raw_send() sends it. */
uint8_t *et_raw_frame(struct et_raw *raw);
int et_raw_send(struct et_raw *raw, uint32_t bytes);
/* Handles completions. Returns 1 with a frame, which et_raw_return() gives back, 0 without. */
int et_raw_poll(struct et_raw *raw, const uint8_t **frame, uint32_t *bytes);
int et_raw_return(struct et_raw *raw);

/* ---- account.c ---- */

/* How long nothing has come. */
struct et_quiet {
	int64_t since; /* ms; 0: not started */
	uint64_t last; /* the progress of the last call */
	uint32_t calls;
};

/* Returns whether a number has not changed for limit_ms, in many calls: a process that gets no
 * processor for a while must not take its packets for lost. */
bool et_is_quiet(struct et_quiet *q, uint64_t progress, int64_t limit_ms);

/* All packets of a run. */
struct et_account {
	uint32_t sent, *seen; /* seen: of each number, how often it came */
	uint64_t received;    /* different packets, each right */
	uint64_t bytes;	      /* of all packets that were sent, or received */
	uint64_t repeated, changed, bad_sums;
	uint64_t doorbells, dbrecs, out_of_buffer;
	double seconds; /* negative: unknown */
};

/* Takes a received packet into account. checks: whether the NIC found its checksums right. */
void et_account_packet(struct et_account *a, const struct et_flow *flow, const uint8_t *frame,
		       uint32_t got, uint32_t bytes, bool checks);
/* Prints the table and what is wrong. packets: of the table. Returns -1 if a packet is missing from
 * the account, came twice or was changed. */
int et_account_print(const struct et_account *a, uint64_t packets);

/* ---- pair.c ---- */

struct et_pair;

/* Sender (opt->server) and receiver connect, both with the same program name, and exchange the
 * options of the packets and the MAC addresses. *p needs et_pair_close() even if it fails. */
int et_pair_open(struct et_pair **p, struct et_options *opt, const char *program,
		 const uint8_t mac[6], uint8_t peer[6]);
void et_pair_close(struct et_pair *p);	/* accepts NULL */
void et_pair_failed(struct et_pair *p); /* tells the other side; accepts NULL */
/* The receiver: is ready; number of packets received or dropped; whether the sender has sent all (1
 * or 0); its account. */
int et_pair_tell_ready(struct et_pair *p);
int et_pair_progress(struct et_pair *p, uint64_t packets);
int et_pair_is_done(struct et_pair *p);
int et_pair_send_account(struct et_pair *p, const struct et_account *a);
/* The sender. et_pair_await(): until all packets that were sent have come, or none comes. */
int et_pair_await_ready(struct et_pair *p);
int et_pair_await(struct et_pair *p, uint64_t sent);
int et_pair_tell_done(struct et_pair *p);
int et_pair_take_account(struct et_pair *p, struct et_account *a);

#endif
