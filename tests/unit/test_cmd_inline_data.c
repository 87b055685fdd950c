/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Received data in the CQEs of queue pairs that were created by DEVX with cs_res and cs_req,
 * without libmlx5's data path: where the bytes are, which bit of op_own tells it, and which
 * messages are stored in memory. The queue pair is connected to itself.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "../lib/rawnic.h"
#include "../softnic/softnic.h"

#define CQ_AT	 8192u /* in the rings; the RQ is at 0 */
#define SQ_AT	 512u  /* behind 16 receive WQEs of 32 bytes */
#define FROM	 64u   /* in the payload: bytes to send, or to read */
#define TO	 1024u /* where received data is expected if it is not in a CQE */
#define PAYLOAD	 4096u
#define GUARD	 0xa5
#define WAIT_MS	 5000
#define IMM	 0x11223344u
#define IN_CQE32 0x04 /* bits of op_own (mlx5dv.h: MLX5_INLINE_SCATTER_32, _64) */
#define IN_CQE64 0x08

enum { RC, UC };
enum { OP_WRITE_IMM = 0x09, OP_SEND, OP_SEND_IMM, OP_READ = 0x10, OP_FETCH_ADD = 0x12 };
enum { CQE_REQ, CQE_WRITE_IMM, CQE_SEND, CQE_SEND_IMM, CQE_RESP_ERR = 14, CQE_INVALID };

