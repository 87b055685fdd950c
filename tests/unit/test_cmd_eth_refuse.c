/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the firmware commands of raw Ethernet refuse: each test changes one field of a
 * valid command at a time. Also the capabilities of raw Ethernet.
 */
#include "../lib/rawnic_eth.h"

#define NUM(a) (sizeof(a) / sizeof((a)[0]))

/* A change of a command's input, and the status that it causes. */
struct change {
	uint32_t off, mask, value, status;
};

static void refuse_each(const struct eth *e, const uint32_t *box, size_t len,
			const struct change *c, size_t n)
{
	uint32_t in[0x120 / 4];

	while (n--) {
		memcpy(in, box, len);
		set(in, c->off, c->mask, c->value);
		cr_expect_neq(refuse(&e->n, in, len, c->status), 0, "no syndrome");
		c++;
	}
}

/* Expects that each bit of the input that is 0 in `fields` is refused as reserved. */
static void refuse_reserved(const struct eth *e, const uint32_t *box, size_t len,
			    const uint32_t *fields)
{
	uint32_t in[0x120 / 4], i, bit, before = 0, syndrome;

	for (i = 2; i < len / 4; i++)
		for (bit = 0; bit < 32; bit += fields[i] ? 1 : 7) {
			if (fields[i] >> bit & 1)
				continue;
			memcpy(in, box, len);
			put(in, 4 * i, 1u << bit);
			syndrome = refuse(&e->n, in, len, BAD_PARAM);
			cr_expect(syndrome >> 16 == 0x70, "bit %u of word %#x: syndrome %#x", bit,
				  4 * i, syndrome);
			before++;
		}
	cr_expect_gt(before, 100);
}

#define WQ_FIELDS(at) \
	[at / 4] = 0xff000000, [at / 4 + 1] = 0xf01fffff, [at / 4 + 2] = 0x00ffffff, \
	      [at / 4 + 3] = 0x00ffffff, [at / 4 + 4] = 0xffffffff, [at / 4 + 5] = 0xffffffff, \
	      [at / 4 + 6] = 0xffffffff, [at / 4 + 7] = 0xffffffff, [at / 4 + 8] = 0x000f1f1f, \
	      [at / 4 + 9] = 0xdf1f0f87, [at / 4 + 10] = 0xffffffff, [at / 4 + 11] = 0xffffffff, \
	      [at / 4 + 12] = 0xffffffff, [at / 4 + 13] = 0xffffffff

/* ---- SQs and RQs ---- */

/* The work queue's fields, for which SQs and RQs have the same rules. */
static void refuse_wq(const struct eth *e, const uint32_t *box)
{
	static const struct change all[] = {
		{ 0x50, 0xf0000000, 0x00000000, BAD_PARAM }, /* a linked list */
		{ 0x50, 0xf0000000, 0x20000000, BAD_PARAM }, /* striding, linked */
		{ 0x50, 0xf0000000, 0x30000000, BAD_PARAM }, /* striding, cyclic */
		{ 0x50, 0x08000000, 0x08000000, BAD_PARAM }, /* wq_signature */
		{ 0x50, 0x06000000, 0x04000000, BAD_PARAM }, /* end_padding_mode */
		{ 0x50, 0x06000000, 0x06000000, BAD_PARAM },
		{ 0x50, 0x01000000, 0x01000000, BAD_PARAM }, /* cd_slave */
		{ 0x54, 0x80000000, 0x80000000, BAD_PARAM }, /* hds_skip_first_sge */
		{ 0x54, 0x70000000, 0x10000000, BAD_PARAM }, /* log2_hds_buf_size */
		{ 0x54, 0x0000ffff, 0x00000001, BAD_PARAM }, /* lwm */
		{ 0x58, 0x00ffffff, 0x00123456, BAD_RES },   /* pd */
		{ 0x60, 0xffffffff, 0x00000001, BAD_RES },   /* dbr_addr */
		{ 0x64, 0xffffffff, RING, BAD_RES },
		{ 0x64, 0xffffffff, RING - 4, BAD_RES },
		{ 0x64, 0xffffffff, DBR_AT + 4, BAD_RES },
		{ 0x70, 0x000f0000, 0x00030000, BAD_PARAM }, /* log_wq_stride */
		{ 0x70, 0x000f0000, 0x000a0000, BAD_PARAM },
		{ 0x70, 0x0000001f, 16, BAD_PARAM }, /* log_wq_sz */
		{ 0x70, 0x0000001f, 31, BAD_PARAM },
		{ 0x70, 0x0000001f, 10, BAD_RES },	     /* the ring exceeds the umem */
		{ 0x74, 0x80000000, 0x00000000, BAD_PARAM }, /* dbr_umem_valid */
		{ 0x74, 0x40000000, 0x00000000, BAD_PARAM }, /* wq_umem_valid */
		{ 0x74, 0x1f000000, 0x01000000, BAD_PARAM }, /* log_hairpin_num_packets */
		{ 0x74, 0x001f0000, 0x00010000, BAD_PARAM }, /* log_hairpin_data_sz */
		{ 0x74, 0x00000f00, 0x00000100, BAD_PARAM }, /* log_wqe_num_of_strides */
		{ 0x74, 0x00000080, 0x00000080, BAD_PARAM }, /* two_byte_shift_en */
		{ 0x74, 0x00000007, 0x00000001, BAD_PARAM }, /* log_wqe_stride_size */
		{ 0x78, 0xffffffff, 0x00001234, BAD_RES },   /* dbr_umem_id */
		{ 0x7c, 0xffffffff, 0x00001234, BAD_RES },   /* wq_umem_id */
		{ 0x80, 0xffffffff, 0x00000001, BAD_RES },   /* wq_umem_offset */
		{ 0x84, 0xffffffff, 0x00000001, BAD_PARAM }, /* misaligned */
		{ 0x84, 0xffffffff, RING, BAD_RES },
	};

	refuse_each(e, box, 0x110, all, NUM(all));
}

