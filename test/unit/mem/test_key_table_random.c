/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/key_table.c: random numbers. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "mem/key_table.h"
#include "test.h"

/* The table never looks into a region: addresses of these bytes stand for regions. */
static char objects[3];

static struct mr *region(size_t i)
{
	return (struct mr *)&objects[i];
}

/* A test sets what getrandom(2) does. If all is zero, it is the C library's. */
static struct {
	unsigned int interrupted; /* calls that still have to fail with EINTR */
	int error;		  /* of all other calls; 0: they succeed */
	bool is_short;		  /* a call yields no more than `most` bytes */
	size_t most;
	unsigned int zeros; /* calls that still have to yield zeros */
	bool ones;	    /* after these, all bits are 1 */
	unsigned int calls;
} source;

ssize_t __real_getrandom(void *buffer, size_t length, unsigned int flags);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned int flags);

ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned int flags)
{
	if (!TEST_FILE_RUNS())
		return __real_getrandom(buffer, length, flags);
	source.calls++;
	if (source.interrupted > 0) {
		source.interrupted--;
		errno = EINTR;
		return -1;
	}
	if (source.error != 0) {
		errno = source.error;
		return -1;
	}
	if (source.is_short)
		length = source.most;
	if (source.zeros == 0 && !source.ones)
		return __real_getrandom(buffer, length, flags);
	memset(buffer, source.zeros > 0 ? 0 : 0xff, length);
	source.zeros -= source.zeros > 0;
	return (ssize_t)length;
}

static unsigned int unmapped; /* calls of munmap(2) */

int __real_munmap(void *memory, size_t length);
int __wrap_munmap(void *memory, size_t length);

int __wrap_munmap(void *memory, size_t length)
{
	unmapped++;
	return __real_munmap(memory, length);
}

static bool is_full;	 /* there is no memory to map */
static int advice_error; /* of madvise(2); 0: it succeeds */

/* The linker sees this name if large-file support is on. */
void *__real_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (TEST_FILE_RUNS() && is_full)
		return MAP_FAILED;
	return __real_mmap64(at, length, protection, flags, fd, offset);
}

int __real_madvise(void *memory, size_t length, int advice);
int __wrap_madvise(void *memory, size_t length, int advice);

int __wrap_madvise(void *memory, size_t length, int advice)
{
	if (!TEST_FILE_RUNS() || advice_error == 0)
		return __real_madvise(memory, length, advice);
	errno = advice_error;
	return -1;
}

static int reset_source(TEST_STATE)
{
	memset(&source, 0, sizeof(source));
	is_full = false;
	advice_error = 0;
	return 0;
}

TEST_FIXTURE(reset_source, NULL);

TEST(key_table_create__fails_without_random_numbers)
{
	struct key_table *table = NULL;

	source.error = ENOSYS;
	unmapped = 0;
	assert_int_equal(key_table_create(16, &table), -ENOSYS);
	assert_int_equal(unmapped, 1);
	source.error = 0;
	source.is_short = true;
	for (source.most = 0; source.most < sizeof(uint32_t); source.most++) {
		errno = EINTR; /* of an earlier call */
		assert_int_equal(key_table_create(16, &table), -EIO);
	}
	assert_null(table);
}

/* A child must not find them. */
TEST(key_table_create__fails_without_memory_for_secrets)
{
	struct key_table *table = NULL;

	is_full = true;
	assert_int_equal(key_table_create(16, &table), -ENOMEM);
	is_full = false;
	advice_error = EINVAL;
	unmapped = 0;
	assert_int_equal(key_table_create(16, &table), -EINVAL);
	assert_int_equal(unmapped, 1);
	assert_null(table);
}

/* Two rounds of 2^9 numbers and two of 2^8 use up all words of 24 calls. */
TEST(key_table_create__every_number_of_the_permutation_is_random)
{
	struct key_table *table;
	uint32_t key;

	assert_int_equal(key_table_create(16, &table), 0);
	assert_int_equal(source.calls, 24);
	assert_int_equal(key_table_insert(table, region(0), &key), 0);
	assert_int_equal(source.calls, 25);
	unmapped = 0;
	key_table_destroy(table);
	assert_int_equal(unmapped, 1);
	/* Both halves of a place have 2^9 values if the table is larger. */
	source.calls = 0;
	assert_int_equal(key_table_create(1 << 17, &table), 0);
	assert_int_equal(source.calls, 32);
	key_table_destroy(table);
}

/* A signal handler ran, or the source gave few bytes. */
TEST(key_table_insert__asks_again_for_random_numbers)
{
	struct key_table *table;
	uint32_t keys[3];

	source.interrupted = 3;
	assert_int_equal(key_table_create(16, &table), 0);
	source.is_short = true;
	source.most = 2 * sizeof(uint32_t) + 1;
	/* Use up what is left. */
	for (source.calls = 0; source.calls == 0; key_table_remove(table, keys[0]))
		assert_int_equal(key_table_insert(table, region(0), &keys[0]), 0);
	assert_int_equal(key_table_insert(table, region(0), &keys[0]), 0);
	assert_int_equal(source.calls, 1);
	source.most = sizeof(uint32_t);
	assert_int_equal(key_table_insert(table, region(1), &keys[1]), 0);
	assert_int_equal(source.calls, 2);
	source.error = EIO;
	assert_int_equal(key_table_insert(table, region(2), &keys[2]), -EIO);
	/* The one that failed has taken no slot. */
	source.error = 0;
	assert_int_equal(key_table_insert(table, region(2), &keys[2]), 0);
	for (size_t i = 0; i < 3; i++)
		assert_ptr_equal(key_table_find(table, keys[i]), region(i));
	key_table_destroy(table);
}

/* ibv_inc_rkey(3) may make the lowest byte 0; the others then tell the key from none. */
TEST(key_table_insert__upper_bits_are_never_all_zero)
{
	struct key_table *table;
	uint32_t key;

	/* The permutation is the identity, and the first keys' random bits are zeros. */
	source.zeros = 100;
	assert_int_equal(key_table_create(16, &table), 0);
	assert_in_range(source.zeros, 1, 99);
	source.ones = true;
	assert_int_equal(key_table_insert(table, region(0), &key), 0);
	assert_int_equal(source.zeros, 0);
	assert_int_not_equal(key >> 8, 0);
	assert_ptr_equal(key_table_find(table, key), region(0));
	key_table_destroy(table);
}
