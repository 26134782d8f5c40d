/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/include/mem/place.h and lib/mem/place.c. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"
#include "mem/place.h"
#include "sanitizer.h"
#include "test.h"

#define LONGEST 2200 /* more than two pieces (base/copy.h) */
#define GUARD	16

TEST(place_strict__copies_all_and_nothing_else)
{
	uint8_t src[LONGEST], dst[GUARD + LONGEST + GUARD];

	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t len = 0; len <= LONGEST; len++) {
		uint8_t *at = dst + GUARD - len % 8; /* at every alignment */
		const uint32_t next = len % 3 * 100;

		memset(dst, 0, sizeof(dst));
		place_strict(at, src, len, next); /* of which nothing is touched */
		assert_memory_equal(at, src, len);
		for (const uint8_t *p = dst; p < dst + sizeof(dst); p++) {
			if (p < at || p >= at + len)
				assert_int_equal(*p, 0);
		}
	}
}

/* No atomic operation orders the two threads, just as none orders a peer's WRITE and a program that
 * polls its last byte. */
#if !THREAD_SANITIZER
#define ROUNDS 20000
#define BYTES  200

static struct {
	uint8_t memory[BYTES];
	uint32_t round_read; /* atomic */
} race;

static void *place_many(void *arg)
{
	uint8_t src[BYTES];

	(void)arg;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		memset(src, (int)(round & 0xff), sizeof(src));
		place_strict(race.memory, src, sizeof(src), 0);
		while (__atomic_load_n(&race.round_read, __ATOMIC_ACQUIRE) != round)
			sched_yield();
	}
	return NULL;
}

TEST(place_strict__the_last_byte_comes_last)
{
	const volatile uint8_t *last = &race.memory[BYTES - 1];
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, place_many, NULL), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint8_t expected[BYTES];

		memset(expected, (int)(round & 0xff), sizeof(expected));
		while (*last != (round & 0xff))
			sched_yield();
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		assert_memory_equal(race.memory, expected, sizeof(expected));
		__atomic_store_n(&race.round_read, round, __ATOMIC_RELEASE);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}
#endif

TEST(place_guarded__stores_or_says_that_it_cannot)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t src[LONGEST] = {1, 2, 3};

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(munmap(memory + page, page), 0);
	assert_int_equal(guard_install(), 0);
	assert_int_equal(place_guarded(memory + page - LONGEST, src, LONGEST, 100), 0);
	assert_memory_equal(memory + page - LONGEST, src, LONGEST);
	assert_int_equal(place_guarded(memory + page - LONGEST + 1, src, LONGEST, 0), -EFAULT);
	assert_int_equal(place_guarded(memory + page, src, 1, 0), -EFAULT);
	assert_int_equal(place_guarded(NULL, src, 0, 0), 0);
	munmap(memory, page);
}
