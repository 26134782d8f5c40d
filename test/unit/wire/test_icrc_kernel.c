/* SPDX-License-Identifier: BSD-3-Clause */
/* Each kernel that this processor can run against the portable one: lengths, alignments, edges of
 * memory. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/icrc.h"
#include "wire/icrc_kernel.h"
#include "test.h"

#define ROOM	    20000
#define LENGTHS_ALL 1300 /* every length up to here, which is five times round the widest loop */

static const struct icrc_kernel *kernel; /* under test */
static uint8_t source[ROOM], target[ROOM];
static uint32_t seed = 99;

static uint32_t next_random(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

static uint32_t expected(uint32_t state, const uint8_t *data, size_t len)
{
	return icrc_kernel_portable.update(state, data, len);
}

static void check_update(size_t from, size_t len)
{
	const uint32_t state = next_random() * 257;

	assert_int_equal(kernel->update(state, source + from, len),
			 expected(state, source + from, len));
}

TEST(update__every_length)
{
	size_t len;

	for (len = 0; len <= LENGTHS_ALL; len++)
		check_update(len * 7 % 64, len);
}

TEST(update__random_lengths_and_alignments)
{
	unsigned int round;

	for (round = 0; round < 20000; round++)
		check_update(next_random() % 512, next_random() % (round % 2 ? 300 : 9000));
}

typedef uint32_t copy_fn(uint32_t state, void *dst, const void *src, size_t len);

static void check_copy_by(copy_fn *copy, size_t from, size_t to, size_t len)
{
	const uint32_t state = next_random() * 257;
	size_t i;

	memset(target, 0xa5, to + len + 128);
	assert_int_equal(copy(state, target + to, source + from, len),
			 expected(state, source + from, len));
	assert_memory_equal(target + to, source + from, len);
	for (i = to >= 128 ? to - 128 : 0; i < to; i++)
		assert_int_equal(target[i], 0xa5);
	for (i = to + len; i < to + len + 128; i++)
		assert_int_equal(target[i], 0xa5);
}

static void check_copy(size_t from, size_t to, size_t len)
{
	check_copy_by(kernel->copy, from, to, len);
	if (kernel->copy_past_caches)
		check_copy_by(kernel->copy_past_caches, from, to, len);
}

TEST(copy__every_length)
{
	size_t len;

	for (len = 0; len <= LENGTHS_ALL; len++)
		check_copy(len * 7 % 64, len * 11 % 64, len);
}

TEST(copy__random_lengths_and_alignments)
{
	unsigned int round;

	for (round = 0; round < 5000; round++)
		check_copy(next_random() % 512, next_random() % 512,
			   next_random() % (round % 2 ? 300 : 9000));
}

TEST(masked__every_length)
{
	uint8_t ones[ICRC_HEADERS_MAX], masked[ICRC_HEADERS_MAX];
	size_t len, i;

	for (len = 1; len <= ICRC_HEADERS_MAX; len++) {
		for (i = 0; i < sizeof(ones); i++) {
			ones[i] = (uint8_t)(next_random() & next_random());
			masked[i] = source[len + i] | ones[i];
		}
		assert_int_equal(kernel->masked((uint32_t)len, source + len, ones, len),
				 expected((uint32_t)len, masked, len));
	}
}

TEST(copy_masked__is_a_copy_and_the_crc_of_what_is_masked)
{
	uint8_t ones[ICRC_HEADERS_MAX];

	for (size_t i = 0; i < sizeof(ones); i++)
		ones[i] = (uint8_t)(next_random() & next_random());
	for (size_t len = 1; len <= ICRC_HEADERS_MAX; len++) {
		const uint32_t crc = kernel->masked((uint32_t)len, source + len, ones, len);
		uint8_t *const to = target + 64 + len * 11 % 64;

		memset(target, 0xa5, 64 + 64 + len + 64);
		assert_int_equal(kernel->copy_masked((uint32_t)len, to, source + len, ones, len),
				 crc);
		assert_memory_equal(to, source + len, len);
		for (const uint8_t *at = target; at < to; at++)
			assert_int_equal(*at, 0xa5);
		for (size_t i = 0; i < 64; i++)
			assert_int_equal(to[len + i], 0xa5);
	}
}

/* A page that can be used between two that cannot. */
static uint8_t *map_island(size_t page)
{
	uint8_t *map = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + page, page, PROT_READ | PROT_WRITE), 0);
	return map + page;
}

TEST(edges__nothing_beside_the_buffers_is_touched)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *from = map_island(page), *to = map_island(page);
	size_t len;

	memcpy(from, source, page);
	for (len = 0; len <= LENGTHS_ALL; len++) {
		const uint8_t *tail = from + page - len;
		const uint32_t crc = expected(1, tail, len);

		/* Compute at the end of a page, and at the start of one. */
		assert_int_equal(kernel->update(1, tail, len), crc);
		assert_int_equal(kernel->copy(1, to, tail, len), crc);
		assert_memory_equal(to, tail, len);
		assert_int_equal(kernel->copy(2, to + page - len, from, len),
				 expected(2, from, len));
		assert_memory_equal(to + page - len, from, len);
		if (kernel->copy_past_caches) {
			assert_int_equal(kernel->copy_past_caches(1, to + page - len, tail, len),
					 crc);
			assert_memory_equal(to + page - len, tail, len);
		}
		if (len > 0 && len <= ICRC_HEADERS_MAX)
			assert_int_equal(kernel->copy_masked(1, to + page - len, tail, source, len),
					 kernel->masked(1, tail, source, len));
	}
	munmap(from - page, 3 * page);
	munmap(to - page, 3 * page);
}

static int fill_source(TEST_STATE)
{
	size_t i;

	for (i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(next_random() >> 3);
	return 0;
}

TEST_GROUP(fill_source, NULL);

/* The chosen kernel is the first that the processor can run, so every call of icrc.h goes there. */
TEST(kernels__the_last_runs_anywhere)
{
	size_t last = 0;

	while (icrc_kernels[last + 1])
		last++;
	assert_ptr_equal(icrc_kernels[last], &icrc_kernel_portable);
	assert_true(icrc_kernel_portable.supported());
}

int main(int argc, char **argv)
{
	const struct icrc_kernel *const *k;
	int failed = 0;

	test_select(argc, argv);
	for (k = icrc_kernels; *k; k++) {
		if (!(*k)->supported()) {
			printf("kernel %s: not on this processor\n", (*k)->name);
			continue;
		}
		kernel = *k;
		failed += test_run_all((*k)->name);
	}
	return failed;
}
