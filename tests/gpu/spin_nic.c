/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The C part of the test with a kernel that does not end (spin.cu). */
#include "spin_c.h"

#include "../lib/spin_life.h"

static struct e2e_nic nic;

const unsigned int spin_num_qps = SPIN_LIFE_QPS;

void spin_nic_open(const char *pci)
{
	e2e_open_on(&nic, pci);
}

void spin_nic_life(void (*step)(const char *what, unsigned int qp))
{
	spin_life_run(&nic, step);
}

void spin_nic_close(void)
{
	e2e_close(&nic);
}
