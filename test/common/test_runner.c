/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the registered tests, and passes the selected ones to cmocka. */
#include "test.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2

/* The group fixture of a program without TEST_GROUP. It is not const, because clang assumes that a
 * weak constant keeps its value. */
__attribute__((weak)) struct test_fixture test_group;

static struct test *tests;
static char **patterns; /* ends with NULL; NULL or empty: all tests */

void test_register(struct test *test)
{
	struct test **at = &tests;

	/* Sort the tests: the constructors of one file may run in any order. */
	while (*at && ((*at)->file != test->file || (*at)->line <= test->line))
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

static bool is_selected(const struct test *test)
{
	char **pattern;

	if (!patterns || !*patterns)
		return true;
	for (pattern = patterns; *pattern; pattern++)
		if (fnmatch(*pattern, test->name, 0) == 0)
			return true;
	return false;
}

void test_select(int argc, char **argv)
{
	const struct test *test;

	if (argc < 2)
		return;
	if (argv[1][0] != '-') {
		patterns = argv + 1;
		return;
	}
	if (strcmp(argv[1], "--list") == 0) {
		for (test = tests; test; test = test->next)
			puts(test->name);
		exit(EXIT_SUCCESS);
	}
	fprintf(stderr, "usage: %s [--list | NAME-OR-PATTERN...]\n", argv[0]);
	exit(strcmp(argv[1], "--help") == 0 ? EXIT_SUCCESS : EXIT_USAGE);
}

static struct CMUnitTest cmocka_test(const struct test *test)
{
	const struct test_fixture fixture = test->bare ? (struct test_fixture){0} : *test->file;

	return (struct CMUnitTest){
		.name = test->name,
		.test_func = test->function,
		.setup_func = test->setup ? test->setup : fixture.setup,
		.teardown_func = test->teardown ? test->teardown : fixture.teardown,
	};
}

int test_run_all(const char *name)
{
	struct CMUnitTest *selected;
	const struct test *test;
	size_t count = 0;
	int failed;

	for (test = tests; test; test = test->next)
		count += is_selected(test);
	if (count == 0) {
		fprintf(stderr,
			"no test of this program has such a name (--list prints all names)\n");
		return EXIT_USAGE;
	}
	selected = calloc(count, sizeof(*selected));
	if (!selected) {
		perror("calloc");
		return EXIT_FAILURE;
	}
	count = 0;
	for (test = tests; test; test = test->next)
		if (is_selected(test))
			selected[count++] = cmocka_test(test);
	/* cmocka_run_group_tests() needs an array whose size the compiler knows. */
	failed = _cmocka_run_group_tests(name ? name : "tests", selected, count, test_group.setup,
					 test_group.teardown);
	free(selected);
	return failed;
}
