/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Buffers of the SDK's interface, from inventories and pools: places, data, references, lists, and
 * calls in a wrong order.
 */
#include <criterion/criterion.h>

#include "doca_buf.h"
#include "doca_buf_inventory.h"
#include "doca_buf_pool.h"

#include "../../qp/doca/buf.h"
#include "doca_base_rig.h"

#define LEN 4096u

static uint8_t mem[LEN] __attribute__((aligned(4096)));
static struct doca_dev *dev;
static struct doca_mmap *map;

static void open_all(void)
{
	dev = rig_open();
	cr_assert_eq(doca_mmap_create(&map), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_add_dev(map, dev), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_memrange(map, mem, LEN), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(map), DOCA_SUCCESS);
}

static void close_all(void)
{
	cr_expect_eq(doca_mmap_destroy(map), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
}

TestSuite(doca_buf, .init = open_all, .fini = close_all);

static struct doca_buf_inventory *inventory(size_t num)
{
	struct doca_buf_inventory *inv;

	cr_assert_eq(doca_buf_inventory_create(num, &inv), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_inventory_start(inv), DOCA_SUCCESS);
	return inv;
}

Test(doca_buf, data_of_buffers_of_an_inventory)
{
	struct doca_buf_inventory *inv = inventory(2);
	struct doca_buf *empty, *full, *none = NULL;
	void *data = NULL;
	uint16_t refs = 9;

	cr_assert_eq(doca_buf_inventory_buf_get_by_addr(inv, map, mem + 16, 100, &empty),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_buf_inventory_buf_get_by_data(inv, map, mem + 200, 50, &full),
		     DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_NO_MEMORY, "all 2 buffers of the inventory are in use",
		doca_buf_inventory_buf_get_by_addr(inv, map, mem, 1, &none));
	cr_expect_null(none);
	cr_expect_eq(doca_buf_get_data(empty, &data), DOCA_SUCCESS);
	cr_expect_eq(data, mem + 16);
	cr_expect_eq(empty->data_len, 0);
	cr_expect_eq(full->data_len, 50);
	cr_expect_eq(doca_buf_set_data(empty, mem + 20, 96), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_get_data(empty, &data), DOCA_SUCCESS);
	cr_expect_eq(data, mem + 20);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "expected a part of the buffer",
		doca_buf_set_data(empty, mem + 20, 97));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "expected a part of the buffer",
		doca_buf_set_data(empty, mem + 15, 1));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "expected a part of the buffer",
		doca_buf_set_data_len(full, 51));
	cr_expect_eq(doca_buf_set_data_len(full, 0), DOCA_SUCCESS);
	cr_expect_eq(full->data_len, 0);
	REFUSED(DOCA_ERROR_IN_USE, "2 of 2 buffers of the inventory are not freed",
		doca_buf_inventory_destroy(inv));
	REFUSED(DOCA_ERROR_IN_USE, "2 buffers or pools use mmap", doca_mmap_stop(map));
	REFUSED(DOCA_ERROR_IN_USE, "2 buffers or pools use mmap", doca_mmap_destroy(map));
	cr_expect_eq(doca_buf_dec_refcount(empty, &refs), DOCA_SUCCESS);
	cr_expect_eq(refs, 1);
	REFUSED(DOCA_ERROR_BAD_STATE, "is freed", doca_buf_dec_refcount(empty, NULL));
	cr_expect_eq(doca_buf_dec_refcount(full, NULL), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_inventory_destroy(inv), DOCA_SUCCESS);
}

Test(doca_buf, ranges_and_states_are_checked)
{
	struct doca_buf_inventory *inv;
	struct doca_buf *buf = NULL;

	cr_assert_eq(doca_buf_inventory_create(1, &inv), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "the inventory is not started",
		doca_buf_inventory_buf_get_by_addr(inv, map, mem, 1, &buf));
	cr_assert_eq(doca_buf_inventory_start(inv), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "the inventory is started already",
		doca_buf_inventory_start(inv));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "are not in the mmap",
		doca_buf_inventory_buf_get_by_addr(inv, map, mem + 1, LEN, &buf));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "are not in the mmap",
		doca_buf_inventory_buf_get_by_data(inv, map, mem - 1, 1, &buf));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "are not in the mmap",
		doca_buf_inventory_buf_get_by_addr(inv, map, mem + 1, SIZE_MAX, &buf));
	cr_expect_eq(doca_mmap_stop(map), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "is not started",
		doca_buf_inventory_buf_get_by_addr(inv, map, mem, 1, &buf));
	cr_expect_null(buf);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "num_elements 0", doca_buf_inventory_create(0, &inv));
	cr_expect_eq(doca_buf_inventory_destroy(inv), DOCA_SUCCESS);
}

