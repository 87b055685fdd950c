/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: calls of the verbs ioctl. An input is a sequence of calls on one open
 * device. Each is a valid call with up to four changes of attributes. Handles and
 * descriptors are those that the sequence created, or others. The NIC must survive and
 * access no byte outside a buffer, and no object may be left after the device is closed.
 */
#include "uverbs_calls.h"

#include "../softnic/eng.h"
#include "../softnic/eth.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEPS 32

static struct fuzz_nic nic;
static struct fuzz_call call;
static struct uv_program program;
static int memory_fd;

/* Raw packet queue pairs and rules are allowed without CAP_NET_RAW, too. */
bool __wrap_sn_net_raw(void);

bool __wrap_sn_net_raw(void)
{
	return true;
}

uint64_t uv_handle(struct uv_program *p, enum uv_kind kind)
{
	uint8_t which = fuzz_u8(p->in);

	if (!which)
		return p->handle[kind];
	return which < 0xf0 ? which % 32 : fuzz_u64(p->in);
}

uint64_t uv_fd(struct uv_program *p, enum uv_fd kind)
{
	uint8_t which = fuzz_u8(p->in);

	if (!which)
		return (uint64_t)(int64_t)p->fd[kind];
	if (which < 0x80) /* a descriptor of any kind */
		return (uint64_t)(int64_t)p->fd[which % UV_FDS];
	return which & 1 ? (uint64_t)(int64_t)-1 : (uint64_t)nic.fd;
}

/* Changes one attribute, usually so that it is invalid. */
static void change_one(struct fuzz_call *c, struct fuzz_in *in)
{
	struct fuzz_attr *a = &c->a[fuzz_u8(in) % c->n];
	uint8_t how = fuzz_u8(in);
	uint32_t word;
	uint16_t at;

	switch (how & 7) {
	case 0: /* the attribute is missing */
		*a = c->a[--c->n];
		break;
	case 1:
		a->len = how & 0x80 ? fuzz_u16(in) : fuzz_u8(in);
		break;
	case 2:
	case 3:
		at = (uint16_t)((how >> 7) << 8 | fuzz_u8(in));
		word = how & 0x40 ? fuzz_u32(in) : fuzz_u8(in);
		if (a->kind == FUZZ_IN)
			memcpy(a->data + at, &word, how & 0x40 ? 4 : 1);
		else if (a->kind == FUZZ_VALUE)
			a->value = how & 0x20 ? fuzz_u64(in) : word;
		break;
	case 4:
		a->flags = fuzz_u16(in);
		break;
	case 5:
		a->id = fuzz_u16(in);
		break;
	case 6: /* the attribute appears twice */
		if (c->n < NIC_ATTRS)
			c->a[c->n++] = *a;
		break;
	case 7: /* the buffer's address is not mapped, or not writable */
		if (a->kind == FUZZ_IN || a->kind == FUZZ_OUT)
			a->value = how & 0x80 ? NIC_READ_ONLY + 64 : 0xfff;
		break;
	}
}

static void close_file(struct fuzz_in *in)
{
	unsigned i = fuzz_u8(in) % NIC_FDS;

	if (i >= nic.nfds || nic.fds[i] < 0)
		return;
	sn_fd_closing(nic.fds[i]);
	close(nic.fds[i]);
	nic.fds[i] = -1;
}

/* Receives a frame, whose length and first bytes come from the input. */
static void receive(struct fuzz_in *in)
{
	uint8_t n = fuzz_u8(in), i;
	struct sn_frame *f;

	if (!sn_dev->eng || sn_eng_eth_open(sn_dev))
		return;
	f = sn_frame_get(sn_dev->eng);
	if (!f)
		return;
	f->local = n & 1;
	f->len = n;
	memset(f->data, 0, n);
	for (i = 0; i < n && i < 80 && in->left; i++)
		f->data[i] = fuzz_u8(in);
	sn_eth_receive(sn_dev->eng, f, n & 2);
	sn_frame_put(sn_dev->eng, f);
}

static void step(struct fuzz_in *in)
{
	unsigned which = fuzz_u8(in), changes = fuzz_u8(in);

	if (which == 0xff) {
		close_file(in);
		return;
	}
	if (which == 0xfe) {
		receive(in);
		return;
	}
	if (nic.nfds == NIC_FDS) /* no room to remember another descriptor */
		return;
	uv_prepare(&program, &call, which);
	for (changes = changes < 0x80 ? 0 : changes % 4 + 1; changes && call.n; changes--)
		change_one(&call, in);
	if (!nic_call(&nic, &call))
		uv_keep(&program, &call, which);
	fuzz_passes(sn_dev, 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	nic_setup();
	memory_fd = memfd_create("dmabuf", MFD_CLOEXEC);
	if (memory_fd < 0 || ftruncate(memory_fd, 16384))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	int i;

	nic_open(&nic, fuzz_u8(&in));
	nic_make_objects(&nic);
	if (!sn_dev->cfg.infiniband)
		nic_make_ethernet(&nic);
	program = (struct uv_program){ .nic = &nic,
				       .in = &in,
				       .handle = { [UV_PD] = nic.pd,
						   [UV_UMEM] = nic.umem,
						   [UV_UAR] = nic.uar,
						   [UV_CQ] = nic.cq,
						   [UV_QP] = nic.qp,
						   [UV_SRQ] = nic.srq,
						   [UV_DEVX] = nic.qp,
						   [UV_TIR] = nic.eth[FUZZ_TIR].handle,
						   [UV_FLOW_COUNTER] =
							   nic.eth[FUZZ_FLOW_COUNTER].handle },
				       .fd = { nic.fds[0], memory_fd, nic.fds[1], -1, -1, -1 } };
	for (i = 0; i < STEPS && in.left; i++)
		step(&in);
	nic_close(&nic);
	return 0;
}
