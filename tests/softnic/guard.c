/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Direct copies by the NIC thread to and from memory that the program may have
 * unmapped. A handler of SIGSEGV and SIGBUS turns a fault of such a copy into
 * -EFAULT. Any other fault goes to the handler that was installed before. If the
 * program installs its own handler later, that one stays: each pass checks this
 * before its first copy, and mem.c uses system calls while another handler is
 * installed. Under sanitizers, no handler is installed and mem.c always uses system
 * calls: sanitizers would check direct copies as accesses of the program.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>

#include "eng.h"

#ifdef GDK_SAN
#define POSSIBLE false
#else
#define POSSIBLE true
#endif
#define LOCAL_TLS static __thread __attribute__((tls_model("initial-exec")))

static const int signals[2] = { SIGSEGV, SIGBUS };
static struct sigaction before[2];

LOCAL_TLS sigjmp_buf *volatile landing; /* where the running copy continues after a fault */
LOCAL_TLS enum { UNUSABLE, UNKNOWN, USABLE } state; /* UNUSABLE in threads other than the NIC's */

static void default_action(int sig, const siginfo_t *info, bool ignored)
{
	bool sent = info->si_code <= 0; /* by a process; otherwise the access faults again */

	if (sent && ignored)
		return;
	signal(sig, SIG_DFL);
	if (sent)
		raise(sig);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *old = &before[sig == SIGBUS];

	if (landing)
		siglongjmp(*landing, 1);
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, context);
	else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)
		default_action(sig, info, old->sa_handler == SIG_IGN);
	else
		old->sa_handler(sig);
}

static bool is_ours(int sig)
{
	struct sigaction now;

	return !sigaction(sig, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == on_fault;
}

void sn_guard_install(void)
{
	struct sigaction ours = { .sa_sigaction = on_fault,
				  .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
	int i;

	sigemptyset(&ours.sa_mask);
	for (i = 0; POSSIBLE && i < 2; i++)
		if (!is_ours(signals[i]))
			sigaction(signals[i], &ours, &before[i]);
}

/* Removes our handlers. A handler that was installed after ours stays. It may still call ours as
 * its predecessor. */
void sn_guard_remove(void)
{
	int i;

	for (i = 0; i < 2; i++)
		if (is_ours(signals[i]))
			sigaction(signals[i], &before[i], NULL);
}

void sn_guard_pass(void)
{
	state = UNKNOWN;
}

bool sn_guard_ready(void)
{
	if (state == UNKNOWN)
		state = is_ours(SIGSEGV) && is_ours(SIGBUS) ? USABLE : UNUSABLE;
	return state == USABLE;
}

/* Loads an aligned word of 4 or 8 bytes with one access, because other threads may change it.
 * Acquire: pairs with the program's release stores. */
static void fetch(void *dst, const void *va, size_t len)
{
	uint64_t v8;
	uint32_t v4;

	if (len == 8 && !((uintptr_t)va & 7)) {
		v8 = __atomic_load_n((const uint64_t *)va, __ATOMIC_ACQUIRE);
		memcpy(dst, &v8, 8);
	} else if (len == 4 && !((uintptr_t)va & 3)) {
		v4 = __atomic_load_n((const uint32_t *)va, __ATOMIC_ACQUIRE);
		memcpy(dst, &v4, 4);
	} else {
		memcpy(dst, va, len);
	}
}

/*
 * Stores an aligned word of 4 or 8 bytes with one access, because other threads may poll it. Of
 * other data, the last 8 bytes, or the last byte if these are not aligned, are stored last.
 * Release: pairs with the acquire of a thread that polls them.
 */
static void store(void *va, const void *src, size_t len)
{
	size_t word = len;
	uint8_t *tail = va;
	uint64_t v8;
	uint32_t v4;

	if (len != 4 || (uintptr_t)va & 3) {
		word = len >= 8 && !(((uintptr_t)va + len) & 7) ? 8 : 1;
		memcpy(va, src, len - word);
		tail += len - word;
		src = (const uint8_t *)src + len - word;
	}
	if (word == 8) {
		memcpy(&v8, src, 8);
		__atomic_store_n((uint64_t *)(void *)tail, v8, __ATOMIC_RELEASE);
	} else if (word == 4) {
		memcpy(&v4, src, 4);
		__atomic_store_n((uint32_t *)(void *)tail, v4, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(tail, *(const uint8_t *)src, __ATOMIC_RELEASE);
	}
}

/* Returns 0 or -EFAULT; part of the data may then have been copied. */
int sn_guard_copy(uint64_t va, void *buf, size_t len, bool write)
{
	sigjmp_buf here;

	if (sigsetjmp(here, 0)) {
		landing = NULL;
		return -EFAULT;
	}
	landing = &here;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (write)
		store((void *)(uintptr_t)va, buf, len);
	else
		fetch(buf, (const void *)(uintptr_t)va, len);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	landing = NULL;
	return 0;
}
