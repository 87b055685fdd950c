/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

void sn_text_add(struct sn_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->left)
		n = t->left ? (int)t->left - 1 : 0;
	t->at += n;
	t->left -= (size_t)n;
}