Test(cmd_eth_refuse, sq)
{
	static const uint32_t fields[0x110 / 4] = {
		[0x20 / 4] = 0xffff0030, [0x24 / 4] = 0x00ffffff, [0x28 / 4] = 0x00ffffff,
		[0x2c / 4] = 0x00ffffff, [0x30 / 4] = 0x0000ffff, [0x38 / 4] = 0x00ffffff,
		[0x3c / 4] = 0x0000ffff, [0x40 / 4] = 0xffffffff, [0x4c / 4] = 0x00ffffff,
		WQ_FIELDS(0x50),
	};
	static const struct change all[] = {
		{ 0x20, 0x80000000, 0x80000000, BAD_PARAM }, /* rlky */
		{ 0x20, 0x40000000, 0x40000000, BAD_PARAM }, /* cd_master */
		{ 0x20, 0x07000000, 0x04000000, BAD_PARAM }, /* min_wqe_inline_mode */
		{ 0x20, 0x07000000, 0x07000000, BAD_PARAM },
		{ 0x20, 0x00f00000, RDY << 20, BAD_PARAM }, /* state */
		{ 0x20, 0x00f00000, ERR << 20, BAD_PARAM },
		{ 0x20, 0x00080000, 0x00080000, BAD_PARAM }, /* reg_umr */
		{ 0x20, 0x00040000, 0x00040000, BAD_PARAM }, /* allow_swp */
		{ 0x20, 0x00020000, 0x00020000, BAD_PARAM }, /* hairpin */
		{ 0x20, 0x00010000, 0x00010000, BAD_PARAM }, /* non_wire */
		{ 0x20, 0x00000030, 0x00000020, BAD_PARAM }, /* real time; free running only */
		{ 0x20, 0x00000030, 0x00000030, BAD_PARAM },
		{ 0x28, 0x00ffffff, 0x00123456, BAD_RES },   /* cqn */
		{ 0x2c, 0x00ffffff, 0x00000001, BAD_PARAM }, /* hairpin_peer_rq */
		{ 0x30, 0x0000ffff, 0x00000001, BAD_PARAM }, /* hairpin_peer_vhca */
		{ 0x38, 0x00ffffff, 0x00000001, BAD_PARAM }, /* ts_cqe_to_dest_cqn */
		{ 0x3c, 0x0000ffff, 0x00000001, BAD_PARAM }, /* packet_pacing_rate_... */
		{ 0x40, 0xffff0000, 0x00000000, BAD_RES },   /* tis_lst_sz */
		{ 0x40, 0xffff0000, 0x00020000, BAD_RES },
		{ 0x40, 0x0000ffff, 0x00000001, BAD_PARAM }, /* qos_queue_group_id */
		{ 0x4c, 0x00ffffff, 0x00123456, BAD_RES },   /* tis_num_0 */
		{ 0x50, 0x06000000, 0x02000000, BAD_PARAM }, /* end_padding_mode */
		{ 0x5c, 0x00ffffff, 0x00000000, BAD_RES },   /* uar_page */
		{ 0x5c, 0x00ffffff, 0x00ffffff, BAD_RES },
		{ 0x70, 0x000f0000, 0x00050000, BAD_PARAM }, /* log_wq_stride */
		{ 0x70, 0x000f0000, 0x00070000, BAD_PARAM },
	};
	uint32_t box[0x110 / 4];
	struct eth e;

	eth_open(&e);
	sq_box(&e, box);
	refuse_each(&e, box, 0x110, all, NUM(all));
	refuse_wq(&e, box);
	refuse_reserved(&e, box, 0x110, fields);
	refuse(&e.n, box, 0x10c, BAD_INP_LEN);
	eth_close(&e);
}

