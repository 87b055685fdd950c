/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Replaces two functions in tests (--wrap): a thread that releases a mutex or a spin lock that it
 * does not hold ends the program. Otherwise a missing lock shows only when two threads meet.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Weak: programs that are linked without --wrap have no such symbols. */
#pragma weak __real_pthread_mutex_unlock
#pragma weak __real_pthread_spin_unlock
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_pthread_spin_unlock(pthread_spinlock_t *lock);
int __wrap_pthread_spin_unlock(pthread_spinlock_t *lock);

static void refuse(const char *what, const volatile void *lock)
{
	fprintf(stderr, "unlock.c: the %s at %p is released by a thread that does not hold it\n",
		what, (void *)(uintptr_t)lock);
	abort();
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (lock->__data.__owner != gettid())
		refuse("mutex", lock);
	return __real_pthread_mutex_unlock(lock);
}

int __wrap_pthread_spin_unlock(pthread_spinlock_t *lock)
{
	if (!pthread_spin_trylock(lock)) /* a spin lock has no owner */
		refuse("spin lock", lock);
	return __real_pthread_spin_unlock(lock);
}
