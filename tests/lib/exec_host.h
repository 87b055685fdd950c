/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
#ifndef EXEC_HOST_H
#define EXEC_HOST_H

/* Replaces a forked child by this program, started again through softnic-run with its own address.
 * The environment tells the program that it is not the test. option: one of softnic-run, as
 * "--stall=99:100", or NULL. Does not return. */
void exec_host(const char *option) __attribute__((noreturn));

#endif
