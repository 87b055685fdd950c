/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Text that grows in a buffer of fixed size; what does not fit is cut off. */
#ifndef SN_TEXT_H
#define SN_TEXT_H

#include <stddef.h>

struct sn_text {
	char *at;    /* the end of the text */
	size_t left; /* bytes from there, the 0 byte included */
};

void sn_text_add(struct sn_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
