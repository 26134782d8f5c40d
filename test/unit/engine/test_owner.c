/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/include/engine/owner.h. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/owner.h"
#include "test.h"

#define THREADS 3
#define ROUNDS	20000

static struct owner owner;
static uint64_t guarded; /* not atomic: only the owner may touch it */

static int set_up(TEST_STATE)
{
	memset(&owner, 0, sizeof(owner));
	guarded = 0;
	return 0;
}

TEST_FIXTURE(set_up, NULL);

TEST(owner_try__has_one_winner)
{
	assert_true(owner_try(&owner));
	assert_false(owner_try(&owner));
	owner_unlock(&owner);
	assert_true(owner_try(&owner));
}

TEST(owner_try__stands_back_for_a_waiter)
{
	owner.waiters = 1;
	assert_false(owner_try(&owner));
	owner.waiters = 0;
	assert_true(owner_try(&owner));
}

static void *locker(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		owner_lock(&owner);
		guarded++;
		owner_unlock(&owner);
	}
	return NULL;
}

static void *trier(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS;) {
		if (!owner_try(&owner)) {
			sched_yield();
			continue;
		}
		guarded++;
		owner_unlock(&owner);
		i++;
	}
	return NULL;
}

TEST(owner_lock__excludes_polls_and_other_calls)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i == 0 ? trier : locker, NULL),
				 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(guarded, THREADS * ROUNDS);
	assert_int_equal(owner.waiters, 0);
	assert_int_equal(owner.held, 0);
}
