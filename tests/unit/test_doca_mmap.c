/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf */
/*
 * Memory of the SDK's interface: registration of host memory and of a dmabuf, the way back to
 * peer memory, keys that RDMA writes use, exports, and calls in a wrong order.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "doca_buf_inventory.h"
#include "doca_mmap.h"
#include "doca_rdma_bridge.h"
#include "doca_base_rig.h"

#include "../lib/vb.h"

#define LEN	8192u
#define RW	DOCA_ACCESS_FLAG_LOCAL_READ_WRITE
#define RDMA_WR (RW | DOCA_ACCESS_FLAG_RDMA_WRITE)

static uint8_t mem[LEN] __attribute__((aligned(4096)));

static struct doca_mmap *make(struct doca_dev *dev, void *addr, uint32_t access)
{
	struct doca_mmap *mmap;

	cr_assert_eq(doca_mmap_create(&mmap), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_add_dev(mmap, dev), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_memrange(mmap, addr, LEN), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_permissions(mmap, access), DOCA_SUCCESS);
	return mmap;
}

static enum ibv_wc_status write_to(struct vb *v, uint64_t addr, uint32_t rkey)
{
	return vb_write(v, vb_sge(v, 0, 64), addr, rkey);
}

/* Exports mmap, and writes through the mmap that is created from the description. */
static enum ibv_wc_status write_through(struct vb *v, struct doca_dev *dev, struct doca_mmap *mmap)
{
	enum ibv_wc_status status;
	struct doca_mmap *remote;
	uint8_t copy[128];
	const void *desc;
	uint32_t key = 0;
	size_t len;

	cr_assert_eq(doca_mmap_export_rdma(mmap, dev, &desc, &len), DOCA_SUCCESS);
	memcpy(copy + 1, desc, len); /* unaligned, as in a received message */
	cr_assert_eq(doca_mmap_create_from_export(NULL, copy + 1, len, dev, &remote), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_get_mkey(remote, dev, &key), DOCA_SUCCESS);
	status = write_to(v, (uintptr_t)mem, key);
	REFUSED(DOCA_ERROR_BAD_STATE, "created from an export", doca_mmap_stop(remote));
	REFUSED(DOCA_ERROR_NOT_PERMITTED, "memory of a remote host",
		doca_mmap_export_rdma(remote, dev, &desc, &len));
	cr_expect_eq(doca_mmap_destroy(remote), DOCA_SUCCESS);
	return status;
}

