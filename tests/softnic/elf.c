/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Detects, by ELF headers, whether a program can preload the NIC. Also linked into
 * softnic-run.
 */
#include "elf.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static int raw_open(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

static bool read_at(int fd, void *dst, size_t len, uint64_t off)
{
	return syscall(SYS_pread64, fd, dst, len, off) == (long)len;
}

/* The dynamic loader has no interpreter either, but preloads the NIC into the program that its
 * arguments name. */
static bool is_loader(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return !strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5) || !strncmp(name, "ld64", 4);
}

static enum sn_program elf_kind(int fd, const Elf64_Ehdr *eh, const char *path)
{
	char interp[256] = "";
	Elf64_Phdr ph;
	int i;

	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB ||
	    eh->e_machine != MACHINE)
		return SN_PROGRAM_FOREIGN;
	for (i = 0; i < eh->e_phnum; i++) {
		if (!read_at(fd, &ph, sizeof(ph), eh->e_phoff + (uint64_t)i * eh->e_phentsize))
			return SN_PROGRAM_OTHER;
		if (ph.p_type != PT_INTERP)
			continue;
		if (ph.p_filesz >= sizeof(interp) || !read_at(fd, interp, ph.p_filesz, ph.p_offset))
			return SN_PROGRAM_OTHER;
		return strstr(interp, "/ld-musl-") ? SN_PROGRAM_MUSL : SN_PROGRAM_DYNAMIC;
	}
	return is_loader(path) ? SN_PROGRAM_OTHER : SN_PROGRAM_STATIC;
}

enum sn_program sn_program_kind(const char *path, char line[256])
{
	enum sn_program kind = SN_PROGRAM_OTHER;
	int fd = raw_open(path);
	Elf64_Ehdr eh;
	long n;

	if (fd < 0)
		return SN_PROGRAM_OTHER;
	n = syscall(SYS_pread64, fd, line, 255, 0);
	line[n > 0 ? n : 0] = '\0';
	if (!strncmp(line, "#!", 2)) {
		line[strcspn(line, "\n")] = '\0';
		memmove(line, line + 2, strlen(line + 2) + 1);
		kind = SN_PROGRAM_SCRIPT;
	} else if (n > EI_NIDENT && !memcmp(line, ELFMAG, SELFMAG)) {
		kind = line[EI_CLASS] != ELFCLASS64	 ? SN_PROGRAM_FOREIGN
		       : read_at(fd, &eh, sizeof(eh), 0) ? elf_kind(fd, &eh, path)
							 : SN_PROGRAM_OTHER;
	}
	syscall(SYS_close, fd);
	return kind;
}

bool sn_program_uses_verbs(const char *path)
{
	static const char name[] = "infiniband_verbs";
	int fd = raw_open(path);
	bool uses = false;
	struct stat st;
	void *map;

	if (fd < 0)
		return false;
	if (!syscall(SYS_fstat, fd, &st) && st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			uses = memmem(map, (size_t)st.st_size, name, strlen(name));
			munmap(map, (size_t)st.st_size);
		}
	}
	syscall(SYS_close, fd);
	return uses;
}
