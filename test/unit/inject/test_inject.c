/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the things that match a rule it hits. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "inject/inject.h"
#include "test.h"

#define CALLS 1000

static char error[256];

static int add(const char *text)
{
	const int rule = inject_add(text, error, sizeof(error));

	assert_true(rule > 0);
	return rule;
}

/* End all rules, so that they hit nothing in later tests, and count as if they were not there. */
static int tear_down(TEST_STATE)
{
	for (int rule = 1; inject_end(rule) == 0; rule++)
		;
	return 0;
}

TEST_FIXTURE(NULL, tear_down);

static int calls_hit(enum inject_call call, int calls)
{
	int hit = 0;

	for (int i = 0; i < calls; i++)
		hit += inject_into_call(call) != 0;
	return hit;
}

TEST(inject_into_call__the_nth_alone)
{
	const int rule = add("call=ibv_alloc_pd,errno=ENOMEM,nth=3");

	assert_int_equal(inject_into_call(INJECT_ibv_alloc_pd), 0);
	assert_int_equal(inject_into_call(INJECT_ibv_reg_mr), 0);
	assert_int_equal(inject_into_call(INJECT_ibv_alloc_pd), 0);
	assert_int_equal(inject_into_call(INJECT_ibv_alloc_pd), ENOMEM);
	assert_int_equal(inject_into_call(INJECT_ibv_alloc_pd), 0);
	assert_int_equal(inject_count(rule), 1);
}

TEST(inject_into_call__each_nth_until_it_was_often_enough)
{
	const int rule = add("call=ibv_alloc_pd,errno=EIO,every=4,times=2");

	assert_int_equal(calls_hit(INJECT_ibv_alloc_pd, 7), 1);
	assert_int_equal(calls_hit(INJECT_ibv_alloc_pd, 1), 1);
	assert_int_equal(calls_hit(INJECT_ibv_alloc_pd, 20), 0);
	assert_int_equal(inject_count(rule), 2);
}

TEST(inject_into_call__any)
{
	(void)add("call=any,errno=EIO");
	assert_int_equal(inject_into_call(INJECT_poll_cq), EIO);
	assert_int_equal(inject_into_call(INJECT_rdma_connect), EIO);
	assert_int_equal(inject_into_rdma_call("rdma_listen"), EIO);
	assert_int_equal(inject_into_rdma_call("rdma_destroy_id"), 0);
}

/* verbs.h calls one or the other. */
TEST(inject_into_call__reg_mr_is_reg_mr_iova2_too)
{
	(void)add("call=ibv_reg_mr,errno=ENOMEM");
	assert_int_equal(inject_into_call(INJECT_ibv_reg_mr_iova2), ENOMEM);
	assert_int_equal(inject_into_call(INJECT_ibv_reg_mr_iova), 0);
	(void)add("call=ibv_query_port,errno=EIO");
	assert_int_equal(inject_into_call(INJECT_query_port), EIO);
}

TEST(inject_into_call__by_chance)
{
	char rule[64];
	uint32_t hit[3];

	for (int i = 0; i < 3; i++) {
		snprintf(rule, sizeof(rule), "call=ibv_alloc_pd,errno=EIO,p=0.25,seed=%d", i / 2);
		(void)add(rule);
		hit[i] = 0;
		for (int n = 0; n < CALLS; n++)
			hit[i] = hit[i] * 31 +
				 (inject_into_call(INJECT_ibv_alloc_pd) != 0 ? 1u : 0u);
		assert_in_range(inject_count(add("event=gid_change,after=3600s") - 1), CALLS / 5,
				CALLS * 3 / 10);
		(void)tear_down(NULL);
	}
	/* A seed repeats its choices. */
	assert_int_equal(hit[0], hit[1]);
	assert_int_not_equal(hit[1], hit[2]);
}

TEST(inject_into_call__never_and_always)
{
	(void)add("call=ibv_alloc_pd,errno=EIO,p=0");
	(void)add("call=ibv_reg_mr,errno=EIO,p=1");
	assert_int_equal(calls_hit(INJECT_ibv_alloc_pd, CALLS), 0);
	assert_int_equal(calls_hit(INJECT_ibv_reg_mr, CALLS), CALLS);
}

TEST(inject_into_call__not_before_its_time)
{
	const struct timespec wait = {.tv_nsec = 1000000};

	(void)add("call=ibv_alloc_pd,errno=EIO,after=3600s");
	assert_int_equal(inject_into_call(INJECT_ibv_alloc_pd), 0);
	(void)tear_down(NULL);
	/* What comes before does not count. */
	(void)add("call=ibv_alloc_pd,errno=EIO,nth=1,after=50ms");
	while (inject_into_call(INJECT_ibv_alloc_pd) == 0)
		nanosleep(&wait, NULL);
}

