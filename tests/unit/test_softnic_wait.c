/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The sleep of the NIC thread: every kick ends it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>

#include "engine_fake.h"

#define SLEEPS 3

static void *sleep_until_kicked(void *ended)
{
	unsigned int i;

	for (i = 0; i < SLEEPS; i++) {
		sn_wait(sn_dev->eng, -1, false);
		sem_post(ended);
	}
	return NULL;
}

/* A kick before the sleep counts, too. */
Test(softnic_wait, every_kick_ends_a_sleep_without_limit, .timeout = 60)
{
	pthread_t thread;
	unsigned int i;
	sem_t ended;

	fake_open_still("127.0.0.1");
	sn_dev->eng->running = true;
	cr_assert_eq(sem_init(&ended, 0, 0), 0);
	cr_assert_eq(pthread_create(&thread, NULL, sleep_until_kicked, &ended), 0);
	for (i = 0; i < SLEEPS; i++) {
		sn_eng_kick(sn_dev);
		while (sem_wait(&ended))
			;
	}
	pthread_join(thread, NULL);
	sn_dev->eng->running = false;
	fake_close();
}
