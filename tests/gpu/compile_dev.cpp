/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Compiles the same instantiations as C++17 for a CPU: the .cuh files must not need CUDA. */
#include "compile_dev.cu"
