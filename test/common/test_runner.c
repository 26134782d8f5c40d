/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the registered tests, and passes the selected ones to cmocka, file by file. */
#include "test.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_USAGE   2
#define EXIT_SKIPPED 77 /* as Meson understands it */
#define NAME_MAX_LEN 256

static struct test *tests;
static char **patterns; /* ends with NULL; NULL or empty: all tests */

/* The file whose tests run, in this process or in its child. */
static struct {
	const struct test_file *file;
	char name[NAME_MAX_LEN];
	pid_t child;
} running;

void test_register(struct test *test)
{
	struct test **at = &tests;

	/* Sort the tests: the constructors of one file may run in any order. */
	while (*at && ((*at)->file != test->file || (*at)->line <= test->line))
		at = &(*at)->next;
	/* The tests of a file stand beside each other. */
	if (!*at)
		for (struct test **other = &tests; *other; other = &(*other)->next)
			if ((*other)->file == test->file)
				at = &(*other)->next;
	test->next = *at;
	*at = test;
}

bool test_file_runs(const struct test_file *file)
{
	return running.file == file;
}

/* Write the name of a test's file: "sack" for "../test/unit/transport/test_sack.c". */
static const char *file_name(const struct test *test, char name[NAME_MAX_LEN])
{
	static const char prefix[] = "test_";
	const char *slash = strrchr(test->source, '/');
	const char *base = slash ? slash + 1 : test->source;

	if (strncmp(base, prefix, sizeof(prefix) - 1) == 0)
		base += sizeof(prefix) - 1;
	snprintf(name, NAME_MAX_LEN, "%.*s", (int)strcspn(base, "."), base);
	return name;
}

static bool names(const char *pattern, const struct test *test)
{
	char file[NAME_MAX_LEN], path[2 * NAME_MAX_LEN];

	file_name(test, file);
	snprintf(path, sizeof(path), "%s/%s", file, test->name);
	return fnmatch(pattern, file, 0) == 0 || fnmatch(pattern, test->name, 0) == 0 ||
	       fnmatch(pattern, path, 0) == 0;
}

static bool is_selected(const struct test *test)
{
	char **pattern;

	if (!patterns || !*patterns)
		return true;
	for (pattern = patterns; *pattern; pattern++)
		if (names(*pattern, test))
			return true;
	return false;
}

/* Return a pattern that names no test, or NULL. */
static const char *vain_pattern(void)
{
	const struct test *test;
	char **pattern;

	for (pattern = patterns; pattern && *pattern; pattern++) {
		for (test = tests; test && !names(*pattern, test);)
			test = test->next;
		if (!test)
			return *pattern;
	}
	return NULL;
}

void test_select(int argc, char **argv)
{
	char file[NAME_MAX_LEN];
	const struct test *test;

	if (argc < 2)
		return;
	if (argv[1][0] != '-') {
		patterns = argv + 1;
		return;
	}
	if (strcmp(argv[1], "--list") == 0) {
		for (test = tests; test; test = test->next)
			printf("%s/%s\n", file_name(test, file), test->name);
		exit(EXIT_SUCCESS);
	}
	fprintf(stderr, "usage: %s [--list | FILE-OR-TEST-OR-PATTERN...]\n", argv[0]);
	exit(strcmp(argv[1], "--help") == 0 ? EXIT_SUCCESS : EXIT_USAGE);
}

static struct CMUnitTest cmocka_test(const struct test *test)
{
	const struct test_fixture fixture =
		test->bare ? (struct test_fixture){0} : *test->file->each;

	return (struct CMUnitTest){
		.name = test->name,
		.test_func = test->function,
		.setup_func = test->setup ? test->setup : fixture.setup,
		.teardown_func = test->teardown ? test->teardown : fixture.teardown,
	};
}

static const struct test *next_selected(const struct test *test)
{
	while (test && !is_selected(test))
		test = test->next;
	return test;
}

