/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: firmware commands through the DEVX methods. An input is a sequence of
 * commands. Each is a valid command, usually with some changes, or consists of bytes
 * of the input only, for objects that may or may not exist. The NIC must survive, the
 * status in its output must agree with the ioctl's result, and no object may be left
 * after the device is closed.
 */
#include "nic.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>

#include "../softnic/prm_nic.h"

#define STEPS	32
#define OBJECTS 16u
#define A(id)	((uint16_t)(id))

static struct fuzz_nic nic;
static struct fuzz_call call;
static struct {
	uint64_t handle;
	uint32_t number;
	uint16_t opcode; /* of the command that created it */
} objects[OBJECTS];
static unsigned nobjects;

static const uint16_t general[] = { OP_QUERY_HCA_CAP, OP_QUERY_ROCE_ADDRESS, OP_QUERY_LAG };
static const uint16_t create[] = {
	OP_CREATE_MKEY, OP_CREATE_CQ,  OP_CREATE_QP,	   OP_CREATE_RMP,
	OP_ALLOC_TD,	OP_CREATE_TIS, OP_CREATE_SQ,	   OP_CREATE_RQ,
	OP_CREATE_RQT,	OP_CREATE_TIR, OP_ALLOC_Q_COUNTER, OP_ALLOC_FLOW_COUNTER,
};
static const uint16_t modify[] = { OP_MODIFY_CQ, OP_RST2INIT,	OP_INIT2INIT,  OP_INIT2RTR,
				   OP_RTR2RTS,	 OP_RTS2RTS,	OP_SQERR2RTS,  OP_2ERR,
				   OP_2RST,	 OP_MODIFY_RMP, OP_MODIFY_TIS, OP_MODIFY_SQ,
				   OP_MODIFY_RQ, OP_MODIFY_RQT, OP_MODIFY_TIR };
static const uint16_t query[] = { OP_QUERY_MKEY,      OP_QUERY_CQ,	    OP_QUERY_QP,
				  OP_QUERY_RMP,	      OP_QUERY_TIS,	    OP_QUERY_SQ,
				  OP_QUERY_RQ,	      OP_QUERY_RQT,	    OP_QUERY_TIR,
				  OP_QUERY_Q_COUNTER, OP_QUERY_FLOW_COUNTER };

static void object_add(uint16_t opcode, uint64_t handle, uint32_t number)
{
	unsigned at = nobjects++ % OBJECTS;

	objects[at].opcode = opcode;
	objects[at].handle = handle;
	objects[at].number = number;
}

/* ---- the command's input ---- */

/* Changes bytes, words and bits at offsets taken from the input. */
static void change(uint8_t *box, size_t len, struct fuzz_in *in)
{
	unsigned n = fuzz_u8(in) % 8;
	uint32_t word;
	size_t at;
	uint8_t how;

	while (n-- && len >= 4) {
		how = fuzz_u8(in);
		at = ((how & 1) << 8 | fuzz_u8(in)) % (len - 3);
		switch (how >> 1 & 3) {
		case 0:
			box[at] = fuzz_u8(in);
			break;
		case 1:
			word = fuzz_u32(in);
			memcpy(box + at, &word, 4);
			break;
		case 2:
			box[at] ^= (uint8_t)(1u << (how >> 5));
			break;
		case 3: /* the number of an object */
			word = htobe32(objects[fuzz_u8(in) % OBJECTS].number);
			memcpy(box + at, &word, 4);
			break;
		}
	}
}

struct cmd {
	uint16_t opcode, len, out_len;
	uint8_t box[BOX_MAX];
	unsigned object;
};

/* Returns the next transition towards RTS; RTS2RTS in RTS; 2RST in other states or without a QP. */
static uint16_t next_transition(uint32_t qpn)
{
	const struct sn_qp *qp = sn_find_qp(sn_dev, qpn);

	switch (qp ? qp->state : SN_QPS_ERR) {
	case SN_QPS_RST:
		return OP_RST2INIT;
	case SN_QPS_INIT:
		return OP_INIT2RTR;
	case SN_QPS_RTR:
		return OP_RTR2RTS;
	case SN_QPS_RTS:
		return OP_RTS2RTS;
	default:
		return OP_2RST;
	}
}

/* Returns the same value for all commands of one kind of object. */
static unsigned kind_of(uint16_t opcode)
{
	unsigned first = opcode < OP_CREATE_TIS ? 0 : opcode < OP_ALLOC_FLOW_COUNTER ? 2 : 1;

	return opcode >> 8 == OP_CREATE_TIR >> 8 ? (opcode - first) / 4u : opcode >> 8;
}

/* Returns the first object from `at` on that the command can use; otherwise `at`. */
static unsigned fitting(uint16_t opcode, unsigned at)
{
	unsigned i;

	for (i = 0; i < OBJECTS; i++)
		if (kind_of(objects[(at + i) % OBJECTS].opcode) == kind_of(opcode))
			return (at + i) % OBJECTS;
	return at;
}