Test(doca_buf, a_list_is_freed_with_its_first_buffer)
{
	struct doca_buf_inventory *inv = inventory(4);
	struct doca_buf *b[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(doca_buf_inventory_buf_get_by_data(inv, map, mem + i, 1, &b[i]),
			     DOCA_SUCCESS);
	cr_expect_eq(doca_buf_chain_list(b[0], b[1]), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_chain_list(b[2], b[3]), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_chain_list(b[0], b[2]), DOCA_SUCCESS);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(b[i]->next, b[i + 1], "element %d", i);
	REFUSED(DOCA_ERROR_BAD_STATE, "are the same list", doca_buf_chain_list(b[0], b[0]));
	REFUSED(DOCA_ERROR_BAD_STATE, "not the first of its list", doca_buf_chain_list(b[1], b[0]));
	REFUSED(DOCA_ERROR_BAD_STATE, "not the first of its list",
		doca_buf_dec_refcount(b[3], NULL));
	cr_expect_eq(doca_buf_dec_refcount(b[0], NULL), DOCA_SUCCESS);
	for (int i = 0; i < 4; i++) /* all are free again, and none is chained */
		cr_assert_eq(doca_buf_inventory_buf_get_by_data(inv, map, mem + i, 1, &b[i]),
			     DOCA_SUCCESS);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(doca_buf_dec_refcount(b[i], NULL), DOCA_SUCCESS, "buffer %d", i);
	cr_expect_eq(doca_buf_inventory_destroy(inv), DOCA_SUCCESS);
}

Test(doca_buf, a_pool_divides_a_mmap)
{
	struct doca_buf *b[4], *none = NULL;
	struct doca_buf_pool *pool = NULL;
	void *data;

	REFUSED(DOCA_ERROR_TOO_BIG, "5 buffers of 1024 bytes do not fit into the mmap",
		doca_buf_pool_create(5, 1024, map, &pool));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "element_size 0", doca_buf_pool_create(1, 0, map, &pool));
	cr_assert_eq(doca_buf_pool_create(4, 1024, map, &pool), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "the pool is not started", doca_buf_pool_buf_alloc(pool, b));
	REFUSED(DOCA_ERROR_BAD_STATE, "the pool is not started", doca_buf_pool_stop(pool));
	REFUSED(DOCA_ERROR_IN_USE, "1 buffers or pools use mmap", doca_mmap_destroy(map));
	cr_assert_eq(doca_buf_pool_start(pool), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "started already", doca_buf_pool_start(pool));
	for (int lap = 0; lap < 2; lap++) {
		unsigned int places = 0;

		for (int i = 0; i < 4; i++) {
			cr_assert_eq(doca_buf_pool_buf_alloc(pool, &b[i]), DOCA_SUCCESS);
			cr_expect_eq(doca_buf_get_data(b[i], &data), DOCA_SUCCESS);
			places |= 1u << (((uint8_t *)data - mem) / 1024);
			cr_expect_eq(b[i]->data_len, 0);
			cr_expect_eq(doca_buf_set_data(b[i], (uint8_t *)data + 24, 1000),
				     DOCA_SUCCESS);
		}
		cr_expect_eq(places, 15, "two buffers have the same memory");
		REFUSED(DOCA_ERROR_NO_MEMORY, "all 4 buffers of the pool are in use",
			doca_buf_pool_buf_alloc(pool, &none));
		REFUSED(DOCA_ERROR_IN_USE, "4 of 4 buffers", doca_buf_pool_stop(pool));
		REFUSED(DOCA_ERROR_IN_USE, "4 of 4 buffers", doca_buf_pool_destroy(pool));
		for (int i = 0; i < 4; i++)
			cr_expect_eq(doca_buf_dec_refcount(b[i], NULL), DOCA_SUCCESS);
	}
	cr_expect_eq(doca_buf_pool_stop(pool), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_pool_destroy(pool), DOCA_SUCCESS);
}

static doca_error_t round_trip(void)
{
	struct doca_buf_inventory *inv;
	struct doca_buf_pool *pool;
	doca_error_t err;

	err = doca_buf_inventory_create(16, &inv);
	if (err)
		return err;
	cr_expect_eq(doca_buf_inventory_destroy(inv), DOCA_SUCCESS);
	err = doca_buf_pool_create(16, 16, map, &pool);
	if (!err)
		cr_expect_eq(doca_buf_pool_destroy(pool), DOCA_SUCCESS);
	return err;
}

Test(doca_buf, failing_allocations_are_reported_and_nothing_leaks)
{
	rig_faults(round_trip, 4, 0);
}
