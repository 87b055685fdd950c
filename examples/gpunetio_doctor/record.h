/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Copies of the files that are read, see dr_record_to() in files.h. */
#ifndef DOCTOR_RECORD_H
#define DOCTOR_RECORD_H

/* A file, a folder or a symbolic link of this machine is about to be read. */
void dr_record_path(const char *path);
/* The name of an entry of the folder is about to be used. */
void dr_record_entry(const char *folder, const char *name);

#endif
