/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The last packets of this process, in a file that is mapped into memory (--evidence). A packet
 * costs a copy and no system call, and the file remains if the process is killed. It is a pcapng
 * file of slots of equal size. A slot has one packet and a filler block, of a type that readers
 * skip; one filler block covers all free slots at the end. When the file is full, the second half
 * moves to the first one, so that the packets remain in their order. Longer packets are cut.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "evidence.h"

#define SLOT	  256u
#define SLOTS	  256u /* of packets; slot 0 of the file has the header */
#define FILE_SIZE ((1 + SLOTS) * SLOT)
#define HEAD	  28u /* bytes of a packet block before the data */
#define MIN_BLOCK 12u
#define CUT	  (SLOT - HEAD - 4 - MIN_BLOCK) /* bytes kept of a packet */

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u
#define BLOCK_FILLER	0x80000000u /* for local use */
#define PCAP_ETHERNET	1u
#define PCAP_RAW_IP	101u

static uint8_t *file; /* NULL: none is mapped */
static pid_t owner;   /* a forked child inherits the mapping of its parent's file */
static uint32_t used; /* slots */
static uint64_t count;
static int failure;

static void put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, 4);
}

/* A block begins and ends with its length. */
static void frame_block(uint8_t *at, uint32_t type, uint32_t len)
{
	put32(at, type);
	put32(at + 4, len);
	put32(at + len - 4, len);
}

static void write_header(bool ether)
{
	const uint32_t section[] = { 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX };
	/* link type, length at which packets are cut; option 9, time stamps in 10^-9 s; its end */
	const uint32_t interface[] = { ether ? PCAP_ETHERNET : PCAP_RAW_IP, CUT, 9 | 1 << 16, 9,
				       0 };
	uint8_t *at = file;

	frame_block(at, BLOCK_SECTION, MIN_BLOCK + sizeof(section));
	memcpy(at + 8, section, sizeof(section));
	at += MIN_BLOCK + sizeof(section);
	frame_block(at, BLOCK_INTERFACE, MIN_BLOCK + sizeof(interface));
	memcpy(at + 8, interface, sizeof(interface));
	at += MIN_BLOCK + sizeof(interface);
	frame_block(at, BLOCK_FILLER, SLOT - (uint32_t)(at - file));
	frame_block(file + SLOT, BLOCK_FILLER, FILE_SIZE - SLOT);
}

/* Allocates the whole file, so that later stores cannot find the file system full. Uses system
 * calls directly, because the interposed functions take locks. Returns 0 or errno. */
static int map_file(const char *path)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	void *p = MAP_FAILED;
	int error;

	if (fd < 0)
		return errno;
	error = posix_fallocate((int)fd, 0, FILE_SIZE);
	if (!error) {
		p = (void *)syscall(SYS_mmap, NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
				    (int)fd, 0L);
		error = p == MAP_FAILED ? errno : 0;
	}
	syscall(SYS_close, (int)fd);
	if (error)
		syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	else
		file = p;
	return error;
}

void sn_recent_open(const char *folder, bool ether)
{
	char path[PATH_MAX];

	if (!folder[0] || (file && owner == getpid()))
		return;
	file = NULL;
	owner = getpid();
	used = 0;
	count = 0;
	snprintf(path, sizeof(path), "%s/%d.pcapng", folder, (int)getpid());
	failure = map_file(path);
	if (!failure)
		write_header(ether);
}

static void make_room(void)
{
	const uint32_t half = SLOTS / 2;

	if (used < SLOTS)
		return;
	memcpy(file + SLOT, file + (1 + half) * SLOT, half * SLOT);
	used = half;
}

void sn_recent_add(const struct iovec *parts, int n)
{
	uint32_t len = 0, kept = 0, block, more;
	struct timespec ts;
	uint8_t *at;
	uint64_t ns;

	if (!file)
		return;
	make_room();
	at = file + (1 + used) * SLOT;
	for (; n; parts++, n--) {
		more = (uint32_t)parts->iov_len;
		len += more;
		more = more < CUT - kept ? more : CUT - kept;
		memcpy(at + HEAD + kept, parts->iov_base, more);
		kept += more;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	put32(at + 8, 0);
	put32(at + 12, (uint32_t)(ns >> 32));
	put32(at + 16, (uint32_t)ns);
	put32(at + 20, kept);
	put32(at + 24, len);
	block = HEAD + ((kept + 3) & ~3u) + 4;
	frame_block(at + block, BLOCK_FILLER, SLOT - block);
	used++;
	if (used < SLOTS)
		frame_block(at + SLOT, BLOCK_FILLER, (SLOTS - used) * SLOT);
	frame_block(at, BLOCK_PACKET, block);
	count++;
}

uint64_t sn_recent_count(int *error)
{
	*error = failure;
	return count;
}
