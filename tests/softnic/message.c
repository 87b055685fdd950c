/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Messages of the NIC on standard error, one line per message:
 * softnic[PID]: MESSAGE
 * A control character in the message, such as a line break, becomes a blank. Each line is
 * written with one write(), so that lines of several processes do not mix.
 */
#include "softnic.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void sn_message(const char *fmt, ...)
{
	char line[512];
	int head = snprintf(line, sizeof(line), "softnic[%d]: ", (int)getpid()), n;
	size_t len, i;
	va_list ap;

	va_start(ap, fmt);
	n = vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	len = (size_t)(head + n) < sizeof(line) ? (size_t)(head + n) : sizeof(line) - 1;
	for (i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = ' ';
	line[len] = '\n';
	syscall(SYS_write, STDERR_FILENO, line, len + 1);
}
