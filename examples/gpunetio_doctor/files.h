/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Files below env->root. All functions take a path such as "/sys/class/infiniband/%s" and return 0
 * or a positive number, or a negative errno. No function waits for the contents of a file.
 */
#ifndef DOCTOR_FILES_H
#define DOCTOR_FILES_H

#include "doctor.h"

#define DR_TEXT_LEN 65536 /* bytes of a file that are read at most */

/* Reads at most size - 1 bytes of a file and appends a 0. Returns the number of bytes. */
int dr_read_bytes(const struct dr_env *env, char *bytes, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Reads a decimal number, or a hexadecimal one with 0x in front. */
int dr_read_number(const struct dr_env *env, long long *value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads the target of a symbolic link. */
int dr_read_link(const struct dr_env *env, char *target, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same, only what follows the last '/'. */
int dr_read_link_name(const struct dr_env *env, char *name, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool dr_exists(const struct dr_env *env, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* From now on, copies each file that is read into a folder, so that --root can read it there.
 * Returns 0, or a negative errno if the folder cannot be created or is not empty. */
int dr_record_to(const char *folder);
/* Writes a file into that folder; does nothing if there is none. */
void dr_record_text(const char *path, const char *text);

#endif
