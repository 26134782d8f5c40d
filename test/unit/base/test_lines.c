/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of many small objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <rte_common.h>

#include "base/lines.h"

#define OBJECTS 4000 /* of several pages each, and of several huge ones together */

static size_t bytes_of(size_t i)
{
	static const size_t sizes[] = {1, 64, 65, 128, 1344, 4096, 4097, 10000};

	return sizes[i % RTE_DIM(sizes)];
}

/* All of them at once, each full of its own number: what overlaps shows. */
static void *use(void *arg)
{
	uint8_t *at[OBJECTS];
	uintptr_t wrong = 0;

	for (size_t i = 0; i < OBJECTS; i++) {
		at[i] = lines_alloc(bytes_of(i));
		if (!at[i] || (uintptr_t)at[i] % RTE_CACHE_LINE_SIZE != 0)
			return (void *)(uintptr_t)-1;
		memset(at[i], (int)(uint8_t)(i + (uintptr_t)arg), bytes_of(i));
	}
	for (size_t i = 0; i < OBJECTS; i++) {
		for (size_t k = 0; k < bytes_of(i); k++)
			wrong += at[i][k] != (uint8_t)(i + (uintptr_t)arg);
		lines_free(at[i], bytes_of(i));
	}
	return (void *)wrong;
}

static void lines_alloc__gives_each_its_own(void **state)
{
	(void)state;
	for (uintptr_t round = 0; round < 3; round++)
		assert_null(use((void *)round));
}

static void lines_alloc__threads_share_nothing(void **state)
{
	pthread_t threads[4];
	void *wrong;

	(void)state;
	for (uintptr_t i = 0; i < RTE_DIM(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)(100 * i)), 0);
	for (size_t i = 0; i < RTE_DIM(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

static void lines_free__takes_nothing(void **state)
{
	(void)state;
	lines_free(NULL, 64);
	lines_free(NULL, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_alloc__gives_each_its_own),
		cmocka_unit_test(lines_alloc__threads_share_nothing),
		cmocka_unit_test(lines_free__takes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
