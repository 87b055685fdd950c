/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Rings at small offsets of a large umem, for which the kernel would choose large
 * pages. The firmware must accept every offset that the library accepts. Also tested
 * on a kernel with 64 KiB pages, with and without smaller pages of the NIC.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../umem/umem.h"
#include "../lib/capture.h"
#include "../lib/nic.h"

#define MIB   ((size_t)1 << 20)
#define NO_FD ((int)DOCA_VERBS_DMABUF_INVALID_FD)

static long page_size = 4096;

/* Replaces sysconf() of libc, so that the test can set the page size of the machine. */
long __sysconf(int name);
long sysconf(int name)
{
	return name == _SC_PAGESIZE ? page_size : __sysconf(name);
}

static struct nic nic;
static doca_verbs_umem_t *umem;
static doca_verbs_cq_t *own_cq;

/* Creates a CQ, and a umem of 1 MiB that starts `at` bytes after a multiple of 2 MiB. */
static void open_umem(size_t at)
{
	doca_verbs_cq_attr_t *attr;
	uint8_t *map;

	nic = nic_open();
	map = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(map, MAP_FAILED);
	map = (uint8_t *)(((uintptr_t)map + 2 * MIB - 1) & ~(2 * MIB - 1));
	cr_assert_eq(doca_verbs_umem_create(nic.dev, NULL, map + at, MIB, IBV_ACCESS_LOCAL_WRITE,
					    NO_FD, 0, &umem),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, 16);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &own_cq), DOCA_SUCCESS);
	doca_verbs_cq_attr_destroy(attr);
}

static void close_umem(void)
{
	cr_expect_eq(doca_verbs_cq_destroy(own_cq), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	nic_close(&nic);
}

static doca_error_t cq_at(size_t offset)
{
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;
	doca_error_t err;

	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, 16);
	err = doca_verbs_cq_attr_set_external_umem(attr, umem, offset);
	cr_expect_eq(err != DOCA_SUCCESS, offset % 64 != 0,
		     "the setter must refuse offsets that are not multiples of 64");
	err = err ?: doca_verbs_cq_create(nic.dev, attr, &cq);
	if (!err)
		cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
	doca_verbs_cq_attr_destroy(attr);
	return err;
}

static doca_error_t qp_at(size_t offset)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_t *qp;
	doca_error_t err;

	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_set_send_cq(init, own_cq);
	doca_verbs_qp_init_attr_set_sq_wr(init, 16);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_external_umem(init, umem, offset);
	doca_verbs_qp_init_attr_set_external_umem_dbr(init, umem, 512 * 1024);
	err = doca_verbs_qp_create(nic.dev, init, &qp);
	if (!err)
		cr_assert_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_destroy(init);
	return err;
}

static doca_error_t srq_at(size_t offset)
{
	struct doca_verbs_srq_init_attr *attr;
	struct doca_verbs_srq *srq;
	doca_error_t err;

	cr_assert_eq(doca_verbs_srq_init_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_srq_init_attr_set_type(attr, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS);
	doca_verbs_srq_init_attr_set_srq_wr(attr, 16);
	doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1);
	doca_verbs_srq_init_attr_set_pd(attr, nic.pd);
	doca_verbs_srq_init_attr_set_external_umem(attr, umem, offset);
	err = doca_verbs_srq_create(nic.ctx, attr, &srq);
	if (!err)
		cr_assert_eq(doca_verbs_srq_destroy(srq), DOCA_SUCCESS);
	doca_verbs_srq_init_attr_destroy(attr);
	return err;
}

static const struct {
	const char *name;
	doca_error_t (*at)(size_t offset);
} rings[] = { { "CQ: a ring", cq_at }, { "QP: a work queue", qp_at }, { "SRQ: a ring", srq_at } };

#define RINGS GDK_ARRAY_SIZE(rings)

/*
 * The library must refuse the offset and log the umem, the rule, and an offset that
 * would be accepted. The log is not checked for a CQ whose offset is not a multiple of 64.
 */
