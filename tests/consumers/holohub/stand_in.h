/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What holohub's gpunetio manager needs of the Holoscan SDK and of DPDK to compile its kernels and
 * the classes of its queues. Replaces holoscan/holoscan.hpp, advanced_network/common.h (which needs
 * yaml-cpp), doca_dpdk.h and headers of DPDK.
 */
#ifndef HOLOHUB_STAND_IN_H
#define HOLOHUB_STAND_IN_H

#include <cstdio>
#include <set>

#include "advanced_network/types.h"

/* Prints the text of a message without its values. */
template <typename... Values> void stand_in_log(const char *text, const Values &...)
{
	fprintf(stderr, "holohub: error: %s\n", text);
}

#define HOLOSCAN_LOG_INFO(...)	   ((void)0)
#define HOLOSCAN_LOG_ERROR(...)	   stand_in_log(__VA_ARGS__)
#define HOLOSCAN_LOG_CRITICAL(...) stand_in_log(__VA_ARGS__)

#define RTE_MAX_ETHPORTS 32
struct rte_eth_conf {
};
struct rte_ether_addr {
};

#endif