static void read_cmd(struct cmd *c, const uint16_t *ops, unsigned num, struct fuzz_in *in)
{
	static const uint16_t out_lens[8] = { 0x110, 0x110, 0x110, 16, 0x1010, 0x100, 8, 0 };
	uint8_t how = fuzz_u8(in), out = fuzz_u8(in);

	memset(c->box, 0, sizeof(c->box));
	c->opcode = ops[how % 16 % num];
	c->object = out >> 4;
	if (ops == modify && how % 16 >= num)
		c->opcode = next_transition(objects[c->object].number);
	if (how & 0x10)
		c->object = fitting(c->opcode, c->object);
	c->out_len = out & 8 ? fuzz_u16(in) : out_lens[out & 7];
	if (how & 0x80) { /* only bytes of the input */
		c->len = fuzz_u16(in) % (BOX_MAX + 1);
		fuzz_bytes(in, c->box, c->len);
		if (!(how & 0x40))
			nic_set(c->box, IN_OPCODE, c->opcode);
		return;
	}
	c->len = (uint16_t)box_fill(&nic, c->opcode, objects[c->object].number, c->box);
	if (how & 0x20)
		nic_set(c->box, IN_OPCODE, fuzz_u16(in));
	change(c->box, c->len, in);
	if (how & 0x40)
		c->len = fuzz_u16(in) % (BOX_MAX + 1);
}

/* ---- the calls ---- */

static void agree(const struct cmd *c, long rc, const struct fuzz_attr *out)
{
	uint32_t status = c->out_len >= 8 ? nic_get(out->data, OUT_STATUS) : 0;

	if ((rc == 0 && status) || (rc == -EREMOTEIO && !status)) {
		fprintf(stderr, "command %#x: ioctl returned %ld, but the output has status %#x\n",
			c->opcode, rc, status);
		abort();
	}
}

static long run(const struct cmd *c, uint16_t object, uint16_t method, bool handle)
{
	unsigned in = handle;
	long rc;

	/* These methods all have the attributes handle, command, output, in this order. */
	call_start(&call, object, method);
	if (handle)
		call_value(&call, 0x1000, 0, objects[c->object].handle);
	call_in(&call, A(0x1000 + in), c->box, c->len);
	call_out(&call, A(0x1000 + in + 1), c->out_len);
	rc = nic_call(&nic, &call);
	agree(c, rc, &call.a[in + 1]);
	return rc;
}

static void step_create(struct fuzz_in *in)
{
	struct cmd c;

	read_cmd(&c, create, sizeof(create) / sizeof(create[0]), in);
	call_start(&call, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
	call_value(&call, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE), 0, 0);
	call_in(&call, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN), c.box, c.len);
	call_out(&call, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), c.out_len);
	if (!nic_call(&nic, &call))
		object_add(c.opcode, call.a[0].value, nic_get(call.a[2].data, OUT_FLOW_COUNTER));
}

static void step_async_query(struct fuzz_in *in)
{
	struct cmd c;

	read_cmd(&c, query, sizeof(query) / sizeof(query[0]), in);
	call_start(&call, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY);
	call_value(&call, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE), 0, objects[c.object].handle);
	call_in(&call, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN), c.box, c.len);
	call_value(&call, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD), 0,
		   (uint64_t)nic.fds[nic.nfds - 1]);
	call_value(&call, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID), 8, 7);
	call_value(&call, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN), 2, c.out_len);
	nic_call(&nic, &call);
}

static void step_destroy(struct fuzz_in *in)
{
	unsigned i = fuzz_u8(in) % OBJECTS;

	call_start(&call, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY);
	call_value(&call, A(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE), 0, objects[i].handle);
	nic_call(&nic, &call);
}

static void step(struct fuzz_in *in)
{
	struct cmd c;

	switch (fuzz_u8(in) & 7) {
	case 0:
		read_cmd(&c, general, sizeof(general) / sizeof(general[0]), in);
		run(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, false);
		break;
	case 1:
	case 2:
		step_create(in);
		break;
	case 3:
	case 4:
		read_cmd(&c, modify, sizeof(modify) / sizeof(modify[0]), in);
		run(&c, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, true);
		break;
	case 5:
		read_cmd(&c, query, sizeof(query) / sizeof(query[0]), in);
		run(&c, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, true);
		break;
	case 6:
		step_async_query(in);
		break;
	case 7:
		step_destroy(in);
		break;
	}
	fuzz_passes(sn_dev, 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	nic_setup();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	int i;

	nic_open(&nic, fuzz_u8(&in));
	nic_make_objects(&nic);
	memset(objects, 0, sizeof(objects));
	nobjects = 0;
	object_add(OP_CREATE_QP, nic.qp, nic.qpn);
	object_add(OP_CREATE_CQ, nic.cq, nic.cqn);
	object_add(OP_CREATE_RMP, nic.srq, nic.rmpn);
	if (!sn_dev->cfg.infiniband)
		nic_make_ethernet(&nic);
	for (i = 0; i < FUZZ_ETH && nic.eth[i].handle; i++)
		object_add(nic.eth[i].opcode, nic.eth[i].handle, nic.eth[i].number);
	call_start(&call, MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC);
	call_value(&call, A(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE), 0, 0)->kind = FUZZ_FD_OUT;
	nic_call(&nic, &call);
	for (i = 0; i < STEPS && in.left; i++)
		step(&in);
	nic_close(&nic);
	return 0;
}
