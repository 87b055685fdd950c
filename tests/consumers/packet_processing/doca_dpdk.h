/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The header of the SDK for programs that share a NIC with DPDK. gpu_packet_processing includes
 * it and calls nothing of it.
 */
