/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libdoca_other.so is a library of the application that exports functions with the names of the
 * SDK's functions, for example because it contains another implementation of them. None of these
 * functions may be called.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sdk.h"

#define FN(name) \
	EXPORT void name(void); \
	EXPORT void name(void) \
	{ \
		fputs(#name " of libdoca_other.so was called\n", stderr); \
		abort(); \
	}
/* clang-format off */
#include "../../core/sdk/sdk_required.h"