TEST(inject_into_work__of_one_queue_pair)
{
	const int rule = add("op=any,qp=7,status=rem_op_err");

	assert_int_equal(inject_into_work(INJECT_WRITE, 8, 1), IBV_WC_SUCCESS);
	assert_int_equal(inject_into_work(INJECT_RECV, 7, 1), IBV_WC_SUCCESS);
	assert_int_equal(inject_into_work(INJECT_READ, 7, 1), IBV_WC_REM_OP_ERR);
	assert_int_equal(inject_into_work(0, 7, 1), IBV_WC_SUCCESS);
	assert_int_equal(inject_count(rule), 1);
}

TEST(inject_into_work__of_one_operation)
{
	(void)add("op=atomic,status=retry_exc_err");
	assert_int_equal(inject_into_work(INJECT_SEND, 1, 1), IBV_WC_SUCCESS);
	assert_int_equal(inject_into_work(INJECT_ATOMIC, 1, 1), IBV_WC_RETRY_EXC_ERR);
}

/* The first rule that hits decides, and the others do not count. */
TEST(inject_into_work__the_first_rule_decides)
{
	const int rule = add("op=send,nth=2,status=rem_op_err;op=send,nth=1,status=loc_len_err");

	assert_int_equal(inject_into_work(INJECT_SEND, 1, 1), IBV_WC_LOC_LEN_ERR);
	assert_int_equal(inject_into_work(INJECT_SEND, 1, 1), IBV_WC_REM_OP_ERR);
	assert_int_equal(inject_count(rule - 1), 1);
	assert_int_equal(inject_count(rule), 1);
}

TEST(inject_take_event__once_when_it_is_due)
{
	const int rule = add("event=port_err;event=port_active,after=3600s");
	const struct inject_rule *taken;
	uint64_t wait_ns;

	taken = inject_take_event(&wait_ns);
	assert_non_null(taken);
	assert_int_equal(taken->event, IBV_EVENT_PORT_ERR);
	assert_null(inject_take_event(&wait_ns));
	assert_in_range(wait_ns, 3500000000000, 3600000000000);
	assert_int_equal(inject_count(rule - 1), 1);
	assert_int_equal(inject_count(rule), 0);
	/* Nobody could get it. */
	inject_return_event(taken);
	assert_ptr_equal(inject_take_event(&wait_ns), taken);
}

TEST(inject_way__is_that_of_the_manual_page)
{
	assert_int_equal(inject_way(INJECT_ibv_alloc_pd), INJECT_NULL);
	assert_int_equal(inject_way(INJECT_ibv_modify_qp), INJECT_ERRNO);
	assert_int_equal(inject_way(INJECT_create_cq_ex), INJECT_NULL);
	assert_int_equal(inject_way(INJECT_ibv_query_gid), INJECT_MINUS_1);
	assert_int_equal(inject_way(INJECT__ibv_query_gid_table), INJECT_NEGATIVE);
	assert_int_equal(inject_way(INJECT_ibv_rereg_mr), INJECT_REREG);
	assert_int_equal(inject_way(INJECT_ibv_ack_cq_events), INJECT_NEVER);
	assert_int_equal(inject_way(INJECT_ibv_get_device_name), INJECT_NEVER);
}

TEST(inject_into_call__any_spares_what_cannot_fail)
{
	const int rule = add("call=any,errno=EIO");

	assert_int_equal(inject_into_call(INJECT_ibv_ack_cq_events), 0);
	assert_int_equal(inject_into_call(INJECT_ibv_get_device_index), 0);
	assert_int_equal(inject_count(rule), 0);
}

TEST(inject_add__all_or_none)
{
	const int rule = add("event=port_err,after=3600s");

	assert_int_equal(inject_add("op=send,status=rem_op_err;op=send", error, sizeof(error)),
			 -EINVAL);
	assert_int_equal(inject_add("every=call,errno=EIO", error, sizeof(error)), -EINVAL);
	assert_int_equal(inject_count(rule + 1), -ENOENT);
	assert_int_equal(inject_into_work(INJECT_SEND, 1, 1), IBV_WC_SUCCESS);
	assert_int_equal(inject_add("", error, sizeof(error)), 0);
}

TEST(inject_end__of_a_rule_that_is_not_there)
{
	assert_int_equal(inject_end(0), -ENOENT);
	assert_int_equal(inject_end(-1), -ENOENT);
	assert_int_equal(inject_end(INJECT_RULES_MAX + 1), -ENOENT);
	assert_int_equal(inject_count(0), -ENOENT);
}

TEST(inject_end__of_an_event)
{
	const int rule = add("event=port_err,after=3600s");
	uint64_t wait_ns;

	assert_int_equal(inject_end(rule), 0);
	assert_null(inject_take_event(&wait_ns));
	assert_int_equal(wait_ns, UINT64_MAX);
}

/* Last: there is no room for more afterwards. */
TEST(inject_add__too_many)
{
	int rc;

	do {
		rc = inject_add("event=port_err,after=3600s", error, sizeof(error));
	} while (rc > 0);
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(inject_end(INJECT_RULES_MAX), 0);
}
