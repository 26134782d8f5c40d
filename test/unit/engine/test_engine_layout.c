/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache lines of struct engine. This needs no port. */
#include "engine/engine.h"
#include "test.h"

#define LINE_OF(field) (offsetof(struct engine, field) / RTE_CACHE_LINE_SIZE)

/* A thread that asks for the engine, or leaves work for it, writes to no cache line that the owner
 * uses all the time. */
TEST(engine__others_write_apart_from_its_owner)
{
	assert_int_not_equal(LINE_OF(owner), LINE_OF(kicks));
	assert_int_not_equal(LINE_OF(kicks), LINE_OF(polling));
	assert_int_not_equal((offsetof(struct engine, polling) + sizeof(struct polling) - 1) /
				     RTE_CACHE_LINE_SIZE,
			     LINE_OF(ended));
	assert_int_not_equal(LINE_OF(polling), LINE_OF(ready));
	/* Engines of a process are apart as well. */
	assert_int_equal(_Alignof(struct engine) % RTE_CACHE_LINE_SIZE, 0);
	assert_int_equal(sizeof(struct engine) % RTE_CACHE_LINE_SIZE, 0);
}
