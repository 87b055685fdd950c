/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The list of NICs of the SDK's interface, the properties of a NIC, and opening and closing one:
 * in the right order, in a wrong order, twice, and with failing allocations and verbs calls.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "doca_rdma_bridge.h"
#include "doca_base_rig.h"

#include "../softnic/front.h"

static struct doca_devinfo **infos;

static struct doca_devinfo *first(void)
{
	uint32_t num = 0;

	cr_assert_eq(doca_devinfo_create_list(&infos, &num), DOCA_SUCCESS);
	cr_assert_eq(num, 1, "%u NICs; the software NIC is one", num);
	return infos[0];
}

static void done(void)
{
	cr_expect_eq(doca_devinfo_destroy_list(infos), DOCA_SUCCESS);
}

Test(doca_dev, properties_of_the_software_nic)
{
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE], iface[DOCA_DEVINFO_IFACE_NAME_SIZE];
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE], text[INET_ADDRSTRLEN] = "";
	struct doca_devinfo *info = first();
	enum doca_pci_func_type type;
	uint8_t ip[DOCA_DEVINFO_IPV4_ADDR_SIZE];
	uint32_t sf;

	cr_expect_eq(doca_devinfo_get_ibdev_name(info, name, sizeof(name)), DOCA_SUCCESS);
	cr_expect_str_eq(name, "mlx5_0");
	cr_expect_eq(doca_devinfo_get_iface_name(info, iface, sizeof(iface)), DOCA_SUCCESS);
	cr_expect_str_eq(iface, "lo");
	cr_expect_eq(doca_devinfo_get_pci_addr_str(info, pci), DOCA_SUCCESS);
	cr_expect_str_eq(pci, SN_PCI_ADDR);
	cr_expect_eq(doca_devinfo_get_ipv4_addr(info, ip, sizeof(ip)), DOCA_SUCCESS);
	inet_ntop(AF_INET, ip, text, sizeof(text));
	cr_expect_str_eq(text, getenv("SOFTNIC_IP"), "not the address of this process");
	cr_expect_eq(doca_devinfo_get_pci_func_type(info, &type), DOCA_SUCCESS);
	cr_expect_neq(type, DOCA_PCI_FUNC_TYPE_SF);
	cr_expect_eq(doca_devinfo_get_sf_index(info, &sf), DOCA_ERROR_NOT_SUPPORTED);
	done();
}

Test(doca_dev, pci_addresses_are_compared_in_all_spellings)
{
	struct doca_devinfo *info = first();
	char upper[] = SN_PCI_ADDR;
	uint8_t equal = 2;

	for (char *c = upper; *c; c++)
		*c = (char)(*c >= 'a' && *c <= 'f' ? *c - 32 : *c);
	cr_expect_eq(doca_devinfo_is_equal_pci_addr(info, SN_PCI_ADDR, &equal), DOCA_SUCCESS);
	cr_expect_eq(equal, 1);
	equal = 2;
	cr_expect_eq(doca_devinfo_is_equal_pci_addr(info, upper, &equal), DOCA_SUCCESS);
	cr_expect_eq(equal, 1);
	equal = 2;
	cr_expect_eq(doca_devinfo_is_equal_pci_addr(info, upper + 5, &equal), DOCA_SUCCESS);
	cr_expect_eq(equal, 0, "an address without domain is of domain 0");
	cr_expect_eq(doca_devinfo_is_equal_pci_addr(info, "00ff:ff:1f.7", &equal), DOCA_SUCCESS);
	cr_expect_eq(equal, 0);
	equal = 2;
	for (int i = 0; i < 6; i++) {
		static const char *const bad[] = { "",	       "mlx5_0",    "03:00",
						   "03:00.0x", "0:0:0:0.0", "03:20.0" };

		REFUSED(DOCA_ERROR_INVALID_VALUE, "expected a PCI address",
			doca_devinfo_is_equal_pci_addr(info, bad[i], &equal));
	}
	cr_expect_eq(equal, 2, "written by a call that failed");
	done();
}

Test(doca_dev, short_buffers_and_null_are_refused)
{
	struct doca_devinfo *info = first();
	struct doca_dev *dev = NULL;
	char text[8] = "";
	uint32_t num;

	REFUSED(DOCA_ERROR_INVALID_VALUE, "size 8 (expected at least 64)",
		doca_devinfo_get_ibdev_name(info, text, sizeof(text)));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "size 8 (expected at least 256)",
		doca_devinfo_get_iface_name(info, text, sizeof(text)));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "size 3 (expected at least 4)",
		doca_devinfo_get_ipv4_addr(info, (uint8_t *)text, 3));
	cr_expect_str_empty(text);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "devinfo NULL", doca_dev_open(NULL, &dev));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dev NULL", doca_dev_close(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dev_list NULL", doca_devinfo_create_list(NULL, &num));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dev_list NULL", doca_devinfo_destroy_list(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "pd NULL", doca_rdma_bridge_open_dev_from_pd(NULL, &dev));
	done();
}

Test(doca_dev, a_device_outlives_its_list)
{
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE] = "";
	struct doca_dev *dev, *other;

	cr_assert_eq(doca_dev_open(first(), &dev), DOCA_SUCCESS);
	cr_assert_eq(doca_dev_open(infos[0], &other), DOCA_SUCCESS);
	done();
	cr_expect_eq(doca_devinfo_get_ibdev_name(doca_dev_as_devinfo(dev), name, sizeof(name)),
		     DOCA_SUCCESS);
	cr_expect_str_eq(name, "mlx5_0");
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "is not open", doca_dev_close(dev));
	capture_begin();
	cr_expect_null(doca_dev_as_devinfo(dev));
	cr_expect(strstr(capture_end(), "is not open"));
	cr_expect_eq(doca_dev_close(other), DOCA_SUCCESS);
}

Test(doca_dev, from_a_protection_domain)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE];
	struct doca_dev *dev;

	ibv_free_device_list(list);
	cr_assert_eq(doca_rdma_bridge_open_dev_from_pd(pd, &dev), DOCA_SUCCESS);
	cr_expect_eq(doca_devinfo_get_pci_addr_str(doca_dev_as_devinfo(dev), pci), DOCA_SUCCESS);
	cr_expect_str_eq(pci, SN_PCI_ADDR);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	cr_expect_eq(ibv_dealloc_pd(pd), 0, "the device closed the user's protection domain");
	cr_expect_eq(ibv_close_device(ctx), 0);
}

Test(doca_dev, representors_are_refused_with_a_reason)
{
	struct doca_devinfo_rep **list = NULL;
	enum doca_devinfo_rep_filter filter = GDK_DEVINFO_REP_FILTER_ALL;
	struct doca_dev *dev;
	uint32_t num;

	cr_assert_eq(doca_dev_open(first(), &dev), DOCA_SUCCESS);
	done();
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "only on the CPU of a BlueField",
		doca_devinfo_rep_create_list(dev, filter, &list, &num));
	cr_expect_null(list);
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
}

/* Lists, opens and closes a NIC. Returns the first error. */
static doca_error_t round_trip(void)
{
	struct doca_devinfo **list;
	struct doca_dev *dev;
	doca_error_t err;
	uint32_t num;

	err = doca_devinfo_create_list(&list, &num);
	if (err)
		return err;
	err = num ? doca_dev_open(list[0], &dev) : DOCA_ERROR_NOT_FOUND;
	if (!err)
		cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	cr_expect_eq(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
	return err;
}

Test(doca_dev, failures_are_reported_and_nothing_leaks)
{
	rig_faults(round_trip, 4, 2);
	cr_expect_eq(nicfail_live(), 0);
}
