/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * NICs of the SDK's interface. struct doca_dev is that of core/nic/net_dev.h. A list in dev.c has,
 * for each NIC that this interface opened, its properties and the verbs objects to close.
 */
#ifndef GDK_DOCA_DEV_PRIV_H
#define GDK_DOCA_DEV_PRIV_H

#ifndef GDK_BOTH_SHAPES
#define GDK_BOTH_SHAPES /* the library itself uses both interfaces */
#endif

#include <infiniband/verbs.h>
#include <net/if.h>

#include "core/nic/net_dev.h"
#include "doca_dev.h"

struct doca_devinfo {
	struct ibv_device *device;	      /* valid until the list or the NIC is freed */
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE]; /* "0000:8a:00.0"; "": unknown */
	char iface[IF_NAMESIZE];	      /* "": none */
	enum doca_pci_func_type type;
	uint32_t sf_index; /* if type is DOCA_PCI_FUNC_TYPE_SF */
};

/* Reads the properties of a device from sysfs. */
void gdk_devinfo_read(struct doca_devinfo *info, struct ibv_device *device);

/* Finds the properties of a NIC that this interface opened, or returns NULL. */
struct doca_devinfo *gdk_devinfo_of(const struct doca_dev *dev);

/* Returns whether dev is open. Otherwise logs an error that names the function. */
bool gdk_dev_is_open(const struct doca_dev *dev, const char *func);

#endif