Test(cmd_eth_refuse, rq)
{
	static const uint32_t fields[0x110 / 4] = {
		[0x20 / 4] = 0xfff60030, [0x24 / 4] = 0x00ffffff, [0x28 / 4] = 0x00ffffff,
		[0x2c / 4] = 0xff000000, [0x30 / 4] = 0x00ffffff, [0x34 / 4] = 0x00ffffff,
		[0x38 / 4] = 0x0000ffff, WQ_FIELDS(0x50),
	};
	static const struct change all[] = {
		{ 0x20, 0x80000000, 0x80000000, BAD_PARAM }, /* rlky */
		{ 0x20, 0x40000000, 0x40000000, BAD_PARAM }, /* delay_drop_en */
		{ 0x20, 0x0f000000, 0x01000000, BAD_RES },   /* mem_rq_type RMP, rmpn 0 */
		{ 0x20, 0x0f000000, 0x02000000, BAD_PARAM },
		{ 0x20, 0x00f00000, RDY << 20, BAD_PARAM },  /* state */
		{ 0x20, 0x00020000, 0x00020000, BAD_PARAM }, /* hairpin */
		{ 0x20, 0x00000030, 0x00000020, BAD_PARAM }, /* ts_format */
		{ 0x28, 0x00ffffff, 0x00123456, BAD_RES },   /* cqn */
		{ 0x2c, 0xff000000, 0xfe000000, BAD_RES },   /* counter_set_id */
		{ 0x34, 0x00ffffff, 0x00000001, BAD_PARAM }, /* hairpin_peer_sq */
		{ 0x38, 0x0000ffff, 0x00000001, BAD_PARAM }, /* hairpin_peer_vhca */
	};
	uint32_t box[0x110 / 4];
	struct eth e;

	eth_open(&e);
	rq_box(&e, box);
	refuse_each(&e, box, 0x110, all, NUM(all));
	refuse_wq(&e, box);
	refuse_reserved(&e, box, 0x110, fields);
	refuse(&e.n, box, 0x10c, BAD_INP_LEN);
	eth_close(&e);
}

/* The default and the free-running format are accepted, as are strides of 16 to 512 bytes. */
Test(cmd_eth_refuse, formats_and_strides_that_are_supported)
{
	uint32_t box[0x110 / 4], i;
	struct eth e;

	eth_open(&e);
	for (i = 0; i < 2; i++) {
		sq_box(&e, box);
		set(box, 0x20, 0x30, i << 4);
		mlx5dv_devx_obj_destroy(make(&e.n, box, 0x110, NULL));
		rq_box(&e, box);
		set(box, 0x20, 0x30, i << 4);
		mlx5dv_devx_obj_destroy(make(&e.n, box, 0x110, NULL));
	}
	for (i = 4; i <= 9; i++) {
		rq_box(&e, box);
		set(box, 0x70, 0x000f001f, i << 16 | 2);
		mlx5dv_devx_obj_destroy(make(&e.n, box, 0x110, NULL));
	}
	eth_close(&e);
}

