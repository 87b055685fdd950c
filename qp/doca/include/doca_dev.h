/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * NICs: the list of those that are present, their properties, and opening one. Return values,
 * out-parameters and threads: see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_DEV_H
#define GDK_SDK_DOCA_DEV_H

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;	 /* an opened NIC, with a protection domain */
struct doca_devinfo;	 /* properties of a NIC */
struct doca_dev_rep;	 /* an opened representor */
struct doca_devinfo_rep; /* properties of a representor */

#define DOCA_DEVINFO_PCI_ADDR_SIZE   16	 /**< bytes of a PCI address, final 0 included */
#define DOCA_DEVINFO_IBDEV_NAME_SIZE 64	 /**< bytes of the name of a verbs device */
#define DOCA_DEVINFO_IFACE_NAME_SIZE 256 /**< bytes of the name of a network interface */
#define DOCA_DEVINFO_IPV4_ADDR_SIZE  4	 /**< bytes of an IPv4 address */
#define DOCA_DEVINFO_IPV6_ADDR_SIZE  16	 /**< bytes of an IPv6 address */
#define DOCA_DEVINFO_REP_VUID_SIZE   128 /**< bytes of the identifier of a representor */

/** What a NIC is on the PCI bus. */
enum doca_pci_func_type {
	GDK_PCI_FUNC_TYPE_PF = 0,  /**< physical function */
	GDK_PCI_FUNC_TYPE_VF = 1,  /**< virtual function */
	DOCA_PCI_FUNC_TYPE_SF = 2, /**< scalable function, on an auxiliary bus */
};

/** Selects representors. No value is named, because representors are not supported. */
enum doca_devinfo_rep_filter {
	GDK_DEVINFO_REP_FILTER_ALL = 0, /**< all */
};

/**
 * Lists the NICs that are present and supported (mlx5). Free the list with
 * doca_devinfo_destroy_list(). Without a NIC the list is empty. Any thread may call this.
 *
 * @param dev_list gets an array of nb_devs elements
 * @param nb_devs gets the number of NICs
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_OPERATING_SYSTEM the kernel's list of devices cannot be read
 */
doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list, uint32_t *nb_devs);

/** Frees a list and its elements. NICs that were opened from it stay open. */
doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list);

/**
 * Compares the PCI address of a NIC.
 *
 * @param pci_addr_str for example "8a:00.0" or "0000:8A:00.0"; otherwise INVALID_VALUE
 * @param is_equal gets 1 or 0
 */
doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo,
					    const char *pci_addr_str, uint8_t *is_equal);

/**
 * Writes the PCI address of a NIC, for example "0000:8a:00.0".
 *
 * @param pci_addr_str at least DOCA_DEVINFO_PCI_ADDR_SIZE bytes
 */
doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str);

/** Returns whether a NIC is a physical, virtual or scalable function. */
doca_error_t doca_devinfo_get_pci_func_type(const struct doca_devinfo *devinfo,
					    enum doca_pci_func_type *pci_func_type);

/**
 * Writes the name of the verbs device, for example "mlx5_0".
 *
 * @param size bytes at ibdev_name, at least DOCA_DEVINFO_IBDEV_NAME_SIZE
 */
doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *ibdev_name,
					 uint32_t size);

/**
 * Writes the name of the network interface of port 1, for example "eth0".
 *
 * @param size bytes at iface_name, at least DOCA_DEVINFO_IFACE_NAME_SIZE
 * @retval DOCA_ERROR_NOT_FOUND the NIC has no network interface
 */
doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *iface_name,
					 uint32_t size);

/**
 * Writes an IPv4 address of port 1, in network byte order. It is that of the first GID that has
 * one, otherwise that of the network interface.
 *
 * @param size bytes at ipv4_addr, at least DOCA_DEVINFO_IPV4_ADDR_SIZE
 * @retval DOCA_ERROR_NOT_FOUND the port has no IPv4 address
 */
doca_error_t doca_devinfo_get_ipv4_addr(const struct doca_devinfo *devinfo, uint8_t *ipv4_addr,
					uint32_t size);

/**
 * Returns the number of a scalable function.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the NIC is not a scalable function
 */
doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo, uint32_t *sf_index);

/**
 * Opens a NIC and allocates a protection domain. Close it with doca_dev_close().
 *
 * @retval DOCA_ERROR_NOT_PERMITTED no access to the device file
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the device cannot be opened, or its capabilities cannot be queried
 */
doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);

/**
 * Closes a NIC. Umems and UARs of the NIC that are not destroyed yet, and that no CQ or QP uses,
 * are destroyed, with a warning.
 *
 * @param dev a NIC of doca_dev_open() or doca_rdma_bridge_open_dev_from_pd(); INVALID_VALUE if it
 *         is not open
 * @retval DOCA_ERROR_IN_USE another object that was created from the NIC still exists
 */
doca_error_t doca_dev_close(struct doca_dev *dev);

/** Returns the properties of an opened NIC, valid until it is closed; NULL if it is not open. */
struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev);

/**
 * Lists the representors of a NIC.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED always: representors are not supported
 */
doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, enum doca_devinfo_rep_filter filter,
					  struct doca_devinfo_rep ***dev_list_rep,
					  uint32_t *nb_devs_rep);

/**
 * Frees a list of representors.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED always: representors are not supported
 */
doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep);

/**
 * Writes the identifier of a representor.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED always: representors are not supported
 */
doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid,
				       uint32_t size);

/**
 * Compares the PCI address of a representor.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED always: representors are not supported
 */
doca_error_t doca_devinfo_rep_is_equal_pci_addr(const struct doca_devinfo_rep *devinfo_rep,
						const char *pci_addr_str, uint8_t *is_equal);

/**
 * Opens a representor.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED always: representors are not supported
 */
doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo_rep, struct doca_dev_rep **dev_rep);

#ifdef __cplusplus
}
#endif

#endif
