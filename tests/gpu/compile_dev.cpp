/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The same instantiations as C++17 on a CPU: the .cuh files need no CUDA. */
#include "compile_dev.cu"