Test(doca_mmap, an_exported_mmap_is_written_by_rdma_with_its_permission_only)
{
	struct vb v = vb_open(4096);
	struct doca_mmap *mmap;
	struct doca_dev *dev;
	const void *desc;
	uint32_t key = 0;
	size_t len;

	memset(v.mem, 0x5a, 64);
	memset(mem, 0, 128);
	cr_assert_eq(doca_rdma_bridge_open_dev_from_pd(v.pd, &dev), DOCA_SUCCESS);
	mmap = make(dev, mem, RDMA_WR | DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING);
	cr_assert_eq(doca_mmap_start(mmap), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_get_mkey(mmap, dev, &key), DOCA_SUCCESS);
	cr_expect_neq(key, 0);
	cr_expect_eq(write_through(&v, dev, mmap), IBV_WC_SUCCESS);
	cr_expect(mem[0] == 0x5a && mem[63] == 0x5a && !mem[64]);
	cr_assert_eq(doca_mmap_stop(mmap), DOCA_SUCCESS);
	cr_expect_eq(write_to(&v, (uintptr_t)mem, key), IBV_WC_REM_ACCESS_ERR, "still registered");
	cr_assert_eq(doca_mmap_set_permissions(mmap, RW | DOCA_ACCESS_FLAG_RDMA_READ),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(mmap), DOCA_SUCCESS);
	cr_expect_eq(write_through(&v, dev, mmap), IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(doca_mmap_stop(mmap), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_permissions(mmap, RW), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(mmap), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_NOT_PERMITTED, "no permission for remote hosts",
		doca_mmap_export_rdma(mmap, dev, &desc, &len));
	cr_expect_eq(doca_mmap_destroy(mmap), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	vb_close(&v);
}

Test(doca_mmap, a_dmabuf_is_registered_also_if_the_range_is_set_again)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);
	struct vb v = vb_open(4096);
	struct doca_mmap *map;
	struct doca_dev *dev;
	const void *desc;
	uint8_t *view;
	size_t len;
	uint32_t key;

	/* The address is not mapped: only the dmabuf can be what the NIC writes. */
	void *addr = (void *)0x500000000000;

	cr_assert_eq(ftruncate(fd, 4096 + LEN), 0);
	view = mmap(NULL, 4096 + LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(v.mem, 0x5a, 64);
	cr_assert_eq(doca_rdma_bridge_open_dev_from_pd(v.pd, &dev), DOCA_SUCCESS);
	map = make(dev, mem, RDMA_WR);
	cr_assert_eq(doca_mmap_set_dmabuf_memrange(map, fd, addr, 4096, LEN), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_memrange(map, addr, LEN), DOCA_SUCCESS);
	capture_begin();
	cr_expect_eq(doca_mmap_start(map), DOCA_SUCCESS);
	cr_expect_str_empty(capture_end());
	cr_assert_eq(doca_mmap_export_rdma(map, dev, &desc, &len), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_get_mkey(map, dev, &key), DOCA_SUCCESS);
	cr_expect_eq(write_to(&v, (uintptr_t)addr, key), IBV_WC_SUCCESS);
	cr_expect_eq(view[4096], 0x5a);
	cr_expect_eq(view[0], 0);
	cr_expect_eq(doca_mmap_stop(map), DOCA_SUCCESS);
	/* Another range gives up the dmabuf. */
	cr_assert_eq(doca_mmap_set_memrange(map, mem, LEN), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(map), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_get_mkey(map, dev, &key), DOCA_SUCCESS);
	cr_expect_eq(write_to(&v, (uintptr_t)mem, key), IBV_WC_SUCCESS);
	cr_expect_eq(mem[63], 0x5a);
	cr_expect_eq(doca_mmap_destroy(map), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	munmap(view, 4096 + LEN);
	close(fd);
	vb_close(&v);
}

Test(doca_mmap, a_dmabuf_that_cannot_be_registered_is_replaced_by_the_address)
{
	struct doca_dev *dev = rig_open();
	struct doca_mmap *mmap = make(dev, mem, RW);
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint32_t key = 0;

	cr_assert_eq(doca_mmap_set_dmabuf_memrange(mmap, fd, mem, 0, LEN), DOCA_SUCCESS);
	REFUSED(DOCA_SUCCESS, "through peer memory", doca_mmap_start(mmap));
	cr_expect_eq(doca_mmap_get_mkey(mmap, dev, &key), DOCA_SUCCESS);
	cr_expect_neq(key, 0);
	cr_expect_eq(doca_mmap_stop(mmap), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_dmabuf_memrange(mmap, fd, (void *)4096, 0, LEN), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_DRIVER, "load nvidia-peermem", doca_mmap_start(mmap));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_mmap_get_mkey(mmap, dev, &key));
	cr_expect_eq(doca_mmap_destroy(mmap), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	close(fd);
}

Test(doca_mmap, calls_in_a_wrong_order_are_refused)
{
	struct doca_dev *dev = rig_open(), *other = rig_open();
	struct doca_mmap *mmap;
	const void *desc;
	uint32_t key;
	size_t len;

	cr_assert_eq(doca_mmap_create(&mmap), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "has no range", doca_mmap_start(mmap));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_mmap_stop(mmap));
	cr_assert_eq(doca_mmap_set_memrange(mmap, mem, LEN), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "has no device", doca_mmap_start(mmap));
	cr_assert_eq(doca_mmap_add_dev(mmap, dev), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_ALREADY_EXIST, "this device already", doca_mmap_add_dev(mmap, dev));
	REFUSED(DOCA_ERROR_NOT_FOUND, "has no device", doca_mmap_rm_dev(mmap, other));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_mmap_get_mkey(mmap, dev, &key));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_mmap_export_rdma(mmap, dev, &desc, &len));
	cr_assert_eq(doca_mmap_start(mmap), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_mmap_start(mmap));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_mmap_add_dev(mmap, other));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_mmap_rm_dev(mmap, dev));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_mmap_set_memrange(mmap, mem, LEN));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_mmap_set_permissions(mmap, RW));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started",
		doca_mmap_set_dmabuf_memrange(mmap, 0, mem, 0, LEN));
	REFUSED(DOCA_ERROR_NOT_FOUND, "has no device", doca_mmap_get_mkey(mmap, other, &key));
	REFUSED(DOCA_ERROR_IN_USE, "1 objects still use it", doca_dev_close(dev));
	cr_expect_eq(doca_mmap_stop(mmap), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "access_mask 0x10000",
		doca_mmap_set_permissions(mmap, 0x10000));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "len 0", doca_mmap_set_memrange(mmap, mem, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dmabuf_fd -1",
		doca_mmap_set_dmabuf_memrange(mmap, -1, mem, 0, LEN));
	cr_expect_eq(doca_mmap_rm_dev(mmap, dev), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	cr_expect_eq(doca_mmap_destroy(mmap), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(other), DOCA_SUCCESS);
}

