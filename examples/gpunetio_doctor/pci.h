/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* PCI devices in sysfs, and checks that GPUs and NICs share. */
#ifndef DOCTOR_PCI_H
#define DOCTOR_PCI_H

#include "machine.h"

#define PCI_DEPTH 24

/* The devices from the host bridge ("pci0000:80") down to a device. */
struct dr_path {
	int num; /* 0: not known */
	char name[PCI_DEPTH][PCI_LEN];
};
void dr_pci_path(const struct dr_env *env, const char *pci, struct dr_path *path);

/* Finds the PCI address of an RDMA device, also of a scalable function. Returns 0, or a negative
 * errno. */
int dr_nic_pci(const struct dr_env *env, const char *device, char pci[PCI_LEN]);
/* Returns the NUMA node, -1 if it is not known. */
int dr_pci_numa(const struct dr_env *env, const char *pci);

void dr_check_link(const struct dr_env *env, struct dr_report *r, const char *scope,
		   const char *pci, bool is_gpu);
void dr_check_iommu_group(const struct dr_env *env, struct dr_report *r, const char *scope,
			  const char *pci);
void dr_check_numa(const struct dr_env *env, struct dr_report *r, const char *scope,
		   const char *pci);

/* ---- nicconf.c ---- */
/* Checks of the PCI function of each RDMA device, and of its settings. */
void dr_check_nic_function(const struct dr_env *env, struct dr_report *r);
/* ---- acs.c ---- */
void dr_check_acs(const struct dr_env *env, struct dr_report *r, const char *scope,
		  const struct dr_path *a, const struct dr_path *b, int common);

#endif