Test(cmd_eth_refuse, modify_sq)
{
	uint32_t in[0x110 / 4], i;
	struct eth e;

	eth_open(&e);
	for (i = 0; i < 64; i += 9) {
		modify_box(in, 0x905, e.sqn);
		put(in, 0x20, RDY << 20);
		put(in, i < 32 ? 0x14 : 0x10, 1u << i % 32);
		modify(e.sq, in, 0x110, BAD_PARAM);
	}
	modify_box(in, 0x905, e.sqn);
	put(in, 0x20, RDY << 20 | 1);
	modify(e.sq, in, 0x110, BAD_PARAM);
	set(in, 0x20, 1, 0);
	put(in, 0x18, 1);
	modify(e.sq, in, 0x110, BAD_PARAM);
	set(in, 0x18, 1, 0);
	put(in, 0x08, 1 << 24);
	modify(e.sq, in, 0x110, BAD_PARAM);
	set(in, 0x08, 1 << 24, 0);
	modify(e.sq, in, 0x100, BAD_INP_LEN);
	modify(e.sq, in, 0x110, 0);
	eth_reset(e.sq, 0x905, e.sqn);
	eth_close(&e);
}

Test(cmd_eth_refuse, modify_rq)
{
	static const uint32_t bits[] = { 1 << 0, 1 << 4, 1u << 31 };
	uint32_t in[0x110 / 4];
	struct eth e;
	size_t i;

	eth_open(&e);
	for (i = 0; i < NUM(bits); i++) {
		modify_box(in, 0x909, e.rqn);
		put(in, 0x20, RDY << 20);
		put(in, 0x14, bits[i]);
		modify(e.rq, in, 0x110, BAD_PARAM);
		set(in, 0x14, ~0u, 0);
		put(in, 0x10, bits[i]);
		modify(e.rq, in, 0x110, BAD_PARAM);
	}
	modify_box(in, 0x909, e.rqn);
	modify(e.rq, in, 0x10, BAD_INP_LEN);
	put(in, 0x20, RDY << 20);
	put(in, 0x14, 8);
	put(in, 0x2c, 0xfeu << 24); /* no such set */
	modify(e.rq, in, 0x110, BAD_RES);
	cr_expect_eq(eth_query_state(e.rq, 0x909, e.rqn), RST, "the command failed");
	eth_close(&e);
}

/* ---- transport domains, TISes, tables, TIRs ---- */
Test(cmd_eth_refuse, td_and_counters)
{
	static const uint32_t opcodes[] = { 0x816, 0x771, 0x939 };
	uint32_t in[8] = { 0 };
	struct eth e;
	size_t i;

	eth_open(&e);
	for (i = 0; i < NUM(opcodes); i++) {
		memset(in, 0, sizeof(in));
		put(in, 0, opcodes[i] << 16);
		put(in, 8, 1);
		refuse(&e.n, in, 16, BAD_PARAM);
		set(in, 8, 1, 0);
		put(in, 12, 1u << 31);
		refuse(&e.n, in, 16, BAD_PARAM);
		set(in, 12, ~0u, 0);
		put(in, 16, 1);
		refuse(&e.n, in, 20, BAD_PARAM);
		refuse(&e.n, in, 12, BAD_INP_LEN);
	}
	eth_close(&e);
}

Test(cmd_eth_refuse, tis)
{
	static const uint32_t fields[0xc0 / 4] = {
		[0x20 / 4] = 0xcf0f0000,
		[0x44 / 4] = 0x00ffffff,
		[0x48 / 4] = 0x00ffffff,
		[0x4c / 4] = 0x00ffffff,
	};
	static const struct change all[] = {
		{ 0x20, 0x40000000, 0x40000000, BAD_PARAM }, /* tls_en */
		{ 0x20, 0x0f000000, 0x02000000, BAD_PARAM }, /* lag_tx_port_affinity */
		{ 0x44, 0x00ffffff, 0x00123456, BAD_RES },   /* transport_domain */
		{ 0x48, 0x00ffffff, 0x00000001, BAD_PARAM }, /* underlay_qpn */
	};
	uint32_t box[0x110 / 4];
	struct eth e;

	eth_open(&e);
	tis_box(&e, box);
	refuse_each(&e, box, 0xc0, all, NUM(all));
	refuse_reserved(&e, box, 0xc0, fields);
	refuse(&e.n, box, 0xbc, BAD_INP_LEN);
	eth_close(&e);
}

