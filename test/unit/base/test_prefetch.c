/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the cache lines that a range covers, and that a prefetch never faults. */
#include <stddef.h>
#include <stdint.h>

#include "base/prefetch.h"
#include "test.h"

#define LINE ((size_t)RTE_CACHE_LINE_SIZE)

/* Counted one by one. */
static size_t count_lines(uintptr_t from, size_t len)
{
	size_t lines = 0;

	for (uintptr_t at = from; at < from + len; at++)
		lines += at == from || at % LINE == 0;
	return lines;
}

TEST(prefetch_lines__counts_the_line_of_each_byte)
{
	for (uintptr_t from = 3 * LINE; from < 4 * LINE; from++) {
		for (size_t len = 0; len <= 3 * LINE + 1; len++)
			assert_int_equal(prefetch_lines((const void *)from, len),
					 count_lines(from, len));
	}
}

TEST(prefetch_lines__ends_where_addresses_end)
{
	const void *const last = (const void *)UINTPTR_MAX;

	assert_int_equal(prefetch_lines(last, 0), 0);
	assert_int_equal(prefetch_lines(last, 1), 1);
	assert_int_equal(prefetch_lines((const void *)(UINTPTR_MAX - LINE), LINE + 1), 2);
}

TEST(prefetch_write_bytes__leaves_memory_as_it_is)
{
	uint8_t bytes[3 * LINE];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t i = 0; i < LINE; i++)
		prefetch_write_bytes(bytes + i, sizeof(bytes) - i);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], (uint8_t)i);
}

TEST(prefetch_write_bytes__needs_no_memory)
{
	/* The compiler shall not know them. */
	static volatile const uintptr_t nowhere[] = {LINE, UINTPTR_MAX - 3 * LINE};

	for (size_t i = 0; i < 2; i++)
		prefetch_write_bytes((const void *)nowhere[i], 3 * LINE + 1);
}
