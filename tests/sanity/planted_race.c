/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A program with a deliberate data race: sanity.sh checks that SAN=thread makes it
 * fail. It is a plain program without Criterion, like all thread tests. If it is built
 * with -DPLANT=0, it takes the lock and must pass.
 */
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int counter;

static void *count(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++) {
		if (!PLANT)
			pthread_mutex_lock(&lock);
		counter = counter + 1;
		if (!PLANT)
			pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	if (pthread_create(&a, NULL, count, NULL) || pthread_create(&b, NULL, count, NULL))
		return 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
