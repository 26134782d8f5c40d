/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report/scan.c. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/scan.h"
#include "report/write.h"

static struct report_set set;

/* How many of the reports that are found are of a process, and its children. */
static int found(pid_t pid)
{
	int count = 0;

	report_set_init(&set);
	assert_int_equal(report_scan(&set), 0);
	for (uint32_t i = 0; i < set.count; i++)
		count += set.sources[i]->pid == pid;
	report_set_fini(&set);
	return count;
}

static void report_scan__finds_a_process_once(void **state)
{
	struct report *report;
	pid_t child;
	int fd;

	(void)state;
	assert_int_equal(found(getpid()), 0);
	assert_int_equal(report_create(&fd, &report), 0);
	assert_int_equal(found(getpid()), 1);
	child = fork();
	if (child == 0) {
		/* It has the parent's descriptor, and nothing of its own. */
		pause();
		_exit(0);
	}
	assert_int_equal(found(getpid()), 1);
	assert_int_equal(found(child), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd);
	assert_int_equal(found(getpid()), 0);
	report_unmap(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_scan__finds_a_process_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
