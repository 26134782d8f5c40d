/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/origin.c and symbol.c: on this program's own file. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/origin.h"
#include "skipped.h"
#include "symbol.h"
#include "test.h"

/* Not inline, and not the last call of its caller: it stays on the stack. */
static __attribute__((noinline)) int create(const void *object)
{
	origin_keep(object);
	return 1;
}

static __attribute__((noinline)) int call_create(const void *object)
{
	return create(object) + 1;
}

/* libdw tells functions and lines. */
static void skip_without_libdw(void)
{
	if (dlopen("libdw.so.1", RTLD_NOW))
		return;
	skipped_for("there is no libdw.so.1: install libdw1");
	skip();
}

TEST(origin_write__names_functions_and_lines)
{
	static const char caller[] = " create() test_origin.c:";
	char text[ORIGIN_TEXT_MAX];
	const char *at;
	int object = 0;

	skip_without_libdw();
	assert_int_equal(call_create(&object), 2);
	origin_write(&object, "it", text);
	assert_memory_equal(text, "; it was created by: ", strlen("; it was created by: "));
	/* In programs the library's own functions are left out; here they are in one file. */
	at = strstr(text, caller);
	if (!at)
		fail_msg("'%s'", text);
	assert_in_range(strtoul(at + strlen(caller), NULL, 10), 10, 25);
	origin_drop(&object);
	assert_string_equal(origin_write(&object, "it", text), "");
}

TEST(origin_keep__the_newest_object_at_an_address_counts)
{
	char text[ORIGIN_TEXT_MAX];
	int object = 0;

	skip_without_libdw();
	call_create(&object);
	origin_keep(&object);
	origin_write(&object, "it", text);
	assert_true(strlen(text) > 0);
	assert_null(strstr(text, "call_create"));
	origin_drop(&object);
}

/* A program has tried to destroy an object that is still in use. */
TEST(origin_settle__if_the_object_stays)
{
	char before[ORIGIN_TEXT_MAX], text[ORIGIN_TEXT_MAX];
	int object = 0, other;

	skip_without_libdw();
	call_create(&object);
	origin_write(&object, "it", before);
	origin_settle(origin_take_kept(&object), true);
	assert_string_equal(origin_write(&object, "it", text), before);
	origin_settle(origin_take_kept(&object), false);
	assert_string_equal(origin_write(&object, "it", text), "");
	assert_null(origin_take_kept(&other));
	origin_settle(NULL, true);
}

/* The first object and the last one of a place have the same text. */
TEST(origin_keep__of_many_objects_from_one_place)
{
	static const int objects[2000];
	char first[ORIGIN_TEXT_MAX], last[ORIGIN_TEXT_MAX];

	for (size_t i = 0; i < RTE_DIM(objects); i++)
		call_create(&objects[i]);
	origin_write(&objects[0], "it", first);
	origin_write(&objects[RTE_DIM(objects) - 1], "it", last);
	assert_string_equal(first, last);
	assert_true(strlen(first) > 0);
	for (size_t i = 0; i < RTE_DIM(objects); i++)
		origin_drop(&objects[i]);
}

TEST(origin_note__keeps_nothing_while_nobody_wants_reasons)
{
	char text[ORIGIN_TEXT_MAX];
	int object = 0;

	origin_note(&object);
	assert_string_equal(origin_write(&object, "it", text), "");
}

TEST(symbol_write__falls_back_to_the_module_or_the_number)
{
	char text[128];

	symbol_write(1, text, sizeof(text));
	assert_string_equal(text, "0x1");
	/* The C library has no symbols of its static functions, but the exported ones. */
	symbol_write((uintptr_t)strtoul + 1, text, sizeof(text));
	if (!strstr(text, "libc") && !strstr(text, "strtoul"))
		fail_msg("'%s'", text);
}