Test(cmd_eth_refuse, rqt)
{
	static const uint32_t fields[0x110 / 4] = { [0x34 / 4] = 0x0700ffff,
						    [0x38 / 4] = 0x8000ffff };
	static const struct change all[] = {
		{ 0x34, 0x07000000, 0x01000000, BAD_PARAM }, /* list_q_type */
		{ 0x34, 0x0000ffff, 513, BAD_PARAM },	     /* rqt_max_size */
		{ 0x34, 0x0000ffff, 2, BAD_PARAM },
		{ 0x38, 0x80000000, 0x80000000, BAD_PARAM }, /* rq_vhca_id_format */
		{ 0x38, 0x0000ffff, 0, BAD_PARAM },	     /* rqt_actual_size */
		{ 0x38, 0x0000ffff, 3, BAD_PARAM },
		{ 0x38, 0x0000ffff, 1024, BAD_PARAM },
		{ 0x38, 0x0000ffff, 8, BAD_INP_LEN },
		{ 0x110, 0xff000000, 0x01000000, BAD_PARAM }, /* entries */
		{ 0x114, 0x00ffffff, 0x00123456, BAD_RES },
		{ 0x11c, 0x00ffffff, 0, BAD_RES },
	};
	uint32_t box[0x120 / 4];
	struct eth e;

	eth_open(&e);
	rqt_box(&e, box, 4);
	mlx5dv_devx_obj_destroy(make(&e.n, box, 0x120, NULL));
	refuse_each(&e, box, 0x120, all, NUM(all));
	set(box, 0x11c, 0xffffff, 0);
	set(box, 0x38, 0xffff, 3);
	refuse(&e.n, box, 0x120, BAD_PARAM);
	set(box, 0x38, 0xffff, 4);
	set(box, 0x11c, 0xffffff, e.sqn); /* an SQ */
	refuse(&e.n, box, 0x120, BAD_RES);
	rqt_box(&e, box, 0);
	refuse_reserved(&e, box, 0x110, fields);
	refuse(&e.n, box, 0x10c, BAD_INP_LEN);
	eth_close(&e);
}

Test(cmd_eth_refuse, tir)
{
	static const uint32_t fields[0x110 / 4] = {
		[0x24 / 4] = 0xf8000000, [0x30 / 4] = 0x0fffffff, [0x3c / 4] = 0x00ffffff,
		[0x40 / 4] = 0xa0ffffff, [0x44 / 4] = 0xf3ffffff, [0x48 / 4] = 0xffffffff,
		[0x4c / 4] = 0xffffffff, [0x50 / 4] = 0xffffffff, [0x54 / 4] = 0xffffffff,
		[0x58 / 4] = 0xffffffff, [0x5c / 4] = 0xffffffff, [0x60 / 4] = 0xffffffff,
		[0x64 / 4] = 0xffffffff, [0x68 / 4] = 0xffffffff, [0x6c / 4] = 0xffffffff,
		[0x70 / 4] = 0xffffffff, [0x74 / 4] = 0xffffffff,
	};
	static const struct change all[] = {
		{ 0x24, 0xf0000000, 0x00000000, BAD_PARAM }, /* direct, with a table */
		{ 0x24, 0xf0000000, 0x20000000, BAD_PARAM }, /* disp_type */
		{ 0x24, 0x08000000, 0x08000000, BAD_PARAM }, /* tls_en */
		{ 0x30, 0x0ffff000, 0x00001000, BAD_PARAM }, /* lro_timeout_period_usecs */
		{ 0x30, 0x00000f00, 0x00000100, BAD_PARAM }, /* packet_merge_mask */
		{ 0x30, 0x000000ff, 0x00000001, BAD_PARAM }, /* lro_max_ip_payload_size */
		{ 0x3c, 0x00ffffff, 0x00000001, BAD_PARAM }, /* inline_rqn of an indirect TIR */
		{ 0x40, 0x20000000, 0x20000000, BAD_PARAM }, /* tunneled_offload_en */
		{ 0x40, 0x00ffffff, 0x00123456, BAD_RES },   /* indirect_table */
		{ 0x44, 0xf0000000, 0x10000000, BAD_PARAM }, /* rx_hash_fn: inverted XOR8 */
		{ 0x44, 0xf0000000, 0x30000000, BAD_PARAM },
		{ 0x44, 0x00ffffff, 0x00123456, BAD_RES },   /* transport_domain */
		{ 0x70, 0x3fffffff, 0x00000010, BAD_PARAM }, /* IPsec SPI */
		{ 0x70, 0x3fffffff, 0x20000000, BAD_PARAM },
		{ 0x74, 0xffffffff, 0x00000001, BAD_PARAM }, /* inner headers */
	};
	uint32_t box[0x110 / 4];
	struct eth e;

	eth_open(&e);
	tir_box(&e, box);
	refuse_each(&e, box, 0x110, all, NUM(all));
	refuse_reserved(&e, box, 0x110, fields);
	refuse(&e.n, box, 0x10c, BAD_INP_LEN);
	set(box, 0x40, 0x80000000, 0x80000000); /* symmetric, first with a hash function */
	mlx5dv_devx_obj_destroy(make(&e.n, box, 0x110, NULL));
	set(box, 0x44, 0xf0000000, 0);
	refuse(&e.n, box, 0x110, BAD_PARAM);
	set(box, 0x24, 0xf0000000, 0); /* direct, to an RQ that does not exist */
	set(box, 0x40, 0x80ffffff, 0);
	refuse(&e.n, box, 0x110, BAD_RES);
	set(box, 0x40, 0x80000000, 0x80000000);
	refuse(&e.n, box, 0x110, BAD_PARAM);
	set(box, 0x40, 0x80000000, 0);
	set(box, 0x3c, 0xffffff, e.sqn);
	refuse(&e.n, box, 0x110, BAD_RES);
	eth_close(&e);
}