static void refuses(size_t offset, const char *rule, const char *remedy)
{
	char place[64];
	size_t i;

	snprintf(place, sizeof(place), "offset %zu of umem 0x%x", offset, umem->id);
	for (i = 0; i < RINGS; i++) {
		doca_error_t err;

		capture_begin();
		err = rings[i].at(offset);
		(void)capture_end();
		cr_expect_eq(err, DOCA_ERROR_INVALID_VALUE, "%s: error %d", rings[i].name, err);
		cr_expect((rings[i].at == cq_at && offset % 64) ||
				  (strstr(capture_text, rings[i].name) &&
				   strstr(capture_text, place) && strstr(capture_text, rule) &&
				   strstr(capture_text, remedy)),
			  "log: %s", capture_text);
	}
}

Test(umem_rings, offsets_of_64_bytes_are_accepted)
{
	static const size_t offsets[] = { 0, 64, 192, 4096 + 64, 65536 - 64, 128 * 1024 + 960 };
	size_t i, o;

	open_umem(0);
	for (i = 0; i < RINGS; i++)
		for (o = 0; o < GDK_ARRAY_SIZE(offsets); o++)
			cr_expect_eq(rings[i].at(offsets[o]), DOCA_SUCCESS, "%s at offset %zu",
				     rings[i].name, offsets[o]);
	close_umem();
}

Test(umem_rings, other_offsets_are_refused_with_a_remedy)
{
	open_umem(0);
	refuses(4096 + 32, "a multiple of 64 bytes", "at offset 4160 of a page-aligned umem");
	refuses(8, "a multiple of 64 bytes", "at offset 64 of a page-aligned umem");
	close_umem();
}

/* First the ring's address is aligned and its offset is not, then the reverse. */
Test(umem_rings, offsets_in_an_unaligned_umem_are_refused)
{
	open_umem(32);
	refuses(32, "a multiple of 64 bytes", "at offset 64 of a page-aligned umem");
	refuses(64, "a multiple of 64 bytes", "at offset 64 of a page-aligned umem");
	close_umem();
}

static void kernel_64k(const char *how)
{
	page_size = 65536;
	setenv("SOFTNIC_PAGE_SIZE", how, 1);
	open_umem(0);
}

Test(umem_rings, offsets_on_a_64k_kernel_with_4k_nic_pages)
{
	size_t i;

	kernel_64k("64k");
	cr_expect_eq(umem->page, 4096);
	for (i = 0; i < RINGS; i++)
		cr_expect_eq(rings[i].at(65536 + 64), DOCA_SUCCESS, "%s refused", rings[i].name);
	close_umem();
}

Test(umem_rings, offsets_with_only_64k_nic_pages)
{
	size_t i;

	kernel_64k("64k:whole");
	cr_expect_eq(umem->page, 65536);
	for (i = 0; i < RINGS; i++)
		cr_expect_eq(rings[i].at(65536 + 1024), DOCA_SUCCESS, "%s refused", rings[i].name);
	refuses(64, "page size 65536", "at offset 1024 of a page-aligned umem");
	close_umem();
}

Test(umem_rings, refused_access_flags_are_explained)
{
	static const uint32_t bad[] = { IBV_ACCESS_REMOTE_WRITE,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC };
	doca_verbs_umem_t *none = NULL;
	size_t i;

	open_umem(0);
	for (i = 0; i < GDK_ARRAY_SIZE(bad); i++) {
		capture_begin();
		cr_expect_eq(doca_verbs_umem_create(nic.dev, NULL, umem->addr, MIB, bad[i], NO_FD,
						    0, &none),
			     DOCA_ERROR_DRIVER);
		(void)capture_end();
		cr_expect_null(none);
		cr_expect(strstr(capture_text, "a umem supports LOCAL_WRITE, REMOTE_READ, and "
					       "REMOTE_WRITE only together with LOCAL_WRITE"),
			  "log: %s", capture_text);
	}
	close_umem();
}
