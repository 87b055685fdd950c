/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Compiles the instantiations of compile_dev.cu as C++17 for a CPU, to verify that the
 * .cuh files do not need CUDA. */
#include "compile_dev.cu"
