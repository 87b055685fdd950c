/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The header of the SDK for TXQs of the CPU, which gdaki does not have. Host files of
 * gpu_packet_processing that do not use it include it.
 */
