/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Representors stand for the functions that a BlueField offers to its host; only its own CPU has
 * them. No function of this library returns an object of these types.
 */
#include "qp/doca/dev.h"

#include "core/log/log.h"

static doca_error_t refuse(const char *func)
{
	gdk_err("%s: representors are not supported; they exist only on the CPU of a BlueField. "
		"Select a NIC by its PCI address or name",
		func);
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, enum doca_devinfo_rep_filter filter,
					  struct doca_devinfo_rep ***dev_list_rep,
					  uint32_t *nb_devs_rep)
{
	GDK_CHECK_PTR(dev);
	(void)filter;
	GDK_CHECK_PTR(dev_list_rep);
	GDK_CHECK_PTR(nb_devs_rep);
	return refuse(__func__);
}

doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep)
{
	GDK_CHECK_PTR(dev_list_rep);
	return refuse(__func__);
}

doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid,
				       uint32_t size)
{
	GDK_CHECK_PTR(devinfo_rep);
	GDK_CHECK_PTR(rep_vuid);
	(void)size;
	return refuse(__func__);
}

doca_error_t doca_devinfo_rep_is_equal_pci_addr(const struct doca_devinfo_rep *devinfo_rep,
						const char *pci_addr_str, uint8_t *is_equal)
{
	GDK_CHECK_PTR(devinfo_rep);
	GDK_CHECK_PTR(pci_addr_str);
	GDK_CHECK_PTR(is_equal);
	return refuse(__func__);
}

doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo_rep, struct doca_dev_rep **dev_rep)
{
	GDK_CHECK_PTR(devinfo_rep);
	GDK_CHECK_PTR(dev_rep);
	return refuse(__func__);
}