/* sizes around those that change where data is stored */
static const uint32_t sizes[] = { 0, 1, 2, 31, 32, 33, 63, 64, 65 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct nic n;
static struct mlx5dv_devx_obj *cq, *qp;
static struct ibv_mr *mr;
static uint8_t *mem;
static uint32_t cqn, qpn, cqe_size, log_cq, consumed, sent, posted;

/* ---- objects ---- */
static void make_cq(void)
{
	uint32_t in[0x110 / 4], i;

	log_cq = cqe_size == 128 ? 5 : 6;
	cq_box(&n, in);
	put(in, 0x10, cqe_size == 128 ? 1u << 21 : 0);
	in[0x1c / 4] = htobe32(log_cq << 24 | n.uar->page_id);
	for (i = 0; i < 4096; i += 64)
		((uint8_t *)n.mem)[CQ_AT + i + 63] = CQE_INVALID << 4;
	cq = create(&n, in, &cqn);
	cr_assert(cq);
}

static void make_qp(uint32_t st, uint32_t cs_req, uint32_t cs_res)
{
	uint32_t in[0x110 / 4];
	union ibv_gid gid;

	qp_box(&n, in, cqn);
	put(in, 0x18, st << 16);
	put(in, 0x20, 4u << 19 | 1u << 16);
	in[0xc4 / 4] = 0; /* the receive queue is its own */
	put(in, 0xdc, cs_req << 8 | cs_res);
	qp = create(&n, in, &qpn);
	cr_assert(qp, "refused: syndrome %#x", last_syndrome);
	modify_box(in, 0x502, qpn);
	put(in, 0x18, 3u << 11);
	put(in, 0x54, 1u << 16);
	put(in, 0xa8, 7u << 13 | 1u << 16);
	modify(qp, in, 0x110, 0);
	cr_assert_eq(ibv_query_gid(n.ctx, 1, 3, &gid), 0);
	rtr_box(in, qpn, &gid);
	put(in, 0x38, 3u << 16);
	modify(qp, in, 0x110, 0);
	modify_box(in, 0x504, qpn);
	put(in, 0x38, 14u << 27);
	put(in, 0x88, 3u << 21 | 7u << 16 | 7u << 13);
	put(in, 0x90, 0x77);
	modify(qp, in, 0x110, 0);
}

static void begin(uint32_t size, uint32_t st, uint32_t cs_req, uint32_t cs_res)
{
	cqe_size = size;
	consumed = sent = posted = 0;
	nic_open(&n);
	mem = aligned_alloc(4096, PAYLOAD);
	cr_assert(mem);
	mr = ibv_reg_mr(n.pd, mem, PAYLOAD,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	cr_assert(mr);
	make_cq();
	make_qp(st, cs_req, cs_res);
}

static void end(void)
{
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(cq), 0);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	nic_close(&n);
	free(mem);
}

/* Returns how many CQEs held data. QUERY_QP returns after the NIC has counted all that it wrote. */
static uint64_t counted(void)
{
	const struct sn_stats *(*stats)(void);
	uint32_t out[0x110 / 4];

	*(void **)&stats = dlsym(RTLD_DEFAULT, "sn_stats_get");
	cr_assert(stats);
	qp_state(qp, qpn, out);
	return stats()->inline_cqes;
}

/* ---- queues ---- */
static uint32_t *dbrec(void)
{
	return (uint32_t *)((uint8_t *)n.mem + DBR_AT);
}

static void put_segment(uint32_t *wqe, uint32_t at, uint32_t len, uint64_t addr)
{
	put(wqe, at, len);
	put(wqe, at + 4, mr->lkey);
	put(wqe, at + 8, (uint32_t)(addr >> 32));
	put(wqe, at + 12, (uint32_t)addr);
}

/* Posts a receive WQE with room for len bytes at TO. */
static void post_recv(uint32_t len)
{
	uint32_t *wqe = (uint32_t *)((uint8_t *)n.mem + 32 * (posted % 16));

	memset(wqe, 0, 32);
	put_segment(wqe, 0, len, (uintptr_t)mem + TO);
	put(wqe, 20, 0x100); /* the list ends here */
	posted++;
	__atomic_store_n(&dbrec()[0], htobe32(posted), __ATOMIC_RELEASE);
}

/* Posts a WQE of up to 3 segments of 16 bytes after the control segment. */
static void post_wqe(uint8_t opcode, uint32_t len, bool signalled)
{
	bool recv = opcode == OP_SEND || opcode == OP_SEND_IMM;
	bool get = opcode == OP_READ || opcode == OP_FETCH_ADD;
	uint32_t remote = get ? FROM : TO, local = get ? TO : FROM, at = 16;
	uint32_t *wqe = (uint32_t *)((uint8_t *)n.mem + SQ_AT + 64 * (sent % 16));
	uint64_t bell;

	memset(wqe, 0, 64);
	if (!recv) {
		put(wqe, 16, (uint32_t)(((uintptr_t)mem + remote) >> 32));
		put(wqe, 20, (uint32_t)((uintptr_t)mem + remote));
		put(wqe, 24, mr->rkey);
		at += opcode == OP_FETCH_ADD ? 32 : 16;
	}
	if (len) {
		put_segment(wqe, at, len, (uintptr_t)mem + local);
		at += 16;
	}
	put(wqe, 0, sent << 8 | opcode);
	put(wqe, 4, qpn << 8 | at / 16);
	put(wqe, 8, signalled ? 8 : 0);
	put(wqe, 12, IMM);
	sent++;
	__atomic_store_n(&dbrec()[1], htobe32(sent), __ATOMIC_RELEASE);
	memcpy(&bell, wqe, sizeof(bell));
	__atomic_store_n((uint64_t *)n.uar->reg_addr, bell, __ATOMIC_RELEASE);
}

/* Waits for a CQE. Returns its 64 bytes that are not the data of a large entry. */
static const uint8_t *next_cqe(void)
{
	uint32_t slot = consumed & ((1u << log_cq) - 1), lap = consumed >> log_cq & 1;
	const uint8_t *cqe = (uint8_t *)n.mem + CQ_AT + (slot + 1) * cqe_size - 64;
	uint8_t own = CQE_INVALID << 4;
	int ms;

	for (ms = 0; ms < WAIT_MS; ms++) {
		own = __atomic_load_n(cqe + 63, __ATOMIC_ACQUIRE);
		if (own >> 4 != CQE_INVALID && (own & 1) == lap)
			break;
		usleep(1000);
	}
	cr_assert(ms < WAIT_MS, "no completion within %d ms", WAIT_MS);
	consumed++;
	__atomic_store_n(&dbrec()[16], htobe32(consumed), __ATOMIC_RELEASE);
	return cqe;
}

/* ---- checks ---- */
static void fill(uint32_t len)
{
	uint32_t i;

	memset(mem, GUARD, PAYLOAD);
	for (i = 0; i < len; i++)
		mem[FROM + i] = (uint8_t)(i * 7 + len);
}

/* Expects len bytes of data in the CQE if bit is not 0, and otherwise in memory at TO. */
static void expect_data(const uint8_t *cqe, uint32_t len, uint8_t bit)
{
	const uint8_t *data = bit == IN_CQE64 ? cqe - 64 : bit ? cqe : mem + TO;
	uint32_t in_memory = bit ? 0 : len;

	cr_expect_eq(cqe[63] & (IN_CQE32 | IN_CQE64), bit, "%u bytes: op_own %#x", len, cqe[63]);
	cr_expect_eq(be32toh(*(const uint32_t *)(cqe + 44)), len, "wrong byte count");
	cr_expect_arr_eq(data, mem + FROM, len, "%u bytes arrived changed", len);
	cr_expect_eq(mem[TO - 1], GUARD);
	cr_expect_eq(mem[TO + in_memory], GUARD, "%u bytes: memory was written", len);
}

/* Sends len bytes to itself and checks the receiver's CQE. */
static void send_bytes(uint8_t opcode, uint32_t len, uint8_t bit)
{
	uint64_t before = counted();
	const uint8_t *cqe, *received = NULL;
	int i;

	fill(len);
	post_recv(256);
	post_wqe(opcode, len, true);
	for (i = 0; i < 2; i++) {
		cqe = next_cqe();
		if (cqe[63] >> 4 != CQE_REQ)
			received = cqe;
	}
	cr_assert(received);
	cr_expect_eq(received[63] >> 4, opcode == OP_SEND	? CQE_SEND
					: opcode == OP_SEND_IMM ? CQE_SEND_IMM
								: CQE_WRITE_IMM);
	if (opcode != OP_SEND)
		cr_expect_eq(be32toh(*(const uint32_t *)(received + 36)), IMM);
	expect_data(received, len, bit);
	cr_expect_eq(counted() - before, bit != 0);
}

/* Sends each size. Data of up to limit bytes must be in the CQE, as `bit` tells. */
static void send_sizes(uint8_t opcode, uint32_t limit, uint8_t bit)
{
	size_t i;

	for (i = 0; i < NSIZES; i++)
		send_bytes(opcode, sizes[i], sizes[i] && sizes[i] <= limit ? bit : 0);
}

static void get_bytes(uint8_t opcode, uint32_t len, uint8_t bit)
{
	uint64_t before = counted();

	fill(len);
	post_wqe(opcode, len, true);
	expect_data(next_cqe(), len, bit);
	cr_expect_eq(counted() - before, bit != 0);
}

static void read_sizes(uint32_t limit, uint8_t bit)
{
	size_t i;

	for (i = 1; i < NSIZES; i++)
		get_bytes(OP_READ, sizes[i], sizes[i] <= limit ? bit : 0);
}

/* ---- receives ---- */
Test(cmd_inline_data, no_data_in_cqes_without_cs_res)
{
	begin(64, RC, 0, 0);
	send_sizes(OP_SEND, 0, 0);
	end();
}

Test(cmd_inline_data, up_to_32_bytes)
{
	begin(64, RC, 0, 1);
	send_sizes(OP_SEND, 32, IN_CQE32);
	end();
}

Test(cmd_inline_data, up_to_64_bytes_in_the_first_half_of_large_cqes)
{
	begin(128, RC, 0, 2);
	send_sizes(OP_SEND, 64, IN_CQE64);
	end();
}

Test(cmd_inline_data, up_to_32_bytes_in_the_second_half_of_large_cqes)
{
	begin(128, RC, 0, 1);
	send_sizes(OP_SEND, 32, IN_CQE32);
	end();
}

Test(cmd_inline_data, unreliable_connection)
{
	begin(64, UC, 0, 1);
	send_sizes(OP_SEND, 32, IN_CQE32);
	end();
}

Test(cmd_inline_data, immediate_value_beside_the_data)
{
	begin(64, RC, 0, 1);
	send_sizes(OP_SEND_IMM, 32, IN_CQE32);
	end();
	begin(128, RC, 0, 2);
	send_sizes(OP_SEND_IMM, 64, IN_CQE64);
	end();
}

Test(cmd_inline_data, written_data_is_never_in_the_cqe)
{
	begin(64, RC, 0x11, 1);
	send_sizes(OP_WRITE_IMM, 0, 0);
	end();
}

static void expect_short_receive(uint32_t size, uint32_t cs_res, uint32_t room)
{
	const uint8_t *cqe;
	uint64_t before;

	begin(size, RC, 0, cs_res);
	before = counted();
	fill(room + 1);
	post_recv(room);
	post_wqe(OP_SEND, room + 1, true);
	cqe = next_cqe();
	cr_expect_eq(cqe[63] >> 4, CQE_RESP_ERR);
	cr_expect_eq(cqe[55], 0x01, "syndrome %#x is not a local length error", cqe[55]);
	cr_expect_eq(cqe[63] & (IN_CQE32 | IN_CQE64), 0);
	cr_expect_eq(mem[TO], GUARD, "memory was written");
	cr_expect_eq(counted(), before);
	end();
}

/* A message that exceeds its receive WQE is an error, although the CQE has room for it. */
Test(cmd_inline_data, short_receive_wqe)
{
	expect_short_receive(64, 1, 7);
	expect_short_receive(64, 1, 31);
	expect_short_receive(128, 2, 63);
}

/* ---- responses ---- */
Test(cmd_inline_data, responses_of_up_to_32_bytes)
{
	begin(64, RC, 0x11, 0);
	read_sizes(32, IN_CQE32);
	get_bytes(OP_FETCH_ADD, 8, IN_CQE32);
	send_bytes(OP_SEND, 8, 0);
	end();
}

Test(cmd_inline_data, responses_of_up_to_64_bytes)
{
	begin(128, RC, 0x22, 0);
	read_sizes(64, IN_CQE64);
	get_bytes(OP_FETCH_ADD, 8, IN_CQE64);
	end();
}

Test(cmd_inline_data, responses_without_cs_req)
{
	begin(64, RC, 0, 1);
	read_sizes(0, 0);
	get_bytes(OP_FETCH_ADD, 8, 0);
	end();
}

/* A WQE without a CQE has no other place for its response than memory. */
Test(cmd_inline_data, response_to_an_unsignalled_wqe)
{
	uint64_t before;

	begin(64, RC, 0x11, 0);
	before = counted();
	fill(16);
	post_recv(0);
	post_wqe(OP_READ, 16, false);
	post_wqe(OP_WRITE_IMM, 0, true);
	next_cqe();
	next_cqe();
	cr_expect_arr_eq(mem + TO, mem + FROM, 16);
	cr_expect_eq(counted(), before);
	end();
}
