/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What spin.cu uses of the C part of the test (spin_nic.c). */
#ifndef SPIN_C_H
#define SPIN_C_H

extern const unsigned int spin_num_qps;

/* Open the NIC and the GPU; pass queue pairs through their life (spin_life.h); close both. They
 * abort on errors. */
void spin_nic_open(const char *pci);
void spin_nic_life(void (*step)(const char *what, unsigned int qp));
void spin_nic_close(void);

#endif
