/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Reads which kind of program a file is. */
#ifndef SOFTNIC_ELF_H
#define SOFTNIC_ELF_H

#include <stdbool.h>

enum sn_program {
	SN_PROGRAM_OTHER,   /* unreadable, no ELF file and no script, or a dynamic loader */
	SN_PROGRAM_DYNAMIC, /* can preload the NIC */
	SN_PROGRAM_STATIC,
	SN_PROGRAM_FOREIGN, /* for another architecture or word size */
	SN_PROGRAM_MUSL,    /* dynamic, but for the C library musl */
	SN_PROGRAM_SCRIPT,
};

/* Reads the kind of a file. line: for a script, the text after "#!". Uses only system calls on its
 * own, so that a child of vfork() may call it. */
enum sn_program sn_program_kind(const char *path, char line[256]);
/* True if the file contains the names of the devices that libibverbs opens. */
bool sn_program_uses_verbs(const char *path);

#endif
