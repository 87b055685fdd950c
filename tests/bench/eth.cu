/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures how many Ethernet packets per second GPU threads send (eth_send.cuh) and receive
 * (eth_recv.cuh), without a NIC. Prints a line of tab-separated fields for each row:
 *   send, multi or recv; the row; 10^6 packets per second: median, minimum, maximum; the
 *   reference's median: of a put, of a plain send, of a minimal loop; the ratio; its target, or 0
 * tests/bench/eth.sh builds and runs it. Arguments: sections (all).
 */
#define GDK_BOTH_SHAPES /* puts to queue pairs have the interface of DOCA GPUNetIO open */
#define POST_ETHERNET

#include "eth_send.cuh"

#include "eth_recv.cuh"

int main(int argc, char **argv)
{
	bool send = argc < 2, recv = argc < 2;

	for (int i = 1; i < argc; i++) {
		send |= !strcmp(argv[i], "send");
		recv |= !strcmp(argv[i], "recv");
	}
	time_open();
	if (send)
		send_rows();
	if (recv)
		recv_rows();
	return 0;
}
