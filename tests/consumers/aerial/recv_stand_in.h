/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Replaces headers of cuPHY that order_cuda_kernels.cu includes. For g++, also its function that
 * reads the timer of the GPU. */
#ifndef AERIAL_RECV_STAND_IN_H
#define AERIAL_RECV_STAND_IN_H

#ifndef __CUDACC__
inline unsigned long long __globaltimer()
{
	return gdk_now_ns();
}
#endif

#endif