Test(cmd_eth_refuse, modify_tir)
{
	static const uint32_t bits[] = { 1 << 0, 1 << 3, 1 << 5 };
	uint32_t in[0x110 / 4], out[0x110 / 4] = { 0 };
	struct eth e;
	size_t i;

	eth_open(&e);
	for (i = 0; i < NUM(bits); i++) {
		tir_box(&e, in);
		set(in, 0x00, 0xffff0000, 0x901u << 16);
		put(in, 0x08, e.tirn);
		put(in, 0x14, bits[i]);
		modify(e.tir, in, 0x110, BAD_PARAM);
	}
	set(in, 0x14, 0xff, 2 | 4);
	set(in, 0x40, 0xffffff, 0x123456);
	put(in, 0x70, 0xc);
	modify(e.tir, in, 0x110, BAD_RES);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x903u << 16);
	put(in, 8, e.tirn);
	cr_assert_eq(mlx5dv_devx_obj_query(e.tir, in, 16, out, 0x110), 0);
	cr_expect_eq(get(out, 0x70), 3, "a part of a failed command took effect");
	eth_close(&e);
}

/* A direct TIR has neither a table nor a hash that could change. */
Test(cmd_eth_refuse, modify_direct_tir)
{
	uint32_t in[0x110 / 4], tirn;
	struct mlx5dv_devx_obj *tir;
	struct eth e;

	eth_open(&e);
	tir_box(&e, in);
	set(in, 0x24, 0xf0000000, 0);
	set(in, 0x44, 0xf0000000, 0);
	set(in, 0x40, 0x80ffffff, 0);
	set(in, 0x3c, 0x00ffffff, e.rqn);
	tir = make(&e.n, in, 0x110, &tirn);
	tir_box(&e, in);
	set(in, 0x00, 0xffff0000, 0x901u << 16);
	put(in, 0x08, tirn);
	put(in, 0x14, 2);
	modify(tir, in, 0x110, BAD_PARAM);
	set(in, 0x14, 0xff, 4);
	modify(tir, in, 0x110, BAD_PARAM);
	set(in, 0x14, 0xff, 16);
	modify(tir, in, 0x110, 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(tir), 0);
	eth_close(&e);
}

/* Expects that a valid command with room for 12 bytes of output creates nothing. */
static void refuse_short_output(const struct eth *e, const uint32_t *in, size_t len)
{
	uint32_t out[4] = { 0 };

	cr_expect(!mlx5dv_devx_obj_create(e->n.ctx, in, len, out, 12));
	cr_expect_eq(get(out, 0) >> 24, BAD_OUTP_LEN, "command %#x", get(in, 0) >> 16);
}

