/* SPDX-License-Identifier: BSD-3-Clause */
/* The macros of unit tests: TEST(function__case) { ... } registers itself with cmocka's runner. The
 * program's main comes from this library (test_main.c), unless the program has its own. */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** The parameter of a setup or teardown function that may not need it. */
#define TEST_STATE __attribute__((unused)) void **state

/** Functions that run before and after something. Either may be NULL. */
struct test_fixture {
	CMFixtureFunction setup;
	CMFixtureFunction teardown;
};

/** A test. TEST() may set the fields after `line`. */
struct test {
	const char *name;
	CMUnitTestFunction function;
	const struct test_fixture *file; /* the fixture of its file */
	int line;			 /* the tests of a file run in the order of their lines */
	CMFixtureFunction setup;	 /* in place of the file's setup */
	CMFixtureFunction teardown;	 /* in place of the file's teardown */
	bool bare;			 /* runs without the file's fixture */
	struct test *next;		 /* in the list of registered tests */
};

/* A tentative definition: a file without TEST_FIXTURE gets an empty one. */
static struct test_fixture test_file_fixture __attribute__((unused));

/** Set the fixture of each test of this file: `TEST_FIXTURE(set_up, tear_down);`. It must precede
 * the first test. */
#define TEST_FIXTURE(set_up_each, tear_down_each) \
	static struct test_fixture test_file_fixture = {set_up_each, tear_down_each}

/**
 * Set the functions that run once before and after all tests of the program: `TEST_GROUP(set_up,
 * NULL);`.
 */
#define TEST_GROUP(set_up_all, tear_down_all) \
	struct test_fixture test_group = {set_up_all, tear_down_all}
extern struct test_fixture test_group;

/**
 * Define a test and register it. The body may use `void **state`.
 *
 *     TEST(psn_add__wraps) { ... }
 *     TEST(psn_add__wraps, .setup = other_set_up) { ... }
 *     TEST(psn_add__wraps, .bare = true) { ... }
 */
#define TEST(test_name, ...)                                                \
	static void test_name(void **state);                                \
	static struct test test_name##_test = {.name = #test_name,          \
					       .function = test_name,       \
					       .file = &test_file_fixture,  \
					       .line = __LINE__,            \
					       __VA_ARGS__};                \
	__attribute__((constructor)) static void test_name##_register(void) \
	{                                                                   \
		test_register(&test_name##_test);                           \
	}                                                                   \
	static void test_name(TEST_STATE)

/** Add a test to those that test_run_all() runs. TEST() calls this before main. */
void test_register(struct test *test);

/**
 * Read the program's arguments: names of tests, or patterns as of fnmatch(3). Without them all
 * tests run. The program ends after `--list`, `--help` or an unknown option.
 */
void test_select(int argc, char **argv);

/**
 * Run the selected tests, under this name in cmocka's output (NULL: "tests").
 *
 * @return the exit code of main: the number of tests that failed, or 2 if no test was selected
 */
int test_run_all(const char *name);

#endif