Test(doca_mmap, a_foreign_description_is_refused)
{
	struct doca_dev *dev = rig_open();
	struct doca_mmap *mmap = NULL;
	char desc[32] = "not ours";

	REFUSED(DOCA_ERROR_INVALID_VALUE, "export_desc_len 31 (expected 32)",
		doca_mmap_create_from_export(NULL, desc, 31, dev, &mmap));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "expected bytes of doca_mmap_export_rdma()",
		doca_mmap_create_from_export(NULL, desc, 32, dev, &mmap));
	cr_expect_null(mmap);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
}

/* The second NIC refuses to deregister the memory, so the first has no key any more. */
Test(doca_mmap, a_stop_that_fails_leaves_no_key)
{
	struct doca_dev *dev = rig_open(), *other = rig_open();
	struct doca_mmap *mmap = make(dev, mem, RDMA_WR);
	struct doca_buf_inventory *inv;
	struct doca_buf *buf;
	const void *desc;
	uint32_t key;
	size_t len;

	nicfail_find();
	cr_assert_eq(doca_buf_inventory_create(1, &inv), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_inventory_start(inv), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_add_dev(mmap, other), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(mmap), DOCA_SUCCESS);
	nicfail_next(0, 0, 0, 2);
	REFUSED(DOCA_ERROR_DRIVER, "cannot deregister", doca_mmap_stop(mmap));
	nicfail_next(0, 0, 0, 0);
	REFUSED(DOCA_ERROR_BAD_STATE, "call doca_mmap_stop() again",
		doca_mmap_get_mkey(mmap, dev, &key));
	REFUSED(DOCA_ERROR_BAD_STATE, "call doca_mmap_stop() again",
		doca_mmap_get_mkey(mmap, other, &key));
	REFUSED(DOCA_ERROR_BAD_STATE, "call doca_mmap_stop() again",
		doca_mmap_export_rdma(mmap, dev, &desc, &len));
	REFUSED(DOCA_ERROR_BAD_STATE, "call doca_mmap_stop() again",
		doca_buf_inventory_buf_get_by_addr(inv, mmap, mem, LEN, &buf));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_mmap_set_memrange(mmap, mem, LEN));
	cr_expect_eq(doca_mmap_stop(mmap), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(mmap), DOCA_SUCCESS);
	cr_expect_eq(doca_mmap_get_mkey(mmap, dev, &key), DOCA_SUCCESS);
	cr_expect_eq(doca_mmap_destroy(mmap), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_inventory_destroy(inv), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(other), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
}

static struct doca_dev *fault_dev;

/* Registers, exports and imports. Returns the first error. */
static doca_error_t round_trip(void)
{
	struct doca_mmap *mmap, *remote;
	const void *desc;
	doca_error_t err;
	size_t len;

	err = doca_mmap_create(&mmap);
	if (err)
		return err;
	err = doca_mmap_add_dev(mmap, fault_dev);
	if (!err)
		err = doca_mmap_set_memrange(mmap, mem, LEN);
	if (!err)
		err = doca_mmap_set_permissions(mmap, RDMA_WR);
	if (!err)
		err = doca_mmap_start(mmap);
	if (!err)
		err = doca_mmap_export_rdma(mmap, fault_dev, &desc, &len);
	if (!err) {
		err = doca_mmap_create_from_export(NULL, desc, len, fault_dev, &remote);
		if (!err)
			cr_expect_eq(doca_mmap_destroy(remote), DOCA_SUCCESS);
	}
	/* A failing deregistration keeps the mmap; the repetition succeeds. */
	if (doca_mmap_destroy(mmap)) {
		cr_expect_eq(doca_mmap_destroy(mmap), DOCA_SUCCESS);
		return DOCA_ERROR_DRIVER;
	}
	return err;
}

Test(doca_mmap, failures_are_reported_and_nothing_leaks)
{
	fault_dev = rig_open();
	rig_faults(round_trip, 4, 2);
	cr_expect_eq(doca_dev_close(fault_dev), DOCA_SUCCESS);
}
