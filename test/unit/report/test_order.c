/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report/order.c: orders, answers, and readers that are in each other's way. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "report/order.h"
#include "report/read.h"
#include "report/write.h"
#include "test.h"

static int fd;
static struct report *report;
static pthread_t process;
static int answer; /* of the process; 1: it does not answer */
static struct report_order obeyed;
static bool ends;

static int set_up(TEST_STATE)
{
	ends = false;
	obeyed = (struct report_order){.kind = ORDER_KINDS};
	return report_create(&fd, &report);
}

static int tear_down(TEST_STATE)
{
	report_unmap(report);
	close(fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* A process that answers orders. */
static void *obey(void *arg)
{
	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
		struct report_order order;

		if (order_take(report, &order)) {
			obeyed = order;
			order_answer(report, &order, answer);
		}
		usleep(100);
	}
	return arg;
}

static void begin(int with)
{
	answer = with;
	assert_int_equal(pthread_create(&process, NULL, obey, NULL), 0);
}

static void end(void)
{
	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(process, NULL), 0);
}

TEST(order_give__what_the_process_answers)
{
	const struct report_order order = {.kind = ORDER_PARAM, .index = 255, .value = UINT32_MAX};
	const uint32_t asked = report->wanted;

	begin(0);
	assert_int_equal(order_give(report, &order, 10000), 0);
	end();
	assert_int_equal(obeyed.kind, ORDER_PARAM);
	assert_int_equal(obeyed.index, 255);
	assert_int_equal(obeyed.value, UINT32_MAX);
	assert_int_equal(report->order, 0);
	/* The report is written again. */
	assert_int_equal(report->wanted, asked + 1);
}

TEST(order_give__the_error_of_the_process)
{
	begin(-EOPNOTSUPP);
	assert_int_equal(order_give(report, &(struct report_order){.kind = ORDER_ALGORITHM}, 10000),
			 -EOPNOTSUPP);
	end();
}

TEST(order_give__withdrawn_without_an_answer)
{
	struct report_order order = {.kind = ORDER_ALGORITHM, .value = 17};

	assert_int_equal(order_give(report, &order, 5), -ETIMEDOUT);
	assert_false(order_take(report, &order));
	assert_int_equal(report->order, 0);
}

/* A process that takes the order, and is stopped before it answers. */
static void *take_only(void *arg)
{
	struct report_order order;

	while (!order_take(report, &order))
		usleep(100);
	return arg;
}

/* Only an order that was not taken is known not to be executed. */
TEST(order_give__taken_and_not_answered)
{
	assert_int_equal(pthread_create(&process, NULL, take_only, NULL), 0);
	assert_int_equal(order_give(report, &(struct report_order){.value = 4}, 2000),
			 -EINPROGRESS);
	assert_int_equal(pthread_join(process, NULL), 0);
	assert_int_equal(report->order, 0);
}

/* A reader that was killed has left its order. */
TEST(order_give__replaces_an_abandoned_order)
{
	report->order = UINT64_MAX;
	begin(0);
	assert_int_equal(order_give(report, &(struct report_order){.value = 5}, 2000), 0);
	end();
	assert_int_equal(obeyed.value, 5);
}

TEST(order_give__replaces_an_abandoned_answer)
{
	report->order = 0x12345678;
	begin(0);
	assert_int_equal(order_give(report, &(struct report_order){.value = 6}, 2000), 0);
	end();
	assert_int_equal(obeyed.value, 6);
}

TEST(order_take__any_word)
{
	struct report_order order;

	report->order = 0;
	assert_false(order_take(report, &order));
	report->order = UINT64_MAX;
	assert_true(order_take(report, &order));
	assert_int_equal(order.kind, ORDER_KINDS);
	order_answer(report, &order, -ENOENT);
	assert_false(order_take(report, &order));
}

/* It is executed once, and nobody can withdraw it meanwhile without noticing. */
TEST(order_take__once)
{
	struct report_order order;

	report->order = UINT64_MAX;
	assert_true(order_take(report, &order));
	assert_int_not_equal(report->order, UINT64_MAX);
	assert_false(order_take(report, &order));
}

/* Another reader's order has taken its place: that one is not answered. */
TEST(order_answer__only_its_own_order)
{
	struct report_order order, other;

	report->order = UINT64_MAX;
	assert_true(order_take(report, &order));
	report->order = UINT64_MAX - 1;
	order_answer(report, &order, 0);
	assert_int_equal(report->order, UINT64_MAX - 1);
	assert_true(order_take(report, &other));
}