static const struct test *next_file(const struct test *test)
{
	const struct test_file *file = test->file;

	do
		test = next_selected(test->next);
	while (test && test->file == file);
	return test;
}

/* A test, or what it calls, must not end its program with success. */
static void fail_if_running(int status, void *runner)
{
	static const char text[] = "[  FAILED  ] a test has ended the program\n";

	if (status != EXIT_SUCCESS || !running.file || getpid() != (pid_t)(intptr_t)runner)
		return;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		perror("write");
	_exit(EXIT_FAILURE);
}

/* Run the selected tests of a file in this process. Return the exit code. */
static int run_file(const struct test *first, const char *name)
{
	const struct test *const end = next_file(first);
	const struct test_fixture *const group = first->file->all;
	const struct test *test;
	struct CMUnitTest *selected;
	size_t count = 0;
	int failed;

	for (test = first; test != end; test = next_selected(test->next))
		count++;
	selected = calloc(count, sizeof(*selected));
	if (!selected) {
		perror("calloc");
		return EXIT_FAILURE;
	}
	count = 0;
	for (test = first; test != end; test = next_selected(test->next))
		selected[count++] = cmocka_test(test);
	running.file = first->file;
	on_exit(fail_if_running, (void *)(intptr_t)getpid());
	/* cmocka_run_group_tests() needs an array whose size the compiler knows. */
	failed = _cmocka_run_group_tests(name, selected, count, group->setup, group->teardown);
	running.file = NULL;
	free(selected);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Say which file hangs, and end: Meson sends this signal when its time is up. */
static void end_at_signal(int number)
{
	static const char text[] = "\n[  FAILED  ] this program was told to end while it ran ";
	const char *const parts[] = {text, running.name, "\n"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
			break;
	if (running.child > 0)
		kill(running.child, SIGKILL);
	signal(number, SIG_DFL);
	raise(number);
}

/* Run the selected tests of a file in a child. Return its exit code, or -1. */
static int run_in_child(const struct test *first, const char *name)
{
	sigset_t end, before;
	pid_t ended;
	int status;

	fflush(NULL);
	/* The handler must know the child. */
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, &before);
	running.child = fork();
	if (running.child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		exit(run_file(first, name));
	}
	signal(SIGTERM, end_at_signal);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (running.child < 0) {
		perror("fork");
		return -1;
	}
	do
		ended = waitpid(running.child, &status, 0);
	while (ended < 0 && errno == EINTR);
	signal(SIGTERM, SIG_DFL);
	if (ended < 0) {
		perror("waitpid");
		return -1;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	/* Print what cmocka would have printed of a failed test: its process has ended. */
	fprintf(stderr, "[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] %s: %s\n",
		running.name, strsignal(WTERMSIG(status)));
	return -1;
}

int test_run_all(const char *name)
{
	const struct test *const first = next_selected(tests);
	const char *const vain = vain_pattern();
	int files = 0, failed = 0, skipped = 0;

	if (!first || vain) {
		fprintf(stderr,
			"no file or test of this program has the name %s (--list prints "
			"all names)\n",
			vain ? vain : "*");
		return EXIT_USAGE;
	}
	file_name(first, running.name);
	if (!next_file(first))
		return run_file(first, name ? name : running.name);
	for (const struct test *test = first; test; test = next_file(test), files++) {
		int code;

		file_name(test, running.name);
		code = run_in_child(test, name ? name : running.name);
		if (code == EXIT_SKIPPED) {
			fprintf(stderr, "[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] %s\n",
				running.name);
			skipped++;
		} else if (code != EXIT_SUCCESS) {
			fprintf(stderr, "failed: the file %s\n", running.name);
			failed++;
		}
	}
	if (failed > 0)
		return EXIT_FAILURE;
	return skipped == files ? EXIT_SKIPPED : EXIT_SUCCESS;
}
