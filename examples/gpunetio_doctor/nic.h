/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of a device and its ports, for device_files.c, port.c, device.c, loopback.c and pair.c. */
#ifndef DOCTOR_NIC_H
#define DOCTOR_NIC_H

#include <infiniband/verbs.h>

#include "doca_gpunetio_host.h"
#include "host/gdaki.h"

#include "doctor.h"

/* ---- device_files.c ---- */
/* Writes the PCI address of a device, or a word in its place; DR_NAME_LEN bytes at most. */
void dr_pci_address(const struct dr_env *env, const char *device, char *address);

/* ---- port.c ---- */
void dr_check_port_files(const struct dr_env *env, struct dr_report *r, const char *device,
			 int number);
/* active, max: bytes; 0: not known, because the device is not open */
void dr_report_mtu(const struct dr_env *env, struct dr_report *r, const char *device, int port,
		   int active, int max);
/* Finds the network interface of a port. Returns 0, or a negative errno. */
int dr_port_netdev(const struct dr_env *env, const char *device, int port, char *netdev);

/* ---- device.c ---- */
struct dr_device { /* an open device */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_dev_t *dev;
};

/* Opens a device and reports a failure in scope. Returns 0, or -1 after a result DR_FAIL. */
int dr_device_open(struct dr_device *d, const struct dr_env *env, struct dr_report *r,
		   const char *scope, const char *name);
void dr_device_close(struct dr_device *d);
/* Opens the device and checks all that needs no GPU. In a child process. */
void dr_probe_device(const struct dr_env *env, struct dr_report *r, const void *name);

/* ---- loopback.c ---- */
void dr_check_loopback(const struct dr_env *env, struct dr_report *r, const char *device);

#endif
