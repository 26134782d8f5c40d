/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report/report_command.c: commands, answers, and readers that are in each other's
 * way. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "report/report_command.h"
#include "report/read.h"
#include "report/write.h"
#include "test.h"

static int fd;
static struct report *report;
static pthread_t process;
static int answer; /* of the process; 1: it does not answer */
static struct report_command executed;
static bool ends;

static int set_up(TEST_STATE)
{
	ends = false;
	executed = (struct report_command){.kind = REPORT_COMMAND_KINDS};
	return report_create(&fd, &report);
}

static int tear_down(TEST_STATE)
{
	report_unmap(report);
	close(fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* A process that answers commands. */
static void *execute(void *arg)
{
	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
		struct report_command command;

		if (report_command_take(report, &command)) {
			executed = command;
			report_command_answer(report, &command, answer);
		}
		usleep(100);
	}
	return arg;
}

static void begin(int with)
{
	answer = with;
	assert_int_equal(pthread_create(&process, NULL, execute, NULL), 0);
}

static void end(void)
{
	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(process, NULL), 0);
}

TEST(report_command_give__what_the_process_answers)
{
	const struct report_command command = {
		.kind = REPORT_COMMAND_PARAM, .index = 255, .value = UINT32_MAX};
	const uint32_t asked = report->wanted;

	begin(0);
	assert_int_equal(report_command_give(report, &command, 10000), 0);
	end();
	assert_int_equal(executed.kind, REPORT_COMMAND_PARAM);
	assert_int_equal(executed.index, 255);
	assert_int_equal(executed.value, UINT32_MAX);
	assert_int_equal(report->command, 0);
	/* The report is written again. */
	assert_int_equal(report->wanted, asked + 1);
}

TEST(report_command_give__the_error_of_the_process)
{
	begin(-EOPNOTSUPP);
	assert_int_equal(
		report_command_give(
			report, &(struct report_command){.kind = REPORT_COMMAND_ALGORITHM}, 10000),
		-EOPNOTSUPP);
	end();
}

TEST(report_command_give__withdrawn_without_an_answer)
{
	struct report_command command = {.kind = REPORT_COMMAND_ALGORITHM, .value = 17};

	assert_int_equal(report_command_give(report, &command, 5), -ETIMEDOUT);
	assert_false(report_command_take(report, &command));
	assert_int_equal(report->command, 0);
}

/* A process that takes the command, and is stopped before it answers. */
static void *take_only(void *arg)
{
	struct report_command command;

	while (!report_command_take(report, &command))
		usleep(100);
	return arg;
}

/* Only a command that was not taken is known not to be executed. */
TEST(report_command_give__taken_and_not_answered)
{
	assert_int_equal(pthread_create(&process, NULL, take_only, NULL), 0);
	assert_int_equal(report_command_give(report, &(struct report_command){.value = 4}, 2000),
			 -EINPROGRESS);
	assert_int_equal(pthread_join(process, NULL), 0);
	assert_int_equal(report->command, 0);
}

/* A reader that was killed has left its command. */
TEST(report_command_give__replaces_an_abandoned_command)
{
	report->command = UINT64_MAX;
	begin(0);
	assert_int_equal(report_command_give(report, &(struct report_command){.value = 5}, 2000),
			 0);
	end();
	assert_int_equal(executed.value, 5);
}

TEST(report_command_give__replaces_an_abandoned_answer)
{
	report->command = 0x12345678;
	begin(0);
	assert_int_equal(report_command_give(report, &(struct report_command){.value = 6}, 2000),
			 0);
	end();
	assert_int_equal(executed.value, 6);
}

TEST(report_command_take__any_word)
{
	struct report_command command;

	report->command = 0;
	assert_false(report_command_take(report, &command));
	report->command = UINT64_MAX;
	assert_true(report_command_take(report, &command));
	assert_int_equal(command.kind, REPORT_COMMAND_KINDS);
	report_command_answer(report, &command, -ENOENT);
	assert_false(report_command_take(report, &command));
}

/* It is executed once, and nobody can withdraw it meanwhile without noticing. */
TEST(report_command_take__once)
{
	struct report_command command;

	report->command = UINT64_MAX;
	assert_true(report_command_take(report, &command));
	assert_int_not_equal(report->command, UINT64_MAX);
	assert_false(report_command_take(report, &command));
}

/* Another reader's command has taken its place: that one is not answered. */
TEST(report_command_answer__only_its_own_command)
{
	struct report_command command, other;

	report->command = UINT64_MAX;
	assert_true(report_command_take(report, &command));
	report->command = UINT64_MAX - 1;
	report_command_answer(report, &command, 0);
	assert_int_equal(report->command, UINT64_MAX - 1);
	assert_true(report_command_take(report, &other));
}
