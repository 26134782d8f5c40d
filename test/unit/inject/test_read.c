/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules as text. test/zoo/inject.py has more that are refused. */
#include <errno.h>
#include <string.h>

#include "inject/inject.h"
#include "test.h"

static struct inject_rule rule;
static char error[256];

static int read_rule(const char *text)
{
	error[0] = '\0';
	return inject_read(text, &rule, error, sizeof(error));
}

TEST(inject_read__a_call)
{
	assert_int_equal(read_rule("errno=ENOSPC,call=ibv_create_cq,every=5,times=6"), 0);
	assert_int_equal(rule.what, INJECT_FAILS_CALL);
	assert_int_equal(rule.call, INJECT_ibv_create_cq);
	assert_int_equal(rule.error, ENOSPC);
	assert_int_equal(rule.every, 5);
	assert_int_equal(rule.times, 6);
	assert_int_equal(rule.nth, 0);
	assert_string_equal(rule.text, "errno=ENOSPC,call=ibv_create_cq,every=5,times=6");
}

TEST(inject_read__work)
{
	assert_int_equal(read_rule("op=any,status=bad_resp_err,qp=0x1a2,p=0.5,seed=9,nth=1"), 0);
	assert_int_equal(rule.what, INJECT_FAILS_WORK);
	assert_int_equal(rule.ops, INJECT_REQUESTS);
	assert_int_equal(rule.status, IBV_WC_BAD_RESP_ERR);
	assert_int_equal(rule.qpn, 0x1a2);
	assert_int_equal(rule.share, UINT64_C(1) << 31);
	assert_int_equal(rule.seed, 9);
}

TEST(inject_read__an_event)
{
	assert_int_equal(read_rule("event=qp_access_err,after=1.5ms"), 0);
	assert_int_equal(rule.what, INJECT_RAISES);
	assert_int_equal(rule.event, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(rule.after_ns, 1500000);
}

TEST(inject_read__limits)
{
	assert_int_equal(read_rule("op=read,status=rem_op_err,qp=0xffffff"), 0);
	assert_int_equal(read_rule("op=read,status=rem_op_err,qp=0x1000000"), -EINVAL);
	assert_int_equal(read_rule("op=read,status=rem_op_err,qp=0"), -EINVAL);
	assert_int_equal(read_rule("op=read,status=rem_op_err,qp=-1"), -EINVAL);
	assert_int_equal(read_rule("op=read,status=rem_op_err,times=0"), -EINVAL);
	assert_int_equal(read_rule("op=read,status=rem_op_err,p=1.01"), -EINVAL);
	assert_int_equal(read_rule("op=read,status=rem_op_err,p=nan"), -EINVAL);
	assert_int_equal(read_rule("event=gid_change,after=86400s"), 0);
	assert_int_equal(read_rule("event=gid_change,after=86401s"), -EINVAL);
	assert_int_equal(read_rule("event=gid_change,after=-1s"), -EINVAL);
	assert_int_equal(read_rule("event=gid_change,after=1"), -EINVAL);
	assert_int_equal(read_rule("call=ibv_reg_mr,errno=12"), -EINVAL);
}

TEST(inject_read__says_what_is_wrong)
{
	assert_int_equal(read_rule(""), -EINVAL);
	assert_int_equal(read_rule("op=read,status=rem_op_err,often=1"), -EINVAL);
	assert_string_equal(error, "inject: 'op=read,status=rem_op_err,often=1': 'often' is not "
				   "KEY=VALUE with a key of rules");
	assert_int_equal(read_rule("op=read,status=rem_op_err,errno=EIO"), -EINVAL);
	assert_string_equal(error, "inject: 'op=read,status=rem_op_err,errno=EIO': errno= has no "
				   "meaning here");
}

TEST(inject_read__too_long)
{
	char text[INJECT_TEXT_MAX + 1];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(read_rule(text), -EINVAL);
	assert_int_equal(inject_check(text, error, sizeof(error)), -EINVAL);
}

TEST(inject_check__lists)
{
	assert_int_equal(inject_check("", error, sizeof(error)), 0);
	assert_int_equal(inject_check("event=gid_change;", error, sizeof(error)), 0);
	assert_int_equal(
		inject_check(";event=gid_change;op=send,status=rem_op_err", error, sizeof(error)),
		0);
	assert_int_equal(inject_check("event=gid_change;nth=2", error, sizeof(error)), -EINVAL);
}

TEST(inject_call_name__is_what_programs_know)
{
	assert_string_equal(inject_call_name(INJECT_ibv_reg_mr), "ibv_reg_mr");
	assert_string_equal(inject_call_name(INJECT__ibv_query_gid_ex), "ibv_query_gid_ex");
	assert_string_equal(inject_call_name(INJECT_later_alloc_buf), "ibv_alloc_buf");
	assert_string_equal(inject_call_name(INJECT_create_qp_ex), "ibv_create_qp_ex");
	assert_string_equal(inject_call_name(INJECT_post_send), "ibv_post_send");
	assert_string_equal(inject_call_name(INJECT_rdma_connect), "rdma_connect");
}