Test(cmd_eth_refuse, short_outputs)
{
	uint32_t in[0x120 / 4] = { 0 };
	struct eth e;

	eth_open(&e);
	put(in, 0, 0x816u << 16);
	refuse_short_output(&e, in, 16);
	set(in, 0, 0xffff0000, 0x771u << 16);
	refuse_short_output(&e, in, 16);
	set(in, 0, 0xffff0000, 0x939u << 16);
	refuse_short_output(&e, in, 16);
	tis_box(&e, in);
	refuse_short_output(&e, in, 0xc0);
	sq_box(&e, in);
	refuse_short_output(&e, in, 0x110);
	rq_box(&e, in);
	refuse_short_output(&e, in, 0x110);
	rqt_box(&e, in, 1);
	refuse_short_output(&e, in, 0x114);
	tir_box(&e, in);
	refuse_short_output(&e, in, 0x110);
	rmp_box(&e, in);
	refuse_short_output(&e, in, 0x110);
	cq_box(&e.n, in);
	refuse_short_output(&e, in, 0x110);
	qp_box(&e.n, in, e.cqn);
	refuse_short_output(&e, in, 0x110);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x200u << 16); /* CREATE_MKEY */
	refuse_short_output(&e, in, 0x110);
	eth_close(&e);
}

/* Queries accept no other input than the number. */
Test(cmd_eth_refuse, queries)
{
	uint32_t in[4], out[0x120 / 4];
	struct eth e;
	size_t i;

	eth_open(&e);
	const struct {
		struct mlx5dv_devx_obj *o;
		uint32_t opcode, number;
	} all[] = { { e.sq, 0x907, e.sqn },
		    { e.rq, 0x90b, e.rqn },
		    { e.tis, 0x915, e.tisn },
		    { e.rqt, 0x919, e.rqtn },
		    { e.tir, 0x903, e.tirn } };

	for (i = 0; i < NUM(all); i++) {
		memset(in, 0, sizeof(in));
		put(in, 0, all[i].opcode << 16);
		put(in, 8, all[i].number);
		put(in, 12, 1);
		cr_expect_eq(mlx5dv_devx_obj_query(all[i].o, in, 16, out, sizeof(out)), EREMOTEIO);
		cr_expect_eq(get(out, 0) >> 24, BAD_PARAM);
	}
	eth_close(&e);
}

/* ---- capabilities ---- */
static uint32_t cap(const struct nic *n, uint32_t type, uint32_t off, uint32_t *status)
{
	uint32_t in[4] = { 0 }, out[0x1010 / 4] = { 0 };

	put(in, 0, 0x100u << 16);
	put(in, 4, type << 1 | 1);
	*status = mlx5dv_devx_general_cmd(n->ctx, in, sizeof(in), out, sizeof(out))
			  ? get(out, 0) >> 24
			  : 0;
	return get(out, 0x10 + off);
}

Test(cmd_eth_refuse, capabilities)
{
	uint32_t st;
	struct nic n;

	nic_open(&n);
	cr_expect_eq(cap(&n, 0, 0x40, &st) >> 3 & 1, 1, "eth_net_offloads");
	cr_expect_eq(cap(&n, 0, 0x34, &st) >> 25 & 1, 1, "nic_flow_table");
	cr_expect_eq(cap(&n, 0, 0x6c, &st) & 0x1f1f1f1f, 0x10101010, "RQ, SQ, TIR, TIS");
	cr_expect_eq(cap(&n, 0, 0x70, &st) >> 8 & 0x1f, 9, "log_max_rqt_size");
	cr_expect_eq(cap(&n, 1, 0x00, &st) & 0xc1ffff60, 0xc1f22960);
	cr_expect_eq(st, 0);
	cr_expect_eq(cap(&n, 1, 0x04, &st) >> 29, 0, "SWP");
	cr_expect_eq(cap(&n, 7, 0x40, &st) >> 31, 1, "ft_support of NIC RX");
	cr_expect_eq(st, 0);
	cr_expect_eq(cap(&n, 7, 0x60, &st), 0xff0ffe00, "ft_field_support");
	cr_expect_eq(cap(&n, 7, 0x70, &st), 0xff0ffe00, "ft_field_bitmask_support");
	cr_expect_eq(cap(&n, 0xc, 0x00, &st), 0, "QoS");
	cr_expect_eq(st, 0);
	nic_close(&n);
}
