/* SPDX-License-Identifier: BSD-3-Clause */
/* The macros of unit tests: TEST(function__case) { ... } registers itself with cmocka's runner. A
 * program has the tests of several files, and runs each file in a process of its own. Its main
 * comes from this library (test_main.c), unless the program has its own. */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/** Fail unless a text has this part. */
#define assert_contains(text, part)                               \
	do {                                                      \
		const char *const text_ = (text);                 \
		if (!strstr(text_, part))                         \
			fail_msg("'%s' lacks '%s'", text_, part); \
	} while (0)

/** The parameter of a setup or teardown function that may not need it. */
#define TEST_STATE __attribute__((unused)) void **state

/** Functions that run before and after something. Either may be NULL. */
struct test_fixture {
	CMFixtureFunction setup;
	CMFixtureFunction teardown;
};

/** The fixtures of one file. */
struct test_file {
	const struct test_fixture *each; /* around each test */
	const struct test_fixture *all;	 /* around all of them */
};

/** A test. TEST() may set the fields after `line`. */
struct test {
	const char *name;
	CMUnitTestFunction function;
	const struct test_file *file;
	const char *source;	    /* the path of its file */
	int line;		    /* the tests of a file run in the order of their lines */
	CMFixtureFunction setup;    /* in place of the file's setup */
	CMFixtureFunction teardown; /* in place of the file's teardown */
	bool bare;		    /* runs without the file's fixture */
	struct test *next;	    /* in the list of registered tests */
};

/* Tentative definitions: a file without TEST_FIXTURE or TEST_GROUP gets empty ones. */
static struct test_fixture test_file_fixture;
static struct test_fixture test_file_group;

static const struct test_file test_this_file
	__attribute__((unused)) = {&test_file_fixture, &test_file_group};

/** Set the fixture of each test of this file: `TEST_FIXTURE(set_up, tear_down);`. It must precede
 * the first test. */
#define TEST_FIXTURE(set_up_each, tear_down_each) \
	static struct test_fixture test_file_fixture = {set_up_each, tear_down_each}

/** Set the functions that run once before and after all tests of this file: `TEST_GROUP(set_up,
 * NULL);`. */
#define TEST_GROUP(set_up_all, tear_down_all) \
	static struct test_fixture test_file_group = {set_up_all, tear_down_all}

/**
 * Return true while the tests of this file run. A function in place of another one (`--wrap` of the
 * linker) is there for every file of the program, and asks this.
 */
#define TEST_FILE_RUNS() test_file_runs(&test_this_file)

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
					       .file = &test_this_file,     \
					       .source = __BASE_FILE__,     \
					       .line = __LINE__,            \
					       __VA_ARGS__};                \
	__attribute__((constructor)) static void test_name##_register(void) \
	{                                                                   \
		test_register(&test_name##_test);                           \
	}                                                                   \
	static void test_name(TEST_STATE)

/** Add a test to those that test_run_all() runs. TEST() calls this before main. */
void test_register(struct test *test);

/** Return true while the tests of this file run: TEST_FILE_RUNS(). */
bool test_file_runs(const struct test_file *file);

/**
 * Read the program's arguments: FILE, TEST or FILE/TEST, or patterns of these as of fnmatch(3).
 * FILE is the name of a source file without "test_" and ".c". Without arguments all tests run. The
 * program ends after `--list`, `--help` or an unknown option.
 */
void test_select(int argc, char **argv);

/**
 * Run the selected tests. If they are of several files, then each file runs in a process of its
 * own, because it may leave threads, signal handlers, namespaces or a started EAL behind.
 *
 * @param name in cmocka's output; NULL: the file's name
 * @return the exit code of main: 0, 1 if a test failed, 2 if a word names no test, or 77 (Meson's
 *         "skipped") if each file was skipped
 */
int test_run_all(const char *name);

#endif
