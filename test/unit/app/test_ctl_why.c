/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/ctl_why.c. */
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "ctl_show.h"
#include "qp/qp.h"
#include "stdout_text.h"
#include "test.h"

#define PID 4711

static const struct report_filter all = {.pid = PID};

/* Return what is told of these objects of one program. */
static const char *told(const struct report_record *records, uint32_t count)
{
	struct report_views views = {.count = 1, .list = calloc(1, sizeof(views.list[0]))};
	struct report_devices devices = {0};
	const char *text;

	assert_non_null(views.list);
	*views.list = (struct report_view){
		.pid = PID, .comm = "rping", .facts = {.device = "uroce0", .port = "eth0"}};
	views.list->records = calloc(count + 1, sizeof(*records));
	assert_non_null(views.list->records);
	memcpy(views.list->records, records, count * sizeof(*records));
	views.list->record_count = count;
	assert_int_equal(devices_sort(&devices, &views), 0);
	stdout_begin();
	why_show(&devices, &all);
	text = stdout_end();
	devices_release(&devices);
	return text;
}

static struct report_record queue_pair(enum qp_waits waits)
{
	return (struct report_record){
		.kind = REPORT_QP,
		.number = 0x1a2,
		.qp = {.dest_qpn = 0x33,
		       .type = IBV_QPT_RC,
		       .state = IBV_QPS_RTS,
		       .sends = 3,
		       .waits = waits,
		       .dgid = {[10] = 0xff, 0xff, 10, 0, 0, 2}},
	};
}

TEST(why_show__says_whom_a_queue_pair_waits_for)
{
	const struct {
		enum qp_waits waits;
		const char *text;
	} cases[] = {
		{QP_WAITS_ANSWER,
		 "3 send requests wait for an answer of 10.0.0.2 queue pair 0x33\n"},
		{QP_WAITS_ANSWER_AGAIN,
		 "queue pair 0x33, which has not come: they were sent again\n"},
		{QP_WAITS_RECEIVE, "a receive request of 10.0.0.2 queue pair 0x33: its program"},
		{QP_WAITS_PAGE, "queue pair 0x1a2 of rping (pid 4711): it waits for a page"},
		{QP_WAITS_RATE, "3 send requests wait for the rate"},
		{QP_WAITS_POLL, "3 send requests wait for a thread"},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		const struct report_record record = queue_pair(cases[i].waits);

		assert_contains(told(&record, 1), cases[i].text);
	}
}

TEST(why_show__says_what_completion_queues_and_connections_wait_for)
{
	const struct report_record records[] = {
		{.kind = REPORT_CQ, .number = 5, .cq = {.cqe = 16, .waiting = 7}},
		{.kind = REPORT_CQ, .number = 6, .cq = {.cqe = 16}},
		{.kind = REPORT_CM_ID,
		 .number = 0x9,
		 .cm_id = {.state = "REQ_SENT", .remote = {[15] = 1}}},
		{.kind = REPORT_CM_ID, .number = 0xa, .cm_id = {.state = "ESTABLISHED"}},
	};

	assert_string_equal(told(records, RTE_DIM(records)),
			    "completion queue 5 of rping (pid 4711): 7 completions wait for the "
			    "program to poll them\n"
			    "connection 0x9 of rping (pid 4711) with ::1: it waits for the peer to "
			    "answer its request: REQ_SENT\n");
}

TEST(why_show__says_that_nothing_waits)
{
	const struct report_record record = queue_pair(QP_WAITS_NOTHING);

	assert_string_equal(told(&record, 1), "nothing waits\n");
}
